"""The additive score of a (document, class) pair: six features, each a sum over terms.

A class is a row of the class matrix with int64 fixed-point sums; `unit` turns them into numbers. A
document is a row of the count matrix together with its term weights. Where a document belongs to
the class itself, its own part is taken out of the sums first: the sums are integers, so nothing of
it is left behind.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.features import find_term
from longtail._kernels.jit import kernel
from longtail._kernels.statistics import term_frequency

N_SCORE_FEATURES = 6
COSINE, LIKELIHOOD, SIZE, COVERAGE, DAMPENED_COSINE, SATURATION = range(N_SCORE_FEATURES)
DAMPING = 0.8  # exponent of the centroid's length in the dampened cosine
HALF_SATURATION = 0.3  # sum of a term in a class at which saturation is one half
PRIOR_MASS = 100.0  # documents' worth of background terms in each class's likelihood
SMALLEST_SQUARE = 1e-6  # a centroid is never shorter than its root
SMALLEST_SIZE = 0.5  # stands in for the logarithm of a class that has lost its only document


@kernel
def weigh_rows(indptr, indices, data, term_weights, first, last, weights, totals):
    """Fill the length-normalised weights of rows `first` to `last - 1`, and their sums."""
    for row in range(first, last):
        squares = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            weight = term_frequency(data[j], True) * term_weights[indices[j]]
            squares += weight * weight
        scale = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            weights[j] = term_frequency(data[j], True) * term_weights[indices[j]] * scale
            total += weights[j]
        totals[row] = total


@kernel
def unit_scale(data, start, stop, unit):
    """Return what turns a term frequency of a document into its fixed-point part of a class sum."""
    squares = 0.0
    for j in range(start, stop):
        frequency = term_frequency(data[j], True)
        squares += frequency * frequency
    return 1.0 / (unit * math.sqrt(squares)) if squares > 0.0 else 0.0


@kernel
def leave_out(
    indices, data, start, stop, scale, class_indices, sums, unit, low, high, idf, square, mass
):
    """Return a class's squared length and mass without one of its documents."""
    for j in range(start, stop):
        term = indices[j]
        low = find_term(class_indices, low, high, term)
        part = np.int64(np.rint(term_frequency(data[j], True) * scale))
        before = sums[low] * unit * idf[term]
        after = (sums[low] - part) * unit * idf[term]
        square += (after - before) * (after + before)
        mass -= part * unit
    return square, mass


@kernel
def term_value(total, idf, background, cosine_factor, weights):
    """Return what a unit of a term's weight adds to the score of a class that has the term."""
    return (
        cosine_factor * total * idf
        + weights[LIKELIHOOD] * math.log(1.0 + total / (PRIOR_MASS * background))
        + idf * (weights[COVERAGE] + weights[SATURATION] * total / (total + HALF_SATURATION))
    )


@kernel
def class_parts(size, square, mass, weights):
    """Return cosine factor, slope and constant of a class: all of a score that no term decides."""
    norm = math.sqrt(max(square, SMALLEST_SQUARE))
    cosine_factor = weights[COSINE] / norm + weights[DAMPENED_COSINE] / norm**DAMPING
    slope = -weights[LIKELIHOOD] * math.log(1.0 + max(mass, 0.0) / PRIOR_MASS)
    constant = weights[SIZE] * math.log(max(size, SMALLEST_SIZE))
    return cosine_factor, slope, constant


