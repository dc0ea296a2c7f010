"""An svmlight file -> chunks of counts, so that it need not fit into memory at once.

`read_svmlight` reads a whole file into one matrix; this reads the same rows a few megabytes at a
time, and can pass over bad ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail.datasets.rows import Rows, Rules, read_rows
from longtail.datasets.tables import BadRow, Table, decode, text_blocks
from longtail.exceptions import DataFormatError


@dataclass(frozen=True)
class CountChunk:
    """Some documents of an svmlight file.

    Attributes
    ----------
    X : (n_documents, n_terms) csr_array of float64
        Counts; as many columns as the terms of this chunk need.
    y : (n_documents,) int64 array
        Labels; empty where none were asked for.
    lines : list of int
        The line of each document, from 1.
    n_bytes : int
        How much of the decompressed file was read so far.
    """

    X: csr_array[Any]
    y: NDArray[np.int64]
    lines: list[int]
    n_bytes: int


def read_count_chunks(
    path: str | os.PathLike[str],
    *,
    zero_based: bool = False,
    labelled: bool = True,
    n_terms: int | None = None,
    on_bad_row: Callable[[BadRow], None] | None = None,
) -> Iterator[CountChunk]:
    r"""Read an svmlight file in chunks of a few megabytes.

    Parameters
    ----------
    path : str or path-like
        As in `Table`.
    zero_based : bool, default=False
        Whether the first term is number 0. There is no guessing: files that belong together must
        agree.
    labelled : bool, default=True
        Whether every document must have a label, and one with several stands for one document of
        each. Otherwise labels may be missing and `y` is empty.
    n_terms : int, optional
        Number of columns, such as those of a fitted model; terms beyond are left out. What each
        chunk needs when not given.
    on_bad_row : callable, optional
        As in `Table`.

    Yields
    ------
    CountChunk
        Never empty.

    Raises
    ------
    DataFormatError
        If the file cannot be read, or a line cannot and `on_bad_row` is None.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.svm"
    >>> _ = path.write_text("7 1:2 3:1\n9 2:1\n")
    >>> chunk = next(read_count_chunks(path))
    >>> chunk.y.tolist(), chunk.X.toarray().tolist()
    ([7, 9], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    table = Table(path, (), on_bad_row=on_bad_row)
    first = 0 if zero_based else 1
    rules = Rules(svmlight=True, first_term=first, fewest_labels=1 if labelled else 0)
    n_lines = n_bytes = 0
    for block in text_blocks(table):
        n_bytes += len(block)
        lines = block.split(b"\n")
        rows = _parse_lines(table, lines, n_lines, rules)
        if rows is not None:
            places = [n_lines + i + 1 for i, line in enumerate(lines) if _is_document(line)]
            yield _make_chunk(rows, places, first, labelled, n_terms, n_bytes)
        n_lines += len(lines) - 1


def _parse_lines(table: Table, lines: list[bytes], n_lines: int, rules: Rules) -> Rows | None:
    """Parse lines, blanking the bad ones; return None where no document is left."""
    while any(map(_is_document, lines)):
        try:
            return read_rows(table.name, [b"\n".join(lines)], n_lines, rules)
        except DataFormatError as error:
            if error.line is None:
                raise
            reason, bad = error.reason, error.line - n_lines - 1
            if rules.first_term == 1 and "out of range; allowed are 1" in reason:
                reason += "; a file that counts from 0 must be read as zero-based"
            table.bad_row(error.line, reason, decode(lines[bad]))
            lines[bad] = b""
    return None


def _make_chunk(
    rows: Rows, places: list[int], first: int, labelled: bool, n_terms: int | None, n_bytes: int
) -> CountChunk:
    """Build the matrix, one row for each document, or for each of its labels."""
    indptr = np.concatenate([[0], np.cumsum(rows.term_counts)])
    needed = max(rows.highest_term + 1 - first, n_terms or 1)
    X = csr_array((rows.data, rows.indices - first, indptr), shape=(len(places), needed))
    if n_terms is not None and needed > n_terms:
        X = X[:, :n_terms]
    if not labelled:
        return CountChunk(X, rows.labels[:0], places, n_bytes)
    if np.any(rows.label_counts != 1):
        documents = np.repeat(np.arange(len(places)), rows.label_counts)
        X, places = X[documents], [places[i] for i in documents.tolist()]
    return CountChunk(X, rows.labels, places, n_bytes)


def _is_document(line: bytes) -> bool:
    """Return whether a line is more than blank or a comment."""
    return bool(line.partition(b"#")[0].strip())
