"""Checks of class statistics: class ids, sums that fit.

In: what statistics are made of. Out: nothing, or an error
that says what does not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from longtail.sparse import Integers

if TYPE_CHECKING:
    from longtail.statistics.classes import ClassStatistics

_LARGEST_SUM = 2.0**62  # half of what int64 holds: these sums are compared in float64


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


def empty_classes_have_no_terms(statistics: ClassStatistics) -> bool:
    """Tell whether a class without documents has no entries."""
    return not np.any((statistics.class_sizes == 0) & (np.diff(statistics.indptr) > 0))
