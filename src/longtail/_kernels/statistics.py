"""Sums of the documents of each class, in integers, and their addition row by row.

`order` lists the documents class by class and `starts` where each class begins in it. Matrices are
CSR parts with sorted, distinct indices in each row. Fixed-point numbers are int64 counts of a unit
2^-bits.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel, part
from longtail._kernels.sorting import sort_keys


@part
def term_frequency(count, sublinear):
    """Return the count, or 1 + ln of a count above one (below, that would turn negative)."""
    count = np.float64(count)  # the logarithm of a float32 would be one
    if sublinear and count > 1.0:
        return 1.0 + math.log(count)
    return count


@kernel
def count_class_terms(order, starts, indptr, indices, first, last, last_seen, sizes):
    """Fill `sizes[first:last]` with the number of distinct terms of each class.

    `last_seen` (n_terms,) is scratch, all -1.
    """
    for c in range(first, last):
        size = np.int64(0)
        for position in range(starts[c], starts[c + 1]):
            document = order[position]
            for j in range(indptr[document], indptr[document + 1]):
                term = indices[j]
                if last_seen[term] != c:
                    last_seen[term] = c
                    size += 1
        sizes[c] = size


@kernel
def fill_class_sums(
    order,
    starts,
    indptr,
    indices,
    data,
    sublinear,
    count_unit,
    centroid_unit,
    first,
    last,
    class_indptr,
    count_sum,
    centroid_sum,
    seen,
    class_indices,
    counts,
    centroid_sums,
):
    """Fill rows `first` to `last - 1` of the class matrix: terms, counts and centroid sums.

    Each document is rounded to the fixed-point unit by itself, so the sums are exact in any order.
    `count_sum`, `centroid_sum` and `seen` (n_terms,) are scratch, all 0.
    """
    for c in range(first, last):
        size = np.int64(0)
        start = class_indptr[c]
        for position in range(starts[c], starts[c + 1]):
            document = order[position]
            squares = 0.0
            for j in range(indptr[document], indptr[document + 1]):
                frequency = term_frequency(data[j], sublinear)
                squares += frequency * frequency
            scale = centroid_unit / math.sqrt(squares) if squares > 0.0 else 0.0
            for j in range(indptr[document], indptr[document + 1]):
                term = indices[j]
                if not seen[term]:
                    seen[term] = True
                    class_indices[start + size] = term
                    size += 1
                count_sum[term] += np.int64(np.rint(data[j] * count_unit))
                centroid_sum[term] += np.int64(np.rint(term_frequency(data[j], sublinear) * scale))
        sort_keys(class_indices[start : start + size], size)
        for j in range(start, start + size):
            term = class_indices[j]
            counts[j] = count_sum[term]
            centroid_sums[j] = centroid_sum[term]
            count_sum[term] = 0
            centroid_sum[term] = 0
            seen[term] = False


@kernel
def add_rows(
    a_indptr,
    a_indices,
    a_counts,
    a_sums,
    b_indptr,
    b_indices,
    b_counts,
    b_sums,
    sign,
    indptr,
    indices,
    counts,
    sums,
):
    """Merge a + sign * b row by row without entries that vanish; return the number of entries.

    Outputs are allocated for all entries of a and b; `indptr` is filled as well.
    """
    size = 0
    indptr[0] = 0
    for row in range(len(a_indptr) - 1):
        i, i_end = a_indptr[row], a_indptr[row + 1]
        j, j_end = b_indptr[row], b_indptr[row + 1]
        while i < i_end or j < j_end:
            count, total = np.int64(0), np.int64(0)
            take_a = i < i_end and (j >= j_end or a_indices[i] <= b_indices[j])
            take_b = j < j_end and (i >= i_end or b_indices[j] <= a_indices[i])
            if take_a:
                indices[size] = a_indices[i]
                count += a_counts[i]
                total += a_sums[i]
                i += 1
            if take_b:
                indices[size] = b_indices[j]
                count += sign * b_counts[j]
                total += sign * b_sums[j]
                j += 1
            if count != 0 or total != 0:
                counts[size] = count
                sums[size] = total
                size += 1
        indptr[row + 1] = size
    return size


@kernel
def sum_by_term(indices, counts, totals):
    """Add each entry's count to the total of its term."""
    for j in range(len(indices)):
        totals[indices[j]] += counts[j]


@kernel
def sum_by_class(indptr, counts, totals):
    """Fill `totals` with the sum of the counts of each class."""
    for c in range(len(indptr) - 1):
        total = np.int64(0)
        for j in range(indptr[c], indptr[c + 1]):
            total += counts[j]
        totals[c] = total


@kernel
def norm_of_classes(indptr, indices, centroid_sums, idf, norms):
    """Fill `norms` with the length of each class's centroid sum, each term weighted by its idf."""
    for c in range(len(indptr) - 1):
        squares = 0.0
        for j in range(indptr[c], indptr[c + 1]):
            weight = centroid_sums[j] * idf[indices[j]]
            squares += weight * weight
        norms[c] = math.sqrt(squares)
