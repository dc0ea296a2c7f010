"""Scores of all classes from postings, and the best of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.types import Array


class TermPostings(NamedTuple):
    """Values of the classes of each term, and what a class gets per document and per length."""

    indptr: Array
    classes: Array
    values: Array
    biases: Array
    length_values: Array


@inner
def comes_before(score, c, other_score, other):
    """Tell whether a class ranks before another: higher score, or lower class where equal."""
    return score > other_score or (score == other_score and c < other)


@inner
def keep_best(score, c, size, scores, classes):
    """Insert a class into a ranking of `size` entries, best first; returns the new size."""
    if size == len(scores):
        if not comes_before(score, c, scores[size - 1], classes[size - 1]):
            return size
        i = size - 1
    else:
        i = size
        size += 1
    while i > 0 and comes_before(score, c, scores[i - 1], classes[i - 1]):
        scores[i], classes[i] = scores[i - 1], classes[i - 1]
        i -= 1
    scores[i], classes[i] = score, c
    return size


@kernel
def rank_postings(rows, postings, first, last, ranked):
    """Rank the classes of the documents `first` to `last - 1`; ties go to the lower class.

    The score of class c is `biases[c] + length * length_values[c] + sum of data * value` over the
    postings of c among the document's terms; the length is the sum of the document's data.
    """
    n_classes = len(postings.biases)
    class_scores = np.empty(n_classes)
    for document in range(first, last):
        length = 0.0
        for j in range(rows.indptr[document], rows.indptr[document + 1]):
            length += rows.data[j]
        for c in range(n_classes):
            class_scores[c] = postings.biases[c] + length * postings.length_values[c]
        for j in range(rows.indptr[document], rows.indptr[document + 1]):
            term, value = rows.indices[j], rows.data[j]
            for p in range(postings.indptr[term], postings.indptr[term + 1]):
                class_scores[postings.classes[p]] += value * postings.values[p]
        size = 0
        for c in range(n_classes):
            size = keep_best(
                class_scores[c], c, size, ranked.scores[document], ranked.classes[document]
            )
