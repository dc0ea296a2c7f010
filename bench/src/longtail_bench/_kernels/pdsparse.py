"""PD-Sparse: block-coordinate Frank-Wolfe steps on dual variables and on sparse sums of documents.

Two pools hold what has no fixed size. `sums`: for each term a small hash table from class to
v = sum_i alpha_ic x_it, open addressing, `starts[term]` and `bits[term]` giving its place and the
logarithm of its size, -1 for none. `active`: for each document the classes whose dual variable is
not zero, its own class first. A pool that is too small is copied into a larger one and returned.
The weight of a term for a class is v drawn towards zero by lambda.
"""

from __future__ import annotations

import math

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.random import random_bits, uniform
from longtail_bench._kernels.ranking import keep_best

_SPREAD = np.uint64(2654435769)  # 2^32 / golden ratio: neighbouring classes land far apart
_LOW_HALF = np.uint64(0xFFFFFFFF)
_EMPTY = np.int32(-1)
_NOTHING = 1e-12  # a sum or a dual variable this small is zero but for rounding
_CANCELLED = 1e-300
_FIRST_BITS = 2


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
    while keys[start + slot] != _EMPTY and keys[start + slot] != c:
        slot = (slot + 1) & mask
    return start + slot


@kernel
def read_sum(starts, bits, keys, sums, term, c):
    """Return v of a term and a class; zero where none is stored."""
    if bits[term] < 0:
        return 0.0
    place = find_slot(keys, starts[term], bits[term], c)
    return sums[place] if keys[place] == c else 0.0


