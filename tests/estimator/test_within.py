"""`within` and `exclude`: the search over some classes must equal brute force over them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail._validation import cap_candidates
from longtail.estimators.within import read_subsets
from longtail.exceptions import NoKnownTermWarning, UncalibratedWarning
from longtail.model.scorer import score_pairs_with_residuals
from longtail.sparse import CountMatrix
from tests.conftest import examples
from tests.estimator.test_recent import draw_documents, edit, make_documents

pytestmark = pytest.mark.filterwarnings(
    "ignore::longtail.exceptions.UncalibratedWarning", "ignore::FutureWarning"
)


def rank_by_force(classifier, X, masks, k):
    """Score every class of every segment, and sort those allowed, in plain Python."""
    state = classifier.state_
    counts = CountMatrix.from_matrix(X)
    every = np.arange(counts.n_documents)
    documents = state.weigh(counts)
    pruned = state.pruning.prune(documents, every)
    n_classes = len(state.all_classes)
    q = cap_candidates(state.candidate_factor * classifier.candidates, n_classes)
    scores = np.full((2, len(X), n_classes), -np.inf)
    for segment in state.segments:
        ids = np.arange(n_classes) if segment.class_ids is None else segment.class_ids
        rows = np.flatnonzero(ids >= 0)
        pairs = np.tile(rows, (len(X), 1))
        found = score_pairs_with_residuals(
            documents, pruned, every, pairs, segment.scorer, segment.residuals
        )
        scores[:, :, ids[rows]] = np.array(found)
    ranked = []
    for mask, first, second in zip(masks, *scores, strict=True):
        candidates = sorted(np.flatnonzero(mask), key=lambda c: (-first[c], c))[:q]
        best = sorted(candidates, key=lambda c: (-second[c], c))[:k]
        ranked.append([(int(c), float(second[c])) for c in best])
    return ranked


def as_pairs(classes, top):
    return [
        [(int(np.searchsorted(classes, label)), score) for label, score in top[i]]
        for i in range(len(top.scores))
    ]


def draw_masks(rng, n_documents, n_classes):
    """Return masks that allow one class, some, most or all."""
    shares = rng.choice([0.0, 0.1, 0.5, 0.95, 1.0], n_documents)
    masks = rng.random((n_documents, n_classes)) < shares[:, None]
    masks[np.arange(n_documents), rng.integers(0, n_classes, n_documents)] = True
    return masks


@examples(40)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from("aaaafffrmx"), max_size=8),
    st.sampled_from([1, 6, 40]),
)
def test_any_subset_equals_brute_force(seed, actions, candidates):
    rng = np.random.default_rng(seed)
    X, y = make_documents(seed % 3)
    classifier = LongTailClassifier(candidates=candidates, random_state=0).fit(X, y)
    added = []
    for action in actions:
        name, arguments = edit(action, rng, added, classifier.classes_)
        getattr(classifier, name)(*arguments)
    queries = np.vstack([X[::5], draw_documents(rng)[0], X[:1] > 0])  # some scores tie
    classes = classifier.classes_
    masks = draw_masks(rng, len(queries), len(classes))
    wanted = rank_by_force(classifier, queries, masks, 5)
    given = {
        "mask": {"within": masks},
        "sparse": {"within": sp.csr_array(masks)},
        "lists": {"within": [classes[mask].tolist() for mask in masks]},
        "left out": {"exclude": [classes[~mask].tolist() for mask in masks]},
        "both": {"within": masks, "exclude": [classes[~mask][:3] for mask in masks]},
    }[["mask", "sparse", "lists", "left out", "both"][seed % 5]]
    known = CountMatrix.from_matrix(queries).have_any(classifier.state_.known_terms)
    for jobs in (1, 2):
        top = classifier.set_params(n_jobs=jobs).predict_topk(queries, 5, **given)
        found = as_pairs(classes, top)
        assert found == [row if k else [] for row, k in zip(wanted, known, strict=True)]
    first = classifier.predict(queries[known], **_gather(given, known))
    assert first.tolist() == [classes[row[0][0]] for row, k in zip(wanted, known, strict=True) if k]


def _gather(given, known):
    rows = np.flatnonzero(known)
    return {
        name: value[rows] if hasattr(value, "shape") else [value[i] for i in rows]
        for name, value in given.items()
    }


def test_one_subset_for_all_documents_equals_one_for_each():
    X, y = make_documents()
    classifier = LongTailClassifier(candidates=4, random_state=0).fit(X, y)
    names = ["c03", "c05", "c11"]
    mask = np.isin(classifier.classes_, names)
    wanted = classifier.predict_topk(X, 3, within=[names] * len(X))
    for within in (names, set(names), np.array(names), mask, mask.tolist(), [mask] * len(X)):
        top = classifier.predict_topk(X, 3, within=within)
        assert np.array_equal(top.classes, wanted.classes)
        assert np.array_equal(top.scores, wanted.scores)
    left_out = classifier.predict_topk(X, 3, exclude=classifier.classes_[~mask])
    assert np.array_equal(left_out.scores, wanted.scores)
    assert set(wanted.classes.ravel()) == set(names)


def test_fewer_classes_than_asked_for_are_not_valid():
    X, y = make_documents()
    for kind in (LongTailClassifier, DoubleSamplingClassifier):
        classifier = kind(candidates=8, random_state=0).fit(X, y)
        top = classifier.predict_topk(X, 5, within=["c01", "c02"])
        assert top.valid.tolist() == [[True, True, False, False, False]] * len(X)
        assert set(top.classes[top.valid]) == {"c01", "c02"}
        assert set(top.classes[~top.valid]) == {""}
        assert np.all(top.scores[~top.valid] == -np.inf)


def test_paper_classifier_finds_what_brute_force_finds():
    X, y = make_documents()
    classifier = DoubleSamplingClassifier(candidates=15, random_state=0).fit(X, y)
    every = classifier.predict_topk(X, 15)
    top = classifier.predict_topk(X, 3, within=["c01", "c04", "c09"])
    for i in range(len(X)):
        assert top[i] == [pair for pair in every[i] if pair[0] in ("c01", "c04", "c09")]


@pytest.fixture(scope="module")
def calibrated():
    X, y = make_documents(1, n_classes=20, per_class=40)
    classifier = LongTailClassifier(candidates=6, random_state=0).fit(X, y)
    assert classifier.state_.calibrator.is_calibrated
    return classifier, X, y


def test_probabilities_sum_to_one_with_none(calibrated):
    classifier, X, y = calibrated
    flat = classifier.predict_proba_topk(X, 6)
    within = np.array([[label, "c00", "c01"] for label in y]).tolist()
    inside = classifier.predict_proba_topk(X, 6, within=within)
    outside = classifier.predict_proba_topk(X, 6, exclude=[[label] for label in y])
    for top in (inside, outside):
        assert np.allclose(top.scores.sum(axis=1) + top.none, 1)
        assert np.all(np.diff(top.scores) <= 0)
        assert np.all(top.scores[~top.valid] == 0)
    # What is outside is none; and what is inside keeps what it has, or gets a little more.
    assert outside.none.mean() > 0.5 > inside.none.mean()
    assert np.all(inside.scores[:, 0] >= 0.9 * flat.scores[:, 0] * (flat.classes[:, 0] == y))


def test_all_classes_have_the_probabilities_that_they_have_without_a_limit(calibrated):
    classifier, X, _ = calibrated
    flat = classifier.predict_proba_topk(X, 6)
    every = classifier.predict_proba_topk(X, 6, within=classifier.classes_)
    assert np.array_equal(flat.classes, every.classes)
    assert np.allclose(flat.scores, every.scores, rtol=1e-12, atol=0)
    assert np.allclose(flat.none, every.none, rtol=0, atol=1e-12)


def test_a_document_gets_the_same_bits_alone_and_for_any_threads(calibrated):
    classifier, X, _ = calibrated
    within = draw_masks(np.random.default_rng(0), len(X), 20)
    top = classifier.predict_proba_topk(X, 4, within=within)
    for i in range(0, len(X), 37):
        one = classifier.predict_proba_topk(X[i : i + 1], 4, within=within[i : i + 1])
        assert np.array_equal(one.scores[0], top.scores[i])
    two = LongTailClassifier.from_state(
        classifier.state_, **classifier.get_params() | {"n_jobs": 2}
    )
    assert np.array_equal(two.predict_proba_topk(X, 4, within=within).scores, top.scores)


def test_marginals_stay_as_they_are():
    rng = np.random.default_rng(3)
    X, y = make_documents(2, n_classes=12, per_class=40)
    sets = [[label, f"c{int(rng.integers(12)):02}"] for label in y]
    sets = [sorted(set(labels)) for labels in sets]
    classifier = LongTailClassifier(candidates=6, random_state=0).fit(X, sets)
    flat = classifier.predict_proba_topk(X, 12)
    names = ["c02", "c03", "c07", "c08"]
    top = classifier.predict_proba_topk(X, 12, within=names)
    assert top.none is None
    n_compared = 0
    for i in range(len(X)):
        whole = dict(flat[i])
        for label, probability in top[i]:
            assert label in names
            if label in whole and whole[label] < max(whole.values()):
                n_compared += 1
                assert probability <= whole[label] + 1e-12
    assert n_compared
    predicted = classifier.predict(X, within=names, threshold=0.3)
    assert {label for labels in predicted for label in labels} <= set(names)
    best = classifier.predict(X, within=["c02"])
    assert {tuple(labels) for labels in best} <= {("c02",), ()}


def test_a_document_without_known_terms_gets_the_largest_class_within():
    X, y = make_documents()
    X, y = np.vstack([X, X[y == "c07"]]), np.concatenate([y, ["c07"] * 4])
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    nothing = np.zeros((2, X.shape[1]))
    with pytest.warns(NoKnownTermWarning):
        assert classifier.predict(nothing, exclude=["c00"]).tolist() == ["c07", "c07"]
    with pytest.warns(NoKnownTermWarning):
        found = classifier.predict(nothing, within=[["c05", "c04"], ["c07", "c00"]])
    assert found.tolist() == ["c04", "c07"]
    top = classifier.predict_proba_topk(nothing, 2, within=["c04"])
    assert not top.valid.any()
    assert top.none.tolist() == [1, 1]


def test_texts():
    texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "an owl hoots"]
    classifier = TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox", "owl"])
    assert classifier.predict(["a brown fox"], within=["bear", "owl"]).tolist() == ["bear"]
    assert classifier.predict(["a brown fox"], exclude=["fox", "bear"]).tolist() == ["owl"]
    with pytest.warns(UncalibratedWarning):
        top = classifier.predict_proba_topk(["a brown fox"], 3, exclude=["fox"])
    assert [label for label, _ in top[0]] == ["bear", "owl"]
    assert top.none[0] > 0


CLASSES = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize(
    ("within", "exclude", "message"),
    [
        ("ant", None, r"within must be a list of labels, such as \['ant'\]"),
        (3, None, "within must be a list of labels"),
        (["ant", "dog"], None, "within: 1 label is not among the classes: 'dog'"),
        (None, [["ant"], ["eel"]], "exclude: 1 label is not among the classes: 'eel'"),
        ([1, 2], None, "use labels of the same type"),
        ([True, False], None, "a mask of 2 values; it needs one for each of the 3 classes"),
        (np.ones((2, 2), bool), None, r"n_classes\) = \(2, 3\); it is bool of shape \(2, 2\)"),
        (np.ones((2, 3)), None, "mask of type bool"),
        ([["ant"]], None, "a list for each of 1 document, but there are 2"),
        ([["ant"], "bee"], None, "document 1 has 'bee'"),
        ([], None, "leave document 0 no class of the 3 classes"),
        ([["ant"], []], None, "leave document 1 no class"),
        (["ant"], [["bee"], ["ant"]], "leave document 1 no class"),
        (None, CLASSES, "leave document 0 no class"),
        (np.zeros(3, bool), None, "leave document 0 no class"),
    ],
)
def test_what_is_refused(within, exclude, message):
    with pytest.raises(ValueError, match=message):
        read_subsets(within, exclude, CLASSES, 2)


def test_subsets_are_held_by_the_shorter_list():
    subsets = read_subsets([["ant"], ["bee", "ant"], None], ["cat"], CLASSES, 3)
    assert subsets.n_allowed[subsets.subset_ids].tolist() == [1, 2, 2]
    assert subsets.are_allowed[subsets.subset_ids].tolist() == [True, False, False]
    assert len(subsets.class_ids) == 3
    assert subsets.contain(np.array([[0, 2, -1]] * 3)).tolist() == [[True, False, False]] * 3
