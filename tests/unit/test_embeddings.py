"""Embeddings: sums in fixed point against plain Python; models that rank by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from longtail import DoubleSamplingClassifier, LongTailClassifier, load
from longtail._kernels.features import BENDS
from longtail._labels import LabelSets
from longtail.model.embeddings import (
    Directions,
    find_centers,
    find_signs,
    move_to,
    read_embeddings,
    to_unit_vectors,
)
from longtail.model.statistics import ClassStatistics
from longtail.sparse import CountMatrix
from longtail.training import changing
from longtail.training.config import FitConfig
from longtail.training.pipeline import fit_long_tail
from tests import oracle_embeddings as oracle

N_CLASSES, N_TERMS, N_DIMENSIONS = 30, 200, 24


class Given(NamedTuple):
    """Documents whose terms say little of their class, and whose vectors say more."""

    X: NDArray[Any]
    y: NDArray[Any]
    E: NDArray[Any]


def draw(n: int, seed: int, noise: float = 2.0) -> Given:
    """Draw documents."""
    of_classes, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centers = of_classes.normal(size=(N_CLASSES, N_DIMENSIONS))
    own = of_classes.integers(0, N_TERMS, (N_CLASSES, 12))
    y = np.minimum(rng.geometric(0.1, n) - 1, N_CLASSES - 1)
    X = np.zeros((n, N_TERMS))
    for i, label in enumerate(y):
        np.add.at(X[i], own[label, rng.integers(0, 12, 2)], 1.0)
        np.add.at(X[i], rng.integers(0, N_TERMS, 6), 1.0)
    return Given(X, y, centers[y] + noise * rng.normal(size=(n, N_DIMENSIONS)))


TRAIN, NEW = draw(2000, 1), draw(150, 2)


@pytest.fixture(scope="module")
def fitted() -> LongTailClassifier:
    return LongTailClassifier(random_state=0).fit(TRAIN.X, TRAIN.y, embeddings=TRAIN.E)


def copy(classifier: LongTailClassifier) -> LongTailClassifier:
    """Return a classifier with the same state, which may be changed."""
    return LongTailClassifier.from_state(classifier.state_, random_state=0)


def ranking(classifier: LongTailClassifier) -> tuple[Any, Any]:
    """Return the probabilities of new documents."""
    top = classifier.predict_proba_topk(NEW.X, 5, embeddings=NEW.E)
    return top.classes.tolist(), top.scores.tolist()


def scores(classifier: LongTailClassifier) -> tuple[Any, Any]:
    """Return the ranking of new documents."""
    top = classifier.predict_topk(NEW.X, 5, embeddings=NEW.E)
    return top.classes.tolist(), top.scores.tolist()


# ---- fixed point


def test_vectors_and_sums_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(3)
    given = rng.normal(size=(40, 70)) * 10.0 ** rng.integers(-3, 4, (40, 1))
    given[7] = 0.0
    y = rng.integers(0, 5, 40)
    units = to_unit_vectors(given)
    assert units.tolist() == [oracle.to_unit(row) for row in given.tolist()]
    counts = replace(CountMatrix.from_matrix(np.ones((40, 2))), embeddings=units)
    sums = ClassStatistics.from_counts(counts, y, 6)
    assert sums.embedding_sums is not None
    assert sums.embedding_sums.tolist() == oracle.sum_by_class(units.tolist(), y.tolist(), 6)
    first = ClassStatistics.from_counts(counts.gather(np.arange(15)), y[:15], 6)
    second = ClassStatistics.from_counts(counts.gather(np.arange(39, 14, -1)), y[:14:-1], 6)
    assert second + first == sums
    assert sums - second == first


def test_centers_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(4)
    units, names = (to_unit_vectors(rng.normal(0.3, 1.0, (n, 12))) for n in (50, 9))
    names[4] = 0
    y = rng.integers(0, 5, 50)
    sums = np.array(oracle.sum_by_class(units.tolist(), y.tolist(), 5), np.int32)
    found = find_centers(sums, np.bincount(y, minlength=5), names)
    assert found.tolist() == [oracle.find_center(some) for some in (units.tolist(), names.tolist())]
    moved = move_to(found[1], names)
    assert moved.tolist() == [oracle.move_to(found[1].tolist(), name) for name in names.tolist()]
    assert not moved[4].any()


def test_documents_that_were_never_added_are_refused() -> None:
    units = to_unit_vectors(np.eye(2))
    counts = replace(CountMatrix.from_matrix(np.ones((2, 1))), embeddings=units)
    sums = ClassStatistics.from_counts(counts.gather(np.array([0])), np.zeros(1, int), 1)
    other = ClassStatistics.from_counts(counts.gather(np.array([1])), np.zeros(1, int), 1)
    with pytest.raises(ValueError, match="never added"):
        _ = sums - other


def test_float32_and_float64_give_the_same() -> None:
    given = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    assert np.array_equal(to_unit_vectors(given), to_unit_vectors(given.astype(np.float64)))


@pytest.mark.parametrize("n_dimensions", [3, 64, 130])
def test_shortlist_has_those_whose_signs_differ_least(n_dimensions: int) -> None:
    rng = np.random.default_rng(n_dimensions)
    units = to_unit_vectors(rng.normal(size=(90, n_dimensions)))
    units[5] = 0
    documents = to_unit_vectors(rng.normal(size=(12, n_dimensions)))
    class_ids = rng.permutation(120)[:90]
    class_ids[[2, 9]] = -1
    passed_over = rng.choice(class_ids, (12, 4))
    found = Directions(units).shortlist(find_signs(documents), class_ids, passed_over, 10)
    for i, document in enumerate(documents.tolist()):
        expected = sorted(
            (oracle.differing_signs(document, unit), class_id, row)
            for row, (unit, class_id) in enumerate(zip(units.tolist(), class_ids, strict=True))
            if any(unit) and class_id >= 0 and class_id not in passed_over[i]
        )[:10]
        assert (found.classes[i] >> 32).tolist() == [class_id for _, class_id, _ in expected]
        assert (found.classes[i] & 0xFFFFFFFF).tolist() == [row for *_, row in expected]
        assert (-found.scores[i]).tolist() == [distance for distance, *_ in expected]


def test_shortlist_of_few_classes_is_filled_with_none() -> None:
    units = to_unit_vectors(np.eye(3))
    found = Directions(units).shortlist(
        find_signs(units), np.arange(3), np.array([[0], [0], [9]]), 4
    )
    assert (found.classes >= 0).sum(axis=1).tolist() == [2, 2, 3]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (np.ones(4), r"embeddings must have shape \(n_documents, n_dimensions\).*got \(4,\)"),
        (np.ones((3, 2)), r"got \(3, 2\)"),
        (np.ones((4, 0)), r"got \(4, 0\)"),
        (np.ones((4, 5000)), "at most 4096"),
        (np.diag([1.0, 2.0, np.nan, 0.0])[:, 1:3], "document 2 has NaN or infinity"),
        ([["a"]] * 4, "embeddings must be an array of numbers"),
        (np.ones((4, 3)), "have 3 dimensions, but the model was fitted with 2"),
    ],
)
def test_unfit_embeddings_are_refused(given: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_embeddings(given, 4, 2)


# ---- models


def test_embeddings_help_and_are_what_plain_python_adds(fitted: LongTailClassifier) -> None:
    figures = fitted.self_check_.meaning_figures
    assert figures[1, 0] > figures[0, 0] + 0.05
    plain = LongTailClassifier(random_state=0).fit(TRAIN.X, TRAIN.y)
    assert fitted.score(NEW.X, NEW.y, embeddings=NEW.E) > plain.score(NEW.X, NEW.y) + 0.05
    state = fitted.state_
    assert np.array_equal(state.residuals.weights, plain.state_.residuals.weights)
    without = LongTailClassifier.from_state(
        replace(state, check=plain.self_check_), random_state=0
    ).decision_function(NEW.X)
    with_meaning = fitted.decision_function(NEW.X, embeddings=NEW.E)
    sums = oracle.sum_by_class(
        [oracle.to_unit(row) for row in TRAIN.E.tolist()], TRAIN.y.tolist(), N_CLASSES
    )
    sizes, weights = state.statistics.class_sizes.tolist(), state.check.meaning.tolist()
    for i in range(0, 150, 10):
        document = oracle.to_unit(NEW.E[i].tolist())
        found = np.flatnonzero(np.isfinite(with_meaning[i]))
        assert np.array_equal(found, np.flatnonzero(np.isfinite(without[i])))
        for c in found.tolist():
            added = oracle.score_mean(document, sums[c], sizes[c], weights, BENDS)
            assert with_meaning[i, c] == pytest.approx(without[i, c] + added)


def test_embeddings_that_say_nothing_are_left_out() -> None:
    noise = np.random.default_rng(5).normal(size=(2000, 4))
    fitted = LongTailClassifier(random_state=0).fit(TRAIN.X, TRAIN.y, embeddings=noise)
    plain = LongTailClassifier(random_state=0).fit(TRAIN.X, TRAIN.y)
    figures = fitted.self_check_.meaning_figures
    assert fitted.state_.needs_embeddings == (figures[1, :2].sum() > figures[0, :2].sum())
    if not fitted.state_.needs_embeddings:  # and then they need not be given
        assert np.array_equal(fitted.predict(NEW.X), plain.predict(NEW.X))


def test_what_was_added_and_forgotten_leaves_no_trace(fitted: LongTailClassifier) -> None:
    taught = copy(fitted)
    X, E = NEW.X[:60], NEW.E[:60]
    labels = np.where(np.arange(60) < 20, 77, NEW.y[:60])  # a new class among them
    before = scores(taught)
    taught.partial_fit(X, labels, embeddings=E)
    during = scores(taught)
    assert during != before
    order = np.random.default_rng(1).permutation(60)
    for rows in np.array_split(order, 3):
        taught.forget(X[rows], labels[rows], embeddings=E[rows])
    assert scores(taught) == before
    assert taught.statistics_ == fitted.statistics_
    for rows in np.array_split(order, 4):
        taught.partial_fit(X[rows], labels[rows], embeddings=E[rows])
    assert scores(taught) == during
    merged = LongTailClassifier.from_state(changing.merge(taught.state_), random_state=0)
    assert scores(merged) == during
    taught.merge_classes(77, 3)
    whole = copy(fitted).partial_fit(X, np.where(labels == 77, 3, labels), embeddings=E)
    assert scores(taught) == scores(whole)


def test_forgetting_with_another_vector_is_refused_where_a_class_would_be_left_with_it(
    fitted: LongTailClassifier,
) -> None:
    taught = copy(fitted).partial_fit(NEW.X[:1], [99], embeddings=NEW.E[:1])
    with pytest.raises(ValueError, match="never added"):
        taught.forget(NEW.X[:1], [99], embeddings=NEW.E[1:2])


def test_a_file_gives_the_same_bits(fitted: LongTailClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.longtail"
    taught = copy(fitted).partial_fit(NEW.X, NEW.y + 3, embeddings=NEW.E)
    taught.save(path)
    loaded = load(path)
    assert isinstance(loaded, LongTailClassifier)
    assert ranking(loaded) == ranking(taught)
    with pytest.raises(ValueError, match="takes counts"):
        load(path, embedder=len)


def test_alone_or_in_a_batch_and_on_any_number_of_threads(fitted: LongTailClassifier) -> None:
    top = fitted.predict_topk(NEW.X, 3, embeddings=NEW.E)
    for i in (0, 77):
        one = fitted.predict_topk(NEW.X[i : i + 1], 3, embeddings=NEW.E[i : i + 1])
        assert one.scores[0].tolist() == top.scores[i].tolist()
    threads = copy(fitted).set_threads(2)
    assert ranking(threads) == ranking(fitted)


def test_explanations_add_up(fitted: LongTailClassifier) -> None:
    scores = fitted.predict_topk(NEW.X[:5], 1, embeddings=NEW.E[:5]).scores[:, 0]
    for found, score in zip(fitted.explain(NEW.X[:5], embeddings=NEW.E[:5]), scores, strict=True):
        assert found.score == pytest.approx(score)
        assert sum(found.features.values()) == pytest.approx(score)
        assert found.features["meaning"] == found.meaning
        assert "(meaning)" in str(found)


def test_a_document_without_a_known_term_is_found_by_its_meaning(
    fitted: LongTailClassifier,
) -> None:
    empty = np.zeros_like(NEW.X)
    top = fitted.predict_topk(empty, 1, embeddings=NEW.E)
    assert top.valid.all()
    assert np.mean(top.classes[:, 0] == NEW.y) > 0.5
    assert not fitted.predict_topk(empty, 1, embeddings=np.zeros_like(NEW.E)).valid.any()


def test_documents_without_a_vector_rank_by_their_terms(fitted: LongTailClassifier) -> None:
    ranked = fitted.predict_topk(NEW.X, 2, embeddings=np.zeros_like(NEW.E))
    check = replace(fitted.self_check_, meaning=np.zeros((5, 4)))
    plain = LongTailClassifier.from_state(replace(fitted.state_, check=check), random_state=0)
    assert ranked.scores.tolist() == plain.predict_topk(NEW.X, 2).scores.tolist()


def test_subsets_hold_with_embeddings(fitted: LongTailClassifier) -> None:
    for X in (NEW.X, np.zeros_like(NEW.X)):
        top = fitted.predict_proba_topk(X, 3, within=[1, 2, 3, 4], embeddings=NEW.E)
        assert set(top.classes[top.valid].tolist()) <= {1, 2, 3, 4}
        assert top.valid[:, 0].all()


def test_label_sets_have_embeddings() -> None:
    sets = [sorted({a, (a + 1) % 30}) if a % 2 else [a] for a in TRAIN.y.tolist()]
    fitted = LongTailClassifier(random_state=0).fit(TRAIN.X, sets, embeddings=TRAIN.E)
    figures = fitted.self_check_.meaning_figures
    assert figures[1, 0] > figures[0, 0]
    new = [sorted({a, (a + 1) % 30}) if a % 2 else [a] for a in NEW.y.tolist()]
    assert fitted.score(NEW.X, new, embeddings=NEW.E) > fitted.score(
        NEW.X, new, embeddings=np.zeros_like(NEW.E)
    )
    before = fitted.predict_proba_topk(NEW.X, 3, embeddings=NEW.E).scores
    few = NEW.X[:50], new[:50]
    fitted.partial_fit(*few, embeddings=NEW.E[:50]).forget(*few, embeddings=NEW.E[:50])
    assert np.array_equal(fitted.predict_proba_topk(NEW.X, 3, embeddings=NEW.E).scores, before)


def test_embeddings_that_are_missing_or_too_many_are_refused(fitted: LongTailClassifier) -> None:
    with pytest.raises(ValueError, match=r"ranks by embeddings.*predict\(X, embeddings=E\)"):
        fitted.predict(NEW.X)
    with pytest.raises(ValueError, match="sums up the embeddings"):
        copy(fitted).partial_fit(NEW.X, NEW.y)
    with pytest.raises(ValueError, match="fitted with 24"):
        fitted.predict(NEW.X, embeddings=NEW.E[:, :3])
    plain = LongTailClassifier(random_state=0).fit(TRAIN.X[:50], TRAIN.y[:50])
    with pytest.raises(ValueError, match="fitted without embeddings"):
        plain.predict(NEW.X, embeddings=NEW.E)
    with pytest.raises(ValueError, match="DoubleSamplingClassifier takes no embeddings"):
        DoubleSamplingClassifier().fit(TRAIN.X[:50], TRAIN.y[:50], embeddings=TRAIN.E[:50])
    with pytest.raises(ValueError, match="fractions, which embeddings cannot have"):
        LongTailClassifier().fit(
            TRAIN.X[:50], TRAIN.y[:50], np.full(50, 0.5), embeddings=TRAIN.E[:50]
        )


def test_documents_are_kept_with_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.training.relearning.MIN_HELD_OUT", 100)
    classifier = LongTailClassifier(memory=2000, random_state=0)
    classifier.fit(TRAIN.X[:1500], TRAIN.y[:1500], embeddings=TRAIN.E[:1500])
    classifier.partial_fit(TRAIN.X[1500:], TRAIN.y[1500:], embeddings=TRAIN.E[1500:])
    classifier.forget(TRAIN.X[:30], TRAIN.y[:30], embeddings=TRAIN.E[:30])
    classifier.save(tmp_path / "kept.longtail")
    loaded = load(tmp_path / "kept.longtail")
    assert isinstance(loaded, LongTailClassifier)
    memory = loaded.state_.memory
    assert memory is not None
    whole = Given(*(array[30:] for array in TRAIN))
    assert np.array_equal(memory.class_ids, whole.y)
    assert np.array_equal(memory.embeddings, to_unit_vectors(whole.E))
    assert ranking(loaded) == ranking(classifier)
    # Learning anew from what is kept is a fit of all of it.
    given = replace(CountMatrix.from_matrix(whole.X), embeddings=to_unit_vectors(whole.E))
    labels = LabelSets.single(whole.y, np.arange(N_CLASSES))
    again = LongTailClassifier.from_state(fit_long_tail(given, labels, FitConfig(seed=0)))
    loaded.refine()
    assert loaded.state_.needs_embeddings
    assert loaded.statistics_ == again.statistics_
    assert scores(loaded) == scores(again)


def test_the_nearest_documents_that_are_kept_are_shown() -> None:
    names = [f"t{i}" for i in range(N_TERMS)]
    pd = pytest.importorskip("pandas")
    classifier = LongTailClassifier(memory=2000, random_state=0)
    classifier.fit(pd.DataFrame(TRAIN.X, columns=names), TRAIN.y, embeddings=TRAIN.E)
    taught = classifier.partial_fit(
        pd.DataFrame(NEW.X[:1], columns=names), [3], embeddings=NEW.E[:1]
    )
    document = {"X": pd.DataFrame(NEW.X[:1], columns=names), "embeddings": NEW.E[:1]}
    [found] = taught.explain(**document, classes=[3])
    units = [oracle.to_unit(row) for row in np.concatenate([TRAIN.E[TRAIN.y == 3], NEW.E[:1]])]
    products = [sum(a * b for a, b in zip(units[-1], u, strict=True)) for u in units]
    cosines = [product / 2**24 for product in sorted(products, reverse=True)]
    assert [cosine for _, cosine in found.nearest] == pytest.approx(cosines[:2])
    assert set(found.nearest[0][0]) == {names[i] for i in np.flatnonzero(NEW.X[0])}
    assert str(found).endswith(f"near ({cosines[1]:.2f}): {' '.join(found.nearest[1][0])}")
    assert found.as_dict()["nearest"][0] == {"terms": [*found.nearest[0][0]], "cosine": cosines[0]}
    [candidates] = taught.list_candidates(**document, k=30)
    examples = {c.label: c.examples for c in candidates.candidates}
    assert examples[3] == tuple(text for text, _ in found.nearest_lines())
    nowhere = taught.explain(document["X"], classes=[3], embeddings=np.zeros((1, N_DIMENSIONS)))
    assert nowhere[0].nearest == ()


def test_kept_documents_without_their_vectors_are_no_model(tmp_path: Path) -> None:
    classifier = LongTailClassifier(memory=3, random_state=0)
    classifier.fit(TRAIN.X[:300], TRAIN.y[:300], embeddings=TRAIN.E[:300])
    memory = replace(classifier.state_.memory, embeddings=None)
    broken = replace(classifier.state_, memory=memory)
    with pytest.raises(ValueError, match="documents that are kept have embeddings"):
        LongTailClassifier.from_state(broken, memory=3).save(tmp_path / "model.longtail")


def test_refining_with_documents_keeps_the_sums(fitted: LongTailClassifier) -> None:
    taught = copy(fitted).partial_fit(NEW.X, NEW.y, embeddings=NEW.E)
    refined = copy(taught).refine(NEW.X, NEW.y, embeddings=NEW.E)
    assert refined.statistics_ == taught.statistics_
    assert len(refined.predict(NEW.X, embeddings=NEW.E)) == 150
