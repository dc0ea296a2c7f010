"""Sparse sums of documents: for each term a small hash table from class to v.

v = sum_i alpha_ic x_it. All tables share one pool; open addressing, `starts[term]` and `bits[term]`
give where a table is and the logarithm of its size, -1 for none. A pool that is too small is copied
into a larger one. The weight of a term for a class is v drawn towards zero by lambda.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.types import Array

_SPREAD = np.uint64(2654435769)  # 2^32 / golden ratio: neighbouring classes land far apart
_LOW_HALF = np.uint64(0xFFFFFFFF)
EMPTY = np.int32(-1)
NOTHING = 1e-12  # a sum or a dual variable this small is zero but for rounding
_CANCELLED = 1e-300
_FIRST_BITS = 2


class Tables(NamedTuple):
    """The tables of all terms; `used` counts the slots of each that hold a class."""

    starts: Array
    bits: Array
    used: Array
    keys: Array
    sums: Array


class Products(NamedTuple):
    """Product of each class with a document, zero between documents, and the classes listed."""

    values: Array
    listed: Array


@inner
def shrink(v, threshold):
    """Draw a sum towards zero: the weight that it stands for."""
    if v > threshold:
        return v - threshold
    if v < -threshold:
        return v + threshold
    return 0.0


@inner
def home_slot(c, bits):
    """Return where a class's search begins in a table of 2^bits slots.

    The top bits of a multiplicative hash: a table of any size keeps the order of the hash, so the
    same share of every table holds the same part of the classes.
    """
    return np.int64(((np.uint64(c) * _SPREAD) & _LOW_HALF) >> np.uint64(32 - bits))


@inner
def find_slot(keys, start, bits, c):
    """Return the slot of a class in a term's table, or the empty slot where it would go."""
    mask = (np.int64(1) << bits) - 1
    slot = home_slot(c, bits)
    while keys[start + slot] != EMPTY and keys[start + slot] != c:
        slot = (slot + 1) & mask
    return start + slot


@kernel
def read_sum(tables, term, c):
    """Return v of a term and a class; zero where none is stored."""
    if tables.bits[term] < 0:
        return 0.0
    slot = find_slot(tables.keys, tables.starts[term], tables.bits[term], c)
    return tables.sums[slot] if tables.keys[slot] == c else 0.0


@inner
def enlarge(array, size):
    """Return the array with a capacity of `size` entries, a half more where it must grow."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    larger[: len(array)] = array
    return larger


@inner
def rebuild_table(tables, term, pool_size):
    """Move a term's table to the end of the pool, without zeros, large enough for one class more.

    Returns the tables and the size of the pool.
    """
    starts, bits = tables.starts, tables.bits
    n_live = 0
    old_size = np.int64(0) if bits[term] < 0 else np.int64(1) << bits[term]
    old_start = starts[term]
    for slot in range(old_start, old_start + old_size):
        if tables.keys[slot] != EMPTY and abs(tables.sums[slot]) > NOTHING:
            n_live += 1
    new_bits = _FIRST_BITS
    while 2 * (n_live + 1) > np.int64(1) << new_bits:  # at most half full to begin with
        new_bits += 1
    new_size = np.int64(1) << new_bits
    keys = enlarge(tables.keys, pool_size + new_size)
    sums = enlarge(tables.sums, pool_size + new_size)
    keys[pool_size : pool_size + new_size] = EMPTY
    for old in range(old_start, old_start + old_size):
        if keys[old] != EMPTY and abs(sums[old]) > NOTHING:
            slot = find_slot(keys, pool_size, new_bits, keys[old])
            keys[slot], sums[slot] = keys[old], sums[old]
    starts[term], bits[term], tables.used[term] = pool_size, new_bits, n_live
    return Tables(starts, bits, tables.used, keys, sums), pool_size + new_size


@inner
def add_to_sum(tables, term, c, change, pool_size):
    """Add to v of a term and a class; returns the tables and the size of the pool."""
    if tables.bits[term] < 0 or 4 * (tables.used[term] + 1) > 3 << tables.bits[term]:
        tables, pool_size = rebuild_table(tables, term, pool_size)
    slot = find_slot(tables.keys, tables.starts[term], tables.bits[term], c)
    if tables.keys[slot] == EMPTY:
        tables.keys[slot], tables.sums[slot] = c, 0.0
        tables.used[term] += 1
    tables.sums[slot] += change
    return tables, pool_size


@inner
def add_products(tables, threshold, term, value, subset, n_subset_bits, products, n):
    """Add a term's weights times `value` to the products of the classes of a subset.

    Returns how many classes are listed. A subset is a share of the slots of every table.
    """
    bits = tables.bits[term]
    if bits < 0:
        return n
    low, high = np.int64(0), np.int64(1) << bits
    if n_subset_bits > 0:
        low = (subset << bits) >> n_subset_bits
        high = ((subset + 1) << bits) >> n_subset_bits
    for slot in range(tables.starts[term] + low, tables.starts[term] + high):
        c = tables.keys[slot]
        if c == EMPTY:
            continue
        weight = shrink(tables.sums[slot], threshold)
        if weight == 0.0:
            continue
        if products.values[c] == 0.0:
            products.listed[n] = c
            n += 1
        products.values[c] += weight * value
        if products.values[c] == 0.0:  # terms may cancel; a listed class must not look unlisted
            products.values[c] = _CANCELLED
    return n


@kernel
def fill_weights(tables, threshold, indptr, classes, weights):
    """Fill the weights that are not zero, term by term, classes in any order.

    With `classes` empty only their number is counted, into `indptr[term + 1]`.
    """
    entry = 0
    for term in range(len(tables.starts)):
        bits, start = tables.bits[term], tables.starts[term]
        size = np.int64(0) if bits < 0 else np.int64(1) << bits
        for slot in range(start, start + size):
            if tables.keys[slot] == EMPTY:
                continue
            weight = shrink(tables.sums[slot], threshold)
            if weight == 0.0:
                continue
            if len(classes) > 0:
                classes[entry], weights[entry] = tables.keys[slot], weight
            else:
                indptr[term + 1] += 1
            entry += 1
