"""Fields of records -> terms.

In: texts that hold records (`_records`). Out: the parts of each that a tokenizer reads, and the
terms that are no words.

============ ==================================================== =======================
kind         value                                                terms
============ ==================================================== =======================
text         a string                                             ``refund``, ``body:refund``
category     a string or a number                                 ``brand=acme``
categories   a list of these, or a string with separators         ``tags=a``, ``tags=b``
number       a number                                             ``price=10..20``: its quantile
                                                                  bin and the two beside it
============ ==================================================== =======================
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._kernels.text import Tokens
from longtail._records import CATEGORY, NUMERIC, TEXT, Fields, Record, read_record
from longtail.sparse import Floats, offsets_from_lengths

N_BINS = 16  # of a number; each value is in its own bin and in both neighbours
# Ends the name of a field in a term. No word has it: the default tokenizer takes it for a
# separator, and words of a user's tokenizer are cleaned of it.
MARK = "\x7f"


class Parts(NamedTuple):
    """The parts of some documents, for the tokenizer.

    `texts` are `n_parts` for each document, the first of them all its words; `terms` are those
    that are no words, for each document.
    """

    texts: list[str]
    terms: list[list[bytes]]


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
        if kind == NUMERIC:
            if fields.edges:
                edges = fields.edges[fields.numeric.index(name)]
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
        rows.append([record.get(name, math.nan) for name in fields.numeric])
    return np.array(rows, np.float64).reshape(len(rows), len(fields.numeric))


def learn_edges(fields: Fields, values: Floats) -> Fields:
    """Return the fields with bins of about equally many documents; their order does not matter.

    `values` has a row for each document and a column for each number; NaN where one is missing.
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
    """Return the terms of numbers as tokens of documents; NaN where a number is missing."""
    columns = list(zip(fields.numeric, fields.edges, strict=True))
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
    utf8 = np.frombuffer(b"".join(terms), np.uint8).copy()  # kernels are compiled for such
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
    r"""Return a term as people read it.

    Examples
    --------
    >>> show_term("~\x7fbrand\x7facme"), show_term("body\x7fplease body\x7frefund")
    ('brand=acme', 'body:please refund')
    """
    if MARK not in term:
        return term
    if term.startswith("~"):
        return term[2:].replace(MARK, "=", 1)
    tokens = [word.rpartition(MARK) for word in term.split(" ")]
    name = tokens[0][0].replace(MARK, " ")
    return f"{name}:{' '.join(word for _, _, word in tokens)}"


def spell_term(shown: str, fields: Fields) -> list[str]:
    """Return the terms that may be shown so."""
    found = [shown]
    for name, kind in fields.kinds:
        if kind == TEXT and shown.startswith(f"{name}:"):
            tokens = shown[len(name) + 1 :].split(" ")
            found.append(" ".join(word_prefix(name) + token for token in tokens))
        elif kind != TEXT and shown.startswith(f"{name}="):
            found.append(f"~{MARK}{name}{MARK}{shown[len(name) + 1 :]}")
    return found


def word_prefix(name: str) -> str:
    """Return what a word of a field begins with; a blank would end the word."""
    return name.replace(" ", MARK) + MARK


# ---- bins in a file


def pack_edges(fields: Fields | None) -> dict[str, NDArray[Any]] | None:
    """Return the edges of all numbers in one array, and where those of each begin."""
    if fields is None or not fields.edges:
        return None
    lengths = np.array(list(map(len, fields.edges)), np.int64)
    edges = np.array([edge for edges in fields.edges for edge in edges], np.float64)
    return {"edges": edges, "offsets": offsets_from_lengths(lengths)}


def unpack_edges(fields: Fields | None, packed: Any) -> Fields | None:
    """Return the fields with the edges of a file.

    Raises
    ------
    ValueError
        If there is not one row of edges for each number.
    """
    offsets = [0] if packed is None else packed["offsets"].tolist()
    if len(offsets) - 1 != (0 if fields is None else len(fields.numeric)):
        raise ValueError(f"it has bins of {len(offsets) - 1} numbers, which are not its fields")
    if fields is None or packed is None:
        return fields
    edges = tuple(tuple(packed["edges"][a:b].tolist()) for a, b in pairwise(offsets))
    return replace(fields, edges=edges)
