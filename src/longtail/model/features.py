"""The six features of a (document, class) pair that LongTailClassifier scores by.

In: weighted documents, class statistics and pairs. Out: features, or what each term adds to them,
with a document left out of its true class where asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import features as kernels
from longtail._kernels import sorting
from longtail._kernels.sizes import N_BENDS
from longtail._kernels.types import Block, Contributions, Pairs, Queries
from longtail._parallel import parallel_for
from longtail.model.weighting import Profile, WeightedDocuments
from longtail.sparse import Floats, Integers, index_dtype, offsets_from_lengths


@dataclass(frozen=True)
class Feature:
    """A catalogue entry: name, formula for one shared term, and what it measures."""

    name: str
    formula: str
    meaning: str


# s_ct is the sum of term t over the length-normalised documents of class c, P_t its share of all
# classes' sums.
# The kernels say where each formula comes from.
SCORE_FEATURES: tuple[Feature, ...] = (
    Feature("cosine", "idf_t s_ct / |s_c|", "direction of the class centroid"),
    Feature(
        "likelihood",
        "ln(1 + s_ct / (100 P_t)) - ln(1 + sum_t s_ct / 100)",
        "Dirichlet-smoothed likelihood of the terms in the class, against the collection",
    ),
    Feature("size", "ln(n_c), once", "number of documents of the class"),
    Feature("coverage", "idf_t where s_ct > 0", "whether the class has the term at all"),
    Feature("dampened_cosine", "idf_t s_ct / |s_c|^0.8", "the cosine, kinder to large classes"),
    Feature("saturation", "idf_t s_ct / (s_ct + 0.3)", "how firmly the class has the term"),
)

SIZE = kernels.SIZE  # column of that feature
N_BY_SIZE = 2 + N_BENDS  # rows of weights that depend on the size of the class

SCORE_FEATURE_NAMES: tuple[str, ...] = tuple(feature.name for feature in SCORE_FEATURES)

# To find the first candidates, before anything is learned: the cosine, kinder to large classes.
FIRST_FEATURE_WEIGHTS: Floats = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
# Nearest centroid, a scorer to compare with.
CENTROID_FEATURE_WEIGHTS: Floats = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])

# A document left out makes its true class smaller. Where classes are of equal size that alone tells
# its true class, so the weight of the size would grow without end, and a small new class would
# win everywhere. On real sets it is between -0.4 and 0.1.
_ANY = (-np.inf, np.inf)

FEATURE_WEIGHT_BOUNDS = (_ANY, _ANY, (-0.5, 1.0), _ANY, _ANY, _ANY)

# Where there is nothing to learn from; about what the feature weights are on most data.
DEFAULT_FEATURE_WEIGHTS: Floats = np.array([8.0, 0.3, 0.0, 0.1, 2.5, 0.0])


def score_features(
    documents: WeightedDocuments,
    document_ids: Integers,
    classes: Integers,
    true_classes: Integers,
    profile: Profile,
    n_jobs: int | None = None,
    *,
    sample_weights: Floats | None = None,
) -> NDArray[np.float32]:
    """Compute the six features of documents with the classes of their rows.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    document_ids : ndarray of shape (M,)
        Document ids.
    classes : ndarray of shape (M, n_columns)
        Class ids.
    true_classes : ndarray of shape (M,)
        The class whose statistics contain the document and must forget it first; -1 for none.
    profile : Profile
        Of the classes.
    n_jobs : int or None
        Number of threads.
    sample_weights : ndarray of shape (M,), optional
        How many documents each counts as in its true class; 1 when left out.

    Returns
    -------
    ndarray of shape (M, n_columns, 6), float32
    """
    features = np.empty((classes.size, len(SCORE_FEATURES)), np.float32)
    pairs = group_by_class(classes, profile.statistics.n_classes)
    queries = Queries(document_ids, true_classes, _or_empty(sample_weights))
    parallel_for(
        lambda first, last: kernels.fill_score_features(
            documents.arrays,
            queries,
            pairs,
            profile.arrays,
            Block(first, last),
            np.zeros(profile.statistics.n_terms, np.int64),
            features,
        ),
        pairs.starts,
        n_jobs,
    )
    return features.reshape(*classes.shape, len(SCORE_FEATURES))


def term_contributions(
    documents: WeightedDocuments,
    document_ids: Integers,
    classes: Integers,
    true_classes: Integers,
    profile: Profile,
    feature_weights: Floats,
    n_jobs: int | None = None,
    *,
    sample_weights: Floats | None = None,
) -> Contributions:
    """Split the scores of documents by term; parameters as in `score_features`."""
    lengths = np.diff(documents.rows.indptr)[document_ids]
    offsets = offsets_from_lengths(lengths * classes.shape[1])
    values, biases = np.empty(offsets[-1], np.float32), np.empty(classes.size, np.float32)
    pairs = group_by_class(classes, profile.statistics.n_classes)
    queries = Queries(document_ids, true_classes, _or_empty(sample_weights))
    parallel_for(
        lambda first, last: kernels.fill_contributions(
            documents.arrays,
            queries,
            pairs,
            profile.arrays,
            feature_weights,
            Block(first, last),
            np.zeros(profile.statistics.n_terms, np.int64),
            Contributions(offsets, values, biases),
        ),
        pairs.starts,
        n_jobs,
    )
    return Contributions(offsets, values, biases.reshape(classes.shape))


def leave_one_out_scores(
    documents: WeightedDocuments,
    true_classes: Integers,
    profile: Profile,
    feature_weights: Floats,
    n_jobs: int | None = None,
    *,
    document_ids: Integers | None = None,
    sample_weights: Floats | None = None,
) -> Floats:
    """Score each document for its true class, without the document itself (leave one out)."""
    document_ids = np.arange(documents.rows.n_documents) if document_ids is None else document_ids
    true_classes = np.ascontiguousarray(
        true_classes, np.int64
    )  # one type, so that the kernel is compiled once
    features = score_features(
        documents,
        document_ids,
        true_classes[:, None],
        true_classes,
        profile,
        n_jobs,
        sample_weights=sample_weights,
    )[:, 0]
    # Column by column: the bits of a product of matrices depend on how many rows there are.
    scores = np.zeros(len(document_ids))
    for column, weight in zip(features.T, feature_weights, strict=True):
        scores += column * weight
    return scores


def _or_empty(values: Floats | None) -> Floats:
    """Return values as kernels take them: none at all where all are 1."""
    return np.zeros(0) if values is None else values


def weigh_by_size(rows: Floats, log_sizes: NDArray[Any]) -> Floats:
    """Return one column of weights, shape (n_rows,), for classes of these sizes: ln n_c.

    Row 0 holds for a class of one document, row 1 is added per unit of ln n_c, and each further
    one per unit beyond its bend.
    """
    log_sizes = np.asarray(log_sizes, np.float64)
    weights = np.full(log_sizes.shape, rows[0], np.float64)
    for row, bend in zip(rows[1:].tolist(), (-np.inf, *kernels.BENDS), strict=False):
        if row != 0.0:
            weights += row * (log_sizes if bend == -np.inf else np.maximum(log_sizes - bend, 0.0))
    return weights


def group_by_class(classes: NDArray[Any], n_classes: int) -> Pairs:
    """List the pairs `row * n_columns + column` of each class; a class of -1 is no pair."""
    starts, offsets = np.zeros(n_classes + 1, np.int64), np.empty(n_classes, np.int64)
    pair_ids = np.empty(classes.size, index_dtype(classes.size))
    # One type, so that the kernel is compiled once.
    flat = classes.ravel().astype(index_dtype(n_classes), copy=False)
    sorting.group_by_class(flat, n_classes, offsets, starts, pair_ids)
    return Pairs(starts, pair_ids, classes.shape[1])
