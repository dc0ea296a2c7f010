"""l1-regularised logistic regression on the columns of a node's documents."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.random import random_bits
from longtail_bench._kernels.types import Array

_ARMIJO = 0.01  # share of the predicted decrease that a step must reach
_MAX_HALVINGS = 20
_MIN_CURVATURE = 1e-12


class Columns(NamedTuple):
    """A matrix by columns: row and value of each entry."""

    starts: Array
    rows: Array
    values: Array


class Stopping(NamedTuple):
    """When a separator is good enough."""

    tolerance: float
    max_steps: int
    max_passes: int


class QuadraticModel(NamedTuple):
    """A Newton step's model of the objective.

    columns                  those that may change come first
    gradients, curvatures    of the loss by each weight
    first, second            derivatives of each document's loss by its margin
    weights, targets         now, and at the model's optimum so far
    margins, moves           now, and the change that the targets make
    """

    columns: Array
    gradients: Array
    curvatures: Array
    first: Array
    second: Array
    weights: Array
    targets: Array
    margins: Array
    moves: Array


@inner
def fill_derivatives(model, sides, costs):
    """Fill the first and second derivative of each document's logistic loss by its margin."""
    for i in range(len(model.margins)):
        share = 1.0 / (1.0 + math.exp(-model.margins[i]))
        model.first[i] = costs[sides[i]] * (share - sides[i])
        model.second[i] = costs[sides[i]] * share * (1.0 - share)


@inner
def logistic_rise(model, step, sides, costs):
    """Return by how much the logistic loss rises when the margins move by `step * moves`."""
    rise = 0.0
    for i in range(len(model.margins)):
        direction = 1.0 if sides[i] == 1 else -1.0
        before = -direction * model.margins[i]
        after = -direction * (model.margins[i] + step * model.moves[i])
        loss = max(after, 0.0) + math.log1p(math.exp(-abs(after)))
        loss -= max(before, 0.0) + math.log1p(math.exp(-abs(before)))
        rise += costs[sides[i]] * loss
    return rise


@inner
def violation(weight, gradient):
    """Return how far zero is from the subgradient of |weight| + loss."""
    if weight > 0.0:
        return abs(gradient + 1.0)
    if weight < 0.0:
        return abs(gradient - 1.0)
    return max(0.0, abs(gradient) - 1.0)


@inner
def deactivate(columns, k, n_active):
    """Put a column at zero, far from leaving it, behind the active ones; returns their number."""
    n_active -= 1
    columns[k], columns[n_active] = columns[n_active], columns[k]
    return n_active


@inner
def soft_step(gradient, curvature, target):
    """Return the step to the minimum of one weight's quadratic model, at most 10 long."""
    if gradient + 1.0 < curvature * target:
        step = -(gradient + 1.0) / curvature
    elif gradient - 1.0 > curvature * target:
        step = -(gradient - 1.0) / curvature
    else:
        step = -target
    return min(max(step, -10.0), 10.0)


@inner
def sweep_columns(matrix, model, largest_before, n_active):
    """One pass of coordinate descent over the quadratic model; returns violations and columns left.

    A column at zero that is far from leaving it is put behind the active ones.
    """
    columns, targets, moves = model.columns, model.targets, model.moves
    total, largest = 0.0, 0.0
    threshold = 1.0 - largest_before / len(moves)
    k = 0
    while k < n_active:
        j = columns[k]
        gradient = model.gradients[j] + (targets[j] - model.weights[j]) * _MIN_CURVATURE
        for entry in range(matrix.starts[j], matrix.starts[j + 1]):
            row = matrix.rows[entry]
            gradient += matrix.values[entry] * model.second[row] * moves[row]
        if targets[j] == 0.0 and abs(gradient) < threshold:
            n_active = deactivate(columns, k, n_active)
            continue
        k += 1
        away = violation(targets[j], gradient)
        total += away
        largest = max(largest, away)
        step = soft_step(gradient, model.curvatures[j], targets[j])
        if abs(step) < 1e-12:
            continue
        targets[j] += step
        for entry in range(matrix.starts[j], matrix.starts[j + 1]):
            moves[matrix.rows[entry]] += matrix.values[entry] * step
    return total, largest, n_active


