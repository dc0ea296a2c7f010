"""Reads of the search of a prediction, and the time of brute force for the same.

In: a fitted estimator and documents. Out: counts of what is read, and times of the search and of
brute force, which must find the same classes with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._parallel import parallel_for
from longtail.model.scorer import LinearScorer, score_pairs
from longtail.model.state import LongTailState
from longtail.model.weighting import WeightedDocuments, weight_documents
from longtail.paper.features import weight_for_cosine
from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import make_queries, rank_topk, search, search_batches
from longtail.sparse import CountMatrix, Floats, Integers, offsets_from_lengths
from longtail_bench._kernels.brute_force import Postings, search_all
from longtail_bench._kernels.types import Ranked
from longtail_bench.stages import Cost, time_call


@dataclass(frozen=True)
class Search:
    """Arguments of `search` in a prediction; without `pruning` it asks with all terms."""

    documents: WeightedDocuments
    scorer: LinearScorer
    index: InvertedIndex
    n_candidates: int
    pruning: QueryPruning | None = None

    @property
    def searched(self) -> WeightedDocuments:
        """The documents with the terms that are searched for."""
        if self.pruning is None:
            return self.documents
        ids = np.arange(self.documents.rows.n_documents)
        return _without_zeros(self.pruning.prune(self.documents, ids))

    def run(self, n_threads: int) -> tuple[Integers, Floats]:
        """Search as the prediction does."""
        return search(
            self.documents,
            self.scorer,
            self.index,
            self.n_candidates,
            pruning=self.pruning,
            n_jobs=n_threads,
        )


def prepare_search(classifier: Any, X: Any) -> Search:
    """Return what a fitted classifier searches for when it predicts documents."""
    state, counts = classifier.state_, CountMatrix.from_matrix(X)
    n_candidates = min(classifier.candidates, len(state.classes))
    if isinstance(state, LongTailState):
        documents = weight_documents(counts, state.document_weights, classifier.n_jobs)
        return Search(documents, state.scorer, state.index, n_candidates, state.pruning)
    documents = weight_for_cosine(counts, state.current_corpus.idf, n_jobs=classifier.n_jobs)
    return Search(documents, state.centroids, state.index, n_candidates)


def time_prediction(classifier: Any, X: Any) -> tuple[Cost, dict[str, Cost]]:
    """Predict documents; returns the cost, and that of its stages, each run once more by itself."""
    _, total = time_call(lambda: classifier.predict(X))
    asked, weighting = time_call(lambda: prepare_search(classifier, X))
    stages = {"weighting": weighting}
    if asked.pruning is not None:
        pruned, stages["query pruning"] = time_call(
            lambda: asked.pruning.prune(asked.documents, np.arange(X.shape[0]), classifier.n_jobs)
        )
        asked = replace(asked, documents=pruned, pruning=None)
    _, stages["search"] = time_call(lambda: asked.run(classifier.n_jobs))
    rest = total
    for cost in stages.values():
        rest = rest - cost
    return total, stages | {"everything else": rest}


def _without_zeros(documents: WeightedDocuments) -> WeightedDocuments:
    """Leave out the terms that weigh nothing."""
    rows, weighing = documents.rows, documents.weights > 0
    kept = replace(
        rows,
        indptr=offsets_from_lengths(weighing)[rows.indptr],
        indices=rows.indices[weighing],
        data=rows.data[weighing],
    )
    return WeightedDocuments(kept, documents.weights[weighing], documents.totals)


def count_reads(asked: Search) -> dict[str, float]:
    """Count what the search reads, means over its documents.

    Returns
    -------
    dict of str to float
        ``postings`` of all terms of a document, which an exact pass over them must read, and
        ``postings_searched`` of the terms that are searched for; ``postings_read`` and
        ``byte_entries_read``, what one pass over the index reads instead; ``classes_scored``
        exactly to find the candidates.
    """
    documents, index = asked.searched, asked.index
    rows = documents.rows
    n_classes, n_scored = len(index.biases), 0

    def rank(ids: Integers, shortlists: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], Floats]:
        nonlocal n_scored
        [shortlist] = shortlists
        n_scored += int(np.count_nonzero(shortlist >= 0))
        scores = score_pairs(documents, shortlist, asked.scorer, 1, document_ids=ids)
        return rank_topk(shortlist, scores, asked.n_candidates, 1)

    queries = make_queries(np.arange(rows.n_documents))
    search_batches(documents, [index], [queries], asked.n_candidates, rank, 1)
    n_dense = np.diff(offsets_from_lengths(index.dense_row_ids[rows.indices] >= 0)[rows.indptr])
    frequencies = np.bincount(asked.scorer.indices, minlength=rows.n_terms)
    totals = {
        "postings": int(frequencies[asked.documents.rows.indices].sum()),
        "postings_searched": int(frequencies[rows.indices].sum()),
        "postings_read": int(np.diff(index.indptr)[rows.indices].sum()),
        # Rows of bytes are added four at a time; the last four may hold one several times.
        "byte_entries_read": int((-(-n_dense // 4) * 4).sum()) * n_classes,
        "classes_scored": n_scored,
    }
    return {name: total / rows.n_documents for name, total in totals.items()}


def brute_force(asked: Search, n_threads: int) -> Callable[[], tuple[NDArray[np.int32], Floats]]:
    """Lay out plain postings and return the search that reads all of those it is asked for."""
    scorer, documents = asked.scorer, asked.searched
    rows = documents.rows
    order = np.argsort(scorer.indices, kind="stable")
    classes = np.repeat(np.arange(len(scorer.biases), dtype=np.int32), np.diff(scorer.indptr))
    postings = Postings(
        offsets_from_lengths(np.bincount(scorer.indices, minlength=rows.n_terms)),
        classes[order],
        scorer.weights[order],
        scorer.length_weights,
        scorer.biases,
    )

    def run() -> tuple[NDArray[np.int32], Floats]:
        shape = (rows.n_documents, asked.n_candidates)
        found = Ranked(np.empty(shape, np.int32), np.empty(shape))
        parallel_for(
            lambda first, last: search_all(
                rows.indptr,
                rows.indices,
                documents.weights,
                documents.totals,
                postings,
                first,
                last,
                found,
            ),
            rows.indptr,
            n_threads,
        )
        return found.classes, found.scores

    return run


def compare_with_brute_force(asked: Search, n_threads: int) -> dict[str, float]:
    """Time a search and brute force on the same documents; what they find must be the same.

    Raises
    ------
    RuntimeError
        If a class or a bit of a score differs.
    """
    run_all = brute_force(asked, n_threads)
    (classes, scores), fast = time_call(lambda: asked.run(n_threads))
    (all_classes, all_scores), slow = time_call(run_all)
    if not (np.array_equal(classes, all_classes) and np.array_equal(scores, all_scores)):
        raise RuntimeError("the search and brute force found different classes or scores.")
    return {
        f"{name}_{clock}_microseconds": getattr(cost, clock) / len(classes) * 1e6
        for name, cost in (("search", fast), ("brute", slow))
        for clock in ("cpu", "wall")
    }