@kernel
def fill_score_features(
    indptr,
    indices,
    data,
    weights,
    totals,
    documents,
    classes,
    own,
    class_indptr,
    class_indices,
    sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    first,
    last,
    features,
):
    """Fill the six features of each pair; a document is left out of its class `own`."""
    for i in range(first, last):
        row = documents[i]
        start, stop = indptr[row], indptr[row + 1]
        scale = unit_scale(data, start, stop, unit)
        for column in range(classes.shape[1]):
            c = classes[i, column]
            low, high = class_indptr[c], class_indptr[c + 1]
            size, square, mass = sizes[c], squares[c], masses[c]
            is_own = own[i] == c
            if is_own:
                size -= 1
                square, mass = leave_out(
                    indices,
                    data,
                    start,
                    stop,
                    scale,
                    class_indices,
                    sums,
                    unit,
                    low,
                    high,
                    idf,
                    square,
                    mass,
                )
            product, likelihood, coverage, saturation = 0.0, 0.0, 0.0, 0.0
            for j in range(start, stop):
                term = indices[j]
                low = find_term(class_indices, low, high, term)
                if low == high:
                    break
                if class_indices[low] != term:
                    continue
                total = sums[low]
                if is_own:
                    total -= np.int64(np.rint(term_frequency(data[j], True) * scale))
                if total <= 0:
                    continue
                value = total * unit
                product += weights[j] * value * idf[term]
                likelihood += weights[j] * math.log(1.0 + value / (PRIOR_MASS * background[term]))
                coverage += weights[j] * idf[term]
                saturation += weights[j] * idf[term] * value / (value + HALF_SATURATION)
            norm = math.sqrt(max(square, SMALLEST_SQUARE))
            out = features[i, column]
            out[COSINE] = product / norm
            out[LIKELIHOOD] = likelihood - totals[row] * math.log(1.0 + max(mass, 0.0) / PRIOR_MASS)
            out[SIZE] = math.log(max(size, SMALLEST_SIZE))
            out[COVERAGE] = coverage
            out[DAMPENED_COSINE] = product / norm**DAMPING
            out[SATURATION] = saturation


@kernel
def fill_contributions(
    indptr,
    indices,
    data,
    weights,
    documents,
    classes,
    own,
    class_indptr,
    class_indices,
    sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    feature_weights,
    starts,
    first,
    last,
    contributions,
    constants,
):
    """Fill what each term adds to the score of each pair, and each pair's constant.

    The terms of pair (i, column) stand at `starts[i] + column * length` of `contributions`.
    """
    for i in range(first, last):
        row = documents[i]
        start, stop = indptr[row], indptr[row + 1]
        scale = unit_scale(data, start, stop, unit)
        for column in range(classes.shape[1]):
            c = classes[i, column]
            low, high = class_indptr[c], class_indptr[c + 1]
            size, square, mass = sizes[c], squares[c], masses[c]
            is_own = own[i] == c
            if is_own:
                size -= 1
                square, mass = leave_out(
                    indices,
                    data,
                    start,
                    stop,
                    scale,
                    class_indices,
                    sums,
                    unit,
                    low,
                    high,
                    idf,
                    square,
                    mass,
                )
            cosine_factor, slope, constant = class_parts(size, square, mass, feature_weights)
            constants[i, column] = constant
            place = starts[i] + column * (stop - start)
            for j in range(start, stop):
                term = indices[j]
                value = slope
                low = find_term(class_indices, low, high, term)
                if low < high and class_indices[low] == term:
                    total = sums[low]
                    if is_own:
                        total -= np.int64(np.rint(term_frequency(data[j], True) * scale))
                    if total > 0:
                        value += term_value(
                            total * unit,
                            idf[term],
                            background[term],
                            cosine_factor,
                            feature_weights,
                        )
                contributions[place + j - start] = weights[j] * value


@kernel
def fill_values(
    class_indptr,
    class_indices,
    sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    feature_weights,
    first,
    last,
    values,
    slopes,
    constants,
):
    """Collapse the six features: a value for each (class, term), a slope and a constant a class."""
    for c in range(first, last):
        cosine_factor, slope, constant = class_parts(
            sizes[c], squares[c], masses[c], feature_weights
        )
        slopes[c] = slope
        constants[c] = constant
        for j in range(class_indptr[c], class_indptr[c + 1]):
            term = class_indices[j]
            values[j] = 0.0
            if sums[j] > 0:
                values[j] = term_value(
                    sums[j] * unit, idf[term], background[term], cosine_factor, feature_weights
                )


