"""The additive score of a (document, class) pair: six features, each a sum over terms.

A class is a row of the class matrix with int64 fixed-point sums; `unit` turns them into numbers. A
document is a row of the count matrix together with its term weights. Where a document belongs to
the class itself, its own part is taken out of the sums first: the sums are integers, so nothing of
it is left behind.

Many pairs at once are worked off class by class: a class's row is spread out over all terms once,
and each of its documents then finds its terms there without searching. Pairs are numbered row by
row, `row * width + column`; `pairs[starts[c]:starts[c + 1]]` are those of class c.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import kernel, part
from longtail._kernels.paper import find_term, seek_term
from longtail._kernels.statistics import term_frequency

N_SCORE_FEATURES = 6
COSINE, LIKELIHOOD, SIZE, COVERAGE, DAMPENED_COSINE, SATURATION = range(N_SCORE_FEATURES)
DAMPING = 0.8  # exponent of the centroid's length in the dampened cosine
HALF_SATURATION = 0.3  # sum of a term in a class at which saturation is one half
PRIOR_MASS = 100.0  # documents' worth of background terms in each class's likelihood
SMALLEST_SQUARE = 1e-6  # a centroid is never shorter than its root
SMALLEST_SIZE = 0.5  # stands in for the logarithm of a class that has lost its only document


@kernel
def weight_rows(indptr, indices, data, term_weights, first, last, weights, totals):
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


@part
def unit_scale(data, start, stop, unit):
    """Return what turns a term frequency of a document into its fixed-point part of a class sum."""
    squares = 0.0
    for j in range(start, stop):
        frequency = term_frequency(data[j], True)
        squares += frequency * frequency
    return 1.0 / (unit * math.sqrt(squares)) if squares > 0.0 else 0.0


@kernel
def group_by_class(classes, n_classes, place, starts, pairs):
    """List the pairs of each class in ascending order (a counting sort); -1 is no class.

    classes (n_pairs,)    place (n_classes,), scratch    starts (n_classes + 1,), all 0 before
    """
    for pair in range(len(classes)):
        if classes[pair] >= 0:
            starts[classes[pair] + 1] += 1
    for c in range(n_classes):
        starts[c + 1] += starts[c]
        place[c] = starts[c]
    for pair in range(len(classes)):
        c = classes[pair]
        if c >= 0:
            pairs[place[c]] = pair
            place[c] += 1


@part
def spread(class_indices, values, start, stop, spread_values):
    """Spread a class's entries out over all terms."""
    for j in range(start, stop):
        spread_values[class_indices[j]] = values[j]


@part
def clear(class_indices, start, stop, spread_values):
    """Undo `spread`."""
    for j in range(start, stop):
        spread_values[class_indices[j]] = 0


@part
def leave_out(indices, data, start, stop, scale, sums, unit, idf, square, mass):
    """Return a class's squared length and mass without one of its documents; `sums` by term."""
    for j in range(start, stop):
        term = indices[j]
        part = np.int64(np.rint(term_frequency(data[j], True) * scale))
        before = sums[term] * unit * idf[term]
        after = (sums[term] - part) * unit * idf[term]
        square += (after - before) * (after + before)
        mass -= part * unit
    return square, mass


@part
def term_value(total, idf, background, cosine_factor, weights):
    """Return what a unit of a term's weight adds to the score of a class that has the term."""
    return (
        cosine_factor * total * idf
        + weights[LIKELIHOOD] * math.log(1.0 + total / (PRIOR_MASS * background))
        + idf * (weights[COVERAGE] + weights[SATURATION] * total / (total + HALF_SATURATION))
    )


@part
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
    own,
    width,
    starts,
    pairs,
    class_indptr,
    class_indices,
    class_sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    first,
    last,
    sums,
    features,
):
    """Fill the six features of each pair of the classes `first` to `last - 1`.

    Pair p belongs to document `documents[p // width]`, which is left out of its class `own[p //
    width]`. `sums` (n_terms,) is scratch, all 0.
    """
    for c in range(first, last):
        if starts[c] == starts[c + 1]:
            continue
        spread(class_indices, class_sums, class_indptr[c], class_indptr[c + 1], sums)
        for place in range(starts[c], starts[c + 1]):
            i = pairs[place] // width
            row = documents[i]
            start, stop = indptr[row], indptr[row + 1]
            size, square, mass, scale = sizes[c], squares[c], masses[c], 0.0
            if own[i] == c:
                size -= 1
                scale = unit_scale(data, start, stop, unit)
                square, mass = leave_out(
                    indices, data, start, stop, scale, sums, unit, idf, square, mass
                )
            product, likelihood, coverage, saturation = 0.0, 0.0, 0.0, 0.0
            for j in range(start, stop):
                term = indices[j]
                total = sums[term]
                if scale > 0.0:
                    total -= np.int64(np.rint(term_frequency(data[j], True) * scale))
                if total <= 0:
                    continue
                value = total * unit
                product += weights[j] * value * idf[term]
                likelihood += weights[j] * math.log(1.0 + value / (PRIOR_MASS * background[term]))
                coverage += weights[j] * idf[term]
                saturation += weights[j] * idf[term] * value / (value + HALF_SATURATION)
            norm = math.sqrt(max(square, SMALLEST_SQUARE))
            pair = pairs[place]
            features[pair, COSINE] = product / norm
            features[pair, LIKELIHOOD] = likelihood - totals[row] * math.log(
                1.0 + max(mass, 0.0) / PRIOR_MASS
            )
            features[pair, SIZE] = math.log(max(size, SMALLEST_SIZE))
            features[pair, COVERAGE] = coverage
            features[pair, DAMPENED_COSINE] = product / norm**DAMPING
            features[pair, SATURATION] = saturation
        clear(class_indices, class_indptr[c], class_indptr[c + 1], sums)