@inner
def enlarge(array, size):
    """Return the array with room for `size` entries, a half more where it must grow."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    larger[: len(array)] = array
    return larger


@inner
def rebuild_table(starts, bits, used, term, keys, sums, pool_size):
    """Move a term's table to the end of the pool, without zeros, large enough for one class more.

    Returns the pool and its size.
    """
    n_live = 0
    old_size = np.int64(0) if bits[term] < 0 else np.int64(1) << bits[term]
    old_start = starts[term]
    for place in range(old_start, old_start + old_size):
        if keys[place] != _EMPTY and abs(sums[place]) > _NOTHING:
            n_live += 1
    new_bits = _FIRST_BITS
    while 2 * (n_live + 1) > np.int64(1) << new_bits:  # at most half full to begin with
        new_bits += 1
    new_size = np.int64(1) << new_bits
    keys, sums = enlarge(keys, pool_size + new_size), enlarge(sums, pool_size + new_size)
    keys[pool_size : pool_size + new_size] = _EMPTY
    for place in range(old_start, old_start + old_size):
        if keys[place] != _EMPTY and abs(sums[place]) > _NOTHING:
            slot = find_slot(keys, pool_size, new_bits, keys[place])
            keys[slot], sums[slot] = keys[place], sums[place]
    starts[term], bits[term], used[term] = pool_size, new_bits, n_live
    return keys, sums, pool_size + new_size


@kernel
def solve_block(scores, ceiling, square, alphas):
    """Solve one document's block exactly: own class first, `alphas` in and out.

    Minimises the quadratic bound of the dual, with `scores` = w_c.x and `square` = |x|^2, under
    alpha_own = -(sum of the others), 0 <= alpha_own <= ceiling, others <= 0. With a_c = -alpha_c
    that is the projection of (b, c) onto {a >= 0, t = sum a <= ceiling}: a_c = max(0, b_c - s).
    """
    n = len(alphas) - 1
    wanted = np.empty(n)
    for k in range(n):
        wanted[k] = (1.0 + scores[k + 1]) / square - alphas[k + 1]
    own = alphas[0] - scores[0] / square
    falling = -np.sort(-wanted)
    total, shift = 0.0, -own
    for k in range(n):
        if falling[k] <= shift:
            break
        total += falling[k]
        shift = (total - own) / (k + 2)
    if shift + own > ceiling:
        total, shift = 0.0, np.inf
        for k in range(n):
            if (total + falling[k] - ceiling) / (k + 1) >= falling[k]:
                break
            total += falling[k]
            shift = (total - ceiling) / (k + 1)
    reached = 0.0
    for k in range(n):
        part = max(0.0, wanted[k] - shift)
        if part < _NOTHING:
            part = 0.0
        alphas[k + 1] = -part
        reached += part
    alphas[0] = reached


@inner
def add_products(
    starts, bits, keys, sums, threshold, term, value, subset, n_subset_bits, products, stale, n
):
    """Add a term's weights times `value` to the products of the classes of a subset.

    Returns how many classes have been touched. A subset is a share of the slots of every table.
    """
    if bits[term] < 0:
        return n
    low, high = np.int64(0), np.int64(1) << bits[term]
    if n_subset_bits > 0:
        low = (subset << bits[term]) >> n_subset_bits
        high = ((subset + 1) << bits[term]) >> n_subset_bits
    for place in range(starts[term] + low, starts[term] + high):
        c = keys[place]
        if c == _EMPTY:
            continue
        weight = shrink(sums[place], threshold)
        if weight == 0.0:
            continue
        if products[c] == 0.0:
            stale[n] = c
            n += 1
        products[c] += weight * value
        if products[c] == 0.0:  # terms may cancel; a touched class must not look untouched
            products[c] = _CANCELLED
    return n


@inner
def draw_terms(seed, document, n_draws, values):
    """Replace a document's values by an estimate from `n_draws` of them, right on average.

    A term is drawn with probability proportional to its value (importance sampling).
    """
    mass = 0.0
    for value in values:
        mass += abs(value)
    drawn = np.zeros(len(values))
    for draw in range(n_draws):
        rest = uniform(seed, document, draw + 1) * mass
        j = 0
        while j < len(values) - 1 and rest >= abs(values[j]):
            rest -= abs(values[j])
            j += 1
        drawn[j] += mass / n_draws
    for j in range(len(values)):
        values[j] = math.copysign(drawn[j], values[j])


@kernel
def find_violators(
    indices,
    data,
    begin,
    end,
    n_draws,
    starts,
    bits,
    keys,
    sums,
    threshold,
    n_subset_bits,
    seed,
    document,
    active,
    products,
    stale,
    best_scores,
    best_classes,
):
    """Fill classes outside the active set whose products with the document are the highest.

    With `n_draws` above 0 the products are estimated from that many terms. Classes without any
    weight on the document all violate as much: they are drawn at random, after those with a
    positive product and before those with a negative one. `products` is zero before and after.
    Returns how many were found.
    """
    subset = np.int64(0)
    if n_subset_bits > 0:
        subset = np.int64(random_bits(seed, document, 0) >> np.uint64(64 - n_subset_bits))
    drawn = data[begin:end].copy()
    if n_draws > 0:
        draw_terms(seed, document, n_draws, drawn)
    n = 0
    for j in range(begin, end):
        if drawn[j - begin] != 0.0:
            n = add_products(
                starts,
                bits,
                keys,
                sums,
                threshold,
                indices[j],
                drawn[j - begin],
                subset,
                n_subset_bits,
                products,
                stale,
                n,
            )
    for c in active:
        if products[c] == 0.0:
            stale[n] = c
            n += 1
        products[c] = -np.inf
    n_found = 0
    for k in range(n):
        c = stale[k]
        if products[c] > 0.0:
            n_found = keep_best(products[c], c, n_found, best_scores, best_classes)
    draw = n_draws + 1
    while n_found < len(best_classes) and draw < n_draws + 1 + 2 * len(best_classes):
        c = np.int64(random_bits(seed, document, draw) % np.uint64(len(products)))
        draw += 1
        if products[c] == 0.0:
            stale[n] = c
            n += 1
            products[c] = -np.inf
            best_classes[n_found] = c
            n_found += 1
    n_above = n_found
    for k in range(n):
        c = stale[k]
        if -np.inf < products[c] < 0.0:
            size = keep_best(
                products[c], c, n_found - n_above, best_scores[n_above:], best_classes[n_above:]
            )
            n_found = n_above + size
    for k in range(n):
        products[stale[k]] = 0.0
    return n_found


@kernel
def run_pass(
    indptr,
    indices,
    data,
    order,
    threshold,
    ceiling,
    draw_share,
    n_new,
    n_subset_bits,
    seed,
    n_classes,
    starts,
    bits,
    used,
    keys,
    sums,
    pool_size,
    active_starts,
    active_rooms,
    active_sizes,
    active_classes,
    alphas,
    active_pool_size,
):
    """Visit the documents in `order` once; returns the pools, their sizes and the largest change.

    For each: find new classes that violate, solve the block of its active classes exactly, carry
    the change into the sums, and drop the classes whose dual variable is zero.
    """
    products, stale = np.zeros(n_classes), np.empty(n_classes, np.int64)
    best_scores, best_classes = np.empty(n_new), np.empty(n_new, np.int64)
    largest = 0.0
    for document in order:
        begin, end = indptr[document], indptr[document + 1]
        square = 0.0
        for j in range(begin, end):
            square += data[j] * data[j]
        if square == 0.0:
            continue
        place, size = active_starts[document], active_sizes[document]
        n_draws = 0 if draw_share >= 1.0 else max(1, int((end - begin) * draw_share))
        n_found = find_violators(
            indices,
            data,
            begin,
            end,
            n_draws,
            starts,
            bits,
            keys,
            sums,
            threshold,
            n_subset_bits,
            seed,
            document,
            active_classes[place : place + size],
            products,
            stale,
            best_scores,
            best_classes,
        )
        if size + n_found > active_rooms[document]:
            room = 2 * (size + n_found)
            active_classes = enlarge(active_classes, active_pool_size + room)
            alphas = enlarge(alphas, active_pool_size + room)
            for k in range(size):
                active_classes[active_pool_size + k] = active_classes[place + k]
                alphas[active_pool_size + k] = alphas[place + k]
            place = active_pool_size
            active_starts[document], active_rooms[document] = place, room
            active_pool_size += room
        for k in range(n_found):
            active_classes[place + size + k] = best_classes[k]
            alphas[place + size + k] = 0.0
        size += n_found
        if size < 2:
            continue
        chosen, own = active_classes[place : place + size], alphas[place : place + size]
        scores = np.zeros(size)
        for j in range(begin, end):
            if bits[indices[j]] >= 0:
                for k in range(size):
                    v = read_sum(starts, bits, keys, sums, indices[j], chosen[k])
                    scores[k] += data[j] * shrink(v, threshold)
        changes = own.copy()
        solve_block(scores, ceiling, square, own)
        for k in range(size):
            changes[k] = own[k] - changes[k]
            largest = max(largest, abs(changes[k]))
        for j in range(begin, end):
            term = indices[j]
            for k in range(size):
                if changes[k] == 0.0:
                    continue
                if bits[term] < 0 or 4 * (used[term] + 1) > 3 << bits[term]:
                    keys, sums, pool_size = rebuild_table(
                        starts, bits, used, term, keys, sums, pool_size
                    )
                slot = find_slot(keys, starts[term], bits[term], chosen[k])
                if keys[slot] == _EMPTY:
                    keys[slot], sums[slot] = chosen[k], 0.0
                    used[term] += 1
                sums[slot] += changes[k] * data[j]
        kept = 1
        for k in range(1, size):
            if own[k] != 0.0:
                chosen[kept], own[kept] = chosen[k], own[k]
                kept += 1
        active_sizes[document] = kept
    return keys, sums, pool_size, active_classes, alphas, active_pool_size, largest


@kernel
def predict_classes(
    indptr, indices, data, documents, starts, bits, keys, sums, threshold, n_classes, predicted
):
    """Fill the class of the highest product of each document, straight from the tables."""
    products, stale = np.zeros(n_classes), np.empty(n_classes, np.int64)
    for row in range(len(documents)):
        n = 0
        for j in range(indptr[documents[row]], indptr[documents[row] + 1]):
            n = add_products(
                starts,
                bits,
                keys,
                sums,
                threshold,
                indices[j],
                data[j],
                np.int64(0),
                np.int64(0),
                products,
                stale,
                n,
            )
        best, best_class = 0.0, np.int64(-1)
        for k in range(n):
            c = stale[k]
            if products[c] > best or (products[c] == best and c < best_class):
                best, best_class = products[c], c
        for k in range(n):
            products[stale[k]] = 0.0
        predicted[row] = best_class


@kernel
def fill_weights(starts, bits, keys, sums, threshold, indptr, classes, weights):
    """Fill the weights that are not zero, term by term, classes in any order.

    With `classes` empty only their numbers are counted, into `indptr[term + 1]`.
    """
    place = 0
    for term in range(len(starts)):
        size = np.int64(0) if bits[term] < 0 else np.int64(1) << bits[term]
        for slot in range(starts[term], starts[term] + size):
            if keys[slot] == _EMPTY:
                continue
            weight = shrink(sums[slot], threshold)
            if weight == 0.0:
                continue
            if len(classes) > 0:
                classes[place], weights[place] = keys[slot], weight
            else:
                indptr[term + 1] += 1
            place += 1
