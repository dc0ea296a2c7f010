import numpy as np
import pytest
from numba import njit

from longtail._kernels.sorting import nth_largest, sort_keys, sort_terms, sort_together


# Subroutines: compiled code alone can call them.
@njit
def sort_both(keys, values, start, stop):
    sort_together(keys, values, start, stop)


@njit
def sort(keys, start, stop):
    sort_keys(keys, start, stop)


@njit
def select(values, n, nth):
    return nth_largest(values, n, nth)


@njit
def sort_by_buckets(terms, start, stop, n_terms, offsets, buffer):
    sort_terms(terms, start, stop, n_terms, offsets, buffer)


@pytest.mark.parametrize("n_terms", [6_000, 10**7])
@pytest.mark.parametrize("size", [0, 1, 2, 300, 5_000])
@pytest.mark.parametrize("n_offsets", [2, 3, 50, 4_096])
def test_sorts_terms_like_numpy(size, n_terms, n_offsets):
    rng = np.random.default_rng(size)
    for among in (n_terms, size + 1):  # far apart, and side by side
        chosen = n_terms - 1 - rng.choice(among, size, replace=False)
        terms = np.concatenate([[9, -1], chosen, [9, -1]]).astype(np.int32)
        sort_by_buckets(
            terms, 2, 2 + size, n_terms, np.full(n_offsets, 7), np.empty(size, np.int32)
        )
        assert terms.tolist() == [9, -1, *sorted(chosen.tolist()), 9, -1]


@pytest.mark.parametrize("size", [1, 2, 3, 10, 257, 3000, 70_000])
@pytest.mark.parametrize("n_values", [1, 3, 10**6])
def test_sorts_and_selects_like_numpy(size, n_values):
    rng = np.random.default_rng(size)
    values = rng.integers(-n_values, n_values, size).astype(np.int32)
    for n in {1, size, (size + 1) // 2, min(20, size)}:
        words = np.append(values % 65536, 65535).astype(np.uint16)
        assert select(words, size, n) == np.sort(words[:size])[-n]
    keys = np.append(values, np.int32(-(2**31)))  # beyond the end: stays where it is
    sort(keys, 0, size)
    assert np.array_equal(keys[:size], np.sort(values))
    assert keys[size] == -(2**31)
    terms, numbers = rng.permutation(size).astype(np.int32), np.arange(size, dtype=np.float32)
    sorted_terms, sorted_numbers = terms.copy(), numbers.copy()
    sort_both(sorted_terms, sorted_numbers, 0, size)
    order = np.argsort(terms)
    assert np.array_equal(sorted_terms, terms[order])
    assert np.array_equal(sorted_numbers, numbers[order])
    part = terms.copy()
    sort_both(part, numbers, size // 2, size)
    assert np.array_equal(part[: size // 2], terms[: size // 2])
