"""Every stage of the additive score, and what is learned on top of it, equals the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from longtail._kernels import residuals as refinement_kernels
from longtail._kernels.types import Block, ListRows
from longtail._labels import LabelSets
from longtail.model.features import leave_one_out_scores, score_features, term_contributions
from longtail.model.scorer import LinearScorer, build_scorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import (
    Profile,
    WeightedDocuments,
    estimate_collection_model,
    weight_documents,
)
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix
from longtail.training import residuals as refinement
from longtail.training.listwise import fit_term_weights, listwise_objective
from tests import oracle_score as oracle
from tests.conftest import fit_residuals, make_problem, mined_rows, single_labels

SEEDS = range(3)
KINDS = ["integer", "fraction"]
WEIGHTS = np.array([3.0, 0.7, 0.2, -0.4, 1.5, 0.9])
FACTORS = np.random.default_rng(9).uniform(0.5, 2.0, 25)
NOBODY = -1


@dataclass(frozen=True)
class Setting:
    """A small problem, as ours and as the oracle's."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    documents: WeightedDocuments
    profile: Profile
    background: np.ndarray
    counts: list[oracle.Document]
    weighted: list[oracle.Document]
    classes: oracle.OracleClasses

    @property
    def every(self) -> np.ndarray:
        """All classes for each document."""
        return np.tile(np.arange(self.n_classes), (len(self.X), 1))

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.X))

    @property
    def foreign(self) -> np.ndarray:
        return np.full(len(self.X), NOBODY)


