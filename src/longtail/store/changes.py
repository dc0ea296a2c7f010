"""Changes of a model: what each kind holds, and how it becomes the bytes of a journal's rows.

In: an action and its content. Out: rows of bytes, each of bounded size, and the same content back
once all of it is checked. A change of many documents is several rows, each with some of them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtail._constants import MAX_LABEL

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "ACTIONS",
    "LARGEST_ROW",
    "Change",
    "check_content",
    "decode_row",
    "encode_row",
    "is_checksum",
    "is_counter",
    "mark_undone",
    "pack_counts",
    "unpack_counts",
]

LARGEST_ROW = 16 << 20  # bytes of JSON; parsing the worst JSON of this size takes some 400 MB
_LARGEST_RATIO = 64  # of JSON to stored bytes: memory is bounded by the size of the file

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COUNTS = {"n_documents", "n_terms", "indptr", "indices", "data"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change in a journal.

    Attributes
    ----------
    number : int
        Ascends from 1, also over `compact`; never used twice.
    time : str
        When it was recorded: UTC, ISO 8601.
    by : str or None
        Who made it, if that was said.
    action : str
        teach, forget, recalibrate, rename, merge, remove, describe, refine or undo.
    batches : sequence of dict
        The action's own fields, plain JSON; of a change of many documents, some in each.
    in_effect : bool
        False where a later undo takes it back.
    """

    number: int
    time: str
    by: str | None
    action: str
    batches: Sequence[dict[str, Any]]
    in_effect: bool = True

    @property
    def content(self) -> dict[str, Any]:
        """The fields of all batches together; the documents of several are a list of theirs."""
        if len(self.batches) == 1:
            return self.batches[0]
        documents: list[Any] = []
        for batch in self.batches:
            held = batch["documents"]
            documents.extend(held if isinstance(held, list) else [held])
        return {"documents": documents, "labels": self.labels}

    @property
    def labels(self) -> list[Any]:
        """The label of each document; empty where there are no documents."""
        return [label for batch in self.batches for label in batch.get("labels", ())]


