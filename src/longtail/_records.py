"""Documents of several fields: what a record is, and the one text that holds it whole.

In: documents as dicts, or the rows of a table. Out: a text for each, the record as a JSON object,
which is what a journal keeps and what is sent to workers; and back. A plain text is a document as
well: it has the terms that all texts share.

A value that is missing (None, NaN, blank) is left out.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._caching import cached_property
from longtail._columns import as_texts, is_missing, to_list
from longtail._words import describe_missing

TEXT, CATEGORY, CATEGORIES, NUMERIC = "text", "category", "categories", "number"
KINDS = (TEXT, CATEGORY, CATEGORIES, NUMERIC)
SEPARATORS = ";|"  # of categories in one string, where none is given
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_LARGEST = 2.0**1023  # in size; what a file holds

Record = dict[str, Any]


@dataclass(frozen=True)
class Fields:
    """The fields of a record, in order."""

    kinds: tuple[tuple[str, str], ...]  # name and kind of each
    # For each number the values at which its bins begin, but the first; empty before `fit`.
    edges: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all fields."""
        return tuple(name for name, _ in self.kinds)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Names of the fields that hold text."""
        return tuple(name for name, kind in self.kinds if kind == TEXT)

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Names of the fields that hold numbers."""
        return tuple(name for name, kind in self.kinds if kind == NUMERIC)

    @property
    def n_parts(self) -> int:
        """Texts that a record is tokenized as: all together, then each where there are several."""
        return 1 + len(self.texts) if len(self.texts) > 1 else 1

    @property
    def needs_bins(self) -> bool:
        """Whether there are numbers whose bins are not known yet."""
        return bool(self.numeric) and not self.edges

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled; the rest is derived."""
        return {"kinds": self.kinds, "edges": self.edges}


def read_fields(given: Any) -> Fields | None:
    """Return the fields of a parameter: a mapping of names to kinds, in order.

    Raises
    ------
    ValueError
        If a name or a kind cannot be used.
    """
    if given is None or isinstance(given, Fields):
        return given
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "fields must be a mapping of names to kinds, such as {'subject': 'text', 'brand': "
            f"'category'}}, or None; got {given!r}."
        )
    for name, kind in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                "fields must have names of 1 to 200 characters without control characters; got "
                f"{name!r}."
            )
        if kind not in KINDS and not _separator(kind):
            raise ValueError(
                f"fields: {name!r} must be one of {', '.join(KINDS)}, or such as 'categories:,' "
                f"for a list in one string; got {kind!r}."
            )
    return Fields(tuple((str(name), str(kind)) for name, kind in given.items()))


def _separator(kind: Any) -> str:
    """Return what separates categories by their kind, such as ``categories:,``."""
    is_string = isinstance(kind, str)
    return kind[len(CATEGORIES) + 1 :] if is_string and kind.startswith(f"{CATEGORIES}:") else ""


# ---- records -> texts


def write_documents(documents: Any, fields: Fields | None) -> list[str]:
    """Return documents as texts; records become JSON objects, texts stay as they are.

    Parameters
    ----------
    documents : sequence of str or mapping, or a table of pandas, polars or pyarrow
        Texts alone where there are no fields.
    fields : Fields or None
        What records have.

    Raises
    ------
    ValueError
        If a table lacks a field, a record has none of them, or a value is of another kind.
    """
    if fields is None:
        return as_texts(documents)
    if isinstance(documents, Mapping):
        raise ValueError(
            "documents must be a list of records or a table; got one mapping. Put a record into "
            "a list: [record]."
        )
    if hasattr(documents, "columns"):
        return _write_rows(documents, fields)
    values = to_list("documents", documents, "record")
    if set(map(type, values)) <= {str}:
        return values
    return [
        str(value) if isinstance(value, str) else _write(value, fields, i)
        for i, value in enumerate(values)
    ]


def _write_rows(table: Any, fields: Fields) -> list[str]:
    """Return the rows of a table."""
    names = list(getattr(table, "column_names", None) or table.columns)
    for name in fields.names:
        if name not in names:
            raise ValueError(f"documents: {describe_missing('field', name, names)}.")
    columns = [to_list(name, table[name], "value") for name in fields.names]
    rows = (dict(zip(fields.names, row, strict=True)) for row in zip(*columns, strict=True))
    return [_write(row, fields, i) for i, row in enumerate(rows)]


def _write(record: Any, fields: Fields, document: int) -> str:
    """Return a record as a text, or say which one cannot be written."""
    try:
        return write_record(record, fields)
    except ValueError as error:
        raise ValueError(f"document {document}: {error}.") from None


def write_record(record: Any, fields: Fields) -> str:
    """Return a record as a JSON object of its fields, in their order, without missing ones.

    Where all are missing the text is empty.

    Raises
    ------
    ValueError
        If it has none of the fields, or a value is of another kind.

    Examples
    --------
    >>> fields = read_fields({"subject": "text", "brand": "category", "price": "number"})
    >>> write_record({"price": 7.5, "subject": "A refund", "brand": None, "id": 3}, fields)
    '{"subject": "A refund", "price": 7.5}'
    """
    values = _read_values(record, fields)
    return json.dumps(values, ensure_ascii=False) if values else ""


def _read_values(record: Any, fields: Fields) -> Record:
    """Return the values of a record in the form that JSON keeps, or say what is wrong with one."""
    if not isinstance(record, Mapping):
        problem = "is missing" if is_missing(record) else f"is of type {type(record).__name__}"
        raise ValueError(
            f"it must be a record with {', '.join(map(repr, fields.names))}, or a text; it "
            f"{problem} ({record!r:.80})"
        )
    if not any(name in record for name in fields.names):
        raise ValueError(describe_missing("field", fields.names[0], record))
    values: Record = {}
    for name, kind in fields.kinds:
        try:
            value = _READERS[kind.partition(":")[0]](record.get(name), _separator(kind))
        except (ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"field {name!r} {error}") from None
        if value is not None and value != "" and value != []:
            values[name] = value
    return values


def _read_text(value: Any, _: str) -> str | None:
    """Return a string as it is, a number as it is written, None for nothing."""
    if isinstance(value, str):
        return value if value.strip() else None
    return _as_category(value)


def _as_category(value: Any) -> str | None:
    """Return a category without blanks around it; None for nothing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple | Set | np.ndarray | Mapping):
        raise ValueError(f"holds a {type(value).__name__}; expected a string or a number")
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a whole number that shared its column with a missing value
    if isinstance(value, numbers.Number | bool):
        return str(value)
    raise ValueError(f"holds a {type(value).__name__}; expected a string or a number")