@inner
def fill_gradients(matrix, model, largest_before):
    """Fill both derivatives of the loss by each weight; returns violations and columns left.

    A column at zero that is far from leaving it is put behind the active ones.
    """
    columns = model.columns
    total, largest, n_active = 0.0, 0.0, len(columns)
    threshold = 1.0 - largest_before / len(model.first)
    k = 0
    while k < n_active:
        j = columns[k]
        gradient, curvature = 0.0, _MIN_CURVATURE
        for entry in range(matrix.starts[j], matrix.starts[j + 1]):
            row, value = matrix.rows[entry], matrix.values[entry]
            gradient += value * model.first[row]
            curvature += value * value * model.second[row]
        model.gradients[j], model.curvatures[j] = gradient, curvature
        if model.weights[j] == 0.0 and abs(gradient) < threshold:
            n_active = deactivate(columns, k, n_active)
            continue
        away = violation(model.weights[j], gradient)
        total += away
        largest = max(largest, away)
        k += 1
    return total, largest, n_active


@inner
def shuffle(seed, node, draw, columns):
    """Put the columns into a random order, with draws `draw`, `draw + 1` and so on."""
    for k in range(len(columns)):
        rest = np.uint64(len(columns) - k)
        other = k + np.int64(random_bits(seed, node, draw + k) % rest)
        columns[k], columns[other] = columns[other], columns[k]


@inner
def move_weights(model, n_active, sides, costs):
    """Move weights and margins towards the targets as far as the objective falls enough."""
    weights, targets = model.weights, model.targets
    slope = 0.0
    for j in model.columns[:n_active]:
        slope += model.gradients[j] * (targets[j] - weights[j])
        slope += abs(targets[j]) - abs(weights[j])
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        rise = logistic_rise(model, step, sides, costs)
        for j in model.columns[:n_active]:
            rise += abs(weights[j] + step * (targets[j] - weights[j])) - abs(weights[j])
        if rise <= _ARMIJO * step * slope:
            for j in model.columns[:n_active]:
                weights[j] += step * (targets[j] - weights[j])
                targets[j] = weights[j]
            for i in range(len(model.margins)):
                model.margins[i] += step * model.moves[i]
            return True
        step *= 0.5
    return False


@kernel
def fit_separator(matrix, sides, costs, seed, node, stopping, weights):
    """Fit l1-regularised logistic regression into `weights` (all zero before).

    Minimises |w|_1 + sum_i cost_i log(1 + exp(-sign_i w.x_i)), the matrix given by columns, the
    sign being that of `sides` (0 or 1) and the cost that of its side. Newton steps whose quadratic
    model is minimised by coordinate descent, with a line search and with columns at zero left out
    while they stay there (Yuan, Ho and Lin 2012, newGLMNET). Stops where the violations fall below
    `tolerance` times those at zero.
    """
    n_documents, n_columns = len(sides), len(weights)
    model = QuadraticModel(
        np.arange(n_columns),
        np.zeros(n_columns),
        np.empty(n_columns),
        np.empty(n_documents),
        np.empty(n_documents),
        weights,
        np.zeros(n_columns),
        np.zeros(n_documents),
        np.zeros(n_documents),
    )
    first_total, largest, inner_tolerance, draw = 0.0, np.inf, 1.0, 0
    for step in range(stopping.max_steps):
        fill_derivatives(model, sides, costs)
        total, largest, n_active = fill_gradients(matrix, model, largest)
        if step == 0:
            first_total = total
        if total <= stopping.tolerance * first_total:
            break
        model.moves[:] = 0.0
        n_left, inner_largest, n_passes = n_active, np.inf, 0
        while n_passes < stopping.max_passes:
            shuffle(seed, node, draw, model.columns[:n_left])
            draw += n_left
            total, inner_largest, n_left = sweep_columns(matrix, model, inner_largest, n_left)
            n_passes += 1
            if total <= inner_tolerance * first_total:
                if n_left == n_active:
                    break
                n_left, inner_largest = n_active, np.inf  # look once more at those left out
        if not move_weights(model, n_active, sides, costs):
            break
        if n_passes == 1:
            inner_tolerance *= 0.25  # one pass was enough: ask more of the next
