"""One document through the search: the kernels of `search_segments`, called as directly as can be.

In: one document, the parts of a model that has no delta segment. Out: the same classes and scores,
bit for bit. Where a batch takes some 50 µs per document at 29,000 classes, most of the time of a
single one goes into calls from Python; here they are few.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._constants import WHOLE_QUERY
from longtail._kernels.calling import DirectCalls
from longtail._kernels.ranking import rerank
from longtail._kernels.scoring import score_pairs
from longtail._kernels.search import shortlist_classes
from longtail._kernels.types import (
    Block,
    PairScores,
    RankScratch,
    Rescoring,
    SearchQueries,
    Shortlist,
    TopK,
    Vectors,
)
from longtail._kernels.weighting import prune_queries, weight_rows
from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import make_queries, make_scratch, shortlist_capacity
from longtail.scoring.linear import LinearScorer, count_slots
from longtail.sparse import CountMatrix, Floats, index_dtype

_ONE = Block(0, 1)
_QUERY: SearchQueries = make_queries(np.arange(1))


def rank_one(
    document: CountMatrix,
    document_weights: Floats,
    residual_weights: Floats,
    pruning: QueryPruning,
    main: tuple[LinearScorer, LinearScorer, InvertedIndex],
    n_candidates: int,
    k: int,
    direct: DirectCalls,
) -> tuple[NDArray[Any], Floats] | None:
    """Return the best of one document's candidates, best first; None where that takes more.

    Parameters
    ----------
    document : CountMatrix
        Of one document.
    document_weights : ndarray of shape (n_terms,), float64
        What its term frequencies are multiplied by.
    residual_weights : ndarray of shape (n_terms,), float64
        The same where residuals are concerned.
    pruning : QueryPruning
        Which of its terms search.
    main : tuple of LinearScorer, LinearScorer and InvertedIndex
        Scorer, residuals and index of all classes.
    n_candidates, k : int
        As in `search_segments`.
    direct : DirectCalls
        Of these very arrays.

    Returns
    -------
    tuple of ndarrays of shape (1, k), or None
        None where arrays of the document are not laid out as usual, or ties are many.
    """
    counts = document.arrays
    if not all(array.flags.carray for array in counts):
        return None
    key = counts.indptr.dtype.char + counts.indices.dtype.char + counts.data.dtype.char
    scorer, residuals, index = main
    call, n_entries = direct.call, len(counts.indices)
    vectors = Vectors(counts.indptr, counts.indices, np.empty(n_entries, np.float32), np.empty(1))
    call(weight_rows, key, counts, document_weights, _ONE, vectors.weights, vectors.totals)
    inputs = vectors.weights
    if residual_weights is not document_weights:
        inputs = np.empty(n_entries, np.float32)
        call(weight_rows, key, counts, residual_weights, _ONE, inputs, np.empty(1))
    pruned = vectors
    if pruning.posting_budget < WHOLE_QUERY:
        pruned = vectors._replace(weights=np.empty(n_entries, np.float32), totals=np.empty(1))
        call(
            prune_queries, key, vectors, _QUERY.document_ids, pruning.class_frequencies,
            pruning.posting_budget, np.empty(n_entries, np.int64), pruned.weights, pruned.totals,
        )  # fmt: skip
    n_classes = len(index.biases)
    wanted = min(n_candidates, n_classes - len(index.tombstones))
    shape = 1, shortlist_capacity(wanted)
    dtype = index_dtype(n_classes)
    shortlist = Shortlist(np.full(shape, -1, dtype), np.zeros(1, np.int64))
    scratch = make_scratch(n_classes, n_entries)
    call(shortlist_classes, key, pruned, _QUERY, index.arrays, wanted, _ONE, scratch, shortlist)
    if shortlist.sizes[0] > shape[1]:
        return None
    rescoring = Rescoring(
        vectors.weights, inputs, vectors.totals,
        residuals.indptr, residuals.indices, residuals.weights, residuals.biases,
    )  # fmt: skip
    scores, slots = PairScores(np.empty(shape), np.empty(shape)), count_slots(document)
    call(
        score_pairs, key, pruned, _QUERY.document_ids, shortlist.classes, scorer.arrays,
        rescoring, _ONE, np.zeros(slots, np.int32), scores,
    )  # fmt: skip
    top = TopK(np.empty((1, k), dtype), np.empty((1, k)))
    ranks = RankScratch(np.empty(n_candidates, np.int32), np.empty(n_candidates))
    call(rerank, key, shortlist.classes, scores, _ONE, ranks, top)
    return top.classes, top.scores
