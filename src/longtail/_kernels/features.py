"""The six features of a (document, class) pair, each a sum over the document's terms.

Notation: x_t is the weight of term t in the document; s_ct the sum of t over the length-normalised
documents of class c, n_c their number, |s_c| the length of the idf-weighted sum, M_c = sum_t s_ct
its mass; p_t the share of t in the sums of all classes (the collection model).

================= ====================================================== ==================
COSINE            sum_t x_t idf_t s_ct / |s_c|                           `match`
LIKELIHOOD        sum_t x_t (ln(1 + s_ct / (mu p_t)) - ln(1 + M_c / mu)) `likelihood_ratio`,
                                                                         `smoothing_penalty`
SIZE              ln n_c                                                 `log_size`
COVERAGE          sum_t x_t idf_t over the terms of the class
DAMPENED_COSINE   sum_t x_t idf_t s_ct / |s_c|^0.8                       `match`
SATURATION        sum_t x_t idf_t s_ct / (s_ct + h)                      `saturate`
================= ====================================================== ==================

COSINE is Rocchio's classifier with tf-idf weights (Salton and Buckley 1988,
doi:10.1016/0306-4573(88)90021-0). LIKELIHOOD is query likelihood with Dirichlet smoothing (Zhai
and Lafferty 2004, doi:10.1145/984321.984322), against the collection model. DAMPENED_COSINE
divides by a power of the length, in the spirit of pivoted length normalisation (Singhal, Buckley
and Mitra 1996, doi:10.1145/243199.243206). SATURATION is the term frequency part of BM25
(Robertson and Zaragoza 2009, doi:10.1561/1500000019), without its length normalisation.

Sums are int64 multiples of a quantum, so that where a document belongs to the class itself (leave
one out) it is taken out of them without a trace. Pairs are worked off class by class: a class's row
is spread out over all terms once, and each of its documents then finds its terms there.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.elementary import exp, log
from longtail._kernels.jit import kernel, subroutine
from longtail._kernels.sizes import N_SCORE_FEATURES
from longtail._kernels.statistics import fixed_point_scale, term_frequency, weigh

COSINE, LIKELIHOOD, SIZE, COVERAGE, DAMPENED_COSINE, SATURATION = range(N_SCORE_FEATURES)

# Set once by hand, not learned: the feature weights on top of them adapt to the data.
DAMPING = 0.8  # exponent of the centroid's length in the dampened cosine
HALF_SATURATION = 0.3  # h: sum of a term in a class at which saturation is one half
PRIOR_MASS = 100.0  # mu, in documents: mass of the collection model in each class's likelihood

SMALLEST_SQUARE = 1e-6  # a centroid is never shorter than its root: a class may have lost all terms
# Sizes of a class at which the slope of a weight over ln n_c may change. On held-out documents of
# five sets these gain 0.0 to 0.4 points of accuracy and 0.0 to 0.6 of macro F1 over a straight
# line; bends at 3, 10 and 30 half of that, and four bends nothing more.
BENDS = (0.6931471805599453, 1.6094379124341003, 2.995732273553991)  # ln of 2, 5 and 20

SMALLEST_SIZE = 0.5  # documents of a class that has lost its only one; the logarithm stays finite


@subroutine
def match(weight, s, idf):
    """Return a term's part of the inner product of document and class."""
    return weight * s * idf


@subroutine
def likelihood_ratio(weight, s, share):
    """Return a shared term's part of the Dirichlet-smoothed log likelihood ratio."""
    return weight * log(1.0 + s / (PRIOR_MASS * share))


@subroutine
def smoothing_penalty(mass):
    """Return what every term of a document loses in the likelihood of a class of this mass."""
    return log(1.0 + max(mass, 0.0) / PRIOR_MASS)


@subroutine
def saturate(weight, s):
    """Return the weight times the saturation of a term's sum, BM25's tf / (tf + k)."""
    return weight * s / (s + HALF_SATURATION)


@subroutine
def centroid_norms(squared_norm):
    """Return what the two cosines divide by: the length of the centroid, and its power."""
    norm = math.sqrt(max(squared_norm, SMALLEST_SQUARE))
    return norm, exp(DAMPING * log(norm))


