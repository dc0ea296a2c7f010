from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from longtail.metrics.probabilities import expected_calibration_error
from longtail.results import Threshold, TopK
from longtail.training.calibration import (
    Calibrator,
    calibrate,
    candidate_log_odds,
    choose_set_sizes,
    count_predicted,
    estimate_calibration_error,
    fit_calibrator,
    probability_of_none,
)
from longtail.training.outcomes import expect_unknown, recalibrate
from longtail.training.thresholds import find_threshold


def draw(seed, n_documents, n_candidates=6, sharpness=2.0):
    """Scores, best first, whose softmax is wrong as a probability by a known factor."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(0, 3, (n_documents, n_candidates)), axis=1)
    true = np.exp(scores / sharpness)
    shares = 0.9 * true / true.sum(axis=1, keepdims=True)  # one in ten is no candidate at all
    chosen = rng.random(n_documents)[:, None] < np.cumsum(shares, axis=1)
    right = chosen & ~np.pad(chosen[:, :-1], ((0, 0), (1, 0)))
    return scores, right


def test_log_odds_by_hand():
    log_odds = candidate_log_odds(np.array([[2.0, 1.0, 0.0]]))
    expected = [
        2 - math.log(math.e + 1),
        1 - math.log(math.e**2 + 1),
        -math.log(math.e**2 + math.e),
    ]
    assert log_odds[0] == pytest.approx(expected)


def test_log_odds_stay_finite_and_apart():
    log_odds = candidate_log_odds(np.array([[1e4, 0.0], [40.0, 0.0], [45.0, 0.0]]))
    assert np.all(np.isfinite(log_odds))
    assert log_odds[1, 0] < log_odds[2, 0] <= log_odds[0, 0]
    assert np.all(candidate_log_odds(np.array([[3.0]])) > 10)


def test_without_held_out_documents_the_softmax_stays():
    scores, right = draw(0, 20)
    calibrator = fit_calibrator(scores, right)
    assert len(calibrator.held_out_correct) == 0
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert calibrate(scores, calibrator) == pytest.approx(shares)


def test_maps_without_their_documents_have_no_known_error():
    calibrator = fit_calibrator(*draw(1, 200))
    nothing = np.zeros(0)
    alone = replace(
        calibrator,
        held_out_log_odds=nothing,
        held_out_correct=nothing.astype(bool),
        calibration_error=None,
    )
    assert math.isnan(estimate_calibration_error(alone))
    assert math.isnan(find_threshold(alone, 0.9).threshold)


def test_probabilities_become_frequencies():
    calibrator = fit_calibrator(*draw(1, 20_000))
    scores, right = draw(2, 20_000)
    probabilities = calibrate(scores, calibrator)
    softmax = calibrate(scores, Calibrator.identity())
    for rank in (0, 1):
        hits = right[:, rank]
        error = expected_calibration_error(probabilities[:, rank], hits)
        assert error < 0.02
        assert error < expected_calibration_error(softmax[:, rank], hits) / 2


def test_rows_fall_and_sum_to_at_most_one():
    calibrator = fit_calibrator(*draw(3, 2000))
    scores, _ = draw(4, 500, sharpness=0.2)
    scores[:5] = 0.0  # ties
    probabilities = calibrate(scores, calibrator)
    assert np.all(probabilities >= 0)
    assert np.all(probabilities.sum(axis=1) <= 1 + 1e-12)
    assert np.all(np.diff(probabilities, axis=1) <= 1e-12)


def test_more_certain_documents_get_higher_probabilities():
    calibrator = fit_calibrator(*draw(5, 5000))
    scores, _ = draw(6, 300)
    order = np.argsort(candidate_log_odds(scores)[:, 0])
    assert np.all(np.diff(calibrate(scores, calibrator)[order, 0]) >= -1e-12)
    assert np.all(np.diff(calibrator.top_log_odds) > 0)
    assert np.all(np.diff(calibrator.top_probabilities) > 0)


def test_a_single_candidate_is_fine():
    rng = np.random.default_rng(0)
    calibrator = fit_calibrator(rng.normal(size=(200, 1)), rng.random((200, 1)) < 0.7)
    assert calibrate(np.array([[1.0]]), calibrator)[0, 0] == pytest.approx(0.7, abs=0.1)


def test_all_or_nothing_right():
    scores, _ = draw(7, 100)
    for value in (True, False):
        right = np.zeros(scores.shape, bool)
        right[:, 0] = value
        assert np.all(calibrate(scores, fit_calibrator(scores, right))[:, 0] == value)


@pytest.mark.parametrize("precision", [0.6, 0.75])
def test_threshold_reaches_its_precision(precision):
    calibrator = fit_calibrator(*draw(8, 20_000))
    threshold = find_threshold(calibrator, precision)
    scores, right = draw(9, 20_000)
    kept = calibrate(scores, calibrator)[:, 0] >= threshold.threshold
    assert kept.mean() == pytest.approx(threshold.coverage, abs=0.02)
    assert 0.05 < kept.mean() < 0.95
    assert right[kept, 0].mean() == pytest.approx(precision, abs=0.02)


def easy_calibrator(marginal):
    """Nine in ten are nearly certain and correct, so the accuracy exceeds most precisions."""
    probabilities = np.append(np.linspace(0.999, 0.98, 900), np.linspace(0.6, 0.0, 100))
    correct = np.append(np.ones(900, bool), np.arange(100) < 40)
    return replace(
        Calibrator.identity(marginal=marginal),
        top_log_odds=np.array([0.0, 1.0]),
        top_probabilities=np.array([0.0, 1.0]),
        held_out_log_odds=probabilities,
        held_out_correct=correct,
        pair_probabilities=probabilities,
        pair_correct=correct,
    )


@pytest.mark.parametrize("marginal", [False, True])
def test_the_average_keeps_nothing_below_half_the_precision(marginal):
    """Where the accuracy exceeds the precision, everything would reach it on average."""
    calibrator = easy_calibrator(marginal)
    assert calibrator.held_out_correct.mean() == 0.94
    found = find_threshold(calibrator, 0.9)
    assert found.threshold == 0.45
    assert found.coverage == pytest.approx(0.925, abs=0.002)
    assert found.expected_precision == pytest.approx(925 / 925)


@pytest.mark.parametrize("marginal", [False, True])
def test_each_prediction_can_be_asked_to_be_that_probable(marginal):
    calibrator = easy_calibrator(marginal)
    found = find_threshold(calibrator, 0.9, each=True)
    assert (found.threshold, found.n_documents, found.coverage) == (0.9, 900, 0.9)
    assert found.expected_precision == 1.0
    assert np.isnan(find_threshold(calibrator, 0.9995, each=True).threshold)
    assert np.isnan(
        find_threshold(Calibrator.identity(marginal=marginal), 0.5, each=True).threshold
    )


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_each_prediction_is_that_probable_among_unknown_classes(unknown):
    """Of fresh documents near the threshold, so many are correct."""
    calibrator = fit_calibrator(*draw(8, 40_000, sharpness=0.5))
    found = find_threshold(calibrator, 0.7, unknown, each=True)
    scores, right = draw(9, 200_000, sharpness=0.5)
    known = np.arange(len(scores)) >= unknown * len(scores)
    without = np.take_along_axis(scores, np.argsort(right, axis=1, kind="stable"), axis=1)[:, :-1]
    of_known, of_unknown = (calibrate(s, calibrator)[:, 0] for s in (scores, without))
    top = np.where(known, of_known, of_unknown)
    near = (top >= found.threshold) & (top < found.threshold + 0.02)
    assert near.sum() > 500
    assert (right[:, 0] & known)[near].mean() == pytest.approx(0.7, abs=0.04)
    kept = top >= found.threshold
    assert (right[:, 0] & known)[kept].mean() == pytest.approx(found.expected_precision, abs=0.02)
    assert kept.mean() == pytest.approx(found.coverage, abs=0.02)


def test_where_each_is_probable_enough_so_is_the_average():
    # 0.862 with the assumed error, which is less than half a standard error above 0.86.
    probable = np.repeat([0.9, 0.1], [1600, 500])
    correct = np.zeros(2100, bool)
    correct[:1380] = True
    calibrator = replace(
        easy_calibrator(False), held_out_log_odds=probable, held_out_correct=correct
    )
    each = find_threshold(calibrator, 0.86, each=True)
    assert (each.threshold, each.n_documents) == (0.86, 1600)
    average = find_threshold(calibrator, 0.86)
    assert average.n_documents == 1600
    assert average.threshold <= each.threshold


def test_a_few_certain_predictions_promise_nothing():
    for n_certain in (8, 30):
        certain = np.repeat([1.0, 0.1], [n_certain, 500])
        calibrator = replace(
            easy_calibrator(False), held_out_log_odds=certain, held_out_correct=certain == 1.0
        )
        for each in (False, True):
            found = find_threshold(calibrator, 0.9, each=each)
            assert np.isnan(found.threshold) == (n_certain == 8)


def test_a_threshold_keeps_the_first_class_unless_none_is_likelier():
    classes = np.array([["a", "b"], ["a", "b"], ["a", "b"], ["", ""]])
    probabilities = np.array([[0.5, 0.45], [0.45, 0.0], [0.3, 0.3], [0.0, 0.0]])
    valid = np.array([[True, True]] * 3 + [[False, False]])
    threshold = Threshold(0.4, 0.8, 1.0, 100)
    top = TopK(classes, probabilities, valid, none=np.array([0.05, 0.55, 0.4, 1.0]))
    assert threshold.keeps(top).tolist() == [[True, False]] + [[False, False]] * 3
    marginal = TopK(classes, probabilities, valid)
    assert threshold.keeps(marginal).tolist() == [[True, True], [True, False]] + [[False] * 2] * 2
    assert not Threshold(np.nan, np.nan, 0.0, 0).keeps(top).any()
    assert not Threshold(0.0, 0.8, 1.0, 100).keeps(top)[3].any()


@pytest.mark.parametrize("marginal", [False, True])
def test_a_threshold_counts_all_that_have_its_probability(marginal):
    """Beyond the last knot of a map many predictions have the same probability."""
    correct = np.repeat([True, False, True, False], [300, 100, 100, 500])
    calibrator = replace(
        Calibrator.identity(marginal=marginal),
        top_log_odds=np.array([0.0, 1.0]),
        top_probabilities=np.array([0.2, 0.75]),
        held_out_log_odds=np.append(np.linspace(5.0, 1.5, 400), np.linspace(0.9, 0.0, 600)),
        held_out_correct=correct,
        pair_probabilities=np.append(np.full(400, 0.75), np.linspace(0.7, 0.2, 600)),
        pair_correct=correct,
    )
    # The first 300 are correct, but whoever takes them takes 100 more of the same probability.
    assert np.isnan(find_threshold(calibrator, 0.9).threshold)
    found = find_threshold(calibrator, 0.6)
    # The most of which 400 are enough: the lower end of the interval is 1.5 points below 0.6.
    lower = [_wilson_lower(400, n) for n in range(500, 701)]
    most = 499 + sum(end >= 0.585 for end in lower)
    assert (found.threshold < 0.75, found.n_documents) == (True, most)
    assert found.expected_precision == pytest.approx(400 / most)


def _wilson_lower(n_correct, n):
    """Solve (p - x)^2 = z^2 x (1 - x) / n for the lower x."""
    p, z2 = n_correct / n, 1.645**2
    return min(np.roots([1 + z2 / n, -2 * p - z2 / n, p * p]).real)


def test_few_held_out_predictions_give_no_threshold():
    """With 152 of 154 right, the precision may well be 96 %."""
    for copies in (1, 5):
        probable = np.repeat([0.99, 0.1], [154 * copies, 500])
        correct = np.zeros(len(probable), bool)
        correct[: 152 * copies] = True
        calibrator = replace(
            easy_calibrator(False), held_out_log_odds=probable, held_out_correct=correct
        )
        for each in (False, True):
            found = find_threshold(calibrator, 0.98, each=each)
            assert np.isnan(found.threshold) == (copies == 1)


def test_thresholds_that_cannot_be_given():
    calibrator = fit_calibrator(*draw(10, 2000))
    # One in ten is no candidate, however certain; and without held-out documents nothing is known.
    for unknown in (find_threshold(calibrator, 0.99), find_threshold(Calibrator.identity(), 0.5)):
        assert np.isnan([unknown.threshold, unknown.expected_precision]).all()
        assert unknown.coverage == unknown.n_documents == 0


def test_precisions_that_are_none():
    calibrator = fit_calibrator(*draw(10, 2000))
    for precision in (0, 1, -0.1, 90):
        with pytest.raises(ValueError, match="precision must be between 0 and 1"):
            find_threshold(calibrator, precision)


# ---- documents of classes that the model does not have


def test_log_odds_of_unknown_classes_are_those_without_the_true_one():
    """The definition, document by document: take the true class out and look again."""
    scores, right = draw(7, 300)
    calibrator = fit_calibrator(scores, right)
    expected = []
    for row, hits in zip(scores, right, strict=True):
        left = [score for score, hit in zip(row, hits, strict=True) if not hit][:5]
        expected.append(left[0] - math.log(sum(math.exp(score) for score in left[1:])))
    assert calibrator.unknown_log_odds == pytest.approx(sorted(expected, reverse=True))


@pytest.mark.parametrize("unknown", [0.0, 0.1, 0.3, 0.5])
def test_a_threshold_keeps_its_precision_among_unknown_classes(unknown):
    """Fresh documents, of which a share have no class: the precision holds on all of them."""
    calibrator = fit_calibrator(*draw(8, 20_000, sharpness=0.5))
    found = find_threshold(calibrator, 0.7, unknown)
    assert found.n_documents > 200
    scores, right = draw(9, 40_000, sharpness=0.5)
    known = np.arange(len(scores)) >= unknown * len(scores)
    without = np.take_along_axis(scores, np.argsort(right, axis=1, kind="stable"), axis=1)[:, :-1]
    top = np.where(
        known,
        calibrate(scores, calibrator)[:, 0],
        calibrate(without, calibrator)[:, 0],
    )
    kept = top >= found.threshold
    precision = (right[:, 0] & known)[kept].mean()
    assert precision == pytest.approx(found.expected_precision, abs=0.02)
    assert precision > 0.68
    assert kept.mean() == pytest.approx(found.coverage, abs=0.02)


def test_what_a_share_of_unknown_classes_may_be():
    calibrator = fit_calibrator(*draw(8, 200))
    for unknown in (1.0, -0.1, "x", None, True):
        with pytest.raises(ValueError, match="unknown must be a share from 0 to below 1"):
            find_threshold(calibrator, 0.5, unknown)
    pairs = fit_calibrator(*draw(8, 200, n_candidates=2))
    find_threshold(pairs, 0.5)
    with pytest.raises(ValueError, match="does not know how documents of unknown classes score"):
        find_threshold(pairs, 0.5, 0.1)


def test_where_no_label_is_likely_a_set_has_one():
    sizes = choose_set_sizes(np.array([[8e-5] * 40, [0.0] * 40, [0.5, 0.4] + [8e-5] * 38]))
    assert sizes.tolist() == [1, 1, 2]


def test_the_calibration_error_is_estimated():
    """Close to what fresh documents show, though estimated from those that were fitted."""
    scores, right = draw(10, 2000, sharpness=0.5)
    calibrator = fit_calibrator(scores, right)
    fresh, hits = draw(11, 2000, sharpness=0.5)
    measured = expected_calibration_error(calibrate(fresh, calibrator)[:, 0], hits[:, 0])
    assert estimate_calibration_error(calibrator) == pytest.approx(measured, abs=0.02)
    assert math.isnan(estimate_calibration_error(Calibrator.identity()))


def test_recalibration_follows_what_happens():
    """After the fit half of the documents belong to no candidate: probabilities must halve."""
    calibrator = fit_calibrator(*draw(0, 3000))
    scores, correct = draw(1, 4000)
    correct[::2] = False
    before = calibrate(scores, calibrator)
    for rows in np.array_split(np.arange(2000), 8):
        calibrator = recalibrate(calibrator, scores[rows], correct[rows])
    assert len(calibrator.held_out_correct) == 1000
    assert np.all(np.diff(calibrator.held_out_log_odds) <= 0)
    after = calibrate(scores[2000:], calibrator)
    assert expected_calibration_error(before[2000:, 0], correct[2000:, 0]) > 0.15
    assert expected_calibration_error(after[:, 0], correct[2000:, 0]) < 0.05
    assert estimate_calibration_error(calibrator) < 0.06
    others = correct[2000:, 1:].sum()
    assert after[:, 1:].sum() == pytest.approx(others, rel=0.35)
    assert abs(after[:, 1:].sum() - others) < abs(before[2000:, 1:].sum() - others)
    none = probability_of_none(after)
    assert none.mean() == pytest.approx(1 - correct[2000:].any(axis=1).mean(), abs=0.06)


def test_outcomes_one_by_one_count_like_batches():
    """None of the fit's outcomes may stay for good, wherever its log odds are."""
    scores, correct = draw(1, 4000)
    correct[:, :] = False  # nothing is right any more
    one_by_one = in_batches = fit_calibrator(*draw(0, 3000))
    hits = one_by_one.held_out_correct.mean()
    for row in range(4000):
        one_by_one = recalibrate(one_by_one, scores[row : row + 1], correct[row : row + 1])
    for rows in np.array_split(np.arange(4000), 16):
        in_batches = recalibrate(in_batches, scores[rows], correct[rows])
    for calibrator in (one_by_one, in_batches):
        assert len(calibrator.held_out_correct) == 1000
        # (1 - 1/1000)^4000 = 0.018 of them are left, (1 - 1/4)^16 = 0.010.
        assert calibrator.held_out_correct.mean() < 0.03 * hits
        assert calibrate(scores, calibrator)[:, 0].max() < 0.2


