from __future__ import annotations

import math

import numpy as np
import pytest

from longtail._kernels import features as kernels
from longtail.model import scorer as scoring
from longtail.model.features import (
    SCORE_FEATURE_NAMES,
    SCORE_FEATURES,
    leave_one_out_scores,
    score_features,
    term_contributions,
)
from longtail.model.scorer import build_scorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile, estimate_collection_model, weight_documents
from longtail.sparse import CountMatrix

COVERAGE = np.eye(6)[SCORE_FEATURE_NAMES.index("coverage")]
WEIGHTS = np.array([3.0, 0.7, 0.2, -0.4, 1.5, 0.9])


def prepare(X, y, n_classes, factors=None):
    """Weighted documents and the profile of their classes."""
    X = np.asarray(X, float)
    statistics = ClassStatistics.from_counts(X, y, n_classes, sublinear=True)
    term_weights = statistics.corpus.idf * (1.0 if factors is None else factors)
    profile = Profile.of(statistics, statistics.corpus, estimate_collection_model(statistics))
    return weight_documents(CountMatrix.from_matrix(X), term_weights), profile


def own_features(documents, y, profile):
    y = np.asarray(y)
    return score_features(documents, np.arange(len(y)), y[:, None], y, profile)[:, 0]


def test_weights_by_hand():
    X = [[1.0, 4.0, 0.0], [0.5, 0.0, 0.0]]
    documents = weight_documents(CountMatrix.from_matrix(X), np.array([3.0, 2.0, 7.0]))
    weights = np.array([3.0, 2.0 * (1 + math.log(4))])
    assert documents.weights[:2] == pytest.approx(weights / np.linalg.norm(weights), rel=1e-6)
    assert documents.weights[2] == 1.0
    assert documents.totals == pytest.approx([weights.sum() / np.linalg.norm(weights), 1.0])


def test_rows_have_length_one_and_empty_documents_none(problem):
    X = problem.X * 0.7
    X[3] = 0
    rows = CountMatrix.from_matrix(X)
    documents = weight_documents(rows, np.linspace(0.1, 4, 25))
    lengths = np.zeros(60)
    np.add.at(lengths, np.repeat(np.arange(60), np.diff(rows.indptr)), documents.weights**2.0)
    assert np.delete(lengths, 3) == pytest.approx(1.0, abs=1e-6)
    assert lengths[3] == documents.totals[3] == 0


def test_terms_without_weight_leave_an_empty_document():
    documents = weight_documents(CountMatrix.from_matrix([[1.0, 2.0]]), np.zeros(2))
    assert documents.weights.tolist() == [0, 0]
    assert documents.totals.tolist() == [0]


def test_features_are_listed_in_the_order_of_the_kernel():
    assert len(SCORE_FEATURES) == kernels.N_SCORE_FEATURES
    assert [getattr(kernels, name.upper()) for name in SCORE_FEATURE_NAMES] == list(range(6))


def test_features_by_hand():
    # Class 0 is (1, 0) + (0.6, 0.8), class 1 is (0, 1); each term is in two documents of three.
    X = [[1.0, 0.0], [0.3, 0.4], [0.0, 1.0]]
    documents, profile = prepare(X, [0, 0, 1], 2)
    idf = math.log(4 / 3) + 1
    assert profile.corpus.idf == pytest.approx([idf, idf])
    assert profile.collection_model == pytest.approx([1.6 / 3.4, 1.8 / 3.4])
    features = score_features(documents, np.array([2]), np.array([[0]]), np.array([-1]), profile)[
        0, 0
    ]
    length = idf * math.hypot(1.6, 0.8)
    expected = {
        "cosine": idf * 0.8 / length,
        "likelihood": math.log(1 + 0.8 / (100 * 1.8 / 3.4)) - math.log(1 + 2.4 / 100),
        "size": math.log(2),
        "coverage": idf,
        "dampened_cosine": idf * 0.8 / length**0.8,
        "saturation": idf * 0.8 / (0.8 + 0.3),
    }
    assert dict(zip(SCORE_FEATURE_NAMES, features.tolist(), strict=True)) == pytest.approx(
        expected, rel=1e-6
    )


def test_terms_outside_the_background_share_its_smallest():
    statistics = ClassStatistics.from_counts(np.eye(3), [0, 1, 1], 2)
    profile = Profile.of(statistics, statistics.corpus, np.array([0.75, 0.25, 0.0]))
    assert profile.collection_model.tolist() == [0.75, 0.25, 0.25]
    profile = Profile.of(statistics, statistics.corpus, np.zeros(3))
    assert profile.collection_model.tolist() == [1.0, 1.0, 1.0]


