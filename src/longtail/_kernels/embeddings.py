"""Embeddings in fixed point: unit vectors, their sums by class, cosines, and the nearest classes.

Products and sums are integers, so their bits depend on no order. A vector of zeros is none: its
cosine with anything is 0.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import count_bits, kernel, subroutine
from longtail._kernels.ranking import fill_rest, keep_best

WORD = 64  # signs in one integer of a code
CHUNK = 1024  # classes whose distances stay in the fastest cache


@kernel
def fix_unit_vectors(given, scale, block, vectors):
    """Bring each row to length 1, in units of 1 / scale; a row of zeros stays one."""
    for i in range(block.first, block.last):
        largest = 0.0
        for k in range(given.shape[1]):
            largest = max(largest, abs(np.float64(given[i, k])))
        if largest == 0.0:
            vectors[i, :] = 0
            continue
        squares = 0.0
        for k in range(given.shape[1]):
            value = np.float64(given[i, k]) / largest
            squares += value * value
        factor = scale / math.sqrt(squares)
        for k in range(given.shape[1]):
            vectors[i, k] = np.int16(np.rint(np.float64(given[i, k]) / largest * factor))


@kernel
def sum_vectors(members, vectors, block, sums):
    """Add up the vectors of the documents of each class of the block, as often as they count."""
    for c in range(block.first, block.last):
        for i in range(members.starts[c], members.starts[c + 1]):
            document = members.document_ids[i]
            times = np.int32(members.sample_weights[i]) if len(members.sample_weights) else 1
            for k in range(vectors.shape[1]):
                sums[c, k] += np.int32(times * vectors[document, k])


@subroutine
def multiply(a, b):
    """Return the product of two unit vectors; it fits 32 bits, and so does every part of it."""
    product = np.int32(0)
    for k in range(len(a)):
        product += np.int32(a[k]) * np.int32(b[k])
    return product


@kernel
def fill_products(documents, classes, directions, block, products):
    """Fill the products of documents with the classes of their rows; -1 is none, with 0."""
    for i in range(block.first, block.last):
        for column in range(classes.shape[1]):
            c = classes[i, column]
            products[i, column] = multiply(documents[i], directions[c]) if c >= 0 else 0


@kernel
def fill_codes(vectors, block, codes):
    """Fill the signs of each vector of the block, in columns of 64 bits."""
    for i in range(block.first, block.last):
        for word in range(len(codes)):
            bits = np.uint64(0)
            for k in range(word * WORD, min((word + 1) * WORD, vectors.shape[1])):
                if vectors[i, k] > 0:
                    bits |= np.uint64(1) << np.uint64(k - word * WORD)
            codes[word, i] = bits


@kernel
def shortlist_by_signs(queries, directions, passed_over, block, scratch, nearest):
    """Fill the classes whose signs differ least from a document's, best first; -1 where none is.

    A class is given by its id and its row, in 32 bits each, and by how many signs differ, negated.
    Classes with an id of -1, or that are passed over, are not found.
    """
    codes, class_ids = directions
    n_classes, wanted = codes.shape[1], nearest.scores.shape[1]
    for i in range(block.first, block.last):
        size, most = np.int64(0), np.int64(WORD * len(codes) + 1)
        for first in range(0, n_classes, CHUNK):
            last = min(first + CHUNK, n_classes)
            distances = scratch[: last - first]
            distances[:] = 0
            for word in range(len(codes)):
                code = queries[word, i]
                column = codes[word, first:last]
                for n in range(last - first):
                    distances[n] += np.int64(count_bits(code ^ column[n]))
            for n in range(last - first):
                if distances[n] > most:
                    continue
                class_id = class_ids[first + n]
                if class_id >= 0 and not _is_in(passed_over[i], class_id):
                    key = np.int64(class_id) << 32 | np.int64(first + n)
                    size = keep_best(
                        -np.float64(distances[n]), key, size, nearest.scores[i], nearest.classes[i]
                    )
                    if size == wanted:
                        most = np.int64(-nearest.scores[i, wanted - 1])
        fill_rest(size, nearest.scores[i], nearest.classes[i])


@subroutine
def _is_in(classes, c):
    """Return whether a class is among some."""
    found = False
    for other in classes:
        found |= other == c
    return found
