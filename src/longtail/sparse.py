"""Tables of rows: gathered, sliced, spliced and stacked in one place; and documents as such.

`RowTable` is what every CSR-like table of the package is: documents, label sets, sums and weights
of classes. `CountMatrix` brings a sparse or dense matrix of counts into that form: sorted terms,
checked, in 32 bits where these hold every count exactly.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._constants import FRACTION_BITS
from longtail._kernels.types import Counts
from longtail._parallel import release_memory

SMALLEST_COUNT = 2.0**-FRACTION_BITS  # anything less is taken as zero
LARGEST_NARROW_COUNT = 1 << 24  # up to here float32 holds every whole number
ENTRIES_PER_RUN = 40  # that take as long to copy one by one as a run by itself
BLOCK_ENTRIES = 1 << 17  # looked at together where that takes a copy: 1 MB
FREED_TOGETHER = 1 << 26  # bytes that are in memory twice while arrays are put together

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class RowTable:
    """Rows of entries: arrays with a value per entry, and arrays with a value per row.

    A subclass is a frozen dataclass whose `indptr` says where each row begins; it names its arrays
    in `ENTRIES` and `ROWS`. An array that is None stays None;
    where some of several tables lack one of rows, theirs are zeros.
    """

    ENTRIES: ClassVar[tuple[str, ...]] = ()
    ROWS: ClassVar[tuple[str, ...]] = ()
    indptr: Integers

    def gather(self, rows: Integers) -> Self:
        """Return the given rows, in their order; -1 is a row without entries."""
        return splice_rows([self], rows)

    def slice(self, rows: slice) -> Self:
        """Return rows that follow each other; their entries are not copied."""
        first, last, _ = rows.indices(len(self.indptr) - 1)
        start, end = self.indptr[first], self.indptr[last]
        arrays = {name: array[start:end] for name, array in self._arrays(self.ENTRIES)}
        arrays |= {name: array[first:last] for name, array in self._arrays(self.ROWS)}
        return self._replace(indptr=self.indptr[first : last + 1] - start, **arrays)

    def _arrays(self, names: tuple[str, ...]) -> Iterator[tuple[str, NDArray[Any]]]:
        """Iterate over the arrays that are there."""
        found = ((name, getattr(self, name)) for name in names)
        return ((name, array) for name, array in found if array is not None)

    def _replace(self, **arrays: NDArray[Any]) -> Self:
        table: Any = self
        replaced: Self = replace(table, **arrays)
        return replaced


Table = TypeVar("Table", bound=RowTable)


def splice_rows(tables: Sequence[Table], *sources: Integers, **known: NDArray[Any]) -> Table:
    """Return rows of several tables, put together as one.

    Parameters
    ----------
    tables : sequence of RowTable
        The last one gives what belongs to no row.
    *sources : ndarrays of shape (n_rows,)
        For each table, which of its rows stands where; -1 for none of them. Where several tables
        have a row, that of the last one counts; where none has, the row has no entries.
    **known : ndarrays
        Arrays that are already put together.
    """
    runs = _Runs.of([table.indptr for table in tables], sources)
    last, arrays = tables[-1], dict(known)
    for name, _ in last._arrays(last.ENTRIES):
        if name not in known:
            arrays[name] = runs.copy([getattr(table, name) for table in tables])
    for name in last.ROWS:
        given = [getattr(table, name) for table in tables]
        like = next((array for array in reversed(given) if array is not None), None)
        if like is None:
            continue
        of_rows = np.zeros((len(sources[0]), *like.shape[1:]), like.dtype)
        for array, rows in zip(given, sources, strict=True):
            if array is not None:
                of_rows[rows >= 0] = array[rows[rows >= 0]]
        arrays[name] = of_rows
    return last._replace(indptr=runs.indptr, **arrays)


def join_arrays(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Put arrays together, one after the other; empties the list, for fewer to be there twice."""
    joined = np.empty(sum(len(array) for array in arrays), arrays[0].dtype)
    end = freed = 0
    arrays.reverse()
    while arrays:
        array = arrays.pop()
        joined[end : end + len(array)] = array
        end, freed = end + len(array), freed + array.nbytes
        del array
        if freed >= FREED_TOGETHER or not arrays:
            release_memory()
            freed = 0
    return joined