def test_recalibration_by_hand():
    """Of the old outcomes two in three go, as evenly as can be."""
    scores, correct = draw(0, 1200)
    old = fit_calibrator(scores, correct)
    new_scores, new_correct = draw(1, 601)
    changed = recalibrate(old, new_scores, new_correct)
    gone = np.floor(np.arange(801) * 1200 / 801).astype(int)
    kept = np.setdiff1d(np.arange(1200), gone)
    assert len(kept) == 399
    expected = sorted(
        [
            *zip(old.held_out_log_odds[kept], old.held_out_correct[kept], strict=True),
            *zip(candidate_log_odds(new_scores)[:, 0], new_correct[:, 0], strict=True),
        ],
        key=lambda pair: -pair[0],
    )
    assert changed.held_out_log_odds.tolist() == [pair[0] for pair in expected]
    assert changed.held_out_correct.tolist() == [pair[1] for pair in expected]
    assert np.all(np.diff(changed.top_log_odds) > 0)
    assert np.all(np.diff(changed.top_probabilities) > 0)


def test_recalibration_of_what_was_never_calibrated():
    scores, correct = draw(0, 300)
    nothing = Calibrator.identity()
    assert recalibrate(nothing, scores[:49], correct[:49]) is nothing
    changed = recalibrate(nothing, scores, correct)
    assert changed.is_calibrated
    assert calibrate(scores, changed) == pytest.approx(
        calibrate(scores, fit_calibrator(scores, correct))
    )
    single = recalibrate(changed, scores[:, :1], correct[:, :1])
    assert len(single.held_out_correct) == 600


