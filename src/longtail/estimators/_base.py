"""What both estimators share: labels, rows, teaching, ranking, explanation, files.

Everything fitted is one frozen model that a teaching call replaces as a whole, so a prediction that
runs at the same time sees the model before or after, never a mix.
"""

from __future__ import annotations

import numbers
import os
import threading
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from longtail._validation import (
    check_among,
    check_k,
    check_known,
    check_no_missing_label,
    check_same_kind,
    find_label,
    find_labels,
)
from longtail.explanation import ScoreParts, explain_score
from longtail.results import Explanation, TopK
from longtail.sparse import CountMatrix, Floats, Integers, check_sparse
from longtail.statistics.classes import ClassStatistics
from longtail.store.container import ModelFile, write_model
from longtail.store.state_io import Model, pack_model, plain, plain_parts
from longtail.store.texts import pack_texts

_PLAIN = (sp.csr_array, sp.csr_matrix, np.ndarray)  # counts of these kinds need no conversion

TEACHING = threading.RLock()  # two calls that teach at once must not lose each other's documents


class CountClassifier(ClassifierMixin, BaseEstimator):
    """What both estimators share: labels, rows, teaching, ranking, explanation, files."""

    n_jobs: int | None
    _model: Any
    _sublinear = False
    _feature_names: tuple[str, ...]

    @abstractmethod
    def _fit_model(self, rows: CountMatrix, numbers: Integers, classes: NDArray[Any]) -> Any:
        """Run the stages of a fit."""

    @abstractmethod
    def _with_statistics(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        sources: Integers,
        changed: NDArray[np.bool_],
    ) -> Any:
        """Return the model with other statistics and the same learned parts.

        Class c inherits what class `sources[c]` has learned, or nothing where that is -1;
        `changed` marks the classes whose documents are others than before.
        """

    @abstractmethod
    def _rank(self, model: Any, rows: CountMatrix, k: int) -> tuple[Integers, Floats]:
        """Return at most k class numbers and scores for each document, best first."""

    @abstractmethod
    def _split_score(self, model: Any, rows: CountMatrix, document: int, number: int) -> ScoreParts:
        """Split the score of one pair."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        return self._labels(self._latest())

    @property
    def statistics_(self) -> ClassStatistics:
        """The sums of the documents of each class."""
        statistics: ClassStatistics = self._fitted().statistics
        return statistics

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
        self._check_parameters()
        X, y = self._check_input(X, y, reset=True)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only 1 class, {classes[0]!r}; at least 2 classes are needed. "
                "Add documents of another class."
            )
        with TEACHING:
            self._model = self._fit_model(CountMatrix.from_matrix(X), numbers, classes)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Add documents of known or new classes to the statistics; on an unfitted estimator, fit.

        The learned parts stay as they are; the classes changed are kept apart, so it costs little.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Labels.
        classes : array-like, optional
            Where given, every label must be among them. Classes without documents are not kept.

        Returns
        -------
        self
        """
        if classes is not None:
            check_among(y, classes)
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X, y = self._check_input(X, y, reset=False)
        with TEACHING:
            check_same_kind(y, self.classes_)
            self._model = self._change(CountMatrix.from_matrix(X), y, 1)
        return self

    def forget(self, X: Any, y: ArrayLike) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            The same counts as when they were added.
        y : array-like of shape (n_documents,)
            The same labels as when they were added.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a document was never added, or none would be left; the model then stays as it is.
        """
        check_is_fitted(self)
        X, y = self._check_input(X, y, reset=False)
        with TEACHING:
            check_same_kind(y, self.classes_)
            check_known(y, self.classes_)
            self._model = self._change(CountMatrix.from_matrix(X), y, -1)
        return self

    def rename_class(self, old: Any, new: Any) -> Self:
        """Give a class another label; everything it knows stays.

        Parameters
        ----------
        old, new : label
            `new` must not be the label of another class; see `merge_classes`.

        Returns
        -------
        self
        """
        self._fitted()
        with TEACHING:
            model = self._fitted()
            number = find_label(model.classes, old)
            check_same_kind(np.asarray([new]), model.classes)
            if np.any(model.classes == new):
                raise ValueError(
                    f"there is a class {new!r} already; merge_classes({old!r}, {new!r}) adds one "
                    "to the other."
                )
            labels = np.concatenate([model.classes, np.asarray([new])])[:-1]
            labels[number] = new
            sources = np.argsort(labels, kind="stable")
            positions = np.empty_like(sources)
            positions[sources] = np.arange(len(sources))
            self._model = self._with_statistics(
                labels[sources],
                model.statistics.scatter_classes(positions, len(labels)),
                sources,
                np.zeros(len(labels), np.bool_),
            )
        return self

    def merge_classes(self, source: Any, into: Any) -> Self:
        """Add the documents of one class to another; the first then no longer exists.

        Parameters
        ----------
        source, into : label
            Two different classes of the model. What `into` has learned stays until the next
            `refine`.

        Returns
        -------
        self
        """
        self._fitted()
        with TEACHING:
            model = self._fitted()
            numbers = find_label(model.classes, source), find_label(model.classes, into)
            if numbers[0] == numbers[1]:
                raise ValueError(f"cannot merge class {source!r} into itself.")
            kept = np.delete(np.arange(len(model.classes)), numbers[0])
            labels = model.classes[kept]
            self._model = self._with_statistics(
                labels, model.statistics.merge_classes(*numbers), kept, labels == into
            )
        return self

    def remove_class(self, label: Any) -> Self:
        """Remove a class with all its documents.

        The class's sums do not tell how many of its documents had a term, so the document
        frequencies stay (at most as many as there are documents); `forget` with the documents is
        exact.

        Parameters
        ----------
        label : label
            A class of the model.

        Returns
        -------
        self
        """
        self._fitted()
        with TEACHING:
            model = self._fitted()
            number = find_label(model.classes, label)
            if len(model.classes) == 1:
                raise ValueError("cannot remove the last class of a model; fit a new one instead.")
            kept = np.delete(np.arange(len(model.classes)), number)
            self._model = self._with_statistics(
                model.classes[kept],
                model.statistics.remove_class(number),
                kept,
                np.zeros(len(kept), np.bool_),
            )
        return self

    def _change(self, rows: CountMatrix, y: NDArray[Any], sign: int) -> Any:
        """Return the model with documents added, or subtracted where the sign is -1."""
        model = self._fitted()
        labels = np.union1d(model.classes, y)
        positions = np.searchsorted(labels, model.classes)
        sources = np.full(len(labels), -1)
        sources[positions] = np.arange(len(positions))
        known = model.statistics.scatter_classes(positions, len(labels))
        taught = self._sum(rows, y, labels)
        statistics = known + taught if sign > 0 else known - taught
        check_documents_left(statistics.n_documents)
        # A removed class leaves its document frequencies behind; see `remove_class`.
        statistics = statistics.with_frequencies(
            np.minimum(statistics.document_frequencies, statistics.n_documents)
        )
        kept = np.flatnonzero(statistics.class_sizes > 0)
        return self._with_statistics(
            labels[kept], statistics.drop_empty_classes(), sources[kept], np.isin(labels[kept], y)
        )

    def _grow_terms(self, n_terms: int) -> None:
        """Make room for terms that no document has had yet."""
        with TEACHING:
            model = self._fitted()
            self._model = self._with_statistics(
                model.classes,
                model.statistics.grow_terms(n_terms),
                np.arange(len(model.classes)),
                np.zeros(len(model.classes), np.bool_),
            )
            self.n_features_in_ = n_terms

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
        model = self._latest()
        numbers, _ = self._rank(model, self._check_rows(X), 1)
        return np.asarray(self._labels(model)[numbers[:, 0]])

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
        k = check_k(k)
        model = self._latest()
        ranked, scores = self._rank(model, self._check_rows(X), k)
        return TopK(self._labels(model)[fill_up(ranked, k, 0)], fill_up(scores, k, -np.inf))

    def explain(
        self, X: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Take the score of one class for each document apart.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        classes : array-like of shape (n_documents,), optional
            The label to explain for each document; the predicted one when left out.
        top_terms : int, default=10
            How many terms to name; the others are summed up in `rest`.

        Returns
        -------
        list of Explanation
            Terms are named by column number, or by column name where `fit` was given names.
        """
        model = self._fitted()
        rows = self._check_rows(X)
        numbers, scores = self._rank(model, rows, 2)
        wanted = (
            numbers[:, 0]
            if classes is None
            else find_labels(model.classes, classes, rows.n_documents)
        )
        return [
            self._explain_one(model, rows, i, int(wanted[i]), numbers[i], scores[i], top_terms)
            for i in range(rows.n_documents)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file for `longtail.load`; nothing in it can run code.

        The file is written beside `path` and renamed into place: a model that was there stays
        intact until the new one is complete.
        """
        model = self._fitted()
        parameters = self.get_params(deep=False)
        if not isinstance(parameters.get("random_state"), numbers.Integral | None):
            parameters["random_state"] = None  # a generator's state is no part of a model
        arrays = {**pack_model(model), **self._pack_learned(model)}
        header = {
            "parameters": {name: plain(value) for name, value in parameters.items()},
            **plain_parts(model),
        }
        if hasattr(self, "feature_names_in_"):
            arrays.update(pack_texts("feature_names", self.feature_names_in_))
        write_model(path, type(self).__name__, header, arrays)

    @abstractmethod
    def _pack_learned(self, model: Any) -> dict[str, NDArray[Any]]:
        """Return the learned parts as named arrays."""

    @abstractmethod
    def _unpack_learned(self, file: ModelFile, parts: Model) -> Any:
        """Build the model from the shared parts and the learned ones."""

    @abstractmethod
    def _validate_learned(self, model: Any) -> None:
        """Check the learned parts of a model from a file."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used with any data."""

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a model."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's check wants 83 % on dense blobs in the plane, where every "document" has
        # every "term"; a direction (cosine, shared terms) cannot tell such clusters apart.
        tags.classifier_tags.poor_score = True
        return tags

    def _latest(self) -> Any:
        """Return the model as it is, or say that there is none yet."""
        if not self.__sklearn_is_fitted__():  # scikit-learn's own check takes 0.1 ms
            check_is_fitted(self)
        return self._model

    def _fitted(self) -> Any:
        """Return the model in one piece, or say that there is none yet."""
        return self._latest()

    def _labels(self, model: Any) -> NDArray[Any]:
        """Return the labels of a model's classes, sorted."""
        labels: NDArray[Any] = model.classes
        return labels

    def _check_input(self, X: Any, y: ArrayLike, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Return counts and labels after scikit-learn's checks and ours."""
        check_no_missing_label(y)
        check_sparse(X)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype="numeric")
        y = np.asarray(y)
        if y.dtype.kind in "fc":  # for others it only warns that there are many classes
            check_classification_targets(y)
        return X, y

    def _check_rows(self, X: Any) -> CountMatrix:
        """Return the documents to predict in the kernels' form."""
        if self._is_plain(X):
            return CountMatrix.from_matrix(X)
        check_sparse(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric")
        return CountMatrix.from_matrix(X)

    def _is_plain(self, X: Any) -> bool:
        """Tell whether a matrix needs none of scikit-learn's checks, which take 0.2 ms."""
        return bool(
            isinstance(X, _PLAIN)
            and X.ndim == 2
            and X.dtype.kind in "iuf"
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _sum(self, X: Any, y: NDArray[Any], labels: NDArray[Any]) -> ClassStatistics:
        """Sum documents whose labels are all among `labels`."""
        return ClassStatistics.from_counts(
            X,
            np.searchsorted(labels, y),
            len(labels),
            sublinear=self._sublinear,
            n_jobs=self.n_jobs,
        )

    def _explain_one(
        self,
        model: Any,
        rows: CountMatrix,
        document: int,
        number: int,
        ranked: Integers,
        scores: Floats,
        top_terms: int,
    ) -> Explanation:
        """Explain one class for one document, beside the best other candidate."""
        parts = self._split_score(model, rows, document, number)
        others = [j for j in range(len(ranked)) if ranked[j] != number]
        return explain_score(
            parts,
            score=float(parts.contributions.sum() + parts.constant),
            label=model.classes[number],
            runner_up=(model.classes[ranked[others[0]]], scores[others[0]]) if others else None,
            top_terms=top_terms,
            term_names=getattr(self, "feature_names_in_", None),
            feature_names=self._feature_names,
        )


def check_documents_left(n_documents: int) -> None:
    """Refuse to forget everything."""
    if n_documents == 0:
        raise ValueError("cannot forget the last document of a model; fit a new one instead.")


def fill_up(columns: NDArray[Any], k: int, value: float) -> NDArray[Any]:
    """Return an array of k columns; what is missing is the value."""
    missing = k - columns.shape[1]
    if not missing:  # the rule; numpy's padding takes 10 µs all the same
        return np.ascontiguousarray(columns)
    return np.pad(columns, ((0, 0), (0, missing)), constant_values=value)
