"""Document weights and class profiles: what the features and the scorer read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import Known, WithKnown, cached_property
from longtail._kernels import weighting as kernels
from longtail._kernels.types import Block, ClassProfile, Documents, Vectors
from longtail._parallel import parallel_for
from longtail.model.corpus import Corpus
from longtail.model.statistics import CENTROID_BITS, ClassStatistics
from longtail.sparse import CountMatrix, Floats, Integers, gather_rows

QUANTUM = 2.0**-CENTROID_BITS  # of the centroid sums


@dataclass(frozen=True)
class WeightedDocuments:
    """Documents with the weights that scoring uses."""

    rows: CountMatrix  # the counts
    # (nnz,) float32 or float64: aligned with `rows.indices`; each row has length 1.
    weights: NDArray[Any]
    totals: Floats  # (n_documents,) float64: sum of each row's weights
    # (nnz,): weights without learned term weights, where residuals multiply these.
    plain_weights: NDArray[Any] | None = None

    @property
    def residual_inputs(self) -> NDArray[Any]:
        """The weights that residuals multiply."""
        return self.weights if self.plain_weights is None else self.plain_weights

    @property
    def residual_vectors(self) -> Vectors:
        """Vectors on which residuals are learned."""
        return Vectors(self.rows.indptr, self.rows.indices, self.residual_inputs, self.totals)

    @property
    def vectors(self) -> Vectors:
        """Arrays for the kernels that score."""
        return Vectors(self.rows.indptr, self.rows.indices, self.weights, self.totals)

    @property
    def arrays(self) -> Documents:
        """Arrays for the kernels that need the counts as well."""
        return Documents(*self.rows.arrays, self.weights, self.totals)

    def gather(self, documents: Integers) -> WeightedDocuments:
        """Return the given documents, in their order."""
        indptr, entries = gather_rows(self.rows.indptr, documents)
        rows = self.rows
        return WeightedDocuments(
            CountMatrix(
                indptr,
                rows.indices[entries],
                rows.data[entries],
                rows.n_terms,
                None if rows.embeddings is None else rows.embeddings[documents],
            ),
            self.weights[entries],
            self.totals[documents],
            None if self.plain_weights is None else self.plain_weights[entries],
        )

    def slice(self, documents: slice) -> WeightedDocuments:
        """Return documents that follow each other, without copying them."""
        first, last, _ = documents.indices(self.rows.n_documents)
        entries = slice(self.rows.indptr[first], self.rows.indptr[last])
        return WeightedDocuments(
            self.rows.slice(documents),
            self.weights[entries],
            self.totals[documents],
            None if self.plain_weights is None else self.plain_weights[entries],
        )


@dataclass(frozen=True)
class Profile(WithKnown):
    """Classes and corpus as the score needs them, all derived from additive sums."""

    statistics: ClassStatistics
    corpus: Corpus
    collection_model: Floats

    @classmethod
    def of(
        cls,
        statistics: ClassStatistics,
        corpus: Corpus,
        collection_model: Floats,
        known: Known = None,
    ) -> Profile:
        """Return the profile; terms that the collection model lacks get its smallest share."""
        given = collection_model[collection_model > 0]
        smallest = given.min() if len(given) else 1.0
        shares = np.where(collection_model > 0, collection_model, smallest)
        return cls(statistics, corpus, shares, known=known)

    @cached_property
    def squares(self) -> Floats:
        """Squared length of each idf-weighted class sum."""
        return (self.statistics.centroid_norms(self.corpus.idf) * QUANTUM) ** 2

    @cached_property
    def masses(self) -> Floats:
        """Sum of each class sum over its terms."""
        return self.statistics.centroid_masses * QUANTUM

    @cached_property
    def arrays(self) -> ClassProfile:
        """Arrays for the kernels."""
        return ClassProfile(
            self.statistics.indptr,
            self.statistics.indices,
            self.statistics.centroid_sums,
            self.statistics.class_sizes.astype(np.float64),
            self.squares,
            self.masses,
            self.corpus.idf,
            self.collection_model,
            QUANTUM,
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
            rows.arrays, term_weights, Block(first, last), weights, totals
        ),
        rows.indptr,
        n_jobs,
    )
    return WeightedDocuments(rows, weights, totals)


def weight_for_residuals(
    rows: CountMatrix,
    idf: Floats,
    term_weights: Floats,
    multilabel: bool,
    n_jobs: int | None = None,
) -> WeightedDocuments:
    """Weigh documents for the scorer, and for residuals.

    Residuals multiply the same weights where documents have one label, and plain tf-idf where they
    have several. On held-out training documents, residuals and separators on plain tf-idf and with
    learned term weights reach P@5 of 57.8 and 56.5 on EURLex-4K; accuracy (one label) of 89.2 and
    90.2 on cve-product, 66.7 and 67.1 on wikitaxa-genus, 16.3 and 16.4 on acl-lastauthor, 44.5 and
    44.4 on wordnet-hypernym.
    """
    documents = weight_documents(rows, idf * term_weights, n_jobs)
    if not multilabel:
        return documents
    return replace(documents, plain_weights=weight_documents(rows, idf, n_jobs).weights)