@kernel
def fill_contributions(
    indptr,
    indices,
    data,
    weights,
    documents,
    own,
    width,
    starts,
    pairs,
    class_indptr,
    class_indices,
    class_sums,
    unit,
    sizes,
    squares,
    masses,
    idf,
    background,
    feature_weights,
    places,
    first,
    last,
    sums,
    contributions,
    constants,
):
    """Fill what each term adds to the score of each pair, and each pair's constant.

    The terms of pair (i, column) stand at `places[i] + column * length` of `contributions`; `sums`
    (n_terms,) is scratch, all 0.
    """
    for c in range(first, last):
        if starts[c] == starts[c + 1]:
            continue
        spread(class_indices, class_sums, class_indptr[c], class_indptr[c + 1], sums)
        for place in range(starts[c], starts[c + 1]):
            i = pairs[place] // width
            row = documents[i]
            start, stop = indptr[row], indptr[row + 1]
            size, square, mass, scale = sizes[c], squares[c], masses[c], 0.0
            if own[i] == c:
                size -= 1
                scale = unit_scale(data, start, stop, unit)
                square, mass = leave_out(
                    indices, data, start, stop, scale, sums, unit, idf, square, mass
                )
            cosine_factor, slope, constant = class_parts(size, square, mass, feature_weights)
            constants[pairs[place]] = constant
            target = places[i] + (pairs[place] - i * width) * (stop - start)
            for j in range(start, stop):
                term = indices[j]
                value = slope
                total = sums[term]
                if scale > 0.0:
                    total -= np.int64(np.rint(term_frequency(data[j], True) * scale))
                if total > 0:
                    value += term_value(
                        total * unit, idf[term], background[term], cosine_factor, feature_weights
                    )
                contributions[target + j - start] = weights[j] * value
        clear(class_indices, class_indptr[c], class_indptr[c + 1], sums)


