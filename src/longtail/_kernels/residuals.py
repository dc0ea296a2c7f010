"""Residuals of each class: logistic regression on its documents and its hard negatives.

Pairs are numbered row by row; column 0 of a row is the document's true class.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import inlined, kernel, subroutine
from longtail._kernels.sorting import sort_together

# Newton's method for one dual variable, in a bracket: alone it cycles where the cost is large. Two
# or three steps are the rule; what is left of the gap the next pass mends.
_MAX_STEPS = 30
_SMALLEST_GAP = 1e-3

_RESTING_SHARE = 0.1  # of the tolerance: a pair that moves less rests for a pass


@kernel
def fill_log_odds(scores, block, log_odds):
    """Fill each pair's log odds among its row: its score minus the log-sum-exp of the others."""
    n_columns = scores.shape[1]
    for row in range(block.first, block.last):
        for column in range(n_columns):
            highest = -np.inf
            for other in range(n_columns):
                if other != column:
                    highest = max(highest, scores[row, other])
            total = 0.0
            for other in range(n_columns):
                if other != column:
                    total += math.exp(scores[row, other] - highest)
            log_odds[row, column] = scores[row, column] - highest - math.log(total)


@kernel
def solve_dual(alpha, log_odds, square, cost):
    """Return the dual variable in [0, cost] that minimises the logistic dual along one coordinate.

    With alpha = cost * s(r), s the logistic function, the optimum solves
    r + log_odds + square * cost * s(r) = 0, where `log_odds` is the pair's without this variable
    (Yu, Huang and Lin 2011, doi:10.1007/s10994-010-5221-8).
    """
    ceiling = square * cost
    low, high = -log_odds - ceiling, -log_odds  # the gap has opposite signs there
    r = math.log((alpha + 1e-9) / (cost - alpha + 1e-9)) if alpha > 0.0 else min(-log_odds, 0.0)
    r = min(max(r, low), high)
    for _ in range(_MAX_STEPS):
        share = 1.0 / (1.0 + np.exp(-r))  # of numpy: infinite, not an error, without the compiler
        gap = r + log_odds + ceiling * share
        if gap > 0.0:
            high = r
        else:
            low = r
        r -= gap / (1.0 + ceiling * share * (1.0 - share))
        if not low <= r <= high:
            r = 0.5 * (low + high)
        if abs(gap) < _SMALLEST_GAP:
            break
    return cost / (1.0 + np.exp(-r))


@inlined
def begin_class(vectors, pairs, c, scratch):
    """Set the dual variables of a class's pairs to 0 and compute their squared norms."""
    for k in range(pairs.starts[c + 1] - pairs.starts[c]):
        row = pairs.ids[pairs.starts[c] + k] // pairs.n_columns
        square = 1.0
        for j in range(vectors.indptr[row], vectors.indptr[row + 1]):
            square += np.float64(vectors.weights[j] * vectors.weights[j])
        scratch.squared_norms[k] = square
        scratch.alphas[k] = 0.0
        scratch.resting[k] = False


@inlined
def fit_class(vectors, pairs, log_odds, solver, c, scratch):
    """Fit the weights of one class into `scratch.dense`; returns its bias.

    Minimises 1/2 |w|^2 + 1/2 b^2 + cost * sum log(1 + exp(-y (log_odds + w.x + b))) by dual
    coordinate descent. A pair whose dual variable hardly moves rests for the next pass.
    """
    alphas, squares, resting, weights = scratch
    start, n_columns = pairs.starts[c], pairs.n_columns
    begin_class(vectors, pairs, c, scratch)
    bias = 0.0
    for _ in range(solver.max_passes):
        largest = 0.0
        for k in range(pairs.starts[c + 1] - start):
            if resting[k]:
                resting[k] = False
                continue
            pair = pairs.ids[start + k]
            row = pair // n_columns
            target = 1.0 if pair == row * n_columns else -1.0
            first, last = vectors.indptr[row], vectors.indptr[row + 1]
            score = np.float64(log_odds[pair]) + bias
            for j in range(first, last):
                score += vectors.weights[j] * weights[vectors.indices[j]]
            alpha = solve_dual(
                alphas[k], target * score - squares[k] * alphas[k], squares[k], solver.cost
            )
            step = target * (alpha - alphas[k])
            largest = max(largest, abs(step))
            resting[k] = abs(step) < _RESTING_SHARE * solver.tolerance
            if step != 0.0:
                alphas[k] = alpha
                bias += step
                for j in range(first, last):
                    weights[vectors.indices[j]] += step * vectors.weights[j]
        if largest < solver.tolerance:
            break
    return bias


@subroutine
def has_documents(pairs, c):
    """Return whether a class is the true class of one of its pairs."""
    for p in range(pairs.starts[c], pairs.starts[c + 1]):
        if pairs.ids[p] % pairs.n_columns == 0:
            return True
    return False


@kernel
def fit_class_residuals(vectors, pairs, log_odds, solver, block, scratch, rows):
    """Fit the classes of the block, as far as `rows` has capacity; returns the next class.

    A class that is no document's true class learns nothing. Weights below the smallest are dropped.
    """
    size, weights = np.int64(0), scratch.dense
    for c in range(block.first, block.last):
        if size + len(weights) > len(rows.indices):
            return c
        rows.sizes[c] = 0
        rows.biases[c] = 0.0
        if not has_documents(pairs, c):
            continue
        rows.biases[c] = fit_class(vectors, pairs, log_odds, solver, c, scratch)
        start = size
        for p in range(pairs.starts[c], pairs.starts[c + 1]):
            row = pairs.ids[p] // pairs.n_columns
            for j in range(vectors.indptr[row], vectors.indptr[row + 1]):
                term = vectors.indices[j]
                weight = weights[term]
                weights[term] = 0.0
                if weight == 0.0 or abs(weight) < solver.smallest_weight:
                    continue
                rows.indices[size] = term
                rows.weights[size] = weight
                size += 1
        sort_together(rows.indices, rows.weights, start, size)
        rows.sizes[c] = size - start
    return block.last
