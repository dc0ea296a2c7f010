"""From a linear scorer, class by class, to the quantized inverted index, term by term.

A weight is stored as a level: `zero_point + scale * level`, zero point and scale being the term's.
A term of few classes has postings with levels of 16 bits; one of many has a dense row with a byte
for each class, in which a class that lacks the term has the level nearest to 0.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel
from longtail._kernels.sizes import BYTE_LEVELS, WORD_LEVELS
from longtail._kernels.sorting import find_term


@kernel
def plan_index(scorer, max_postings, indptr, work, quantization):
    """Fill where each term's postings begin and how it is stored; returns the number of dense rows.

    A term of more than `max_postings` classes is a row; `work` counts its classes as well. All
    arrays are 0 before. One pass: an array operation for each of these would take five times as
    long where classes are few and terms many.
    """
    row_ids, zero_points, scales = quantization  # scales hold the highest weights at first
    for j in range(len(scorer.indices)):
        term, weight = scorer.indices[j], np.float32(scorer.weights[j])
        work[term + 1] += 1
        zero_points[term] = min(zero_points[term], weight)
        scales[term] = max(scales[term], weight)
    n_rows = 0
    for term in range(len(row_ids)):
        n_classes, n_postings, n_levels = work[term + 1], work[term + 1], WORD_LEVELS
        row_ids[term] = -1
        if n_classes > max_postings:
            row_ids[term] = n_rows
            n_rows += 1
            n_postings, n_levels = 0, BYTE_LEVELS
        work[term + 1] = work[term] + n_classes
        indptr[term + 1] = indptr[term] + n_postings
        scales[term] = (np.float64(scales[term]) - np.float64(zero_points[term])) / n_levels
    return n_rows


@kernel
def fill_index(scorer, quantization, block, postings):
    """Fill postings or dense row of each term of the block.

    `postings.offsets` says where each term's postings begin, and afterwards where they end.
    """
    row_ids, zero_points, scales = quantization
    n_classes = len(scorer.indptr) - 1
    for term in range(block.first, block.last):
        if row_ids[term] >= 0 and scales[term] > 0.0:
            zero = np.uint8(np.rint(-zero_points[term] / scales[term]))
            for c in range(n_classes):
                postings.dense_rows[row_ids[term], c] = zero
    for c in range(n_classes):
        stop = scorer.indptr[c + 1]
        for j in range(find_term(scorer.indices, scorer.indptr[c], stop, block.first), stop):
            term = scorer.indices[j]
            if term >= block.last:
                break
            level = 0.0
            if scales[term] > 0.0:
                weight = np.float64(scorer.weights[j])
                level = np.rint((weight - zero_points[term]) / scales[term])
            if row_ids[term] < 0:
                offset = postings.offsets[term]
                postings.classes[offset] = c
                postings.quantized[offset] = np.uint16(min(level, np.float64(WORD_LEVELS)))
                postings.offsets[term] += 1
            else:
                postings.dense_rows[row_ids[term], c] = np.uint8(
                    min(level, np.float64(BYTE_LEVELS))
                )
