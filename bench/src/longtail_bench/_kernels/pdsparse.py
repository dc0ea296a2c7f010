"""PD-Sparse: block-coordinate Frank-Wolfe steps on dual variables and on sparse sums of documents.

Dual variables are in a pool: for each document the classes whose variable is not zero, its true
class first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.random import random_bits, uniform
from longtail_bench._kernels.ranking import keep_best
from longtail_bench._kernels.sum_tables import (
    NOTHING,
    Products,
    add_products,
    add_to_sum,
    enlarge,
    read_sum,
    shrink,
)
from longtail_bench._kernels.types import Array, Ranked


class Active(NamedTuple):
    """Active classes of each document and their dual variables."""

    starts: Array
    capacities: Array
    sizes: Array
    classes: Array
    alphas: Array


class StepOptions(NamedTuple):
    """How a step is made.

    threshold        lambda
    ceiling          largest dual variable of a true class, C
    draw_share       share of a document's terms drawn to estimate its products; 1 is all
    n_new            violating classes that a step may add
    n_subset_bits    a step looks among one of 2^n_subset_bits subsets of the classes
    seed             decides the draws
    """

    threshold: float
    ceiling: float
    draw_share: float
    n_new: int
    n_subset_bits: int
    seed: int


@kernel
def solve_block(scores, ceiling, square, alphas):
    """Solve one document's block exactly: true class first, `alphas` in and out.

    Minimises the quadratic bound of the dual, with `scores` = w_c.x and `square` = |x|^2, under
    alpha_true = -(sum of the others), 0 <= alpha_true <= ceiling, others <= 0. With a_c = -alpha_c
    that is the projection of (b, c) onto {a >= 0, t = sum a <= ceiling}: a_c = max(0, b_c - s).
    """
    n = len(alphas) - 1
    wanted = np.empty(n)
    for k in range(n):
        wanted[k] = (1.0 + scores[k + 1]) / square - alphas[k + 1]
    true_wanted = alphas[0] - scores[0] / square
    falling = -np.sort(-wanted)
    total, shift = 0.0, -true_wanted
    for k in range(n):
        if falling[k] <= shift:
            break
        total += falling[k]
        shift = (total - true_wanted) / (k + 2)
    if shift + true_wanted > ceiling:
        total, shift = 0.0, np.inf
        for k in range(n):
            if (total + falling[k] - ceiling) / (k + 1) >= falling[k]:
                break
            total += falling[k]
            shift = (total - ceiling) / (k + 1)
    reached = 0.0
    for k in range(n):
        mass = max(0.0, wanted[k] - shift)
        if mass < NOTHING:
            mass = 0.0
        alphas[k + 1] = -mass
        reached += mass
    alphas[0] = reached


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
def find_violators(rows, document, n_draws, tables, active_classes, options, products, best):
    """Fill classes outside the active set whose products with the document are the highest.

    With `n_draws` above 0 the products are estimated from that many terms. Classes without any
    weight on the document all violate as much: they are drawn at random, after those with a
    positive product and before those with a negative one. Returns how many were found.
    """
    seed, values, listed = options.seed, products.values, products.listed
    subset = np.int64(0)
    if options.n_subset_bits > 0:
        shift = np.uint64(64 - options.n_subset_bits)
        subset = np.int64(random_bits(seed, document, 0) >> shift)
    begin, end = rows.indptr[document], rows.indptr[document + 1]
    drawn = rows.data[begin:end].copy()
    if n_draws > 0:
        draw_terms(seed, document, n_draws, drawn)
    n = 0
    for j in range(end - begin):
        if drawn[j] != 0.0:
            n = add_products(
                tables,
                options.threshold,
                rows.indices[begin + j],
                drawn[j],
                subset,
                options.n_subset_bits,
                products,
                n,
            )
    for c in active_classes:
        if values[c] == 0.0:
            listed[n] = c
            n += 1
        values[c] = -np.inf
    n_found = 0
    for k in range(n):
        c = listed[k]
        if values[c] > 0.0:
            n_found = keep_best(values[c], c, n_found, best.scores, best.classes)
    draw = n_draws + 1
    while n_found < len(best.classes) and draw < n_draws + 1 + 2 * len(best.classes):
        c = np.int64(random_bits(seed, document, draw) % np.uint64(len(values)))
        draw += 1
        if values[c] == 0.0:
            listed[n] = c
            n += 1
            values[c] = -np.inf
            best.classes[n_found] = c
            n_found += 1
    n_above = n_found
    for k in range(n):
        c = listed[k]
        if -np.inf < values[c] < 0.0:
            size = keep_best(
                values[c], c, n_found - n_above, best.scores[n_above:], best.classes[n_above:]
            )
            n_found = n_above + size
    for k in range(n):
        values[listed[k]] = 0.0
    return n_found


@inner
def add_active(active, document, new_classes, pool_size):
    """Append classes to a document's active ones, dual variable zero; returns pool and size.

    What has no capacity left moves to the end of the pool.
    """
    start, size = active.starts[document], active.sizes[document]
    wanted = size + len(new_classes)
    classes, alphas = active.classes, active.alphas
    if wanted > active.capacities[document]:
        classes = enlarge(classes, pool_size + 2 * wanted)
        alphas = enlarge(alphas, pool_size + 2 * wanted)
        for k in range(size):
            classes[pool_size + k] = classes[start + k]
            alphas[pool_size + k] = alphas[start + k]
        start = pool_size
        active.starts[document], active.capacities[document] = start, 2 * wanted
        pool_size += 2 * wanted
    for k in range(len(new_classes)):
        classes[start + size + k] = new_classes[k]
        alphas[start + size + k] = 0.0
    active.sizes[document] = wanted
    return Active(active.starts, active.capacities, active.sizes, classes, alphas), pool_size


@inner
def drop_inactive(active, document):
    """Drop the classes whose dual variable is zero, but the true one."""
    start, kept = active.starts[document], 1
    for k in range(start + 1, start + active.sizes[document]):
        if active.alphas[k] != 0.0:
            active.classes[start + kept] = active.classes[k]
            active.alphas[start + kept] = active.alphas[k]
            kept += 1
    active.sizes[document] = kept


@inner
def score_active(rows, document, classes, tables, threshold):
    """Return the product of the document with the weights of each of its active classes."""
    scores = np.zeros(len(classes))
    for j in range(rows.indptr[document], rows.indptr[document + 1]):
        term = rows.indices[j]
        if tables.bits[term] >= 0:
            for k in range(len(classes)):
                v = read_sum(tables, term, classes[k])
                scores[k] += rows.data[j] * shrink(v, threshold)
    return scores


@kernel
def run_pass(rows, order, options, n_classes, tables, pool_size, active, active_pool_size):
    """Visit the documents in `order` once; returns both pools with sizes and the largest change.

    For each: find new classes that violate, solve the block of its active classes exactly, carry
    the change into the sums, and drop the classes whose dual variable is zero.
    """
    products = Products(np.zeros(n_classes), np.empty(n_classes, np.int64))
    best = Ranked(np.empty(options.n_new, np.int64), np.empty(options.n_new))
    largest = 0.0
    for document in order:
        begin, end = rows.indptr[document], rows.indptr[document + 1]
        square = 0.0
        for j in range(begin, end):
            square += rows.data[j] * rows.data[j]
        if square == 0.0:
            continue
        n_draws = 0
        if options.draw_share < 1.0:
            n_draws = max(1, int((end - begin) * options.draw_share))
        start, size = active.starts[document], active.sizes[document]
        known = active.classes[start : start + size]
        n_found = find_violators(rows, document, n_draws, tables, known, options, products, best)
        active, active_pool_size = add_active(
            active, document, best.classes[:n_found], active_pool_size
        )
        start, size = active.starts[document], active.sizes[document]
        if size < 2:
            continue
        classes = active.classes[start : start + size]
        alphas = active.alphas[start : start + size]
        scores = score_active(rows, document, classes, tables, options.threshold)
        changes = alphas.copy()
        solve_block(scores, options.ceiling, square, alphas)
        for k in range(size):
            changes[k] = alphas[k] - changes[k]
            largest = max(largest, abs(changes[k]))
        for j in range(begin, end):
            for k in range(size):
                if changes[k] != 0.0:
                    tables, pool_size = add_to_sum(
                        tables, rows.indices[j], classes[k], changes[k] * rows.data[j], pool_size
                    )
        drop_inactive(active, document)
    return tables, pool_size, active, active_pool_size, largest


@kernel
def predict_classes(rows, documents, tables, threshold, n_classes, predicted):
    """Fill the class of the highest product of each document, straight from the tables."""
    products = Products(np.zeros(n_classes), np.empty(n_classes, np.int64))
    for row in range(len(documents)):
        n = 0
        for j in range(rows.indptr[documents[row]], rows.indptr[documents[row] + 1]):
            n = add_products(
                tables,
                threshold,
                rows.indices[j],
                rows.data[j],
                np.int64(0),
                np.int64(0),
                products,
                n,
            )
        best, best_class = 0.0, np.int64(-1)
        for k in range(n):
            c = products.listed[k]
            value = products.values[c]
            if value > best or (value == best and c < best_class):
                best, best_class = value, c
        for k in range(n):
            products.values[products.listed[k]] = 0.0
        predicted[row] = best_class
