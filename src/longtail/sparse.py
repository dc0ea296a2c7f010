"""CountMatrix: documents as rows of counts, in the form that everything after them reads.

In: a sparse or dense matrix of counts. Out: its CSR parts with sorted terms, checked, in 32 bits
where these hold every count exactly.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._constants import FRACTION_BITS
from longtail._kernels.types import Counts

SMALLEST_COUNT = 2.0**-FRACTION_BITS  # anything less is taken as zero
LARGEST_NARROW_COUNT = 1 << 24  # up to here float32 holds every whole number
BLOCK_ENTRIES = 1 << 17  # looked at together where that takes a copy: 1 MB

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CountMatrix:
    """CSR parts of a count matrix as the kernels want them: sorted indices, no zeros.

    `indptr` (n_documents + 1,) int64, `indices` (nnz,) int32 (int64 beyond 2^31 terms), `data`
    (nnz,) float32 where all counts are whole numbers that it holds exactly, else float64.
    """

    indptr: Integers
    indices: NDArray[Any]
    data: NDArray[Any]
    n_terms: int

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> Counts:
        """What kernels read."""
        return Counts(self.indptr, self.indices, self.data)

    @property
    def most_terms(self) -> int:
        """A bound on how many terms a document has: each has a term once."""
        return min(len(self.indices), self.n_terms)

    def entries(self, documents: Integers) -> Integers:
        """Return where the entries of the given documents stand, document by document."""
        lengths = np.diff(self.indptr)[documents]
        starts = offsets_from_lengths(lengths)
        entries = np.repeat(self.indptr[documents] - starts[:-1], lengths)
        entries += np.arange(starts[-1])
        return entries

    def gather(self, documents: Integers, entries: Integers | None = None) -> CountMatrix:
        """Return the given documents, in their order; `entries` are theirs, where known."""
        entries = self.entries(documents) if entries is None else entries
        indptr = offsets_from_lengths(np.diff(self.indptr)[documents])
        return CountMatrix(indptr, self.indices[entries], self.data[entries], self.n_terms)

    def slice_documents(self, documents: slice) -> CountMatrix:
        """Return documents that follow each other, without copying them."""
        first, last, _ = documents.indices(self.n_documents)
        return CountMatrix(self.indptr[first : last + 1], self.indices, self.data, self.n_terms)

    def to_csr(self) -> sp.csr_array[Any]:
        """Return the counts as scipy has them, without copying."""
        shape = self.n_documents, self.n_terms
        return sp.csr_array((self.data, self.indices, self.indptr), shape=shape)

    @classmethod
    def from_matrix(cls, X: Any) -> CountMatrix:
        """Bring a sparse or dense matrix of counts into the kernels' form; `X` stays as it is.

        Raises
        ------
        ValueError
            If a count is negative, NaN or infinite, or the matrix is damaged.
        """
        check_sparse(X)
        matrix: Any = X
        if not isinstance(X, sp.csr_array | sp.csr_matrix):
            matrix = sp.csr_array(X)
            check_sparse(matrix)
        smallest, largest = _check_counts(matrix.data)
        if smallest < SMALLEST_COUNT or not _has_sorted_rows(matrix.indptr, matrix.indices):
            matrix = sp.csr_array(matrix, dtype=np.float64, copy=True)
            matrix.has_canonical_format = matrix.has_sorted_indices = False  # whatever it claims
            matrix.sum_duplicates()
            matrix.data[matrix.data < SMALLEST_COUNT] = 0.0
            matrix.eliminate_zeros()
            largest = float(matrix.data.max(initial=0.0))
        n_terms = int(matrix.shape[1])
        n_entries = matrix.indptr[-1]
        return cls(
            indptr=matrix.indptr.astype(np.int64, copy=False),
            indices=matrix.indices[:n_entries].astype(index_dtype(n_terms), copy=False),
            data=_narrow(matrix.data[:n_entries], largest),
            n_terms=n_terms,
        )

    @classmethod
    def from_sorted(
        cls, indptr: Integers, indices: NDArray[Any], data: Floats, n_terms: int
    ) -> CountMatrix:
        """Take sound CSR parts of positive counts whose indices ascend within each row."""
        smallest, largest = _check_counts(data)
        if smallest < SMALLEST_COUNT:
            shape = len(indptr) - 1, n_terms
            return cls.from_matrix(sp.csr_array((data, indices, indptr), shape=shape))
        narrow = indices.astype(index_dtype(n_terms), copy=False)
        return cls(indptr, narrow, _narrow(data, largest), n_terms)


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a scipy matrix whose parts do not fit each other: what scipy itself does not check.

    Its arrays may have been assigned or mapped from a file; compiled code follows them blindly.

    Raises
    ------
    ValueError
        If an offset falls or an index is out of range, or it has not two dimensions.
    """
    layout = getattr(X, "format", None) if sp.issparse(X) else None
    if layout and len(X.shape) != 2:
        raise ValueError(f"{name} must have two dimensions; got a sparse array of {X.shape}.")
    if layout == "coo":
        bounds = list(zip(X.coords, X.shape, strict=True))
    elif layout in ("csr", "csc", "bsr"):
        blocks = X.blocksize if layout == "bsr" else (1, 1)
        n_rows, n_columns = (size // block for size, block in zip(X.shape, blocks, strict=True))
        if layout == "csc":
            n_rows, n_columns = n_columns, n_rows
        n_entries = min(len(X.indices), len(X.data))
        if not _are_offsets(X.indptr, n_rows, n_entries):
            raise ValueError(
                f"{name} is a damaged {layout} matrix of shape {X.shape}: its indptr must have "
                f"{n_rows + 1} offsets that start at 0, never fall and end within its "
                f"{n_entries} entries. Rebuild the matrix."
            )
        bounds = [(X.indices[: X.indptr[-1]], n_columns)]
    else:
        return
    for indices, size in bounds:
        if not len(indices):
            continue
        first, last = np.minimum.reduce(indices), np.maximum.reduce(indices)
        if not 0 <= first <= last < size:
            raise ValueError(
                f"{name} is a damaged {layout} matrix of shape {X.shape}: its indices reach from "
                f"{first} to {last}, outside 0 to {size - 1}. Rebuild the matrix."
            )


def _are_offsets(indptr: NDArray[Any], n_rows: int, n_entries: int) -> bool:
    """Return whether offsets cut entries into rows; differences of wrapped ones would overflow."""
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or indptr[-1] > n_entries:
        return False
    return bool((indptr[1:] >= indptr[:-1]).all())


def _has_sorted_rows(indptr: NDArray[Any], indices: NDArray[Any]) -> bool:
    """Return whether indices ascend within each row; the flag of a matrix may be out of date."""
    for start in range(0, int(indptr[-1]) - 1, BLOCK_ENTRIES):
        block = indices[start : min(start + BLOCK_ENTRIES + 1, int(indptr[-1]))]
        falls = np.flatnonzero(block[1:] <= block[:-1]) + (start + 1)
        if len(falls) and not np.array_equal(indptr[np.searchsorted(indptr, falls)], falls):
            return False
    return True


def index_dtype(size: int) -> type[np.int32] | type[np.int64]:
    """Return the smaller index type that can count to `size`."""
    return np.int32 if size < 1 << 31 else np.int64  # np.iinfo takes microseconds


def count_terms(indices: NDArray[Any], n_terms: int) -> Integers:
    """Return how often each term is listed."""
    counts = np.zeros(n_terms, np.int64)
    for block in _iter_blocks(indices):  # numpy counts in a copy of 64 bits
        counts += np.bincount(block, minlength=n_terms)
    return counts


class _Buffer(np.ndarray[Any, Any]):
    """Memory with capacity behind what is used; arrays are views of its beginning."""

    used: int

    def claim(self, array: NDArray[Any], n_after: int) -> bool:
        """Take the capacity behind an array of this buffer; return whether it was free."""
        with _CLAIM:
            free = (
                self.used == len(array)
                and n_after <= len(self)
                and array.dtype == self.dtype
                and array.ctypes.data == self.ctypes.data
            )
            if free:
                self.used = n_after
        return free


_CLAIM = threading.Lock()


def append(array: NDArray[Any], tail: NDArray[Any]) -> NDArray[Any]:
    """Return an array followed by another; the one given stays as it is.

    Costs what the tail costs: the result is a view of memory with free capacity, which the next
    call fills further. An array that was appended to before is copied instead, so that no two
    results share what follows it.
    """
    n_before, n_after = len(array), len(array) + len(tail)
    buffer = array.base
    if not isinstance(buffer, _Buffer) or not buffer.claim(array, n_after):
        return append(copy_with_capacity(array, n_after), tail)
    buffer[n_before:n_after] = tail
    return _view(buffer, n_after)


def copy_with_capacity(array: NDArray[Any], capacity: int = 0) -> NDArray[Any]:
    """Return a copy that `append` can append to without another."""
    capacity = max(len(array), capacity)
    buffer = _Buffer((capacity + capacity // 8 + 16,), array.dtype)
    buffer.used = len(array)
    buffer[: len(array)] = array
    return _view(buffer, len(array))


def _view(buffer: _Buffer, n_used: int) -> NDArray[Any]:
    """Return the beginning of a buffer; given as `buffer`, it is the view's base itself."""
    return np.ndarray((n_used,), buffer.dtype, buffer=buffer)


def append_constant(array: NDArray[Any], n_new: int, value: float = 0) -> NDArray[Any]:
    """Return an array followed by so many times a value; see `append`."""
    return append(array, np.full(n_new, value, array.dtype)) if n_new else array


def offsets_from_lengths(sizes: NDArray[Any]) -> Integers:
    """Return where each row begins when rows have these sizes."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def gather_rows(indptr: Integers, sources: Integers) -> tuple[Integers, Integers | slice]:
    """Return where rows begin when gathered from sources, and their entries; -1 is empty."""
    sizes = np.where(sources < 0, 0, indptr[sources + 1] - indptr[sources])
    starts = offsets_from_lengths(sizes)
    n_rows = len(indptr) - 1
    if len(sources) >= n_rows and np.array_equal(sources[sources >= 0], np.arange(n_rows)):
        return starts, slice(None)  # all rows in their order: no entry moves
    return starts, np.repeat(indptr[sources] - starts[:-1], sizes) + np.arange(starts[-1])


def check_csr(
    indptr: Integers, indices: NDArray[Any], values: NDArray[Any], n_rows: int, n_columns: int
) -> None:
    """Check that CSR parts fit each other and their shape.

    Raises
    ------
    ValueError
        If they do not.
    """
    sound = (
        len(indptr) == n_rows + 1
        and indptr[0] == 0
        and np.all(indptr[1:] >= indptr[:-1])
        and indptr[-1] == len(indices) == len(values)
        and (not len(indices) or 0 <= indices.min() <= indices.max() < n_columns)
    )
    if not sound:
        raise ValueError("an index does not fit its classes and terms.")


def _check_counts(data: NDArray[Any]) -> tuple[float, float]:
    """Return the smallest and the largest count; refuse negative ones, NaN and infinity."""
    if not len(data):
        return np.inf, 0.0
    # NaN where there is one; the methods of an array take twice as long for one document.
    smallest, largest = float(np.minimum.reduce(data)), float(np.maximum.reduce(data))
    if not (math.isfinite(smallest) and math.isfinite(largest)):
        raise ValueError(
            "X contains NaN or infinity; counts must be finite. Replace such values first."
        )
    if smallest < 0:
        raise ValueError(
            f"Negative values in data passed to X: the smallest is {smallest:g}, but counts are "
            "not negative. Give raw term counts, or weights that are at least 0."
        )
    return smallest, largest


def _narrow(data: NDArray[Any], largest: float) -> NDArray[Any]:
    """Return counts as float32 where they are whole numbers that it holds, else as float64.

    Not wherever it holds them: kernels are compiled for each type, and 0.5 and 0.1 ask for one.
    """
    if largest <= LARGEST_NARROW_COUNT and (data.dtype.kind in "biu" or are_integral(data)):
        return data.astype(np.float32, copy=False)
    return data.astype(np.float64, copy=False)


def are_integral(data: NDArray[Any]) -> bool:
    """Return whether every count is a whole number."""
    return not any(np.count_nonzero(block != np.rint(block)) for block in _iter_blocks(data))


def _iter_blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Iterate over blocks whose temporaries are small beside the array."""
    return (array[start : start + BLOCK_ENTRIES] for start in range(0, len(array), BLOCK_ENTRIES))