def stack_rows(tables: Sequence[Table]) -> Table:
    """Return the rows of tables, one table after the other."""
    first = tables[0]
    lengths = [table.indptr[1:] - table.indptr[:-1] for table in tables]  # faster than np.diff
    arrays = {
        name: np.concatenate([getattr(t, name)[t.indptr[0] : t.indptr[-1]] for t in tables])
        for name, _ in first._arrays(first.ENTRIES)
    }
    for name in first.ROWS:
        given = [getattr(table, name) for table in tables]
        like = next((array for array in given if array is not None), None)
        if like is not None:
            filled = [
                np.zeros((len(of_table), *like.shape[1:]), like.dtype) if array is None else array
                for array, of_table in zip(given, lengths, strict=True)
            ]
            arrays[name] = np.concatenate(filled)
    return first._replace(indptr=offsets_from_lengths(np.concatenate(lengths)), **arrays)


class _Runs(NamedTuple):
    """Entries to copy, in runs of rows that follow each other in one table.

    Copying runs costs what their entries cost in memory; copying entry by entry costs ten times
    it, but a run itself costs as much as `ENTRIES_PER_RUN` entries.
    """

    indptr: Integers
    tables: Integers
    starts: Integers
    ends: Integers

    @classmethod
    def of(cls, indptrs: Sequence[Integers], sources: Sequence[Integers]) -> _Runs:
        """Plan the copying."""
        n_rows = len(sources[0])
        sizes, starts, tables = (np.zeros(n_rows, np.int64) for _ in range(3))
        for table, (indptr, rows) in enumerate(zip(indptrs, sources, strict=True)):
            here = rows >= 0
            tables[here] = table
            starts[here] = indptr[rows[here]]
            sizes[here] = indptr[rows[here] + 1] - starts[here]
        ends = starts + sizes
        filled = np.flatnonzero(sizes)  # empty rows end no run
        tables, starts, ends = tables[filled], starts[filled], ends[filled]
        is_first = np.ones(len(filled), np.bool_)
        is_first[1:] = (tables[1:] != tables[:-1]) | (starts[1:] != ends[:-1])
        is_last = np.append(is_first[1:], True)[: len(filled)]
        indptr = offsets_from_lengths(sizes)
        return cls(indptr, tables[is_first], starts[is_first], ends[is_last])

    def copy(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the entries of an array of each table; a single run is a view."""
        if not len(self.starts):
            return arrays[0][:0]
        if len(self.starts) == 1:
            array: NDArray[Any] = arrays[int(self.tables[0])]
            return array[self.starts[0] : self.ends[0]]
        if len(arrays) == 1 and len(self.starts) * ENTRIES_PER_RUN > self.indptr[-1]:
            lengths = self.ends - self.starts
            first = self.starts - offsets_from_lengths(lengths)[:-1]
            entries = np.repeat(first, lengths) + np.arange(self.indptr[-1])
            return np.asarray(arrays[0][entries])
        runs = zip(self.tables.tolist(), self.starts.tolist(), self.ends.tolist(), strict=True)
        return np.concatenate([arrays[table][start:end] for table, start, end in runs])


@dataclass(frozen=True)
class CountMatrix(RowTable):
    """CSR parts of a count matrix as the kernels want them: sorted indices, no zeros.

    `indptr` (n_documents + 1,) int64, `indices` (nnz,) int32 (int64 beyond 2^31 terms), `data`
    (nnz,) float32 where all counts are whole numbers that it holds exactly, else float64.
    `embeddings` (n_documents, n_dimensions) int16, where documents have any, are unit vectors in
    fixed point (`model.embeddings`); a row of zeros is none.
    """

    ENTRIES = ("indices", "data")
    ROWS = ("embeddings",)

    indptr: Integers
    indices: NDArray[Any]
    data: NDArray[Any]
    n_terms: int
    embeddings: NDArray[np.int16] | None = None

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> Counts:
        """Arrays for the kernels."""
        return Counts(self.indptr, self.indices, self.data)

    @property
    def most_terms(self) -> int:
        """A bound on how many terms a document has: each has a term once."""
        return min(len(self.indices), self.n_terms)

    def have_any(self, terms: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which documents have at least one of some terms."""
        n_before = np.append(0, np.cumsum(terms[self.indices]))
        return n_before[self.indptr[1:]] > n_before[self.indptr[:-1]]

    def select_terms(self, keep: NDArray[np.bool_]) -> CountMatrix:
        """Return the same documents without the terms that are not kept."""
        kept = keep[self.indices]
        n_before = np.append(0, np.cumsum(kept))
        arrays = {"indices": self.indices[kept], "data": self.data[kept]}
        return self._replace(indptr=n_before[self.indptr], **arrays)

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


def narrow_counts(data: NDArray[Any]) -> NDArray[Any]:
    """Return counts that were checked in the type that kernels take them in."""
    return data if data.dtype == np.float32 else _narrow(data, float(data.max(initial=0.0)))


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
