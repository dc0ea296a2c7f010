"""The methods of a `TextClassifier` that change a fitted model; `_text_state` computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from longtail._columns import TableFormat, as_labels, as_texts
from longtail._labels import Labels, flat_labels, read_label_sets
from longtail._validation import PairWeights, check_among, read_weights
from longtail.estimators import _text_state as states
from longtail.estimators._stateful import StatefulEstimator
from longtail.results import Health

Method = TypeVar("Method")


def if_classifier_has(name: str) -> Callable[[Method], Method]:
    """Return a decorator: the method exists where the classifier of counts has one of the name."""

    def check(estimator: Any) -> bool:
        getattr(type(estimator._classifier_of_counts()), name)  # AttributeError if it has not
        return True

    decorate: Callable[[Method], Method] = available_if(check)
    return decorate


class TextEditing(StatefulEstimator):
    """Adding, forgetting and editing classes: each swaps in a new state, or leaves the old one."""

    n_jobs: int | None
    fit: Callable[..., Self]
    _classifier_of_counts: Callable[[], Any]

    def partial_fit(
        self,
        texts: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add documents of known or new classes, and their new terms; on an unfitted one, fit.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : array-like of shape (n_documents,), or label sets
            Labels; sets as `fit` takes them.
        classes : array-like, optional
            Where given, every label must be among them.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents each counts; see `fit`.

        Returns
        -------
        self
        """
        texts, labels = as_texts(texts), self._read_labels(y)
        if not self.__sklearn_is_fitted__():
            if classes is not None:
                check_among(flat_labels(labels), as_labels(classes))
            return self.fit(texts, y, sample_weight)
        states.check_lengths(texts, labels, "y")
        weights = read_weights(sample_weight, y, labels)
        return self._swap(
            lambda state: states.add_documents(
                state,
                texts,
                labels,
                classes=classes,
                weights=weights,
                n_jobs=self.n_jobs,
            )
        )

    def forget(self, texts: Any, y: Any, sample_weight: Any = None) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        A document is counted as it was when it was added: one of the fit with the terms of the
        fit, a later one with those that it brought as well. A document that was never added is
        noticed for certain with `remember_documents`; without, where a term, a count or the number
        of documents is more than its class has, which in a large class may not be so.

        Parameters
        ----------
        texts : sequence of str
            The same texts as when they were added.
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
            If a document was never added, or none would be left; the model then stays as it is.
        """
        texts, labels = as_texts(texts), self._read_labels(y)
        weights = read_weights(sample_weight, y, labels)
        return self._swap(
            lambda state: states.forget_documents(state, texts, labels, self.n_jobs, weights)
        )

    @if_classifier_has("refine")
    def refine(self, texts: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Bring what all classes share up to date; with documents, learn residuals anew as well.

        See the classifier of counts.

        Parameters
        ----------
        texts : sequence of str, optional
            Documents of the model: those of the changed classes, and as many others as there are.
        y : array-like of shape (n_documents,), optional
            Their labels.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents they counted when they were added; see `fit`.

        Returns
        -------
        self
        """
        if texts is None and y is None:
            return self._swap(lambda state: states.edit_classifier(state, lambda c: c.refine()))
        texts, labels = as_texts(texts), self._read_labels(y)
        weights = PairWeights(read_weights(sample_weight, y, labels))

        def refined(state: states.TextState) -> states.TextState:
            X = states.count_for_refining(state, texts, labels, self.n_jobs)
            return states.edit_classifier(state, lambda inner: inner.refine(X, labels, weights))

        return self._swap(refined)

    @if_classifier_has("expect_unknown")
    def expect_unknown(self, share: float) -> Self:
        """Tell the model how many of the texts to come have a class that it does not have.

        See the classifier of counts. Call it once, after `fit`.

        Parameters
        ----------
        share : float
            From 0 to below 1.

        Returns
        -------
        self
        """
        return self._swap(
            lambda state: states.edit_classifier(state, lambda inner: inner.expect_unknown(share))
        )

    @if_classifier_has("recalibrate")
    def recalibrate(self, texts: Any, y: Any) -> Self:
        """Correct the probabilities by texts that the model has not been taught yet.

        See the classifier of counts. Call it before `partial_fit` with the same texts.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : array-like of shape (n_documents,)
            Their labels; the model need not have them.

        Returns
        -------
        self
        """
        texts, labels = as_texts(texts), self._read_labels(y)
        states.check_lengths(texts, labels, "y")

        def recalibrated(state: states.TextState) -> states.TextState:
            X = states.count_texts(state, texts, self.n_jobs)
            return states.edit_classifier(state, lambda inner: inner.recalibrate(X, labels))

        return self._swap(recalibrated)

    @if_classifier_has("health")
    def health(self) -> Health:
        """Return how far the model has moved from what was learned, and what to do about it.

        Returns
        -------
        Health
            Prints as a table.
        """
        found: Health = self._fitted().classifier.health()
        return found

    def rename_class(self, old: Any, new: Any) -> Self:
        """Give a class another label; see the classifier of counts."""
        return self._swap(
            lambda state: states.edit_classifier(
                state, lambda inner: inner.rename_class(old, new), (old, new)
            )
        )

    def merge_classes(self, source: Any, into: Any) -> Self:
        """Add the documents of one class to another; see the classifier of counts."""
        return self._swap(
            lambda state: states.edit_classifier(
                state, lambda inner: inner.merge_classes(source, into), (source, into)
            )
        )

    def remove_class(self, label: Any) -> Self:
        """Remove a class with all its documents; see the classifier of counts."""
        return self._swap(
            lambda state: states.edit_classifier(state, lambda inner: inner.remove_class(label))
        )

    @if_classifier_has("set_class_text")
    def set_class_text(self, label: Any, text: str | None) -> Self:
        """Give a class another name, synonyms or description; its documents stay as they are.

        The text is compared with the vocabulary as it is now. What a name counts stays as it was
        learned by `fit`; where that had none, it is a default.

        Parameters
        ----------
        label : label
            A label that is no class becomes one that is known by its text alone.
        text : str or None
            None or a blank text takes it away; a class that has no document either then
            disappears.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the text is no string, or the label is of another kind than the classes; the model
            then stays as it is.
        """
        return self._swap(lambda state: states.set_class_text(state, label, text, self.n_jobs))

    @property
    def class_texts_(self) -> dict[Any, str]:
        """Names, synonyms or descriptions of the classes that have any."""
        return dict(self._fitted().class_texts)

    @property
    def columns_(self) -> TableFormat | None:
        """Where tables have text and labels, if that was said; a file keeps it."""
        columns: TableFormat | None = self._fitted().columns
        return columns

    def set_columns(
        self,
        text: Sequence[str],
        label: str | Sequence[str],
        label_separator: str | None = None,
        **reading: Any,
    ) -> Self:
        """Say how tables hold texts and labels; commands, the service and the page go by it.

        Parameters
        ----------
        text : sequence of str
            Names of the columns that make up the text, joined by a blank.
        label : str or sequence of str
            Name of the column with the class, or of several that hold the labels of a document.
        label_separator : str, optional
            What separates the labels in a column; an empty one says that labels are whole.
        **reading : object
            How files are written: `format`, and of this format `header`, `delimiter`, `quotes` and
            `encoding`, as in `longtail.datasets.Table`.

        Returns
        -------
        self
        """
        labels = (label,) if isinstance(label, str) else tuple(label)
        columns = TableFormat(tuple(text), labels, label_separator, **reading)
        return self._swap(lambda state: replace(state, columns=columns))

    def _read_labels(self, y: Any) -> Labels:
        """Return labels, or label sets where the classifier of counts takes them."""
        return read_label_sets(y, getattr(self._classifier_of_counts(), "multilabel", "auto"))

    def _swap(self, change: Callable[[states.TextState], states.TextState]) -> Self:
        """Swap in the state that a function makes of the present one."""
        self._fitted()
        with self._lock:
            self._state = change(self._fitted())
        return self
