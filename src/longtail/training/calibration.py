"""From scores to probabilities, and from a wanted precision to a threshold.

In: scores of held-out documents for their candidates, and which candidate was correct. Out: a
Calibrator. A candidate's log odds in the softmax over all candidates order predictions well but are
off as a probability; a monotone map, fitted on held-out documents for the best candidate and
another for the rest, corrects them. A row sums to at most 1; the rest is the probability that
no candidate is the true class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from longtail._kernels.residuals import fill_log_odds
from longtail._kernels.types import Block
from longtail._validation import check_precision
from longtail.results import Threshold
from longtail.sparse import Floats

FEWEST_DOCUMENTS = 50  # with fewer held-out documents the softmax stays as it is
LARGEST_LOG_ODDS = 50.0  # where there is no other candidate


@dataclass(frozen=True)
class Calibrator:
    """Two monotone maps from log odds to probability, and what held-out documents showed.

    A map is a line through its knots, level beyond them; without knots it is the logistic function.

    Attributes
    ----------
    top_log_odds, top_probabilities : ndarrays
        Knots of the map for the best candidate.
    other_log_odds, other_probabilities : ndarrays
        Knots of the map for the others.
    held_out_log_odds : ndarray of shape (n_held_out,)
        Of the best candidate of each held-out document, highest first.
    held_out_correct : ndarray of shape (n_held_out,), bool
        Whether it was the true class.
    """

    top_log_odds: Floats
    top_probabilities: Floats
    other_log_odds: Floats
    other_probabilities: Floats
    held_out_log_odds: Floats
    held_out_correct: NDArray[np.bool_]

    @classmethod
    def identity(cls) -> Calibrator:
        """Return the calibrator that leaves the softmax as it is."""
        nothing = np.zeros(0)
        return cls(nothing, nothing, nothing, nothing, nothing, np.zeros(0, np.bool_))


def fit_calibrator(scores: Floats, correct: NDArray[np.bool_]) -> Calibrator:
    """Fit the maps on held-out documents.

    Parameters
    ----------
    scores : ndarray of shape (n_documents, q)
        Best first.
    correct : ndarray of shape (n_documents, q), bool
        Which candidate is the document's class; none where it is not among them.

    Returns
    -------
    Calibrator
    """
    if len(scores) < FEWEST_DOCUMENTS:
        return Calibrator.identity()
    log_odds = candidate_log_odds(scores)
    order = np.argsort(-log_odds[:, 0], kind="stable")
    return Calibrator(
        *_fit_map(log_odds[:, 0], correct[:, 0]),
        *_fit_map(log_odds[:, 1:].ravel(), correct[:, 1:].ravel()),
        held_out_log_odds=log_odds[order, 0],
        held_out_correct=correct[order, 0],
    )


def calibrate(scores: Floats, calibrator: Calibrator) -> Floats:
    """Turn scores, best first, into probabilities that fall along each row and sum to at most 1."""
    log_odds = candidate_log_odds(scores)
    top = _apply_map(log_odds[:, 0], calibrator.top_log_odds, calibrator.top_probabilities)
    others = _apply_map(log_odds[:, 1:], calibrator.other_log_odds, calibrator.other_probabilities)
    others = np.minimum(others, top[:, None])
    left, sums = 1.0 - top, others.sum(axis=1)
    excess = sums > left
    others[excess] *= (left[excess] / sums[excess])[:, None]
    return np.column_stack([top, others])


def find_threshold(calibrator: Calibrator, precision: float) -> Threshold:
    """Return the lowest top-1 probability from which on predictions reach a precision.

    Parameters
    ----------
    calibrator : Calibrator
        With what held-out documents showed.
    precision : float
        Between 0 and 1.

    Returns
    -------
    Threshold
        NaN where no held-out documents reached the precision, or none were held out.

    Raises
    ------
    ValueError
        If the precision is out of range.
    """
    check_precision(precision)
    n_held_out = len(calibrator.held_out_correct)
    counts = np.arange(1, n_held_out + 1)
    reached = np.cumsum(calibrator.held_out_correct) / counts
    # The last of many crossings is a lucky one: half a standard error makes up for that (measured).
    margin = 0.5 * np.sqrt(precision * (1.0 - precision) / counts)
    enough = np.flatnonzero(reached >= precision + margin)
    if not len(enough):
        return Threshold(np.nan, np.nan, 0.0, 0)
    last = int(enough[-1])
    log_odds = calibrator.held_out_log_odds[last : last + 1]
    threshold = _apply_map(log_odds, calibrator.top_log_odds, calibrator.top_probabilities)[0]
    return Threshold(float(threshold), float(reached[last]), (last + 1) / n_held_out, last + 1)


def candidate_log_odds(scores: Floats) -> Floats:
    """Return each candidate's score minus the log-sum-exp of the others in its row.

    Unlike the softmax's shares these do not run together near 1.
    """
    if scores.shape[1] == 1:
        return np.full(scores.shape, LARGEST_LOG_ODDS)
    log_odds = np.empty(scores.shape)
    fill_log_odds(scores, Block(0, len(scores)), log_odds)
    return np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)


def _fit_map(log_odds: Floats, correct: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Fit a rising map from log odds to frequency: isotonic steps, joined at their centres.

    Steps alone would give many documents the same probability, and a threshold nothing to separate.
    """
    if not len(log_odds):
        return np.zeros(0), np.zeros(0)
    levels = IsotonicRegression().fit_transform(log_odds, correct)
    heights, level = np.unique(levels, return_inverse=True)
    centres = np.bincount(level, weights=log_odds) / np.bincount(level)
    return centres, heights


def _apply_map(log_odds: Floats, knots: Floats, probabilities: Floats) -> Floats:
    """Read probabilities off a map."""
    if not len(knots):
        return np.asarray(expit(log_odds))
    return np.interp(log_odds, knots, probabilities)
