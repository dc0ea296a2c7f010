"""Highest-scored classes of a document, found exactly through the approximate inverted index.

Scores of all classes are accumulated from the index as whole numbers of 16 bits, in a quantum that
each document has of its own, so that a vector register holds as many of them as possible. They are
wrong by at most an error bound that is known for each document; what it cannot rule out is the
shortlist, which is then scored exactly, class by class. Dense rows are added by loops of vector
instructions, many times faster than scattered postings.

The error bound sums up, in quanta: what float32 loses (`_ROUNDING`), half a level of each term
(1.01 levels, for both classes that are compared), and what rounding factors and sums to integers
loses over all levels of a term. docs/search-exactness.md derives it.

Where a model has very many classes, most have none of a document's rare terms. `shortlist_matching`
accumulates only those that have one, so its time does not grow with the number of classes.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import inlined, kernel, shift_right, subroutine
from longtail._kernels.sizes import BYTE_LEVELS, WORD_LEVELS
from longtail._kernels.sorting import nth_largest, sort_keys, sort_together

CHUNK = 64  # classes of which one maximum is kept
_MIDDLE = 32768.0  # an accumulator of 0 means a class passed over, so all are moved up
_MAX_FINE_TERMS = 8192  # of a document; with more, its quantum is made coarser
_CACHED_CLASSES = 4096  # whose accumulators, 8 kB, stay in the fastest cache
_ROUNDING = 2.0**-22  # relative error of a float32 operation, 2^-24, with a margin
_SMALLEST_QUANTUM = 1e-30  # float32 holds its inverse
_FRACTION_BITS = 32  # of what a posting adds, before it is rounded to whole quanta
_WHOLE = 2.0**_FRACTION_BITS
_HALF = np.int64(1 << (_FRACTION_BITS - 1))
_ROUNDED_UP = 4 * 0.5 * BYTE_LEVELS  # most that rounding the factors of four dense rows up adds


@subroutine
def choose_quantum(low, high, magnitude, n_terms):
    """Return the quantum of a document whose scores lie between `low` and `high`.

    The accumulators must fit 16 bits whatever is lost to rounding: half a quantum a posting term, 1
    in 128 of what dense rows add, and with very many terms at most as much again as the scores
    themselves. It also keeps what float32 loses, which grows with the magnitude of what is added,
    down to some quanta.
    """
    half_range = 32180.0 - 0.5 * n_terms if n_terms < _MAX_FINE_TERMS else 10000.0
    quantum = max((high - low) / (2.0 * half_range), _ROUNDING * (n_terms + 8) * magnitude / 16.0)
    return max(quantum, _SMALLEST_QUANTUM)


@inlined
def plan_document(vectors, row, index):
    """Return quantum, start of the accumulators in quanta, and the error bound before any term."""
    indptr, indices, weights, totals = vectors
    zero_points, scales, row_ids = index.zero_points, index.scales, index.dense_row_ids
    total, ranges = totals[row], index.ranges
    low = ranges[0] + min(total * ranges[2], total * ranges[3])
    high = ranges[1] + max(total * ranges[2], total * ranges[3])
    magnitude = max(abs(ranges[0]), abs(ranges[1]))
    magnitude += abs(total) * max(abs(ranges[2]), abs(ranges[3]))
    start, n_terms = 0.0, np.int64(0)  # a plain 0 would be compiled for itself
    for j in range(indptr[row], indptr[row + 1]):
        term, weight = indices[j], np.float64(weights[j])
        if weight == 0.0:
            continue
        n_terms += 1
        n_levels = WORD_LEVELS
        lowest = weight * zero_points[term]
        if row_ids[term] >= 0:
            n_levels = BYTE_LEVELS
            start += lowest
        highest = lowest + weight * n_levels * scales[term]
        low += lowest
        high += highest
        magnitude += max(-lowest, highest)
    quantum = choose_quantum(low, high, magnitude, n_terms)
    start = _MIDDLE + (start - 0.5 * (low + high)) / quantum
    return quantum, start, 4.0 + 2.0 * _ROUNDING * (n_terms + 8) * magnitude / quantum


@subroutine
def start_accumulators(biases, length_weights, per_quantum, total, start, accumulators):
    """Set each class's accumulator to what no single term decides, in quanta."""
    for c in range(len(accumulators)):
        accumulators[c] = np.uint16(
            np.int32(biases[c] * per_quantum + length_weights[c] * total + start)
        )


@subroutine
def start_even_accumulators(start, accumulators):
    """Do the same where biases and length weights are all 0, without reading them."""
    value = np.uint16(np.int32(start))
    for c in range(len(accumulators)):
        accumulators[c] = value


