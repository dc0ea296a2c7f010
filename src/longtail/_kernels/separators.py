"""Separators: a support vector machine for each class, against hard and random negatives.

Minimises 1/2 |w|^2 + 1/2 b^2 + sum_i cost_i max(0, 1 - y_i (w.x_i + b))^2 by dual coordinate
descent (Hsieh et al. 2008, doi:10.1145/1390156.1390208).
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import inlined, kernel, subroutine
from longtail._kernels.residuals import (
    SQUARE,
    add_multiple,
    count_labels,
    drain_row,
    multiply,
    sort_row,
)
from longtail._kernels.sampling import GOLDEN, mix

_SMALLEST_COST = 1e-9  # of an example that counts for nothing
_RESTING_SHARE = 0.1  # of the tolerance: an example that moves less rests for a pass


@inlined
def draw_negatives(examples, negatives, c, n_labels, scratch):
    """List the random negatives of a class behind its examples, in `order`; returns their number.

    They follow each other among all that were drawn, from a place that depends on the class alone;
    documents that are examples already are passed over.
    """
    starts, document_ids, _, _, _ = examples
    drawn, order, all_positions = scratch.drawn, scratch.order, negatives.positions
    start, stop = starts[c], starts[c + 1]
    n_drawn = len(negatives.indptr) - 1
    for p in range(start, stop):
        position = all_positions[document_ids[p]]
        if position >= 0:
            drawn[position] = True
    wanted = min(negatives.n_per_label * n_labels + negatives.n_at_least, n_drawn)
    first = np.int64(mix(np.uint64(c) + GOLDEN) % np.uint64(max(n_drawn, 1)))
    n_listed = 0
    for k in range(wanted):
        position = (first + k) % n_drawn
        if not drawn[position]:
            order[stop - start + n_listed] = position
            n_listed += 1
    for p in range(start, stop):
        position = all_positions[document_ids[p]]
        if position >= 0:
            drawn[position] = False
    return n_listed


@subroutine
def update_example(indices, values, first, last, target, k, bias, scratch):
    """Move the dual variable of an example to its optimum; returns the move, and that of the bias.

    The first is in units of the margin.
    """
    weights = scratch.dense
    score = bias + multiply(indices, values, first, last, weights)
    penalty = 0.5 / scratch.costs[k]
    curvature = SQUARE + penalty
    alpha = scratch.alphas[k]
    slope = target * score - 1.0 + alpha * penalty
    moved = max(alpha - slope / curvature, 0.0)
    step = target * (moved - alpha)
    if step != 0.0:
        scratch.alphas[k] = moved
        add_multiple(indices, values, first, last, step, weights)
    return abs(step) * curvature, step


@subroutine
def shuffle(order, n, c, count):
    """Put numbers in a random order that depends on the class and the count of passes alone."""
    seed = mix(mix(np.uint64(c) + GOLDEN) + np.uint64(count) * GOLDEN)
    for k in range(n - 1, 0, -1):
        high = mix(seed + np.uint64(k) * GOLDEN) >> np.uint64(32)  # no division: it takes longer
        other = np.int64((high * np.uint64(k + 1)) >> np.uint64(32))
        order[k], order[other] = order[other], order[k]


@inlined
def fit_separator(vectors, examples, negatives, solver, c, n_negatives, scratch, passes):
    """Fit the weights of one class into `scratch.dense`; returns its bias."""
    # Tuples are read once: each reading copies all that they hold, which takes time to compile.
    own_indptr, own_indices, own_weights, _ = vectors
    starts, document_ids, are_labels, _, own_costs = examples
    drawn_indptr, drawn_indices, drawn_weights, _, _, _, n_documents = negatives
    alphas, resting, order, costs, _, _ = scratch
    start = starts[c]
    n_own = starts[c + 1] - start
    n_examples = n_own + n_negatives
    unseen = max(n_documents - n_own, 1) / max(n_negatives, 1)
    for k in range(n_examples):
        if k < n_own:
            cost = own_costs[start + k] if len(own_costs) else 1.0
            costs[k] = solver.cost * max(cost, _SMALLEST_COST)
        else:
            costs[k] = solver.cost * max(unseen, 1.0)
        alphas[k] = 0.0
        resting[k] = False
        passes[k] = k
    bias = 0.0
    for count in range(solver.max_passes):
        largest = 0.0
        shuffle(passes, n_examples, c, count)
        for position in range(n_examples):
            k = passes[position]
            if resting[k]:
                resting[k] = False
                continue
            if k < n_own:
                row = document_ids[start + k]
                target = 1.0 if are_labels[start + k] else -1.0
                first, last = own_indptr[row], own_indptr[row + 1]
                move, step = update_example(
                    own_indices, own_weights, first, last, target, k, bias, scratch
                )
            else:
                first, last = drawn_indptr[order[k]], drawn_indptr[order[k] + 1]
                move, step = update_example(
                    drawn_indices, drawn_weights, first, last, -1.0, k, bias, scratch
                )
            bias += step
            largest = max(largest, move)
            resting[k] = move < _RESTING_SHARE * solver.tolerance
        if largest < solver.tolerance:
            break
    return bias


@kernel
def fit_class_separators(vectors, examples, negatives, solver, block, scratch, passes, rows):
    """Fit the classes of the block, as far as `rows` has capacity; returns the next class.

    A class that is no document's label learns nothing. Weights below the smallest are dropped.
    `passes`, scratch, holds the order of the examples in a pass.
    """
    size, weights, order = np.int64(0), scratch.dense, scratch.order
    starts, document_ids = examples.starts, examples.document_ids
    for c in range(block.first, block.last):
        if size + len(weights) >= len(rows.indices):
            return c
        rows.sizes[c] = 0
        rows.biases[c] = 0.0
        n_labels = count_labels(examples, c)
        if n_labels == 0:
            continue
        n_negatives = draw_negatives(examples, negatives, c, n_labels, scratch)
        rows.biases[c] = fit_separator(
            vectors, examples, negatives, solver, c, n_negatives, scratch, passes
        )
        start = size
        n_own = starts[c + 1] - starts[c]
        for p in range(starts[c], starts[c + 1]):
            row = document_ids[p]
            indices = vectors.indices[vectors.indptr[row] : vectors.indptr[row + 1]]
            size = drain_row(indices, solver.smallest_weight, weights, rows, size)
        for k in range(n_own, n_own + n_negatives):
            row = order[k]
            indices = negatives.indices[negatives.indptr[row] : negatives.indptr[row + 1]]
            size = drain_row(indices, solver.smallest_weight, weights, rows, size)
        sort_row(rows, start, size, weights)
        rows.sizes[c] = size - start
    return block.last
