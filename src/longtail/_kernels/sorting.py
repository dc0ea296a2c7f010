"""Sorting and selecting inside kernels: numba's own take up to ten seconds to compile."""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, part

_COUNTED = 32_768  # words at once, so that their number fits 16 bits


@part
def count_reaching(words, n, bound):
    """Count the first n words that reach a bound."""
    total = np.int64(0)
    for start in range(0, n, _COUNTED):
        few = np.uint16(0)  # counted in as many bits as the words have: vector instructions again
        for i in range(start, min(start + _COUNTED, n)):
            few = np.uint16(few + np.uint16(words[i] >= bound))
        total += np.int64(few)
    return total


@kernel
def nth_largest(words, n, nth):
    """Return the nth largest of the first n 16-bit words; no branch depends on the data."""
    found = 0
    for bit in range(15, -1, -1):
        if count_reaching(words, n, np.uint16(found | (1 << bit))) >= nth:
            found |= 1 << bit
    return found


@kernel
def sort_keys(keys, n):
    """Sort the first n keys, smallest first (Shell's sort)."""
    gap = 1
    while 3 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            key, j = keys[i], i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 3


@kernel
def sort_together(terms, values, start, stop):
    """Sort a part of the terms, and their values with them (Shell's sort: it compiles at once)."""
    gap = 1
    while 3 * gap < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            term, value, j = terms[i], values[i], i
            while j >= start + gap and terms[j - gap] > term:
                terms[j], values[j] = terms[j - gap], values[j - gap]
                j -= gap
            terms[j], values[j] = term, value
        gap //= 3
