"""Table 1 of the paper for (document, class) pairs, and its linear score of each (class, term)."""

from __future__ import annotations

import numpy as np

from longtail._kernels.elementary import log
from longtail._kernels.jit import allocating_kernel, inlined, kernel, subroutine
from longtail._kernels.sizes import N_PAPER_FEATURES as N_FEATURES
from longtail._kernels.sorting import find_term
from longtail._kernels.statistics import term_frequency
from longtail._kernels.weighting import document_norm

CENTROID_DISTANCE = 8  # column of the ninth feature, the only one that is no sum over shared terms


@subroutine
def add_term_features(count, length, idf, rarity, relative_length, features):
    """Add one shared term to the nine features that are sums over shared terms (Table 1)."""
    share = count / length
    features[0] += log(1.0 + count)
    features[1] += log(1.0 + rarity)
    features[2] += idf
    features[3] += share * idf
    features[4] += log(1.0 + share)
    features[5] += log(1.0 + share * idf)
    features[6] += log(1.0 + share * rarity)
    features[7] += 1.0
    features[9] += idf * 2.0 * count / (count + 0.25 + 0.75 * relative_length)


@subroutine
def centroid_distance(product, norm):
    """Return 1 - cos from the product of two vectors and the product of their lengths."""
    return 1.0 - (product / norm if product > 0.0 else 0.0)


@kernel
def fill_pair_features(counts, document_ids, pair_classes, classes, block, features):
    """Fill `features` (rows, columns, 10) of document_ids[i] with each of pair_classes[i]."""
    indptr, indices, data = counts
    class_indptr, class_indices, class_counts, centroid_sums = classes[:4]
    lengths, norms, idf, rarity = classes[4:8]
    quantum, mean_length, sublinear = classes[8:]
    for row in range(block.first, block.last):
        start, stop = indptr[document_ids[row]], indptr[document_ids[row] + 1]
        norm = document_norm(indices, data, start, stop, idf, sublinear)
        for column in range(pair_classes.shape[1]):
            c = pair_classes[row, column]
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
                    class_counts[position] * quantum,
                    lengths[c],
                    idf[term],
                    rarity[term],
                    lengths[c] / mean_length,
                    out,
                )
                frequency = term_frequency(data[j], sublinear)
                product += frequency * idf[term] * (centroid_sums[position] * idf[term])
            out[CENTROID_DISTANCE] = centroid_distance(product, norm * norms[c])


@subroutine
def spread_class(classes, c, scratch):
    """Compute what each term of a class adds, and where it stands."""
    indptr, indices, counts, centroid_sums = classes[:4]
    length, idf, rarity = classes.lengths[c], classes.idf, classes.rarity
    quantum, relative_length = classes.count_quantum, length / classes.mean_length
    offsets, term_features, _ = scratch
    for j in range(indptr[c], indptr[c + 1]):
        term, entry = indices[j], j - indptr[c]
        offsets[term] = entry + 1
        added = term_features[entry]
        for k in range(N_FEATURES):
            added[k] = 0.0
        add_term_features(
            counts[j] * quantum, length, idf[term], rarity[term], relative_length, added
        )
        # No sum over shared terms, so that its column is free.
        added[CENTROID_DISTANCE] = centroid_sums[j] * idf[term]


@inlined
def sum_features(counts, document, classes, scratch):
    """Sum the features of a document's terms; returns its product with the centroid."""
    indptr, indices, data = counts
    offsets, term_features, features = scratch
    idf, sublinear = classes.idf, classes.sublinear
    for k in range(N_FEATURES):
        features[k] = 0.0
    product = 0.0
    for j in range(indptr[document], indptr[document + 1]):
        term = indices[j]
        if offsets[term] > 0:
            added = term_features[offsets[term] - 1]
            frequency = term_frequency(data[j], sublinear)
            product += frequency * idf[term] * added[CENTROID_DISTANCE]
            for k in range(N_FEATURES):
                features[k] += added[k]
    return product


@kernel
def fill_differences(counts, document_ids, pairs, are_true, classes, block, scratch, outputs):
    """Fill the features of pairs class by class: what each term of a class adds is computed once.

    Where `are_true`, the pairs of column 0, the true classes, fill `true_features[row]` and
    `document_norms[row]`; in a second call the others fill `differences[row, column - 1]`, true -
    features. The bits are those of `fill_pair_features`.
    """
    document_norms, true_features, differences = outputs
    for c in range(block.first, block.last):
        if pairs.starts[c] == pairs.starts[c + 1]:
            continue
        spread_class(classes, c, scratch)
        for p in range(pairs.starts[c], pairs.starts[c + 1]):
            row, column = pairs.ids[p] // pairs.n_columns, pairs.ids[p] % pairs.n_columns
            if (column == 0) != are_true:
                continue
            document = document_ids[row]
            if are_true:
                start, stop = counts.indptr[document], counts.indptr[document + 1]
                document_norms[row] = document_norm(
                    counts.indices, counts.data, start, stop, classes.idf, classes.sublinear
                )
            product = sum_features(counts, document, classes, scratch)
            scratch.features[CENTROID_DISTANCE] = centroid_distance(
                product, document_norms[row] * classes.norms[c]
            )
            for k in range(N_FEATURES):
                if are_true:
                    true_features[row, k] = scratch.features[k]
                else:
                    differences[row, column - 1, k] = true_features[row, k] - scratch.features[k]
        for j in range(classes.indptr[c], classes.indptr[c + 1]):
            scratch.offsets[classes.indices[j]] = 0


@allocating_kernel
def fill_term_scores(classes, weights, block, scores):
    """Fill what each (class, term) adds to a score when shared: all features but the ninth."""
    indptr, indices, counts, _ = classes[:4]
    lengths, idf, rarity = classes.lengths, classes.idf, classes.rarity
    quantum, mean_length = classes.count_quantum, classes.mean_length
    features = np.zeros(N_FEATURES)
    for c in range(block.first, block.last):
        relative_length = lengths[c] / mean_length
        for j in range(indptr[c], indptr[c + 1]):
            features[:] = 0.0
            add_term_features(
                counts[j] * quantum,
                lengths[c],
                idf[indices[j]],
                rarity[indices[j]],
                relative_length,
                features,
            )
            total = 0.0
            for k in range(N_FEATURES):
                total += weights[k] * features[k]
            scores[j] = total
