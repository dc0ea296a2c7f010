"""The softmax loss over lists: a label, then its negatives (ListNet, Cao et al. 2007).

Its gradient and Hessian, for feature weights and the mixture, summed list by list in their order:
BLAS would sum in another order on another machine. Term weights by AdaGrad (Duchi, Hazan and Singer
2011).
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.elementary import exp, log
from longtail._kernels.features import bend
from longtail._kernels.jit import inlined, kernel

_SMALLEST_SHARE = 1e-30  # of the softmax; its logarithm stays finite


@inlined
def add_list(weight, scratch, sums):
    """Add the gradient and the lower triangle of the Hessian of one list; returns its loss.

    `scratch` has its scores, and its features less those of the label, in row 0; both are
    overwritten.
    """
    features, scores, mean = scratch
    n_columns, n_features = features.shape
    highest = scores[0]
    for column in range(1, n_columns):
        highest = max(highest, scores[column])
    loss, total = highest - scores[0], 0.0
    for column in range(n_columns):
        scores[column] = exp(scores[column] - highest)
        total += scores[column]
    for a in range(n_features):
        mean[a] = 0.0
    for column in range(n_columns):
        share = scores[column] / total
        for a in range(n_features):
            mean[a] += share * features[column, a]
    for a in range(n_features):
        sums.gradient[a] += weight * mean[a]
    for column in range(n_columns):
        # The covariance of the features: without the mean, nothing is left of what is the same.
        share = weight * scores[column] / total
        for a in range(n_features):
            features[column, a] -= mean[a]
        for a in range(n_features):
            factor = share * features[column, a]
            for b in range(a + 1):
                sums.hessian[a, b] += factor * features[column, b]
    return weight * (loss + log(total))


@kernel
def sum_feature_losses(features, list_weights, scales, weights, scratch, sums):
    """Add up the losses of lists by weighted features, each divided by its scale.

    The true class is in column 0; `list_weights` says what each list counts. Returns the loss.
    """
    n_lists, n_columns, n_features = features.shape
    loss = 0.0
    for i in range(n_lists):
        for column in range(n_columns):
            score = 0.0
            for a in range(n_features):
                value = (features[i, column, a] - features[i, 0, a]) / scales[a]
                scratch.features[column, a] = value
                score += weights[a] * value
            scratch.scores[column] = score
        loss += add_list(list_weights[i], scratch, sums)
    return loss


@kernel
def sum_mixture_losses(parts, lists, coordinates, changes, scratch, sums):
    """Add up the losses of lists by the scores of their pairs and changes to the mixture.

    A change counts for one part of the score, times what its row depends on (`bend`). Returns the
    loss.
    """
    rows, columns, weights = lists
    size_rows, part_ids, scales = coordinates
    n_changes = len(changes)
    loss = 0.0
    for i in range(len(rows)):
        row = rows[i]
        for k in range(columns.shape[1]):
            column = columns[i, k]
            score, log_size = parts.scores[row, column], parts.log_sizes[row, column]
            for a in range(n_changes):
                j = part_ids[a]
                value = parts.values[row, column, j] / scales[j] * bend(log_size, size_rows[a])
                if k > 0:  # less the label's
                    value -= scratch.features[0, a]
                    score += changes[a] * value
                scratch.features[k, a] = value
            scratch.scores[k] = score
        for a in range(n_changes):  # the label's last: the others need it
            scratch.features[0, a] = 0.0
        loss += add_list(weights[i], scratch, sums)
    return loss


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
            factors[j] = exp(log_weights[indices[first + j]])
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
            scores[column] = exp(scores[column] - highest)
            total += scores[column]
        for column in range(n_columns):
            scores[column] /= total
        loss -= cost * log(max(scores[0], _SMALLEST_SHARE))
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
