"""Newton's method for convex functions of few variables.

In: a function that gives value, gradient and Hessian. Out: where it is lowest. Sums and solves are
our own, in a fixed order, so that the bits depend on the function alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from longtail._kernels.linear_algebra import solve_definite
from longtail.sparse import Floats, Integers

_TOLERANCE = 1e-12  # of the value; the step that would lower it by less is the last one

_SMALLEST_SHARE = 1e-4  # of the decrease that a step promises

_MAX_STEPS = 100  # ten are the rule


class NotDefiniteError(ArithmeticError):
    """The Hessian is not positive definite: the data do not say where the minimum is."""


class Objective(NamedTuple):
    """A convex function at one point: its value, gradient and Hessian (the lower triangle)."""

    value: float
    gradient: Floats
    hessian: Floats


def minimise(
    objective: Callable[[Floats], Objective], start: Floats, bounds: Floats | None = None
) -> Floats:
    """Minimise a strongly convex function, whose values are positive, inside a box.

    The projected Newton method (Bertsekas 1982, doi:10.1137/0320018): variables whose bound stops
    them rest, the others take Newton's step; a step that overshoots is halved.

    Parameters
    ----------
    objective : callable
        Gives an `Objective` for a point.
    start : ndarray of shape (n,), float64
        Where to begin.
    bounds : ndarray of shape (n, 2), float64, optional
        Lowest and highest value of each variable.

    Returns
    -------
    ndarray of shape (n,), float64
        The value is a part in 10^12 above the lowest at most.

    Raises
    ------
    NotDefiniteError
        Where a Hessian is not positive definite, or the function has no value.
    """
    low, high = (-np.inf, np.inf) if bounds is None else bounds.T
    point = np.clip(start, low, high)
    here = objective(point)
    for _ in range(_MAX_STEPS):
        rests = ((point <= low) & (here.gradient > 0.0)) | ((point >= high) & (here.gradient < 0.0))
        step = _newton_step(here, np.flatnonzero(~rests))
        decrease = -_inner(here.gradient, step)  # twice what a quadratic function would lose
        length, there = 1.0, np.clip(point + step, low, high)
        if not decrease > _TOLERANCE * here.value:
            return there
        ahead = objective(there)
        # Where the function bends more than the Hessian knew, the full step may lead too far. The
        # tolerance is for rounding, which alone may lift the value once the step is short.
        while ahead.value > (1.0 + _TOLERANCE) * here.value - _SMALLEST_SHARE * length * decrease:
            length /= 2.0
            there = np.clip(point + length * step, low, high)
            ahead = objective(there)
        point, here = there, ahead
    return point


def _newton_step(here: Objective, free: Integers) -> Floats:
    """Return the step to the minimum of a quadratic function; the other variables rest."""
    matrix, vector = here.hessian[np.ix_(free, free)], -here.gradient[free]
    solution, step = np.empty_like(vector), np.zeros_like(here.gradient)
    if not solve_definite(matrix, vector, np.empty_like(matrix), solution):
        raise NotDefiniteError("the Hessian is not positive definite.")
    step[free] = solution
    return step


def _inner(a: Floats, b: Floats) -> float:
    """Return the inner product."""
    return float((a * b).sum())
