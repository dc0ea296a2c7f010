"""Newton's method in a box, and the small systems of equations that it solves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from longtail._kernels.linear_algebra import solve_definite
from longtail._newton import NotDefiniteError, Objective, minimise


def draw_definite(seed, n):
    factor = np.random.default_rng(seed).normal(size=(n, n))
    return factor @ factor.T + 1e-3 * np.eye(n)


def solve(matrix, right):
    solution = np.full(len(right), np.nan)
    is_definite = solve_definite(matrix, right, np.empty_like(matrix), solution)
    return is_definite, solution


@pytest.mark.parametrize("n", [1, 2, 6, 39])
def test_a_solution_is_lapacks(n):
    matrix, right = draw_definite(n, n), np.arange(1.0, n + 1)
    is_definite, solution = solve(np.tril(matrix), right)  # nothing above the diagonal is read
    assert is_definite
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), rtol=1e-6)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0]],
        [[1.0, 2.0], [2.0, 4.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[np.nan]],
        [[np.inf]],
        [[1.0, np.nan], [np.nan, 1.0]],
    ],
)
def test_a_matrix_that_is_not_definite_is_reported(matrix):
    is_definite, solution = solve(np.array(matrix), np.ones(len(matrix)))
    assert not is_definite
    assert np.isnan(solution).all()


def test_no_equations():
    assert solve(np.empty((0, 0)), np.empty(0))[0]


def quadratic(matrix, centre):
    def objective(point):
        gap = point - centre
        return Objective(1.0 + 0.5 * gap @ matrix @ gap, matrix @ gap, np.tril(matrix))

    return objective


@pytest.mark.parametrize("seed", range(40))
def test_the_minimum_in_a_box_is_scipys(seed):
    rng = np.random.default_rng(seed)
    matrix, centre = draw_definite(seed, 5), rng.normal(size=5)
    bounds = np.sort(rng.normal(size=(5, 2)), axis=1)
    bounds[0], bounds[1, 0] = (-np.inf, np.inf), -np.inf
    objective = quadratic(matrix, centre)
    found = minimise(objective, np.zeros(5), bounds)
    assert np.all((bounds[:, 0] <= found) & (found <= bounds[:, 1]))
    start = np.clip(np.zeros(5), *bounds.T)
    best = minimize(
        lambda point: objective(point)[:2],
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000},
    )
    assert objective(found).value <= best.fun * (1 + 1e-10)
    np.testing.assert_allclose(found, best.x, atol=1e-3)


def test_a_variable_leaves_a_bound_that_does_not_stop_it():
    objective = quadratic(np.array([[2.0, 1.9], [1.9, 2.0]]), np.array([1.0, -1.0]))
    found = minimise(objective, np.array([5.0, 0.5]), np.array([[0.5, 5.0], [0.5, 5.0]]))
    assert found == pytest.approx([0.5, 0.5])  # the first one began at the bound that it leaves
    free = minimise(objective, np.array([5.0, 0.5]), np.array([[-5.0, 5.0], [-5.0, 0.5]]))
    assert free == pytest.approx([1.0, -1.0])


def test_without_a_minimum_it_says_so():
    flat = quadratic(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0]))
    with pytest.raises(NotDefiniteError, match="not positive definite"):
        minimise(flat, np.zeros(2))
    nowhere = Objective(np.nan, np.full(1, np.nan), np.full((1, 1), np.nan))
    with pytest.raises(NotDefiniteError):
        minimise(lambda _: nowhere, np.ones(1))


def test_a_step_that_leads_too_far_is_shortened():
    def objective(weights):
        root = math.sqrt(1.0 + weights[0] ** 2)  # full steps from |w| > 1 lead ever further away
        slope, bend = weights[0] / root + 1e-3 * weights[0], root**-3 + 1e-3
        value = root + 0.5e-3 * weights[0] ** 2
        return Objective(value, np.array([slope]), np.array([[bend]]))

    start = np.array([30.0])
    here = objective(start)
    full = start - np.linalg.solve(here.hessian, here.gradient)
    assert objective(full).value > here.value
    assert abs(minimise(objective, start)[0]) < 1e-5
