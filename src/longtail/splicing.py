"""Rows of CSR matrices put together as another one.

In: where the rows of some matrices begin, and which row of which of them stands where. Out: offsets
and runs of entries, by which any array of the matrices is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import Integers, offsets_from_lengths


class RowSplice(NamedTuple):
    """Rows of CSR matrices put together as another one, in runs of rows that follow each other.

    Copying runs costs what the entries cost in memory; gathering entry by entry costs ten times it.

    Attributes
    ----------
    indptr : ndarray of shape (n_rows + 1,), int64
        Where the rows begin.
    sources : tuple of ndarrays of shape (n_rows,)
        For each matrix, which of its rows stands where; -1 for none of them.
    runs : list of tuples
        Matrix, first entry and end of each run.
    """

    indptr: Integers
    sources: tuple[Integers, ...]
    runs: list[tuple[int, int, int]]

    @classmethod
    def of(cls, indptrs: Sequence[Integers], *sources: Integers) -> RowSplice:
        """Plan the copying; where several matrices have a row, that of the last one counts."""
        n_rows = len(sources[0])
        sizes, starts = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        matrices = np.zeros(n_rows, np.int64)
        for matrix, (indptr, rows) in enumerate(zip(indptrs, sources, strict=True)):
            here = rows >= 0
            matrices[here] = matrix
            starts[here] = indptr[rows[here]]
            sizes[here] = indptr[rows[here] + 1] - starts[here]
        ends = starts + sizes
        filled = np.flatnonzero(sizes)  # empty rows end no run
        matrices, starts, ends = matrices[filled], starts[filled], ends[filled]
        goes_on = (matrices[1:] == matrices[:-1]) & (starts[1:] == ends[:-1])
        first = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ~goes_on])[: len(filled)])
        last = np.append(first[1:], len(filled)) - 1 if len(filled) else first
        parts = matrices[first].tolist(), starts[first].tolist(), ends[last].tolist()
        return cls(offsets_from_lengths(sizes), sources, list(zip(*parts, strict=True)))

    def entries(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        """Return the entries of an array of each matrix, put together; a single run is a view."""
        if len(self.runs) < 2:
            matrix, start, end = self.runs[0] if self.runs else (0, 0, 0)
            return arrays[matrix][start:end]
        return np.concatenate([arrays[matrix][start:end] for matrix, start, end in self.runs])

    def rows(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        """Return the values per row of an array of each matrix, put together; 0 where none is."""
        spliced = np.zeros(len(self.indptr) - 1, arrays[0].dtype)
        for array, rows in zip(arrays, self.sources, strict=True):
            here = rows >= 0
            spliced[here] = array[rows[here]]
        return spliced
