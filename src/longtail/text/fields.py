"""Records of several fields -> texts that hold them whole, and what each field becomes as terms.

In: documents as dicts, or as rows of a table. Out: one text for each, the record as a JSON object,
which is what a journal keeps and what is sent to workers; and from such a text the parts that a
tokenizer reads. A plain text is a document as well: it has shared terms only.

============ ==================================================== =======================
kind         value                                                terms
============ ==================================================== =======================
text         a string                                             ``refund``, ``body:refund``
category     a string or a number                                 ``brand=acme``
categories   a list of these, or a string with separators         ``tags=a``, ``tags=b``
number       a number                                             ``price=10..20``: its quantile
                                                                  bin and the two beside it
============ ==================================================== =======================

A value that is missing (None, NaN, blank) is no term.
"""

from __future__ import annotations

import difflib
import json
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._columns import as_texts, is_missing, to_list
from longtail._kernels.text import Tokens
from longtail.sparse import Floats, offsets_from_lengths

TEXT, CATEGORY, CATEGORIES, NUMBER = "text", "category", "categories", "number"
KINDS = (TEXT, CATEGORY, CATEGORIES, NUMBER)
N_BINS = 16  # of a number; each value is in its own bin and in both neighbours
SEPARATORS = ";|"  # of categories in one string, where none is given
# Ends the name of a field in a term. No word has it: the default tokenizer takes it for a
# separator, and words of a user's tokenizer are cleaned of it.
MARK = "\x7f"
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_LARGEST = 1.7976931348623157e308
_MOST_NAMES = 40  # fields that an error lists

Record = dict[str, Any]


@dataclass(frozen=True)
class Fields:
    """The fields of a record, in order.

    Attributes
    ----------
    kinds : tuple of (str, str)
        Name and kind of each.
    edges : tuple of tuples of float
        For each number the values at which its bins begin, but the first; empty before `fit`.
    """

    kinds: tuple[tuple[str, str], ...]
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
    def numbers(self) -> tuple[str, ...]:
        """Names of the fields that hold numbers."""
        return tuple(name for name, kind in self.kinds if kind == NUMBER)

    @property
    def n_parts(self) -> int:
        """Texts that a record is tokenized as: all together, then each where there are several."""
        return 1 + len(self.texts) if len(self.texts) > 1 else 1

    @property
    def needs_bins(self) -> bool:
        """Whether there are numbers whose bins are not known yet."""
        return bool(self.numbers) and not self.edges

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
        str(value) if isinstance(value, str) else write_record(value, fields, i)
        for i, value in enumerate(values)
    ]


def _write_rows(table: Any, fields: Fields) -> list[str]:
    """Return the rows of a table."""
    names = list(getattr(table, "column_names", None) or table.columns)
    for name in fields.names:
        if name not in names:
            raise ValueError(f"documents: {_missing_field(name, names)}.")
    columns = [to_list(name, table[name], "value") for name in fields.names]
    return [
        write_record(dict(zip(fields.names, row, strict=True)), fields, i)
        for i, row in enumerate(zip(*columns, strict=True))
    ]


def _missing_field(name: str, names: Sequence[Any]) -> str:
    """Say that a field is missing, and which there are."""
    shown = ", ".join(repr(found) for found in names[:_MOST_NAMES])
    close = difflib.get_close_matches(name, list(map(str, names)), 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no field {name!r}; there are {shown or 'none'}{hint}"


def write_record(record: Any, fields: Fields, document: int = 0) -> str:
    """Return a record as a JSON object of its fields, in their order, without missing ones.

    Examples
    --------
    >>> fields = read_fields({"subject": "text", "brand": "category", "price": "number"})
    >>> write_record({"price": 7.5, "subject": "A refund", "brand": None, "id": 3}, fields)
    '{"subject": "A refund", "price": 7.5}'
    """
    return json.dumps(_read_values(record, fields, document), ensure_ascii=False)


def _read_values(record: Any, fields: Fields, document: int) -> Record:
    """Return the values of a record in the form that JSON keeps, or say what is wrong with one."""
    if not isinstance(record, Mapping):
        problem = "is missing" if is_missing(record) else f"is of type {type(record).__name__}"
        raise ValueError(
            f"documents must be records with {', '.join(map(repr, fields.names))}, or texts; "
            f"document {document} {problem} ({record!r:.80})."
        )
    if not any(name in record for name in fields.names):
        raise ValueError(f"document {document}: {_missing_field(fields.names[0], [*record])}.")
    values: Record = {}
    for name, kind in fields.kinds:
        try:
            value = _READERS[kind.partition(":")[0]](record.get(name), _separator(kind))
        except (ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"document {document}: field {name!r} {error}.") from None
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
    NUMBER: _read_number,
}


# ---- texts -> the parts that are tokenized


class Parts(NamedTuple):
    """The parts of some documents, for the tokenizer.

    `texts` are `n_parts` for each document, the first of them all its words; `terms` are those
    that are no words, for each document.
    """

    texts: list[str]
    terms: list[list[bytes]]


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
    return _read_values(record, fields, 0)


def plain_text(text: str, fields: Fields | None) -> str:
    """Return the words of a document: its texts, joined by a blank."""
    record = None if fields is None else read_record(text, fields)
    if record is None or fields is None:
        return text
    return " ".join(record[name] for name in fields.texts if name in record)


