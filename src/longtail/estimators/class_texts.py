"""Checks of class texts: as rows of counts, and as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._columns import as_labels, as_plain, show_label
from longtail._labels import LabelForm
from longtail._validation import check_columns, check_same_kind
from longtail.sparse import CountMatrix, check_sparse

ClassTexts = tuple[NDArray[Any], CountMatrix]


def check_text_labels(named: NDArray[Any], classes: NDArray[Any], form: LabelForm) -> None:
    """Refuse labels that have a text but cannot be classes beside those of the documents."""
    check_same_kind(named, classes)
    check_column(form, named)


def check_column(form: LabelForm, labels: NDArray[Any]) -> None:
    """Refuse a class that an indicator matrix has no column for."""
    check_columns(form, labels)
    if form.is_indicator and not np.all((labels >= 0) & (labels < form.n_columns)):
        raise ValueError(
            f"labels are the {form.n_columns} columns of an indicator matrix; class_texts has "
            "a text for another. Add an empty column for each class without documents."
        )


def read_class_texts(class_texts: Any, n_terms: int | None) -> ClassTexts | None:
    """Return the labels of a mapping or a pair, sorted, and the counts of their texts.

    Where it is not known how many terms there are, `n_terms` is None: that of the first row.

    Raises
    ------
    ValueError
        If it is neither, has a label twice, or rows that are not n_terms counts.
    """
    if isinstance(class_texts, Mapping):
        given = {label: row for label, row in class_texts.items() if row is not None}
        labels = as_labels(list(given)) if given else np.zeros(0)
        first = next(iter(given), None)
        rows = _stack([_as_row(row, label) for label, row in given.items()], n_terms, first)
    elif isinstance(class_texts, tuple) and len(class_texts) == 2:
        labels = as_labels(class_texts[0])
        matrix = class_texts[1]
        rows = (
            matrix
            if isinstance(matrix, CountMatrix)
            else _stack([matrix if sp.issparse(matrix) else _as_floats(matrix)], n_terms, None)
        )
    else:
        raise ValueError(
            "class_texts must be a mapping of label to counts, or a pair (labels, matrix); "
            f"got {type(class_texts).__name__}."
        )
    if len(labels) != rows.n_documents:
        raise ValueError(f"class_texts has {len(labels)} labels and {rows.n_documents} rows.")
    if not len(labels):
        return None
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    twice = np.flatnonzero(labels[1:] == labels[:-1])
    if len(twice):
        raise ValueError(f"class_texts has label {show_label(labels[twice[0]])} twice.")
    return labels, rows.gather(order)


def _as_row(row: Any, label: Any) -> Any:
    """Return the counts of one text as a matrix of one row."""
    if isinstance(row, str):
        raise ValueError(
            f"the text of class {label!r} must be a row of counts; got a string. TextClassifier "
            "takes texts."
        )
    if not sp.issparse(row):
        return np.atleast_2d(_as_floats(row))
    sparse: Any = row
    if sparse.ndim == 2:
        check_sparse(sparse, f"the text of class {label!r}")  # before it is reshaped
    return sparse.reshape(1, -1)


def _as_floats(rows: Any) -> NDArray[np.float64]:
    """Return counts as an array."""
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"class_texts must hold rows of counts: {error}.") from None


def _stack(rows: list[Any], n_terms: int | None, label: Any) -> CountMatrix:
    """Return rows as counts of n_terms terms; of as many as the first has where it is None."""
    if not rows:
        return CountMatrix.from_matrix(sp.csr_array((0, n_terms or 0)))
    if n_terms is None and rows[0].ndim == 2:
        n_terms = rows[0].shape[1]
    for row in rows:
        if row.ndim != 2 or row.shape[1] != n_terms:
            of_class = "" if label is None else f" (class {label!r} or a later one)"
            raise ValueError(
                f"class_texts must have rows of {n_terms} counts, one for each column of X; got "
                f"shape {row.shape}{of_class}."
            )
        check_sparse(row, "class_texts")
    return CountMatrix.from_matrix(sp.vstack([sp.csr_array(row) for row in rows], format="csr"))


def check_class_texts(class_texts: Mapping[Any, str | None] | None) -> dict[Any, str]:
    """Return the texts of classes that have one: not None, not blank.

    Raises
    ------
    ValueError
        If it is no mapping, or a text is no string.
    """
    if class_texts is None:
        return {}
    if not isinstance(class_texts, Mapping):
        raise ValueError(
            f"class_texts must be a mapping of label to text; got {type(class_texts).__name__}."
        )
    for label, text in class_texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the text of class {label!r} must be a string or None; got {text!r}.")
    named = {as_plain(label): text for label, text in class_texts.items() if text}
    return {label: text for label, text in named.items() if text.strip()}


def read_class_text(text: Any, label: Any, n_terms: int) -> CountMatrix:
    """Return the counts of one class's text."""
    return _stack([_as_row(text, label)], n_terms, label)
