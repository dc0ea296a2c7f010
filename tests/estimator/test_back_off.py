"""Back-off and levels: answers against plain dicts, what they promise, edits, files."""

from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.exceptions import HierarchyWarning, NoKnownTermWarning
from tests import oracle_hierarchy as oracle

pytestmark = pytest.mark.filterwarnings("ignore::longtail.exceptions.UncalibratedWarning")
N_CLASSES = 48


def make_documents(seed, per_class):
    """Classes of one family share most terms: families are easy to tell, classes are not."""
    rng = np.random.default_rng(7)
    families = rng.dirichlet(np.full(60, 0.08), 8)
    topics = 0.75 * families[np.arange(N_CLASSES) // 6] + 0.25 * rng.dirichlet(
        np.full(60, 0.08), N_CLASSES
    )
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), per_class)
    X = np.array([rng.multinomial(6, topics[c]) for c in y]).astype(float)
    return X, np.array([f"c{c:02}" for c in y])


PARENTS = {f"c{c:02}": {f"family {c // 6}"} for c in range(N_CLASSES)} | {
    f"family {f}": {f"order {f // 4}"} for f in range(8)
}


@pytest.fixture(scope="module")
def model():
    X, y = make_documents(0, 60)
    return LongTailClassifier(random_state=0).fit(X, y, hierarchy=PARENTS)


@pytest.fixture(scope="module")
def new():
    return make_documents(1, 20)


@pytest.mark.parametrize("precision", [0.8, 0.9, 0.95])
def test_promised_precision_holds_on_new_documents(model, new, precision):
    X, y = new
    answers = model.predict_nodes(X, precision)
    correct = [
        label in oracle.ancestors(truth, PARENTS)
        for label, truth in zip(answers.labels[answers.valid], y[answers.valid], strict=True)
    ]
    assert np.mean(correct) >= precision - 0.02
    assert abs(np.mean(correct) - answers.probabilities[answers.valid].mean()) < 0.05
    flat = model.threshold_for(precision).keeps(model.predict_proba_topk(X, 1))[:, 0]
    assert answers.depths.mean() > 3 * flat.mean()  # a class is 3 deep
    assert len(set(answers.depths[answers.valid])) > 1


def test_answers_are_those_of_plain_dicts(model, new):
    X = new[0][::7]
    back_off = model.state_.back_off
    threshold = back_off.find_threshold(0.9)
    top = model.predict_proba_topk(X, 20)
    answers = model.predict_nodes(X, 0.9)
    lengths, shortest = np.count_nonzero(X, axis=1), model.state_.calibrator.short_length
    for i in np.flatnonzero(lengths >= shortest):  # a shorter one has lower shares
        shares = oracle.sums(top[i], PARENTS)
        wanted = oracle.deepest(shares, PARENTS, threshold)
        assert answers.labels[i] == (wanted or "")
        assert answers.depths[i] == (oracle.depth(wanted, PARENTS) if wanted else 0)
    assert model.predict(X, back_off=0.9).tolist() == answers.labels.tolist()


def test_thresholds_are_those_of_plain_dicts(model):
    back_off = model.state_.back_off
    candidates, shares, truth = back_off._held_out
    names = model.hierarchy_.nodes
    documents = [
        (oracle.sums(zip(names[row].tolist(), some, strict=True), PARENTS, 1.0), names[true])
        for row, some, true in zip(candidates[:300], shares[:300].tolist(), truth, strict=False)
    ]
    calibrator = model.state_.calibrator
    ranked = {
        name: getattr(calibrator, name)[:300]
        for name in ("ranked_classes", "ranked_shares", "ranked_truth")
    }
    few = replace(model.state_.back_off, calibrator=replace(calibrator, **ranked))
    thresholds, n_answers, n_correct = few._sweep
    assert len(thresholds) > 50
    for i in range(0, len(thresholds), 23):
        wanted = oracle.sweep(documents, PARENTS, thresholds[i] - 1e-9)
        assert (n_answers[i], n_correct[i]) == wanted