def split_documents(texts: Iterable[str], fields: Fields) -> Parts:
    """Return the parts of documents."""
    parts = Parts([], [])
    several = fields.n_parts > 1
    for text in texts:
        record = read_record(text, fields)
        if record is None:
            parts.texts.extend([text, *([""] * (fields.n_parts - 1))])
            parts.terms.append([])
            continue
        found = [record.get(name, "") for name in fields.texts]
        parts.texts.append(" ".join(filter(None, found)))
        if several:
            parts.texts.extend(found)
        parts.terms.append(_field_terms(record, fields))
    return parts


def _field_terms(record: Record, fields: Fields) -> list[bytes]:
    """Return the terms of a record that are no words."""
    terms: list[bytes] = []
    for name, kind in fields.kinds:
        value = record.get(name)
        if value is None or kind == TEXT:
            continue
        if kind == NUMBER:
            if fields.edges:
                edges = fields.edges[fields.numbers.index(name)]
                terms += number_terms(name, float(value), edges)
            continue
        for category in [value] if kind == CATEGORY else value:
            terms.append(_as_term(name, category))
    return terms


def _as_term(name: str, value: str) -> bytes:
    """Return a term that no text has."""
    return f"~{MARK}{name}{MARK}{value}".encode("utf-8", "replace")


# ---- numbers


def read_numbers(texts: Iterable[str], fields: Fields) -> Floats:
    """Return the numbers of documents, NaN where one is missing."""
    rows = []
    for text in texts:
        record = read_record(text, fields) or {}
        rows.append([record.get(name, math.nan) for name in fields.numbers])
    return np.array(rows, np.float64).reshape(len(rows), len(fields.numbers))


def learn_edges(fields: Fields, values: Floats) -> Fields:
    """Return the fields with bins of about equally many documents; their order does not matter.

    Parameters
    ----------
    fields : Fields
        Whose numbers they are.
    values : ndarray of shape (n_documents, n_numbers)
        NaN where one is missing.
    """
    return replace(fields, edges=tuple(_quantiles(column) for column in values.T))


def _quantiles(values: Floats) -> tuple[float, ...]:
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return ()
    at = np.arange(1, N_BINS) * len(ordered) // N_BINS
    edges = np.unique(ordered[at])
    return tuple(edges[edges > ordered[0]].tolist())


def number_terms(name: str, value: float, edges: tuple[float, ...]) -> list[bytes]:
    """Return the bin of a number and those beside it."""
    if value != value:
        return []
    bin_ = int(np.searchsorted(edges, value, side="right"))
    return [
        _as_term(name, _name_bin(at, edges)) for at in range(bin_ - 1, bin_ + 2)
        if 0 <= at <= len(edges)
    ]  # fmt: skip


def number_tokens(values: Floats, fields: Fields) -> Tokens:
    """Return the terms of numbers as tokens of documents.

    Parameters
    ----------
    values : ndarray of shape (n_documents, n_numbers)
        NaN where one is missing.
    fields : Fields
        With edges.
    """
    columns = list(zip(fields.numbers, fields.edges, strict=True))
    rows = [
        [
            term
            for (name, edges), value in zip(columns, row, strict=True)
            for term in number_terms(name, value, edges)
        ]
        for row in values.tolist()
    ]
    terms = [term for row in rows for term in row]
    offsets = offsets_from_lengths(np.fromiter(map(len, terms), np.int64, len(terms)))
    indptr = offsets_from_lengths(np.fromiter(map(len, rows), np.int64, len(rows)))
    utf8 = np.frombuffer(b"".join(terms), np.uint8)
    return Tokens(utf8, offsets[:-1], offsets[1:], indptr)


def _name_bin(at: int, edges: tuple[float, ...]) -> str:
    """Return the name of a bin, such as ``10..20``."""
    low = _show_number(edges[at - 1]) if at else ""
    high = _show_number(edges[at]) if at < len(edges) else ""
    return f"{low}..{high}"


def _show_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


# ---- names of terms


def show_term(term: str) -> str:
    """Return a term as people read it.

    Examples
    --------
    >>> show_term("~\\x7fbrand\\x7facme"), show_term("body\\x7fplease body\\x7frefund")
    ('brand=acme', 'body:please refund')
    """
    if MARK not in term:
        return term
    if term.startswith("~"):
        return term[2:].replace(MARK, "=", 1)
    words = [word.rpartition(MARK) for word in term.split(" ")]
    name = words[0][0].replace(MARK, " ")
    return f"{name}:{' '.join(word for _, _, word in words)}"


def spell_term(shown: str, fields: Fields) -> list[str]:
    """Return the terms that may be shown so."""
    found = [shown]
    for name, kind in fields.kinds:
        if kind == TEXT and shown.startswith(f"{name}:"):
            words = shown[len(name) + 1 :].split(" ")
            found.append(" ".join(word_prefix(name) + word for word in words))
        elif kind != TEXT and shown.startswith(f"{name}="):
            found.append(f"~{MARK}{name}{MARK}{shown[len(name) + 1 :]}")
    return found


def word_prefix(name: str) -> str:
    """Return what a word of a field begins with; a blank would end the word."""
    return name.replace(" ", MARK) + MARK


def check_edges(edges: Floats, offsets: NDArray[np.int64]) -> tuple[tuple[float, ...], ...]:
    """Return the edges of each number, from all in one array."""
    return tuple(tuple(edges[a:b].tolist()) for a, b in pairwise(offsets.tolist()))
