"""What a model learns from being taught: what it would have said of each document before.

In: documents that are about to be taught, and their classes. Out: `Observed`, numbers that go into
the log beside the documents; their sums do not depend on the order. They take effect when what all
classes share is brought up to date: probabilities follow the outcomes, and two weights say how much
is left of what a fit learned on documents of the past, beside features that hold for any class: the
mixture of features by the size of the class, and residuals with separators. Classes that come and
grow after the fit make both of them worth less.

Each document's loss, the softmax over its candidates, is taken as the quadratic function that it is
like at the weights of the time, so the minimum of all losses follows from sums of six numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import exp
from longtail._labels import LabelSets
from longtail.model.entry import Documents
from longtail.model.features import score_features, weigh_by_size
from longtail.model.overlay import overlay_of
from longtail.model.scorer import ClassResiduals, score_pairs
from longtail.model.state import LongTailState
from longtail.model.weighting import Profile
from longtail.sparse import CountMatrix, Floats, Integers, offsets_from_lengths, splice_rows
from longtail.training.calibration import calibrate, candidate_log_odds, label_log_odds
from longtail.training.mixture import log_sizes
from longtail.training.observed import (
    CORRECT,
    FOUND,
    MAX_OBSERVED,
    MISSED,
    UNKNOWN,
    Observed,
)
from longtail.training.outcomes import document_keys
from longtail.training.ranking import rank_documents

DIGITS = 6  # of the numbers of documents, which a journal keeps as text

Flags = NDArray[np.bool_]


def observe(
    state: LongTailState,
    counts: CountMatrix,
    class_ids: Integers,
    candidates: int,
    n_jobs: int | None = None,
    is_told: Flags | None = None,
) -> Observed:
    """Return what a model says of documents, beside what they are.

    Parameters
    ----------
    state : LongTailState
        The model before they are taught.
    counts : CountMatrix
        The documents; terms that the model does not have yet are passed over.
    class_ids : ndarray of shape (n_documents,)
        Their classes, -1 for one that the model does not have. A document with several labels
        is there once for each of them, one after the other.
    candidates : int
        As the estimator has it.
    n_jobs : int or None
        Number of threads.
    is_told : ndarray of shape (n_documents,), bool, optional
        Documents whose outcome `recalibrate` was told already.
    """
    counts = _known_part(counts, len(state.term_weights))
    firsts = _find_documents(counts) if state.several else np.arange(counts.n_documents)
    firsts = firsts[state.have_evidence(counts.gather(firsts))] if len(firsts) else firsts
    if len(firsts) > MAX_OBSERVED:
        firsts = firsts[np.arange(MAX_OBSERVED) * len(firsts) // MAX_OBSERVED]
    if not len(firsts) or len(state.all_classes) < 2:
        return Observed()
    ends = np.append(firsts[1:], len(class_ids)) if state.several else firsts + 1
    counts = counts.gather(firsts)
    found, scores = rank_documents(state, counts, candidates, len(state.all_classes), n_jobs)
    answered = np.flatnonzero(found[:, 0] >= 0)
    if len(answered) < len(found):
        counts, found, scores = counts.gather(answered), found[answered], scores[answered]
        firsts, ends = firsts[answered], ends[answered]
    correct = np.zeros(found.shape, np.bool_)
    for row, (first, end) in enumerate(zip(firsts.tolist(), ends.tolist(), strict=True)):
        correct[row] = np.isin(found[row], class_ids[first:end])
    correct &= found >= 0
    lengths = state.count_terms(counts)
    probabilities = calibrate(scores, state.calibrator, lengths)
    log_odds = label_log_odds(scores) if state.several else candidate_log_odds(scores)
    results = np.full(len(found), MISSED)
    results[class_ids[firsts] < 0] = UNKNOWN
    results[correct.any(axis=1)] = FOUND
    results[correct[:, 0]] = CORRECT
    others = np.zeros(len(found))
    for column in probabilities[:, 1:].T:
        others += column
    documents = np.column_stack(
        [log_odds[:, 0], probabilities[:, 0], others, results, lengths]
    ).astype(np.float64)
    if is_told is not None:
        documents = documents[~is_told[firsts]]
    parts = _split(state, counts, found, n_jobs)
    return Observed(
        documents.round(DIGITS), _sum_losses(scores, parts, correct, state.in_use.weights)
    )


def find_told(state: LongTailState, counts: CountMatrix, labels: NDArray[Any]) -> Flags | None:
    """Return which documents `recalibrate` was told the label of; None where it was told none."""
    if state.calibrations is None:
        return None
    told = np.concatenate([seen.keys for seen in state.calibrations.outcomes.values()])
    found: Flags = np.isin(
        document_keys(_known_part(counts, len(state.term_weights)), labels), told
    )
    return found


def _known_part(counts: CountMatrix, n_terms: int) -> CountMatrix:
    """Return the documents without terms that are about to enter."""
    known = counts.indices < n_terms
    if known.all():
        return replace(counts, n_terms=n_terms)
    n_before = np.append(0, np.cumsum(known))
    return replace(
        counts,
        indptr=n_before[counts.indptr],
        indices=counts.indices[known],
        data=counts.data[known],
        n_terms=n_terms,
    )


def _find_documents(counts: CountMatrix) -> Integers:
    """Return the first row of each document; rows that are alike and follow each other are one."""
    sizes = np.diff(counts.indptr)
    firsts = [0]
    for row in range(1, counts.n_documents):
        a, b, c = counts.indptr[row - 1 : row + 2].tolist()
        same = sizes[row] == sizes[row - 1] and (
            np.array_equal(counts.indices[a:b], counts.indices[b:c])
            and np.array_equal(counts.data[a:b], counts.data[b:c])
        )
        if not same:
            firsts.append(row)
    return np.array(firsts if counts.n_documents else [], np.int64)


def _split(
    state: LongTailState, counts: CountMatrix, found: Integers, n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Return what the mixture by size adds to the score of each pair, and what residuals do."""
    documents = state.weigh(counts, n_jobs)
    there = found >= 0
    distinct, local = np.unique(found[there], return_inverse=True)
    classes = np.full(found.shape, -1, np.int64)
    classes[there] = local
    sums = state.gather_statistics(distinct)
    by_size = np.zeros(found.shape)
    rows = state.check.kept_mixture.features
    if rows.any():
        profile = Profile(sums, state.current_corpus, state.shares)
        none = np.full(counts.n_documents, -1)
        features = score_features(
            documents, np.arange(counts.n_documents), classes, none, profile, n_jobs
        )
        features[~there] = 0.0
        sizes = np.append(log_sizes(sums.class_sizes), 0.0)[classes]
        for column, weights in enumerate(rows.T):
            by_size += features[:, :, column] * weigh_by_size(weights, sizes)
    overlay = overlay_of(state)
    tables: list[Any] = [state.residuals, *(tier.residuals for tier in overlay.tiers)]
    residuals: ClassResiduals = splice_rows(tables, *overlay.locate(overlay.ids[distinct]))
    weighed = replace(documents, weights=documents.residual_inputs)
    of_residuals = score_pairs(weighed, classes, residuals.as_scorer, n_jobs)
    return np.where(there, by_size, 0.0), np.where(there, of_residuals, 0.0)


