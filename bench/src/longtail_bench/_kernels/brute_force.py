"""The highest-scored classes of a document by reading every posting of its terms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import kernel
from longtail_bench._kernels.ranking import keep_best
from longtail_bench._kernels.types import Array


class Postings(NamedTuple):
    """A linear scorer, term by term."""

    indptr: Array
    classes: Array
    weights: Array
    length_weights: Array
    biases: Array


@kernel
def search_all(indptr, indices, weights, totals, postings, first, last, found):
    """Fill the highest classes of the documents `first` to `last - 1`; ties go to the lower class.

    Adds what scoring a pair adds, in the same order: the scores have the same bits.
    """
    sums = np.zeros(len(postings.biases))
    for document in range(first, last):
        for j in range(indptr[document], indptr[document + 1]):
            weight, term = np.float64(weights[j]), indices[j]
            for p in range(postings.indptr[term], postings.indptr[term + 1]):
                sums[postings.classes[p]] += weight * postings.weights[p]
        size = 0
        for c in range(len(sums)):
            length_score = totals[document] * postings.length_weights[c]
            score = postings.biases[c] + length_score + sums[c]
            sums[c] = 0.0
            size = keep_best(score, c, size, found.scores[document], found.classes[document])
