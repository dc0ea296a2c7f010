"""A file of counts -> chunks of them, so that it need not fit into memory at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail.datasets.limits import DEFAULT_LIMITS, Limits
from longtail.datasets.readers import check_promise, open_rows
from longtail.datasets.records import BadRow, Chunk, make_label_sets
from longtail.datasets.rows import Rows, Rules
from longtail.datasets.streams import source_name
from longtail.exceptions import DataFormatError


def read_count_chunks(
    path: str | os.PathLike[str],
    *,
    format: str = "svmlight",
    zero_based: bool = False,
    labelled: bool = True,
    replicate: bool = True,
    n_terms: int | None = None,
    on_bad_row: Callable[[BadRow], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Chunk]:
    r"""Read a file of counts in chunks of a few megabytes, so that it may be larger than memory.

    Parameters
    ----------
    path : str or path-like
        As in `Table`.
    format : {"svmlight", "lshtc", "xmc"}, default="svmlight"
        As of `read_svmlight`, `read_lshtc` and `read_extreme`. Documents without label are left out
        of an XMC file, which may have some.
    zero_based : bool, default=False
        svmlight: whether the first term is number 0; in the other formats it is. There is no
        guessing: files that belong together must agree.
    labelled : bool, default=True
        Whether every document must have a label. Otherwise labels may be missing, and
        none are returned.
    replicate : bool, default=True
        Whether a document with several labels stands for one document of each; otherwise it has a
        label set.
    n_terms : int, optional
        Number of columns, such as those of a fitted model; terms beyond are left out. What each
        chunk needs when not given, at most ``limits.terms``.
    on_bad_row : callable, optional
        Called with a `BadRow` for each line that cannot be read; without it the first is an error.
    limits : Limits, optional
        Bounds on what the file may hold.

    Yields
    ------
    Chunk
        Never empty; its counts have as many columns as its terms need.

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
    >>> chunk.labels.tolist(), chunk.content.toarray().tolist()
    ([7, 9], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    first = 0 if zero_based or format != "svmlight" else 1
    last = limits.terms + first - 1 if n_terms is None else 2**31 - 2
    rules = Rules(
        svmlight=format == "svmlight",
        first_term=first,
        last_term=last,
        fewest_labels=1 if labelled and format != "xmc" else 0,
    )

    def report(line: int, reason: str, content: bytes) -> None:
        if first == 1 and "out of range; allowed are 1" in reason:
            reason += "; a file that counts from 0 must be read as zero-based"
        if on_bad_row is None:
            raise DataFormatError(source_name(path), reason, line)
        on_bad_row(BadRow.shortened(line, reason, content[:400].decode("utf-8", "replace")))

    rules, blocks = open_rows(path, format, rules, limits, report)
    n_documents = 0
    for rows, n_bytes in blocks:
        n_documents += len(rows.lines)
        chunk = _make_chunk(rows, first, labelled, n_terms, n_bytes)
        if len(chunk):
            yield chunk.replicate() if replicate else chunk
    if on_bad_row is None:
        check_promise(path, rules, n_documents)


def _make_chunk(rows: Rows, first: int, labelled: bool, n_terms: int | None, n_bytes: int) -> Chunk:
    """Build the matrix, one row for each document; without the unlabelled, if labels count."""
    n_columns = max(rows.highest_term + 1, (n_terms or 1) + first)
    X = csr_array((rows.X.data, rows.X.indices, rows.X.indptr), shape=(len(rows.lines), n_columns))
    X = X[:, first : None if n_terms is None else n_terms + first]
    labels: Any = rows.labels
    lines, counts = rows.lines, rows.label_counts
    if not labelled:
        labels = labels[:0]
    elif not np.all(counts == 1):
        kept = np.flatnonzero(counts)
        X, lines, counts = X[kept], [lines[i] for i in kept.tolist()], counts[kept]
        labels = make_label_sets(labels, counts)
    return Chunk(X, labels, lines, [[] for _ in lines], n_bytes)
