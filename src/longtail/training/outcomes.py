"""Calibration in use: what became of predictions that were made before the class was known.

In: a `Calibrator` and outcomes. Out: another one. Documents of classes that the model does not have
count as errors, which they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.calibration import (
    MIN_DOCUMENTS,
    Calibrator,
    calibrate,
    candidate_log_odds,
    fit_map,
)
from longtail.training.short_documents import find_short_length

# Outcomes that a calibration in use is fitted to. Calibration error on cve-stream 2016 and 2017 in
# batches of 250: .067, with 2,000 of them .066; the fewer, the sooner it follows. With as many
# documents of unknown classes among those of the fit as the first outcomes had .047; where the
# model was told before the first prediction .035 (by the last 1,000 documents of the fit).
OUTCOMES_KEPT = 1_000
PRIOR_OUTCOMES = 10.0  # candidates that count for the probabilities of the others as they are
# The golden ratio: its multiples, without their whole part, spread evenly however many there are.
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What a model said of documents before it was taught them, and what they were.

    Attributes
    ----------
    scores : ndarray of shape (n_documents, q), float64
        Of their candidates, best first; -inf where there are fewer.
    places : ndarray of shape (n_documents,), int64
        Which candidate was the class; -1 for none of them.
    is_unknown : ndarray of shape (n_documents,), bool
        Whether the model did not have the class.
    lengths : ndarray of shape (n_documents,), int64
        Distinct terms of the documents.
    keys : ndarray of shape (n_documents,), int64
        By which they are known when they are taught, so that none counts twice.
    """

    scores: Floats
    positions: Integers
    is_unknown: NDArray[np.bool_]
    lengths: Integers
    keys: Integers

    def apply(self, calibrator: Calibrator) -> Calibrator:
        """Return a calibrator that has seen them."""
        correct = np.arange(self.scores.shape[1]) == self.positions[:, None]
        n_unknown = int(np.count_nonzero(self.is_unknown))
        return recalibrate(calibrator, self.scores, correct, n_unknown, self.lengths)


def document_keys(counts: CountMatrix, labels: NDArray[Any]) -> Integers:
    """Return a hash of each document with its label."""
    keys, bounds = np.empty(counts.n_documents, np.int64), counts.indptr.tolist()
    for row, label in enumerate(labels.tolist()):
        entries = slice(bounds[row], bounds[row + 1])
        hashed = blake2b(repr(label).encode("utf-8", "surrogatepass"), digest_size=8)
        hashed.update(counts.indices[entries].astype("<i8").tobytes())
        hashed.update(counts.data[entries].astype("<f8").tobytes())
        keys[row] = int.from_bytes(hashed.digest(), "little", signed=True)
    return keys


@dataclass(frozen=True, eq=False)
class Calibrations:
    """The calibrator of the base, and the outcomes of each live entry since, by its number."""

    first: Calibrator
    outcomes: dict[int, Outcomes]

    def change(
        self, now: Calibrator, plus: Mapping[int, Outcomes], minus: Mapping[int, Outcomes]
    ) -> tuple[Calibrator, Calibrations]:
        """Return the calibrator after outcomes came and went, and those that there are.

        `now` has seen those before.
        """
        left = {
            change_number: seen
            for change_number, seen in self.outcomes.items()
            if change_number not in minus
        }
        outcomes = dict(sorted((left | dict(plus)).items()))
        to_see = [outcomes[change_number] for change_number in sorted(plus)]
        if minus or max(self.outcomes, default=0) > min(plus):
            now, to_see = self.first, list(outcomes.values())
        for seen in to_see:
            now = seen.apply(now)
        return now, Calibrations(self.first, outcomes)


