"""The highest-scored classes of a document by reading every posting of its terms: the oracle."""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel
from longtail._kernels.ranking import keep_best


@kernel
def search_all(
    indptr,
    indices,
    weights,
    totals,
    posting_indptr,
    posting_classes,
    posting_values,
    slopes,
    constants,
    first,
    last,
    classes,
    scores,
):
    """Fill the highest classes of the documents `first` to `last - 1`; ties go to the lower class.

    Adds the numbers that scoring a pair adds, in the same order: the scores have the same bits.
    """
    sums = np.zeros(len(constants))
    for document in range(first, last):
        for j in range(indptr[document], indptr[document + 1]):
            weight, term = np.float64(weights[j]), indices[j]
            for p in range(posting_indptr[term], posting_indptr[term + 1]):
                sums[posting_classes[p]] += weight * posting_values[p]
        size = 0
        for c in range(len(sums)):
            score = constants[c] + totals[document] * slopes[c] + sums[c]
            sums[c] = 0.0
            size = keep_best(score, c, size, scores[document], classes[document])
