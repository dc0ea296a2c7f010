"""Columns of documents and labels, in whatever form they come, as lists and arrays.

A column is a list, a tuple, a generator, a numpy array, or a column of pandas, polars or pyarrow,
categorical or not. None of these libraries is imported: each has a method that gives a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONGEST_SHOWN = 200  # characters of a label in a message
_MAX_WIDENED = 1 << 24  # bytes of classes that a longer label makes as wide as itself
_MAX_PADDING = 1 << 26  # bytes; strings of unequal length in an array of a fixed width


@dataclass(frozen=True)
class TableFormat:
    """Layout of the tables that a model was fitted on; saved with the model."""

    # Columns that hold the text, joined by a blank, and the labels.
    text: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    # What separates the labels in a column; empty where labels are whole, None where nothing was
    # said.
    label_separator: str | None = None
    # Format of the files that the rest is about; None where nothing was said.
    format: str | None = None
    header: bool = True  # whether the first row of CSV and TSV names the columns
    delimiter: str | None = None  # what separates fields; None is the format's own
    # Whether fields may stand in double quotes; None is as the format has it.
    quotes: bool | None = None
    encoding: str = "utf-8"  # of CSV, TSV and JSON lines

    def split_labels(self, cell: str) -> list[str]:
        """Return the labels of a cell, as a reader of the tables splits it."""
        labels = cell.split(self.label_separator) if self.label_separator else []
        return [label.strip() for label in labels if label.strip()] or [cell]


def as_texts(texts: Any) -> list[str]:
    """Return texts as a list of strings, or say what they are instead.

    Parameters
    ----------
    texts : sequence of str
        A column of documents.

    Raises
    ------
    ValueError
        If they are one string, a table, or one of them is missing or no string.
    """
    values = to_list("texts", texts, "string")
    if set(map(type, values)) <= {str, np.str_}:
        return values
    for document, text in enumerate(values):
        if not isinstance(text, str):
            problem = "is missing" if is_missing(text) else f"is of type {type(text).__name__}"
            what_to_do = (
                "For records say what their fields are, such as fields={'title': 'text'}."
                if isinstance(text, Mapping)
                else "Leave it out, or give it an empty string."
            )
            raise ValueError(
                f"texts must be strings; document {document} {problem} ({text!r}). {what_to_do}"
            )
    return values


def as_labels(y: Any, *, max_padding: int = _MAX_PADDING) -> NDArray[Any]:
    """Return labels as an array in which no two of them are confused, or say why there is none.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        A column of strings, integers, booleans or floats, all of one type.
    max_padding : int
        Bytes that strings of unequal length may take in an array of a fixed width.

    Returns
    -------
    ndarray of shape (n_documents,)
        Numbers keep their type; strings are of fixed width, or objects where they came as objects
        or where one is so long that the others would take too much memory. An array of another
        number of dimensions is returned as it is, for scikit-learn to judge.

    Raises
    ------
    ValueError
        If a label is missing, is no label, or would be confused with another.
    """
    if y is None:
        raise ValueError("y should be a 1d array, one label for each document; got None.")
    if hasattr(y, "__array__") and not hasattr(y, "shape") and not hasattr(y, "to_pylist"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and (y.ndim != 1 or y.dtype.kind in "iubUc"):
        return y
    if getattr(getattr(y, "dtype", None), "kind", "") in set("iubf") and hasattr(y, "__array__"):
        numeric = np.asarray(y)  # a numpy array or a pandas column
        if numeric.dtype.kind in "iub" and numeric.ndim == 1:
            return numeric
    values = to_list("y", y, "label")
    if not values:
        return np.array(values)
    kinds = {kind: _label_kind(kind) for kind in set(map(type, values))}
    if None in kinds.values() or "float" in kinds.values():
        _check_labels(values, kinds)
    found = set(kinds.values())
    if len(found) > 1 and found != {"int", "float"}:
        raise _mixed_labels(values, kinds)
    if "str" in found:
        is_object = getattr(y, "dtype", None) == np.dtype(object)
        return _to_strings(values, -1 if is_object else max_padding)
    if "float" in found:
        return _to_floats(values)
    return _to_integers(values) if "int" in found else np.array(values, np.bool_)


def join_labels(chunks: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of several chunks as one array, as if they had come at once."""
    chunks = [labels for labels in chunks if len(labels)]
    kinds = {labels.dtype.kind for labels in chunks}
    if kinds == {"U"}:
        longest = max(labels.dtype.itemsize for labels in chunks)
        padding = sum(longest * len(labels) - labels.nbytes for labels in chunks)
        if padding > _MAX_PADDING:
            chunks = [labels.astype(object) for labels in chunks]
    if len(kinds) == 1 or kinds == {"U", "O"}:
        return np.concatenate(chunks)
    return as_labels([label for labels in chunks for label in labels.tolist()])