@subroutine
def add_postings(classes, quantized, base, factor, accumulators):
    """Add a term to the classes that have it, rounded to the nearest quantum.

    `base` and `factor` have a fraction of `_FRACTION_BITS`; half a quantum is part of `base`.
    """
    for p in range(len(classes)):
        c = np.uint64(classes[p])  # unsigned: no check for negative ids
        accumulators[c] += np.uint16((base + factor * np.int64(quantized[p])) >> _FRACTION_BITS)


@inlined
def add_terms(vectors, row, index, quantum, scratch):
    """Add the postings of a document's terms, and collect its dense rows.

    Returns the number of these, and what the postings add to the error bound.
    """
    indptr, indices, weights, _ = vectors
    zero_points, scales, row_ids = index.zero_points, index.scales, index.dense_row_ids
    starts, classes, quantized = index.indptr, index.classes, index.quantized
    row_starts, negated_levels = scratch.row_starts, scratch.negated_levels
    n_classes, accumulators = len(index.biases), scratch.accumulators
    error_bound = 0.0
    n_rows = np.int64(0)  # a plain 0 would have what it is passed to compiled twice
    for j in range(indptr[row], indptr[row + 1]):
        term, weight = indices[j], np.float64(weights[j])
        if weight == 0.0:
            continue
        level = weight * scales[term] / quantum
        if row_ids[term] >= 0:
            row_starts[n_rows] = row_ids[term] * n_classes
            negated_levels[n_rows] = -level
            n_rows += 1
            continue
        error_bound += 1.001 + 1.01 * level  # 65,536 levels lose 2^-16 to the factor's fraction
        entries = slice(starts[term], starts[term + 1])
        base = np.int64(np.floor(_WHOLE * (weight * zero_points[term] / quantum))) + _HALF
        factor = np.int64(np.floor(_WHOLE * level))
        add_postings(classes[entries], quantized[entries], base, factor, accumulators)
    return n_rows, error_bound


@subroutine
def round_factors(n, negated_levels, factors, shifts):
    """Turn what a level of each row adds, in quanta, into whole factors of four rows at a time.

    The factors of a group are as large as 16 bits allow; their sum is shifted right afterwards.
    Returns what the rows add to the error bound: a level of each, and what rounding changes.
    """
    error_bound = 0.0
    for group in range(0, n, 4):
        total, scale, shift = 0.0, 1.0, 0
        for i in range(group, min(group + 4, n)):
            total -= negated_levels[i] * BYTE_LEVELS
        while shift < 15 and 2.0 * scale * total + _ROUNDED_UP <= 65535.0:
            scale *= 2.0
            shift += 1
        half = 0.5 if shift > 0 else 0.0  # without a shift the products may fill all 16 bits
        shifts[group >> 2] = shift
        error_bound += 1.0
        for i in range(group, group + 4):
            factors[i] = 0
            if i < n:
                level = -negated_levels[i]
                factor = np.floor(level * scale + half)
                factors[i] = np.uint16(factor)
                error_bound += 1.01 * level + BYTE_LEVELS * abs(level - factor / scale)
    return error_bound


@subroutine
def add_two_rows(rows, factors, shift, accumulators):
    """Add two weighted dense rows; products and sums fit 16 bits by the choice of factors."""
    a, b = rows
    fa, fb = factors
    for i in range(len(accumulators)):
        total = np.uint16(fa * np.uint16(a[i]) + fb * np.uint16(b[i]))
        accumulators[i] += shift_right(total, shift)


@subroutine
def add_four_rows(rows, factors, shift, accumulators):
    """Add four of them."""
    a, b, c, d = rows
    fa, fb, fc, fd = factors
    for i in range(len(accumulators)):
        total = np.uint16(
            fa * np.uint16(a[i])
            + fb * np.uint16(b[i])
            + fc * np.uint16(c[i])
            + fd * np.uint16(d[i])
        )
        accumulators[i] += shift_right(total, shift)


@subroutine
def add_dense_rows(dense_rows, scratch, n, first, last):
    """Add the first n weighted dense rows, four at a time, to the accumulators of some classes.

    `row_starts` says where each row begins in `dense_rows`.
    """
    starts, factors, shifts = scratch.row_starts, scratch.factors, scratch.shifts
    accumulators = scratch.accumulators[first:last]
    for g in range(0, n, 4):
        a = dense_rows[starts[g] + first : starts[g] + last]
        b = dense_rows[starts[g + 1] + first : starts[g + 1] + last]
        shift = shifts[g >> 2]
        if n - g <= 2:
            add_two_rows((a, b), (factors[g], factors[g + 1]), shift, accumulators)
        else:
            c = dense_rows[starts[g + 2] + first : starts[g + 2] + last]
            d = dense_rows[starts[g + 3] + first : starts[g + 3] + last]
            four = factors[g], factors[g + 1], factors[g + 2], factors[g + 3]
            add_four_rows((a, b, c, d), four, shift, accumulators)


