"""Exact highest-scored classes of a document, found through an approximate term-major index.

A term that few classes have is a list of postings (`classes, values`). A term that many have is a
row with one byte for each class: adding such a row is a loop of vector instructions, many times
faster than scattered postings. The sums are approximate, by at most an error that is known for each
document; what cannot be ruled out is scored exactly, class by class.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.features import document_norm, find_term
from longtail._kernels.jit import kernel
from longtail._kernels.sorting import nth_largest, sort_keys
from longtail._kernels.statistics import term_frequency

LEVELS = 127  # of a byte; the products of four rows with their weights then fit 16 bits
_LARGEST = 65535.0 - 2.0 * LEVELS  # what they may sum up to before the weights are rounded
_BLOCK = 2048  # classes whose sums stay in the fastest cache
_CHUNK = 64  # classes compared with the lowest rank at once; this loop becomes vector instructions
_ROUNDING = 2.0**-22  # relative error of a float32 operation, with room to spare
_SMALLEST = 1e-35  # absolute error where numbers are too small for float32
_LANES = 256  # groups of classes whose maxima give a first bound


@kernel
def comes_before(score, c, other_score, other):
    """Tell whether a class ranks before another: higher score, then lower class number."""
    return score > other_score or (score == other_score and c < other)


@kernel
def keep_best(score, c, size, scores, classes):
    """Insert a class into a ranking of `size` entries, best first; returns the new size.

    The arrays hold as many as are wanted; what falls off the end is lost. Insertion is quick
    because rankings are short and most classes fall short of the last entry at once.
    """
    wanted = len(scores)
    if size == wanted:
        if not comes_before(score, c, scores[wanted - 1], classes[wanted - 1]):
            return size
        position = wanted - 1
    else:
        position = size
        size += 1
    while position > 0 and comes_before(score, c, scores[position - 1], classes[position - 1]):
        scores[position] = scores[position - 1]
        classes[position] = classes[position - 1]
        position -= 1
    scores[position] = score
    classes[position] = c
    return size


@kernel
def weigh_for_cosine(indptr, indices, data, sublinear, idf, first, last, weights):
    """Fill the term frequencies of rows `first` to `last - 1`, divided by the row's length."""
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        norm = document_norm(indices, data, start, stop, idf, sublinear)
        for j in range(start, stop):
            weights[j] = term_frequency(data[j], sublinear) / norm


@kernel
def keep_rarest_terms(
    indptr,
    indices,
    data,
    weights,
    documents,
    counts,
    most,
    kept_indptr,
    kept_indices,
    kept_data,
    kept_weights,
    totals,
):
    """Copy each document's rarest terms, as many as have together no more than `most` postings."""
    size = 0
    for i in range(len(documents)):
        start, stop = indptr[documents[i]], indptr[documents[i] + 1]
        length, left = stop - start, most
        keys, kept = np.empty(length, np.int64), np.zeros(length, np.bool_)
        for j in range(length):
            keys[j] = counts[indices[start + j]] * length + j  # ties in the order of terms
        sort_keys(keys, length)
        for n in range(length):
            if n > 0 and keys[n] // length > left:
                break
            left -= keys[n] // length
            kept[keys[n] % length] = True
        totals[i] = 0.0
        for j in range(length):
            if kept[j]:
                kept_indices[size], kept_data[size] = indices[start + j], data[start + j]
                kept_weights[size] = weights[start + j]
                totals[i] += weights[start + j]
                size += 1
        kept_indptr[i + 1] = size


@kernel
def find_extremes(class_indptr, class_indices, values, first, last, lows, highs):
    """Widen each term's range, of the terms `first` to `last - 1`, to all of its values."""
    for c in range(len(class_indptr) - 1):
        stop = class_indptr[c + 1]
        for p in range(find_term(class_indices, class_indptr[c], stop, first), stop):
            term = class_indices[p]
            if term >= last:
                break
            lows[term] = min(lows[term], values[p])
            highs[term] = max(highs[term], values[p])


