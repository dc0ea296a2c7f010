"""Residuals of each class, learned on hard negatives: what the statistics alone get wrong.

In: documents with their candidate classes and leave-one-out scores. Out: ClassResiduals, sparse.
Each class solves a logistic regression of its documents against those that have it among their
candidates. The score that the statistics give, against the log-sum-exp of the document's other
candidates, enters as a fixed offset, so the weights learn only what is missing, and a class without
any competes on its statistics.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import residuals as kernels
from longtail._kernels.types import (
    Block,
    ClassExamples,
    DualScratch,
    DualSolver,
    ListRows,
    ResidualRows,
)
from longtail._parallel import parallel_for, release_memory, uniform_work
from longtail._progress import advance
from longtail.model.features import group_by_class
from longtail.model.scorer import ClassResiduals
from longtail.model.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, index_dtype, join_arrays, offsets_from_lengths
from longtail.training.negatives import MinedPairs

TOLERANCE = 0.05  # largest move of a dual variable, as a share of the cost, in the last pass

MAX_PASSES = 6  # over a class's pairs: bounds the work on classes that converge slowly

LOWEST_LOG_ODDS = -5.0  # a candidate of less than one in 150 is no hard negative

# With several labels per document most are far behind: half of them by 3.6 on tib-subjects. A
# residual that makes up for all of that is too large on new documents: without this bound residuals
# gained nothing in precision at 1 there.
LOWEST_LABEL = -1.5

LARGEST_LOG_ODDS = 50.0  # of a label that nothing competes with

# Smaller ones are dropped, which keeps the residuals sparse: a third of the entries of 0.01. The
# figures are in docs/measurements/accuracy.md ("Small weights").
SMALLEST_WEIGHT = 0.05

SORT_BUCKETS = 4_096  # terms of a class fill them about once

BATCH_DOCUMENTS = 16_384  # scored together: enough for each class to have many of them


def solve_residuals(
    documents: WeightedDocuments,
    mined: MinedPairs,
    log_odds: NDArray[np.float32],
    n_classes: int,
    cost: float,
    class_mask: NDArray[np.bool_] | None = None,
    document_mask: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> ClassResiduals:
    """Fit the residuals of each class on its documents and hard negatives.

    A class learns from the documents that have it among their candidates, in their order: fitted
    on these alone, it gets the same bits.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    mined : MinedPairs
        The labels and the negatives of each document.
    log_odds : ndarray of shape (n_pairs,), float32
        Of all pairs, by `batch_log_odds`.
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
    class_mask = np.ones(n_classes, np.bool_) if class_mask is None else class_mask
    hard = is_hard(mined, log_odds)
    examples = group_examples(mined, log_odds, hard, class_mask, document_mask)
    del hard
    del log_odds
    release_memory()  # threads do not reuse what others have freed
    n_terms = documents.rows.n_terms
    solver = DualSolver(cost, TOLERANCE * cost, MAX_PASSES, SMALLEST_WEIGHT)

    def prepare(first: int, last: int) -> Callable[[Block, ResidualRows], int]:
        longest = int(np.diff(examples.starts[first : last + 1]).max(initial=0))
        scratch = DualScratch(
            np.empty(longest), np.empty(longest), np.empty(longest, np.bool_), np.zeros(n_terms)
        )
        return lambda block, rows: kernels.fit_class_residuals(
            documents.residual_vectors, examples, solver, block, scratch, rows
        )

    return collect_rows(prepare, examples.starts, n_terms, n_jobs)


def collect_rows(
    prepare: Callable[[int, int], Callable[[Block, ResidualRows], int]],
    work: Integers,
    n_terms: int,
    n_jobs: int | None,
) -> ClassResiduals:
    """Let a kernel fill the sparse rows of all classes, block by block.

    Parameters
    ----------
    prepare : callable
        Gives, for the first and the last class of a block, a function that fits classes as far as
        the rows have capacity, and returns the next class.
    work : ndarray of shape (n_classes + 1,)
        Running total of the work of the classes.
    n_terms : int
        V.
    n_jobs : int or None
        Number of threads.
    """
    n_classes = len(work) - 1
    sizes, biases = np.zeros(n_classes, np.int64), np.zeros(n_classes)
    indices_of: dict[int, NDArray[np.int32]] = {}
    weights_of: dict[int, NDArray[np.float32]] = {}

    def fit_block(first: int, last: int) -> None:
        fit = prepare(first, last)
        # A class may have every term, and one entry more is written over; with space for twice as
        # many some classes fit each time.
        rows = ResidualRows(
            np.empty(2 * n_terms + 1, np.int32), np.empty(2 * n_terms + 1, np.float32),
            sizes, biases,
            np.empty(SORT_BUCKETS, np.int64), np.empty(n_terms, np.int32),
        )  # fmt: skip
        while first < last:
            begin = first
            first = fit(Block(first, last), rows)
            size = int(sizes[begin:first].sum())
            indices_of[begin] = rows.indices[:size].copy()
            weights_of[begin] = rows.weights[:size].copy()

    parallel_for(fit_block, work, n_jobs)
    order = sorted(indices_of)
    return ClassResiduals(
        offsets_from_lengths(sizes),
        join_arrays([indices_of.pop(first) for first in order]),
        join_arrays([weights_of.pop(first) for first in order]),
        biases,
    )


