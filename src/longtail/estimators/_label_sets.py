"""Prediction of label sets: which of a document's candidates are its labels."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._constants import LABEL_FORMS
from longtail._labels import LabelForm, LabelSets, as_sets
from longtail._validation import look_up
from longtail.estimators._base import CountClassifier, has_known_term
from longtail.results import Predicted, Threshold
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.calibration import choose_set_sizes

# Of the label sets of a model: it may have been loaded from a file that claims any number, and each
# column takes 8 bytes per document.
MAX_DENSE_COLUMNS = 1 << 16


class LabelSetPrediction(CountClassifier):
    """`predict` and `score` of a model whose documents may have several labels."""

    @abstractmethod
    def _rank_calibrated(self, state: Any, counts: CountMatrix) -> tuple[Integers, Floats]:
        """Return all candidates of each document with their probabilities."""

    @property
    def multilabel_(self) -> bool:
        """Whether a document may have several labels: `predict` then gives label sets."""
        form: LabelForm = self._fitted().label_form
        return form.is_multilabel

    @property
    def n_documents_(self) -> int:
        """Documents; of a model of label sets those of the last fit.

        The statistics count a document once for each of its labels.
        """
        return int(self._fitted().n_fitted_documents) if self.multilabel_ else super().n_documents_

    def predict(
        self, X: Any, threshold: float | Threshold | None = None, max_labels: int | None = None
    ) -> Predicted:
        """Return the best class of each document, or its label set.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        threshold : float or Threshold, optional
            For label sets: take the labels of at least this probability, such as what
            `threshold_for` gives; a set may be empty. When left out, the set of highest expected
            F1, which has a label at least, unless the document has no known term.
        max_labels : int, optional
            For label sets: the most labels of a document.

        Returns
        -------
        ndarray of shape (n_documents,), or list of lists, or indicator matrix
            Labels. Label sets come in the form that `fit` was given: as lists, most probable label
            first, or as a sparse or dense matrix of 0 and 1, sparse beyond 65,536 columns.
        """
        state = self._fitted()
        if not state.label_form.is_multilabel:
            if threshold is not None or max_labels is not None:
                raise ValueError(
                    "threshold and max_labels are for models that were fitted with label sets; "
                    "this one has one label for each document. Use predict_proba_topk to abstain."
                )
            return super().predict(X)
        _check_max_labels(max_labels)
        counts = self._check_counts(X)
        class_ids, probabilities = self._rank_calibrated(state, counts)
        if threshold is None:
            sizes = choose_set_sizes(probabilities, max_labels)
        else:
            sizes = np.count_nonzero(probabilities[:, :max_labels] >= float(threshold), axis=1)
        sizes[~has_known_term(state, counts)] = 0
        return form_sets(self._all_classes(state), class_ids, sizes, state.label_form)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; for label sets, the mean F1 of the documents' sets.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        y : array-like of shape (n_documents,), list of lists or indicator matrix
            True labels.
        sample_weight : array-like of shape (n_documents,), optional
            What each document counts.

        Returns
        -------
        float
            A document without labels for which none is predicted counts as 1.
        """
        if not self.multilabel_:
            accuracy: float = super().score(X, y, sample_weight)
            return accuracy
        true, predicted = as_sets(y), as_sets(self.predict(X))
        if true.n_documents != predicted.n_documents:
            raise ValueError(
                f"y has {true.n_documents} label sets for {predicted.n_documents} documents."
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        return float(np.average(_document_f1(true, predicted), weights=weights))


def form_sets(
    classes: NDArray[Any], class_ids: NDArray[Any], sizes: Integers, form: LabelForm
) -> Predicted:
    """Return the first classes of each row, as many as its size, in the form of the labels."""
    kept = np.arange(class_ids.shape[1]) < sizes[:, None]
    labels = classes[class_ids[kept]]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    if not form.is_indicator:
        flat, bounds = labels.tolist(), indptr.tolist()
        return [flat[first:last] for first, last in pairwise(bounds)]
    n_columns = max(form.n_columns, int(classes.max()) + 1)  # classes may be added
    matrix = sp.csr_array(
        (np.ones(len(labels), np.int64), labels, indptr), shape=(len(sizes), n_columns)
    )
    matrix.sort_indices()
    is_dense = LABEL_FORMS[form.form] == "dense indicator" and n_columns <= MAX_DENSE_COLUMNS
    return matrix.toarray() if is_dense else matrix


def _document_f1(true: LabelSets, predicted: LabelSets) -> Floats:
    """Return the F1 of each document's predicted set."""
    found = look_up(true.classes, predicted.labels)
    keys = true.document_ids * (len(true.classes) + 1) + true.class_ids
    wanted = predicted.document_ids * (len(true.classes) + 1) + found
    hits = np.isin(wanted, keys) & (found >= 0)
    n_correct = np.bincount(predicted.document_ids[hits], minlength=true.n_documents)
    n_both = true.sizes + predicted.sizes
    return np.where(n_both > 0, 2.0 * n_correct / np.maximum(n_both, 1), 1.0)


def _check_max_labels(max_labels: int | None) -> None:
    """Refuse anything but a whole number of labels."""
    if max_labels is None:
        return
    if not isinstance(max_labels, numbers.Integral) or max_labels < 1:
        raise ValueError(
            f"max_labels must be an integer of at least 1, or None; got {max_labels!r}."
        )
