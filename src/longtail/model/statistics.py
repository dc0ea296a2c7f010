"""ClassStatistics: the sum of the documents of each class.

In: a CSR matrix of counts and a class id for each document. Out: for each class its terms,
their counts (y_t in Table 1 of the paper) and the sum of its length-normalised documents (its
centroid). All sums are integers in a fixed-point unit, so adding and subtracting documents is exact
and does not depend on order, chunks or threads. The idf is applied after the sum: it changes with
the corpus, the sums do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._caching import WithKnown, cached_property
from longtail._constants import FRACTION_BITS
from longtail._kernels import statistics as kernels
from longtail._kernels.types import Block, ClassTerms, FixedPoint, Members, TermScratch
from longtail._labels import LabelSets
from longtail._parallel import parallel_for
from longtail.model.corpus import Corpus
from longtail.model.embeddings import add_embeddings, sum_embeddings
from longtail.sparse import (
    CountMatrix,
    Floats,
    Integers,
    RowTable,
    append_constant,
    are_integral,
    count_terms,
    gather_rows,
    index_dtype,
    offsets_from_lengths,
)

# A length-normalised document has entries of at most 1: int64 holds the sum of 2^25 of them.
CENTROID_BITS = 38
MAX_DOCUMENTS = 1 << 24  # that weights may add up to in a class, or of a term
NEVER_ADDED = (
    "cannot subtract documents that were never added to their class. "
    "Give the same documents with the same labels as when they were added."
)
_LARGEST_SUM = 2.0**62  # half of what int64 holds: these sums are compared in float64


@dataclass(frozen=True, eq=False)
class ClassStatistics(WithKnown, RowTable):
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
    class_sizes : ndarray of shape (n_classes,), int64 or float64
        Number of documents of each class; multiples of `2**-WEIGHT_BITS` where documents count as
        fractions, whose sums are exact as well.
    document_frequencies : ndarray of shape (n_terms,), int64 or float64
        df_t, the number of documents with term t; those of classes that were removed count as well.
    embedding_sums : ndarray of shape (n_classes, n_dimensions), int32, or None
        Sum of the embeddings of each class, unit vectors in units of `2**-EMBEDDING_BITS`.
    count_bits : int
        0 where every count is a whole number, else `FRACTION_BITS`.
    sublinear : bool
        Whether a document counts a term as `1 + ln(count)` in the centroid or as its count (the
        paper).

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.model.statistics import ClassStatistics
    >>> X = np.array([[2, 1, 0], [0, 1, 0], [0, 0, 3]])
    >>> statistics = ClassStatistics.from_counts(X, np.array([0, 0, 1]), n_classes=2)
    >>> statistics.class_lengths
    array([4., 3.])
    """

    ENTRIES = ("indices", "counts", "centroid_sums")
    ROWS = ("class_sizes", "embedding_sums")

    indptr: Integers
    indices: NDArray[Any]
    counts: Integers
    centroid_sums: Integers
    class_sizes: Integers
    document_frequencies: Integers
    count_bits: int = 0
    sublinear: bool = False
    embedding_sums: NDArray[np.int32] | None = None

    @classmethod
    def from_counts(
        cls,
        X: Any,
        y: ArrayLike | LabelSets,
        n_classes: int,
        *,
        sublinear: bool = False,
        n_jobs: int | None = None,
    ) -> ClassStatistics:
        """Sum the documents of each class, in one pass over them.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms), or CountMatrix
            Counts, not negative.
        y : array-like of shape (n_documents,), or LabelSets
            Class id of each document, 0 to n_classes - 1. A document with several labels counts
            once for each of them, in sizes and document frequencies too: the (document, label)
            pair is what is added, and what can be subtracted, as often as its weight says.
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
            If the sizes do not fit, or a class id or count is out of range.
        """
        rows = X if isinstance(X, CountMatrix) else CountMatrix.from_matrix(X)
        weights = None
        if isinstance(y, LabelSets):
            class_ids, document_ids, weights = y.class_ids, y.document_ids, y.weights
            frequencies = _count_pairs(rows, y)
        else:
            class_ids = check_class_ids(y, n_classes, rows.n_documents)
            document_ids = np.arange(rows.n_documents)
            frequencies = count_terms(rows.indices, rows.n_terms)
        class_sizes = np.bincount(class_ids, minlength=n_classes).astype(np.int64)
        order = np.argsort(class_ids, kind="stable")
        starts, ordered = offsets_from_lengths(class_sizes), np.zeros(0)
        is_whole = are_integral(rows.data)
        if weights is not None:
            ordered, is_whole = weights[order], is_whole and are_integral(weights)
            class_sizes = count_documents(class_ids, weights, n_classes)
        members = Members(starts, document_ids[order], ordered)
        count_bits = 0 if is_whole else FRACTION_BITS
        sums = _sum_classes(rows, members, count_bits, sublinear, n_jobs)
        return cls(
            *sums,
            class_sizes=class_sizes,
            document_frequencies=frequencies,
            count_bits=count_bits,
            sublinear=sublinear,
            embedding_sums=sum_embeddings(rows.embeddings, members, n_jobs),
        )

    @classmethod
    def empty(cls, n_classes: int, n_terms: int, *, sublinear: bool = False) -> ClassStatistics:
        """Return statistics of no documents at all: the neutral element of `+`."""
        return cls.from_counts(
            sp.csr_array((0, n_terms)), np.zeros(0, np.int64), n_classes, sublinear=sublinear
        )

    @property
    def arrays(self) -> ClassTerms:
        """Arrays for the kernels."""
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
    def n_documents(self) -> int | float:
        """m, the number of documents in all classes; with a fraction where one counts as such."""
        total: int | float = self.class_sizes.sum().item()
        return total

    @cached_property
    def class_lengths(self) -> Floats:
        """|y|, the number of term occurrences of each class."""
        totals = _sum_by_class(self.indptr, self.counts)
        return totals * np.float64(2.0**-self.count_bits)

    @cached_property
    def limited_frequencies(self) -> Integers:
        """df_t, but at most the number of documents."""
        frequencies = self.document_frequencies
        if frequencies.max(initial=0) <= self.n_documents:
            return frequencies
        return _as_integers(np.minimum(frequencies, self.n_documents))

    @cached_property
    def corpus(self) -> Corpus:
        """The global quantities of exactly these documents."""
        totals = np.zeros(self.n_terms, np.int64)
        np.add.at(totals, self.indices, self.counts)
        term_counts = totals * np.float64(2.0**-self.count_bits)
        return Corpus(
            n_documents=self.n_documents,
            document_frequencies=self.limited_frequencies,
            term_counts=term_counts,
            length=float(term_counts.sum()),
            mean_class_length=float(term_counts.sum()) / max(self.n_classes, 1),
        )

    @cached_property
    def centroid_masses(self) -> Floats:
        """Sum of each class's centroid sum over its terms, in units of `2**-CENTROID_BITS`."""
        totals = _sum_by_class(self.indptr, self.centroid_sums)
        return totals.astype(np.float64)

    @cached_property
    def centroid_totals(self) -> Floats:
        """Sum of each term over all centroid sums, in units of `2**-CENTROID_BITS`."""
        totals = np.zeros(self.n_terms, np.int64)
        np.add.at(totals, self.indices, self.centroid_sums)
        return totals.astype(np.float64)

    @cached_property
    def class_frequencies(self) -> Integers:
        """Number of classes that have each term."""
        return count_terms(self.indices, self.n_terms)

    def centroid_norms(self, idf: Floats) -> Floats:
        """Return the length of each idf-weighted centroid sum, in units of `2**-CENTROID_BITS`."""
        norms = np.zeros(self.n_classes)
        kernels.norm_of_classes(self.indptr, self.indices, self.centroid_sums, idf, norms)
        return norms

    def without_frequencies(self) -> ClassStatistics:
        """Return the same sums without document frequencies, which have the vocabulary's length."""
        return replace(self, document_frequencies=np.zeros(0, np.int64))

    def grow_terms(self, n_terms: int) -> ClassStatistics:
        """Make room for terms that no document has."""
        n_new = n_terms - self.n_terms
        return replace(
            self,
            indices=self.indices.astype(index_dtype(n_terms), copy=False),
            document_frequencies=append_constant(self.document_frequencies, n_new),
            known={"class_frequencies": append_constant(self.class_frequencies, n_new)},
        )

    def __add__(self, other: ClassStatistics) -> ClassStatistics:
        """Return the statistics of both sets of documents; exact, in any order."""
        return combine(self, other, 1)

    def __sub__(self, other: ClassStatistics) -> ClassStatistics:
        """Return the statistics without the documents of `other`; exact.

        Raises
        ------
        ValueError
            If `other` has documents that were never added.
        """
        difference = combine(self, other, -1)
        if np.any(difference.document_frequencies < 0) or find_impossible(difference).any():
            raise ValueError(NEVER_ADDED)
        return difference

    def __eq__(self, other: object) -> bool:
        """Tell whether two statistics agree in every bit."""
        if not isinstance(other, ClassStatistics):
            return NotImplemented
        names = ("indptr", "indices", "counts", "centroid_sums", "class_sizes")
        mine, theirs = (
            with_count_bits(self, other.count_bits),
            with_count_bits(other, self.count_bits),
        )
        return (
            self.sublinear == other.sublinear
            and np.array_equal(self.document_frequencies, other.document_frequencies)
            and all(np.array_equal(getattr(mine, name), getattr(theirs, name)) for name in names)
            and _same_or_none(self.embedding_sums, other.embedding_sums)
        )

    __hash__ = None  # type: ignore[assignment]


