"""Rows -> the text files that some peers read, with what writing them cost.

A peer is not to be blamed for the way from our arrays into its format: `Conversion` keeps the cost,
so that a benchmark can leave it out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


class Conversion:
    """Seconds spent on the way into a peer's format and back: clock and processor."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add what happens inside."""
        clock, processor = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - clock
            self.cpu_seconds += time.process_time() - processor


def weighted_lines(X: csr_array[Any], first_term: int = 0) -> Iterator[str]:
    """Yield each row as `term:weight` pairs."""
    terms = (X.indices + first_term).tolist()
    weights = X.data.tolist()
    for begin, end in pairwise(X.indptr.tolist()):
        yield " ".join(
            f"{term}:{weight:.6g}"
            for term, weight in zip(terms[begin:end], weights[begin:end], strict=True)
        )


def label_lists(labels: csr_array[Any]) -> list[list[int]]:
    """Return the classes of each document."""
    classes = labels.indices.tolist()
    return [classes[begin:end] for begin, end in pairwise(labels.indptr.tolist())]


def token_lines(X: csr_array[Any]) -> Iterator[str]:
    """Yield each row as tokens, a term as often as its count says."""
    tokens = np.repeat(X.indices, X.data.astype(np.int64)).astype(str).tolist()
    bounds = np.concatenate(([0], np.cumsum(X.data.astype(np.int64))))[X.indptr].tolist()
    for begin, end in pairwise(bounds):
        yield " ".join(tokens[begin:end])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file line by line."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(line + "\n" for line in lines)


def size_of(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def rank_lists(
    labels: Any, scores: Any, n_documents: int, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pad lists of class ids and scores to arrays; equal scores in class order."""
    ranked = np.zeros((n_documents, k), dtype=np.int64)
    values = np.full((n_documents, k), -np.inf)
    for document, (row, row_scores) in enumerate(zip(labels, scores, strict=True)):
        order = np.lexsort((row, -np.asarray(row_scores, dtype=np.float64)))[:k]
        ranked[document, : len(order)] = np.asarray(row, dtype=np.int64)[order]
        values[document, : len(order)] = np.asarray(row_scores, dtype=np.float64)[order]
    return ranked, values
