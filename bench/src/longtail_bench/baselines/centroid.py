"""Nearest centroid by cosine of tf-idf weights: the simplest line of every table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from longtail._validation import cap_candidates
from longtail.model.statistics import ClassStatistics
from longtail.paper.features import centroid_scorer, weight_for_cosine
from longtail.results import TopK
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix


class NearestCentroid(ClassifierMixin, BaseEstimator):
    """The class whose centroid has the highest cosine with the document.

    scikit-learn's class of this name builds a dense classes x terms array; this one stays sparse.

    Parameters
    ----------
    sublinear : bool, default=False
        Weight a term by `1 + ln(count)` instead of its count.
    n_jobs : int or None, default=None
        Number of threads.
    """

    def __init__(self, sublinear: bool = False, n_jobs: int | None = None) -> None:
        self.sublinear = sublinear
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Sum the documents of each class."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_, class_ids = np.unique(y, return_inverse=True)
        statistics = ClassStatistics.from_counts(
            X, class_ids, len(self.classes_), sublinear=self.sublinear, n_jobs=self.n_jobs
        )
        self.idf_ = statistics.corpus.idf
        self.score_ = centroid_scorer(statistics, statistics.corpus)
        self.index_ = build_index(self.score_, statistics.n_terms, self.n_jobs)
        return self

    def fit_sets(self, X: Any, labels: csr_array[Any]) -> Self:
        """Sum the documents of each class, where a document may have several.

        Parameters
        ----------
        X : csr_array of shape (n_documents, n_terms)
            Counts.
        labels : csr_array of shape (n_documents, n_classes)
            1 where a document has a label.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        self.classes_ = np.arange(labels.shape[1])
        pairs = np.repeat(np.arange(X.shape[0]), np.diff(labels.indptr))
        statistics = ClassStatistics.from_counts(
            X[pairs], labels.indices, len(self.classes_), sublinear=self.sublinear
        )
        # A document counts once for the idf, however many labels it has.
        corpus = ClassStatistics.from_counts(X, np.zeros(X.shape[0], np.int64), 1).corpus
        self.idf_ = corpus.idf
        self.score_ = centroid_scorer(statistics, corpus)
        self.index_ = build_index(self.score_, statistics.n_terms, self.n_jobs)
        return self

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k nearest classes with their cosines, padded with -inf beyond the classes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        documents = weight_for_cosine(
            CountMatrix.from_matrix(X), self.idf_, sublinear=self.sublinear, n_jobs=self.n_jobs
        )
        class_ids, cosines = search(
            documents,
            self.score_,
            self.index_,
            cap_candidates(k, len(self.classes_)),
            n_jobs=self.n_jobs,
        )
        missing = ((0, 0), (0, k - class_ids.shape[1]))
        return TopK(
            self.classes_[np.pad(class_ids, missing)],
            np.pad(cosines, missing, constant_values=-np.inf),
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the nearest class of each document."""
        return self.predict_topk(X, 1).classes[:, 0]