def expect_unknown(calibrator: Calibrator, share: float) -> Calibrator:
    """Return a calibrator that expects a share of documents of classes the model does not have.

    How these score is what held-out documents score without their class.
    """
    n_known, n_unknown = len(calibrator.held_out_log_odds), len(calibrator.unknown_log_odds)
    rows = choose_unknown(n_known, share, n_unknown)
    n_added = len(rows)
    if not (n_added and calibrator.is_calibrated):
        return calibrator
    log_odds = np.concatenate([calibrator.held_out_log_odds, calibrator.unknown_log_odds[rows]])
    hits = np.concatenate([calibrator.held_out_correct, np.zeros(n_added, np.bool_)])
    others = calibrator.other_probabilities * (n_known / (n_known + n_added))
    return _with_outcomes(replace(calibrator, other_probabilities=others), log_odds, hits)


def choose_unknown(n_known: int, share: float, n_unknown: int | None = None) -> Integers:
    """Return which documents, of `n_unknown`, stand for those of unknown classes beside the others.

    Spread evenly; they are a share of all, and some are there several times where that is large.
    """
    n_unknown = n_known if n_unknown is None else n_unknown
    n_added = min(round(n_known * share / max(1.0 - share, 0.01)), 100 * n_known)
    return np.linspace(0, n_unknown - 1, n_added if n_unknown else 0).round().astype(np.int64)


def thin_outcomes(calibrator: Calibrator, n_kept: int) -> Calibrator:
    """Let the outcomes so far make room for others; the maps stay as they are until these come."""
    stay = _make_room(calibrator, n_kept)
    return replace(
        calibrator,
        held_out_log_odds=calibrator.held_out_log_odds[stay],
        held_out_correct=calibrator.held_out_correct[stay],
    )


def _make_room(calibrator: Calibrator, n_kept: int) -> NDArray[np.bool_]:
    """Return which outcomes stay: those that go are spread evenly over the log odds.

    Where they begin moves with the number of outcomes so far. If it did not, outcomes that come one
    by one would always displace the one in the middle, and those of the fit would stay for good
    where log odds are high or low (calibration error on cve-stream 2018, one document at a time:
    .081 instead of .027).
    """
    n_outcomes = len(calibrator.held_out_log_odds)
    n_gone = max(n_outcomes - n_kept, 0)
    stay = np.ones(n_outcomes, np.bool_)
    phase = calibrator.n_outcomes * _GOLDEN % 1.0
    gone = ((np.arange(n_gone) + phase) * (n_outcomes / max(n_gone, 1))).astype(np.int64)
    stay[np.minimum(gone, n_outcomes - 1)] = False  # whatever rounding does
    return stay


def _with_outcomes(calibrator: Calibrator, log_odds: Floats, hits: NDArray[np.bool_]) -> Calibrator:
    """Fit the map of the best candidate to outcomes, which take the place of the held-out ones."""
    order = np.argsort(-log_odds, kind="stable")
    knots, heights = fit_map(log_odds, hits)
    return replace(
        calibrator,
        top_log_odds=knots,
        top_probabilities=heights,
        held_out_log_odds=log_odds[order],
        held_out_correct=hits[order],
        calibration_error=None,  # takes two more maps, and is seldom asked for after each outcome
    )


