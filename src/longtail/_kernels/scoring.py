"""The linear score of (document, class) pairs, alone or with residuals.

    score(x, c) = bias_c + length_weight_c * sum_t x_t + sum_t x_t * weight_ct

There are two ways through the pairs, which add the same numbers in the same order. `score_pairs`
goes pair by pair: it reads each class's row and looks its terms up in a small hash table of the
document, or, where a row is long, searches it for the terms of the document.
`score_pairs_by_class` goes class by class: a row is spread out over all terms once, and each of its
documents finds its terms there; much faster where a class has many documents.

With `Rescoring` both give two scores in one pass over documents and classes: that of the (pruned)
vectors, and that of all weights with the residuals of the class. Without, its arrays are empty.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import inlined, kernel, subroutine
from longtail._kernels.sorting import find_term, seek_term

# Entries of a row that are read in the time of one search in it (about 1 and 50 ns).
_ENTRIES_PER_SEARCH = 32


@inlined
def linear_score(biases, length_weights, c, total, product):
    """Return the score of a document with this sum of weights and this product with the class."""
    return biases[c] + total * length_weights[c] + product


@subroutine
def enter_terms(indices, slots):
    """Enter the terms of a document in a hash table: each one's position plus 1, 0 where none is.

    The number of slots is a power of two, and well above that of terms; a taken slot sends on to
    the next.
    """
    mask = np.uint64(len(slots) - 1)
    for j in range(len(indices)):
        slot = np.uint64(indices[j]) & mask
        while slots[slot] > 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = j + 1


@subroutine
def clear_terms(indices, slots):
    """Empty the hash table again."""
    mask = np.uint64(len(slots) - 1)
    for j in range(len(indices)):
        slot = np.uint64(indices[j]) & mask
        while slots[slot] > 0:
            slots[slot] = 0
            slot = (slot + np.uint64(1)) & mask


@subroutine
def find_position(term, indices, slots):
    """Return the position of a term in a document; -1 where it is not there."""
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(term) & mask
    while slots[slot] > 0:
        position = slots[slot] - 1
        if indices[position] == term:
            return np.int64(position)
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1)


@subroutine
def find_products(indices, weights, full_weights, slots, row_indices, row_weights, bounds):
    """Return the products of a document's weights, and of its full weights, with a class's row.

    Sums over shared terms of the row's entries within the bounds, in the order of terms. Without
    full weights (an empty array) the second is 0.
    """
    product, full_product = 0.0, 0.0
    low, high = bounds
    if high - low <= _ENTRIES_PER_SEARCH * len(indices):
        for entry in range(low, high):
            j = find_position(row_indices[entry], indices, slots)
            if j >= 0:
                product += np.float64(weights[j]) * row_weights[entry]
                if len(full_weights) > 0:
                    full_product += np.float64(full_weights[j]) * row_weights[entry]
        return product, full_product
    for j in range(len(indices)):
        low = seek_term(row_indices, low, high, indices[j])
        if low == high:
            break
        if row_indices[low] == indices[j]:
            product += np.float64(weights[j]) * row_weights[low]
            if len(full_weights) > 0:
                full_product += np.float64(full_weights[j]) * row_weights[low]
    return product, full_product


@kernel
def score_pairs(vectors, document_ids, classes, scorer, rescoring, block, slots, outputs):
    """Fill the score, or both scores, of each document with each class of its row.

    -1 is no class, which scores -inf. `slots`, scratch, is all 0 before and after: `enter_terms`.
    """
    # Tuples are read once: each reading copies all that they hold, which takes time to compile.
    indptr, all_indices, all_weights, totals = vectors
    row_starts, row_indices, row_weights, length_weights, biases = scorer
    all_full_weights, residual_inputs, full_totals, starts, terms, residuals, offsets = rescoring
    scores, rescored = outputs
    rescores = len(offsets) > 0  # with None instead, all of this would be compiled twice
    for i in range(block.first, block.last):
        row = document_ids[i]
        entries = slice(indptr[row], indptr[row + 1])
        indices, weights = all_indices[entries], all_weights[entries]
        full_weights = all_full_weights[entries]
        enter_terms(indices, slots)
        for column in range(classes.shape[1]):
            c = classes[i, column]
            if c < 0:
                scores[i, column] = -np.inf
                if rescores:
                    rescored[i, column] = -np.inf
                continue
            bounds = row_starts[c], row_starts[c + 1]
            product, full_product = find_products(
                indices, weights, full_weights, slots, row_indices, row_weights, bounds
            )
            scores[i, column] = linear_score(biases, length_weights, c, totals[row], product)
            if rescores:
                inputs, bounds = residual_inputs[entries], (starts[c], starts[c + 1])
                residual, _ = find_products(
                    indices, inputs, weights[:0], slots, terms, residuals, bounds
                )
                total = full_totals[row]
                score = linear_score(biases, length_weights, c, total, full_product)
                rescored[i, column] = score + (offsets[c] + residual)
        clear_terms(indices, slots)


@subroutine
def spread_row(indices, weights, low, high, stride, dense):
    """Spread a class's row out over all terms."""
    for j in range(low, high):
        dense[stride * indices[j]] = weights[j]


