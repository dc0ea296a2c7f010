"""Sorting and selecting inside kernels: numba's own take up to ten seconds to compile."""

from __future__ import annotations

from longtail._kernels.jit import kernel


@kernel
def nth_largest(values, n):
    """Return the n-th largest value, by quickselect; reorders the values."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n - 1 <= j:
            high = j
        elif n - 1 >= i:
            low = i
        else:
            break
    return values[n - 1]


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