def recalibrate(
    calibrator: Calibrator,
    scores: Floats,
    correct: NDArray[np.bool_],
    n_unknown: int = 0,
    lengths: Integers | None = None,
) -> Calibrator:
    """Fit the map of the best candidate to newer outcomes; older ones make room for them.

    Parameters
    ----------
    calibrator : Calibrator
        Its held-out documents are the older outcomes, at most `OUTCOMES_KEPT` with the new ones:
        every so many of them, from the highest log odds to the lowest, are kept.
    scores : ndarray of shape (n_documents, q)
        Best first, of documents that the model did not know.
    correct : ndarray of shape (n_documents, q), bool
        Which candidate is the class; none where the model does not have it.
    n_unknown : int, default=0
        Of how many documents it does not.
    lengths : ndarray of shape (n_documents,), optional
        Distinct terms of the documents.

    Returns
    -------
    Calibrator
        The probabilities of the others are multiplied by what they were off. The same as before
        where there are fewer than `MIN_DOCUMENTS` outcomes. With the first outcomes of a model
        that was not told what to expect, some of the held-out documents of the fit, all of known
        classes, make room for unknown ones: the share of these that the outcomes have.
    """
    if not len(scores):
        return calibrator
    calibrator = expect_what_came(calibrator, len(scores), n_unknown)
    new = candidate_log_odds(scores)
    expected = float(calibrate(scores, calibrator, lengths)[:, 1:].sum())
    counted = TopOutcomes(
        new[:, 0], correct[:, 0], n_unknown, lengths, expected, float(correct[:, 1:].sum())
    )
    changed = count_outcomes(calibrator, counted)
    if changed is calibrator or calibrator.is_calibrated:
        return changed
    others = fit_map(new[:, 1:].ravel(), correct[:, 1:].ravel())
    return replace(changed, other_log_odds=others[0], other_probabilities=others[1])


class TopOutcomes(NamedTuple):
    """What became of best candidates.

    Attributes
    ----------
    log_odds : ndarray of shape (n_documents,), float64
        Of the best candidate of each document.
    correct : ndarray of shape (n_documents,), bool
        Whether it was the class.
    n_unknown : int
        Documents of classes that the model did not have.
    lengths : ndarray of shape (n_documents,) or None
        Distinct terms of the documents.
    expected, found : float
        How many of the other candidates were expected to be the class, and how many were.
    """

    log_odds: Floats
    correct: NDArray[np.bool_]
    n_unknown: int
    lengths: Integers | None
    expected: float
    found: float


def count_outcomes(calibrator: Calibrator, new: TopOutcomes) -> Calibrator:
    """Fit the map of the best candidate to newer outcomes; see `recalibrate`."""
    stay = _make_room(calibrator, max(OUTCOMES_KEPT - len(new.log_odds), 0))
    log_odds = np.concatenate([calibrator.held_out_log_odds[stay], new.log_odds])
    hits = np.concatenate([calibrator.held_out_correct[stay], new.correct])
    if len(log_odds) < MIN_DOCUMENTS:
        return calibrator
    calibrator = _count_outcomes(calibrator, len(new.log_odds), new.n_unknown)
    if new.lengths is not None and len(new.lengths) >= MIN_DOCUMENTS:
        # The map is now learned on these as well: what is usual among them is not short.
        short_length = min(calibrator.short_length, find_short_length(new.lengths))
        calibrator = replace(calibrator, short_length=short_length)
    factor = (new.found + PRIOR_OUTCOMES) / (new.expected + PRIOR_OUTCOMES)
    others = np.clip(calibrator.other_probabilities * factor, 0, 1)
    return _with_outcomes(replace(calibrator, other_probabilities=others), log_odds, hits)


def expect_what_came(calibrator: Calibrator, n_documents: int, n_unknown: int) -> Calibrator:
    """Let held-out documents make room for unknown ones where the first outcomes have some."""
    if calibrator.n_outcomes or calibrator.unknown_share or not n_unknown:
        return calibrator
    share = n_unknown / max(n_documents, MIN_DOCUMENTS)
    n_held_out = len(calibrator.held_out_log_odds)
    return thin_outcomes(expect_unknown(calibrator, share), n_held_out)


def _count_outcomes(calibrator: Calibrator, n_new: int, n_unknown: int) -> Calibrator:
    """Return the calibrator with so many outcomes more; their share of unknown classes follows."""
    n_old = min(calibrator.n_outcomes, max(OUTCOMES_KEPT - n_new, 0))
    share = (n_old * calibrator.unknown_share + n_unknown) / (n_old + n_new)
    n_outcomes = calibrator.n_outcomes + n_new
    return replace(calibrator, n_outcomes=n_outcomes, unknown_share=min(share, 1.0))