@subroutine
def clear_row(indices, low, high, stride, dense):
    """Undo `spread_row`."""
    for j in range(low, high):
        dense[stride * indices[j]] = 0


@subroutine
def read_products(indices, weights, full_weights, residual_inputs, dense):
    """Return the products of a document's weights, or both weights, with the class spread out.

    With full weights, weight and residual of a term lie side by side in `dense`: one cache line.
    """
    product, full_product, residual = 0.0, 0.0, 0.0
    if len(full_weights) == 0:
        for j in range(len(indices)):
            position = np.uint64(indices[j])  # unsigned: no check for negative positions
            product += np.float64(weights[j]) * np.float64(dense[position])
    else:
        for j in range(len(indices)):
            position = np.uint64(2) * np.uint64(indices[j])
            full_weight, value = np.float64(full_weights[j]), np.float64(dense[position])
            product += np.float64(weights[j]) * value
            full_product += full_weight * value
            residual_input = np.float64(residual_inputs[j])
            residual += residual_input * np.float64(dense[position + np.uint64(1)])
    return product, full_product, residual


@kernel
def score_pairs_by_class(vectors, document_ids, pairs, scorer, rescoring, block, dense, outputs):
    """Fill the same scores, flat, class by class; those of no class stay as they are.

    `dense`, scratch, is all 0 and reaches to the last term of the documents; with rescoring it has
    two numbers per term.
    """
    indptr, indices, weights, totals = vectors
    row_starts, row_indices, row_weights, length_weights, biases = scorer
    full_weights, residual_inputs, full_totals, starts, terms, residuals, offsets = rescoring
    scores, rescored = outputs
    rescores = len(offsets) > 0
    start, stop = np.int64(0), np.int64(0)
    stride = 2 if rescores else 1
    n_terms = len(dense) // stride
    for c in range(block.first, block.last):
        if pairs.starts[c] == pairs.starts[c + 1]:
            continue
        low = row_starts[c]
        high = find_term(row_indices, low, row_starts[c + 1], n_terms)
        spread_row(row_indices, row_weights, low, high, stride, dense)
        if rescores:
            start = starts[c]
            stop = find_term(terms, start, starts[c + 1], n_terms)
            spread_row(terms, residuals, start, stop, stride, dense[1:])
        for p in range(pairs.starts[c], pairs.starts[c + 1]):
            pair = pairs.ids[p]
            row = document_ids[pair // pairs.n_columns]
            entries = slice(indptr[row], indptr[row + 1])
            product, full_product, residual = read_products(
                indices[entries],
                weights[entries],
                full_weights[entries],
                residual_inputs[entries],
                dense,
            )
            scores[pair] = linear_score(biases, length_weights, c, totals[row], product)
            if rescores:
                total = full_totals[row]
                score = linear_score(biases, length_weights, c, total, full_product)
                rescored[pair] = score + (offsets[c] + residual)
        clear_row(row_indices, low, high, stride, dense)
        clear_row(terms, start, stop, stride, dense[1:])