def _sum_losses(
    scores: Floats, parts: tuple[Floats, Floats], correct: Flags, weights: Floats
) -> Floats:
    """Return the sums of the losses of labels among the candidates; see `Observed`.

    A label competes with the candidates that are none.
    """
    sums = np.zeros(6)
    for row, column in np.argwhere(correct).tolist():
        listed = np.flatnonzero(
            (~correct[row] | (np.arange(len(scores[row])) == column)) & (scores[row] > -np.inf)
        )
        if len(listed) < 2:
            continue
        z = scores[row, listed]
        shares = exp(z - z.max())
        shares /= shares.sum()
        first, second = (
            (values[row, listed] - values[row, column]) / weight
            for values, weight in zip(parts, weights.tolist(), strict=True)
        )
        mean_first, mean_second = (shares * first).sum(), (shares * second).sum()
        a = (shares * first * first).sum() - mean_first**2
        b = (shares * first * second).sum() - mean_first * mean_second
        c = (shares * second * second).sum() - mean_second**2
        at = a * weights[0] + b * weights[1], b * weights[0] + c * weights[1]
        sums += np.array([a, b, c, at[0] - mean_first, at[1] - mean_second, 1.0])
    return sums


def take_effect(state: LongTailState, *, calibrate: bool = True) -> LongTailState:
    """Let what was observed count; the state is of one segment, its scorer is out of date then."""
    in_use = state.in_use
    if not in_use.added.any():
        return state
    learned = in_use.learn()
    of_features, of_residuals = (learned.weights / in_use.weights).tolist()
    scale = np.full(len(state.classes), of_residuals)
    calibrator = in_use.waiting.count(state.calibrator) if calibrate else state.calibrator
    if calibrate and calibrator is state.calibrator and not state.several:  # they are too few
        learned = replace(learned, outcomes=in_use.outcomes)
    return replace(
        state,
        calibrator=calibrator,
        check=state.check.scale_features(of_features),
        residuals=state.residuals.scale(scale, scale),
        in_use=learned,
    )


def pending_documents(state: LongTailState) -> tuple[CountMatrix, LabelSets] | None:
    """Return the documents of the pending entries, in their order, with their labels of today."""
    overlay = state.overlay
    entries = [entry for _, entry in sorted(state.pending.items())]
    if overlay is None or not entries:
        return None
    taught = Documents.join(entries, 1, len(state.term_weights))
    ids = overlay.outer_ids[taught.class_ids]
    there = np.flatnonzero(ids >= 0)
    counts, ids = taught.counts.gather(there), ids[there]
    if not state.several:
        return counts, LabelSets.single(ids, state.all_classes)
    firsts = _find_documents(counts)
    indptr = np.append(firsts, len(ids))
    sets = [
        np.unique(ids[a:b]) for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    ]
    sizes = np.array([len(row) for row in sets], np.int64)
    return counts.gather(firsts), LabelSets(
        offsets_from_lengths(sizes), np.concatenate(sets), state.all_classes
    )