def test_background_shares_add_up(problem):
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7, sublinear=True)
    assert estimate_collection_model(statistics).sum() == pytest.approx(1.0)
    assert not estimate_collection_model(ClassStatistics.empty(2, 3)).any()


def test_a_document_alone_in_its_class_leaves_nothing_behind():
    X = np.random.default_rng(0).integers(0, 9, (8, 30)) * 0.37  # sums that no float holds exactly
    y = np.array([0, 1, 1, 1, 2, 2, 3, 3])
    documents, profile = prepare(X, y, 4)
    alone = dict(zip(SCORE_FEATURE_NAMES, own_features(documents, y, profile)[0], strict=True))
    assert alone.pop("size") == np.float32(math.log(0.5))
    assert set(alone.values()) == {0.0}
    own = leave_one_out_scores(documents, y, profile, WEIGHTS)[0]
    assert own == pytest.approx(WEIGHTS[2] * math.log(0.5), rel=1e-6)
    parts = term_contributions(
        documents, np.array([0]), np.array([[0]]), np.array([0]), profile, WEIGHTS
    )
    assert not parts.values.any()


def test_terms_that_only_the_document_has_vanish():
    rng = np.random.default_rng(1)
    X = rng.integers(1, 9, (5, 20)) * 0.37
    X[1:, 10:] = 0  # terms 10 to 19 belong to document 0 alone
    y = np.array([0, 0, 0, 1, 1])
    documents, profile = prepare(X, y, 2)
    parts = term_contributions(
        documents, np.array([0]), np.array([[0]]), np.array([0]), profile, COVERAGE
    )
    assert not parts.values[10:].any()
    assert np.all(parts.values[:10] > 0)


def test_a_duplicate_stays_when_its_twin_is_left_out():
    X = [[1.0, 3.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 2.0]]
    documents, profile = prepare(X, [0, 0, 1], 2)
    first, second, _ = own_features(documents, [0, 0, 1], profile)
    assert np.array_equal(first, second)
    statistics = ClassStatistics.from_counts(np.array(X)[1:], [0, 1], 2, sublinear=True)
    single = Profile.of(statistics, profile.corpus, profile.collection_model)
    expected = score_features(documents, np.array([0]), np.array([[0]]), np.array([-1]), single)[
        0, 0
    ]
    assert first == pytest.approx(expected, rel=1e-6)
    assert first[2] == 0.0  # ln 1


def test_only_the_own_class_forgets_the_document(problem):
    documents, profile = prepare(problem.X, problem.y, 7)
    chosen = np.arange(60)
    every = np.tile(np.arange(7), (60, 1))
    without = score_features(documents, chosen, every, problem.y, profile)
    whole = score_features(documents, chosen, every, np.full(60, -1), profile)
    foreign = every != problem.y[:, None]
    assert np.array_equal(without[foreign], whole[foreign])
    size = SCORE_FEATURE_NAMES.index("size")
    assert np.all(without[~foreign][:, size] < whole[~foreign][:, size])


def test_empty_documents():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    documents, profile = prepare(X, y, 2)
    features = score_features(
        documents, np.arange(4), np.tile([0, 1], (4, 1)), np.full(4, -1), profile
    )
    assert np.isfinite(features).all()
    for i in (0, 2, 3):
        assert not np.delete(features[i], 2, axis=1).any()
    left_out = own_features(documents, y, profile)
    assert left_out[:, 2] == pytest.approx(np.zeros(4))  # ln 1 each
    assert not np.delete(left_out, 2, axis=1).any()  # document 1 leaves an empty one behind
    score = build_scorer(profile, WEIGHTS)
    assert np.isfinite(score.weights).all()
    scores = score_pairs(documents, np.tile([0, 1], (4, 1)), score)
    assert scores[0] == pytest.approx([0.2 * math.log(2)] * 2)


def test_terms_that_no_class_has_cost_the_slope_only():
    statistics = ClassStatistics.from_counts(
        [[1, 2, 0, 0], [0, 1, 1, 0]], [0, 1], 2, sublinear=True
    )
    profile = Profile.of(statistics, statistics.corpus, estimate_collection_model(statistics))
    documents = weight_documents(CountMatrix.from_matrix([[0, 0, 0, 5.0]]), statistics.corpus.idf)
    score = build_scorer(profile, WEIGHTS)
    scores = score_pairs(documents, np.array([[0, 1]]), score)
    assert scores[0] == pytest.approx(score.biases + score.length_weights)
    assert np.all(score.length_weights < 0)