@subroutine
def log_size(size):
    """Return the logarithm of a number of documents."""
    return log(max(np.float64(size), SMALLEST_SIZE))


@subroutine
def bend(log_size, row):
    """Return what row `row` of the feature weights is multiplied by for a class of this size."""
    if row == 0:
        return 1.0
    return log_size if row == 1 else max(log_size - BENDS[row - 2], 0.0)


@subroutine
def term_weight(s, idf, share, cosine_weight, weights):
    """Return what a unit of a term's weight adds to the score of a class that has the term."""
    return (
        match(cosine_weight, s, idf)
        + likelihood_ratio(weights[LIKELIHOOD], s, share)
        + idf * (weights[COVERAGE] + saturate(weights[SATURATION], s))
    )


@subroutine
def scorer_weights(size, squared_norm, mass, weights):
    """Return cosine weight, length weight and bias: all of a score that no term decides."""
    norm, dampened_norm = centroid_norms(squared_norm)
    cosine_weight = weights[COSINE] / norm + weights[DAMPENED_COSINE] / dampened_norm
    length_weight = -weights[LIKELIHOOD] * smoothing_penalty(mass)
    return cosine_weight, length_weight, weights[SIZE] * log_size(size)


@kernel
def collapse_features(profile, feature_weights, block, of_class, weights, length_weights, biases):
    """Collapse the six features: a weight per (class, term), length weight and bias per class.

    Rows of `feature_weights` count by the size of the class, as `bend` says; `of_class` (6,) is
    scratch.
    """
    sums = profile.centroid_sums
    for c in range(block.first, block.last):
        for feature in range(N_SCORE_FEATURES):
            of_class[feature] = feature_weights[0, feature]
        for row in range(1, len(feature_weights)):
            factor = bend(log_size(profile.sizes[c]), row)
            for feature in range(N_SCORE_FEATURES):
                of_class[feature] += feature_weights[row, feature] * factor
        cosine_weight, length_weight, bias = scorer_weights(
            profile.sizes[c], profile.squared_norms[c], profile.masses[c], of_class
        )
        length_weights[c] = length_weight
        biases[c] = bias
        for j in range(profile.indptr[c], profile.indptr[c + 1]):
            term = profile.indices[j]
            weights[j] = 0.0
            if sums[j] > 0:
                weights[j] = term_weight(
                    sums[j] * profile.quantum,
                    profile.idf[term],
                    profile.collection_model[term],
                    cosine_weight,
                    of_class,
                )


@subroutine
def spread_class(profile, c, dense):
    """Spread a class's sums out over all terms."""
    for j in range(profile.indptr[c], profile.indptr[c + 1]):
        dense[profile.indices[j]] = profile.centroid_sums[j]


@subroutine
def clear_class(profile, c, dense):
    """Undo `spread_class`."""
    for j in range(profile.indptr[c], profile.indptr[c + 1]):
        dense[profile.indices[j]] = 0


@subroutine
def document_share(count, scale, sample_weight):
    """Return what a count has added to its class's sum."""
    share = np.int64(np.rint(term_frequency(count, np.bool_(True)) * scale))
    return weigh(share, sample_weight)


@subroutine
def leave_out(documents, row, profile, c, dense, sample_weight):
    """Return size, squared norm and mass of a class without a document, and the document's scale.

    `dense` holds the sums of the class by term. The document goes with all that it counts.
    """
    start, stop = documents.indptr[row], documents.indptr[row + 1]
    square, mass, quantum = profile.squared_norms[c], profile.masses[c], profile.quantum
    scale = fixed_point_scale(documents.data, start, stop, np.bool_(True), 1.0 / quantum)
    for j in range(start, stop):
        term = documents.indices[j]
        share = document_share(documents.data[j], scale, sample_weight)
        before = dense[term] * quantum * profile.idf[term]
        after = (dense[term] - share) * quantum * profile.idf[term]
        square += (after - before) * (after + before)
        mass -= share * quantum
    return profile.sizes[c] - sample_weight, square, mass, scale


