"""Residuals of each class: logistic regression on its documents and its hard negatives."""

from __future__ import annotations

import numpy as np

from longtail._kernels.elementary import exp, log
from longtail._kernels.jit import inlined, kernel, subroutine
from longtail._kernels.sorting import sort_terms

# Newton's method for one dual variable, in a bracket: alone it cycles where the cost is large, so
# the bracket is halved after some steps. One or two are the rule; the next pass mends the gap.
_MAX_NEWTON_STEPS, _MAX_STEPS = 5, 30
_SMALLEST_GAP = 1e-3

_RESTING_SHARE = 0.1  # of the tolerance: a pair that moves less rests for a pass

_SMALLEST_NUMBER = 5e-324

# Squared length of a vector, which is 1, and its bias. A document without terms has less: its dual
# variable takes shorter steps then, to the same end.
SQUARE = 2.0


@subroutine
def sum_shares(scores, first, stop, but, highest):
    """Return the sum of exp(score - highest) over some pairs but one, in their order."""
    total = 0.0
    for other in range(first, stop):
        if other != but:
            total += exp(scores[other] - highest)
    return total


@kernel
def fill_log_odds(scores, rows, block, shares, log_odds):
    """Fill each pair's log odds: its score minus the log-sum-exp of what it competes with.

    A label competes with the pairs of its row that are none, for labels do not exclude each other;
    every other class competes with all pairs of the row. Infinite where nothing competes. Nearly
    all pairs of a row have the same highest competitor, so exponentials are kept in `shares`,
    scratch for the longest row.
    """
    indptr, n_labels = rows
    for row in range(block.first, block.last):
        start, stop = indptr[row], indptr[row + 1]
        first_negative = start + n_labels[row]
        top, best, second, best_negative = start, -np.inf, -np.inf, -np.inf
        for pair in range(start, stop):
            score = scores[pair]
            if score > best:
                top, best, second = pair, score, best
            else:
                second = max(second, score)
            if pair >= first_negative:
                best_negative = max(best_negative, score)
        for pair in range(start, stop):
            shares[pair - start] = exp(scores[pair] - best) if best > -np.inf else 0.0
        for pair in range(start, stop):
            is_label = pair < first_negative
            first = first_negative if is_label else start
            highest = best_negative if is_label else (second if pair == top else best)
            if highest == -np.inf:
                log_odds[pair] = np.inf if scores[pair] > -np.inf else -np.inf
                continue
            total = 0.0
            if highest == best:
                for other in range(first, stop):
                    if other != pair:
                        total += shares[other - start]
            else:
                total = sum_shares(scores, first, stop, pair, highest)
            log_odds[pair] = scores[pair] - highest - log(total)


@subroutine
def multiply(indices, values, first, last, weights):
    """Return the product of a document and the weights of a class.

    In four sums, each of which need not wait for the others.
    """
    indices, values = indices[first:last], values[first:last]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    rest = len(indices) & ~3
    for j in range(0, rest, 4):
        a += values[j] * weights[np.uint64(indices[j])]
        b += values[j + 1] * weights[np.uint64(indices[j + 1])]
        c += values[j + 2] * weights[np.uint64(indices[j + 2])]
        d += values[j + 3] * weights[np.uint64(indices[j + 3])]
    for j in range(rest, len(indices)):
        a += values[j] * weights[np.uint64(indices[j])]
    return (a + b) + (c + d)


@subroutine
def add_multiple(indices, values, first, last, step, weights):
    """Add a multiple of a document to the weights of a class."""
    indices, values = indices[first:last], values[first:last]
    for j in range(len(indices)):
        weights[np.uint64(indices[j])] += step * values[j]


@subroutine
def solve_dual(r, log_odds, cost):
    """Return the r that minimises the logistic dual along one coordinate, and s(r).

    The dual variable is cost * s(r), s the logistic function. The optimum solves
    r + log_odds + SQUARE * cost * s(r) = 0, where `log_odds` is the pair's without this variable
    (Yu, Huang and Lin 2011, doi:10.1007/s10994-010-5221-8). The first r is a guess.
    """
    ceiling = SQUARE * cost
    low, high = -log_odds - ceiling, -log_odds  # the gap has opposite signs there
    r = min(max(r, low), high)
    for count in range(_MAX_STEPS):
        share = 1.0 / (1.0 + exp(-r))
        slope = share * (1.0 - share)
        gap = r + log_odds + ceiling * share
        step = gap / (1.0 + ceiling * slope)
        if abs(gap) < _SMALLEST_GAP:
            return r - step, share - slope * step  # the last step needs no other exponential
        if gap > 0.0:
            high = r
        else:
            low = r
        r -= step
        if count >= _MAX_NEWTON_STEPS or not low <= r <= high:
            r = 0.5 * (low + high)
    return r, 1.0 / (1.0 + exp(-r))


