"""Weights of each class, learned on near misses: what the statistics alone get wrong.

In: documents with their candidate classes and leave-one-out scores. Out: ClassWeights, sparse. Each
class solves a logistic regression of its own documents against those that have it among their
candidates. The score that the statistics give, against the log-sum-exp of the document's other
candidates, enters as a fixed offset, so the weights learn only what is missing, and a class without
any competes on its statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import residuals as kernels
from longtail._parallel import parallel_for, release_memory, uniform_work
from longtail.scoring.features import group_by_class
from longtail.scoring.linear import ClassResiduals
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, offsets_from_lengths

TOLERANCE = 0.05  # largest move of a dual variable, as a share of the cost, in the last pass

MOST_PASSES = 6

LOWEST_OFFSET = -5.0  # a candidate of less than one in 150 is no near miss

SMALLEST_WEIGHT = 0.01

DOCUMENTS_AT_ONCE = 16_384  # scored together: enough for each class to have many of them


def fit_residuals(
    documents: WeightedDocuments,
    classes: Integers,
    scores_of: Callable[[slice], Floats],
    n_classes: int,
    cost: float,
    *,
    class_mask: NDArray[np.bool_] | None = None,
    document_mask: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> ClassResiduals:
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
    class_mask : ndarray of shape (n_classes,), bool, optional
        The classes to fit; all when left out.
    document_mask : ndarray of shape (n_documents,), bool, optional
        The documents to learn from; all when left out.
    n_jobs : int or None
        Number of threads; the weights are the same for any.

    Returns
    -------
    ClassWeights
    """
    n_documents, width = classes.shape
    class_mask = np.ones(n_classes, np.bool_) if class_mask is None else class_mask
    document_mask = np.ones(n_documents, np.bool_) if document_mask is None else document_mask
    offsets = _log_odds(classes.shape, scores_of, n_jobs)
    starts, pairs = _group_hard_negatives(classes, offsets, class_mask, document_mask)
    release_memory()  # threads do not take what others have freed
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
            first = kernels.fit_class_residuals(
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

    parallel_for(fit_block, starts, n_jobs)
    return ClassResiduals(offsets_from_lengths(sizes), _join(terms_of), _join(values_of), constants)


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
    parallel_for(
        lambda first, last: kernels.fill_log_odds(scores, first, last, log_odds),
        uniform_work(len(scores)),
        n_jobs,
    )
    return log_odds


def _group_hard_negatives(
    classes: NDArray[Any],
    offsets: NDArray[np.float32],
    class_mask: NDArray[np.bool_],
    document_mask: NDArray[np.bool_],
) -> tuple[Integers, NDArray[Any]]:
    """List the pairs `row * width + column` that each class learns from, and where it begins."""
    close = offsets >= LOWEST_OFFSET
    close[:, 0] = True  # the document's own class
    close &= class_mask[classes] & document_mask[:, None]
    return group_by_class(np.where(close, classes, -1), len(class_mask))


def _join(pieces: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Put pieces together in the order of their classes; empties `pieces`."""
    joined = np.concatenate([pieces[first] for first in sorted(pieces)])
    pieces.clear()
    release_memory()
    return joined
