"""What changes need of class statistics: sums of a few documents, differences, new terms.

In: `ClassStatistics`, or documents. Out: new `ClassStatistics`, exact sums again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail.model.statistics import ClassStatistics, combine, with_count_bits
from longtail.sparse import (
    CountMatrix,
    Floats,
    Integers,
    append_constant,
    gather_rows,
    index_dtype,
)


def subtract_any(a: ClassStatistics, b: ClassStatistics) -> ClassStatistics:
    """Return a - b, be it negative: of what is there and what is not, taken together later."""
    return combine(a, b, -1)


class DocumentSums(NamedTuple):
    """Sums of some documents; nothing in it has the length of the vocabulary."""

    statistics: ClassStatistics  # of each class, without document frequencies
    terms: Integers  # of the documents, ascending
    frequencies: Integers  # in how many of the documents each of these is
    n_occurrences: float  # sum of all counts


def sum_compactly(
    counts: CountMatrix,
    class_ids: Integers,
    n_classes: int,
    *,
    sublinear: bool,
    weights: Floats | None = None,
) -> DocumentSums:
    """Sum the documents of each class, at a cost of their own terms."""
    terms, entries = np.unique(counts.indices, return_inverse=True)
    indices = entries.astype(counts.indices.dtype)
    compact = replace(counts, indices=indices, n_terms=len(terms))
    labels = LabelSets.single(class_ids, np.arange(n_classes), weights)
    sums = ClassStatistics.from_counts(compact, labels, n_classes, sublinear=sublinear)
    total = counts.data.sum(dtype=np.float64) if weights is None else sums.class_lengths.sum()
    return DocumentSums(
        without_frequencies(replace(sums, indices=terms[sums.indices])),
        terms.astype(np.int64),
        sums.document_frequencies,
        float(total),
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


def with_frequencies(
    statistics: ClassStatistics, document_frequencies: Integers
) -> ClassStatistics:
    """Return the same sums with other document frequencies."""
    return replace(statistics, document_frequencies=document_frequencies)


def without_frequencies(statistics: ClassStatistics) -> ClassStatistics:
    """Return the same sums without document frequencies, which have the vocabulary's length."""
    return with_frequencies(statistics, np.zeros(0, np.int64))


def grow_terms(statistics: ClassStatistics, n_terms: int) -> ClassStatistics:
    """Make room for terms that no document has."""
    n_new = n_terms - statistics.n_terms
    return replace(
        statistics,
        indices=statistics.indices.astype(index_dtype(n_terms), copy=False),
        document_frequencies=append_constant(statistics.document_frequencies, n_new),
        known={"class_frequencies": append_constant(statistics.class_frequencies, n_new)},
    )
