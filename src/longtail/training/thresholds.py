"""From a wanted precision to a threshold: which predictions to keep and which to hold back.

In: a `Calibrator` with the outcomes of held-out documents. Out: a `Threshold`, either for the
precision of all kept predictions together or for the probability of each of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtail._validation import check_precision, check_share
from longtail.results import Threshold
from longtail.sparse import Floats
from longtail.training.calibration import Calibrator, held_out_probabilities
from longtail.training.outcomes import expect_unknown

# Of the precision asked for: the least probability of a kept prediction. Where most predictions are
# nearly certain, the average alone would let anything pass.
MIN_SHARE = 0.5
# Wrong predictions that are counted beside the held-out ones. Of the first few, most certain first,
# all may be correct by chance: on acl-lastauthor the first 16 are, and of new ones 81 in 100.
ASSUMED_ERRORS = 1.0
# Standard errors that the precision of held-out documents must be above the one asked for: the last
# of many crossings is a lucky one, and half a standard error makes up for that (measured).
MARGIN = 0.5
# The lower end of a 90 % interval of what is reached (Wilson) may lie this far below the precision.
# Learned on halves of the held-out documents of six sets, for 80 to 99 %, thresholds missed the
# precision on the other half by more than 1.5 points in 5.0 % of the cases without this, with it in
# 2.5 %, for 0.1 points of coverage; on acl-lastauthor for 80 % in 58 and in 8 %.
MAX_SHORTFALL = 0.015
LOWER_END = 1.645  # standard errors


def find_threshold(
    calibrator: Calibrator,
    precision: float,
    unknown: float = 0.0,
    *,
    each: bool = False,
    told: Calibrator | None = None,
) -> Threshold:
    """Return the lowest probability from which on predictions reach a precision.

    Predictions are the best candidates; where probabilities are marginal, all candidates.

    Parameters
    ----------
    calibrator : Calibrator
        With what held-out documents showed.
    precision : float
        Between 0 and 1.
    unknown : float, default=0.0
        Share of the documents whose class the model does not have; each of them that passes is an
        error.
    each : bool, default=False
        Whether every single prediction must be that probable. Otherwise the average over the kept
        predictions counts, and each must have at least half the probability asked for.

    Returns
    -------
    Threshold
        NaN where no held-out documents reached the precision, or too few to tell.

    Raises
    ------
    ValueError
        If a share is out of range, or the calibrator was fitted without unknown classes.
    """
    check_precision(precision)
    check_share("unknown", unknown)
    if calibrator.marginal:
        if unknown:
            raise ValueError(
                "unknown is for models with one label for each document; a document with several "
                "labels may have known and unknown ones. Leave it out."
            )
        probabilities, correct = calibrator.pair_probabilities, calibrator.pair_correct
    else:
        probabilities, correct = held_out_probabilities(calibrator), calibrator.held_out_correct
    n_kept = np.arange(1.0, len(correct) + 1)
    expected = probabilities if told is None else held_out_probabilities(told)
    if unknown:
        n_kept += _count_unknown(calibrator, unknown)
        expected = _expected_probabilities(calibrator, unknown)
    n_correct = np.cumsum(correct)
    reached = n_correct / (n_kept + ASSUMED_ERRORS)
    lower = _lower_end(n_correct / n_kept, n_kept)
    if each:
        lowest, enough = precision, reached >= precision
    else:
        margin = MARGIN * np.sqrt(precision * (1.0 - precision) / np.arange(1, len(reached) + 1))
        # Where each prediction is that probable, so is their average.
        each_enough = (expected >= precision) & (reached >= precision)
        lowest = MIN_SHARE * precision
        enough = (reached >= precision + margin) | each_enough
        expected = probabilities
    enough &= lower >= precision - MAX_SHORTFALL
    # Predictions of the same probability are kept or left out together.
    ends = np.diff(probabilities, append=-1.0) != 0
    found = np.flatnonzero(ends & enough & (expected >= lowest))
    if not len(found):
        return Threshold(np.nan, np.nan, 0.0, 0)
    last = int(found[-1])
    threshold = float(probabilities[last])
    if not unknown and last + 1 == np.count_nonzero(probabilities >= lowest):
        threshold = lowest  # nothing that was held out lies between the two
    coverage = (1.0 - unknown) * float(n_kept[last]) / len(calibrator.held_out_correct)
    return Threshold(threshold, float(n_correct[last] / n_kept[last]), coverage, last + 1)


def _lower_end(shares: Floats, counts: Floats) -> Floats:
    """Return the lower ends of Wilson's intervals of shares."""
    squared = LOWER_END**2 / counts
    half = LOWER_END * np.sqrt(shares * (1.0 - shares) / counts + squared / (4.0 * counts))
    return np.asarray((shares + squared / 2.0 - half) / (1.0 + squared))


def _count_unknown(calibrator: Calibrator, unknown: float) -> Floats:
    """Return how many documents of unknown classes pass where each held-out document does."""
    n_held_out, n_unknown = len(calibrator.held_out_correct), len(calibrator.unknown_log_odds)
    if n_held_out and not n_unknown:
        raise ValueError(
            "this model does not know how documents of unknown classes score: it was fitted "
            "with fewer than 3 candidates. Fit it again, or leave unknown out."
        )
    n_above = np.searchsorted(
        -calibrator.unknown_log_odds, -calibrator.held_out_log_odds, side="right"
    )
    weight = unknown / (1.0 - unknown) * n_held_out / max(n_unknown, 1)
    return np.asarray(weight * n_above)


def _expected_probabilities(calibrator: Calibrator, unknown: float) -> Floats:
    """Return the probability of each held-out prediction among documents of unknown classes."""
    told = expect_unknown(calibrator, unknown)
    return held_out_probabilities(replace(told, held_out_log_odds=calibrator.held_out_log_odds))