@inlined
def fit_class(vectors, examples, solver, c, scratch):
    """Fit the weights of one class into `scratch.dense`; returns its bias.

    Minimises 1/2 |w|^2 + 1/2 b^2 + cost * sum log(1 + exp(-y (log_odds + w.x + b))) by dual
    coordinate descent; the loss of a pair counts what `examples.costs` says. A pair whose dual
    variable hardly moves rests for the next pass.
    """
    alphas, logits, resting, weights = scratch
    starts, document_ids, are_labels, log_odds, costs = examples
    indptr, indices, values, _ = vectors
    start = starts[c]
    n_pairs = starts[c + 1] - start
    for k in range(n_pairs):
        alphas[k] = 0.0
        resting[k] = False
    bias = 0.0
    for _ in range(solver.max_passes):
        largest = 0.0
        for k in range(n_pairs):
            if resting[k]:
                resting[k] = False
                continue
            row = document_ids[start + k]
            target = 1.0 if are_labels[start + k] else -1.0
            first, last = indptr[row], indptr[row + 1]
            score = np.float64(log_odds[start + k]) + bias
            score += multiply(indices, values, first, last, weights)
            cost = solver.cost * costs[start + k] if len(costs) else solver.cost
            others = target * score - SQUARE * alphas[k]
            guess = logits[k] if alphas[k] > 0.0 else min(-others, 0.0)
            logits[k], share = solve_dual(guess, others, cost)
            step = target * (cost * share - alphas[k])
            largest = max(largest, abs(step))
            resting[k] = abs(step) < _RESTING_SHARE * solver.tolerance
            if step != 0.0:
                alphas[k] = cost * share
                bias += step
                add_multiple(indices, values, first, last, step, weights)
        if largest < solver.tolerance:
            break
    return bias


@subroutine
def drain_row(indices, smallest_weight, weights, rows, size):
    """Move the weights of a document's terms to `rows`, but for small ones; returns their end.

    Without a branch, which half of the terms would take: a weight that is small is written over.
    """
    bound = max(smallest_weight, _SMALLEST_NUMBER)  # 0 is no weight
    for j in range(len(indices)):
        term = np.uint64(indices[j])
        weight = weights[term]
        weights[term] = 0.0
        rows.indices[size] = indices[j]
        rows.weights[size] = weight
        size += np.int64(abs(weight) >= bound)
    return size


@subroutine
def sort_row(rows, start, size, weights):
    """Sort a row by term alone; the weights follow."""
    for j in range(start, size):
        weights[rows.indices[j]] = rows.weights[j]
    sort_terms(rows.indices, start, size, len(weights), rows.offsets, rows.buffer)
    for j in range(start, size):
        term = rows.indices[j]
        rows.weights[j] = weights[term]
        weights[term] = 0.0


@subroutine
def count_labels(examples, c):
    """Return how many of the class's examples are its documents."""
    n_labels = 0
    for p in range(examples.starts[c], examples.starts[c + 1]):
        n_labels += examples.are_labels[p]
    return n_labels


@kernel
def fit_class_residuals(vectors, examples, solver, block, scratch, rows):
    """Fit the classes of the block, as far as `rows` has capacity; returns the next class.

    A class that is no document's label learns nothing. Weights below the smallest are dropped.
    """
    size, weights = np.int64(0), scratch.dense
    for c in range(block.first, block.last):
        if size + len(weights) >= len(rows.indices):
            return c
        rows.sizes[c] = 0
        rows.biases[c] = 0.0
        if count_labels(examples, c) == 0:
            continue
        rows.biases[c] = fit_class(vectors, examples, solver, c, scratch)
        start = size
        for p in range(examples.starts[c], examples.starts[c + 1]):
            row = examples.document_ids[p]
            entries = slice(vectors.indptr[row], vectors.indptr[row + 1])
            size = drain_row(vectors.indices[entries], solver.smallest_weight, weights, rows, size)
        sort_row(rows, start, size, weights)
        rows.sizes[c] = size - start
    return block.last
