"""ClassStatistics: the sum of the documents of each class; Corpus: what all of them share.

In: a CSR matrix of counts and a class number for each document. Out: for each class its terms,
their counts (y_t in Table 1 of the paper) and the sum of its length-normalised documents (its
centroid). All sums are integers in a fixed-point unit, so adding and subtracting documents is exact
and does not depend on order, chunks or threads. The idf is applied after the sum: it changes with
the corpus, the sums do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._kernels import statistics as kernels
from longtail._kernels.types import Block, ClassTerms, FixedPoint, Members, TermScratch
from longtail._parallel import parallel_for
from longtail.sparse import (
    FRACTION_BITS,
    CountMatrix,
    Floats,
    Integers,
    are_integral,
    count_terms,
    gather_rows,
    index_dtype,
    offsets_from_lengths,
)
from longtail.statistics.corpus import Corpus

# A length-normalised document has entries of at most 1: int64 holds the sum of 2^25 of them.
CENTROID_BITS = 38

_LARGEST_SUM = 2.0**62  # half of what int64 holds: these sums are compared in float64


@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """The sum of the documents of each class.

    A sparse classes x terms matrix in CSR form with two numbers at each entry.

    Attributes
    ----------
    indptr : ndarray of shape (n_classes + 1,), int64
        Where each class's entries begin.
    indices : ndarray of shape (nnz,), int32 or int64
        Terms of each class, ascending.
    counts : ndarray of shape (nnz,), int64
        y_t in units of `2**-count_bits`.
    centroid_sums : ndarray of shape (nnz,), int64
        Sum of the length-normalised documents in units of `2**-CENTROID_BITS`.
    class_sizes : ndarray of shape (n_classes,), int64
        Number of documents of each class.
    document_frequencies : ndarray of shape (n_terms,), int64
        df_t, the number of documents with term t.
    count_bits : int
        0 where every count is a whole number, else `FRACTION_BITS`.
    sublinear : bool
        Whether a document counts a term as `1 + ln(count)` in the centroid or as its count (the
        paper).

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.statistics.classes import ClassStatistics
    >>> X = np.array([[2, 1, 0], [0, 1, 0], [0, 0, 3]])
    >>> statistics = ClassStatistics.from_counts(X, np.array([0, 0, 1]), n_classes=2)
    >>> statistics.class_lengths
    array([4., 3.])
    """

    indptr: Integers
    indices: NDArray[Any]
    counts: Integers
    centroid_sums: Integers
    class_sizes: Integers
    document_frequencies: Integers
    count_bits: int = 0
    sublinear: bool = False

    @classmethod
    def from_counts(
        cls,
        X: Any,
        y: ArrayLike,
        n_classes: int,
        *,
        sublinear: bool = False,
        n_jobs: int | None = None,
    ) -> ClassStatistics:
        """Sum the documents of each class, in one pass over them.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms), or CountRows
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Class number of each document, 0 to n_classes - 1.
        n_classes : int
            Number of classes K; classes without documents are allowed.
        sublinear : bool, default=False
            Weight a term by `1 + ln(count)` in the centroid.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        ClassStatistics

        Raises
        ------
        ValueError
            If the sizes do not fit, or a class number or count is out of range.
        """
        rows = X if isinstance(X, CountMatrix) else CountMatrix.from_matrix(X)
        class_ids = check_class_ids(y, n_classes, rows.n_documents)
        class_sizes = np.bincount(class_ids, minlength=n_classes).astype(np.int64)
        members = Members(offsets_from_lengths(class_sizes), np.argsort(class_ids, kind="stable"))
        count_bits = 0 if are_integral(rows.data) else FRACTION_BITS
        sums = _sum_classes(rows, members, count_bits, sublinear, n_jobs)
        return cls(
            *sums,
            class_sizes=class_sizes,
            document_frequencies=count_terms(rows.indices, rows.n_terms),
            count_bits=count_bits,
            sublinear=sublinear,
        )

    @classmethod
    def empty(cls, n_classes: int, n_terms: int, *, sublinear: bool = False) -> ClassStatistics:
        """Return statistics of no documents at all: the neutral element of `+`."""
        return cls.from_counts(
            sp.csr_array((0, n_terms)), np.zeros(0, np.int64), n_classes, sublinear=sublinear
        )

    @property
    def arrays(self) -> ClassTerms:
        """What kernels read."""
        return ClassTerms(self.indptr, self.indices, self.counts, self.centroid_sums)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.class_sizes)

    @property
    def n_terms(self) -> int:
        """Number of columns of the count matrix."""
        return len(self.document_frequencies)

    @property
    def n_documents(self) -> int:
        """m, the number of documents in all classes."""
        return int(self.class_sizes.sum())

    @cached_property
    def class_lengths(self) -> Floats:
        """|y|, the number of term occurrences of each class."""
        totals = np.zeros(self.n_classes, np.int64)
        kernels.sum_by_class(self.indptr, self.counts, totals)
        return totals * np.float64(2.0**-self.count_bits)

    @cached_property
    def corpus(self) -> Corpus:
        """The global quantities of exactly these documents."""
        totals = np.zeros(self.n_terms, np.int64)
        kernels.sum_by_term(self.indices, self.counts, totals)
        term_counts = totals * np.float64(2.0**-self.count_bits)
        return Corpus(
            n_documents=self.n_documents,
            document_frequencies=self.document_frequencies,
            term_counts=term_counts,
            length=float(term_counts.sum()),
            mean_class_length=float(term_counts.sum()) / max(self.n_classes, 1),
        )

    @cached_property
    def centroid_masses(self) -> Floats:
        """Sum of each class's centroid sum over its terms, in units of `2**-CENTROID_BITS`."""
        totals = np.zeros(self.n_classes, np.int64)
        kernels.sum_by_class(self.indptr, self.centroid_sums, totals)
        return totals.astype(np.float64)

    @cached_property
    def centroid_totals(self) -> Floats:
        """Sum of each term over all centroid sums, in units of `2**-CENTROID_BITS`."""
        totals = np.zeros(self.n_terms, np.int64)
        kernels.sum_by_term(self.indices, self.centroid_sums, totals)
        return totals.astype(np.float64)

    def centroid_norms(self, idf: Floats) -> Floats:
        """Return the length of each idf-weighted centroid sum, in units of `2**-CENTROID_BITS`."""
        norms = np.zeros(self.n_classes)
        kernels.norm_of_classes(self.indptr, self.indices, self.centroid_sums, idf, norms)
        return norms

    def __add__(self, other: ClassStatistics) -> ClassStatistics:
        """Return the statistics of both sets of documents; exact, in any order."""
        return _combine(self, other, 1)

    def __sub__(self, other: ClassStatistics) -> ClassStatistics:
        """Return the statistics without the documents of `other`; exact.

        Raises
        ------
        ValueError
            If `other` has documents that were never added.
        """
        difference = _combine(self, other, -1)
        if (
            np.any(difference.class_sizes < 0)
            or np.any(difference.document_frequencies < 0)
            or np.any(difference.counts < 0)
            or np.any(difference.centroid_sums < 0)
            or not _empty_classes_have_no_terms(difference)
        ):
            raise ValueError(
                "cannot subtract documents that were never added to their class. "
                "Give the same documents with the same labels as when they were added."
            )
        return difference

    def __eq__(self, other: object) -> bool:
        """Tell whether two statistics agree in every bit."""
        if not isinstance(other, ClassStatistics):
            return NotImplemented
        names = ("indptr", "indices", "counts", "centroid_sums", "class_sizes")
        mine, theirs = (
            self._with_count_bits(other.count_bits),
            other._with_count_bits(self.count_bits),
        )
        return (
            self.sublinear == other.sublinear
            and np.array_equal(self.document_frequencies, other.document_frequencies)
            and all(np.array_equal(getattr(mine, name), getattr(theirs, name)) for name in names)
        )

    __hash__ = None  # type: ignore[assignment]

    def scatter_classes(self, positions: Integers, n_classes: int) -> ClassStatistics:
        """Move class c to row `positions[c]` of `n_classes`; rows in between have no documents."""
        sizes = np.zeros(n_classes, np.int64)
        sizes[positions] = np.diff(self.indptr)
        class_sizes = np.zeros(n_classes, np.int64)
        class_sizes[positions] = self.class_sizes
        if np.all(np.diff(positions) > 0):  # the order stays, so do the entries
            return replace(self, indptr=offsets_from_lengths(sizes), class_sizes=class_sizes)
        indptr = offsets_from_lengths(sizes)
        entries = np.repeat(indptr[positions] - self.indptr[:-1], np.diff(self.indptr))
        entries += np.arange(len(entries))
        moved = {}
        for name in ("indices", "counts", "centroid_sums"):
            moved[name] = np.empty_like(getattr(self, name))
            moved[name][entries] = getattr(self, name)
        return replace(self, indptr=indptr, class_sizes=class_sizes, **moved)

    def gather_classes(self, sources: Integers) -> ClassStatistics:
        """Return a class for each source: that class's sums, or none where it is -1.

        The document frequencies stay those of all documents.
        """
        indptr, entries = gather_rows(self.indptr, sources)
        return replace(
            self,
            indptr=indptr,
            indices=self.indices[entries],
            counts=self.counts[entries],
            centroid_sums=self.centroid_sums[entries],
            class_sizes=np.append(self.class_sizes, 0)[sources],
        )

    def remove_class(self, number: int) -> ClassStatistics:
        """Leave a class out; how many of its documents had a term is not known.

        So the document frequencies stay, but never exceed the number of documents left.
        """
        rest = self.gather_classes(np.delete(np.arange(self.n_classes), number))
        return rest.with_frequencies(np.minimum(self.document_frequencies, rest.n_documents))

    def merge_classes(self, source: int, into: int) -> ClassStatistics:
        """Add one class's sums to another's and leave the first out; exact."""
        others = self.gather_classes(np.delete(np.arange(self.n_classes), source))
        sources = np.full(self.n_classes - 1, -1)
        sources[into - (source < into)] = source
        moved = self.gather_classes(sources)
        return others + moved.with_frequencies(np.zeros_like(self.document_frequencies))

    def with_frequencies(self, document_frequencies: Integers) -> ClassStatistics:
        """Return the same sums with other document frequencies."""
        return replace(self, document_frequencies=document_frequencies)

    def grow_terms(self, n_terms: int) -> ClassStatistics:
        """Make room for terms that no document has."""
        n_new = n_terms - self.n_terms
        return replace(
            self,
            indices=self.indices.astype(index_dtype(n_terms), copy=False),
            document_frequencies=np.pad(self.document_frequencies, (0, n_new)),
        )

    def drop_empty_classes(self) -> ClassStatistics:
        """Leave out the classes without documents; the others keep their order."""
        keep = self.class_sizes > 0
        sizes = np.diff(self.indptr)[keep]
        return replace(self, indptr=offsets_from_lengths(sizes), class_sizes=self.class_sizes[keep])

    def validate(self) -> None:
        """Check every invariant; a file or a faulty merge may have broken one.

        Raises
        ------
        ValueError
            With the first invariant that does not hold.
        """
        sizes = np.diff(self.indptr)
        nnz = len(self.indices)
        checks = {
            "indptr starts at 0, never falls and ends at the number of entries": len(self.indptr)
            == self.n_classes + 1
            and self.indptr[0] == 0
            and self.indptr[-1] == nnz
            and not np.any(sizes < 0),
            "counts and centroid_sums have an entry for each index": len(self.counts)
            == len(self.centroid_sums)
            == nnz,
            "counts, sums and frequencies are not negative": not (
                np.any(self.counts < 0)
                or np.any(self.centroid_sums < 0)
                or np.any(self.class_sizes < 0)
                or np.any(self.document_frequencies < 0)
            ),
            "no term is in more documents than there are": not np.any(
                self.document_frequencies > self.n_documents
            ),
        }
        _raise_first_broken(checks)
        rows = np.repeat(np.arange(self.n_classes), sizes)
        inside = np.all((self.indices >= 0) & (self.indices < self.n_terms))
        _raise_first_broken({"terms are between 0 and n_terms - 1": bool(inside)})
        rising = (np.diff(self.indices.astype(np.int64)) > 0) | (np.diff(rows) > 0)
        classes_with_term = np.bincount(self.indices, minlength=self.n_terms)
        _raise_first_broken(
            {
                "terms ascend within each class": bool(np.all(rising)),
                "each entry has a document of its class": _empty_classes_have_no_terms(self),
                "each term is in at least as many documents as classes": not np.any(
                    classes_with_term > self.document_frequencies
                ),
            }
        )

    def _with_count_bits(self, bits: int) -> ClassStatistics:
        """Express the counts in the finer of two units."""
        if bits <= self.count_bits:
            return self
        return replace(self, counts=self.counts << (bits - self.count_bits), count_bits=bits)