def _sum_classes(
    rows: CountMatrix, members: Members, count_bits: int, sublinear: bool, n_jobs: int | None
) -> ClassTerms:
    """Count the distinct terms of each class, then fill its entries; classes in parallel."""
    check_total(_total_count(rows, members), count_bits)
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


def _count_pairs(rows: CountMatrix, labels: LabelSets) -> Integers:
    """Return in how many (document, label) pairs each term is."""
    if labels.n_documents != rows.n_documents:
        raise ValueError(
            f"y must have a label set for each of the {rows.n_documents} documents; it has "
            f"{labels.n_documents}."
        )
    lengths = np.diff(rows.indptr)
    if labels.weights is not None:
        times = np.bincount(labels.document_ids, labels.weights, rows.n_documents)
        return count_documents(rows.indices, np.repeat(times, lengths), rows.n_terms)
    if not labels.has_several:
        return count_terms(rows.indices, rows.n_terms)
    frequencies = np.zeros(rows.n_terms, np.int64)
    np.add.at(frequencies, rows.indices, np.repeat(labels.sizes, lengths))
    return frequencies


def count_documents(ids: NDArray[Any], weights: Floats, n_ids: int) -> Integers:
    """Return how many documents each id has, as integers where that is whole; exact.

    Raises
    ------
    ValueError
        If there are so many that their sums would not be.
    """
    counts: NDArray[Any] = np.bincount(ids, weights, n_ids)
    if counts.max(initial=0.0) > MAX_DOCUMENTS:
        raise ValueError(
            f"the weights of a class or a term add up to {counts.max():.3g} documents; at most "
            f"{MAX_DOCUMENTS:,} can be summed exactly. Divide the weights by a common factor."
        )
    whole = counts.astype(np.int64)
    return whole if np.array_equal(whole, counts) else counts


