"""What the search of a prediction reads, and what brute force takes for the same.

In: a fitted estimator and documents. Out: counts of what is read, and times of the search and of
brute force, which must find the same classes with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._parallel import parallel_for
from longtail.estimators import double_sampling as paper
from longtail.estimators import long_tail
from longtail.retrieval import search as candidates
from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import search
from longtail.scoring.linear import LinearScorer
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import Floats, Integers, offsets_from_lengths
from longtail_bench._kernels.brute_force import search_all
from longtail_bench.stages import replaced, time_stages


@dataclass(frozen=True)
class Search:
    """What a prediction asks `search` for; without `rare` it asks with all terms."""

    documents: WeightedDocuments
    score: LinearScorer
    index: InvertedIndex
    n_candidates: int
    rare: QueryPruning | None = None

    @property
    def searched(self) -> WeightedDocuments:
        """The documents with the terms that are searched for."""
        if self.rare is None:
            return self.documents
        return _without_zeros(
            self.rare.prune(self.documents, np.arange(self.documents.rows.n_documents))
        )

    def run(self, n_threads: int) -> tuple[Integers, Floats]:
        """Search as the prediction does."""
        return search(
            self.documents,
            self.score,
            self.index,
            self.n_candidates,
            pruning=self.rare,
            n_jobs=n_threads,
        )


def capture_search(classifier: Any, X: Any) -> Search:
    """Predict documents and return what was searched for."""
    captured: list[Search] = []

    def around(
        function: Any,
        documents: Any,
        score: Any,
        index: Any,
        n_candidates: int,
        *rest: Any,
        **options: Any,
    ) -> Any:
        captured.append(Search(documents, score, index, n_candidates, options.get("pruning")))
        return function(documents, score, index, n_candidates, *rest, **options)

    with replaced(long_tail, "find_best", around), replaced(paper, "find_highest", around):
        classifier.predict(X)
    return captured[0]


def _without_zeros(documents: WeightedDocuments) -> WeightedDocuments:
    """Leave out the terms that weigh nothing."""
    rows, weighing = documents.rows, documents.weights > 0
    few = replace(
        rows,
        indptr=offsets_from_lengths(weighing)[rows.indptr],
        indices=rows.indices[weighing],
        data=rows.data[weighing],
    )
    return WeightedDocuments(few, documents.weights[weighing], documents.totals)


def count_reads(search: Search) -> dict[str, float]:
    """Count what the search reads, means over its documents.

    Returns
    -------
    dict of str to float
        ``postings`` of all terms of a document, which an exact pass over them must read, and
        ``postings_searched`` of the terms that are searched for; ``postings_read`` and
        ``byte_entries_read``, what is read of the index instead; ``classes_scored`` exactly to find
        the candidates.
    """
    n_classes = len(search.index.biases)
    counts = {"postings_read": 0, "byte_entries_read": 0, "classes_scored": 0}

    def around_note(
        function: Any,
        documents: WeightedDocuments,
        index: InvertedIndex,
        chosen: Integers,
        *rest: Any,
    ) -> Any:
        rows = _without_zeros(documents.gather(chosen)).rows
        n_rows = np.diff(offsets_from_lengths(index.dense_row_ids[rows.indices] >= 0)[rows.indptr])
        # Rows of bytes are added four at a time; the last four may hold one several times.
        counts["byte_entries_read"] += int((-(-n_rows // 4) * 4).sum()) * n_classes
        counts["postings_read"] += int(np.diff(index.indptr)[rows.indices].sum())
        return function(documents, index, chosen, *rest)

    def around_score(
        function: Any, documents: Any, classes: NDArray[Any], *rest: Any, **options: Any
    ) -> Any:
        counts["classes_scored"] += int(np.count_nonzero(classes >= 0))
        return function(documents, classes, *rest, **options)

    with (
        replaced(candidates, "_note", around_note),
        replaced(candidates, "pair_scores", around_score),
    ):
        search.run(1)
    frequencies = np.bincount(search.score.indices, minlength=search.documents.rows.n_terms)
    totals = {
        "postings": int(frequencies[search.documents.rows.indices].sum()),
        "postings_searched": int(frequencies[search.searched.rows.indices].sum()),
        **counts,
    }
    return {name: total / search.documents.rows.n_documents for name, total in totals.items()}


def brute_force(search: Search, n_threads: int) -> Callable[[], tuple[NDArray[np.int32], Floats]]:
    """Lay out plain postings and return the search that reads all of those it is asked for."""
    score, documents = search.score, search.searched
    rows = documents.rows
    order = np.argsort(score.indices, kind="stable")
    classes = np.repeat(np.arange(len(score.biases), dtype=np.int32), np.diff(score.indptr))
    postings = (
        offsets_from_lengths(np.bincount(score.indices, minlength=rows.n_terms)),
        classes[order],
        score.weights[order],
    )

    def run() -> tuple[NDArray[np.int32], Floats]:
        shape = (rows.n_documents, search.n_candidates)
        found, scores = np.empty(shape, np.int32), np.empty(shape)
        parallel_for(
            lambda first, last: search_all(
                rows.indptr,
                rows.indices,
                documents.weights,
                documents.totals,
                *postings,
                score.length_weights,
                score.biases,
                first,
                last,
                found,
                scores,
            ),
            rows.indptr,
            n_threads,
        )
        return found, scores

    return run


def compare_with_brute_force(search: Search, n_threads: int) -> dict[str, float]:
    """Time a search and brute force on the same documents; what they find must be the same.

    Raises
    ------
    RuntimeError
        If a class or a bit of a score differs.
    """
    run_all = brute_force(search, n_threads)
    (classes, scores), fast, _ = time_stages((), lambda: search.run(n_threads))
    (all_classes, all_scores), slow, _ = time_stages((), run_all)
    if not (np.array_equal(classes, all_classes) and np.array_equal(scores, all_scores)):
        raise RuntimeError("the search and brute force found different classes or scores.")
    n_documents = len(classes)
    return {
        "search_processor_microseconds": fast.processor / n_documents * 1e6,
        "search_wall_microseconds": fast.wall / n_documents * 1e6,
        "brute_processor_microseconds": slow.processor / n_documents * 1e6,
        "brute_wall_microseconds": slow.wall / n_documents * 1e6,
    }