@inlined
def accumulate(vectors, row, index, scratch):
    """Fill the accumulators of all classes for a document; returns the error bound, in quanta."""
    n_classes, ranges = len(index.biases), index.ranges
    quantum, start, error_bound = plan_document(vectors, row, index)
    if ranges[0] == ranges[1] == ranges[2] == ranges[3] == 0.0:
        start_even_accumulators(np.float32(start), scratch.accumulators)
    else:
        start_accumulators(
            index.biases,
            index.length_weights,
            np.float32(1.0 / quantum),
            np.float32(vectors.totals[row] / quantum),
            np.float32(start),
            scratch.accumulators,
        )
    n_rows, postings_error = add_terms(vectors, row, index, quantum, scratch)
    # Largest levels first: rows of a group share a scale, and those of like size lose least.
    sort_together(scratch.negated_levels, scratch.row_starts, np.int64(0), n_rows)
    rows_error = round_factors(n_rows, scratch.negated_levels, scratch.factors, scratch.shifts)
    for g in range(n_rows, (n_rows + 3) & ~3):
        scratch.row_starts[g] = scratch.row_starts[0]  # its factor is zero
    for first in range(0, n_classes, _CACHED_CLASSES):
        last = min(first + _CACHED_CLASSES, n_classes)
        add_dense_rows(index.dense_rows, scratch, n_rows, first, last)
    return error_bound + postings_error + rows_error


@subroutine
def find_maxima(accumulators, maxima):
    """Fill the largest accumulator of each chunk of classes.

    The classes of a chunk lie as far apart as there are chunks: largest of all are then found for
    many chunks at once, by vector instructions.
    """
    n_chunks = len(maxima)
    for chunk in range(n_chunks):
        maxima[chunk] = 0
    for first in range(0, len(accumulators), n_chunks):
        one_of_each = accumulators[first : first + n_chunks]
        for chunk in range(len(one_of_each)):
            maxima[chunk] = max(maxima[chunk], one_of_each[chunk])


@subroutine
def lower(bound, error_bound):
    """Return the bound less the error bound; at least 1, for 0 is a class passed over."""
    return np.uint16(max(np.float64(bound) - np.ceil(error_bound), 1.0))


@subroutine
def shortlist_reaching(wanted, error_bound, scratch, shortlist):
    """List the classes at most `error_bound` below the wanted-th highest; returns how many.

    `shortlist` takes as many as it can hold. The maxima of chunks give a first threshold, below
    which whole chunks are skipped; what is left gives the threshold itself.
    """
    accumulators, maxima = scratch.accumulators, scratch.maxima
    keys, survivors = scratch.keys, scratch.survivors
    find_maxima(accumulators, maxima)
    threshold = np.uint16(1)
    if len(maxima) >= wanted:
        threshold = lower(nth_largest(maxima, len(maxima), wanted), error_bound)
    n_survivors = np.int64(0)
    for chunk in range(len(maxima)):
        if maxima[chunk] >= threshold:
            for c in range(chunk, len(accumulators), len(maxima)):
                if accumulators[c] >= threshold:
                    survivors[n_survivors] = c
                    keys[n_survivors] = accumulators[c]
                    n_survivors += 1
    if n_survivors > wanted:
        threshold = max(threshold, lower(nth_largest(keys, n_survivors, wanted), error_bound))
    n = 0
    for i in range(n_survivors):
        if accumulators[survivors[i]] >= threshold:
            if n < len(shortlist):
                shortlist[n] = survivors[i]
            n += 1
    sort_keys(shortlist, np.int64(0), min(n, len(shortlist)))  # as the others: compiled once
    return n


@subroutine
def shortlist_listed(class_ids, wanted, error_bound, scratch, shortlist):
    """Do the same among some classes, ascending, without reading the others."""
    accumulators, keys = scratch.accumulators, scratch.keys
    n_classes = len(class_ids)
    for p in range(n_classes):
        keys[p] = accumulators[class_ids[p]]
    threshold = np.uint16(1)
    if n_classes > wanted:
        threshold = lower(nth_largest(keys, n_classes, wanted), error_bound)
    n = 0
    for p in range(n_classes):
        if keys[p] >= threshold:
            if n < len(shortlist):
                shortlist[n] = class_ids[p]
            n += 1
    return n