def check_class_ids(y: ArrayLike, n_classes: int, n_documents: int) -> Integers:
    """Return `y` as int64 class numbers, after checking their number and range."""
    numbers = np.asarray(y)
    if numbers.ndim != 1 or len(numbers) != n_documents:
        raise ValueError(
            f"y must have one class number for each of the {n_documents} documents; "
            f"its shape is {numbers.shape}."
        )
    if len(numbers) and not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"y must hold integer class numbers; its type is {numbers.dtype}.")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n_classes):
        raise ValueError(
            f"y must hold class numbers from 0 to {n_classes - 1} (n_classes is {n_classes}); "
            f"it has {numbers.min()} to {numbers.max()}."
        )
    return numbers.astype(np.int64, copy=False)


def _sum_classes(
    rows: CountMatrix, members: Members, count_bits: int, sublinear: bool, n_jobs: int | None
) -> ClassTerms:
    """Count the distinct terms of each class, then fill its entries; classes in parallel."""
    check_total(float(rows.data.sum(dtype=np.float64)), count_bits)
    n_terms, starts = rows.n_terms, members.starts
    sizes = np.zeros(len(starts) - 1, np.int64)
    work = offsets_from_lengths(np.diff(rows.indptr)[members.document_ids])[starts]
    parallel_for(
        lambda first, last: kernels.count_class_terms(
            members, rows.indptr, rows.indices, Block(first, last), np.full(n_terms, -1), sizes
        ),
        work,
        n_jobs,
    )
    classes = _allocate(offsets_from_lengths(sizes), rows.indices.dtype)
    fixed_point = FixedPoint(2.0**count_bits, 2.0**CENTROID_BITS, sublinear)
    parallel_for(
        lambda first, last: kernels.fill_class_sums(
            members,
            rows.arrays,
            fixed_point,
            Block(first, last),
            TermScratch(*(np.zeros(n_terms, dtype) for dtype in (np.int64, np.int64, np.bool_))),
            classes,
        ),
        work,
        n_jobs,
    )
    return classes


