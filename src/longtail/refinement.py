"""Weights of each class, learned on near misses: what the statistics alone get wrong.

In: documents with their candidate classes and leave-one-out scores. Out: ClassWeights, sparse. Each
class solves a logistic regression of its own documents against those that have it among their
candidates. The score that the statistics give, against the log-sum-exp of the document's other
candidates, enters as a fixed offset, so the weights learn only what is missing, and a class without
any competes on its statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import refinement as kernels
from longtail.candidates import check_index
from longtail.counts import Floats, Integers, running_total, take_rows
from longtail.scoring import AdditiveScore, WeightedRows, group_pairs
from longtail.threads import even_indptr, give_back_memory, run_blocks

TOLERANCE = 0.05  # largest move of a dual variable, as a share of the cost, in the last pass
MOST_PASSES = 6
LOWEST_OFFSET = -5.0  # a candidate of less than one in 150 is no near miss
SMALLEST_WEIGHT = 0.01
DOCUMENTS_AT_ONCE = 16_384  # scored together: enough for each class to have many of them


@dataclass(frozen=True)
class ClassWeights:
    """Learned weights of each class, in CSR form: an additive correction of its score.

    Attributes
    ----------
    indptr : ndarray of shape (n_classes + 1,), int64
        Where each class's weights begin.
    indices : ndarray of shape (nnz,), int32
        Terms, ascending within a class.
    values : ndarray of shape (nnz,), float32
        Weights.
    constants : ndarray of shape (n_classes,), float64
        What every document gets.
    """

    indptr: Integers
    indices: NDArray[Any]
    values: NDArray[np.float32]
    constants: Floats

    @classmethod
    def none(cls, n_classes: int) -> ClassWeights:
        """Return the weights of classes that have not learned any."""
        return cls(
            np.zeros(n_classes + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            np.zeros(n_classes),
        )

    def validate(self, n_classes: int, n_terms: int) -> None:
        """Check that every position scoring will follow exists; a file may have broken it."""
        check_index(self.indptr, self.indices, self.values, n_classes, n_terms)

    @cached_property
    def as_score(self) -> AdditiveScore:
        """The weights as a score of their own."""
        return AdditiveScore(
            self.indptr, self.indices, self.values, np.zeros_like(self.constants), self.constants
        )

    def take_classes(self, sources: Integers) -> ClassWeights:
        """Return a class for each source: that class's weights, or none where it is -1."""
        indptr, entries = take_rows(self.indptr, sources)
        return ClassWeights(
            indptr,
            self.indices[entries],
            self.values[entries],
            np.append(self.constants, 0.0)[sources],
        )

    def select_classes(self, keep: NDArray[np.bool_]) -> ClassWeights:
        """Leave out the classes that are not kept."""
        entries = np.repeat(keep, np.diff(self.indptr))
        return ClassWeights(
            running_total(np.diff(self.indptr)[keep]),
            self.indices[entries],
            self.values[entries],
            self.constants[keep],
        )

    def replace_classes(self, others: ClassWeights, chosen: NDArray[np.bool_]) -> ClassWeights:
        """Take the chosen classes from `others` and the rest from here."""
        mine, theirs = self.select_classes(~chosen), others.select_classes(chosen)
        sizes = np.zeros(len(chosen), np.int64)
        sizes[~chosen], sizes[chosen] = np.diff(mine.indptr), np.diff(theirs.indptr)
        indptr = running_total(sizes)
        entries_chosen = np.repeat(chosen, sizes)
        indices = np.empty(indptr[-1], self.indices.dtype)
        values = np.empty(indptr[-1], np.float32)
        for source, where in ((mine, ~entries_chosen), (theirs, entries_chosen)):
            indices[where], values[where] = source.indices, source.values
        return ClassWeights(
            indptr, indices, values, np.where(chosen, others.constants, self.constants)
        )