@kernel
def collapse_features(
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


@part
def row_product(indices, weights, start, stop, class_indices, values, low, high):
    """Return the sum over shared terms of document weight times class value."""
    product = 0.0
    for j in range(start, stop):
        low = seek_term(class_indices, low, high, indices[j])
        if low == high:
            break
        if class_indices[low] == indices[j]:
            product += np.float64(weights[j]) * values[low]
    return product


@kernel
def score_pairs(
    indptr,
    indices,
    weights,
    totals,
    documents,
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
    """Fill the score of each document with each class of its row; -1 is no class."""
    for i in range(first, last):
        row = documents[i]
        for column in range(classes.shape[1]):
            c = classes[i, column]
            if c >= 0:
                product = row_product(
                    indices,
                    weights,
                    indptr[row],
                    indptr[row + 1],
                    class_indices,
                    values,
                    class_indptr[c],
                    class_indptr[c + 1],
                )
                scores[i, column] = constants[c] + totals[row] * slopes[c] + product


@part
def spread_product(indices, weights, spread_values):
    """Return the sum of document weight times class value; the class is spread out."""
    product = 0.0
    for j in range(len(indices)):
        place = np.uint64(indices[j])  # unsigned: no check for negative places
        product += np.float64(weights[j]) * np.float64(spread_values[place])
    return product


@kernel
def score_pairs_by_class(
    indptr,
    indices,
    weights,
    totals,
    documents,
    width,
    starts,
    pairs,
    class_indptr,
    class_indices,
    values,
    slopes,
    constants,
    first,
    last,
    spread_values,
    scores,
):
    """Fill the same scores class by class: much faster where every class has many documents.

    `spread_values`, scratch, is all 0 and reaches to the last term of the documents.
    """
    for c in range(first, last):
        if starts[c] == starts[c + 1]:
            continue
        low = class_indptr[c]
        high = find_term(class_indices, low, class_indptr[c + 1], len(spread_values))
        spread(class_indices, values, low, high, spread_values)
        for place in range(starts[c], starts[c + 1]):
            row = documents[pairs[place] // width]
            entries = slice(indptr[row], indptr[row + 1])
            product = spread_product(indices[entries], weights[entries], spread_values)
            scores[pairs[place]] = constants[c] + totals[row] * slopes[c] + product
        clear(class_indices, low, high, spread_values)


@part
def two_products(indices, few_weights, weights, start, stop, class_indices, values, low, high):
    """Return the sums over shared terms of few weights and of weights times class value."""
    few_product, product = 0.0, 0.0
    for j in range(start, stop):
        low = seek_term(class_indices, low, high, indices[j])
        if low == high:
            break
        if class_indices[low] == indices[j]:
            few_product += np.float64(few_weights[j]) * values[low]
            product += np.float64(weights[j]) * values[low]
    return few_product, product


@kernel
def score_pairs_with_residuals(
    indptr,
    indices,
    weights,
    totals,
    few_weights,
    few_totals,
    documents,
    classes,
    class_indptr,
    class_indices,
    values,
    slopes,
    constants,
    correction_indptr,
    correction_indices,
    corrections,
    correction_constants,
    first,
    last,
    scores,
    corrected,
):
    """Fill two scores of each document with each class of its row; -1 is no class.

    `scores` is by the few weights, `corrected` by all weights and with the class's correction.
    """
    for i in range(first, last):
        row = documents[i]
        start, stop = indptr[row], indptr[row + 1]
        for column in range(classes.shape[1]):
            c = classes[i, column]
            if c < 0:
                continue
            few_product, product = two_products(
                indices,
                few_weights,
                weights,
                start,
                stop,
                class_indices,
                values,
                class_indptr[c],
                class_indptr[c + 1],
            )
            correction = row_product(
                indices,
                weights,
                start,
                stop,
                correction_indices,
                corrections,
                correction_indptr[c],
                correction_indptr[c + 1],
            )
            scores[i, column] = constants[c] + few_totals[row] * slopes[c] + few_product
            score = constants[c] + totals[row] * slopes[c] + product
            corrected[i, column] = score + (correction_constants[c] + correction)


@part
def spread_products(indices, weights, few_weights, spread_values):
    """Return the products of few weights and weights with values, of weights with corrections."""
    few_product, product, correction = 0.0, 0.0, 0.0
    for j in range(len(indices)):
        place = np.uint64(2) * np.uint64(indices[j])
        weight, value = np.float64(weights[j]), np.float64(spread_values[place])
        few_product += np.float64(few_weights[j]) * value
        product += weight * value
        correction += weight * np.float64(spread_values[place + np.uint64(1)])
    return few_product, product, correction


@kernel
def score_pairs_with_residuals_by_class(
    indptr,
    indices,
    weights,
    totals,
    few_weights,
    few_totals,
    documents,
    width,
    starts,
    pairs,
    class_indptr,
    class_indices,
    values,
    slopes,
    constants,
    correction_indptr,
    correction_indices,
    corrections,
    correction_constants,
    first,
    last,
    spread_values,
    scores,
    corrected,
):
    """Fill the same scores class by class.

    `spread_values`, scratch, is all 0 and reaches to the last term of the documents: value and
    correction of a term lie side by side, so that both cost one look.
    """
    n_terms = len(spread_values) >> 1
    for c in range(first, last):
        if starts[c] == starts[c + 1]:
            continue
        low, correction_low = class_indptr[c], correction_indptr[c]
        high = find_term(class_indices, low, class_indptr[c + 1], n_terms)
        correction_high = find_term(
            correction_indices, correction_low, correction_indptr[c + 1], n_terms
        )
        for j in range(low, high):
            spread_values[2 * class_indices[j]] = values[j]
        for j in range(correction_low, correction_high):
            spread_values[2 * correction_indices[j] + 1] = corrections[j]
        for place in range(starts[c], starts[c + 1]):
            row = documents[pairs[place] // width]
            entries = slice(indptr[row], indptr[row + 1])
            few_product, product, correction = spread_products(
                indices[entries], weights[entries], few_weights[entries], spread_values
            )
            scores[pairs[place]] = constants[c] + few_totals[row] * slopes[c] + few_product
            score = constants[c] + totals[row] * slopes[c] + product
            corrected[pairs[place]] = score + (correction_constants[c] + correction)
        for j in range(low, high):
            spread_values[2 * class_indices[j]] = 0
        for j in range(correction_low, correction_high):
            spread_values[2 * correction_indices[j] + 1] = 0


@kernel
def step_term_weights(
    indptr,
    indices,
    documents,
    places,
    contributions,
    constants,
    learning_rate,
    decay,
    scores,
    factors,
    log_weights,
    steps,
):
    """Pass once over documents, lowering the softmax loss of the first column of their rows.

    Adaptive gradient steps on the logarithms of the term weights, document by document in the order
    given; `steps` sums up the squared gradients of each term. Returns the sum of the losses.
    Scratch: `scores` (width,), and `factors`, as long as the longest document.
    """
    width = constants.shape[1]
    loss = 0.0
    for i in range(len(documents)):
        first = indptr[documents[i]]
        length = indptr[documents[i] + 1] - first
        for j in range(length):
            factors[j] = math.exp(log_weights[indices[first + j]])
        highest = -np.inf
        for column in range(width):
            place = places[i] + column * length
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
                gradient += scores[column] * contributions[places[i] + column * length + j]
            term = indices[first + j]
            gradient = gradient * factors[j] + decay * log_weights[term]
            steps[term] += gradient * gradient
            log_weights[term] -= learning_rate * gradient / math.sqrt(steps[term])
    return loss