def mark_undone(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of a whole journal with `in_effect` set; an undone undo has no effect."""
    undone: set[int] = set()
    for change in reversed(changes):  # only later changes decide about a change
        if change.action == "undo" and change.number not in undone:
            undone.update(change.content["changes"])
    return [
        change
        if change.in_effect == (change.number not in undone)
        else replace(change, in_effect=change.number not in undone)
        for change in changes
    ]


def encode_row(content: dict[str, Any]) -> bytes:
    """Return a batch as the bytes of a row: JSON, compressed where that helps.

    Raises
    ------
    ValueError
        If it is too large.
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > LARGEST_ROW:
        raise ValueError(
            f"a document would take {len(text):,} bytes in the journal; {LARGEST_ROW:,} is the "
            "most that is accepted. Shorten it."
        )
    if len(text) < 200:
        return text
    packed = zlib.compress(text, 1)
    return packed if len(packed) < len(text) <= len(packed) * _LARGEST_RATIO else text


def decode_row(data: bytes) -> dict[str, Any]:
    """Return the batch that `encode_row` encoded.

    Raises
    ------
    ValueError
        If the bytes hold no JSON object, or a larger one than `encode_row` writes.
    """
    text = data
    if data[:1] == b"\x78":  # a zlib stream; JSON objects begin with a brace
        limit = min(LARGEST_ROW, len(data) * _LARGEST_RATIO)
        stream = zlib.decompressobj()
        try:
            text = stream.decompress(data, limit)
        except zlib.error as error:
            raise ValueError(f"is not compressed JSON: {error}") from None
        if not stream.eof or stream.unused_data:
            raise ValueError("is not compressed JSON of an accepted size")
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def check_content(action: str, content: dict[str, Any], change_number: int) -> bool:
    """Return whether a batch holds what its action needs, and nothing else."""
    accepts = ACTIONS.get(action)
    return accepts is not None and accepts(content, change_number)


def is_counter(value: object) -> bool:
    """Return whether a value can be the number of a change."""
    return type(value) is int and 1 <= value < 2**53


def is_checksum(value: object) -> bool:
    """Return whether a value can be the checksum of a model file."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def pack_counts(X: csr_array[Any]) -> dict[str, Any]:
    """Return the rows of a count matrix as plain JSON: sizes, and arrays in base64."""
    return {
        "n_documents": int(X.shape[0]),
        "n_terms": int(X.shape[1]),
        "indptr": _to_base64(X.indptr, "<i8"),
        "indices": _to_base64(X.indices, "<i8"),
        "data": _to_base64(X.data, "<f8"),
    }


def unpack_counts(packed: Iterable[dict[str, Any]]) -> csr_array[Any]:
    """Return the matrices that `pack_counts` packed as one, bit by bit.

    Raises
    ------
    ValueError
        If one is not a sound count matrix, or they differ in their number of terms.
    """
    arrays, n_terms, n_entries = [], set(), 0
    for counts in packed:
        shape = (counts["n_documents"], counts["n_terms"])
        if not all(type(size) is int and 0 <= size < 2**31 for size in shape):
            raise ValueError(f"a matrix of shape {shape} cannot be")
        indptr = _from_base64(counts["indptr"], "<i8")
        indices, data = _from_base64(counts["indices"], "<i8"), _from_base64(counts["data"], "<f8")
        if len(indptr) != shape[0] + 1:
            raise ValueError(f"{len(indptr)} row starts do not fit {shape[0]} documents")
        if indptr[0] != 0 or indptr[-1] != len(indices) or len(indices) != len(data):
            raise ValueError("the row starts do not fit the indices and data")
        arrays.append((indptr[1:] + n_entries, indices, data))
        n_terms.add(shape[1])
        n_entries += len(indices)
    if len(n_terms) != 1:
        raise ValueError(f"matrices of {sorted(n_terms)} terms do not go together")
    indptr, indices, data = (np.concatenate(parts) for parts in zip(*arrays, strict=True))
    shape = (len(indptr), n_terms.pop())
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise ValueError(f"indices must be from 0 to {shape[1] - 1}")
    from scipy.sparse import csr_array  # late: reading a journal of texts needs none of it

    X = csr_array((data, indices, np.concatenate([np.zeros(1, np.int64), indptr])), shape=shape)
    X.check_format(full_check=True)
    return X


def _is_label(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_LABEL
    return isinstance(value, int | float)  # a bool is an int


def _holds_documents(content: dict[str, Any], change_number: int) -> bool:
    """Return whether these are texts or counts with a label each."""
    if content.keys() != {"documents", "labels"}:
        return False
    documents, labels = content["documents"], content["labels"]
    if not isinstance(labels, list) or not all(map(_is_label, labels)):
        return False
    if isinstance(documents, dict):
        return documents.keys() == _COUNTS and documents["n_documents"] == len(labels)
    if not isinstance(documents, list) or len(documents) != len(labels):
        return False
    return all(isinstance(text, str) for text in documents)


def _holds_labels(*names: str) -> Callable[[dict[str, Any], int], bool]:
    """Return the check for actions on classes."""
    return lambda content, change_number: (
        content.keys() == set(names) and all(map(_is_label, content.values()))
    )


def _holds_earlier_changes(content: dict[str, Any], change_number: int) -> bool:
    """Return whether these are numbers of changes before this one."""
    changes = content.get("changes")
    if len(content) != 1 or not isinstance(changes, list):
        return False
    return all(is_counter(change) and change < change_number for change in changes)


ACTIONS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "teach": _holds_documents,
    "forget": _holds_documents,
    "recalibrate": _holds_documents,
    "rename": _holds_labels("old", "new"),
    "merge": _holds_labels("source", "into"),
    "remove": _holds_labels("label"),
    "describe": lambda content, _: (
        content.keys() == {"label", "text"}
        and _is_label(content["label"])
        and isinstance(content["text"], str)
    ),
    "refine": _holds_labels(),
    "undo": _holds_earlier_changes,
}


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(f"{name} is not a finite number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # made once: a journal has many rows


def _to_base64(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode("ascii")


def _from_base64(text: object, dtype: str) -> NDArray[Any]:
    """Return the array that a text holds."""
    if not isinstance(text, str):
        raise ValueError("an array is not base64")
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype)
    except binascii.Error as error:
        raise ValueError(f"an array is not base64: {error}") from None
