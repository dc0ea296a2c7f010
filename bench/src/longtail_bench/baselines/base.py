"""Base of every baseline: labels, weights of terms, ranking.

In: counts and labels. A baseline itself sees class ids and weighted rows, and gives class
numbers and scores. This module imports numpy, scipy and scikit-learn alone, because it also runs
in the environments of peers, which have nothing else of ours.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

if TYPE_CHECKING:
    from longtail.results import TopK

Ranking = tuple[NDArray[np.int64], NDArray[np.float64]]


class Baseline(ClassifierMixin, BaseEstimator):
    """A classifier of counts that a table compares with.

    A subclass stores its parameters in `__init__`, learns in `_fit_weighted` and ranks in `_rank`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; a class id is a place in it.
    weighting_ : TfidfTransformer
        Fitted weights of terms: `(1 + ln count) * idf`, rows of unit length; values that are not
        whole numbers are weights already and are only brought to unit length. Absent where the
        baseline works on the counts themselves.
    """

    _weighted = True  # False: the baseline wants the counts as they are
    _dtype: Any = np.float64  # of the rows that the baseline is given

    @abstractmethod
    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Learn from weighted rows (of `_dtype`) and class ids, all of which occur."""

    @abstractmethod
    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Return class ids and scores of shape (n_documents, at most k), best first.

        Ties go to the lower class. k is at most the number of classes. Where a document has fewer
        candidates than others, its last scores are -inf.
        """

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from counts and labels.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Labels, strings or integers.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=self._dtype)
        check_classification_targets(y)
        self.classes_, class_numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            (label,) = self.classes_.tolist()
            raise ValueError(
                f"y has only 1 class, {label!r}; at least 2 classes are needed. "
                "Add documents of another class."
            )
        X = self._check_counts(X)
        if self._weighted:
            self.weighting_ = _make_weighting(X).fit(X)
        X = self._weigh(X)  # the counts may go before learning begins
        self._fit_weighted(X, class_numbers.astype(np.int64))
        return self

    def rank(self, X: Any, k: int = 5) -> Ranking:
        """Return class ids and scores of the best classes; as `predict_topk`, not padded.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many at most.

        Returns
        -------
        numbers : ndarray of shape (n_documents, at most k), int64
            Places in `classes_`, best first.
        scores : ndarray of the same shape, float64
            Their scores; -inf where a document has fewer candidates.
        """
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1; got {k!r}.")
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=self._dtype)
        return self._rank(self._weigh(self._check_counts(X)), min(int(k), len(self.classes_)))

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with their scores.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many; where there are fewer candidates the scores of the rest are -inf.

        Returns
        -------
        TopK
            `classes` and `scores`, each of shape (n_documents, k), best first; ties in class order.
        """
        # Here and not above: it brings numba, which environments of peers do not have.
        from longtail.results import TopK

        ranked, scores = self.rank(X, k)
        missing = ((0, 0), (0, k - ranked.shape[1]))
        return TopK(
            self.classes_[np.pad(ranked, missing)], np.pad(scores, missing, constant_values=-np.inf)
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best class of each document.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels.
        """
        ranked, _ = self.rank(X, 1)
        return np.asarray(self.classes_[ranked[:, 0]])

    def model_bytes(self) -> int:
        """Return the size of the fitted model when it is stored."""
        check_is_fitted(self)
        counter = _Counter()
        pickle.Pickler(counter, protocol=5).dump(self)
        return counter.n_bytes

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's check wants 83 % on dense blobs in the plane, which no direction tells
        # apart.
        tags.classifier_tags.poor_score = True
        return tags

    def _check_counts(self, X: Any) -> csr_array[Any]:
        """Return sorted counts without stored zeros, whose logarithm would be infinite."""
        check_non_negative(X, type(self).__name__)
        rows = csr_array(X)  # shares memory with the caller's matrix
        if not rows.has_canonical_format or not np.all(rows.data):
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        if max(rows.nnz, rows.shape[1]) <= np.iinfo(np.int32).max:
            # LIBLINEAR and most peers want 32 bits, and everything else is faster with them.
            narrow = (rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
            rows = csr_array((rows.data, *narrow), shape=rows.shape)
        return rows

    def _weigh(self, rows: csr_array[Any]) -> csr_array[Any]:
        """Return the rows as the baseline wants them: weighted, or as they are."""
        return csr_array(self.weighting_.transform(rows)) if self._weighted else rows


class LabelSetBaseline(Baseline):
    """A baseline that learns label sets too; one label for each document is the special case.

    A subclass learns in `_fit_sets` instead of `_fit_weighted`.
    """

    @abstractmethod
    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Learn from weighted rows (of `_dtype`) and an indicator matrix, documents x classes."""

    def fit_sets(self, X: Any, labels: csr_array[Any]) -> Self:
        """Learn from counts and label sets.

        Parameters
        ----------
        X : sparse matrix of shape (n_documents, n_terms)
            Counts, not negative.
        labels : csr_array of shape (n_documents, n_classes)
            1 where a document has a label; each class has a document.

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=self._dtype)
        self.classes_ = np.arange(labels.shape[1])
        X = self._check_counts(X)
        if self._weighted:
            self.weighting_ = _make_weighting(X).fit(X)
        X = self._weigh(X)  # the counts may go before learning begins
        self._fit_sets(X, labels)
        return self

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Learn from sets of one label each."""
        n_documents = len(class_ids)
        self._fit_sets(
            X,
            csr_array(
                (np.ones(n_documents, np.float32), class_ids, np.arange(n_documents + 1)),
                shape=(n_documents, len(self.classes_)),
            ),
        )


def _make_weighting(X: csr_array[Any]) -> TfidfTransformer:
    """Return what weighs terms; the logarithm of a weight below 1/e would turn its sign."""
    if np.any(X.data % 1):
        return TfidfTransformer(use_idf=False)
    return TfidfTransformer(sublinear_tf=True)


class _Counter:
    """A stream that keeps nothing but the number of bytes written to it."""

    n_bytes = 0

    def write(self, data: Any) -> int:
        """Count."""
        size = memoryview(data).nbytes
        self.n_bytes += size
        return size
