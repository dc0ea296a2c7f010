"""Exact nearest classes of a document through a term-major index, and the score of each.

The index holds, for each term, the classes that have it and their weights (`indptr, classes,
weights`).
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.features import document_norm, find_term
from longtail._kernels.jit import kernel
from longtail._kernels.statistics import term_frequency

_CHUNK = 64  # classes compared with the lowest rank at once; this loop becomes vector instructions


@kernel
def comes_before(score, c, other_score, other):
    """Tell whether a class ranks before another: higher score, then lower class number."""
    return score > other_score or (score == other_score and c < other)


@kernel
def keep_best(score, c, size, scores, classes):
    """Insert a class into a ranking of `size` entries, best first; returns the new size.

    The arrays hold as many as are wanted; what falls off the end is lost. Insertion is quick
    because rankings are short and most classes fall short of the last entry at once.
    """
    wanted = len(scores)
    if size == wanted:
        if not comes_before(score, c, scores[wanted - 1], classes[wanted - 1]):
            return size
        position = wanted - 1
    else:
        position = size
        size += 1
    while position > 0 and comes_before(score, c, scores[position - 1], classes[position - 1]):
        scores[position] = scores[position - 1]
        classes[position] = classes[position - 1]
        position -= 1
    scores[position] = score
    classes[position] = c
    return size


@kernel
def nearest_classes(
    indptr,
    indices,
    data,
    sublinear,
    idf,
    index_indptr,
    index_classes,
    index_weights,
    n_classes,
    first,
    last,
    classes,
    cosines,
):
    """Fill the rows `first` to `last - 1` with the classes of highest cosine, best first.

    A class that shares no term has cosine 0. Terms are added in ascending order, so classes with
    equal centroids get equal sums, and ties go to the lower class number.
    """
    products = np.zeros(n_classes)
    touched = np.empty(n_classes, np.int64)
    wanted = classes.shape[1]
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        norm = document_norm(indices, data, start, stop, idf, sublinear)
        n_touched = 0
        for j in range(start, stop):
            term = indices[j]
            frequency = term_frequency(data[j], sublinear)
            for p in range(index_indptr[term], index_indptr[term + 1]):
                c = index_classes[p]
                if products[c] == 0.0:
                    touched[n_touched] = c
                    n_touched += 1
                products[c] += frequency * index_weights[p]
        size = 0
        for i in range(n_touched):
            c = touched[i]
            size = keep_best(products[c], c, size, cosines[row], classes[row])
        c = 0
        while size < wanted:  # classes that share nothing, in order
            if products[c] == 0.0:
                cosines[row, size] = 0.0
                classes[row, size] = c
                size += 1
            c += 1
        for i in range(n_touched):
            products[touched[i]] = 0.0
        if norm > 0.0:
            for i in range(wanted):
                cosines[row, i] /= norm


@kernel
def rank_candidates(
    indptr,
    indices,
    class_indptr,
    class_indices,
    term_scores,
    distance_weight,
    candidates,
    cosines,
    first,
    last,
    classes,
    scores,
):
    """Score each candidate and fill the best, in order, into `classes` and `scores`.

    A score is the sum of the term scores of the shared terms plus the weighted centroid distance.
    """
    for row in range(first, last):
        size = 0
        for i in range(candidates.shape[1]):
            c = candidates[row, i]
            score = distance_weight * (1.0 - cosines[row, i])
            position, end = class_indptr[c], class_indptr[c + 1]
            for j in range(indptr[row], indptr[row + 1]):
                term = indices[j]
                position = find_term(class_indices, position, end, term)
                if position == end:
                    break
                if class_indices[position] == term:
                    score += term_scores[position]
            size = keep_best(score, c, size, scores[row], classes[row])


@kernel
def highest_classes(
    indptr,
    indices,
    weights,
    documents,
    own,
    index_indptr,
    index_classes,
    index_values,
    slopes,
    constants,
    most_postings,
    first,
    last,
    classes,
    scores,
):
    """Fill the classes of highest additive score of each document, best first, without its own.

    A document's terms are added from the rarest on, as long as their postings come to no more than
    `most_postings`; one term is always added. Common terms are in nearly every class and tell
    little.
    """
    n_classes = len(constants)
    sums = np.empty(n_classes)
    wanted = classes.shape[1]
    for i in range(first, last):
        row = documents[i]
        start, stop = indptr[row], indptr[row + 1]
        lengths = np.empty(stop - start, np.int64)
        for j in range(stop - start):
            term = indices[start + j]
            lengths[j] = index_indptr[term + 1] - index_indptr[term]
        order = np.argsort(lengths, kind="mergesort")
        n_read, left, total = 0, most_postings, 0.0
        while n_read < len(order) and (n_read == 0 or lengths[order[n_read]] <= left):
            left -= lengths[order[n_read]]
            total += weights[start + order[n_read]]
            n_read += 1
        for c in range(n_classes):
            sums[c] = constants[c] + total * slopes[c]
        for j in order[:n_read]:
            term = indices[start + j]
            weight = np.float64(weights[start + j])
            for p in range(index_indptr[term], index_indptr[term + 1]):
                sums[index_classes[p]] += weight * index_values[p]
        size = 0
        lowest = -np.inf
        for start in range(0, n_classes, _CHUNK):
            stop = min(start + _CHUNK, n_classes)
            hit = False
            for c in range(start, stop):
                hit |= sums[c] > lowest
            if not hit:
                continue
            for c in range(start, stop):
                if sums[c] > lowest and c != own[i]:
                    size = keep_best(sums[c], c, size, scores[i], classes[i])
                    if size == wanted:
                        lowest = scores[i, wanted - 1]
