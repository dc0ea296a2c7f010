"""Document weights and class profiles: what the features and the scorer read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import scoring as kernels
from longtail._parallel import parallel_for
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import CENTROID_BITS, ClassStatistics
from longtail.statistics.corpus import Corpus

UNIT = 2.0**-CENTROID_BITS


@dataclass(frozen=True)
class WeightedDocuments:
    """Documents with the weights that scoring uses.

    Attributes
    ----------
    rows : CountRows
        The counts.
    weights : ndarray of shape (nnz,), float32 or float64
        Aligned with `rows.indices`; each row has length 1.
    totals : ndarray of shape (n_documents,), float64
        Sum of each row's weights.
    """

    rows: CountMatrix
    weights: NDArray[Any]
    totals: Floats

    def gather(self, documents: Integers) -> WeightedDocuments:
        """Return the given documents, in their order."""
        entries = self.rows.entries(documents)
        return WeightedDocuments(
            self.rows.gather(documents, entries), self.weights[entries], self.totals[documents]
        )

    def slice_documents(self, documents: slice) -> WeightedDocuments:
        """Return documents that follow each other, without copying them."""
        return WeightedDocuments(
            self.rows.slice_documents(documents), self.weights, self.totals[documents]
        )


@dataclass(frozen=True)
class Profile:
    """What the score needs to know of classes and corpus, all derived from additive sums."""

    statistics: ClassStatistics
    corpus: Corpus
    collection_model: Floats

    @classmethod
    def of(cls, statistics: ClassStatistics, corpus: Corpus, background: Floats) -> Profile:
        """Return the profile; terms that the background lacks share the smallest share it has."""
        known = background[background > 0]
        smallest = known.min() if len(known) else 1.0
        return cls(statistics, corpus, np.where(background > 0, background, smallest))

    @cached_property
    def squares(self) -> Floats:
        """Squared length of each idf-weighted class sum."""
        return (self.statistics.centroid_norms(self.corpus.idf) * UNIT) ** 2

    @cached_property
    def masses(self) -> Floats:
        """Sum of each class sum over its terms."""
        return self.statistics.centroid_masses * UNIT

    def zero_sums(self) -> Integers:
        """Return a zero for each term: a kernel spreads the sums of a class out over them."""
        return np.zeros(self.statistics.n_terms, np.int64)

    @cached_property
    def class_arrays(self) -> tuple[Any, ...]:
        """The arrays that every scoring kernel takes, in their order."""
        return (
            self.statistics.indptr,
            self.statistics.indices,
            self.statistics.centroid_sums,
            UNIT,
            self.statistics.class_sizes,
            self.squares,
            self.masses,
            self.corpus.idf,
            self.collection_model,
        )


def estimate_collection_model(statistics: ClassStatistics) -> Floats:
    """Return P_t, each term's share of the sums of all classes."""
    totals = statistics.centroid_totals
    return totals / max(float(totals.sum()), 1.0)


def weight_documents(
    rows: CountMatrix, term_weights: Floats, n_jobs: int | None = None
) -> WeightedDocuments:
    """Weigh and length-normalise documents; `term_weights` is idf times the learned weight."""
    weights = np.empty(len(rows.data), np.float32)
    totals = np.empty(rows.n_documents)
    parallel_for(
        lambda first, last: kernels.weight_rows(
            rows.indptr, rows.indices, rows.data, term_weights, first, last, weights, totals
        ),
        rows.indptr,
        n_jobs,
    )
    return WeightedDocuments(rows, weights, totals)
