"""Weights of each class, learned on its own documents and on those that have it as a candidate.

Pairs are numbered row by row: pair `row * width + column`. A class's pairs are listed in `pairs`
from `starts[c]` on; column 0 of a row is the document's own class.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel, part
from longtail._kernels.sorting import sort_together

# Newton's method for one dual variable, in a bracket: alone it cycles where the cost is large. Two
# or three steps are the rule; what is left of the gap the next pass mends.
_MOST_STEPS = 30
_SMALLEST_GAP = 1e-3


@kernel
def fill_log_odds(scores, first, last, offsets):
    """Fill each pair's log odds among its row: its score minus the log-sum-exp of the others."""
    width = scores.shape[1]
    for row in range(first, last):
        for column in range(width):
            highest = -np.inf
            for other in range(width):
                if other != column:
                    highest = max(highest, scores[row, other])
            total = 0.0
            for other in range(width):
                if other != column:
                    total += math.exp(scores[row, other] - highest)
            offsets[row, column] = scores[row, column] - highest - math.log(total)


@kernel
def solve_dual(alpha, log_odds, square, cost):
    """Return the dual variable in [0, cost] that minimises the logistic dual along one coordinate.

    With alpha = cost * s(r), s the logistic function, the optimum solves
    r + log_odds + square * cost * s(r) = 0, where `log_odds` is the pair's own without this
    variable.
    """
    ceiling = square * cost
    low, high = -log_odds - ceiling, -log_odds  # the gap has opposite signs there
    r = math.log((alpha + 1e-9) / (cost - alpha + 1e-9)) if alpha > 0.0 else min(-log_odds, 0.0)
    r = min(max(r, low), high)
    for _ in range(_MOST_STEPS):
        share = 1.0 / (1.0 + math.exp(-r))
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
    return cost / (1.0 + math.exp(-r))


@part
def fit_class(
    indptr,
    indices,
    weights,
    width,
    start,
    stop,
    pairs,
    offsets,
    cost,
    tolerance,
    most_passes,
    alphas,
    squares,
    resting,
    buffer,
):
    """Fit the weights of one class into `buffer` (all zero before); returns its constant.

    Minimises 1/2 |w|^2 + 1/2 b^2 + cost * sum log(1 + exp(-y (offset + w.x + b))) by dual
    coordinate descent. A pair whose dual variable moves less than a tenth of the tolerance rests
    for the next pass. The class's pairs are those from `start` to `stop - 1`.
    """
    for k in range(stop - start):
        row = pairs[start + k] // width
        square = 1.0
        for j in range(indptr[row], indptr[row + 1]):
            square += weights[j] * weights[j]
        squares[k] = square
        alphas[k] = 0.0
        resting[k] = False
    constant = 0.0
    for _ in range(most_passes):
        largest = 0.0
        for k in range(stop - start):
            if resting[k]:
                resting[k] = False
                continue
            pair = pairs[start + k]
            row = pair // width
            sign = 1.0 if pair == row * width else -1.0
            score = offsets[pair] + constant
            for j in range(indptr[row], indptr[row + 1]):
                score += weights[j] * buffer[indices[j]]
            alpha = solve_dual(alphas[k], sign * score - squares[k] * alphas[k], squares[k], cost)
            step = sign * (alpha - alphas[k])
            largest = max(largest, abs(step))
            resting[k] = abs(step) < 0.1 * tolerance
            if step != 0.0:
                alphas[k] = alpha
                constant += step
                for j in range(indptr[row], indptr[row + 1]):
                    buffer[indices[j]] += step * weights[j]
        if largest < tolerance:
            break
    return constant


@kernel
def fit_class_residuals(
    indptr,
    indices,
    weights,
    width,
    starts,
    pairs,
    offsets,
    cost,
    tolerance,
    most_passes,
    smallest_weight,
    first,
    last,
    size,
    alphas,
    squares,
    resting,
    buffer,
    terms,
    values,
    sizes,
    constants,
):
    """Fit the classes `first` to `last - 1`, as far as there is room; returns the next class.

    A class none of whose pairs is a document's own learns nothing. Weights below `smallest_weight`
    are dropped; the others follow the first `size` of `terms` and `values`. Scratch: `alphas`,
    `squares` and `resting`, as long as the longest list of pairs, and `buffer` (n_terms,), all 0.
    """
    for c in range(first, last):
        if size + len(buffer) > len(terms):
            return c
        sizes[c] = 0
        constants[c] = 0.0
        n_own = 0
        for place in range(starts[c], starts[c + 1]):
            if pairs[place] % width == 0:
                n_own += 1
        if n_own == 0:
            continue
        constants[c] = fit_class(
            indptr,
            indices,
            weights,
            width,
            starts[c],
            starts[c + 1],
            pairs,
            offsets,
            cost,
            tolerance,
            most_passes,
            alphas,
            squares,
            resting,
            buffer,
        )
        start = size
        for place in range(starts[c], starts[c + 1]):
            row = pairs[place] // width
            for j in range(indptr[row], indptr[row + 1]):
                term = indices[j]
                value = buffer[term]
                buffer[term] = 0.0
                if value == 0.0 or abs(value) < smallest_weight:
                    continue
                terms[size] = term
                values[size] = value
                size += 1
        sort_together(terms, values, start, size)
        sizes[c] = size - start
    return last
