"""Exact highest-scored classes of a document, found through an approximate term-major index.

A term that few classes have is a list of postings (`classes, words`). A term that many have is a
row with one byte for each class: adding such a row is a loop of vector instructions, many times
faster than scattered postings. Sums are whole numbers of 16 bits, in a unit that each document has
of its own, so that a vector holds as many of them as possible. They are wrong by at most a width
that is known for each document; what cannot be ruled out is scored exactly, class by class.

A byte stands for `low + byte * step`, a word (of a posting) likewise, and a class that lacks the
term for 0; `low` and `step` are the term's.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, part, shift_right
from longtail._kernels.paper import document_norm, find_term
from longtail._kernels.sorting import nth_largest, sort_keys
from longtail._kernels.statistics import term_frequency

BYTE_LEVELS = 127  # the products of four bytes with their factors then fit 16 bits
WORD_LEVELS = 65535
_MIDDLE = 32768.0  # a sum of 0 would mean a class that is passed over, so all are moved up
_MOST_TERMS = 8192  # of a document; with more, its unit is made coarser
_BLOCK = 4096  # classes whose sums stay in the fastest cache
CHUNK = 64  # classes of which one maximum is kept
_ROUNDING = 2.0**-22  # relative error of a float32 operation, with room to spare
_SMALLEST = 1e-30  # unit below which float32 could not hold its inverse


@part
def comes_before(score, c, other_score, other):
    """Tell whether a class ranks before another: higher score, then lower class number."""
    return score > other_score or (score == other_score and c < other)


@part
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
def weight_for_cosine(indptr, indices, data, sublinear, idf, first, last, weights):
    """Fill the term frequencies of rows `first` to `last - 1`, divided by the row's length."""
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        norm = document_norm(indices, data, start, stop, idf, sublinear)
        for j in range(start, stop):
            weights[j] = term_frequency(data[j], sublinear) / norm


@kernel
def prune_queries(indptr, indices, weights, documents, counts, most, keys, few_weights, few_totals):
    """Copy the weights of each document's rarest terms, 0 for the others; and their sums.

    Kept are as many as have together no more than `most` postings. `keys` is scratch for the
    longest document.
    """
    for row in documents:
        start = indptr[row]
        length = indptr[row + 1] - start
        for j in range(length):
            keys[j] = (np.int64(counts[indices[start + j]]) << 32) + j  # ties in the order of terms
        sort_keys(keys, length)
        left, last_kept = most, np.int64(-1)
        for n in range(length):
            count = keys[n] >> 32
            if n > 0 and count > left:
                break
            left -= count
            last_kept = keys[n]
        few_totals[row] = 0.0
        for j in range(length):
            few_weights[start + j] = 0.0
            if (np.int64(counts[indices[start + j]]) << 32) + j <= last_kept:
                few_weights[start + j] = weights[start + j]
                few_totals[row] += weights[start + j]


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
    first,
    last,
    place,
    index_classes,
    index_words,
    bytes_,
):
    """Fill postings or row of the terms `first` to `last - 1`; `rows` is -1 for postings.

    `place` says where each term's postings begin, and afterwards where they end.
    """
    n_classes = len(class_indptr) - 1
    for term in range(first, last):
        if rows[term] >= 0 and steps[term] > 0.0:
            nothing = np.uint8(np.rint(-lows[term] / steps[term]))
            for c in range(n_classes):
                bytes_[rows[term], c] = nothing
    for c in range(n_classes):
        stop = class_indptr[c + 1]
        for p in range(find_term(class_indices, class_indptr[c], stop, first), stop):
            term = class_indices[p]
            if term >= last:
                break
            level = 0.0
            if steps[term] > 0.0:
                level = np.rint((np.float64(values[p]) - lows[term]) / steps[term])
            if rows[term] < 0:
                index_classes[place[term]] = c
                index_words[place[term]] = np.uint16(min(level, np.float64(WORD_LEVELS)))
                place[term] += 1
            else:
                bytes_[rows[term], c] = np.uint8(min(level, np.float64(BYTE_LEVELS)))


@part
def sort_by_reach(n, reach, starts):
    """Sort the first n rows by what they can add, largest first: groups of like size lose least."""
    for i in range(1, n):
        r, start, j = reach[i], starts[i], i
        while j > 0 and reach[j - 1] < r:
            reach[j], starts[j] = reach[j - 1], starts[j - 1]
            j -= 1
        reach[j], starts[j] = r, start


@part
def choose_unit(low, high, magnitude, n_terms):
    """Return the unit of a document whose sums lie between `low` and `high`.

    The sums must fit 16 bits whatever is lost to rounding: at most one unit a term, and with very
    many terms at most as much again as the sums themselves. It also keeps what float32 loses, which
    grows with the magnitude of what is added, down to some units.
    """
    room = 32700.0 - n_terms if n_terms < _MOST_TERMS else 10000.0
    unit = max((high - low) / (2.0 * room), _ROUNDING * (n_terms + 8) * magnitude / 16.0)
    return max(unit, _SMALLEST)


