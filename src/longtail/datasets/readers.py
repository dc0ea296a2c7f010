"""Sparse data files -> counts and labels.

Three formats, one row grammar: labels, then ``term:count`` pairs. A document of several classes
becomes one row per class, as in the experiments of the paper ("replicating the instances belonging
to different class labels"); with `replicate=False` it stays one row with a label set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NoReturn

import numpy as np
from scipy.sparse import csr_array

from longtail.datasets.limits import DEFAULT_LIMITS, Limits
from longtail.datasets.records import LabelledCounts
from longtail.datasets.rows import Rows, Rules, parse_block
from longtail.datasets.streams import check_lines, line_blocks, source_name
from longtail.exceptions import DataFormatError

Unlabelled = Literal["error", "skip", "keep"]

_LARGEST_TERM = np.iinfo(np.int32).max


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    zero_based: bool | Literal["auto"] = "auto",
    n_terms: int | None = None,
    replicate: bool = True,
    unlabelled: Unlabelled = "error",
    limits: Limits = DEFAULT_LIMITS,
) -> LabelledCounts:
    r"""Read a multi-class svmlight (libsvm) file: ``label term:count term:count ... # comment``.

    Parameters
    ----------
    path : str or path-like
        Plain, gzip, bzip2, xz or zstd; detected by content.
    zero_based : bool or "auto", default="auto"
        Whether the first term is number 0. "auto" takes it to be 1 unless a term 0 occurs; say it
        for files that belong together, so that they agree.
    n_terms : int, optional
        Number of columns; default is what the file needs. A term beyond is an error.
    replicate : bool, default=True
        Whether a document with several labels (``3,7 1:2``) becomes one row per label; otherwise it
        is one row, and `LabelledCounts.label_sets` has its labels.
    unlabelled : {"error", "skip", "keep"}, default="error"
        What to do with a document without label; one that is kept has an empty label set.
    limits : Limits, optional
        Bounds on what the file may hold; `limits.terms` where `n_terms` is not given.

    Returns
    -------
    counts : LabelledCounts
        ``qid`` tokens, comments and blank lines are skipped.

    Raises
    ------
    DataFormatError
        If a line cannot be read; the message has file, line and reason.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("7 1:2 3:1 # first\n9 2:1\n")
    >>> counts = read_svmlight(path)
    >>> counts.y.tolist(), counts.X.toarray().tolist()
    ([7, 9], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto'; got {zero_based!r}.")
    most_terms = _count_columns(n_terms, limits)
    first = 1 if zero_based is False else 0
    # With "auto" the last term of a one-based file must still be let through.
    last = most_terms - 1 if zero_based is True else most_terms
    rules = _make_rules(unlabelled, replicate, svmlight=True, first_term=first, last_term=last)
    _, rows = _read_file(path, "svmlight", rules, limits)
    if zero_based == "auto":
        first = 0 if rows.lowest_term == 0 else 1
        if rows.highest_term >= most_terms + first:
            reason = f"terms 0 and {most_terms} both occur; n_terms={most_terms} has no column"
            raise DataFormatError(path, f"{reason} for both, pass a larger one or none")
    return _assemble(rows, first, n_terms, replicate, unlabelled)


def read_lshtc(
    path: str | os.PathLike[str],
    *,
    n_terms: int | None = None,
    replicate: bool = True,
    unlabelled: Unlabelled = "error",
    limits: Limits = DEFAULT_LIMITS,
) -> LabelledCounts:
    r"""Read a file of the LSHTC challenges: ``label, label term:count term:count ...``.

    Labels are separated by commas, with or without blanks. A first line of words, such as the
    ``Data`` of the fourth challenge, is a header and skipped.

    Parameters
    ----------
    path, n_terms, replicate, unlabelled, limits
        As of `read_svmlight`.

    Returns
    -------
    counts : LabelledCounts
        Column j is term number j of the file, so that training and test file agree.

    Raises
    ------
    DataFormatError
        If a line cannot be read; the message has file, line and reason.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
    >>> _ = path.write_text("Data\n545, 32 1:1 2:2\n")
    >>> counts = read_lshtc(path)
    >>> counts.y.tolist(), counts.documents.tolist(), counts.X.toarray().tolist()
    ([32, 545], [0, 0], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    """
    rules = _make_rules(unlabelled, replicate, last_term=_count_columns(n_terms, limits) - 1)
    _, rows = _read_file(path, "lshtc", rules, limits)
    return _assemble(rows, 0, n_terms, replicate, unlabelled)


def read_extreme(
    path: str | os.PathLike[str],
    *,
    replicate: bool = True,
    unlabelled: Unlabelled = "skip",
    limits: Limits = DEFAULT_LIMITS,
) -> LabelledCounts:
    r"""Read a file of the Extreme Classification Repository.

    The first line is ``n_documents n_terms n_labels``; then follows one line per document,
    ``label,label term:count term:count ...``, numbers from 0.

    Parameters
    ----------
    path, replicate, limits
        As of `read_svmlight`.
    unlabelled : {"skip", "error", "keep"}, default="skip"
        What to do with a document without label; the files have some. Those left out are counted in
        ``n_unlabelled``; one that is kept has an empty label set.

    Returns
    -------
    counts : LabelledCounts
        With as many columns as the header says.

    Raises
    ------
    DataFormatError
        If a line cannot be read or contradicts the header; the message has file, line and reason.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 3 5\n4,0 0:1 2:0.5\n 1:1\n")
    >>> counts = read_extreme(path)
    >>> counts.y.tolist(), counts.X.toarray().tolist(), counts.n_unlabelled
    ([0, 4], [[1.0, 0.0, 0.5], [1.0, 0.0, 0.5]], 1)
    """
    rules, rows = _read_file(path, "xmc", _make_rules(unlabelled, replicate), limits)
    return _assemble(rows, 0, rules.last_term + 1, replicate, unlabelled)


def open_rows(
    path: str | os.PathLike[str],
    format: str,
    rules: Rules,
    limits: Limits,
    on_fault: Callable[[int, str, bytes], None],
) -> tuple[Rules, Iterator[tuple[Rows, int]]]:
    """Open a file of counts, and read its header where it has one.

    Returns the rules with the sizes that the header of an XMC file gives, and an iterator over the
    documents of each block with the bytes read so far. `on_fault` is called with line, reason and
    content of each line that cannot be read.
    """
    blocks = line_blocks(path, limits=limits)
    n_bytes = n_lines = 0
    if format != "svmlight":
        line, blocks = _split_first_line(blocks)
        if format == "xmc":
            n_documents, n_terms, n_labels = _read_header(path, line, limits)
            rules = replace(
                rules,
                last_term=n_terms - 1,
                first_label=0,
                last_label=n_labels - 1,
                n_documents=n_documents,
            )
        if format == "xmc" or _is_header(line):
            n_bytes, n_lines = len(line), 1
        else:
            blocks = chain([line + next(blocks, b"")], blocks)

    def parse(n_bytes: int, n_lines: int) -> Iterator[tuple[Rows, int]]:
        n_documents = 0
        for block in blocks:
            check_lines(path, block, n_lines, limits)
            rows = parse_block(block, n_lines, n_documents, rules, on_fault)
            n_documents += len(rows.lines)
            n_bytes += len(block)
            n_lines += block.count(b"\n")
            yield rows, n_bytes

    return rules, parse(n_bytes, n_lines)


def check_promise(path: str | os.PathLike[str], rules: Rules, n_documents: int) -> None:
    """Refuse a file that has fewer documents than its header promises."""
    if rules.n_documents is not None and n_documents < rules.n_documents:
        reason = f"the header promises {rules.n_documents} documents, the file has {n_documents}"
        raise DataFormatError(source_name(path), f"{reason}; it may be cut short", 1)


def _read_file(
    path: str | os.PathLike[str], format: str, rules: Rules, limits: Limits
) -> tuple[Rules, Rows]:
    """Return the rules with what a header says, and all documents.

    Raises
    ------
    DataFormatError
        At the first line that cannot be read, or if documents are missing.
    """

    def refuse(line: int, reason: str, _content: bytes) -> NoReturn:
        raise DataFormatError(path, reason, line)

    rules, blocks = open_rows(path, format, rules, limits, refuse)
    found = [rows for rows, _ in blocks]
    n_documents = sum(len(rows.lines) for rows in found)
    if not n_documents:
        raise DataFormatError(path, "no documents found; expected one per line")
    check_promise(path, rules, n_documents)
    highest = max(rows.highest_term for rows in found)
    offsets = np.cumsum([0, *(rows.X.nnz for rows in found)])
    indptr = [rows.X.indptr[:-1] + start for rows, start in zip(found, offsets, strict=False)]
    X = csr_array(
        (
            np.concatenate([rows.X.data for rows in found]),
            np.concatenate([rows.X.indices for rows in found]),
            # Of the same type as the terms; otherwise scipy would copy both.
            np.concatenate([*indptr, offsets[-1:]]).astype(
                np.int32 if offsets[-1] <= _LARGEST_TERM else np.int64
            ),
        ),
        shape=(n_documents, highest + 1),
    )
    whole = Rows(
        np.concatenate([rows.labels for rows in found]),
        np.concatenate([rows.label_counts for rows in found]),
        X,
        [],
        min(rows.lowest_term for rows in found),
        highest,
    )
    return rules, whole


def _assemble(
    rows: Rows, first_term: int, n_terms: int | None, replicate: bool, unlabelled: Unlabelled
) -> LabelledCounts:
    """Build the count matrix, one row per document and label, or per document that is kept."""
    X = rows.X
    n_documents = X.shape[0]
    n_terms = max(rows.highest_term + 1 - first_term, 0) if n_terms is None else n_terms
    X.indices -= np.int32(first_term)
    X = csr_array((X.data, X.indices, X.indptr), shape=(n_documents, n_terms))
    documents = np.repeat(np.arange(n_documents), rows.label_counts)
    labelled = (rows.label_counts > 0) | (unlabelled == "keep")
    if replicate and not np.all(rows.label_counts == 1):
        X = X[documents]
    elif not np.all(labelled):
        X = X[np.flatnonzero(labelled)]
    X.has_canonical_format = True
    row_ids = None if replicate else (np.cumsum(labelled) - 1)[documents]
    return LabelledCounts(X, rows.labels, documents, int(np.count_nonzero(~labelled)), row_ids)


def _is_header(line: bytes) -> bool:
    """Return whether the first line of an LSHTC file holds words."""
    return re.match(rb"[ \t]*[A-Za-z][^:]*$", line.rstrip(b"\r\n")) is not None


def _split_first_line(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first line, with its newline, and the blocks after it."""
    first = next(blocks)
    end = first.find(b"\n") + 1 or len(first)
    rest = first[end:]
    return first[:end], chain([rest], blocks) if rest else blocks


def _read_header(path: str | os.PathLike[str], line: bytes, limits: Limits) -> tuple[int, int, int]:
    """Return the three sizes in the first line of an Extreme Classification file."""
    sizes = line[:100].split()
    if len(sizes) != 3 or not all(re.fullmatch(rb"[0-9]{1,18}", size) for size in sizes):
        found = line.strip()[:40].decode("utf-8", "backslashreplace")
        reason = f"expected the header 'n_documents n_terms n_labels', found '{found}'"
        raise DataFormatError(path, reason, line=1)
    n_documents, n_terms, n_labels = map(int, sizes)
    if n_terms > limits.terms:
        reason = f"the header promises {n_terms} terms; the limit 'terms' is {limits.terms}"
        raise DataFormatError(path, reason, line=1)
    return n_documents, n_terms, n_labels


def _count_columns(n_terms: int | None, limits: Limits) -> int:
    """Return how many terms a file may have."""
    if n_terms is None:
        return limits.terms
    if not 1 <= n_terms <= _LARGEST_TERM:
        raise ValueError(f"n_terms must be between 1 and {_LARGEST_TERM}, or None; got {n_terms}.")
    return n_terms


def _make_rules(unlabelled: Unlabelled, replicate: bool, **allowed: Any) -> Rules:
    """Return what a format allows, with how many labels a document must have."""
    if unlabelled not in ("error", "skip", "keep"):
        raise ValueError(f"unlabelled must be 'error', 'skip' or 'keep'; got {unlabelled!r}.")
    if unlabelled == "keep" and replicate:
        raise ValueError("unlabelled='keep' needs replicate=False: a row per label has a label.")
    return Rules(fewest_labels=1 if unlabelled == "error" else 0, **allowed)
