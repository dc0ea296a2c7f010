"""Methods that add, forget and edit; what they compute is in `training.editing`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._columns import align_labels
from longtail._labels import Labels, flat_labels, read_label_sets, replicate
from longtail._validation import check_among, check_known, check_same_kind, read_weights, weigh_rows
from longtail.sparse import CountMatrix, Floats
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.editing import grow_terms
from longtail.training import editing


class EditingMixin:
    """Methods that change a fitted model; each swaps in a new state, or leaves the old one."""

    _state: Any
    _lock: Any
    _fitted: Callable[[], Any]
    _check_input: Callable[..., tuple[Any, Labels]]
    n_jobs: int | None

    @abstractmethod
    def _all_classes(self, state: Any) -> NDArray[Any]:
        """Return the labels of a state's classes, sorted."""

    @abstractmethod
    def _merged_statistics(self, state: Any) -> ClassStatistics:
        """Return the sums of all classes."""

    @abstractmethod
    def _merged(self, state: Any) -> Any:
        """Return a state in one segment."""

    @abstractmethod
    def _apply_edit(self, state: Any, edit: editing.ClassEdit) -> Any:
        """Return a state of one segment with other classes and the same learned parts."""

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add documents of known or new classes to the statistics; on an unfitted estimator, fit.

        The learned parts stay as they are; the classes changed are kept in a delta segment, so it
        costs little.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,), or label sets
            Labels; sets as `fit` takes them.
        classes : array-like, optional
            Where given, every label must be among them. Classes without documents are not kept.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents each counts; see `fit`.

        Returns
        -------
        self
        """
        if classes is not None:
            check_among(flat_labels(read_label_sets(y)), classes)
        if not hasattr(self, "_state"):
            fitted: Self = self.fit(X, y, sample_weight)  # type: ignore[attr-defined]
            return fitted
        given = y
        X, y = self._check_input(X, y, reset=False)
        weights = read_weights(sample_weight, given, y)
        X, labels, weights = weigh_rows(*replicate(X, y), weights)
        return self._change_documents(X, labels, 1, weights)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        The model keeps sums, not documents: it notices a document whose terms, counts or class its
        sums cannot contain, and accepts any other.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            The same counts as when they were added.
        y : array-like of shape (n_documents,), or label sets
            The same labels as when they were added; of a label set, those to forget: the document
            stays in its other classes.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents they counted when they were added. Of a document of weight 2 one
            may be forgotten, too; a fraction is forgotten as it was added.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the sums cannot contain the documents, or none would be left; the model then stays
            as it is.
        """
        self._fitted()
        given = y
        X, y = self._check_input(X, y, reset=False)
        weights = read_weights(sample_weight, given, y)
        X, labels, weights = weigh_rows(*replicate(X, y), weights)
        check_known(labels, self._all_classes(self._fitted()))
        return self._change_documents(X, labels, -1, weights)

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
        return self._edit(lambda state: editing.rename_class(*_classes_of(state), old, new))

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
        return self._edit(lambda state: editing.merge_classes(*_classes_of(state), source, into))

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
        return self._edit(lambda state: editing.remove_class(*_classes_of(state), label))

    def _edit(self, edit: Callable[[Any], editing.ClassEdit]) -> Self:
        """Swap in the state after an edit of its classes."""
        self._fitted()
        with self._lock:
            state = self._merged(self._fitted())
            self._state = self._apply_edit(state, edit(state))
        return self

    def _change_documents(
        self, X: Any, y: NDArray[Any], direction: int, weights: Floats | None = None
    ) -> Self:
        """Swap in the state with documents added, or subtracted where the direction is -1."""
        if not len(y):  # documents of no class
            return self
        counts = CountMatrix.from_matrix(X)
        with self._lock:
            state = self._fitted()
            classes = self._all_classes(state)
            check_same_kind(y, classes)
            y = align_labels(y, classes)
            self._state = self._with_documents(state, counts, y, direction, weights)
        return self

    def _with_documents(
        self,
        state: Any,
        counts: CountMatrix,
        y: NDArray[Any],
        direction: int,
        weights: Floats | None = None,
    ) -> Any:
        """Return the state with documents added or subtracted."""
        edit = editing.edit_documents(
            *_classes_of(state), counts, y, direction, self.n_jobs, weights=weights
        )
        return self._apply_edit(state, edit)

    def _grow_terms(self, n_terms: int) -> None:
        """Add terms that no document has had yet."""
        with self._lock:
            self._state = self._with_terms(self._fitted(), n_terms)
            self.n_features_in_ = n_terms

    def _with_terms(self, state: Any, n_terms: int) -> Any:
        """Return the state with more terms."""
        n_classes = len(state.classes)
        return self._apply_edit(
            state,
            editing.ClassEdit(
                state.classes,
                grow_terms(state.statistics, n_terms),
                np.arange(n_classes),
                np.zeros(n_classes, np.bool_),
            ),
        )


def _classes_of(state: Any) -> tuple[NDArray[Any], ClassStatistics]:
    """Return labels and sums of a state of one segment."""
    return state.classes, state.statistics
