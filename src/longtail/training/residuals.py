"""Residuals of each class, learned on hard negatives: what the statistics alone get wrong.

In: documents with their candidate classes and leave-one-out scores. Out: ClassResiduals, sparse.
Each class solves a logistic regression of its documents against those that have it among their
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
from longtail._kernels.types import Block, DualScratch, DualSolver, Pairs, ResidualRows
from longtail._parallel import parallel_for, release_memory, uniform_work
from longtail.scoring.features import group_by_class
from longtail.scoring.linear import ClassResiduals
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, offsets_from_lengths

TOLERANCE = 0.05  # largest move of a dual variable, as a share of the cost, in the last pass

MAX_PASSES = 6  # over a class's pairs: bounds the work on classes that converge slowly

LOWEST_LOG_ODDS = -5.0  # a candidate of less than one in 150 is no hard negative

SMALLEST_WEIGHT = 0.01  # smaller ones are dropped, which keeps the residuals sparse

BATCH_DOCUMENTS = 16_384  # scored together: enough for each class to have many of them


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
    """Fit the residuals of each class on its documents and hard negatives.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    classes : ndarray of shape (n_documents, n_columns)
        True class in column 0, then the candidates.
    scores_of : callable
        Gives, for a slice of the documents, their scores by the statistics, shape
        (length, n_columns), the true class without the document. All together would be the largest
        array of a fit.
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
    ClassResiduals
    """
    n_documents = len(classes)
    class_mask = np.ones(n_classes, np.bool_) if class_mask is None else class_mask
    document_mask = np.ones(n_documents, np.bool_) if document_mask is None else document_mask
    log_odds = _log_odds(classes.shape, scores_of, n_jobs)
    pairs = _group_hard_negatives(classes, log_odds, class_mask, document_mask)
    release_memory()  # threads do not reuse what others have freed
    sizes, biases = np.zeros(n_classes, np.int64), np.zeros(n_classes)
    indices_of: dict[int, NDArray[np.int32]] = {}
    weights_of: dict[int, NDArray[np.float32]] = {}
    n_terms = documents.rows.n_terms
    solver = DualSolver(cost, TOLERANCE * cost, MAX_PASSES, SMALLEST_WEIGHT)

    def fit_block(first: int, last: int) -> None:
        longest = int(np.diff(pairs.starts[first : last + 1]).max(initial=0))
        scratch = DualScratch(
            np.empty(longest), np.empty(longest), np.empty(longest, np.bool_), np.zeros(n_terms)
        )
        # A class may have every term; with space for twice as many some classes fit each time.
        rows = ResidualRows(
            np.empty(2 * n_terms, np.int32), np.empty(2 * n_terms, np.float32), sizes, biases
        )
        while first < last:
            begin = first
            first = kernels.fit_class_residuals(
                documents.vectors,
                pairs,
                log_odds.reshape(-1),
                solver,
                Block(first, last),
                scratch,
                rows,
            )
            size = int(sizes[begin:first].sum())
            indices_of[begin], weights_of[begin] = (
                rows.indices[:size].copy(),
                rows.weights[:size].copy(),
            )

    parallel_for(fit_block, pairs.starts, n_jobs)
    return ClassResiduals(
        offsets_from_lengths(sizes), _concatenate(indices_of), _concatenate(weights_of), biases
    )


def _log_odds(
    shape: tuple[int, ...], scores_of: Callable[[slice], Floats], n_jobs: int | None
) -> NDArray[np.float32]:
    """Return each score against the log-sum-exp of the others in its row."""
    log_odds = np.empty(shape, np.float32)
    for start in range(0, len(log_odds), BATCH_DOCUMENTS):
        batch = slice(start, min(start + BATCH_DOCUMENTS, len(log_odds)))
        log_odds[batch] = _log_odds_of(scores_of(batch), n_jobs)
    return log_odds


def _log_odds_of(scores: Floats, n_jobs: int | None) -> Floats:
    """Return the log odds of some documents; in 64 bits, so that the kernel is compiled once."""
    log_odds = np.empty(scores.shape)
    parallel_for(
        lambda first, last: kernels.fill_log_odds(scores, Block(first, last), log_odds),
        uniform_work(len(scores)),
        n_jobs,
    )
    return log_odds


def _group_hard_negatives(
    classes: NDArray[Any],
    log_odds: NDArray[np.float32],
    class_mask: NDArray[np.bool_],
    document_mask: NDArray[np.bool_],
) -> Pairs:
    """List the pairs that each class learns from: its documents and its hard negatives."""
    close = log_odds >= LOWEST_LOG_ODDS
    close[:, 0] = True  # the true class
    close &= class_mask[classes] & document_mask[:, None]
    return group_by_class(np.where(close, classes, -1), len(class_mask))


def _concatenate(arrays: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Put arrays together in the order of their classes; empties `arrays`."""
    joined = np.concatenate([arrays[first] for first in sorted(arrays)])
    arrays.clear()
    release_memory()
    return joined
