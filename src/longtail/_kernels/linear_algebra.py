"""Small systems of linear equations, summed in a fixed order: LAPACK's depends on the machine."""

from __future__ import annotations

import math

from longtail._kernels.jit import kernel


@kernel
def solve_definite(matrix, vector, factor, solution):
    """Solve `matrix x = vector` by Cholesky's method; returns whether the matrix is definite.

    Of `matrix` (n, n), symmetric and positive definite, only the lower triangle is read. `factor`
    (n, n) is scratch; `solution` (n,) is unchanged where the matrix is not definite.
    """
    n = len(vector)
    for i in range(n):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = value / factor[j, j]
            elif 0.0 < value < math.inf:
                factor[i, i] = math.sqrt(value)
            else:  # also where it is no number
                return False
    for i in range(n):
        value = vector[i]
        for k in range(i):
            value -= factor[i, k] * solution[k]
        solution[i] = value / factor[i, i]
    for i in range(n - 1, -1, -1):
        value = solution[i]
        for k in range(i + 1, n):
            value -= factor[k, i] * solution[k]
        solution[i] = value / factor[i, i]
    return True