def test_levels_sum_up(model, new):
    X, y = new
    families = np.array([f"family {int(label[1:]) // 6}" for label in y])
    top = model.predict_proba_topk(X, 4, level=2)
    assert set(top.classes[top.valid]) == {f"family {f}" for f in range(8)}
    assert np.all(np.diff(top.scores) <= 0)
    assert np.all(top.scores.sum(axis=1) + top.none <= 1 + 1e-9)
    correct = top.classes[:, 0] == families
    # What lies outside the candidates counts for no node, so sums may promise too little.
    assert top.scores[:, 0].mean() < correct.mean() + 0.05
    kept = model.threshold_for(0.9, level=2).keeps(top)[:, 0]
    assert correct[kept].mean() >= 0.88
    assert kept.mean() > model.threshold_for(0.9).keeps(model.predict_proba_topk(X, 1))[:, 0].mean()
    best = model.predict_topk(X, 3, level=2)
    first = model.predict_topk(X, 1)
    assert best.classes[:, 0].tolist() == [next(iter(PARENTS[c])) for c in first.classes[:, 0]]
    assert np.array_equal(best.scores[:, 0], first.scores[:, 0])
    deep = model.predict_topk(X, 3, level=9)  # every class is shallower: it stands for itself
    assert np.array_equal(deep.classes, model.predict_topk(X, 3).classes)


HIDDEN = np.array([f"c{c:02}" for c in range(0, N_CLASSES, 4)])


@pytest.fixture(scope="module")
def partial():
    """A model without a quarter of the classes; their families are there."""
    X, y = make_documents(0, 60)
    keep = ~np.isin(y, HIDDEN)
    parents = {child: above for child, above in PARENTS.items() if child not in HIDDEN}
    return LongTailClassifier(random_state=0).fit(X[keep], y[keep], hierarchy=parents)


def are_right(labels, true):
    return np.array(
        [
            label in oracle.ancestors(truth, PARENTS)
            for label, truth in zip(labels, true, strict=True)
        ]
    )


@pytest.mark.parametrize("precision", [0.8, 0.9, 0.95])
def test_precision_holds_where_classes_are_unknown(partial, precision, tmp_path):
    X, y = make_documents(1, 40)
    told = copy_of(partial).expect_unknown(float(np.isin(y, HIDDEN).mean()))
    told.save(tmp_path / "model")
    told = longtail.load(tmp_path / "model")
    reached = []
    for model in (partial, told):
        answers = model.predict_nodes(X, precision)
        correct = are_right(answers.labels[answers.valid], y[answers.valid])
        reached.append(correct.mean())
    assert reached[0] < precision - 0.05  # what was not told
    assert reached[1] >= precision - 0.02
    assert abs(reached[1] - answers.probabilities[answers.valid].mean()) < 0.05
    assert answers.valid.mean() > 0.9  # a family is an answer


def test_thresholds_of_a_level_allow_for_unknown_classes(partial):
    X, y = make_documents(1, 40)
    top = partial.predict_proba_topk(X, 1, level=3)  # the classes themselves
    correct = are_right(top.classes[:, 0], y)
    plain, allowing = (partial.threshold_for(0.7, share, level=3) for share in (0.0, 0.25))
    assert correct[plain.keeps(top)[:, 0]].mean() < 0.65
    kept = allowing.keeps(top)[:, 0]
    assert correct[kept].mean() >= 0.66  # of 324 held-out documents: a standard error of 0.025
    assert allowing.coverage == pytest.approx(kept.mean(), abs=0.07)
    each = partial.threshold_for(0.7, 0.25, level=3, each=True)
    near = kept & (top.scores[:, 0] < each.threshold + 0.05) & each.keeps(top)[:, 0]
    assert each.threshold > allowing.threshold
    assert correct[near].mean() >= 0.6  # those that are only just kept