def align_labels(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as they can be joined with classes: objects where these would become long.

    numpy makes one array of strings as wide as the longest of them: a label of 40,000 characters
    among 20,000 classes takes 3 GB. The classes may take `_MAX_WIDENED` bytes, or three times
    what they hold, so labels that grow one after the other take no more than one that is long.
    """
    widened = len(classes) * labels.dtype.itemsize
    if labels.dtype.kind == classes.dtype.kind == "U" and widened > max(
        classes.nbytes, _MAX_WIDENED
    ):
        held = 4 * int(np.strings.str_len(classes).sum())
        return labels.astype(object) if widened > 3 * held else labels
    return labels


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for none: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor unequal
        return type(value).__name__ == "NAType"


def as_plain(label: Any) -> Any:
    """Return a label as a Python value, not a numpy scalar."""
    return label.item() if isinstance(label, np.generic) else label


def show_label(label: Any) -> str:
    """Return a label as it is written in Python: 'a', not np.str_('a'); a long one shortened."""
    shown = repr(as_plain(label))
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."


def to_list(name: str, column: Any, item: str) -> list[Any]:
    """Return the values of a column as a list."""
    expected = f"{name} must be a list of {item}s"
    if isinstance(column, str | bytes):
        raise ValueError(
            f"{expected}; got one {type(column).__name__}. Put it into a list: [{item}]."
        )
    if isinstance(column, Set | Mapping):
        raise ValueError(
            f"{expected}, one for each document in order; got a {type(column).__name__}, whose "
            "order is not that of documents."
        )
    n_dimensions = len(getattr(column, "shape", (0,)))
    if n_dimensions != 1:
        raise ValueError(
            f"{name} must have one dimension, one {item} for each document; got {n_dimensions}. "
            f"Choose the column that holds the {item}s."
        )
    if isinstance(column, list):
        return column
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; polars and pandas; numpy
        if hasattr(column, method):
            values: list[Any] = getattr(column, method)()
            return values
    try:
        return list(column)
    except TypeError:
        raise ValueError(f"{expected}; got {type(column).__name__}.") from None


def _label_kind(kind: type) -> str | None:
    """Return what labels of a type are, or None if they are no labels."""
    if issubclass(kind, str):
        return "str"
    if issubclass(kind, bool | np.bool_):
        return "bool"
    if issubclass(kind, int | np.integer):
        return "int"
    return "float" if issubclass(kind, float | np.floating) else None


def _check_labels(values: list[Any], kinds: dict[type, str | None]) -> None:
    """Refuse what is missing and what is no label."""
    for document, label in enumerate(values):
        if is_missing(label):
            raise ValueError(
                f"y contains NaN or None: the label of document {document} is missing "
                f"({label!r}). Leave such documents out, or give them a label of their own."
            )
        if kinds[type(label)] is None:
            raise ValueError(
                "y must have one label for each document, a string or a number; document "
                f"{document} has {label!r} of type {type(label).__name__}."
            )


def _mixed_labels(values: list[Any], kinds: dict[type, str | None]) -> ValueError:
    """Return the error for labels of types that do not go together."""
    first = {kinds[type(label)]: document for document, label in reversed([*enumerate(values)])}
    examples = ", ".join(
        f"{show_label(values[document])} (document {document})"
        for document in sorted(first.values())
    )
    return ValueError(
        f"y mixes labels of different types: {examples}. Use labels of one type, such as "
        "[str(label) for label in y]."
    )


def _to_strings(values: list[str], max_padding: int) -> NDArray[Any]:
    """Return strings as an array; numpy drops NUL characters at the end of a string."""
    for document, label in enumerate(values):
        if label.endswith("\0"):
            raise ValueError(
                f"the label {label!r} of document {document} ends with a NUL character, which "
                "arrays of strings do not keep. Remove it."
            )
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    padding = 4 * (lengths.max() * len(values) - lengths.sum())
    return np.array(values, object if padding > max_padding else np.str_)


def _to_integers(values: list[Any]) -> NDArray[Any]:
    """Return integers as an array of 64 bits each."""
    least, most = int(min(values)), int(max(values))
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
            return np.array(values, dtype)
    raise ValueError(
        f"y has integers from {least} to {most}, which no integer of 64 bits holds. Use strings: "
        "[str(label) for label in y]."
    )


def _to_floats(values: list[Any]) -> NDArray[Any]:
    """Return floats, and integers among them that lose nothing, as an array."""
    for document, label in enumerate(values):
        if isinstance(label, int | np.integer) and int(label) != int(_nearest_float(int(label))):
            raise ValueError(
                f"y mixes integers and floats, and the label {show_label(label)} of document "
                f"{document} has no equal among floats. Use labels of one type."
            )
    return np.array(values, np.float64)


def _nearest_float(value: int) -> float:
    """Return the float nearest to an integer; 0 where none is near."""
    try:
        return float(value)
    except OverflowError:
        return 0.0
