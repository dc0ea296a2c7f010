"""An svmlight file -> chunks of counts, so that it need not fit into memory at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail.datasets.limits import DEFAULT_LIMITS, Limits
from longtail.datasets.records import BadRow
from longtail.datasets.rows import Rows, Rules, parse_block
from longtail.datasets.streams import check_lines, line_blocks, source_name
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
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[CountChunk]:
    r"""Read an svmlight file in chunks of a few megabytes, so that it may be larger than memory.

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
        chunk needs when not given, at most ``limits.terms``.
    on_bad_row : callable, optional
        Called with a `BadRow` for each line that cannot be read; without it the first is an error.
    limits : Limits, optional
        What is refused.

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
    first = 0 if zero_based else 1
    last = limits.terms + first - 1 if n_terms is None else 2**31 - 2
    rules = Rules(
        svmlight=True, first_term=first, last_term=last, fewest_labels=1 if labelled else 0
    )

    def report(line: int, reason: str, content: bytes) -> None:
        if first == 1 and "out of range; allowed are 1" in reason:
            reason += "; a file that counts from 0 must be read as zero-based"
        if on_bad_row is None:
            raise DataFormatError(source_name(path), reason, line)
        on_bad_row(BadRow.shortened(line, reason, content[:400].decode("utf-8", "replace")))

    n_bytes = n_lines = 0
    for block in line_blocks(path, limits=limits):
        check_lines(path, block, n_lines, limits)
        rows = parse_block(block, n_lines, 0, rules, report)
        n_bytes += len(block)
        n_lines += block.count(b"\n")
        if rows.lines:
            yield _make_chunk(rows, first, labelled, n_terms, n_bytes)


def _make_chunk(
    rows: Rows, first: int, labelled: bool, n_terms: int | None, n_bytes: int
) -> CountChunk:
    """Build the matrix, one row for each document, or for each of its labels."""
    n_columns = max(rows.highest_term + 1, (n_terms or 1) + first)
    X = csr_array((rows.X.data, rows.X.indices, rows.X.indptr), shape=(len(rows.lines), n_columns))
    X = X[:, first : None if n_terms is None else n_terms + first]
    if not labelled:
        return CountChunk(X, rows.labels[:0], rows.lines, n_bytes)
    lines = rows.lines
    if np.any(rows.label_counts != 1):
        documents = np.repeat(np.arange(len(lines)), rows.label_counts)
        X, lines = X[documents], [lines[i] for i in documents.tolist()]
    return CountChunk(X, rows.labels, lines, n_bytes)
