"""Term weights by AdaGrad on a softmax over lists (Duchi, Hazan and Singer 2011)."""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel

_SMALLEST_SHARE = 1e-30  # of the softmax; its logarithm stays finite


@kernel
def step_term_weights(
    indptr, indices, document_ids, costs, contributions, optimizer, scratch, log_weights
):
    """Pass once over documents, lowering the softmax loss of the first column of their rows.

    AdaGrad on the logarithms of the term weights, document by document in the order given. `costs`
    says what the loss of each counts; empty where all count 1. Returns the sum of the losses.
    """
    offsets, values, biases = contributions
    scores, factors = scratch
    n_columns = biases.shape[1]
    loss = 0.0
    for i in range(len(document_ids)):
        cost = costs[i] if len(costs) else 1.0
        first = indptr[document_ids[i]]
        length = indptr[document_ids[i] + 1] - first
        for j in range(length):
            factors[j] = math.exp(log_weights[indices[first + j]])
        highest = -np.inf
        for column in range(n_columns):
            start = offsets[i] + column * length
            score = np.float64(biases[i, column])
            for j in range(length):
                score += values[start + j] * factors[j]
            scores[column] = score
            highest = max(highest, score)
        total = 0.0
        for column in range(n_columns):
            scores[column] = math.exp(scores[column] - highest)
            total += scores[column]
        for column in range(n_columns):
            scores[column] /= total
        loss -= cost * math.log(max(scores[0], _SMALLEST_SHARE))
        scores[0] -= 1.0
        for j in range(length):
            gradient = 0.0
            for column in range(n_columns):
                gradient += scores[column] * values[offsets[i] + column * length + j]
            term = indices[first + j]
            gradient = cost * gradient * factors[j] + optimizer.decay * log_weights[term]
            optimizer.squared_gradients[term] += gradient * gradient
            norm = math.sqrt(optimizer.squared_gradients[term])
            log_weights[term] -= optimizer.learning_rate * gradient / norm
    return loss