def batch_log_odds(
    mined: MinedPairs,
    scores_of: Callable[[slice], Floats],
    n_jobs: int | None,
    multilabel: bool = False,
) -> NDArray[np.float32]:
    """Return the log odds of all pairs; `multilabel` holds for all documents, not only these."""
    n_documents = mined.labels.n_documents
    log_odds = np.empty(len(mined.classes), np.float32)
    for start in range(0, n_documents, BATCH_DOCUMENTS):
        advance("residuals", start, n_documents)
        batch = slice(start, min(start + BATCH_DOCUMENTS, n_documents))
        indptr = mined.indptr[batch.start : batch.stop + 1]
        rows = ListRows(indptr - indptr[0], mined.labels.sizes[batch])
        log_odds[indptr[0] : indptr[-1]] = _log_odds_of(scores_of(batch), rows, n_jobs)
    if multilabel or mined.labels.has_several:
        of_labels = log_odds[mined.label_positions]
        log_odds[mined.label_positions] = np.clip(of_labels, LOWEST_LABEL, LARGEST_LOG_ODDS)
    return log_odds


def _log_odds_of(scores: Floats, rows: ListRows, n_jobs: int | None) -> Floats:
    """Return the log odds of some documents; in 64 bits, so that the kernel is compiled once."""
    flat = np.ravel(scores)
    log_odds, longest = np.empty(len(flat)), int(np.diff(rows.indptr).max(initial=0))
    parallel_for(
        lambda first, last: kernels.fill_log_odds(
            flat, rows, Block(first, last), np.empty(longest), log_odds
        ),
        uniform_work(len(rows.n_labels)),
        n_jobs,
    )
    return log_odds


def group_examples(
    mined: MinedPairs,
    log_odds: NDArray[np.float32],
    is_example: NDArray[np.bool_],
    class_mask: NDArray[np.bool_],
    document_mask: NDArray[np.bool_] | None,
) -> ClassExamples:
    """List the pairs that each class learns from, of those that are examples."""
    listed = _list_pairs(mined, is_example, class_mask, document_mask)
    grouped = group_by_class(mined.classes[listed][:, None], len(class_mask))
    pair_ids = listed[grouped.ids]
    del listed
    if mined.labels.has_several:
        document_ids = mined.document_ids.astype(pair_ids.dtype)[pair_ids]
        n_labels = mined.labels.sizes[document_ids]
        are_labels = (pair_ids - mined.indptr[document_ids]) < n_labels
    else:
        document_ids = pair_ids // (1 + mined.n_negatives)
        are_labels = pair_ids % (1 + mined.n_negatives) == 0
    costs = np.zeros(0)
    if mined.labels.costs is not None:
        # A label counts as its pair does; a document of other classes as its own pairs do.
        of_pairs = np.repeat(mined.labels.document_costs, np.diff(mined.indptr))
        of_pairs[mined.label_positions] = mined.labels.costs
        costs = of_pairs[pair_ids]
    return ClassExamples(grouped.starts, document_ids, are_labels, log_odds[pair_ids], costs)


def _list_pairs(
    mined: MinedPairs,
    is_example: NDArray[np.bool_],
    class_mask: NDArray[np.bool_],
    document_mask: NDArray[np.bool_] | None,
) -> Integers:
    """Return the ids of the pairs whose class and document are wanted, block by block."""
    listed, indptr = [], mined.indptr
    for start in range(0, mined.labels.n_documents, BATCH_DOCUMENTS):
        stop = min(start + BATCH_DOCUMENTS, mined.labels.n_documents)
        first, last = indptr[start], indptr[stop]
        wanted = is_example[first:last] & class_mask[mined.classes[first:last]]
        if document_mask is not None:
            wanted &= np.repeat(document_mask[start:stop], np.diff(indptr[start : stop + 1]))
        listed.append(np.flatnonzero(wanted) + first)
    pair_ids = join_arrays(listed) if listed else np.zeros(0, np.int64)
    return pair_ids.astype(index_dtype(len(is_example)))


def is_hard(mined: MinedPairs, log_odds: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which pairs a class learns from: hard negatives and labels."""
    close = log_odds >= LOWEST_LOG_ODDS
    close[mined.label_positions] = True
    return close
