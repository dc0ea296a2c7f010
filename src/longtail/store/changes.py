"""Changes of a model as rows of a journal: numbers to apply, and what to show people.

In: bytes of rows. Out: `Change`, whose content is decoded and checked when it is asked for; or the
bytes. A row has the numbers of a change (`longtail.teaching.log` reads them), the facts that
opening needs beside them, as JSON, and the documents as they were given, which opening never looks
at. A change of many documents is several rows, each with some of them.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from longtail._constants import MAX_LABEL, N_OBSERVED, N_SUMS
from longtail.exceptions import ModelFileError

LARGEST_ROW = 64 << 20  # bytes of all numbers and texts of a row
LARGEST_TEXT = 16 << 20  # bytes of JSON; parsing the worst JSON of this size takes some 400 MB
_LARGEST_RATIO = 64  # of JSON to stored bytes: memory is bounded by the size of the file

_SHA256 = re.compile(r"[0-9a-f]{64}")
WITH_DOCUMENTS = ("teach", "forget", "recalibrate")


class Row(NamedTuple):
    """A row of a journal, as bytes."""

    # Persistent class id of each document, and how many terms it has: 64-bit integers.
    classes: bytes = b""
    sizes: bytes = b""
    # Persistent ids of the terms, 32-bit integers, and what each counts, floats of 32 bits where
    # these hold them all, else of 64.
    terms: bytes = b""
    counts: bytes = b""
    # What opening needs beside the numbers, as JSON; empty where there is nothing.
    facts: bytes = b""
    content: bytes = b""  # the documents and labels as they were given, as JSON, perhaps compressed


@dataclass(frozen=True, slots=True)
class Change:
    """One change in a journal."""

    number: int  # ascends from 1, also over `compact`; never used twice
    time: str  # when it was recorded: UTC, ISO 8601
    by: str | None  # who made it, if that was said
    # Teach, forget, recalibrate, rename, merge, remove, describe, hierarchy, move, refine or undo.
    action: str
    rows: tuple[Row, ...]  # as they are stored; of a change of many documents, some in each
    in_effect: bool = True  # false where a later undo takes it back
    path: Path | None = field(default=None, compare=False)  # the journal, for errors

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that the numbers need to be applied; empty where they need none."""
        facts: dict[str, Any] = self._checked(self.rows[0].facts, _FACTS[self.action])
        return facts

    @property
    def facts_of_rows(self) -> list[dict[str, Any]]:
        """The same of each row."""
        return [self._checked(row.facts, _FACTS[self.action]) for row in self.rows]

    @property
    def content(self) -> dict[str, Any]:
        """The action's own fields; the documents of all rows together."""
        if self.action not in WITH_DOCUMENTS:
            shown = SHOWN.get(self.action, ())
            return {name: self.facts[name] for name in shown}
        parts = [self._checked(row.content, _holds_documents) for row in self.rows]
        joined: dict[str, Any] = {}
        for name in parts[0]:
            joined[name] = [entry for shown in parts for entry in shown.get(name, ())]
        return joined

    @property
    def labels(self) -> list[Any]:
        """The label of each document; empty where there are no documents."""
        labels: list[Any] = self.content["labels"] if self.action in WITH_DOCUMENTS else []
        return labels

    def as_dict(self) -> dict[str, Any]:
        """Return what is told of a change, without its content."""
        names = ("number", "time", "by", "action", "in_effect")
        return {name: getattr(self, name) for name in names}

    def _checked(self, data: bytes, accepts: Callable[[dict[str, Any], int], bool]) -> Any:
        try:
            found = decode(data) if data else {}
        except ValueError as error:
            raise self.error(str(error)) from None
        if not accepts(found, self.number):
            raise self.error(f"has the action {self.action}, but what it needs is missing")
        return found

    def error(self, problem: str) -> ModelFileError:
        """Return the error that says what is wrong with the record."""
        return ModelFileError(self.path or Path(), f"record {self.number} {problem}")


def find_live(change_numbers: Iterable[int], undos: Sequence[Change]) -> frozenset[int]:
    """Return the numbers of the changes in effect; an undone undo has none, and undoes nothing."""
    undone: set[int] = set()
    for undo in reversed(undos):  # only later changes decide about a change
        if undo.number not in undone:
            undone.update(undo.facts["changes"])
    return frozenset(change_numbers) - undone


