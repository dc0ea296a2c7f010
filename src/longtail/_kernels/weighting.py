"""Document vectors: tf-idf weights of length 1, and query pruning."""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel, subroutine
from longtail._kernels.sorting import sort_keys
from longtail._kernels.statistics import term_frequency


@kernel
def weight_rows(counts, term_weights, block, weights, totals):
    """Fill the length-normalised weights of the rows of the block, and their sums."""
    indptr, indices, data = counts
    sublinear = np.bool_(True)  # a plain True would be compiled for itself
    for row in range(block.first, block.last):
        squares = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            weight = term_frequency(data[j], sublinear) * term_weights[indices[j]]
            squares += weight * weight
        scale = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            weights[j] = term_frequency(data[j], sublinear) * term_weights[indices[j]] * scale
            total += np.float64(weights[j])
        totals[row] = total


@subroutine
def document_norm(indices, data, start, stop, idf, sublinear):
    """Return the length of the tf-idf weighted document."""
    squares = 0.0
    for j in range(start, stop):
        weight = term_frequency(data[j], sublinear) * idf[indices[j]]
        squares += weight * weight
    return math.sqrt(squares)


@kernel
def weight_for_cosine(counts, idf, sublinear, block, weights):
    """Fill the term frequencies of the rows of the block, divided by the row's length."""
    for row in range(block.first, block.last):
        start, stop = counts.indptr[row], counts.indptr[row + 1]
        norm = document_norm(counts.indices, counts.data, start, stop, idf, sublinear)
        for j in range(start, stop):
            weights[j] = term_frequency(counts.data[j], sublinear) / norm


@kernel
def prune_queries(vectors, document_ids, class_frequencies, budget, keys, weights, totals):
    """Copy the weights of each document's rarest terms, 0 for the others; and their sums.

    Kept are as many as have together no more than `budget` postings, and at least one. `keys` is
    scratch for the longest document.
    """
    indptr, indices = vectors.indptr, vectors.indices
    for row in document_ids:
        start = indptr[row]
        length = indptr[row + 1] - start
        for j in range(length):  # ties in the order of terms
            keys[j] = (np.int64(class_frequencies[indices[start + j]]) << 32) + j
        sort_keys(keys, np.int64(0), length)
        left, last_kept = budget, np.int64(-1)
        for n in range(length):
            n_postings = keys[n] >> 32
            if n > 0 and n_postings > left:
                break
            left -= n_postings
            last_kept = keys[n]
        totals[row] = 0.0
        for j in range(length):
            weights[start + j] = 0.0
            if (np.int64(class_frequencies[indices[start + j]]) << 32) + j <= last_kept:
                weights[start + j] = vectors.weights[start + j]
                totals[row] += vectors.weights[start + j]
