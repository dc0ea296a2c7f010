"""Candidate selection: the q classes of highest score for a document, exactly.

In: a score that is a sum over terms (for the paper: the cosine with each class's centroid). Out: a
term-major index, and through it the candidates of each document (Algorithm 2 of the paper). No
array of documents x classes is ever built: one row of sums serves each block of documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import search as kernels
from longtail._parallel import parallel_for, uniform_work
from longtail.retrieval.index import (
    InvertedIndex,
)
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import LinearScorer, score_pairs
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, index_dtype

BLOCK = 32_768  # documents searched at once; classes are then read one after the other

ROOM = 1 << 21  # classes noted at once

# Given documents and the classes noted for each, returns the best of them with their scores.
Rank = Callable[[Integers, NDArray[Any]], tuple[NDArray[Any], Floats]]


def search(
    documents: WeightedDocuments,
    score: LinearScorer,
    index: InvertedIndex,
    n_candidates: int,
    *,
    document_ids: Integers | None = None,
    true_classes: Integers | None = None,
    pruning: QueryPruning | None = None,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Return the classes of highest score for each document, best first; exact.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents; no weight is negative.
    score : LinearScorer
        Of the classes.
    index : InvertedIndex
        Of that score.
    n_candidates : int
        q, at most the number of classes, less one where `true_classes` is given.
    document_ids : ndarray of shape (M,), optional
        Row numbers; all documents when left out.
    true_classes : ndarray of shape (M,), optional
        A class to pass over for each document.
    pruning : QueryPruning, optional
        Score a document by its rarest terms alone; by all when left out.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (M, q), int32 or int64
        Class numbers; ties go to the lower one.
    scores : ndarray of shape (M, q), float64
        Their scores.
    """
    document_ids = np.arange(documents.rows.n_documents) if document_ids is None else document_ids
    true_classes = (
        np.full(len(document_ids), -1, np.int64) if true_classes is None else true_classes
    )
    if not document_ids.size * n_candidates:
        shape = len(document_ids), n_candidates
        return np.empty(shape, index_dtype(len(score.biases))), np.empty(shape)
    few = documents if pruning is None else pruning.prune(documents, document_ids, n_jobs)

    def rank(numbers: Integers, shortlist: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        scores = score_pairs(few, shortlist, score, n_jobs, document_ids=numbers)
        return rank_topk(shortlist, scores, n_candidates, n_jobs)

    return search_blocks(
        few,
        index,
        document_ids,
        true_classes,
        n_candidates,
        shortlist_capacity(n_candidates),
        rank,
        n_jobs,
    )


def shortlist_capacity(wanted: int) -> int:
    """Return how many classes are noted for a document; ties and near ties may need more."""
    return 2 * wanted + 12


def search_blocks(
    documents: WeightedDocuments,
    index: InvertedIndex,
    document_ids: Integers,
    true_classes: Integers,
    wanted: int,
    room: int,
    rank: Rank,
    n_jobs: int | None,
    n_unindexed: int = 0,
) -> tuple[NDArray[Any], Floats]:
    """Note what may be among the `wanted` highest, and let `rank` decide."""
    at_once = max(1, min(BLOCK, ROOM // (room + n_unindexed)))
    found = []
    for start in range(0, len(document_ids), at_once):
        part = slice(start, start + at_once)
        numbers, passed_over = document_ids[part], true_classes[part]
        shortlist, shortlist_sizes = _shortlist(
            documents, index, numbers, passed_over, wanted, room, n_jobs
        )
        fits = shortlist_sizes <= room
        if fits.all():
            found.append(rank(numbers, shortlist))
            continue
        inside = rank(numbers[fits], shortlist[fits])
        more = min(8 * room, len(index.biases))
        numbers, passed_over = numbers[~fits], passed_over[~fits]
        outside = search_blocks(
            documents, index, numbers, passed_over, wanted, more, rank, n_jobs, n_unindexed
        )
        found.append((_merge(fits, inside[0], outside[0]), _merge(fits, inside[1], outside[1])))
    if len(found) == 1:
        return found[0]
    classes, scores = zip(*found, strict=True)
    return np.concatenate(classes), np.concatenate(scores)


def _merge(first: NDArray[np.bool_], rows: NDArray[Any], other_rows: NDArray[Any]) -> NDArray[Any]:
    """Put rows together, from `rows` where `first` is true."""
    merged = np.empty((len(first), rows.shape[1]), rows.dtype)
    merged[first], merged[~first] = rows, other_rows
    return merged


def _shortlist(
    documents: WeightedDocuments,
    index: InvertedIndex,
    document_ids: Integers,
    true_classes: Integers,
    wanted: int,
    width: int,
    n_jobs: int | None,
) -> tuple[NDArray[Any], Integers]:
    """Return the classes that may be among the highest, -1 where there are fewer, and how many."""
    rows = documents.rows
    shortlist = np.full((len(document_ids), width), -1, index_dtype(len(index.biases)))
    shortlist_sizes = np.zeros(len(document_ids), np.int64)
    parallel_for(
        lambda first, last: kernels.shortlist_classes(
            rows.indptr,
            rows.indices,
            documents.weights,
            documents.totals,
            document_ids,
            true_classes,
            *index.arrays,
            wanted,
            first,
            last,
            *_make_scratch(len(index.biases), rows.most_terms),
            shortlist,
            shortlist_sizes,
        ),
        uniform_work(len(document_ids)),
        n_jobs,
    )
    return shortlist, shortlist_sizes


def _make_scratch(n_classes: int, most_terms: int) -> tuple[NDArray[Any], ...]:
    """Return what the search writes to; what is never written to takes no memory."""
    n_chunks, n_terms = -(-n_classes // kernels.CHUNK), most_terms + 4
    return (
        np.empty(n_classes, np.uint16),
        np.empty(n_chunks, np.uint16),
        np.empty(n_classes, np.uint16),
        np.empty(n_classes, np.int64),
        np.empty(n_terms, np.int64),
        np.empty(n_terms),
        np.empty(n_terms, np.uint16),
        np.empty(n_terms, np.uint16),
    )


def rank_topk(
    classes: NDArray[Any], scores: Floats, k: int, n_jobs: int | None = None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best classes of each row with their scores, best first.

    Parameters
    ----------
    classes : ndarray of shape (n_documents, width)
        Class numbers; -1 for none.
    scores : ndarray of shape (n_documents, width), float64
        Their scores.
    k : int
        How many; each row has at least as many classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, k)
        Ties go to the lower class number.
    scores : ndarray of shape (n_documents, k), float64
    """
    best = np.empty((len(classes), k), classes.dtype)
    best_scores = np.empty((len(classes), k))
    parallel_for(
        lambda first, last: kernels.rank_topk(classes, scores, first, last, best, best_scores),
        uniform_work(len(classes)),
        n_jobs,
    )
    return best, best_scores


def rerank(
    classes: NDArray[Any],
    scores: Floats,
    corrected: Floats,
    n_candidates: int,
    k: int,
    n_jobs: int | None,
) -> tuple[NDArray[Any], Floats]:
    """Return the k best by corrected score among the candidates, the best by score."""
    best = np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k))
    parallel_for(
        lambda first, last: kernels.rerank(
            classes,
            scores,
            corrected,
            first,
            last,
            np.empty(n_candidates, np.int64),
            np.empty(n_candidates),
            *best,
        ),
        uniform_work(len(classes)),
        n_jobs,
    )
    return best