def test_a_sum_that_rounds_to_zero_is_no_coverage():
    X = np.zeros((2, 17_001))
    X[0, :17_000], X[0, 17_000], X[1, 17_000] = 1, 2.0**-32, 1
    documents, profile = prepare(X, [0, 1], 2)
    pairs = np.tile([0, 1], (2, 1))
    features = score_features(documents, np.arange(2), pairs, np.full(2, -1), profile)
    collapsed = score_pairs(documents, pairs, build_scorer(profile, COVERAGE))
    assert collapsed[1] == pytest.approx((features @ COVERAGE)[1], abs=1e-5)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_threads(problem, n_jobs):
    documents, profile = prepare(problem.X, problem.y, 7)
    chosen = np.random.default_rng(0).permutation(60)[:41]
    every = np.tile(np.arange(7), (60, 1))
    own = problem.y[chosen]

    def compute(n):
        weighted = weight_documents(documents.rows, profile.corpus.idf, n)
        score = build_scorer(profile, WEIGHTS, n)
        parts = term_contributions(documents, chosen, every[:41], own, profile, WEIGHTS, n)
        return (
            weighted.weights,
            weighted.totals,
            score_features(documents, chosen, every[:41], own, profile, n),
            score.weights,
            score.length_weights,
            score.biases,
            parts.values,
            parts.biases,
            leave_one_out_scores(documents, problem.y, profile, WEIGHTS, n),
            score_pairs(documents, every, score, n),
        )

    for one, other in zip(compute(1), compute(n_jobs), strict=True):
        assert np.array_equal(one, other)


def test_statistics_that_grew_score_as_if_built_at_once(problem):
    half = problem.X[:30], problem.y[:30]
    rest = problem.X[30:], problem.y[30:]
    whole, a, b = (
        ClassStatistics.from_counts(X, y, 7, sublinear=True)
        for X, y in ((problem.X, problem.y), half, rest)
    )
    scores = [
        build_scorer(Profile.of(s, whole.corpus, estimate_collection_model(whole)), WEIGHTS)
        for s in (whole, b + a)
    ]
    for name in ("indptr", "indices", "weights", "length_weights", "biases"):
        assert np.array_equal(getattr(scores[0], name), getattr(scores[1], name))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scoring_by_class_or_by_document_gives_the_same_bits(monkeypatch, n_jobs):
    rng = np.random.default_rng(7)
    X, y = rng.poisson(0.4, (60, 30)), rng.integers(0, 5, 60)
    X[3] = 0
    documents, profile = prepare(X, y, 5)
    score = build_scorer(profile, WEIGHTS)
    classes = rng.integers(0, 5, (60, 4))
    results = []
    monkeypatch.setattr(scoring, "MIN_SPREAD_PAIRS", 0)
    for pairs_per_class in (0, 10**9):
        monkeypatch.setattr(scoring, "PAIRS_PER_CLASS", pairs_per_class)
        results.append(scoring.score_pairs(documents, classes, score, n_jobs))
    assert np.array_equal(results[0], results[1])


def test_reading_a_row_or_searching_it_gives_the_same_bits(monkeypatch):
    rng = np.random.default_rng(11)
    X, y = rng.poisson(0.3, (60, 300)), rng.integers(0, 5, 60)
    X[3] = 0
    X[10:20, 2:] = 0  # so few terms that the long rows of the classes are searched for them
    X[10:20, 0] = 1
    documents, profile = prepare(X, y, 5)
    score = build_scorer(profile, WEIGHTS)
    assert np.diff(score.indptr).min() > 32 * 2
    classes = np.where(rng.random((60, 4)) < 0.1, -1, rng.integers(0, 5, (60, 4)))
    monkeypatch.setattr(scoring, "SMALLEST_TABLE", 2)  # so that terms meet taken slots
    results = []
    monkeypatch.setattr(scoring, "MIN_SPREAD_PAIRS", 0)
    for pairs_per_class in (0, 10**9):
        monkeypatch.setattr(scoring, "PAIRS_PER_CLASS", pairs_per_class)
        results.append(scoring.score_pairs(documents, classes, score))
    assert np.array_equal(results[0], results[1])
    assert np.all(results[1][classes < 0] == -np.inf)
