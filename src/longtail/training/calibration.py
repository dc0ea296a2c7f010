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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from longtail._elementary import exp, log
from longtail._kernels.residuals import fill_log_odds
from longtail._kernels.types import Block, ListRows
from longtail.metrics.probabilities import expected_calibration_error
from longtail.results import Threshold, TopK
from longtail.sparse import Floats, Integers, index_dtype
from longtail.training.short_documents import doubt_short, find_short_length, fit_slope

MIN_DOCUMENTS = 50  # with fewer held-out documents the softmax stays as it is
# Candidates that may be labels together. On tib-subjects the log loss is .1319, with 3 of them
# .1323, with 10 .1326.
LIKELY_LABELS = 5
SMALLEST_MARGINAL = 0.05  # of pairs that are kept for thresholds
# Of the labels of a set but the first. Where nothing is likely, the expected F1 hardly depends on
# how many labels there are, and all candidates would be the best set by a hair.
SMALLEST_CHOSEN = 0.01
# Held-out documents whose ranking is kept, evenly spread over all: 0.8 MB with 20 candidates. The
# standard error of a precision of 90 % is 0.4 points.
MAX_RANKED = 5_000
LARGEST_LOG_ODDS = 50.0  # where there is no other candidate
SMALLEST_WITHIN = 1e-6  # of a subset: what is shared out among its classes can still be told


@dataclass(frozen=True)
class Calibrator:
    """Two monotone maps from log odds to probability, and what held-out documents showed.

    A map is a line through its knots, level beyond them; without knots it is the logistic function.
    """

    # Knots of the map for the best candidate.
    top_log_odds: Floats
    top_probabilities: Floats
    # Knots of the map for the others.
    other_log_odds: Floats
    other_probabilities: Floats
    # (n_held_out,): of the best candidate of each held-out document, highest first.
    held_out_log_odds: Floats
    held_out_correct: NDArray[np.bool_]  # (n_held_out,) bool: whether it was the true class
    # (n_unknown,): of the best candidate of each held-out document if the model did not have its
    # class, highest first.
    unknown_log_odds: Floats = field(default_factory=lambda: np.zeros(0))
    marginal: bool = False  # whether documents have several labels
    # (n_pairs,): of the likely candidates of held-out documents, highest first; empty unless
    # `marginal`.
    pair_probabilities: Floats = field(default_factory=lambda: np.zeros(0))
    # (n_pairs,) bool: whether they were labels.
    pair_correct: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # As `estimate_calibration_error` has it; None where it is estimated when it is asked for.
    calibration_error: float | None = None
    n_outcomes: int = 0  # documents given to `recalibrate` since the fit
    # Of the last of these, how many were of a class that the model did not have; before the first,
    # what the model was told to expect.
    unknown_share: float = 0.0
    # Below how many terms a document is short, and how much less certain that makes it; see
    # `short_documents`.
    short_length: float = 1.0
    short_slope: float = 0.0
    # (n_ranked, q) int64: candidates of the first held-out documents, ids of the main segment's
    # classes; -1 for one that is gone. With one label per document: a hierarchy that is set later
    # learns from them.
    ranked_classes: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 1), np.int32))
    # (n_ranked, q) float32: their probabilities, as shares of those of all candidates.
    ranked_shares: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 1), np.float32))
    # (n_ranked,) int64: the class of each document; -1 where it is gone.
    ranked_truth: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int32))

    @classmethod
    def identity(cls, *, marginal: bool = False) -> Calibrator:
        """Return the calibrator that leaves the log odds as they are."""
        nothing, nobody = np.zeros(0), np.zeros(0, np.bool_)
        return cls(nothing, nothing, nothing, nothing, nothing, nobody, marginal=marginal)

    @property
    def is_calibrated(self) -> bool:
        """Whether maps were fitted; otherwise probabilities are the softmax of the scores."""
        return len(self.top_log_odds) > 0

    def with_ranked(self, other: Calibrator) -> Calibrator:
        """Return the calibrator with the documents of another that tell of hierarchies."""
        return replace(
            self,
            unknown_log_odds=other.unknown_log_odds,
            ranked_classes=other.ranked_classes,
            ranked_shares=other.ranked_shares,
            ranked_truth=other.ranked_truth,
        )

    def move_classes(self, targets: Integers) -> Calibrator:
        """Return the calibrator after each class got another id, or none: -1."""
        if not len(self.ranked_truth):
            return self
        moved = np.append(targets, -1).astype(self.ranked_classes.dtype)
        return replace(
            self,
            ranked_classes=moved[self.ranked_classes],
            ranked_truth=moved[self.ranked_truth],
        )


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
    if len(scores) < MIN_DOCUMENTS:
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


