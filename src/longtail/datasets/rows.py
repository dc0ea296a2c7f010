"""Blocks of lines -> the documents of a file as flat arrays.

The file passes through in blocks of a few megabytes; what stays is the parsed rows, twelve bytes
per term, in arrays that grow by a quarter when they are full.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import parsing
from longtail.datasets.compression import read_chunks
from longtail.exceptions import DataFormatError

# Large enough that the work per block outweighs the call, small enough not to count against the
# parsed size.
BLOCK_BYTES = 1 << 22
LARGEST_TERM = np.iinfo(np.int32).max
# A label has at most eighteen digits.
LARGEST_LABEL = 10**18 - 1

_NUMBER = re.compile(rb"[-+.0-9eE]+")
_TOKEN = re.compile(rb"[^ \t\r\n]*")
_LONGEST_QUOTE = 40


@dataclass(frozen=True)
class Rules:
    """What a format allows; `longtail._kernels.parsing.parse_block` says what each field means."""

    svmlight: bool = False
    first_term: int = 0
    last_term: int = LARGEST_TERM
    first_label: int = -LARGEST_LABEL
    last_label: int = LARGEST_LABEL
    fewest_labels: int = 0
    most_labels: int = LARGEST_LABEL
    n_documents: int | None = None


@dataclass(frozen=True)
class Rows:
    """The documents of a file or of one of its blocks, terms as numbered in the file.

    Attributes
    ----------
    labels : int64 array
        Labels, document after document, ascending and each once within a document.
    label_counts, term_counts : (n_documents,) int64 arrays
        How many labels and terms each document has.
    indices : int32 array
    data : float64 array
        Terms and their counts, document after document, in canonical form.
    lowest_term, highest_term : int
        Over all terms written in the file, zero counts included. `LARGEST_TERM` and -1 if there are
        none.
    """

    labels: NDArray[np.int64]
    label_counts: NDArray[np.int64]
    term_counts: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    lowest_term: int
    highest_term: int


class _Growing:
    """An array that grows at its end."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype=dtype)
        self.size = 0

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        needed = self.size + values.size
        if needed > self._array.size:
            self._resize(max(needed, self._array.size * 5 // 4))
        self._array[self.size : needed] = values
        self.size = needed

    def finish(self) -> NDArray[Any]:
        """Return all values; nothing can be added afterwards."""
        self._resize(self.size)
        return self._array

    def _resize(self, size: int) -> None:
        """Change the capacity, in place where the system can; nobody else holds the array."""
        self._array.resize(size, refcheck=False)


class _Collector:
    """Rows of the blocks read so far."""

    def __init__(self) -> None:
        self.labels = _Growing(np.int64)
        self.label_counts = _Growing(np.int64)
        self.term_counts = _Growing(np.int64)
        self.indices = _Growing(np.int32)
        self.data = _Growing(np.float64)
        self.lowest_term = int(LARGEST_TERM)
        self.highest_term = -1

    @property
    def n_documents(self) -> int:
        """Number of documents so far."""
        return self.label_counts.size

    def append(self, rows: Rows) -> None:
        """Take in one block."""
        self.labels.append(rows.labels)
        self.label_counts.append(rows.label_counts)
        self.term_counts.append(rows.term_counts)
        self.indices.append(rows.indices)
        self.data.append(rows.data)
        self.lowest_term = min(self.lowest_term, rows.lowest_term)
        self.highest_term = max(self.highest_term, rows.highest_term)

    def finish(self) -> Rows:
        """Return all rows."""
        return Rows(
            labels=self.labels.finish(),
            label_counts=self.label_counts.finish(),
            term_counts=self.term_counts.finish(),
            indices=self.indices.finish(),
            data=self.data.finish(),
            lowest_term=self.lowest_term,
            highest_term=self.highest_term,
        )


def line_blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the content of a file in blocks of complete lines, a byte-order mark removed.

    Raises
    ------
    DataFormatError
        If the file is empty or its compressed stream is damaged.
    """
    blocks = _complete_lines(read_chunks(path, BLOCK_BYTES))
    first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
    if not first:
        raise DataFormatError(path, "the file is empty; expected one document per line")
    yield first
    yield from blocks


def _complete_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Regroup chunks into blocks that end with a line and are about `BLOCK_BYTES` large."""
    pending: list[bytes] = []
    n_pending = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut == 0 or n_pending + cut < BLOCK_BYTES // 2:
            pending.append(chunk)
            n_pending += len(chunk)
            continue
        yield b"".join([*pending, chunk[:cut]])
        pending = [chunk[cut:]]
        n_pending = len(chunk) - cut
    if n_pending:
        yield b"".join(pending)


def read_rows(
    path: str | os.PathLike[str], blocks: Iterable[bytes], n_lines: int, rules: Rules
) -> Rows:
    """Parse blocks of lines.

    Parameters
    ----------
    path : str or path-like
        Name of the file, for errors.
    blocks : iterable of bytes
        Complete lines each.
    n_lines : int
        Number of lines of the file before the first block.
    rules : Rules
        What the format allows.

    Returns
    -------
    rows : Rows
        All documents of the file.

    Raises
    ------
    DataFormatError
        At the first line that breaks a rule, or if there is no document.
    """
    collector = _Collector()
    for block in blocks:
        n_expected = -1 if rules.n_documents is None else rules.n_documents - collector.n_documents
        collector.append(_parse(path, block, n_lines, n_expected, rules))
        n_lines += block.count(b"\n")
    if collector.n_documents == 0:
        raise DataFormatError(path, "no documents found; expected one per line")
    return collector.finish()


def _parse(
    path: str | os.PathLike[str], block: bytes, n_lines: int, n_expected: int, rules: Rules
) -> Rows:
    """Parse one block; ``n_lines`` lines of the file come before it."""
    content = np.frombuffer(block, dtype=np.uint8)
    most_lines = block.count(b"\n") + 1
    most_terms = int(np.count_nonzero(content == ord(":")))
    labels = np.empty(most_lines + block.count(b","), dtype=np.int64)
    label_counts = np.empty(most_lines, dtype=np.int64)
    term_counts = np.empty(most_lines, dtype=np.int64)
    indices = np.empty(most_terms, dtype=np.int32)
    data = np.empty(most_terms, dtype=np.float64)
    status, place, n_documents, n_labels, n_entries = parsing.parse_block(
        content,
        # Looking for comments costs a second pass over each line, so do it only where there may be
        # one.
        rules.svmlight and (b"#" in block or b"qid:" in block),
        rules.first_term,
        rules.last_term,
        rules.first_label,
        rules.last_label,
        rules.fewest_labels,
        rules.most_labels,
        n_expected,
        labels,
        label_counts,
        indices,
        data,
        term_counts,
    )
    # Numbers left to us come before the place where the kernel stopped, so their faults are
    # reported first.
    bad_number = _fill_numbers(block, data[:n_entries])
    if bad_number is not None:
        status, place = parsing.COUNT_TOO_LARGE, bad_number
    if status != parsing.READ:
        line = n_lines + block.count(b"\n", 0, place) + 1
        raise DataFormatError(path, _explain(status, block, place, rules), line)
    indices, data = indices[:n_entries], data[:n_entries]
    label_counts, term_counts = label_counts[:n_documents], term_counts[:n_documents]
    lowest, highest = int(indices.min(initial=LARGEST_TERM)), int(indices.max(initial=-1))
    _sort_terms(term_counts, indices, data)
    n_entries = parsing.merge_terms(term_counts, indices, data)
    labels, label_counts = _distinct_labels(labels[:n_labels], label_counts)
    return Rows(
        labels, label_counts, term_counts, indices[:n_entries], data[:n_entries], lowest, highest
    )


def _fill_numbers(block: bytes, data: NDArray[np.float64]) -> int | None:
    """Read the numbers that the kernel only located; return the place of the first too large."""
    for entry in np.flatnonzero(data < 0).tolist():
        place = -1 - int(data[entry])
        number = _NUMBER.match(block, place)
        value = float(number.group()) if number else np.inf
        if value > parsing.LARGEST_COUNT:
            return place
        data[entry] = value
    return None


def _sort_terms(
    term_counts: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float64]
) -> None:
    """Sort the terms of each document in place; a repeated term keeps its counts in file order."""
    ends = np.cumsum(term_counts)
    descends = indices[1:] < indices[:-1]
    # From one document to the next terms may descend.
    descends[ends[(ends > 0) & (ends < indices.size)] - 1] = False
    if descends.any():
        owners = np.repeat(np.arange(term_counts.size), term_counts)
        order = np.lexsort((indices, owners))
        indices[:] = indices[order]
        data[:] = data[order]


def _distinct_labels(
    labels: NDArray[np.int64], label_counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the labels of each document and drop repeated ones."""
    if label_counts.max(initial=0) <= 1:
        return labels, label_counts
    owners = np.repeat(np.arange(label_counts.size), label_counts)
    order = np.lexsort((labels, owners))
    labels = labels[order]
    repeated = (np.diff(labels) == 0) & (np.diff(owners) == 0)
    kept = np.concatenate([[True], ~repeated])
    return labels[kept], np.bincount(owners[kept], minlength=label_counts.size)


def _explain(status: int, block: bytes, place: int, rules: Rules) -> str:
    """Word what is wrong at a place of a block."""
    token = _quote(block, place)
    if status == parsing.NOT_A_LABEL:
        return f"expected a label (a whole number), found {token}"
    if status == parsing.LABEL_OUT_OF_RANGE:
        allowed = f"{rules.first_label} to {rules.last_label}"
        return f"the label in {token} is out of range; allowed are {allowed}"
    if status == parsing.TOO_FEW_LABELS:
        return (
            f"the document has no label, the line begins with {token}; "
            "pass unlabelled='skip' to leave such documents out"
        )
    if status == parsing.TOO_MANY_LABELS:
        return "the document has several labels; pass replicate=True to have one row for each"
    if status == parsing.NOT_A_PAIR:
        return (
            f"expected term:count, found {token}; terms are whole numbers from {rules.first_term}"
        )
    if status == parsing.TERM_OUT_OF_RANGE:
        allowed = f"{rules.first_term} to {rules.last_term}"
        return f"the term number in {token} is out of range; allowed are {allowed}"
    if status == parsing.TOO_MANY_DOCUMENTS:
        return (
            f"the header promises {rules.n_documents} documents and here is one more; "
            "correct the header or the file"
        )
    return _explain_count(status, token)


def _explain_count(status: int, token: str) -> str:
    """Word what is wrong with a count."""
    if status == parsing.NEGATIVE_COUNT:
        return f"the count in {token} is negative; counts must be 0 or more"
    if status == parsing.COUNT_TOO_LARGE:
        return f"the count in {token} is above 2**53 and would not add up exactly; scale it down"
    if re.search(r":[-+]?(nan|inf|infinity)'$", token, re.IGNORECASE):
        return f"the count in {token} is not finite; counts must be numbers of 0 or more"
    return f"the count in {token} is not a number; expected term:count"


def _quote(block: bytes, place: int) -> str:
    """Return the token around a place in quotes, shortened."""
    while place > 0 and block[place - 1 : place] not in (b" ", b"\t", b"\r", b"\n"):
        place -= 1
    found = _TOKEN.match(block, place)
    token = found.group().decode("utf-8", "backslashreplace") if found else ""
    if not token:
        return "the end of the line"
    return f"'{token[:_LONGEST_QUOTE]}...'" if len(token) > _LONGEST_QUOTE else f"'{token}'"