def _total_count(rows: CountMatrix, members: Members) -> float:
    """Return the sum of all counts, of a document as often as it is in a class."""
    weights = members.sample_weights if len(members.sample_weights) else None
    times = np.bincount(members.document_ids, weights, rows.n_documents)
    if np.all(times == 1):
        return float(rows.data.sum(dtype=np.float64))
    return float((np.repeat(times, np.diff(rows.indptr)) * rows.data.astype(np.float64)).sum())


def _sum_by_class(indptr: Integers, values: Integers) -> Integers:
    """Return the sum of the values of each class, exactly."""
    has_terms = np.diff(indptr) > 0
    totals = np.zeros(len(indptr) - 1, np.int64)
    totals[has_terms] = np.add.reduceat(values, indptr[:-1][has_terms])
    return totals


def _allocate(indptr: Integers, dtype: np.dtype[Any]) -> ClassTerms:
    """Allocate a class matrix for the entries that the offsets ask for."""
    size = indptr[-1]
    return ClassTerms(
        indptr, np.empty(size, dtype), np.empty(size, np.int64), np.empty(size, np.int64)
    )


def combine(a: ClassStatistics, b: ClassStatistics, factor: int) -> ClassStatistics:
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
        check_sum(a, b, bits)
    a, b = with_count_bits(a, bits), with_count_bits(b, bits)
    indptr = np.empty(a.n_classes + 1, np.int64)
    indptr[-1] = len(a.indices) + len(b.indices)
    merged = _allocate(indptr, a.indices.dtype)
    size = kernels.add_rows(a.arrays, b.arrays, factor, merged)
    for array in merged[1:]:
        array.resize(size, refcheck=False)  # gives back what is left over, without a copy
    return ClassStatistics(
        *merged,
        class_sizes=_add_counts(a.class_sizes, b.class_sizes, factor),
        document_frequencies=_add_counts(a.document_frequencies, b.document_frequencies, factor),
        count_bits=bits,
        sublinear=a.sublinear,
        embedding_sums=add_embeddings(a.embedding_sums, b.embedding_sums, factor),
    )


