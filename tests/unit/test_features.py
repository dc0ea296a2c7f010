from __future__ import annotations

from math import log

import numpy as np
import pytest

from longtail.model.statistics import ClassStatistics
from longtail.paper.features import FEATURE_NAMES, FEATURES, pair_features, term_scores
from tests.conftest import make_problem


def test_table_1_by_hand():
    # m = 3, K = 2; class 0 is (3, 1, 0) + (1, 1, 0), class 1 is (0, 2, 2).
    X = np.array([[3, 1, 0], [1, 1, 0], [0, 2, 2]])
    statistics = ClassStatistics.from_counts(X, [0, 0, 1], 2)
    features = pair_features(np.array([[0, 5, 1]]), statistics, [0], [[0, 1]])[0]
    i1, i2 = log(4 / 4) + 1, log(4 / 2) + 1
    # Class 0 shares term 1: y_t = 2, |y| = 6, F_t = 4, l_S = 10, avg(len(y)) = 5.
    expected = [log(3), log(1 + 10 / 4), i1, 2 / 6 * i1, log(1 + 2 / 6), log(1 + 2 / 6 * i1)]
    expected += [log(1 + 2 / 6 * 10 / 4), 1.0, None, i1 * 2 * 2 / (2 + 0.25 + 0.75 * 6 / 5)]
    i0 = log(4 / 3) + 1
    centroid = np.array([3 / 10**0.5 + 1 / 2**0.5, 1 / 10**0.5 + 1 / 2**0.5]) * [i0, i1]
    document = np.array([5 * i1, i2])
    cosine = document[0] * centroid[1] / (np.linalg.norm(document) * np.linalg.norm(centroid))
    expected[8] = 1 - cosine
    assert features[0] == pytest.approx(expected)
    # Class 1 shares terms 1 and 2: y_t = 2 each, |y| = 4.
    assert features[1, 7] == 2.0
    assert features[1, 0] == pytest.approx(2 * log(3))
    assert features[1, 6] == pytest.approx(log(1 + 0.5 * 10 / 4) + log(1 + 0.5 * 10 / 2))
    assert features[1, 9] == pytest.approx((i1 + i2) * 4 / (2 + 0.25 + 0.75 * 4 / 5))


def test_catalogue():
    assert len(FEATURES) == len(set(FEATURE_NAMES)) == 10
    assert all(feature.formula and feature.meaning for feature in FEATURES)


def test_empty_and_foreign_documents():
    statistics = ClassStatistics.from_counts(np.array([[1, 0, 0], [0, 1, 0]]), [0, 1], 2)
    features = pair_features(np.array([[0, 0, 0], [0, 0, 9]]), statistics, [0, 1], [[0, 1]] * 2)
    expected = np.zeros(10)
    expected[8] = 1.0
    assert np.array_equal(features, np.broadcast_to(expected, (2, 2, 10)))


def test_classes_without_documents():
    statistics = ClassStatistics.from_counts(np.array([[1, 2]]), [1], 3)
    features = pair_features(np.array([[1, 1]]), statistics, [0], [[0, 1, 2]])
    assert np.isfinite(features).all()
    assert features[0, 0, 8] == features[0, 2, 8] == 1.0


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_threads(n_jobs):
    problem = make_problem(1)
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7)
    documents, classes = np.arange(60), np.tile(np.arange(7), (60, 1))
    one = pair_features(problem.X, statistics, documents, classes)
    many = pair_features(problem.X, statistics, documents, classes, n_jobs=n_jobs)
    assert np.array_equal(one, many)


def test_term_scores_are_the_weighted_features(problem):
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7)
    weights = np.arange(1.0, 11.0)
    values = term_scores(statistics, statistics.corpus, weights)
    weights[8] = 0.0
    for c in range(7):
        for j in range(statistics.indptr[c], statistics.indptr[c + 1]):
            document = np.zeros((1, 25))
            document[0, statistics.indices[j]] = 1
            features = pair_features(document, statistics, [0], [[c]])[0, 0]
            assert values[j] == pytest.approx(features @ weights)


@pytest.mark.parametrize(
    ("documents", "classes", "message"),
    [
        ([0], [[7]], "classes must be ids from 0 to 6; got 7"),
        ([99], [[0]], "documents must be ids from 0 to 59"),
        ([0, 1], [[0]], r"shape \(M,\)"),
        ([0], [0], r"shape \(M,\)"),
    ],
)
def test_bad_pairs(problem, documents, classes, message):
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7)
    with pytest.raises(ValueError, match=message):
        pair_features(problem.X, statistics, documents, classes)


def test_other_vocabulary_is_an_error(problem):
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7)
    with pytest.raises(ValueError, match="same vocabulary"):
        pair_features(problem.X[:, :5], statistics, [0], [[0]])