def test_expecting_unknown_classes_adds_as_many_errors():
    rng = np.random.default_rng(5)
    scores = -np.sort(-rng.normal(size=(400, 6)), axis=1) * 3
    correct = np.zeros((400, 6), bool)
    correct[np.arange(400), rng.choice(6, 400, p=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02])] = True
    plain = fit_calibrator(scores, correct)
    assert expect_unknown(plain, 0.0) is plain
    doubting = expect_unknown(plain, 0.2)
    assert len(doubting.held_out_correct) == 500
    assert doubting.held_out_correct.sum() == plain.held_out_correct.sum()
    assert np.all(np.diff(doubting.held_out_log_odds) <= 0)
    # Each added outcome is one of a held-out document without its class, evenly over all of them.
    added = list(doubting.held_out_log_odds)
    for value in plain.held_out_log_odds:
        added.remove(value)
    rows = [round(i * 399 / 99) for i in range(100)]
    assert np.allclose(added, plain.unknown_log_odds[rows])
    assert calibrate(scores, doubting)[:, 0].mean() == pytest.approx(
        correct[:, 0].sum() / 500, abs=0.1
    )
    assert expect_unknown(Calibrator.identity(), 0.5).is_calibrated is False


def test_the_first_outcomes_of_unknown_classes_count_at_once():
    """250 outcomes must not be outvoted by held-out documents, which are of known classes."""
    fitted = fit_calibrator(*draw(0, 3000))
    scores, correct = draw(1, 2250)
    correct[::2] = False
    told = recalibrate(fitted, scores[:250], correct[:250], n_unknown=125)
    untold = recalibrate(fitted, scores[:250], correct[:250])
    errors = [
        expected_calibration_error(calibrate(scores[250:], calibrator)[:, 0], correct[250:, 0])
        for calibrator in (told, untold)
    ]
    assert errors[0] < 0.06 < 0.15 < errors[1]
    assert len(told.held_out_correct) == len(untold.held_out_correct) == 1000
    again = recalibrate(told, scores[:250], correct[:250], n_unknown=125)
    hits = told.held_out_correct.mean(), again.held_out_correct.mean()
    assert hits[1] == pytest.approx(hits[0], abs=0.05)  # not expected a second time


