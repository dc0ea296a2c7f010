"""Editing class statistics: classes moved, gathered, merged or left out; terms added.

In: `ClassStatistics` and what to do with their rows. Out: new `ClassStatistics`, exact sums again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import (
    Integers,
    append_constant,
    index_dtype,
    offsets_from_lengths,
    splice_rows,
)
from longtail.statistics.classes import ClassStatistics, with_count_bits


def scatter_classes(
    statistics: ClassStatistics, positions: Integers, n_classes: int
) -> ClassStatistics:
    """Move class c to row `positions[c]` of `n_classes`; rows in between have no documents."""
    sources = np.full(n_classes, -1)
    sources[positions] = np.arange(len(positions))
    return statistics.gather(sources)


def splice_classes(
    first: ClassStatistics, second: ClassStatistics, *sources: Integers
) -> ClassStatistics:
    """Return classes of either statistics; the document frequencies are those of the second."""
    bits = max(first.count_bits, second.count_bits)
    return splice_rows([with_count_bits(first, bits), with_count_bits(second, bits)], *sources)


def remove_class(statistics: ClassStatistics, class_id: int) -> ClassStatistics:
    """Leave a class out; how many of its documents had a term is not known.

    So the document frequencies stay, but never exceed the number of documents left.
    """
    rest = statistics.gather(np.delete(np.arange(statistics.n_classes), class_id))
    return with_frequencies(rest, np.minimum(statistics.document_frequencies, rest.n_documents))


def merge_classes(statistics: ClassStatistics, source: int, into: int) -> ClassStatistics:
    """Add one class's sums to another's and leave the first out; exact."""
    others = statistics.gather(np.delete(np.arange(statistics.n_classes), source))
    sources = np.full(statistics.n_classes - 1, -1)
    sources[into - (source < into)] = source
    moved = statistics.gather(sources)
    return others + with_frequencies(moved, np.zeros_like(statistics.document_frequencies))


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


def drop_empty_classes(
    statistics: ClassStatistics, named: NDArray[np.bool_] | None = None
) -> ClassStatistics:
    """Leave out the classes without documents, unless they are named; the order stays."""
    keep = statistics.class_sizes > 0
    if named is not None:
        keep |= named
    sizes = np.diff(statistics.indptr)[keep]
    return replace(
        statistics, indptr=offsets_from_lengths(sizes), class_sizes=statistics.class_sizes[keep]
    )


def find_classes_with(statistics: ClassStatistics, terms: Integers) -> Integers:
    """Return the classes that have one of some terms, ascending."""
    if not len(terms):
        return np.zeros(0, np.int64)
    is_one = np.zeros(max(int(statistics.indices.max(initial=0)), int(terms.max())) + 1, np.bool_)
    is_one[terms] = True
    entries = np.flatnonzero(is_one[statistics.indices])
    return np.unique(np.searchsorted(statistics.indptr, entries, side="right") - 1)
