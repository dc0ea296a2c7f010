"""Sorting, searching and selecting in kernels; numba's sorts take up to ten seconds to compile."""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, subroutine

_COUNTED_TOGETHER = 32_768  # values, so that their number fits 16 bits


@subroutine
def find_term(indices, low, high, term):
    """Return the first position in [low, high) whose term is not below `term`."""
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@subroutine
def seek_term(indices, low, high, term):
    """Do the same where the term is near `low`: gallop forward, then search between."""
    step = 1
    while low + step < high and indices[low + step] < term:
        low += step
        step += step
    return find_term(indices, low, min(low + step, high), term)


@subroutine
def count_reaching(values, n, bound):
    """Count the first n values that reach a bound."""
    total = np.int64(0)
    for start in range(0, n, _COUNTED_TOGETHER):
        together = values[start : min(start + _COUNTED_TOGETHER, n)]
        count = np.uint16(0)  # as many bits as the values have: vector instructions again
        for i in range(len(together)):  # from 0: no check for negative positions
            count = np.uint16(count + np.uint16(together[i] >= bound))
        total += np.int64(count)
    return total


@subroutine
def nth_largest(values, n, nth):
    """Return the nth largest of the first n 16-bit values; no branch depends on the data."""
    found = 0
    for bit in range(15, -1, -1):
        if count_reaching(values, n, np.uint16(found | (1 << bit))) >= nth:
            found |= 1 << bit
    return found


@subroutine
def sort_keys(keys, start, stop):
    """Sort the keys from `start` to `stop - 1`, smallest first (Shell's sort)."""
    gap = 1
    while 3 * gap < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            key, j = keys[i], i
            while j >= start + gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3


@subroutine
def sort_terms(terms, start, stop, n_terms, offsets, buffer):
    """Sort the terms from `start` to `stop - 1`, each below `n_terms`, smallest first.

    They go into about as many buckets as there are terms (a counting sort), as far as the offsets
    reach, which leaves little for Shell's sort to move. `offsets` and `buffer` are scratch.
    """
    n, shift = stop - start, 0
    while (n_terms >> shift) > min(2 * n, len(offsets) - 2):
        shift += 1
    for bucket in range((n_terms >> shift) + 2):
        offsets[bucket] = 0
    for j in range(start, stop):
        offsets[(np.int64(terms[j]) >> shift) + 1] += 1
    for bucket in range((n_terms >> shift) + 1):
        offsets[bucket + 1] += offsets[bucket]
    for j in range(start, stop):
        slot = np.int64(terms[j]) >> shift
        buffer[offsets[slot]] = terms[j]
        offsets[slot] += 1
    for j in range(n):
        terms[start + j] = buffer[j]
    sort_keys(terms, start, stop)


@subroutine
def sort_together(keys, values, start, stop):
    """Sort the keys from `start` to `stop - 1`, and their values with them (Shell's sort)."""
    gap = 1
    while 3 * gap < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            key, value, j = keys[i], values[i], i
            while j >= start + gap and keys[j - gap] > key:
                keys[j], values[j] = keys[j - gap], values[j - gap]
                j -= gap
            keys[j], values[j] = key, value
        gap //= 3


@kernel
def group_by_class(classes, n_classes, offsets, starts, pair_ids):
    """List the pairs of each class in ascending order (a counting sort); -1 is no class.

    classes (n_pairs,)    offsets (n_classes,), scratch    starts (n_classes + 1,), all 0 before
    """
    for pair in range(len(classes)):
        if classes[pair] >= 0:
            starts[classes[pair] + 1] += 1
    for c in range(n_classes):
        starts[c + 1] += starts[c]
        offsets[c] = starts[c]
    for pair in range(len(classes)):
        c = classes[pair]
        if c >= 0:
            pair_ids[offsets[c]] = pair
            offsets[c] += 1