def test_unknown_classes_look_like_known_ones_without_their_class(partial):
    back_off = partial.state_.back_off
    n_known = len(back_off._held_out[2])
    candidates, shares, truth = replace(back_off, unknown=0.2)._held_out
    n_added = round(n_known / 4)
    assert len(truth) == n_known + n_added
    for i in range(0, n_added, 7):
        row = round(i * (n_known - 1) / (n_added - 1))
        assert truth[n_known + i] == truth[row]
        left = {
            node: share
            for node, share in zip(candidates[row].tolist(), shares[row].tolist(), strict=True)
            if node != truth[row]
        }
        total = sum(left.values()) or 1.0
        found = dict(zip(candidates[n_known + i].tolist(), shares[n_known + i], strict=True))
        assert found.pop(truth[row], 0.0) == 0.0
        assert found == pytest.approx({node: share / total for node, share in left.items()})


def test_branches_are_subsets(model, new):
    X = new[0][::11]
    below = model.branch("order 1")
    assert below.tolist() == [f"c{c:02}" for c in range(24, 48)]
    top = model.predict_topk(X, 5, within=below)
    assert set(top.classes.ravel()) <= set(below)
    answers = model.predict_nodes(X, 0.8, within=below)
    above = {"order 1", *(f"family {f}" for f in range(4, 8)), *below.tolist()}
    assert set(answers.labels[answers.valid]) <= above


def test_scores_and_probabilities_of_classes_stay(model, new):
    plain = LongTailClassifier.from_state(model.state_, **model.get_params()).set_hierarchy(None)
    for method in ("predict_topk", "predict_proba_topk"):
        with_nodes, without = (getattr(m, method)(new[0], 5) for m in (model, plain))
        assert np.array_equal(with_nodes.classes, without.classes)
        assert np.array_equal(with_nodes.scores, without.scores)


def test_set_later_saved_and_loaded_it_answers_alike(model, new, tmp_path):
    X, y = make_documents(0, 60)
    later = LongTailClassifier(random_state=0).fit(X, y).set_hierarchy(PARENTS)
    later.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    wanted = model.predict_nodes(new[0], 0.9)
    for one in (later, loaded, loaded.set_threads(2)):
        answers = one.predict_nodes(new[0], 0.9)
        assert np.array_equal(answers.labels, wanted.labels)
        assert np.array_equal(answers.probabilities, wanted.probabilities)
    assert np.array_equal(loaded.hierarchy_.parents, model.hierarchy_.parents)


def copy_of(model):
    return LongTailClassifier.from_state(model.state_, **model.get_params())


def test_edits_of_classes(model, new):
    changed = copy_of(model).rename_class("c03", "oak").move_class("oak", ["family 7", "trees"])
    hierarchy = changed.hierarchy_
    assert hierarchy.path("oak") == ("order 1", "family 7", "oak")
    assert hierarchy.parents_of("oak") == ["family 7", "trees"]
    assert "oak" in changed.branch("trees").tolist()
    changed.merge_classes("c05", "c04").remove_class("c00")
    assert changed.branch("family 0").tolist() == ["c01", "c02", "c04"]
    changed.set_params(adapt=False)  # three outcomes, all wrong, would change what nodes promise
    changed.partial_fit(new[0][:3], ["c01", "a new one", "a new one"])
    answers = changed.predict_nodes(new[0], 0.8)
    assert not {"c00", "c03", "c05"} & set(answers.labels.tolist())
    assert changed.state_.back_off.is_calibrated
    found = changed.predict_nodes(np.tile(new[0][1:2], (1, 1)), 0.8)
    assert found.depths[0] in (0, 1, 2, 3)
    assert model.hierarchy_.path("c03") == ("order 0", "family 0", "c03")
    merged = changed.refine().predict_nodes(new[0], 0.8)
    assert np.mean(merged.labels == answers.labels) > 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.move_class("order 0", "c00"), "cycle"),
        (lambda m: m.move_class("nobody", "c00"), "neither a class nor a node"),
        (lambda m: m.move_class("c00", 3), "different types"),
        (lambda m: m.branch("nobody"), "no node 'nobody'"),
        (lambda m: m.predict_nodes(np.ones((1, 60)), 1.5), "precision must"),
        (
            lambda m: m.predict_topk(np.ones((1, 60)), level=0),
            "level must be an integer of at least 1",
        ),
        (lambda m: m.threshold_for(0.9, 1.0, level=1), "unknown must"),
        (lambda m: m.set_hierarchy({"c00": "c01", "c01": "c00"}), "cycle"),
        (lambda m: m.set_hierarchy(None).predict(np.ones((1, 60)), back_off=0.9), "no hierarchy"),
        (lambda m: m.set_hierarchy(None).move_class("c00", "c01"), "no hierarchy"),
        (lambda m: m.set_hierarchy(None).branch("c00"), "no hierarchy"),
    ],
)
def test_what_is_refused_changes_nothing(model, call, message):
    changed = copy_of(model)
    with pytest.raises(ValueError, match=message):
        call(changed)
    assert changed.hierarchy_ is None or changed.hierarchy_ is model.hierarchy_