@kernel
def shortlist_classes(vectors, queries, index, wanted, block, scratch, shortlist, whole):
    """List every class that may be among the `wanted` highest of each document, ascending.

    `shortlist.sizes` counts all of them, `shortlist.classes` takes as many as it can hold. `whole`
    is the same over all classes, whatever the subset of the document; it may have no rows.
    """
    label_indptr, label_ids = queries.label_indptr, queries.label_ids
    subset_indptr, subset_classes = queries.subset_indptr, queries.subset_classes
    tombstones, accumulators = index.tombstones, scratch.accumulators
    for i in range(block.first, block.last):
        error_bound = accumulate(vectors, queries.document_ids[i], index, scratch)
        for c in tombstones:
            accumulators[c] = 0
        for p in range(label_indptr[i], label_indptr[i + 1]):
            accumulators[label_ids[p]] = 0
        if len(whole.sizes) > 0:
            whole.sizes[i] = shortlist_reaching(wanted, error_bound, scratch, whole.classes[i])
        subset = queries.subset_ids[i]
        if subset >= 0:
            listed = subset_classes[subset_indptr[subset] : subset_indptr[subset + 1]]
            if queries.are_allowed[subset]:
                shortlist.sizes[i] = shortlist_listed(
                    listed, wanted, error_bound, scratch, shortlist.classes[i]
                )
                continue
            for c in listed:
                accumulators[c] = 0
        shortlist.sizes[i] = shortlist_reaching(wanted, error_bound, scratch, shortlist.classes[i])


@inlined
def accumulate_matching(vectors, row, index, scratch):
    """Fill the accumulators of the classes that have a term of a document; list them as survivors.

    Returns how many, and the error bound in quanta; -1 where a term is a dense row, which does not
    say which classes have it. Accumulators of other classes are 0, before and after.
    """
    indptr, indices, weights, _ = vectors
    zero_points, scales, starts = index.zero_points, index.scales, index.indptr
    biases, length_weights = index.biases, index.length_weights
    accumulators, matching = scratch.accumulators, scratch.survivors
    for j in range(indptr[row], indptr[row + 1]):
        if weights[j] != 0.0 and index.dense_row_ids[indices[j]] >= 0:
            return np.int64(-1), 0.0
    quantum, start, error_bound = plan_document(vectors, row, index)
    per_quantum = np.float32(1.0 / quantum)
    total, middle = np.float32(vectors.totals[row] / quantum), np.float32(start)
    n_matching = np.int64(0)
    for j in range(indptr[row], indptr[row + 1]):
        term, weight = indices[j], np.float64(weights[j])
        if weight == 0.0:
            continue
        level = weight * scales[term] / quantum
        error_bound += 1.001 + 1.01 * level
        base = np.int64(np.floor(_WHOLE * (weight * zero_points[term] / quantum))) + _HALF
        factor = np.int64(np.floor(_WHOLE * level))
        for p in range(starts[term], starts[term + 1]):
            c = np.uint64(index.classes[p])
            if accumulators[c] == 0:
                accumulators[c] = np.uint16(
                    np.int32(biases[c] * per_quantum + length_weights[c] * total + middle)
                )
                matching[n_matching] = c
                n_matching += 1
            added = (base + factor * np.int64(index.quantized[p])) >> _FRACTION_BITS
            accumulators[c] += np.uint16(added)
    return n_matching, error_bound


@subroutine
def shortlist_from_matching(n_matching, wanted, error_bound, scratch, shortlist):
    """List the matching classes at most `error_bound` below the wanted-th highest; clear them."""
    accumulators, keys, matching = scratch.accumulators, scratch.keys, scratch.survivors
    for p in range(n_matching):
        keys[p] = accumulators[matching[p]]
    threshold = np.uint16(1)
    if n_matching > wanted:
        threshold = lower(nth_largest(keys, n_matching, wanted), error_bound)
    n = 0
    for p in range(n_matching):
        if accumulators[matching[p]] >= threshold:
            if n < len(shortlist):
                shortlist[n] = matching[p]
            n += 1
        accumulators[matching[p]] = 0
    sort_keys(shortlist, np.int64(0), min(n, len(shortlist)))
    return n


@kernel
def shortlist_matching(vectors, queries, index, wanted, block, scratch, shortlist):
    """List as `shortlist_classes` does; where told, only classes that have a term of the document.

    All accumulators are 0 at the beginning.
    """
    label_indptr, label_ids = queries.label_indptr, queries.label_ids
    accumulators = scratch.accumulators
    for i in range(block.first, block.last):
        row, n_matching, error_bound = queries.document_ids[i], np.int64(-1), 0.0
        if queries.matching_only[i]:
            n_matching, error_bound = accumulate_matching(vectors, row, index, scratch)
        if n_matching < 0:
            error_bound = accumulate(vectors, row, index, scratch)
        for c in index.tombstones:
            accumulators[c] = 0
        for p in range(label_indptr[i], label_indptr[i + 1]):
            accumulators[label_ids[p]] = 0
        listed = shortlist.classes[i]
        if n_matching < 0:
            shortlist.sizes[i] = shortlist_reaching(wanted, error_bound, scratch, listed)
            for c in range(len(accumulators)):
                accumulators[c] = 0
        else:
            shortlist.sizes[i] = shortlist_from_matching(
                n_matching, wanted, error_bound, scratch, listed
            )
