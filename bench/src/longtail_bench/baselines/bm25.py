"""BM25 with each class as one long document: classification as search."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from longtail_bench.baselines.base import LabelSetBaseline, Ranking
from longtail_bench.baselines.postings import Postings


class BM25(LabelSetBaseline):
    """The class whose documents, joined into one, BM25 finds best for the document as query.

    `score = sum_t count_t * idf_t * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))` with
    `idf_t = ln(1 + (n_classes - n_t + 1/2) / (n_t + 1/2))`, where n_t classes have the term.

    Parameters
    ----------
    k1 : float, default=1.2
        How slowly a repeated term saturates.
    b : float, default=0.75
        How much long classes are held back, from 0 to 1.
    n_jobs : int or None, default=None
        Number of threads.

    Examples
    --------
    >>> BM25().fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    _weighted = False

    def __init__(self, k1: float = 1.2, b: float = 0.75, n_jobs: int | None = None) -> None:
        self.k1 = k1
        self.b = b
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Join the documents of each class and weigh their terms."""
        self._fit_joined(csr_array(csr_array(labels.T) @ X))

    def _fit_joined(self, joined: csr_array[Any]) -> None:
        """Weigh the terms of each class, given as one document."""
        n_classes, n_terms = joined.shape
        lengths = np.asarray(joined.sum(axis=1))
        # No term anywhere: there are no postings to scale, and 0 / 0 would warn.
        relative = lengths / (lengths.mean() or 1.0)
        n_with = np.bincount(joined.indices, minlength=n_terms)
        idf = np.log1p((n_classes - n_with + 0.5) / (n_with + 0.5))
        slowness = np.repeat(self.k1 * (1 - self.b + self.b * relative), np.diff(joined.indptr))
        joined.data = idf[joined.indices] * joined.data * (self.k1 + 1) / (joined.data + slowness)
        self.postings_ = Postings.from_classes(joined)

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank all classes."""
        return self.postings_.rank(X, k, self.n_jobs)


class BM25Names(BM25):
    """The class whose name BM25 finds best for the document as query; documents teach nothing.

    Names of classes without a document are found as well. Parameters are those of `BM25`.
    """

    def fit_sets(self, X: Any, labels: csr_array[Any], names: csr_array[Any] | None = None) -> Self:
        """Learn the names, counts of shape (n_classes, n_terms)."""
        if names is None:
            raise ValueError("the data set has no names of classes (class_names.tsv.xz).")
        self.classes_ = np.arange(names.shape[0])
        self.n_features_in_ = names.shape[1]
        self._fit_joined(self._check_counts(names.astype(self._dtype)))
        return self
