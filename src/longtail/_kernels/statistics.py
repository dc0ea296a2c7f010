"""Sums of the documents of each class, in integers, and their addition row by row.

Matrices are CSR with sorted, distinct indices in each row. Fixed-point numbers are int64 multiples
of 2^-bits.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.elementary import log
from longtail._kernels.jit import kernel, subroutine
from longtail._kernels.sorting import sort_keys


@subroutine
def term_frequency(count, sublinear):
    """Return the count, or 1 + ln of a count above one (below, that would turn negative)."""
    count = np.float64(count)  # the logarithm of a float32 would be one
    if sublinear and count > 1.0:
        return 1.0 + log(count)
    return count


@subroutine
def fixed_point_scale(data, start, stop, sublinear, centroid_scale):
    """Return what turns a term frequency of a document into its fixed-point share of a sum."""
    squares = 0.0
    for j in range(start, stop):
        frequency = term_frequency(data[j], sublinear)
        squares += frequency * frequency
    return centroid_scale / math.sqrt(squares) if squares > 0.0 else 0.0


@subroutine
def weigh(amount, sample_weight):
    """Return a fixed-point amount as often as a document counts; a fraction of it is rounded.

    Whole weights give what as many documents add up to.
    """
    if sample_weight == 1.0:
        return amount
    whole = math.floor(sample_weight)
    rest = np.int64(np.rint((sample_weight - whole) * amount))
    return np.int64(whole) * amount + rest


@kernel
def count_class_terms(members, indptr, indices, block, last_seen, sizes):
    """Fill `sizes` with the number of distinct terms of each class of the block.

    `last_seen` (n_terms,) is scratch, all -1.
    """
    for c in range(block.first, block.last):
        size = np.int64(0)
        for i in range(members.starts[c], members.starts[c + 1]):
            document = members.document_ids[i]
            for j in range(indptr[document], indptr[document + 1]):
                term = indices[j]
                if last_seen[term] != c:
                    last_seen[term] = c
                    size += 1
        sizes[c] = size


@kernel
def fill_class_sums(members, counts, fixed_point, block, scratch, classes):
    """Fill the classes of the block: terms, counts and centroid sums; `classes.indptr` is given.

    Each document is rounded to the fixed-point unit by itself, so the sums are exact in any order.
    """
    for c in range(block.first, block.last):
        size = np.int64(0)
        start = classes.indptr[c]
        for i in range(members.starts[c], members.starts[c + 1]):
            document = members.document_ids[i]
            sample_weight = members.sample_weights[i] if len(members.sample_weights) else 1.0
            begin, end = counts.indptr[document], counts.indptr[document + 1]
            scale = fixed_point_scale(
                counts.data, begin, end, fixed_point.sublinear, fixed_point.centroid_scale
            )
            for j in range(begin, end):
                term = counts.indices[j]
                if not scratch.seen[term]:
                    scratch.seen[term] = True
                    classes.indices[start + size] = term
                    size += 1
                frequency = term_frequency(counts.data[j], fixed_point.sublinear)
                count = np.int64(np.rint(counts.data[j] * fixed_point.count_scale))
                scratch.counts[term] += weigh(count, sample_weight)
                share = np.int64(np.rint(frequency * scale))
                scratch.centroid_sums[term] += weigh(share, sample_weight)
        sort_keys(classes.indices, start, start + size)
        for j in range(start, start + size):
            term = classes.indices[j]
            classes.counts[j] = scratch.counts[term]
            classes.centroid_sums[j] = scratch.centroid_sums[term]
            scratch.counts[term] = 0
            scratch.centroid_sums[term] = 0
            scratch.seen[term] = False


@kernel
def add_rows(a, b, factor, merged):
    """Merge a + factor * b row by row without entries that vanish; return the number of entries.

    The output is allocated for all entries of a and b; its `indptr` is filled as well.
    """
    size = 0
    merged.indptr[0] = 0
    for row in range(len(a.indptr) - 1):
        i, i_end = a.indptr[row], a.indptr[row + 1]
        j, j_end = b.indptr[row], b.indptr[row + 1]
        while i < i_end or j < j_end:
            count, total = np.int64(0), np.int64(0)
            in_a = i < i_end and (j >= j_end or a.indices[i] <= b.indices[j])
            in_b = j < j_end and (i >= i_end or b.indices[j] <= a.indices[i])
            if in_a:
                merged.indices[size] = a.indices[i]
                count += a.counts[i]
                total += a.centroid_sums[i]
                i += 1
            if in_b:
                merged.indices[size] = b.indices[j]
                count += factor * b.counts[j]
                total += factor * b.centroid_sums[j]
                j += 1
            if count != 0 or total != 0:
                merged.counts[size] = count
                merged.centroid_sums[size] = total
                size += 1
        merged.indptr[row + 1] = size
    return size


@kernel
def norm_of_classes(indptr, indices, centroid_sums, idf, norms):
    """Fill `norms` with the length of each class's centroid sum, each term weighted by its idf."""
    for c in range(len(indptr) - 1):
        squares = 0.0
        for j in range(indptr[c], indptr[c + 1]):
            weight = centroid_sums[j] * idf[indices[j]]
            squares += weight * weight
        norms[c] = math.sqrt(squares)