def _read_category(value: Any, _: str) -> str | None:
    return _as_category(value)


def _read_categories(value: Any, separator: str) -> list[str]:
    """Return categories, each once."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if hasattr(value, "to_list") and not isinstance(value, str):
        value = value.to_list()
    if isinstance(value, Set):
        value = sorted(value, key=str)
    if isinstance(value, str):
        marks = separator or SEPARATORS
        value = value.split(marks) if separator else re.split(f"[{re.escape(marks)}]", value)
    if not isinstance(value, list | tuple):
        value = [value]
    found = map(_as_category, value)
    return [category for category in dict.fromkeys(found) if category]


def _read_number(value: Any, _: str) -> int | float | None:
    """Return a finite number; None for nothing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"holds {value!r:.80}; expected a number") from None
    if not isinstance(value, list | np.ndarray) and is_missing(value):
        return None
    if not isinstance(value, numbers.Number) or isinstance(value, complex):
        raise ValueError(f"holds a {type(value).__name__}; expected a number")
    try:
        given = float(value)  # type: ignore[arg-type]
    except OverflowError:
        given = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if given != given:
        return None
    given = min(max(given, -_LARGEST), _LARGEST)
    return int(given) if given.is_integer() and abs(given) < 2**53 else given


_READERS: dict[str, Any] = {
    TEXT: _read_text,
    CATEGORY: _read_category,
    CATEGORIES: _read_categories,
    NUMERIC: _read_number,
}


# ---- texts -> records


def read_record(text: str, fields: Fields) -> Record | None:
    """Return the record that a text holds; None for a plain text."""
    if not text.startswith("{"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not any(name in record for name in fields.names):
        return None
    try:
        return _read_values(record, fields)
    except ValueError:
        return None


def plain_text(text: str, fields: Fields | None) -> str:
    """Return the words of a document: its texts, joined by a blank."""
    record = None if fields is None else read_record(text, fields)
    if record is None or fields is None:
        return text
    return " ".join(record[name] for name in fields.texts if name in record)


def join_values(text: str, fields: Fields | None) -> str:
    """Return the values of a document, joined by blanks."""
    record = None if fields is None else read_record(text, fields)
    if record is None:
        return text
    lists = (value if isinstance(value, list) else [value] for value in record.values())
    return " ".join(str(value) for values in lists for value in values)
