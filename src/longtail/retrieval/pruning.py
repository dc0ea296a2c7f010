"""Query pruning: which of a document's terms search for its candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._constants import WHOLE_QUERY
from longtail._kernels import weighting as kernels
from longtail._parallel import parallel_for, uniform_work
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import WeightedDocuments
from longtail.sparse import Integers, append_constant, gather_rows, index_dtype


@dataclass(frozen=True)
class QueryPruning:
    """Which of a document's terms search for its candidates: the rarest, within a budget.

    Common terms are in nearly every class and tell little. With one posting a class, candidates
    come faster than from all terms, and on held-out documents they were no worse, or better. With
    less than one, most classes have none of the terms that search; these are not looked at.
    """

    # (n_terms,) int32 or int64: number of classes that have each term.
    class_frequencies: NDArray[Any]
    # Bound on the sum of a document's class frequencies; one term is always kept.
    posting_budget: int
    matching_only: bool = False  # whether only classes that have one of these terms are found

    @classmethod
    def of(
        cls, statistics: ClassStatistics, postings_per_class: float = WHOLE_QUERY
    ) -> QueryPruning:
        """Count the classes of each term, and allow some postings per class."""
        n_classes = statistics.n_classes
        frequencies = statistics.class_frequencies.astype(index_dtype(n_classes))
        return cls(frequencies, WHOLE_QUERY).with_budget(postings_per_class, n_classes)

    def with_budget(self, postings_per_class: float, n_classes: int) -> QueryPruning:
        """Return the same counts with another budget; below one only matching classes are found."""
        budget = int(postings_per_class * n_classes)
        return QueryPruning(self.class_frequencies, budget, postings_per_class < 1)

    def prune(
        self, documents: WeightedDocuments, document_ids: Integers, n_jobs: int | None = None
    ) -> WeightedDocuments:
        """Return the same rows; all but the rarest terms of the given documents weigh nothing.

        The weights of other documents are undefined.
        """
        if self.posting_budget >= WHOLE_QUERY:
            return documents
        rows = documents.rows
        weights, totals = np.empty_like(documents.weights), np.empty_like(documents.totals)
        parallel_for(
            lambda first, last: kernels.prune_queries(
                documents.vectors,
                document_ids[first:last],
                self.class_frequencies,
                self.posting_budget,
                np.empty(rows.most_terms, np.int64),
                weights,
                totals,
            ),
            uniform_work(len(document_ids)),
            n_jobs,
        )
        return WeightedDocuments(rows, weights, totals)

    def find_matching(
        self, pruned: WeightedDocuments, document_ids: Integers
    ) -> NDArray[np.bool_] | None:
        """Return for which documents only matching classes are found; None where for none.

        A document without a known term within the budget may find any class.
        """
        if not self.matching_only:
            return None
        indptr, entries = gather_rows(pruned.rows.indptr, document_ids)
        n_classes = self.class_frequencies[pruned.rows.indices[entries]]
        match = (pruned.weights[entries] != 0) & (n_classes > 0)
        match &= n_classes <= self.posting_budget
        return np.asarray(np.diff(np.append(0, np.cumsum(match))[indptr]) > 0)

    def grow_terms(self, n_terms: int) -> QueryPruning:
        """Make room for terms that no class has."""
        return replace(
            self,
            class_frequencies=append_constant(
                self.class_frequencies, n_terms - len(self.class_frequencies)
            ),
        )