def keep_ranking(
    calibrator: Calibrator, class_ids: Integers, scores: Floats, truth: Integers, n_classes: int
) -> Calibrator:
    """Return the calibrator with the ranking of the first held-out documents.

    Parameters
    ----------
    calibrator : Calibrator
        Of these documents.
    class_ids, scores : ndarrays of shape (n_documents, q)
        Their candidates, best first.
    truth : ndarray of shape (n_documents,)
        Their classes.
    n_classes : int
        Of the model.
    """
    if not calibrator.is_calibrated:
        return calibrator
    rows = np.arange(0, len(truth), -(-len(truth) // MAX_RANKED))
    probabilities, dtype = calibrate(scores[rows], calibrator), index_dtype(n_classes)
    return replace(
        calibrator,
        ranked_classes=class_ids[rows].astype(dtype),
        ranked_shares=share_out(probabilities).astype(np.float32),
        ranked_truth=truth[rows].astype(dtype),
    )


def share_out(probabilities: Floats) -> Floats:
    """Divide each row by its sum; rows of zeros stay.

    Examples
    --------
    >>> share_out(np.array([[0.5, 0.25], [0.0, 0.0]])).round(2).tolist()
    [[0.67, 0.33], [0.0, 0.0]]
    """
    totals = probabilities.sum(axis=1, keepdims=True)
    return np.asarray(probabilities / np.where(totals > 0.0, totals, 1.0))


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
        probabilities[fold::2] = apply_map(log_odds[fold::2], *knots)
    return probabilities


def held_out_probabilities(calibrator: Calibrator) -> Floats:
    """Return the probability that each held-out document's best candidate has, highest first."""
    return apply_map(
        calibrator.held_out_log_odds, calibrator.top_log_odds, calibrator.top_probabilities
    )


def calibrate(scores: Floats, calibrator: Calibrator, lengths: Integers | None = None) -> Floats:
    """Turn scores, best first, into probabilities that fall along each row.

    They sum to at most 1, unless they are marginal. `lengths` are the distinct terms of the
    documents; where it is left out, all are of the usual length.
    """
    log_odds = label_log_odds(scores) if calibrator.marginal else candidate_log_odds(scores)
    return calibrate_log_odds(log_odds, calibrator, lengths)


def calibrate_log_odds(
    log_odds: Floats, calibrator: Calibrator, lengths: Integers | None = None
) -> Floats:
    """Turn log odds, best first, into probabilities that fall along each row; -inf is none."""
    top, others = _read_maps(log_odds[:, 0], log_odds[:, 1:], calibrator, lengths)
    others = np.minimum(others, top[:, None])
    if not calibrator.marginal:
        left, sums = 1.0 - top, others.sum(axis=1)
        excess = sums > left
        others[excess] *= (left[excess] / sums[excess])[:, None]
    return np.concatenate([top[:, None], others], axis=1)


def calibrate_within(
    scores: Floats,
    whole_scores: Floats,
    whole_within: NDArray[np.bool_],
    share_of_rest: Floats,
    calibrator: Calibrator,
    lengths: Integers,
) -> Floats:
    """Turn scores of the classes of a subset into probabilities that fall along each row.

    Of one label, the chain rule: the probability that the class is in the subset, by the ranking of
    all classes, shared out by the ranking of the subset alone. A class of the subset that is not
    among the best of all has its part of what these leave. Marginals are as without a subset: the
    classes that a label is compared with are those of the whole ranking.

    With the best of both rankings as one, twice as many as the calibrator knows, the probability of
    1,000 of 10,000 classes was 11.4 % on average where 7.7 % of the documents had one of them; by
    the ranking of all, without a part of the rest, 5.7 % (wordnet-hypernym, training documents that
    were held out; log loss of all outcomes .235 and .200).

    Parameters
    ----------
    scores : ndarray of shape (n_documents, q)
        Of the best classes of the subset, best first; -inf where it has fewer.
    whole_scores : ndarray of shape (n_documents, q)
        Of the best of all classes.
    whole_within : ndarray of shape (n_documents, q), bool
        Which of these are in the subset.
    share_of_rest : ndarray of shape (n_documents,)
        How many of the other classes are, as a share of them.
    calibrator : Calibrator
        Of all classes.
    lengths : ndarray of shape (n_documents,)
        Distinct terms of the documents.

    Returns
    -------
    ndarray of shape (n_documents, q)
        0 where there is no class. What is left of a row is the probability of everything else.
    """
    if calibrator.marginal:
        return _marginals_within(scores, whole_scores, calibrator, lengths)
    shares = calibrate(scores, calibrator, lengths)
    whole = calibrate(whole_scores, calibrator, lengths)
    totals = shares.sum(axis=1)
    inside = np.where(whole_within, whole, 0.0).sum(axis=1) / np.where(totals > 0, totals, 1.0)
    rest = probability_of_none(whole) * share_of_rest
    factors = np.maximum(np.maximum(inside, rest), SMALLEST_WITHIN)
    return np.asarray(shares * factors[:, None])


def _marginals_within(
    scores: Floats, whole_scores: Floats, calibrator: Calibrator, lengths: Integers
) -> Floats:
    """Return the marginals of classes of a subset: those that they have without it."""
    log_odds = label_log_odds(scores, whole_scores)
    top, others = _read_maps(log_odds[:, 0], log_odds, calibrator, lengths)
    # The first of a subset need not be the first of all, whose map is another.
    is_first = scores[:, 0] >= whole_scores[:, 0]
    others[:, 0] = np.where(is_first, top, others[:, 0])
    falling: Floats = np.minimum.accumulate(others, axis=1)
    return falling


def _read_maps(
    top_log_odds: Floats, other_log_odds: Floats, calibrator: Calibrator, lengths: Integers | None
) -> tuple[Floats, Floats]:
    """Read the probabilities of the best candidates and of others off their maps.

    A log odds of -inf is no candidate.
    """
    top = apply_map(top_log_odds, calibrator.top_log_odds, calibrator.top_probabilities)
    others = apply_map(other_log_odds, calibrator.other_log_odds, calibrator.other_probabilities)
    others[other_log_odds == -np.inf] = 0.0
    top[top_log_odds == -np.inf] = 0.0
    if lengths is not None:
        short = lengths, calibrator.short_length, calibrator.short_slope
        top = doubt_short(top, *short)
        # Of one label what the best candidate loses is not lost to the others; marginals are each
        # for themselves.
        others = doubt_short(others, *short) if calibrator.marginal else others
    return top, others


def probability_of_none(probabilities: Floats) -> Floats:
    """Return the probability that no candidate of a row is the class."""
    return np.asarray(np.maximum(1.0 - probabilities.sum(axis=1), 0.0))


def count_predicted(
    top: TopK,
    multilabel: bool,
    threshold: Threshold | None = None,
    max_labels: int | None = None,
) -> Integers:
    """Return how many of the first classes of each document are predicted: a label set, or one.

    `top` is as long as label sets may be; `threshold` says from which probability on to predict.
    """
    if threshold is not None:
        return np.asarray(np.count_nonzero(threshold.keeps(top)[:, :max_labels], axis=1))
    sizes = choose_set_sizes(top.scores, max_labels) if multilabel else 1
    return np.asarray(np.minimum(np.count_nonzero(top.valid, axis=1), sizes))


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
        return np.where(scores > -np.inf, LARGEST_LOG_ODDS, -np.inf)
    indptr = scores.shape[1] * np.arange(len(scores) + 1)
    rows = ListRows(indptr, np.zeros(len(scores), np.int64))
    log_odds = np.empty(scores.size)
    fill_log_odds(
        np.ravel(scores), rows, Block(0, len(scores)), np.empty(scores.shape[1]), log_odds
    )
    return _clip(log_odds.reshape(scores.shape), scores)


def label_log_odds(scores: Floats, whole_scores: Floats | None = None) -> Floats:
    """Return each candidate's score minus the log-sum-exp of those that are hardly labels.

    These are the candidates after the first `LIKELY_LABELS`; the second half where there are few.
    They are of `whole_scores`, best first, where the scores are those of a subset.
    """
    whole = scores if whole_scores is None else whole_scores
    n_candidates = whole.shape[1]
    if n_candidates == 1:
        return np.where(scores > -np.inf, LARGEST_LOG_ODDS, -np.inf)
    others = whole[:, min(LIKELY_LABELS, n_candidates // 2) :]
    highest = others[:, :1]
    total = np.zeros(len(scores))
    for column in others.T:  # one by one: the bits of a sum over rows depend on how many there are
        total += exp(column - highest[:, 0])
    log_odds = scores - highest - log(total)[:, None]
    return _clip(log_odds, scores)


def _clip(log_odds: Floats, scores: Floats) -> Floats:
    """Return finite log odds, but -inf where there is no candidate."""
    clipped = np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    clipped[scores == -np.inf] = -np.inf
    return clipped


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


def apply_map(log_odds: Floats, knots: Floats, probabilities: Floats) -> Floats:
    """Read probabilities off a map."""
    if not len(knots):
        return 1.0 / (1.0 + exp(np.minimum(-log_odds, LARGEST_LOG_ODDS)))
    return np.interp(log_odds, knots, probabilities)
