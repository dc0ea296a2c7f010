"""Eq. 4 and Figure 1."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import metrics
from longtail.model.statistics import ClassStatistics
from longtail.paper import theory
from longtail.paper.features import pair_features

# Figure 1 of the paper: (document, first class, second class, label), all counted from 1.
FIGURE_1 = [
    (1, 1, 2, +1), (1, 1, 3, +1), (1, 1, 4, +1),
    (2, 1, 2, -1), (2, 2, 3, +1), (2, 2, 4, +1),
    (3, 1, 3, -1), (3, 2, 3, -1), (3, 3, 4, +1),
    (4, 1, 4, -1), (4, 2, 4, -1), (4, 3, 4, -1),
]  # fmt: skip


def test_toy_example_comes_out_as_printed_in_figure_1():
    toy = theory.toy_example()
    rows = [
        (i + 1, first + 1, second + 1, label)
        for i, (first, second), label in zip(toy.documents, toy.classes, toy.labels, strict=True)
    ]
    assert rows == FIGURE_1


def test_toy_pairs_hold_the_features_of_both_members():
    toy = theory.toy_example()
    expected = [((i, first), (i, second)) for i, first, second, _ in FIGURE_1]
    np.testing.assert_array_equal(toy.pairs, expected)


def test_index_j_is_the_papers():
    toy = theory.toy_example()
    i, k = toy.documents + 1, toy.positions + 1
    np.testing.assert_array_equal((i - 1) * 3 + k, np.arange(1, 13))


def test_pairs_are_written_as_in_figure_1():
    lines = theory.describe_pairs(theory.toy_example())
    assert lines[0] == "(z_1 = (φ(x_1^y_1), φ(x_1^y_2)), +1)"
    assert lines[11] == "(z_12 = (φ(x_4^y_3), φ(x_4^y_4)), -1)"


def test_two_classes_give_one_pair_a_document():
    pairs = theory.transform(np.zeros((2, 2, 1)), [1, 0], n_classes=2)
    assert pairs.labels.tolist() == [-1, 1]
    assert pairs.classes.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_counts_are_given_the_ten_features(make):
    X = np.array([[2, 1, 0], [0, 1, 1], [1, 0, 3]])
    y = np.array([0, 1, 2])
    pairs = theory.transform(make(X), y, n_classes=3)
    statistics = ClassStatistics.from_counts(X, y, 3)
    features = pair_features(X, statistics, [0, 1, 2], np.tile(np.arange(3), (3, 1)))
    assert pairs.pairs.shape == (6, 2, 10)
    np.testing.assert_array_equal(pairs.pairs[5], features[2, [1, 2]])


def test_risk_of_equation_3_equals_that_of_equation_6():
    rng = np.random.default_rng(0)
    # Few distinct values, so that ties, which both equations count as errors, occur.
    features = rng.integers(0, 3, size=(40, 7, 2)).astype(float)
    y, weights = rng.integers(0, 7, 40), np.array([1.0, -2.0])
    pairs = theory.transform(features, y, n_classes=7)
    scores = features @ weights
    true = scores[np.arange(40), y]
    other = np.array([np.delete(row, c) for row, c in zip(scores, y, strict=True)])
    assert metrics.transformed_risk(pairs.differences @ weights, pairs.labels) == pytest.approx(
        metrics.empirical_risk(true, other), abs=1e-12
    )
    assert np.mean(pairs.margins(weights) <= 0) == pytest.approx(
        metrics.empirical_risk(true, other), abs=1e-12
    )


@pytest.mark.parametrize(
    ("features", "y", "n_classes", "message"),
    [
        (np.zeros((2, 1, 1)), [0, 0], 1, "n_classes must be an integer of at least 2; got 1"),
        (np.zeros((2, 3, 1)), [0, 3], 3, r"from 0 to 2 \(n_classes is 3\); it has 0 to 3"),
        (np.zeros((2, 3, 1)), [-1, 0], 3, "it has -1 to 0"),
        (np.zeros((2, 3, 1)), ["a", "b"], 3, "y must hold integer class ids"),
        (np.zeros((2, 4, 1)), [0, 1], 3, r"\(2, 3, p\), or a count matrix with 2 rows; got shape"),
        (np.zeros((3, 5)), [0, 1], 2, r"each of the 3 documents; its shape is \(2,\)"),
        (np.ones((2, 5)), [0, 2], 3, "class 1 has none"),
    ],
)
def test_bad_arguments_are_named(features, y, n_classes, message):
    with pytest.raises(ValueError, match=message):
        theory.transform(features, y, n_classes)
