"""From scores to probabilities.

In: scores of held-out documents for their candidates, and which candidate was correct. Out: a
Calibrator. A candidate's log odds in the softmax over all candidates order predictions well but are
off as a probability; a monotone map, fitted on held-out documents for the best candidate and
another for the rest, corrects them. A row sums to at most 1; the rest is the probability that
no candidate is the true class.

Where documents have several labels, probabilities are marginal: each is that of one label, whatever
the others are. Labels do not compete with each other, so a candidate's log odds are its score
against the candidates after the first few, which may all be labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from longtail._elementary import exp, log
from longtail._kernels.residuals import fill_log_odds
from longtail._kernels.types import Block, ListRows
from longtail.metrics.calibration import expected_calibration_error
from longtail.sparse import Floats, Integers
from longtail.training.short_documents import doubt_short, find_short_length, fit_slope

FEWEST_DOCUMENTS = 50  # with fewer held-out documents the softmax stays as it is
# Candidates that may be labels together. On tib-subjects the log loss is .1319, with 3 of them
# .1323, with 10 .1326.
LIKELY_LABELS = 5
SMALLEST_MARGINAL = 0.05  # of pairs that are kept for thresholds
# Of the labels of a set but the first. Where nothing is likely, the expected F1 hardly depends on
# how many labels there are, and all candidates would be the best set by a hair.
SMALLEST_CHOSEN = 0.01
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
    unknown_log_odds : ndarray of shape (n_unknown,)
        Of the best candidate of each held-out document if the model did not have its class, highest
        first.
    marginal : bool
        Whether documents have several labels.
    pair_probabilities : ndarray of shape (n_pairs,)
        Of the likely candidates of held-out documents, highest first; empty unless `marginal`.
    pair_correct : ndarray of shape (n_pairs,), bool
        Whether they were labels.
    calibration_error : float or None
        As `estimate_calibration_error` has it; None where it is estimated when it is asked for.
    n_outcomes : int
        Documents given to `recalibrate` since the fit.
    unknown_share : float
        Of the last of these, how many were of a class that the model did not have; before the
        first, what the model was told to expect.
    short_length, short_slope : float
        Below how many terms a document is short, and how much less certain that makes it; see
        `short_documents`.
    """

    top_log_odds: Floats
    top_probabilities: Floats
    other_log_odds: Floats
    other_probabilities: Floats
    held_out_log_odds: Floats
    held_out_correct: NDArray[np.bool_]
    unknown_log_odds: Floats = field(default_factory=lambda: np.zeros(0))
    marginal: bool = False
    pair_probabilities: Floats = field(default_factory=lambda: np.zeros(0))
    pair_correct: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    calibration_error: float | None = None
    n_outcomes: int = 0
    unknown_share: float = 0.0
    short_length: float = 1.0
    short_slope: float = 0.0

    @classmethod
    def identity(cls, *, marginal: bool = False) -> Calibrator:
        """Return the calibrator that leaves the log odds as they are."""
        nothing, nobody = np.zeros(0), np.zeros(0, np.bool_)
        return cls(nothing, nothing, nothing, nothing, nothing, nobody, marginal=marginal)

    @property
    def is_calibrated(self) -> bool:
        """Whether maps were fitted; otherwise probabilities are the softmax of the scores."""
        return len(self.top_log_odds) > 0