def test_outcomes_are_counted():
    rng = np.random.default_rng(6)
    calibrator = Calibrator.identity()
    for n_unknown in (30, 60, 0):
        scores = -np.sort(-rng.normal(size=(100, 4)), axis=1)
        calibrator = recalibrate(calibrator, scores, np.zeros((100, 4), bool), n_unknown)
    assert calibrator.n_outcomes == 300
    assert calibrator.unknown_share == pytest.approx(90 / 300)
    scores = -np.sort(-rng.normal(size=(950, 4)), axis=1)
    calibrator = recalibrate(calibrator, scores, np.zeros((950, 4), bool), 950)
    # The older ones make room: fifty of them are left.
    assert calibrator.unknown_share == pytest.approx((50 * 0.3 + 950) / 1000)
    assert recalibrate(calibrator, np.zeros((0, 4)), np.zeros((0, 4), bool)) is calibrator


def test_how_many_of_the_first_classes_are_predicted():
    scores = np.array([[0.9, 0.6, 0.0], [0.4, 0.3, 0.2], [0.0, 0.0, 0.0]])
    labels = np.array([["a", "b", ""], ["b", "c", "a"], ["", "", ""]])
    sets = TopK(labels, scores, labels != "")
    threshold = Threshold(0.35, 0.8, 0.5, 100)
    assert count_predicted(sets, True).tolist()[0] == 2
    assert count_predicted(sets, True, max_labels=1).tolist() == [1, 1, 0]
    assert count_predicted(sets, True, threshold).tolist() == [2, 1, 0]
    assert count_predicted(sets, True, threshold, max_labels=1).tolist() == [1, 1, 0]
    single = TopK(labels, scores, labels != "", none=np.array([0.0, 0.5, 1.0]))
    assert count_predicted(single, False).tolist() == [1, 1, 0]
    assert count_predicted(single, False, threshold).tolist() == [1, 0, 0]
