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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from longtail._constants import MAX_LABEL
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


def find_live(changes: Sequence[Change]) -> set[int]:
    """Return the numbers of the changes in effect; an undone undo has none, and undoes nothing."""
    undone: set[int] = set()
    for change in reversed(changes):  # only later changes decide about a change
        if change.action == "undo" and change.number not in undone:
            undone.update(change.facts["changes"])
    return {change.number for change in changes if change.number not in undone}


def mark_undone(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of a whole journal with `in_effect` set."""
    live = find_live(changes)
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


def _is_list(value: object, accepts: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(accepts, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _holds_documents(content: dict[str, Any], _: int) -> bool:
    """Return whether these are labels, and perhaps as many texts."""
    if not {"labels"} <= content.keys() <= {"documents", "labels"}:
        return False
    if not _is_list(content["labels"], is_label):
        return False
    documents = content.get("documents", content["labels"])
    is_texts = "documents" not in content or _is_list(documents, _is_text)
    return is_texts and len(documents) == len(content["labels"])


def _holds_new(facts: dict[str, Any], _: int) -> bool:
    """Return whether these are labels of new classes and new terms."""
    return (
        facts.keys() <= {"classes", "terms"}
        and _is_list(facts.get("classes", []), is_label)
        and _is_list(facts.get("terms", []), _is_text)
    )


def _holds_labels(*names: str) -> Callable[[dict[str, Any], int], bool]:
    return lambda facts, _: facts.keys() == set(names) and all(map(is_label, facts.values()))


def _holds_text(facts: dict[str, Any], _: int) -> bool:
    return (
        facts.keys() == {"label", "text", "is_new"}
        and is_label(facts["label"])
        and isinstance(facts["text"], str)
        and isinstance(facts["is_new"], bool)
    )


def _holds_nodes(facts: dict[str, Any], _: int) -> bool:
    """Return whether these are nodes of a hierarchy; none where it is taken away."""
    return (
        facts.keys() == {"n_nodes", "nodes"}
        and _is_list(facts["nodes"], is_label)
        and facts["n_nodes"] == len(facts["nodes"])
    )


def _holds_move(facts: dict[str, Any], _: int) -> bool:
    """Return whether these are a node and its parents."""
    return (
        facts.keys() == {"label", "parents"}
        and is_label(facts["label"])
        and _is_list(facts["parents"], is_label)
    )


def _holds_earlier(facts: dict[str, Any], number: int) -> bool:
    """Return whether these are numbers of changes before this one."""
    changes = facts.get("changes")
    return len(facts) == 1 and _is_list(changes, lambda n: is_counter(n) and n < number)  # type: ignore[operator]


def _holds_refined(facts: dict[str, Any], number: int) -> bool:
    return (
        facts.keys() == {"file", "live"}
        and is_checksum(facts["file"])
        and _is_list(facts["live"], lambda n: is_counter(n) and n < number)  # type: ignore[operator]
    )


_FACTS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "teach": _holds_new,
    "forget": lambda facts, _: not facts,
    "recalibrate": lambda facts, _: not facts,
    "rename": _holds_labels("old", "new"),
    "merge": _holds_labels("source", "into"),
    "remove": _holds_labels("label"),
    "describe": _holds_text,
    "hierarchy": _holds_nodes,
    "move": _holds_move,
    "refine": _holds_refined,
    "undo": _holds_earlier,
}
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
