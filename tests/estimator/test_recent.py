"""Classes kept apart after teaching must be found and scored as if everything were built anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import LongTailClassifier
from longtail.model import overlay
from longtail.training import changing
from tests.conftest import check_statistics, examples


def make_documents(seed=0, n_classes=15, per_class=4, n_terms=40):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_terms, 0.1), n_classes)
    y = np.repeat(np.arange(n_classes), per_class)
    X = np.array([rng.multinomial(9, topics[c]) for c in y]).astype(float)
    X[:, -6:] = 0  # terms that come later
    return X, np.array([f"c{c:02}" for c in y])


def draw_documents(rng, n_terms=40):
    n = int(rng.integers(1, 4))
    X = rng.poisson(0.15, (n, n_terms)).astype(float)
    X[:, 0] += 1
    return X, np.array([f"c{c:02}" for c in rng.integers(0, 19, n)])


def build_anew(classifier):
    """Compute scorer and index from the sums alone, nothing copied."""
    state = changing.merge_learned(classifier.state_)
    classifier._state = changing.derive(state)


def edit(action, rng, added, classes):
    """Return a method and its arguments: a adds, f forgets something added, r, m and x edit."""
    if action == "f" and added:
        return "forget", added.pop(int(rng.integers(len(added))))
    if action in "af" or len(classes) < 4:
        added.append(draw_documents(rng))
        return "partial_fit", added[-1]
    first, second = rng.choice(classes, 2, replace=False)
    added.clear()  # their labels may be other ones now
    if action == "x":
        return "remove_class", (first,)
    if action == "m":
        return "merge_classes", (first, second)
    return "rename_class", (first, f"c{int(rng.integers(100, 999))}")


@examples(40)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from("aaaafffrmx"), min_size=1, max_size=12),
    st.sampled_from([0, 3, 256]),
)
def test_any_teaching_equals_building_anew(seed, actions, capacity):
    rng = np.random.default_rng(seed)
    X, y = make_documents(seed % 3)
    quick = LongTailClassifier(candidates=6, random_state=0).fit(X, y)
    plain = LongTailClassifier(candidates=6, random_state=0).fit(X, y)
    added = []
    for action in actions:
        method, arguments = edit(action, rng, added, quick.classes_)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(overlay, "SMALL_TIER", capacity)
            getattr(quick, method)(*arguments)
        getattr(plain, method)(*arguments)
        build_anew(plain)
        probe = np.vstack([X[::3], draw_documents(rng)[0], np.zeros((1, 40))])
        for k in (1, 6, 25):
            mine, theirs = quick.predict_topk(probe, k), plain.predict_topk(probe, k)
            assert np.array_equal(mine.classes, theirs.classes)
            assert np.array_equal(mine.scores, theirs.scores)
        assert np.array_equal(quick.classes_, plain.classes_)
        mine, theirs = quick.predict_proba_topk(probe, 5), plain.predict_proba_topk(probe, 5)
        assert np.array_equal(mine.scores, theirs.scores)
    assert quick.statistics_ == plain.statistics_
    check_statistics(quick.statistics_)
    merged = changing.merge(quick.state_)
    for part in ("scorer", "index"):
        mine, theirs = getattr(merged, part), getattr(plain.state_, part)
        for name in vars(type(mine))["__dataclass_fields__"]:
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
    # A class that has the documents of the fit again is not stale.
    assert not np.any(merged.stale & ~plain.state_.stale)


def test_many_taught_classes_are_settled(monkeypatch):
    X, y = make_documents()
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(overlay, "SMALL_TIER", 3)
    for c in range(4):
        classifier.partial_fit(X[:1], [f"new {c}"])
    large, small = classifier.state_.overlay.tiers
    assert (len(large.ids), len(small.ids)) == (4, 0)
    assert len(classifier.classes_) == 19


def test_a_taught_class_is_refined_and_saved_with_the_others(tmp_path):
    X, y = make_documents()
    taught = LongTailClassifier(random_state=0).fit(X, y).partial_fit(X[:3], ["new"] * 3)
    assert taught.state_.overlay is not None
    before = taught.predict_topk(X, 5)
    taught.save(tmp_path / "model")
    from longtail import load

    after = load(tmp_path / "model").predict_topk(X, 5)
    assert np.array_equal(before.scores, after.scores)
    assert np.array_equal(before.classes, after.classes)
    taught.partial_fit(X[3:4], ["newer"])
    taught.refine(np.vstack([X, X[:3], X[3:4]]), [*y, *["new"] * 3, "newer"])
    assert not taught.state_.stale.any()


def test_refining_without_documents_follows_the_sums_however_they_came():
    X, y = make_documents()
    rng = np.random.default_rng(3)
    more = [draw_documents(rng) for _ in range(4)]
    together, single = (
        LongTailClassifier(candidates=6, adapt=False, random_state=0).fit(X, y) for _ in range(2)
    )
    together.partial_fit(np.vstack([d for d, _ in more]), np.concatenate([c for _, c in more]))
    for documents, labels in more[::-1]:
        single.partial_fit(documents, labels)
    stale = together.classes_[changing.merge(together.state_).stale].tolist()
    frozen = together.state_.corpus.n_documents
    for classifier in (together, single):
        assert classifier.refine() is classifier
    state = together.state_
    assert (frozen, state.corpus.n_documents) == (len(y), len(y) + sum(len(c) for _, c in more))
    frequencies = (X > 0).sum(axis=0) + sum((d > 0).sum(axis=0) for d, _ in more)
    expected = np.log((1 + state.corpus.n_documents) / (1 + frequencies)) + 1
    assert state.corpus.idf == pytest.approx(expected)
    assert state.collection_model.sum() == pytest.approx(1)
    assert together.classes_[state.stale].tolist() == stale  # residuals are as they were
    mine, theirs = together.predict_topk(X, 5), single.predict_topk(X, 5)
    assert np.array_equal(mine.scores, theirs.scores)
    together.partial_fit(*more[0]).forget(*more[0])
    assert np.array_equal(together.predict_topk(X, 5).scores, theirs.scores)
    with pytest.raises(ValueError, match="y"):
        together.refine(X)


def test_everything_forgotten_but_what_is_recent():
    X, y = make_documents(n_classes=2)
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    classifier.partial_fit(X[:1], ["new"])
    classifier.forget(X, y)
    assert classifier.classes_.tolist() == ["new"]
    assert classifier.predict(X).tolist() == ["new"] * len(X)
    with pytest.raises(ValueError, match="cannot forget the last document"):
        classifier.forget(X[:1], ["new"])
    with pytest.raises(ValueError, match="never added"):
        classifier.forget(X[1:2] + 1, ["new"])
    assert classifier.classes_.tolist() == ["new"]