@kernel
def fill_score_features(documents, queries, pairs, profile, block, dense, features):
    """Fill the six features of each pair of the classes of the block.

    A query is left out of its true class. `dense` (n_terms,) is scratch, all 0.
    """
    # Tuples are read once, and passed on only where a document is left out: both cost per pair.
    indptr, indices, data, weights, totals = documents
    idf, collection_model, quantum = profile.idf, profile.collection_model, profile.quantum
    sizes, squared_norms, masses = profile.sizes, profile.squared_norms, profile.masses
    document_ids, true_classes, sample_weights = queries
    starts, pair_ids, n_columns = pairs
    for c in range(block.first, block.last):
        if starts[c] == starts[c + 1]:
            continue
        spread_class(profile, c, dense)
        for p in range(starts[c], starts[c + 1]):
            pair, i = pair_ids[p], pair_ids[p] // n_columns
            row = document_ids[i]
            size, square, mass, scale = sizes[c], squared_norms[c], masses[c], 0.0
            sample_weight = sample_weights[i] if len(sample_weights) else 1.0
            if true_classes[i] == c:
                size, square, mass, scale = leave_out(
                    documents, row, profile, c, dense, sample_weight
                )
            product, likelihood, coverage, saturation = 0.0, 0.0, 0.0, 0.0
            for j in range(indptr[row], indptr[row + 1]):
                term = indices[j]
                total = dense[term]
                if scale > 0.0:
                    total -= document_share(data[j], scale, sample_weight)
                if total <= 0:
                    continue
                s, weight = total * quantum, np.float64(weights[j])
                weighted_idf = weight * idf[term]
                product += match(weight, s, idf[term])
                likelihood += likelihood_ratio(weight, s, collection_model[term])
                coverage += weighted_idf
                saturation += saturate(weighted_idf, s)
            norm, dampened_norm = centroid_norms(square)
            features[pair, COSINE] = product / norm
            features[pair, LIKELIHOOD] = likelihood - totals[row] * smoothing_penalty(mass)
            features[pair, SIZE] = log_size(size)
            features[pair, COVERAGE] = coverage
            features[pair, DAMPENED_COSINE] = product / dampened_norm
            features[pair, SATURATION] = saturation
        clear_class(profile, c, dense)


@kernel
def fill_contributions(
    documents, queries, pairs, profile, feature_weights, block, dense, contributions
):
    """Fill what each term adds to the score of each pair of the classes of the block.

    As in `fill_score_features`; the biases are flat.
    """
    indptr, indices, data, weights, _ = documents
    idf, collection_model, quantum = profile.idf, profile.collection_model, profile.quantum
    sizes, squared_norms, masses = profile.sizes, profile.squared_norms, profile.masses
    document_ids, true_classes, sample_weights = queries
    starts, pair_ids, n_columns = pairs
    offsets, values, biases = contributions
    for c in range(block.first, block.last):
        if starts[c] == starts[c + 1]:
            continue
        spread_class(profile, c, dense)
        for p in range(starts[c], starts[c + 1]):
            pair, i = pair_ids[p], pair_ids[p] // n_columns
            row = document_ids[i]
            size, square, mass, scale = sizes[c], squared_norms[c], masses[c], 0.0
            sample_weight = sample_weights[i] if len(sample_weights) else 1.0
            if true_classes[i] == c:
                size, square, mass, scale = leave_out(
                    documents, row, profile, c, dense, sample_weight
                )
            cosine_weight, length_weight, biases[pair] = scorer_weights(
                size, square, mass, feature_weights
            )
            start, stop = indptr[row], indptr[row + 1]
            target = offsets[i] + (pair - i * n_columns) * (stop - start)
            for j in range(start, stop):
                term = indices[j]
                value = length_weight
                total = dense[term]
                if scale > 0.0:
                    total -= document_share(data[j], scale, sample_weight)
                if total > 0:
                    s, share = total * quantum, collection_model[term]
                    value += term_weight(s, idf[term], share, cosine_weight, feature_weights)
                values[target + j - start] = weights[j] * value
        clear_class(profile, c, dense)