def mark_undone(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of a whole journal with `in_effect` set."""
    undos = [change for change in changes if change.action == "undo"]
    live = find_live([change.number for change in changes], undos)
    return [
        change
        if change.in_effect == (change.number in live)
        else replace(change, in_effect=change.number in live)
        for change in changes
    ]


def encode(content: dict[str, Any]) -> bytes:
    """Return a JSON object as the bytes of a row, compressed where that helps.

    Raises
    ------
    ValueError
        If it is too large.
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > LARGEST_TEXT:
        raise ValueError(
            f"this would take {len(text):,} bytes in the journal; {LARGEST_TEXT:,} is the most "
            "that a document, or the nodes of a hierarchy, may take. Shorten it."
        )
    if len(text) < 200:
        return text
    packed = zlib.compress(text, 1)
    return packed if len(packed) < len(text) <= len(packed) * _LARGEST_RATIO else text


def decode(data: bytes) -> dict[str, Any]:
    """Return the JSON object that `encode` encoded.

    Raises
    ------
    ValueError
        If the bytes hold no JSON object, or a larger one than `encode` writes.
    """
    text = data
    if data[:1] == b"\x78":  # a zlib stream; JSON objects begin with a brace
        limit = min(LARGEST_TEXT, len(data) * _LARGEST_RATIO)
        stream = zlib.decompressobj()
        try:
            text = stream.decompress(data, limit)
        except zlib.error as error:
            raise ValueError(f"is not compressed JSON: {error}") from None
        if not stream.eof or stream.unused_data:
            raise ValueError("is not compressed JSON of an accepted size")
    elif len(data) > LARGEST_TEXT:
        raise ValueError("is larger than a record may be")
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def is_counter(value: object) -> bool:
    """Return whether a value can be the number of a change."""
    return type(value) is int and 1 <= value < 2**53


def is_checksum(value: object) -> bool:
    """Return whether a value can be the checksum of a model file."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def is_label(value: object) -> bool:
    """Return whether a value can be a label."""
    if isinstance(value, str):
        return len(value) <= MAX_LABEL
    return isinstance(value, int | float)  # a bool is an int


def _list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_are_labels, _are_texts = _list_of(is_label), _list_of(_is_text)
_are_rows_of_numbers = _list_of(_list_of(lambda number: type(number) in (int, float)))


def _are_before(number: int) -> Callable[[Any], bool]:
    """Return what tells whether a value lists changes before one."""
    return _list_of(lambda n: is_counter(n) and n < number)


def _holds(content: dict[str, Any], **accepts: Callable[[Any], bool]) -> bool:
    """Return whether a JSON object has exactly these fields, each acceptable."""
    return content.keys() == accepts.keys() and all(
        is_sound(content[name]) for name, is_sound in accepts.items()
    )


def _are_observed(value: object) -> bool:
    """Return whether these are sums, then documents, each as many numbers as it has."""
    if not _are_rows_of_numbers(value):
        return False
    sizes = list(map(len, value))  # type: ignore[call-overload]
    return not sizes or sizes == [N_SUMS] + [N_OBSERVED] * (len(sizes) - 1)


def _holds_documents(content: dict[str, Any], _: int) -> bool:
    """Return whether these are labels, and perhaps as many texts."""
    if "documents" not in content:
        return _holds(content, labels=_are_labels)
    is_sound = _holds(content, labels=_are_labels, documents=_are_texts)
    return is_sound and len(content["documents"]) == len(content["labels"])


# What opening needs beside the numbers, by action.
_FACTS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    # Labels of new classes and new terms, if there are any, embeddings, in base 64, and what was
    # observed.
    "teach": lambda facts, _: _holds(
        {"classes": [], "terms": [], "embeddings": "", "observed": []} | facts,
        classes=_are_labels, terms=_are_texts, embeddings=_is_text, observed=_are_observed),
    "forget": lambda facts, _: _holds({"embeddings": ""} | facts, embeddings=_is_text),
    "recalibrate": lambda facts, _: not facts,
    "rename": lambda facts, _: _holds(facts, old=is_label, new=is_label),
    "merge": lambda facts, _: _holds(facts, source=is_label, into=is_label),
    "remove": lambda facts, _: _holds(facts, label=is_label),
    "describe": lambda facts, _: _holds({"embeddings": ""} | facts, embeddings=_is_text,
                                        label=is_label, text=_is_text,
                                        is_new=lambda value: isinstance(value, bool)),
    # No nodes where the hierarchy is taken away.
    "hierarchy": lambda facts, _: _holds(facts, nodes=_are_labels,
                                         n_nodes=lambda n: n == len(facts["nodes"])),
    "move": lambda facts, _: _holds(facts, label=is_label, parents=_are_labels),
    "refine": lambda facts, n: _holds(facts, file=is_checksum, until=lambda until:
                                      type(until) is int and 0 <= until < n,
                                      live=lambda live: _are_before(facts["until"] + 1)(live)),
    "undo": lambda facts, n: _holds(facts, changes=_are_before(n)),
}  # fmt: skip
SHOWN = {
    "rename": ("old", "new"),
    "merge": ("source", "into"),
    "remove": ("label",),
    "describe": ("label", "text"),
    "hierarchy": ("n_nodes",),
    "move": ("label", "parents"),
    "undo": ("changes",),
}
ACTIONS = frozenset(_FACTS)


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(f"{name} is not a finite number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # made once: a journal has many rows
