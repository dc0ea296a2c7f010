"""Top-k search: the q classes of highest score for a document, exactly.

In: a linear scorer (for the paper: the cosine with each class's centroid) and its inverted index.
Out: the candidates of each document (Algorithm 2 of the paper). No array of documents x classes is
ever built: one row of accumulators serves each block of documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import ranking
from longtail._kernels import search as kernels
from longtail._kernels.types import (
    Block,
    PairScores,
    Queries,
    RankScratch,
    SearchScratch,
    Shortlist,
    TopK,
)
from longtail._parallel import parallel_for, uniform_work
from longtail.retrieval.index import (
    InvertedIndex,
)
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import LinearScorer, score_pairs
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, index_dtype

BATCH_DOCUMENTS = 32_768  # enough for a class to have many of them when the shortlists are scored

BATCH_ENTRIES = 1 << 21  # of the shortlists of a batch: 16 MB of scores

# Given document ids and the shortlist of each, returns the best of them with their scores.
Rank = Callable[[Integers, NDArray[Any]], tuple[NDArray[Any], Floats]]


def search(
    documents: WeightedDocuments,
    scorer: LinearScorer,
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
    scorer : LinearScorer
        Of the classes.
    index : InvertedIndex
        Of that scorer.
    n_candidates : int
        q, at most the number of classes, less one where `true_classes` is given.
    document_ids : ndarray of shape (M,), optional
        Which documents; all when left out.
    true_classes : ndarray of shape (M,), optional
        A class to pass over for each document.
    pruning : QueryPruning, optional
        Score a document by its rarest terms alone; by all when left out.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (M, q), int32 or int64
        Class ids; ties go to the lower one.
    scores : ndarray of shape (M, q), float64
        Their scores.
    """
    if document_ids is None:
        document_ids = np.arange(documents.rows.n_documents)
    if true_classes is None:
        true_classes = np.full(len(document_ids), -1, np.int64)
    if not document_ids.size * n_candidates:
        shape = len(document_ids), n_candidates
        return np.empty(shape, index_dtype(len(scorer.biases))), np.empty(shape)
    pruned = documents if pruning is None else pruning.prune(documents, document_ids, n_jobs)

    def rank(document_ids: Integers, shortlist: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        scores = score_pairs(pruned, shortlist, scorer, n_jobs, document_ids=document_ids)
        return rank_topk(shortlist, scores, n_candidates, n_jobs)

    queries = Queries(document_ids, true_classes)
    return search_batches(pruned, index, queries, n_candidates, rank, n_jobs)


def search_batches(
    documents: WeightedDocuments,
    index: InvertedIndex,
    queries: Queries,
    wanted: int,
    rank: Rank,
    n_jobs: int | None,
    n_unindexed: int = 0,
    capacity: int | None = None,
) -> tuple[NDArray[Any], Floats]:
    """List what may be among the `wanted` highest, and let `rank` decide.

    Where ties and near ties are more than the capacity of a shortlist, search again with a larger
    one. `rank` adds `n_unindexed` classes to each shortlist; batches become smaller by that.
    """
    capacity = capacity or 2 * wanted + 12
    batch_size = max(1, min(BATCH_DOCUMENTS, BATCH_ENTRIES // (capacity + n_unindexed)))
    found = []
    for start in range(0, len(queries.document_ids), batch_size):
        batch = Queries(*(array[start : start + batch_size] for array in queries))
        shortlist = _shortlist(documents, index, batch, wanted, capacity, n_jobs)
        fits = shortlist.sizes <= capacity
        if fits.all():
            found.append(rank(batch.document_ids, shortlist.classes))
            continue
        fitting = rank(batch.document_ids[fits], shortlist.classes[fits])
        rest = Queries(*(array[~fits] for array in batch))
        larger = min(8 * capacity, len(index.biases))
        others = search_batches(documents, index, rest, wanted, rank, n_jobs, n_unindexed, larger)
        found.append((_merge(fits, fitting[0], others[0]), _merge(fits, fitting[1], others[1])))
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
    queries: Queries,
    wanted: int,
    capacity: int,
    n_jobs: int | None,
) -> Shortlist:
    """Return the classes that may be among the highest, -1 where there are fewer, and how many."""
    n_queries, n_classes = len(queries.document_ids), len(index.biases)
    shortlist = Shortlist(
        np.full((n_queries, capacity), -1, index_dtype(n_classes)), np.zeros(n_queries, np.int64)
    )
    parallel_for(
        lambda first, last: kernels.shortlist_classes(
            documents.vectors,
            queries,
            index.arrays,
            wanted,
            Block(first, last),
            _make_scratch(n_classes, documents.rows.most_terms),
            shortlist,
        ),
        uniform_work(n_queries),
        n_jobs,
    )
    return shortlist


def _make_scratch(n_classes: int, most_terms: int) -> SearchScratch:
    """Return what the search writes to; what is never written to takes no memory."""
    n_chunks, n_terms = -(-n_classes // kernels.CHUNK), most_terms + 4
    return SearchScratch(
        accumulators=np.empty(n_classes, np.uint16),
        maxima=np.empty(n_chunks, np.uint16),
        keys=np.empty(n_classes, np.uint16),
        survivors=np.empty(n_classes, np.int64),
        row_starts=np.empty(n_terms, np.int64),
        negated_levels=np.empty(n_terms),
        factors=np.empty(n_terms, np.uint16),
        shifts=np.empty(n_terms, np.uint16),
    )


def rank_topk(
    classes: NDArray[Any], scores: Floats, k: int, n_jobs: int | None = None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best classes of each row with their scores, best first.

    Parameters
    ----------
    classes : ndarray of shape (n_documents, n_columns)
        Class ids; -1 for none.
    scores : ndarray of shape (n_documents, n_columns), float64
        Their scores.
    k : int
        How many; each row has at least as many classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, k)
        Ties go to the lower class id.
    scores : ndarray of shape (n_documents, k), float64
    """
    top = TopK(np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k)))
    parallel_for(
        lambda first, last: ranking.rank_topk(classes, scores, Block(first, last), top),
        uniform_work(len(classes)),
        n_jobs,
    )
    return top.classes, top.scores


def rerank(
    classes: NDArray[Any], scores: PairScores, n_candidates: int, k: int, n_jobs: int | None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best by rescored score among the candidates, the best by score."""
    top = TopK(np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k)))
    parallel_for(
        lambda first, last: ranking.rerank(
            classes,
            scores,
            Block(first, last),
            RankScratch(np.empty(n_candidates, np.int64), np.empty(n_candidates)),
            top,
        ),
        uniform_work(len(classes)),
        n_jobs,
    )
    return top.classes, top.scores
