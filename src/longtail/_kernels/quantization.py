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