@kernel
def own_scores(
    indptr,
    indices,
    data,
    weights,
    totals,
    own,
    class_indptr,
    class_indices,
    sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    feature_weights,
    first,
    last,
    scores,
):
    """Fill the score of each document for its own class without the document."""
    for row in range(first, last):
        c = own[row]
        start, stop = indptr[row], indptr[row + 1]
        scale = unit_scale(data, start, stop, unit)
        low, high = class_indptr[c], class_indptr[c + 1]
        square, mass = leave_out(
            indices,
            data,
            start,
            stop,
            scale,
            class_indices,
            sums,
            unit,
            low,
            high,
            idf,
            squares[c],
            masses[c],
        )
        cosine_factor, slope, constant = class_parts(sizes[c] - 1, square, mass, feature_weights)
        score = constant + totals[row] * slope
        for j in range(start, stop):
            term = indices[j]
            low = find_term(class_indices, low, high, term)
            total = sums[low] - np.int64(np.rint(term_frequency(data[j], True) * scale))
            if total > 0:
                score += weights[j] * term_value(
                    total * unit, idf[term], background[term], cosine_factor, feature_weights
                )
        scores[row] = score


@kernel
def row_product(indices, weights, start, stop, class_indices, values, low, high):
    """Return the sum over shared terms of document weight times class value."""
    product = 0.0
    for j in range(start, stop):
        low = find_term(class_indices, low, high, indices[j])
        if low == high:
            break
        if class_indices[low] == indices[j]:
            product += np.float64(weights[j]) * values[low]
    return product


@kernel
def fill_pair_scores(
    indptr,
    indices,
    weights,
    totals,
    classes,
    class_indptr,
    class_indices,
    values,
    slopes,
    constants,
    first,
    last,
    scores,
):
    """Fill the score of each document with each class of its row."""
    for row in range(first, last):
        for column in range(classes.shape[1]):
            c = classes[row, column]
            scores[row, column] = (
                constants[c]
                + totals[row] * slopes[c]
                + row_product(
                    indices,
                    weights,
                    indptr[row],
                    indptr[row + 1],
                    class_indices,
                    values,
                    class_indptr[c],
                    class_indptr[c + 1],
                )
            )


@kernel
def fit_term_weights(
    indptr,
    indices,
    documents,
    starts,
    contributions,
    constants,
    learning_rate,
    decay,
    n_epochs,
    log_weights,
):
    """Minimise the softmax loss of the first column over the logarithms of the term weights.

    Adaptive gradient steps, document by document in the order given. Returns the mean loss of the
    last pass.
    """
    width = constants.shape[1]
    steps = np.full(len(log_weights), 1e-2)
    scores = np.empty(width)
    longest = 0
    for row in documents:
        longest = max(longest, indptr[row + 1] - indptr[row])
    factors = np.empty(longest)
    loss = 0.0
    for _ in range(n_epochs):
        loss = 0.0
        for i in range(len(documents)):
            first = indptr[documents[i]]
            length = indptr[documents[i] + 1] - first
            for j in range(length):
                factors[j] = math.exp(log_weights[indices[first + j]])
            highest = -np.inf
            for column in range(width):
                place = starts[i] + column * length
                score = np.float64(constants[i, column])
                for j in range(length):
                    score += contributions[place + j] * factors[j]
                scores[column] = score
                highest = max(highest, score)
            total = 0.0
            for column in range(width):
                scores[column] = math.exp(scores[column] - highest)
                total += scores[column]
            for column in range(width):
                scores[column] /= total
            loss -= math.log(max(scores[0], 1e-30))
            scores[0] -= 1.0
            for j in range(length):
                gradient = 0.0
                for column in range(width):
                    gradient += scores[column] * contributions[starts[i] + column * length + j]
                term = indices[first + j]
                gradient = gradient * factors[j] + decay * log_weights[term]
                steps[term] += gradient * gradient
                log_weights[term] -= learning_rate * gradient / math.sqrt(steps[term])
    return loss / max(len(documents), 1)