@kernel
def fill_index(
    class_indptr,
    class_indices,
    values,
    rows,
    lows,
    steps,
    index_indptr,
    first,
    last,
    index_classes,
    index_values,
    bytes_,
):
    """Fill the postings or the row of the terms `first` to `last - 1`; `rows` is -1 for postings.

    A byte stands for `lows[term] + byte * steps[term]`, and a class without the term for 0.
    """
    place = index_indptr[first:last].copy()
    for term in range(first, last):
        if rows[term] >= 0 and steps[term] > 0.0:
            bytes_[rows[term], :] = np.uint8(np.rint(-lows[term] / steps[term]))
    for c in range(len(class_indptr) - 1):
        stop = class_indptr[c + 1]
        for p in range(find_term(class_indices, class_indptr[c], stop, first), stop):
            term = class_indices[p]
            if term >= last:
                break
            if rows[term] < 0:
                index_classes[place[term - first]] = c
                index_values[place[term - first]] = values[p]
                place[term - first] += 1
            elif steps[term] > 0.0:
                bytes_[rows[term], c] = np.uint8(np.rint((values[p] - lows[term]) / steps[term]))


@kernel
def sort_by_reach(n, reach, rows):
    """Sort the first n rows by what they can add, largest first: groups of like size lose least."""
    for i in range(1, n):
        r, row, j = reach[i], rows[i], i
        while j > 0 and reach[j - 1] < r:
            reach[j], rows[j] = reach[j - 1], rows[j - 1]
            j -= 1
        reach[j], rows[j] = r, row


@kernel
def round_weights(n, reach, factors, units):
    """Turn what a level of each row adds into whole factors of a unit for each four rows.

    Returns the error of the sum: half a level of each row, and what rounding its factor loses.
    """
    error = 0.0
    for group in range(0, n, 4):
        total = 0.0
        for i in range(group, min(group + 4, n)):
            total += reach[i]
        unit = total * LEVELS / _LARGEST
        units[group >> 2] = unit
        for i in range(group, group + 4):
            factors[i] = 0
            if i < n and unit > 0.0:
                factor = np.floor(reach[i] / unit + 0.5)
                factors[i] = np.uint16(factor)
                error += 0.5 * reach[i] + LEVELS * abs(reach[i] - factor * unit)
    return error


@kernel
def add_rows(bytes_, rows, factors, units, n, begin, end, sums):
    """Add the first n weighted rows of bytes, four at a time, to the sums of some classes."""
    for g in range(0, n, 4):
        a, b = bytes_[rows[g], begin:end], bytes_[rows[g + 1], begin:end]
        if n - g <= 2:
            add_two_rows(a, b, factors[g : g + 2], np.float32(units[g >> 2]), sums)
        else:
            c, d = bytes_[rows[g + 2], begin:end], bytes_[rows[g + 3], begin:end]
            add_four_rows(a, b, c, d, factors[g : g + 4], np.float32(units[g >> 2]), sums)


@kernel
def add_two_rows(a, b, factors, unit, sums):
    """Add two weighted rows of bytes; 16-bit products, which fit by the choice of the factors."""
    fa, fb = factors[0], factors[1]
    for i in range(len(sums)):
        sums[i] += unit * np.float32(np.uint16(fa * np.uint16(a[i]) + fb * np.uint16(b[i])))


@kernel
def add_four_rows(a, b, c, d, factors, unit, sums):
    """Add four of them."""
    fa, fb, fc, fd = factors[0], factors[1], factors[2], factors[3]
    for i in range(len(sums)):
        total = (
            fa * np.uint16(a[i])
            + fb * np.uint16(b[i])
            + fc * np.uint16(c[i])
            + fd * np.uint16(d[i])
        )
        sums[i] += unit * np.float32(np.uint16(total))


@kernel
def add_line(constants, slopes, total, shift, sums):
    """Add to each class what no single term decides."""
    for c in range(len(sums)):
        sums[c] += constants[c] + total * slopes[c] + shift