def fit_calibrator(
    scores: Floats, correct: NDArray[np.bool_], marginal: bool = False
) -> Calibrator:
    """Fit the maps on held-out documents.

    Parameters
    ----------
    scores : ndarray of shape (n_documents, q)
        Best first.
    correct : ndarray of shape (n_documents, q), bool
        Which candidates are the document's labels; none where they are not among them.
    marginal : bool, default=False
        Whether a document may have several labels.

    Returns
    -------
    Calibrator
    """
    if len(scores) < FEWEST_DOCUMENTS:
        return Calibrator.identity(marginal=marginal)
    log_odds = label_log_odds(scores) if marginal else candidate_log_odds(scores)
    order = np.argsort(-log_odds[:, 0], kind="stable")
    calibrator = Calibrator(
        *fit_map(log_odds[:, 0], correct[:, 0]),
        *fit_map(log_odds[:, 1:].ravel(), correct[:, 1:].ravel()),
        held_out_log_odds=log_odds[order, 0],
        held_out_correct=correct[order, 0],
        unknown_log_odds=np.zeros(0) if marginal else _log_odds_without(scores, correct),
        marginal=marginal,
    )
    calibrator = replace(calibrator, calibration_error=estimate_calibration_error(calibrator))
    if not marginal:
        return calibrator
    probabilities = calibrate(scores, calibrator)
    likely = probabilities >= SMALLEST_MARGINAL
    order = np.argsort(-probabilities[likely], kind="stable")
    return replace(
        calibrator,
        pair_probabilities=probabilities[likely][order],
        pair_correct=correct[likely][order],
    )


def learn_shortness(
    calibrator: Calibrator,
    lengths: Integers,
    scores: Floats,
    correct: NDArray[np.bool_],
    truncated_lengths: Integers,
) -> Calibrator:
    """Return the calibrator with what documents truncated to a few terms have shown.

    Parameters
    ----------
    calibrator : Calibrator
        Of whole documents.
    lengths : ndarray of shape (n_documents,)
        Distinct terms of these.
    scores, correct : ndarrays of shape (n_copies, q)
        of truncated documents, as for `fit_calibrator`.
    truncated_lengths : ndarray of shape (n_copies,)
        Distinct terms that are left of them.
    """
    if not (calibrator.is_calibrated and len(scores)):
        return calibrator
    short_length = find_short_length(lengths)
    top = calibrate(scores, calibrator)[:, 0]
    slope = fit_slope(top, correct[:, 0], truncated_lengths, short_length)
    return replace(calibrator, short_length=short_length, short_slope=slope)


def estimate_calibration_error(calibrator: Calibrator) -> float:
    """Return the calibration error to expect on new documents of known classes.

    Of the best candidates, cross-validated; NaN where nothing was fitted, or a file has the maps
    without the documents.
    """
    if not (calibrator.is_calibrated and len(calibrator.held_out_correct)):
        return float("nan")
    if calibrator.calibration_error is not None:
        return calibrator.calibration_error
    probabilities = cross_validated_probabilities(calibrator)
    return expected_calibration_error(probabilities, calibrator.held_out_correct)


def cross_validated_probabilities(calibrator: Calibrator) -> Floats:
    """Return the probability of the best candidate of each held-out document.

    The map is fitted on every other document and read for the rest, and the reverse (two-fold
    cross-validation): on the documents that it was fitted on, a map is always calibrated.
    """
    log_odds, correct = calibrator.held_out_log_odds, calibrator.held_out_correct
    probabilities = np.empty(len(log_odds))
    for fold in (0, 1):
        knots = fit_map(log_odds[1 - fold :: 2], correct[1 - fold :: 2])
        probabilities[fold::2] = _apply_map(log_odds[fold::2], *knots)
    return probabilities


def held_out_probabilities(calibrator: Calibrator) -> Floats:
    """Return the probability that each held-out document's best candidate has, highest first."""
    return _apply_map(
        calibrator.held_out_log_odds, calibrator.top_log_odds, calibrator.top_probabilities
    )