def build(seed, kind="integer"):
    """Duplicates, empty documents (one alone in its class) and one-document classes included."""
    problem = make_problem(seed)
    X = np.asarray(problem.X, float)
    X[20:22], X[25] = 0, X[24]
    y, n_classes = np.append(problem.y, 7), problem.n_classes + 1
    y[25] = y[24]
    X = np.vstack([X, np.zeros(25)])  # class 7 has an empty document and nothing else
    X *= 1.0 if kind == "integer" else 0.37
    statistics = ClassStatistics.from_counts(X, y, n_classes, sublinear=True)
    background = estimate_collection_model(statistics)
    term_weights = statistics.corpus.idf * FACTORS
    counts = oracle.to_documents(X)
    return Setting(
        X,
        y,
        n_classes,
        weight_documents(CountMatrix.from_matrix(X), term_weights),
        Profile.of(statistics, statistics.corpus, background),
        background,
        counts,
        [oracle.weigh(document, term_weights.tolist()) for document in counts],
        oracle.build_classes(counts, y.tolist(), n_classes, X.shape[1]),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_documents(seed, kind):
    s = build(seed, kind)
    rows = s.documents.rows
    for i, expected in enumerate(s.weighted):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        assert rows.indices[entries].tolist() == sorted(expected)
        assert s.documents.weights[entries] == pytest.approx(
            [expected[t] for t in sorted(expected)], rel=1e-6
        )
        assert s.documents.totals[i] == pytest.approx(sum(expected.values()), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_background_and_idf(seed, kind):
    s = build(seed, kind)
    assert s.profile.collection_model == pytest.approx(s.classes.background, rel=1e-8)
    assert s.profile.corpus.idf == pytest.approx(s.classes.idf, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_features_of_foreign_classes(seed, kind):
    s = build(seed, kind)
    computed = score_features(s.documents, s.rows, s.every, s.foreign, s.profile)
    for i, x in enumerate(s.weighted):
        for c in range(s.n_classes):
            expected = oracle.features(s.classes, x, c)
            assert computed[i, c] == pytest.approx(expected, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_own_class_without_the_document(seed, kind):
    s = build(seed, kind)
    computed = score_features(s.documents, s.rows, s.every, s.y, s.profile)
    sizes = np.bincount(s.y)
    assert sizes.min() == 1  # the hard case is there
    for i, x in enumerate(s.weighted):
        without = oracle.without_document(s.classes, s.counts, s.y.tolist(), i)
        for c in range(s.n_classes):  # the other classes lose nothing
            expected = oracle.features(without, x, c)
            assert computed[i, c] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_own_class_equals_rebuilt_statistics(seed, kind):
    s = build(seed, kind)
    computed = score_features(s.documents, s.rows, s.y[:, None], s.y, s.profile)
    for i in range(len(s.X)):
        kept = np.arange(len(s.X)) != i
        statistics = ClassStatistics.from_counts(s.X[kept], s.y[kept], s.n_classes, sublinear=True)
        rebuilt = Profile.of(statistics, s.profile.corpus, s.background)
        expected = score_features(
            s.documents, np.array([i]), s.y[i : i + 1, None], np.array([NOBODY]), rebuilt
        )
        np.testing.assert_allclose(computed[i], expected[0], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_contributions(seed, left_out):
    s = build(seed)
    own = s.y if left_out else s.foreign
    chosen = np.random.default_rng(seed).permutation(len(s.X))[:30]
    pairs = s.every[chosen]
    parts = term_contributions(s.documents, chosen, pairs, own[chosen], s.profile, WEIGHTS)
    features = score_features(s.documents, chosen, pairs, own[chosen], s.profile)
    for place, i in enumerate(chosen):
        x, terms = s.weighted[i], sorted(s.weighted[i])
        values = parts.values[parts.offsets[place] : parts.offsets[place + 1]]
        values = values.reshape(s.n_classes, len(terms))
        classes = s.classes
        if left_out:
            classes = oracle.without_document(s.classes, s.counts, s.y.tolist(), i)
        for c in range(s.n_classes):
            expected, constant = oracle.contributions(classes, x, c, WEIGHTS.tolist())
            assert values[c] == pytest.approx([expected[t] for t in terms], rel=1e-5, abs=1e-6)
            assert parts.biases[place, c] == pytest.approx(constant, rel=1e-6)
        sums = values.sum(axis=1, dtype=np.float64) + parts.biases[place]
        np.testing.assert_allclose(sums, features[place] @ WEIGHTS, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_collapsed_and_own_scores(seed, kind):
    s = build(seed, kind)
    score = build_scorer(s.profile, WEIGHTS)
    collapsed = score_pairs(s.documents, s.every, score)
    features = score_features(s.documents, s.rows, s.every, s.foreign, s.profile)
    np.testing.assert_allclose(collapsed, features @ WEIGHTS, rtol=1e-5, atol=1e-5)
    mine = leave_one_out_scores(s.documents, s.y, s.profile, WEIGHTS)
    features = score_features(s.documents, s.rows, s.y[:, None], s.y, s.profile)
    np.testing.assert_allclose(mine, features[:, 0] @ WEIGHTS, rtol=1e-5, atol=1e-5)
    for i, x in enumerate(s.weighted):
        expected = [oracle.score(s.classes, x, c, WEIGHTS.tolist()) for c in range(s.n_classes)]
        assert collapsed[i] == pytest.approx(expected, rel=1e-5, abs=1e-5)
        without = oracle.without_document(s.classes, s.counts, s.y.tolist(), i)
        expected = oracle.score(without, x, s.y[i], WEIGHTS.tolist())
        assert mine[i] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("q", [1, 3, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_highest_classes_of_a_real_score(seed, q, exclude):
    s = build(seed)
    score = build_scorer(s.profile, WEIGHTS)
    own = single_labels(s.y) if exclude else None
    classes, scores = search(s.documents, score, build_index(score, 25), q, labels=own)
    every = score_pairs(s.documents, s.every, score)
    for i in range(len(s.X)):
        if exclude:
            every[i, s.y[i]] = -np.inf
        order = sorted(range(s.n_classes), key=lambda c, i=i: (-every[i, c], c))[:q]
        assert scores[i] == pytest.approx(every[i, order], abs=1e-9)
        assert every[i, classes[i]] == pytest.approx(every[i, order], abs=1e-9)
        assert len(set(classes[i])) == q


def whole_number_search(seed, n_classes=9, n_terms=12, n_documents=40):
    """Documents and a score in small whole numbers: every sum is exact, and ties abound."""
    rng = np.random.default_rng(seed)
    density = rng.uniform(0.1, 1.0, n_terms)
    values = rng.integers(-2, 3, (n_classes, n_terms)) * (
        rng.random((n_classes, n_terms)) < density
    )
    values[:, 0] = 0  # a term that no class has
    matrix = sp.csr_array(values.astype(np.float32))
    score = LinearScorer(
        matrix.indptr.astype(np.int64),
        matrix.indices,
        matrix.data,
        rng.integers(-1, 2, n_classes).astype(float),
        rng.integers(-2, 3, n_classes).astype(float),
    )
    X = rng.integers(0, 3, (n_documents, n_terms)).astype(float)
    X[0] = 0
    rows = CountMatrix.from_matrix(X)
    documents = WeightedDocuments(rows, rows.data.astype(np.float32), X.sum(axis=1))
    as_dicts = [
        {t: float(v) for t, v in enumerate(row) if v} for row in values
    ]  # zeros are no postings
    return documents, oracle.to_documents(X), score, as_dicts


@pytest.mark.parametrize("n_classes", [2, 9, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_highest_classes_exactly(seed, n_classes):
    documents, as_dicts, score, values = whole_number_search(seed, n_classes)
    index = build_index(score, 12)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(40)[:25]
    own = rng.integers(-1, n_classes, 25)
    for q in sorted({1, n_classes // 2, n_classes - 1}):
        passed = LabelSets(
            np.concatenate([[0], np.cumsum(own >= 0)]), own[own >= 0], np.arange(n_classes)
        )
        options = {"document_ids": chosen, "labels": passed}
        classes, scores = search(documents, score, index, q, **options)
        for place, i in enumerate(chosen):
            expected = oracle.highest(
                as_dicts[i],
                values,
                score.length_weights.tolist(),
                score.biases.tolist(),
                q,
                own[place],
            )
            assert list(zip(classes[place], scores[place], strict=True)) == expected
        again = search(documents, score, index, q, n_jobs=2, **options)
        assert np.array_equal(classes, again[0])
        assert np.array_equal(scores, again[1])


def test_highest_classes_of_all_documents_with_no_class_passed_over():
    documents, as_dicts, score, values = whole_number_search(11)
    classes, scores = search(documents, score, build_index(score, 12), 9)
    for i, x in enumerate(as_dicts):
        expected = oracle.highest(
            x, values, score.length_weights.tolist(), score.biases.tolist(), 9
        )
        assert list(zip(classes[i], scores[i], strict=True)) == expected


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("seed", SEEDS)
def test_listwise_loss_and_gradient(seed, decay):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(12, 4, 3)) * 2
    weights = rng.normal(size=3)

    def at(shift):
        return listwise_objective(weights + shift, features, np.ones(3), decay)

    value, gradient, _ = at(0.0)
    assert value == pytest.approx(oracle.listwise_loss(weights, features.tolist(), decay))
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6
        slope = (at(step).value - at(-step).value) / 2e-6
        assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("n_epochs", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_term_weights(seed, n_epochs):
    s = build(seed)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(s.X))[:15]
    others = [[c for c in range(s.n_classes) if c != s.y[i]][:4] for i in chosen]
    classes = np.column_stack([s.y[chosen], np.array(others)])
    parts = term_contributions(s.documents, chosen, classes, s.y[chosen], s.profile, WEIGHTS)
    learned = fit_term_weights(
        s.documents.rows, chosen, lambda _: parts, learning_rate=0.2, decay=0.05, n_epochs=n_epochs
    )
    as_parts = oracle_parts(s.documents.rows, chosen, parts)
    expected = oracle.learn_factors(as_parts, 0.2, 0.05, n_epochs)
    assert learned == pytest.approx([expected.get(t, 1.0) for t in range(25)], rel=1e-6)
    assert np.all(learned > 0)
    assert np.ptp(learned) > 0.1  # something was learned
    unseen = np.setdiff1d(np.arange(25), np.flatnonzero(s.X[chosen].sum(axis=0)))
    assert np.all(learned[unseen] == 1.0)


def oracle_parts(rows, chosen, parts):
    """Take contributions apart into the oracle's dicts."""
    result = []
    for place, i in enumerate(chosen):
        terms = rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tolist()
        values = parts.values[parts.offsets[place] : parts.offsets[place + 1]].astype(float)
        values = values.reshape(parts.biases.shape[1], len(terms)).tolist()
        constants = parts.biases[place].astype(float).tolist()
        result.append(oracle.Parts([dict(zip(terms, v, strict=True)) for v in values], constants))
    return result


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("width", [2, 3, 6])
def test_offsets(width, scale):
    scores = np.random.default_rng(width).normal(size=(20, width)) * scale
    scores[0] = 0.0
    scores[1, 0], scores[1, 1] = 1e6, -1e6
    flat = np.full(20 * width, np.nan, np.float32)
    rows = ListRows(width * np.arange(21), np.ones(20, np.int64))
    refinement_kernels.fill_log_odds(
        scores.ravel(), rows, Block(0, 20), np.empty(scores.shape[1]), flat
    )
    offsets = flat.reshape(20, width)
    assert np.isfinite(offsets).all()
    for row, computed in zip(scores.tolist(), offsets, strict=True):
        assert computed == pytest.approx(oracle.log_odds(row), rel=1e-6, abs=1e-6)


def hard_negatives(seed, width=4, n_documents=60, n_classes=6, n_terms=12):
    """Weighted documents with their class, candidates and scores."""
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n_documents, n_classes, n_terms)
    documents = weight_documents(CountMatrix.from_matrix(problem.X), np.ones(n_terms))
    candidates = [
        rng.permutation([c for c in range(n_classes) if c != true])[: width - 1]
        for true in problem.y
    ]
    classes = np.column_stack([problem.y, np.array(candidates)])
    return problem, documents, classes, rng.normal(size=classes.shape) * 1.5


@pytest.fixture
def to_the_end(monkeypatch):
    """Let the solver run until nothing moves, on every pair, and keep every weight."""
    monkeypatch.setattr(refinement, "TOLERANCE", 1e-8)
    monkeypatch.setattr(refinement, "MAX_PASSES", 5000)
    monkeypatch.setattr(refinement, "SMALLEST_WEIGHT", 1e-300)
    monkeypatch.setattr(refinement, "LOWEST_LOG_ODDS", -np.inf)


def row_of(weights, c):
    entries = slice(weights.indptr[c], weights.indptr[c + 1])
    terms, values = weights.indices[entries].tolist(), weights.weights[entries].tolist()
    assert len(set(terms)) == len(terms)
    return dict(zip(terms, values, strict=True))


def pairs_of(c, weighted, classes, scores):
    """Documents, signs and offsets of a class's logistic regression."""
    pairs = oracle.list_pairs(classes.tolist(), int(classes.max()) + 1)[c]
    odds = [oracle.log_odds(row) for row in scores.tolist()]
    return (
        [weighted[i] for i, _ in pairs],
        [1.0 if k == 0 else -1.0 for _, k in pairs],
        [odds[i][k] for i, k in pairs],
    )


def smallest_objective(documents, signs, offsets, cost, n_terms):
    """Let scipy minimise the objective from zero."""
    dense = np.array([[x.get(t, 0.0) for t in range(n_terms)] + [1.0] for x in documents])
    y, offset = np.array(signs), np.array(offsets)

    def objective(w):
        margins = y * (offset + dense @ w)
        shares = y * np.exp(-np.logaddexp(0, margins))
        return 0.5 * w @ w + cost * np.logaddexp(0, -margins).sum(), w - cost * dense.T @ shares

    options = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-9}
    best = minimize(objective, np.zeros(n_terms + 1), jac=True, method="L-BFGS-B", options=options)
    return best.fun


@pytest.mark.usefixtures("to_the_end")
@pytest.mark.parametrize("cost", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_class_weights_reach_the_optimum(seed, cost):
    problem, documents, classes, scores = hard_negatives(seed)
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 6, cost)
    weighted = [oracle.weigh(x, [1.0] * 12) for x in oracle.to_documents(problem.X)]
    for c in range(6):
        xs, signs, offsets = pairs_of(c, weighted, classes, scores)
        assert -1.0 in signs
        w, b = row_of(weights, c), float(weights.biases[c])
        reached = oracle.logistic_objective(w, b, xs, signs, offsets, cost)
        smallest = smallest_objective(xs, signs, offsets, cost, 12)
        assert reached == pytest.approx(smallest, rel=1e-5)
        assert oracle.logistic_objective({}, 0.0, xs, signs, offsets, cost) > smallest * 1.01


@pytest.mark.usefixtures("to_the_end")
def test_class_weights_reach_the_optimum_at_a_large_cost_and_wide_scores():
    for seed in SEEDS:
        problem, documents, classes, scores = hard_negatives(seed)
        scores *= 10
        weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 6, 30.0)
        weighted = [oracle.weigh(x, [1.0] * 12) for x in oracle.to_documents(problem.X)]
        for c in range(6):
            pairs = pairs_of(c, weighted, classes, scores)
            w, b = row_of(weights, c), float(weights.biases[c])
            reached = oracle.logistic_objective(w, b, *pairs, 30.0)
            assert reached == pytest.approx(smallest_objective(*pairs, 30.0, 12), rel=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_default_stop_is_near_the_optimum(seed, monkeypatch):
    monkeypatch.setattr(refinement, "SMALLEST_WEIGHT", 1e-300)
    monkeypatch.setattr(refinement, "LOWEST_LOG_ODDS", -np.inf)
    problem, documents, classes, scores = hard_negatives(seed)
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 6, 1.0)
    weighted = [oracle.weigh(x, [1.0] * 12) for x in oracle.to_documents(problem.X)]
    for c in range(6):
        xs, signs, offsets = pairs_of(c, weighted, classes, scores)
        w, b = row_of(weights, c), float(weights.biases[c])
        reached = oracle.logistic_objective(w, b, xs, signs, offsets, 1.0)
        assert reached <= smallest_objective(xs, signs, offsets, 1.0, 12) * 1.01


@pytest.mark.usefixtures("to_the_end")
@pytest.mark.parametrize("cost", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_class_without_offsets_is_liblinears_logistic_regression(seed, cost):
    problem, documents, _, _ = hard_negatives(seed)
    y = (problem.y > 1).astype(int)
    classes = np.column_stack([y, 1 - y])  # of two classes, each document has both
    weights = fit_residuals(documents, mined_rows(classes), np.zeros((60, 2)).__getitem__, 2, cost)
    weighted = [oracle.weigh(x, [1.0] * 12) for x in oracle.to_documents(problem.X)]
    dense = np.array([[x.get(t, 0.0) for t in range(12)] for x in weighted])
    for c in range(2):
        signs = np.where(y == c, 1.0, -1.0)
        liblinear = LogisticRegression(
            solver="liblinear", intercept_scaling=1, C=cost, tol=1e-8, max_iter=10_000
        ).fit(dense, signs)
        theirs = dict(enumerate(liblinear.coef_[0].tolist())), float(liblinear.intercept_[0])
        mine = row_of(weights, c), float(weights.biases[c])
        objectives = [
            oracle.logistic_objective(w, b, weighted, signs.tolist(), [0.0] * 60, cost)
            for w, b in (mine, theirs)
        ]
        assert objectives[0] == pytest.approx(objectives[1], rel=1e-4)
        # Strongly convex: equal objectives are equal weights.
        assert [mine[0].get(t, 0.0) for t in range(12)] == pytest.approx(
            liblinear.coef_[0], rel=1e-2, abs=2e-2
        )


@pytest.mark.usefixtures("to_the_end")
def test_pairs_below_the_lowest_offset_are_passed_over(monkeypatch):
    monkeypatch.setattr(refinement, "LOWEST_LOG_ODDS", -2.0)
    problem, documents, classes, scores = hard_negatives(5)
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 6, 1.0)
    weighted = [oracle.weigh(x, [1.0] * 12) for x in oracle.to_documents(problem.X)]
    n_passed_over, n_own_below = 0, 0
    for c in range(6):
        pairs = list(zip(*pairs_of(c, weighted, classes, scores), strict=True))
        near = [(x, sign, offset) for x, sign, offset in pairs if sign > 0 or offset >= -2.0]
        n_passed_over += len(pairs) - len(near)
        n_own_below += sum(sign > 0 and offset < -2.0 for _, sign, offset in near)
        xs, signs, offsets = (list(part) for part in zip(*near, strict=True))
        w, b = row_of(weights, c), float(weights.biases[c])
        reached = oracle.logistic_objective(w, b, xs, signs, offsets, 1.0)
        assert reached == pytest.approx(smallest_objective(xs, signs, offsets, 1.0, 12), rel=1e-5)
    assert n_passed_over > 20
    assert n_own_below > 5  # a document's own class is never passed over
