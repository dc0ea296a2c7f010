"""Linear scores of all classes, stored by term.

In: a sparse classes x terms matrix of values and a bias for each class. Out: the best classes
of documents. Naive Bayes, BM25, nearest neighbours and one-vs-all all score this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._parallel import parallel_for
from longtail_bench._kernels.ranking import TermPostings, rank_postings
from longtail_bench._kernels.types import Ranked, Rows
from longtail_bench.baselines.base import Ranking


@dataclass(frozen=True)
class Postings:
    """The values of each term, class by class."""

    indptr: NDArray[np.int64]  # (n_terms + 1,) int64: where the postings of each term begin
    # (n_postings,): class number and value of each posting; classes ascend within a term.
    classes: NDArray[np.int32]
    values: NDArray[np.float64]
    # (n_classes,) float64: what a class gets for every document, and for each unit of a document's
    # length.
    biases: NDArray[np.float64]
    length_values: NDArray[np.float64]

    @classmethod
    def from_classes(
        cls,
        values: csr_array[Any],
        biases: NDArray[np.float64] | None = None,
        length_values: NDArray[np.float64] | None = None,
    ) -> Postings:
        """Turn a classes x terms matrix into postings; biases are 0 where left out."""
        by_term = csr_array(values.T)
        by_term.sort_indices()
        zeros = np.zeros(values.shape[0])
        return cls(
            by_term.indptr.astype(np.int64),
            by_term.indices.astype(np.int32),
            by_term.data.astype(np.float64),
            zeros if biases is None else biases,
            zeros if length_values is None else length_values,
        )

    def rank(self, X: csr_array[Any], k: int, n_jobs: int | None) -> Ranking:
        """Score all classes for each document and return the k best, ties to the lower class."""
        ranked = Ranked.empty(X.shape[0], k)
        rows = Rows(X.indptr.astype(np.int64), X.indices, X.data, X.shape[1])
        postings = TermPostings(
            self.indptr, self.classes, self.values, self.biases, self.length_values
        )
        parallel_for(
            lambda first, last: rank_postings(rows, postings, first, last, ranked),
            rows.indptr,
            n_jobs,
        )
        return ranked.classes, ranked.scores


def sum_classes(X: csr_array[Any], class_ids: NDArray[np.int64], n_classes: int) -> csr_array[Any]:
    """Add up the rows of each class."""
    n_documents = X.shape[0]
    members = csr_array(
        (np.ones(n_documents), (class_ids, np.arange(n_documents))), shape=(n_classes, n_documents)
    )
    return csr_array(members @ X)