def calibrate(scores: Floats, calibrator: Calibrator, lengths: Integers | None = None) -> Floats:
    """Turn scores, best first, into probabilities that fall along each row.

    They sum to at most 1, unless they are marginal. `lengths` are the distinct terms of the
    documents; where it is left out, all are of the usual length.
    """
    log_odds = label_log_odds(scores) if calibrator.marginal else candidate_log_odds(scores)
    top = _apply_map(log_odds[:, 0], calibrator.top_log_odds, calibrator.top_probabilities)
    others = _apply_map(log_odds[:, 1:], calibrator.other_log_odds, calibrator.other_probabilities)
    if lengths is not None:
        short = lengths, calibrator.short_length, calibrator.short_slope
        top = doubt_short(top, *short)
        # Of one label what the best candidate loses is not lost to the others; marginals are each
        # for themselves.
        others = doubt_short(others, *short) if calibrator.marginal else others
    others = np.minimum(others, top[:, None])
    if not calibrator.marginal:
        left, sums = 1.0 - top, others.sum(axis=1)
        excess = sums > left
        others[excess] *= (left[excess] / sums[excess])[:, None]
    return np.concatenate([top[:, None], others], axis=1)


def probability_of_none(probabilities: Floats) -> Floats:
    """Return the probability that no candidate of a row is the class."""
    return np.asarray(np.maximum(1.0 - probabilities.sum(axis=1), 0.0))


def choose_set_sizes(probabilities: Floats, max_labels: int | None = None) -> Integers:
    """Return how many labels of each row of marginals, best first, give the highest expected F1.

    The expected F1 of the first k is taken as 2 (p_1 + ... + p_k) / (k + p_1 + ... + p_q): on
    tib-subjects the exact expectation under independence chose no better sets. At least one label
    is chosen, and the fewest where sets tie; further ones only from `SMALLEST_CHOSEN` on.
    """
    expected = np.cumsum(probabilities, axis=1)
    sizes = np.arange(1, probabilities.shape[1] + 1)
    f1 = 2.0 * expected / (sizes + expected[:, -1:])
    f1[:, 1:][probabilities[:, 1:] < SMALLEST_CHOSEN] = 0.0
    return np.asarray(np.argmax(f1[:, :max_labels], axis=1) + 1)


def _log_odds_without(scores: Floats, correct: NDArray[np.bool_]) -> Floats:
    """Return the best log odds of each row once the true class is taken out, highest first."""
    if scores.shape[1] < 3:  # one candidate alone has no odds
        return np.zeros(0)
    # Best first stays best first; the last place of a row stands in where nothing is taken out.
    true_last = np.argsort(correct, axis=1, kind="stable")
    others = np.take_along_axis(scores, true_last, axis=1)[:, :-1]
    return np.sort(candidate_log_odds(others)[:, 0])[::-1]


def candidate_log_odds(scores: Floats) -> Floats:
    """Return each candidate's score minus the log-sum-exp of the others in its row.

    Unlike the softmax's shares these do not run together near 1.
    """
    if scores.shape[1] == 1:
        return np.full(scores.shape, LARGEST_LOG_ODDS)
    indptr = scores.shape[1] * np.arange(len(scores) + 1)
    rows = ListRows(indptr, np.zeros(len(scores), np.int64))
    log_odds = np.empty(scores.size)
    fill_log_odds(
        np.ravel(scores), rows, Block(0, len(scores)), np.empty(scores.shape[1]), log_odds
    )
    return np.clip(log_odds.reshape(scores.shape), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)


def label_log_odds(scores: Floats) -> Floats:
    """Return each candidate's score minus the log-sum-exp of those that are hardly labels.

    These are the candidates after the first `LIKELY_LABELS`; the second half where there are few.
    """
    n_candidates = scores.shape[1]
    if n_candidates == 1:
        return np.full(scores.shape, LARGEST_LOG_ODDS)
    others = scores[:, min(LIKELY_LABELS, n_candidates // 2) :]
    highest = others[:, :1]
    total = np.zeros(len(scores))
    for column in others.T:  # one by one: the bits of a sum over rows depend on how many there are
        total += exp(column - highest[:, 0])
    log_odds = scores - highest - log(total)[:, None]
    return np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)


def fit_map(log_odds: Floats, correct: NDArray[np.bool_]) -> tuple[Floats, Floats]:
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
        return 1.0 / (1.0 + exp(-log_odds))
    return np.interp(log_odds, knots, probabilities)
