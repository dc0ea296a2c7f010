from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from longtail import metrics
from longtail.results import TopK
from tests import oracle


def test_ranking_loss_counts_ties_as_errors():
    losses = metrics.instantaneous_loss(
        [2.0, 0.0], [[1.0, 2.0, 3.0, 0.0], [-1.0, -1.0, -1.0, -1.0]]
    )
    assert losses.tolist() == [0.5, 0.0]
    assert metrics.empirical_risk([2.0, 0.0], [[1.0, 2.0, 3.0, 0.0], [-1.0] * 4]) == 0.25


def test_risk_of_all_pairs_equals_empirical_risk():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, size=(50, 6)).astype(float)
    y = rng.integers(0, 6, size=50)
    true = scores[np.arange(50), y]
    others = np.array([np.delete(row, c) for row, c in zip(scores, y, strict=True)])
    ks = np.array([np.delete(np.arange(6), c) for c in y])
    labels = np.where(ks < y[:, None], -1, 1)
    score_pairs = np.where(ks < y[:, None], others - true[:, None], true[:, None] - others)
    eq3 = metrics.empirical_risk(true, others)
    eq6 = metrics.transformed_risk(score_pairs.ravel(), labels.ravel())
    assert eq3 == pytest.approx(eq6)
    assert metrics.sampled_risk(true, others) == pytest.approx(eq3)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1s(seed):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 8, 40).astype(str)
    y_pred = np.where(rng.random(40) < 0.5, y_true, rng.integers(0, 12, 40).astype(str))
    per_class, of_means = oracle.macro_f1s(y_true.tolist(), y_pred.tolist())
    assert metrics.macro_f1(y_true, y_pred) == pytest.approx(per_class)
    assert metrics.macro_f1(y_true, y_pred) == pytest.approx(
        f1_score(y_true, y_pred, average="macro", zero_division=0)
    )
    assert metrics.macro_f1_of_means(y_true, y_pred) == pytest.approx(of_means)


def test_nothing_right():
    assert metrics.macro_f1_of_means([1, 1], [2, 2]) == 0.0
    assert metrics.macro_f1([1, 1], [2, 2]) == 0.0
    assert metrics.accuracy([1, 1], [2, 2]) == 0.0


def test_top_k():
    ranking = np.array([[1, 2, 3], [3, 2, 1]])
    assert metrics.top_k_accuracy([2, 1], ranking, k=1) == 0.0
    assert metrics.top_k_accuracy([2, 1], ranking, k=2) == 0.5
    assert metrics.top_k_accuracy([2, 1], ranking) == 1.0


def test_top_k_never_counts_padding():
    """The entries without a candidate hold a real class, which is the true one."""
    scores = np.array([[1.0, -np.inf], [2.0, 1.0]])
    top = TopK(np.array([["b", "a"], ["b", "a"]]), scores)
    assert metrics.top_k_accuracy(["a", "a"], top) == 0.5
    masked = TopK(np.array([[1, 0]]), np.array([[0.9, 0.0]]), np.array([[True, False]]))
    assert metrics.top_k_accuracy([0], masked) == 0.0


def test_frequency_report():
    sizes = {"one": 1, "few": 5, "some": 6, "many": 100, "most": 101}
    y_true = ["one", "few", "few", "some", "many", "most", "new"]
    y_pred = ["one", "few", "one", "most", "many", "most", "one"]
    report = {band.name: band for band in metrics.frequency_report(y_true, y_pred, sizes)}
    assert list(report) == ["1", "2-5", "6-20", "21-100", "more"]
    assert report["1"].accuracy == 1.0
    assert report["1"].macro_f1 == pytest.approx(2 / 4)  # predicted three times, right once
    assert report["2-5"].accuracy == 0.5
    assert report["2-5"].n_documents == 2
    assert report["6-20"].macro_f1 == 0.0
    assert report["more"].macro_f1 == pytest.approx(2 / 3)
    assert sum(band.n_documents for band in report.values()) == 6  # "new" is in no band


def test_empty_band_is_nan():
    report = metrics.frequency_report([1], [1], {1: 3})
    assert np.isnan(report[0].accuracy)
    assert report[0].n_classes == 0


def test_calibration_error():
    # One bin of two documents at 0.95, one of them right; one of two at 0.05, none right.
    error = metrics.expected_calibration_error(
        [0.95, 0.95, 0.05, 0.05], [True, False, False, False]
    )
    assert error == pytest.approx((2 * 0.45 + 2 * 0.05) / 4)
    assert metrics.expected_calibration_error([1.0, 0.0], [True, False]) == 0.0
    rng = np.random.default_rng(0)
    chances = rng.random(50_000)
    assert metrics.expected_calibration_error(chances, rng.random(50_000) < chances) < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy([1, 2], [1]), "same length"),
        (lambda: metrics.accuracy([], []), "at least 1"),
        (lambda: metrics.top_k_accuracy([1], [[1, 2]], k=3), "k must be from 1 to 2"),
        (lambda: metrics.top_k_accuracy([1, 2], [[1, 2]]), "a row for each"),
        (lambda: metrics.instantaneous_loss([1.0], [[]]), "at least 1"),
        (lambda: metrics.sampled_risk([1.0, 2.0], [[1.0]]), "adversary_scores"),
        (lambda: metrics.transformed_risk([], []), "at least one pair"),
        (lambda: metrics.expected_calibration_error([0.5], []), "same length"),
        (lambda: metrics.expected_calibration_error([1.5], [True]), "from 0 to 1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