@kernel
def as_key(bits):
    """Map the bits of a float32 to an integer of the same order, and back again."""
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@kernel
def find_bound(sums, lanes, wanted):
    """Return a sum that at least `wanted` classes reach.

    Each lane takes the largest of every `len(lanes)`-th sum, so lanes are sums of different
    classes. Integers are compared: largest floats do not become vector instructions.
    """
    n_lanes = len(lanes)
    lanes[:] = np.iinfo(np.int32).min
    bits = sums.view(np.int32)
    for start in range(0, len(bits), n_lanes):
        part = bits[start : start + n_lanes]
        for i in range(len(part)):
            key = as_key(part[i])
            lanes[i] = key if key > lanes[i] else lanes[i]
    bound = np.empty(1, np.int32)
    bound[0] = as_key(nth_largest(lanes, wanted))
    return bound.view(np.float32)[0]


@kernel
def note_reaching(sums, cut, noted):
    """Note the classes whose sum reaches the cut, as far as there is room; returns how many."""
    n = 0
    for low in range(0, len(sums), _CHUNK):
        high, hit = min(low + _CHUNK, len(sums)), False
        for c in range(low, high):
            hit |= sums[c] >= cut
        if not hit:
            continue
        for c in range(low, high):
            if sums[c] >= cut and sums[c] > -np.inf:
                if n < len(noted):
                    noted[n] = c
                n += 1
    return n


@kernel
def note_classes(
    indptr,
    indices,
    weights,
    totals,
    documents,
    own,
    index_indptr,
    index_classes,
    index_values,
    index_rows,
    lows,
    steps,
    peaks,
    bytes_,
    slopes,
    constants,
    largest_slope,
    largest_constant,
    wanted,
    first,
    last,
    noted,
    n_noted,
):
    """Note every class that may be among the `wanted` highest of each document, ascending.

    A class's sum is wrong by at most the error, so the wanted highest are among those whose sum is
    at most twice the error below the wanted-th highest sum. `n_noted` counts all of them, `noted`
    takes as many as it can hold.
    """
    n_classes = len(constants)
    sums = np.zeros(n_classes, np.float32)
    lanes = np.empty(min(n_classes, max(_LANES, 8 * wanted)), np.int32)
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[documents[i] + 1] - indptr[documents[i]])
    rows, reach = np.zeros(longest + 4, np.int64), np.empty(longest + 4)
    factors, units = np.zeros(longest + 4, np.uint16), np.empty(longest + 4)
    for i in range(first, last):
        start, stop = indptr[documents[i]], indptr[documents[i] + 1]
        total = totals[documents[i]]
        n_rows, shift = 0, 0.0
        magnitude = largest_constant + abs(total) * largest_slope
        for j in range(start, stop):
            term = indices[j]
            weight = np.float64(weights[j])
            magnitude += weight * peaks[term]
            if index_rows[term] >= 0:
                rows[n_rows], reach[n_rows] = index_rows[term], weight * steps[term]
                shift += weight * lows[term]
                n_rows += 1
                continue
            light = np.float32(weight)
            for p in range(index_indptr[term], index_indptr[term + 1]):
                sums[index_classes[p]] += light * index_values[p]
        sort_by_reach(n_rows, reach, rows)
        error = round_weights(n_rows, reach, factors, units)
        error += _ROUNDING * (stop - start + 8) * magnitude + _SMALLEST
        for g in range(n_rows, (n_rows + 3) & ~3):
            rows[g] = rows[0]  # its factor is zero
        for begin in range(0, n_classes, _BLOCK):
            end = min(begin + _BLOCK, n_classes)
            block = sums[begin:end]
            add_line(
                constants[begin:end], slopes[begin:end], np.float32(total), np.float32(shift), block
            )
            add_rows(bytes_, rows, factors, units, n_rows, begin, end, block)
        if own[i] >= 0:
            sums[own[i]] = -np.inf
        cut = find_bound(sums, lanes, wanted) - 2.0 * error
        n_noted[i] = note_reaching(sums, np.float32(cut), noted[i])
        sums[:] = 0.0


@kernel
def rank_pairs(classes, scores, first, last, best, best_scores):
    """Fill the best classes of each row, best first; -1 is no class."""
    for i in range(first, last):
        size = 0
        for column in range(classes.shape[1]):
            if classes[i, column] >= 0:
                size = keep_best(
                    scores[i, column], classes[i, column], size, best_scores[i], best[i]
                )
