"""Table 1 of the paper for (document, class) pairs, and its linear score of each (class, term).

A class is a row of the class matrix (`indptr, indices, counts, centroid_sums`), a document a row of
the count matrix. Term quantities: `idf` I_t and `rarity` l_S / F_t. Class quantities: `lengths` |y|
and `norms`, the length of the idf-weighted centroid sum.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel, part
from longtail._kernels.statistics import term_frequency

N_FEATURES = 10
CENTROID_DISTANCE = (
    8  # position of the ninth feature, the only one that is no sum over shared terms
)


@part
def find_term(indices, low, high, term):
    """Return the first position in [low, high) whose term is not below `term`."""
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@part
def seek_term(indices, low, high, term):
    """Do the same where the term is near `low`: in steps that double, and back between the last."""
    step = 1
    while low + step < high and indices[low + step] < term:
        low += step
        step += step
    return find_term(indices, low, min(low + step, high), term)


@part
def document_norm(indices, data, start, stop, idf, sublinear):
    """Return the length of the tf-idf weighted document."""
    squares = 0.0
    for j in range(start, stop):
        weight = term_frequency(data[j], sublinear) * idf[indices[j]]
        squares += weight * weight
    return math.sqrt(squares)


@part
def add_term_features(count, length, idf, rarity, relative_length, features):
    """Add one shared term to the nine features that are sums over shared terms (Table 1)."""
    share = count / length
    features[0] += math.log(1.0 + count)
    features[1] += math.log(1.0 + rarity)
    features[2] += idf
    features[3] += share * idf
    features[4] += math.log(1.0 + share)
    features[5] += math.log(1.0 + share * idf)
    features[6] += math.log(1.0 + share * rarity)
    features[7] += 1.0
    features[9] += idf * 2.0 * count / (count + 0.25 + 0.75 * relative_length)


@kernel
def fill_pair_features(
    indptr,
    indices,
    data,
    documents,
    classes,
    class_indptr,
    class_indices,
    counts,
    centroid_sums,
    count_unit,
    sublinear,
    idf,
    rarity,
    lengths,
    norms,
    mean_length,
    first,
    last,
    features,
):
    """Fill `features[first:last]` (width, 10) for documents[i] with each of classes[i]."""
    for row in range(first, last):
        start, stop = indptr[documents[row]], indptr[documents[row] + 1]
        norm = document_norm(indices, data, start, stop, idf, sublinear)
        for column in range(classes.shape[1]):
            c = classes[row, column]
            out = features[row, column]
            out[:] = 0.0
            position, end = class_indptr[c], class_indptr[c + 1]
            product = 0.0
            for j in range(start, stop):
                term = indices[j]
                position = find_term(class_indices, position, end, term)
                if position == end:
                    break
                if class_indices[position] != term:
                    continue
                add_term_features(
                    counts[position] * count_unit,
                    lengths[c],
                    idf[term],
                    rarity[term],
                    lengths[c] / mean_length,
                    out,
                )
                frequency = term_frequency(data[j], sublinear)
                product += frequency * idf[term] * (centroid_sums[position] * idf[term])
            cosine = product / (norm * norms[c]) if product > 0.0 else 0.0
            out[CENTROID_DISTANCE] = 1.0 - cosine


@kernel
def fill_differences(
    indptr,
    indices,
    data,
    documents,
    width,
    starts,
    pairs,
    are_true,
    class_indptr,
    class_indices,
    counts,
    centroid_sums,
    count_unit,
    sublinear,
    idf,
    rarity,
    lengths,
    norms,
    mean_length,
    first,
    last,
    places,
    terms,
    features,
    document_norms,
    true,
    differences,
):
    """Fill the features of pairs class by class: what each term of a class adds is computed once.

    `pairs` are row * width + column, those of class c from `starts[c]`. Where `are_true`, those of
    column 0, the true classes, fill `true[row]` and `document_norms[row]`; in a second call the
    others fill `differences[row, column - 1]`, true - features. The bits are those of
    `fill_pair_features`.

    Scratch: `places` (n_terms,), all 0; `terms` (largest class, 10); `features` (10,).
    """
    for c in range(first, last):
        if starts[c] == starts[c + 1]:
            continue
        begin, end = class_indptr[c], class_indptr[c + 1]
        for j in range(begin, end):
            term = class_indices[j]
            places[term] = j - begin + 1
            added = terms[j - begin]
            for k in range(N_FEATURES):
                added[k] = 0.0
            add_term_features(
                counts[j] * count_unit,
                lengths[c],
                idf[term],
                rarity[term],
                lengths[c] / mean_length,
                added,
            )
            added[CENTROID_DISTANCE] = centroid_sums[j] * idf[term]  # no sum, so the place is free
        for p in range(starts[c], starts[c + 1]):
            row, column = pairs[p] // width, pairs[p] % width
            if (column == 0) != are_true:
                continue
            start, stop = indptr[documents[row]], indptr[documents[row] + 1]
            if are_true:
                document_norms[row] = document_norm(indices, data, start, stop, idf, sublinear)
            for k in range(N_FEATURES):
                features[k] = 0.0
            product = 0.0
            for j in range(start, stop):
                term = indices[j]
                if places[term] > 0:
                    added = terms[places[term] - 1]
                    frequency = term_frequency(data[j], sublinear)
                    product += frequency * idf[term] * added[CENTROID_DISTANCE]
                    for k in range(N_FEATURES):
                        features[k] += added[k]
            cosine = product / (document_norms[row] * norms[c]) if product > 0.0 else 0.0
            features[CENTROID_DISTANCE] = 1.0 - cosine
            for k in range(N_FEATURES):
                if are_true:
                    true[row, k] = features[k]
                else:
                    differences[row, column - 1, k] = true[row, k] - features[k]
        for j in range(begin, end):
            places[class_indices[j]] = 0


@kernel
def fill_term_scores(
    class_indptr,
    class_indices,
    counts,
    count_unit,
    idf,
    rarity,
    lengths,
    mean_length,
    weights,
    first,
    last,
    scores,
):
    """Fill what each (class, term) adds to a score when shared: all features but the ninth."""
    features = np.zeros(N_FEATURES)
    for c in range(first, last):
        for j in range(class_indptr[c], class_indptr[c + 1]):
            term = class_indices[j]
            features[:] = 0.0
            add_term_features(
                counts[j] * count_unit,
                lengths[c],
                idf[term],
                rarity[term],
                lengths[c] / mean_length,
                features,
            )
            total = 0.0
            for k in range(N_FEATURES):
                total += weights[k] * features[k]
            scores[j] = total