def _allocate(indptr: Integers, dtype: np.dtype[Any]) -> ClassTerms:
    """Allocate a class matrix for the entries that the offsets ask for."""
    size = indptr[-1]
    return ClassTerms(
        indptr, np.empty(size, dtype), np.empty(size, np.int64), np.empty(size, np.int64)
    )


def check_total(total: float, count_bits: int) -> None:
    """Refuse counts whose sum would overflow the fixed-point integers.

    Raises
    ------
    ValueError
        If the total is above 2^62 units of 2^-count_bits; then every partial sum fits int64.
    """
    limit = 2.0 ** (62 - count_bits)
    if total > limit:
        raise ValueError(
            f"the counts add up to {total:.3g}; at most {limit:.3g} can be summed exactly. "
            "Scale the counts down, or round them to whole numbers."
        )


def _combine(a: ClassStatistics, b: ClassStatistics, factor: int) -> ClassStatistics:
    """Return a + factor * b."""
    if (a.n_classes, a.n_terms) != (b.n_classes, b.n_terms):
        raise ValueError(
            "statistics must have the same classes and terms to be combined; got "
            f"{a.n_classes} classes x {a.n_terms} terms and {b.n_classes} x {b.n_terms}."
        )
    if a.sublinear != b.sublinear:
        raise ValueError("statistics must have the same `sublinear` setting to be combined.")
    bits = max(a.count_bits, b.count_bits)
    if factor > 0:
        _check_sum(a, b, bits)
    a, b = a._with_count_bits(bits), b._with_count_bits(bits)
    indptr = np.empty(a.n_classes + 1, np.int64)
    indptr[-1] = len(a.indices) + len(b.indices)
    merged = _allocate(indptr, a.indices.dtype)
    size = kernels.add_rows(a.arrays, b.arrays, factor, merged)
    for array in merged[1:]:
        array.resize(size, refcheck=False)  # gives back what is left over, without a copy
    return ClassStatistics(
        *merged,
        class_sizes=a.class_sizes + factor * b.class_sizes,
        document_frequencies=a.document_frequencies + factor * b.document_frequencies,
        count_bits=bits,
        sublinear=a.sublinear,
    )


