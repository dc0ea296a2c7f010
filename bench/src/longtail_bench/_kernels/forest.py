"""Trees followed from the root to a leaf, and the classes of the leaves ranked."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.fastxml import sort_documents, split_documents
from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.ranking import keep_best
from longtail_bench._kernels.types import Array


class Centroids(NamedTuple):
    """Mean document of each class, CSR, with squared lengths, and the weights of PfastReXML."""

    indptr: Array
    indices: Array
    data: Array
    squares: Array
    alpha: float
    gamma: float


@kernel
def follow_tree(rows, tree, root, first, last, leaves):
    """Fill the leaf that each of the documents `first` to `last - 1` reaches, beginning at 0.

    Documents go down together, so that a node's weights are spread out once for all of them.
    """
    dense = np.zeros(rows.n_terms + 1, np.float32)
    order = np.arange(first, last)
    sides = np.empty(last - first, np.int8)
    # What waits is not empty and shares no document, so there is never more than one for each.
    waiting = np.empty((max(1, last - first), 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, 0, last - first
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node, low, high = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        if tree.children[node, 0] < 0:
            for k in range(low, high):
                leaves[order[k] - first] = node
            continue
        for j in range(tree.starts[node], tree.starts[node + 1]):
            dense[tree.ids[j]] = tree.values[j]
        split_documents(rows, dense, order[low:high], sides)
        for j in range(tree.starts[node], tree.starts[node + 1]):
            dense[tree.ids[j]] = 0.0
        middle = low + sort_documents(sides, order[low:high])
        for child in range(2):
            begin, end = (low, middle) if child == 0 else (middle, high)
            if begin < end:
                waiting[n_waiting, 0] = tree.children[node, child]
                waiting[n_waiting, 1], waiting[n_waiting, 2] = begin, end
                n_waiting += 1


@inner
def add_leaves(tree, leaves, sums, present):
    """Add the class shares of the leaves of one document; returns how many classes they hold.

    `sums` is zero before; the caller resets it at the classes listed in `present`.
    """
    n_present = 0
    for node in leaves:
        for j in range(tree.starts[node], tree.starts[node + 1]):
            c = tree.ids[j]
            if sums[c] == 0.0:
                present[n_present] = c
                n_present += 1
            sums[c] += tree.values[j]
    return n_present


@kernel
def rank_leaves(tree, leaves, n_classes, first, last, ranked):
    """Fill the best classes of documents `first` to `last - 1` by mean share over the trees.

    `leaves` has a row for each tree and begins with document `first`. Where the leaves hold too few
    classes, the others follow in class order with score zero.
    """
    sums, present = np.zeros(n_classes), np.empty(n_classes, np.int32)
    for row in range(first, last):
        classes, scores = ranked.classes[row], ranked.scores[row]
        n_present = add_leaves(tree, leaves[:, row - first], sums, present)
        n_kept = 0
        for k in range(n_present):
            c = present[k]
            n_kept = keep_best(sums[c] / len(leaves), c, n_kept, scores, classes)
        fill_missing(sums, n_kept, 0.0, classes, scores)
        for k in range(n_present):
            sums[present[k]] = 0.0


@inner
def fill_missing(sums, n_kept, score, classes, scores):
    """Append the first classes that no leaf holds, until the row is full."""
    c = 0
    while n_kept < len(classes):
        if sums[c] == 0.0:
            classes[n_kept], scores[n_kept] = c, score
            n_kept += 1
        c += 1


@kernel
def rerank_leaves(rows, tree, leaves, centroids, first, last, ranked):
    """Fill the best classes by alpha log(tree share) + (1 - alpha) log(centroid likelihood).

    The likelihood of class c is 1 / (1 + exp(gamma / 2 |x - centroid|^2)). Classes that no leaf
    holds have score -inf and follow in class order.
    """
    n_classes, alpha = len(centroids.squares), centroids.alpha
    sums, present = np.zeros(n_classes), np.empty(n_classes, np.int32)
    dense = np.zeros(rows.n_terms, np.float32)
    for row in range(first, last):
        classes, scores = ranked.classes[row], ranked.scores[row]
        n_present = add_leaves(tree, leaves[:, row - first], sums, present)
        square = 0.0
        for j in range(rows.indptr[row], rows.indptr[row + 1]):
            dense[rows.indices[j]] = rows.data[j]
            square += rows.data[j] * rows.data[j]
        n_kept = 0
        for k in range(n_present):
            c = present[k]
            product = 0.0
            for j in range(centroids.indptr[c], centroids.indptr[c + 1]):
                product += centroids.data[j] * dense[centroids.indices[j]]
            distance = max(0.0, square + centroids.squares[c] - 2.0 * product)
            half = 0.5 * centroids.gamma * distance
            likelihood = -half - math.log1p(math.exp(-half))
            score = alpha * math.log(sums[c] / len(leaves)) + (1.0 - alpha) * likelihood
            n_kept = keep_best(score, c, n_kept, scores, classes)
        fill_missing(sums, n_kept, -np.inf, classes, scores)
        for k in range(n_present):
            sums[present[k]] = 0.0
        for j in range(rows.indptr[row], rows.indptr[row + 1]):
            dense[rows.indices[j]] = 0.0