def differ(a: ClassStatistics, b: ClassStatistics) -> NDArray[np.bool_]:
    """Return which classes have other sums in one than in the other."""
    bits = max(a.count_bits, b.count_bits)
    a, b = with_count_bits(a, bits), with_count_bits(b, bits)
    lengths = np.diff(a.indptr)
    found: NDArray[np.bool_] = a.class_sizes != b.class_sizes
    found |= lengths != np.diff(b.indptr)
    same = np.flatnonzero(~found)
    _, mine = gather_rows(a.indptr, same)
    _, theirs = gather_rows(b.indptr, same)
    unlike = np.zeros(int(lengths[same].sum()), np.bool_)
    for name in a.ENTRIES:
        unlike |= getattr(a, name)[mine] != getattr(b, name)[theirs]
    owners = np.repeat(same, lengths[same])
    found[owners[unlike]] = True
    if a.embedding_sums is not None and b.embedding_sums is not None:
        found |= np.any(a.embedding_sums != b.embedding_sums, axis=1)
    return found


def _same_or_none(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    """Return whether two arrays agree, or neither is there."""
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _add_counts(a: Integers, b: Integers, factor: int) -> Integers:
    """Return a + factor * b; as integers again where that is whole."""
    return _as_integers(a + factor * b)


def _as_integers(frequencies: Integers) -> Integers:
    """Return frequencies as integers where all are whole."""
    is_whole = frequencies.dtype.kind == "f" and are_integral(frequencies)
    return frequencies.astype(np.int64) if is_whole else frequencies


def with_count_bits(statistics: ClassStatistics, bits: int) -> ClassStatistics:
    """Express the counts in the finer of two units."""
    if bits <= statistics.count_bits:
        return statistics
    return replace(
        statistics, counts=statistics.counts << (bits - statistics.count_bits), count_bits=bits
    )


def check_class_ids(y: ArrayLike, n_classes: int, n_documents: int) -> Integers:
    """Return `y` as int64 class ids, after checking their number and range."""
    class_ids = np.asarray(y)
    if class_ids.ndim != 1 or len(class_ids) != n_documents:
        raise ValueError(
            f"y must have one class id for each of the {n_documents} documents; "
            f"its shape is {class_ids.shape}."
        )
    if len(class_ids) and not np.issubdtype(class_ids.dtype, np.integer):
        raise ValueError(f"y must hold integer class ids; its type is {class_ids.dtype}.")
    if len(class_ids) and (class_ids.min() < 0 or class_ids.max() >= n_classes):
        raise ValueError(
            f"y must hold class ids from 0 to {n_classes - 1} (n_classes is {n_classes}); "
            f"it has {class_ids.min()} to {class_ids.max()}."
        )
    return class_ids.astype(np.int64, copy=False)


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


def check_sum(a: ClassStatistics, b: ClassStatistics, count_bits: int) -> None:
    """Refuse statistics whose sum would overflow int64, over all entries or for a class or term."""
    check_total(
        sum(float(s.counts.sum(dtype=np.float64)) * 2.0**-s.count_bits for s in (a, b)), count_bits
    )
    if sum(float(s.centroid_sums.sum(dtype=np.float64)) for s in (a, b)) <= _LARGEST_SUM:
        return
    # Statistics may come without document frequencies, which say how many terms there are.
    n_terms = 1 + max(int(s.indices.max(initial=-1)) for s in (a, b))
    by_class, by_term = np.zeros(a.n_classes), np.zeros(n_terms)
    for s in (a, b):
        rows = np.repeat(np.arange(s.n_classes), np.diff(s.indptr))
        by_class += np.bincount(rows, s.centroid_sums, s.n_classes)
        by_term += np.bincount(s.indices, s.centroid_sums, n_terms)
    if max(by_class.max(), by_term.max(initial=0.0)) > _LARGEST_SUM:
        raise ValueError(
            f"a class or a term has too many documents, {a.n_documents + b.n_documents} in all, to "
            "be summed exactly. Split the class, or leave out the most frequent term."
        )


def find_impossible(statistics: ClassStatistics) -> NDArray[np.bool_]:
    """Return which classes have sums that no documents have.

    Below zero, or of a class without documents any sum at all.
    """
    with_sums: NDArray[np.bool_] = np.diff(statistics.indptr) > 0
    if statistics.embedding_sums is not None:
        with_sums |= statistics.embedding_sums.any(axis=1)
    sizes = statistics.class_sizes
    wrong: NDArray[np.bool_] = (sizes < 0) | (sizes == 0) & with_sums
    negative = np.flatnonzero((statistics.counts < 0) | (statistics.centroid_sums < 0))
    wrong[np.searchsorted(statistics.indptr, negative, side="right") - 1] = True
    return wrong