def _check_sum(a: ClassStatistics, b: ClassStatistics, count_bits: int) -> None:
    """Refuse statistics whose sum would overflow int64, over all entries or for a class or term."""
    check_total(
        sum(float(s.counts.sum(dtype=np.float64)) * 2.0**-s.count_bits for s in (a, b)), count_bits
    )
    if sum(float(s.centroid_sums.sum(dtype=np.float64)) for s in (a, b)) <= _LARGEST_SUM:
        return
    by_class, by_term = np.zeros(a.n_classes), np.zeros(a.n_terms)
    for s in (a, b):
        rows = np.repeat(np.arange(s.n_classes), np.diff(s.indptr))
        by_class += np.bincount(rows, s.centroid_sums, s.n_classes)
        by_term += np.bincount(s.indices, s.centroid_sums, s.n_terms)
    if max(by_class.max(), by_term.max()) > _LARGEST_SUM:
        raise ValueError(
            f"a class or a term has too many documents, {a.n_documents + b.n_documents} in all, to "
            "be summed exactly. Split the class, or leave out the most frequent term."
        )


def _empty_classes_have_no_terms(statistics: ClassStatistics) -> bool:
    """Tell whether a class without documents has no entries."""
    return not np.any((statistics.class_sizes == 0) & (np.diff(statistics.indptr) > 0))


def _raise_first_broken(checks: dict[str, bool]) -> None:
    """Raise for the first check that is false."""
    for statement, holds in checks.items():
        if not holds:
            raise ValueError(f"these class statistics are damaged: it must hold that {statement}.")