def learn_class_weights(
    documents: WeightedRows,
    classes: Integers,
    scores_of: Callable[[slice], Floats],
    n_classes: int,
    cost: float,
    *,
    chosen: NDArray[np.bool_] | None = None,
    used: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> ClassWeights:
    """Fit the weights of each class on its near misses.

    Parameters
    ----------
    documents : WeightedRows
        All documents.
    classes : ndarray of shape (n_documents, width)
        The document's own class in column 0, then its candidates.
    scores_of : callable
        Gives, for a slice of the documents, their scores by the statistics, shape (length, width),
        the own class without the document. All at once would be the largest array of a fit.
    n_classes : int
        K.
    cost : float
        Weight of each pair's loss.
    chosen : ndarray of shape (n_classes,), bool, optional
        The classes to fit; all when left out.
    used : ndarray of shape (n_documents,), bool, optional
        The documents to learn from; all when left out.
    n_jobs : int or None
        Number of threads; the weights are the same for any.

    Returns
    -------
    ClassWeights
    """
    n_documents, width = classes.shape
    chosen = np.ones(n_classes, np.bool_) if chosen is None else chosen
    used = np.ones(n_documents, np.bool_) if used is None else used
    offsets = _log_odds(classes.shape, scores_of, n_jobs)
    starts, pairs = _list_near_misses(classes, offsets, chosen, used)
    give_back_memory()  # threads do not take what others have freed
    sizes, constants = np.zeros(n_classes, np.int64), np.zeros(n_classes)
    terms_of: dict[int, NDArray[np.int32]] = {}
    values_of: dict[int, NDArray[np.float32]] = {}

    def fit_block(first: int, last: int) -> None:
        n_terms = documents.rows.n_terms
        longest = int(np.diff(starts[first : last + 1]).max(initial=0))
        scratch = np.empty(longest), np.empty(longest), np.empty(longest, np.bool_)
        buffer = np.zeros(n_terms)
        # A class may have every term; with room for twice as many some classes fit each time.
        terms, values = np.empty(2 * n_terms, np.int32), np.empty(2 * n_terms, np.float32)
        while first < last:
            begin = first
            first = kernels.fit_classes(
                documents.rows.indptr,
                documents.rows.indices,
                documents.weights,
                width,
                starts,
                pairs,
                offsets.reshape(-1),
                cost,
                TOLERANCE * cost,
                MOST_PASSES,
                SMALLEST_WEIGHT,
                first,
                last,
                0,
                *scratch,
                buffer,
                terms,
                values,
                sizes,
                constants,
            )
            size = int(sizes[begin:first].sum())
            terms_of[begin], values_of[begin] = terms[:size].copy(), values[:size].copy()

    run_blocks(fit_block, starts, n_jobs)
    return ClassWeights(running_total(sizes), _join(terms_of), _join(values_of), constants)


def _log_odds(
    shape: tuple[int, ...], scores_of: Callable[[slice], Floats], n_jobs: int | None
) -> NDArray[np.float32]:
    """Return each score against the log-sum-exp of the others in its row."""
    offsets = np.empty(shape, np.float32)
    for start in range(0, len(offsets), DOCUMENTS_AT_ONCE):
        part = slice(start, min(start + DOCUMENTS_AT_ONCE, len(offsets)))
        offsets[part] = _log_odds_of(scores_of(part), n_jobs)
    return offsets


def _log_odds_of(scores: Floats, n_jobs: int | None) -> Floats:
    """Return the log odds of some documents; in 64 bits, so that the kernel is compiled once."""
    log_odds = np.empty(scores.shape)
    run_blocks(
        lambda first, last: kernels.fill_offsets(scores, first, last, log_odds),
        even_indptr(len(scores)),
        n_jobs,
    )
    return log_odds


def _list_near_misses(
    classes: NDArray[Any],
    offsets: NDArray[np.float32],
    chosen: NDArray[np.bool_],
    used: NDArray[np.bool_],
) -> tuple[Integers, NDArray[Any]]:
    """List the pairs `row * width + column` that each class learns from, and where it begins."""
    close = offsets >= LOWEST_OFFSET
    close[:, 0] = True  # the document's own class
    close &= chosen[classes] & used[:, None]
    return group_pairs(np.where(close, classes, -1), len(chosen))


def _join(pieces: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Put pieces together in the order of their classes; empties `pieces`."""
    joined = np.concatenate([pieces[first] for first in sorted(pieces)])
    pieces.clear()
    give_back_memory()
    return joined
