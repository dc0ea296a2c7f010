"""Exponential and logarithm of arrays, with the same bits on every machine.

Those of numpy have other code where vectors are wide (AVX-512), which rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._kernels import elementary


def exp(values: ArrayLike) -> NDArray[np.float64]:
    """Return e to the power of each value, in an array of the same shape."""
    return _apply(elementary.fill_exp, values)


def log(values: ArrayLike) -> NDArray[np.float64]:
    """Return the natural logarithm of each value; -inf of 0."""
    return _apply(elementary.fill_log, values)


def _apply(fill: Callable[..., None], values: ArrayLike) -> NDArray[np.float64]:
    """Fill an array with what a kernel makes of values of 64 bits."""
    given = np.ascontiguousarray(values, np.float64)
    results = np.empty(given.size)
    fill(given.reshape(-1), results)
    return results.reshape(np.shape(values))