@part
def add_postings(classes, words, start, stop, base, factor, sums):
    """Add a term to the classes that have it; 16 bits of the product are its fraction."""
    some, levels = classes[start:stop], words[start:stop]  # so that no place can be negative
    for p in range(len(some)):
        sums[some[p]] += np.uint16(base + ((factor * np.int64(levels[p])) >> 16))


@part
def round_factors(n, reach, factors, shifts):
    """Turn what a level of each row adds, in units, into whole factors of four rows at a time.

    The factors of a group are as large as 16 bits allow; their sum is shifted right afterwards.
    Returns the width of the error: a level of each row, and what rounding down loses.
    """
    width = 0.0
    for group in range(0, n, 4):
        total, scale, shift = 0.0, 1.0, 0
        for i in range(group, min(group + 4, n)):
            total += reach[i] * BYTE_LEVELS
        while shift < 15 and 2.0 * scale * total <= 65535.0:
            scale *= 2.0
            shift += 1
        shifts[group >> 2] = shift
        width += 1.0
        for i in range(group, group + 4):
            factors[i] = 0
            if i < n:
                factor = np.floor(reach[i] * scale)
                factors[i] = np.uint16(factor)
                width += 1.01 * reach[i] + BYTE_LEVELS * (reach[i] - factor / scale)
    return width


@part
def add_rows(bytes_, starts, factors, shifts, n, begin, end, sums):
    """Add the first n weighted rows of bytes, four at a time, to the sums of some classes.

    `starts` says where each row begins among all bytes.
    """
    for g in range(0, n, 4):
        a = bytes_[starts[g] + begin : starts[g] + end]
        b = bytes_[starts[g + 1] + begin : starts[g + 1] + end]
        fa, fb, shift = factors[g], factors[g + 1], shifts[g >> 2]
        if n - g <= 2:
            add_two_rows(a, b, fa, fb, shift, sums)
        else:
            c = bytes_[starts[g + 2] + begin : starts[g + 2] + end]
            d = bytes_[starts[g + 3] + begin : starts[g + 3] + end]
            add_four_rows(a, b, c, d, fa, fb, factors[g + 2], factors[g + 3], shift, sums)


@part
def add_two_rows(a, b, fa, fb, shift, sums):
    """Add two weighted rows of bytes; products and sums fit 16 bits by the choice of factors."""
    for i in range(len(sums)):
        total = np.uint16(fa * np.uint16(a[i]) + fb * np.uint16(b[i]))
        sums[i] += shift_right(total, shift)


@part
def add_four_rows(a, b, c, d, fa, fb, fc, fd, shift, sums):
    """Add four of them."""
    for i in range(len(sums)):
        total = np.uint16(
            fa * np.uint16(a[i])
            + fb * np.uint16(b[i])
            + fc * np.uint16(c[i])
            + fd * np.uint16(d[i])
        )
        sums[i] += shift_right(total, shift)


@part
def start_sums(constants, slopes, per_unit, total, shift, sums):
    """Set each class's sum to what no single term decides, in units."""
    for c in range(len(sums)):
        sums[c] = np.uint16(np.int32(constants[c] * per_unit + slopes[c] * total + shift))


@part
def start_even_sums(shift, sums):
    """Do the same where constants and slopes are all 0, without reading them."""
    start = np.uint16(np.int32(shift))
    for c in range(len(sums)):
        sums[c] = start


@part
def find_maxima(sums, maxima):
    """Fill the largest sum of each chunk of classes."""
    for chunk in range(len(maxima)):
        largest = np.uint16(0)
        for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(sums))):
            largest = max(largest, sums[c])
        maxima[chunk] = largest


@part
def lower(bound, width):
    """Return the bound less the width; at least 1, for 0 is a class passed over."""
    return np.uint16(max(np.float64(bound) - np.ceil(width), 1.0))


@part
def shortlist_reaching(sums, wanted, width, maxima, keys, kept, shortlist):
    """Note the classes whose sum is at most `width` below the wanted-th highest; returns how many.

    `shortlist` takes as many as it can hold. The maxima of chunks give a first bound, below which whole
    chunks are skipped; what is left gives the bound itself.
    """
    find_maxima(sums, maxima)
    cut = np.uint16(1)
    if len(maxima) >= wanted:
        cut = lower(nth_largest(maxima, len(maxima), wanted), width)
    n_kept = np.int64(0)
    for chunk in range(len(maxima)):
        if maxima[chunk] >= cut:
            for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(sums))):
                if sums[c] >= cut:
                    kept[n_kept], keys[n_kept] = c, sums[c]
                    n_kept += 1
    if n_kept > wanted:
        cut = max(cut, lower(nth_largest(keys, n_kept, wanted), width))
    n = 0
    for i in range(n_kept):
        if sums[kept[i]] >= cut:
            if n < len(shortlist):
                shortlist[n] = kept[i]
            n += 1
    return n


