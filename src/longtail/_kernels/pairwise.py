"""The squared hinge loss of pairs, with its gradient and its Hessian, in sums over chunks.

A pair is a row of `differences`, true class minus adversary. Sums over a chunk depend on its pairs
alone, and the caller adds the chunks in their order: the same bits for any number of threads.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import allocating_kernel


@allocating_kernel
def sum_losses(differences, factors, weights, chunk_size, block, sums):
    """Add up the chunks of the block, from zero, over pairs x = difference * factors.

    With m = 1 - weights @ x, over the pairs whose m is positive: m^2, its half gradient -m x, and
    its half Hessian x x^T, of which only the lower triangle is filled.
    """
    n_pairs, n_features = differences.shape
    x = np.empty(n_features)
    for c in range(block.first, block.last):
        loss = 0.0
        gradient, hessian = sums.gradients[c], sums.hessians[c]
        for i in range(c * chunk_size, min((c + 1) * chunk_size, n_pairs)):
            missing = 1.0
            for j in range(n_features):
                x[j] = differences[i, j] * factors[j]
                missing -= weights[j] * x[j]
            if missing > 0.0:
                loss += missing * missing
                for j in range(n_features):
                    gradient[j] -= missing * x[j]
                    value = x[j]
                    for k in range(j + 1):
                        hessian[j, k] += value * x[k]
        sums.losses[c] = loss