def test_label_sets_and_the_paper_have_no_back_off():
    X, y = make_documents(0, 3)
    sets = LongTailClassifier(random_state=0).fit(
        X, [[label] for label in y[:-1]] + [["c00", y[-1]]]
    )
    sets.set_hierarchy(PARENTS)
    assert len(sets.branch("family 0")) == 6
    with pytest.raises(ValueError, match="one label for each document"):
        sets.predict(X, back_off=0.9)
    with pytest.raises(ValueError, match="takes no hierarchy"):
        DoubleSamplingClassifier().fit(X, y, hierarchy=PARENTS)


def test_documents_without_known_terms_have_no_node(model):
    nothing = np.zeros((1, 60))
    answers = model.predict_nodes(nothing, 0.8)
    assert answers.labels.tolist() == [""]
    assert answers.depths.tolist() == [0]
    assert not model.predict_proba_topk(nothing, 2, level=1).valid.any()
    with pytest.warns(NoKnownTermWarning):
        model.predict(nothing)


def test_without_held_out_documents_shares_count_as_they_are():
    X, y = make_documents(0, 2)
    model = LongTailClassifier(calibrate=False, random_state=0).fit(X, y, hierarchy=PARENTS)
    assert not model.state_.back_off.is_calibrated
    assert model.state_.back_off.find_threshold(0.7) == 0.7
    top, answers = model.predict_proba_topk(X, 20), model.predict_nodes(X, 0.7)
    for i in range(0, len(X), 9):
        wanted = oracle.deepest(oracle.sums(top[i], PARENTS), PARENTS, 0.7)
        assert answers.labels[i] == (wanted or "")


def test_texts():
    texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "an owl hoots"]
    labels = ["animal/bear", "animal/bear", "animal/fox", "animal/fox", "bird"]
    with pytest.warns(HierarchyWarning, match="1 of 3 classes are not"):
        model = TextClassifier(random_state=0).fit(texts, labels, hierarchy="/")
    assert model.branch("animal").tolist() == ["animal/bear", "animal/fox"]
    assert model.predict(["honey"], within=model.branch("animal")).tolist() == ["animal/bear"]
    model.move_class("bird", "animal")
    assert model.hierarchy_.path("bird") == ("animal", "bird")
    assert model.predict(["a fox"], back_off=0.99).tolist() in (["animal/fox"], [""])


def test_what_is_kept_over_a_change_is_that_of_a_model_put_together_anew(model, new):
    changed = copy_of(model)
    changed.predict_nodes(new[0], 0.8)
    steps = (
        lambda: changed.partial_fit(new[0][:1], ["c01"]),
        lambda: changed.partial_fit(new[0][:1], ["c99"]),
        lambda: changed.merge_classes("c05", "c04"),
        lambda: changed.recalibrate(new[0][:300], new[1][:300]),
        lambda: changed.rename_class("c07", "c98"),
    )
    for step in steps:
        before = changed.state_.back_off
        step()
        anew = copy_of(changed)
        anew._state = replace(anew.state_, known={})
        one, other = changed.predict_nodes(new[0], 0.8), anew.predict_nodes(new[0], 0.8)
        assert np.array_equal(one.labels, other.labels)
        assert np.array_equal(one.probabilities, other.probabilities)
        assert (changed.state_.back_off is before) == (step is steps[0])