@kernel
def shortlist_classes(
    indptr,
    indices,
    weights,
    totals,
    documents,
    own,
    index_indptr,
    index_classes,
    index_words,
    index_rows,
    lows,
    steps,
    bytes_,
    slopes,
    constants,
    passed,
    ranges,
    wanted,
    first,
    last,
    sums,
    maxima,
    keys,
    kept,
    starts,
    reach,
    factors,
    shifts,
    shortlist,
    shortlist_sizes,
):
    """Note every class that may be among the `wanted` highest of each document, ascending.

    `shortlist_sizes` counts all of them, `shortlist` takes as many as it can hold. `ranges` holds the lowest
    and highest constant and slope. The eight arrays before `shortlist` are scratch.
    """
    n_classes = len(constants)
    is_even = ranges[0] == ranges[1] == ranges[2] == ranges[3] == 0.0
    for i in range(first, last):
        start, stop = indptr[documents[i]], indptr[documents[i] + 1]
        total = totals[documents[i]]
        low = ranges[0] + min(total * ranges[2], total * ranges[3])
        high = ranges[1] + max(total * ranges[2], total * ranges[3])
        magnitude = max(abs(ranges[0]), abs(ranges[1]))
        magnitude += abs(total) * max(abs(ranges[2]), abs(ranges[3]))
        shift, n_terms = 0.0, 0
        for j in range(start, stop):
            term, weight = indices[j], np.float64(weights[j])
            if weight == 0.0:
                continue
            n_terms += 1
            levels = WORD_LEVELS
            if index_rows[term] >= 0:
                levels = BYTE_LEVELS
                shift += weight * lows[term]
            lowest = weight * lows[term]
            highest = lowest + weight * levels * steps[term]
            low += lowest
            high += highest
            magnitude += max(-lowest, highest)
        unit = choose_unit(low, high, magnitude, n_terms)
        shift = _MIDDLE + (shift - 0.5 * (low + high)) / unit
        if is_even:
            start_even_sums(np.float32(shift), sums)
        else:
            start_sums(
                constants,
                slopes,
                np.float32(1.0 / unit),
                np.float32(total / unit),
                np.float32(shift),
                sums,
            )
        width = 4.0 + 2.0 * _ROUNDING * (n_terms + 8) * magnitude / unit
        n_rows = np.int64(0)  # a plain 0 would have what it is passed to compiled twice
        for j in range(start, stop):
            term, weight = indices[j], np.float64(weights[j])
            if weight == 0.0:
                continue
            level = weight * steps[term] / unit
            if index_rows[term] >= 0:
                starts[n_rows], reach[n_rows] = index_rows[term] * n_classes, level
                n_rows += 1
                continue
            factor = np.floor(65536.0 * level)
            width += 2.0 + 1.01 * level + WORD_LEVELS * (level - factor / 65536.0)
            add_postings(
                index_classes,
                index_words,
                index_indptr[term],
                index_indptr[term + 1],
                np.int64(np.ceil(weight * lows[term] / unit)),
                np.int64(factor),
                sums,
            )
        sort_by_reach(n_rows, reach, starts)
        width += round_factors(n_rows, reach, factors, shifts)
        for g in range(n_rows, (n_rows + 3) & ~3):
            starts[g] = starts[0]  # its factor is zero
        for begin in range(0, n_classes, _BLOCK):
            end = min(begin + _BLOCK, n_classes)
            add_rows(bytes_, starts, factors, shifts, n_rows, begin, end, sums[begin:end])
        for c in passed:
            sums[c] = 0
        if own[i] >= 0:
            sums[own[i]] = 0
        shortlist_sizes[i] = shortlist_reaching(
            sums, wanted, width, maxima, keys, kept, shortlist[i]
        )


@kernel
def rank_topk(classes, scores, first, last, best, best_scores):
    """Fill the best classes of each row, best first; -1 is no class."""
    for i in range(first, last):
        size = np.int64(0)
        for column in range(classes.shape[1]):
            if classes[i, column] >= 0:
                size = keep_best(
                    scores[i, column], classes[i, column], size, best_scores[i], best[i]
                )


@kernel
def rerank(
    classes, scores, corrected, first, last, candidates, candidate_scores, best, best_scores
):
    """Fill the best classes of each row by corrected score among the candidates, the best by score.

    -1 is no class, and classes ascend, so their columns break ties like they do. `candidates` and
    `candidate_scores` are scratch, as long as there are candidates.
    """
    for i in range(first, last):
        n_candidates = np.int64(0)
        for column in range(classes.shape[1]):
            if classes[i, column] >= 0:
                n_candidates = keep_best(
                    scores[i, column], np.int64(column), n_candidates, candidate_scores, candidates
                )
        size = np.int64(0)
        for n in range(n_candidates):
            column = candidates[n]
            size = keep_best(
                corrected[i, column], classes[i, column], size, best_scores[i], best[i]
            )
