"""The weights that all classes share: one for each of six features, one for each term.

In: counts with class ids, class statistics and a sample of documents. Out: `SharedWeights`. Each
sampled document is left out of its class, so that the classes look to it as to a new document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from longtail._kernels.types import Contributions
from longtail.retrieval.index import build_index
from longtail.scoring.features import (
    DEFAULT_FEATURE_WEIGHTS,
    FEATURE_WEIGHT_BOUNDS,
    FIRST_FEATURE_WEIGHTS,
    SCORE_FEATURE_NAMES,
    leave_one_out_scores,
    score_features,
    term_contributions,
)
from longtail.scoring.linear import build_scorer, score_pairs
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
    estimate_collection_model,
    weight_documents,
)
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.training.config import FitConfig
from longtail.training.listwise import fit_feature_weights, fit_term_weights
from longtail.training.negatives import ClassLists, draw_random_negatives, mine_hard_negatives
from longtail.training.sampling import draw_uniform_negatives


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """What is learned once for all classes.

    Attributes
    ----------
    collection_model : ndarray of shape (n_terms,), float64
        P_t, each term's share of the sums of all classes.
    term_weights : ndarray of shape (n_terms,), float64
        Factor of each term.
    feature_weights : ndarray of shape (6,), float64
        Weight of each feature.
    """

    collection_model: Floats
    term_weights: Floats
    feature_weights: Floats


def fit_shared_weights(
    counts: CountMatrix,
    class_ids: Integers,
    statistics: ClassStatistics,
    sample: Integers,
    config: FitConfig,
) -> SharedWeights:
    """Learn term and feature weights on the sampled documents, in their order."""
    collection_model = estimate_collection_model(statistics)
    profile = Profile.of(statistics, statistics.corpus, collection_model)
    idf = statistics.corpus.idf
    documents = weight_documents(counts, idf, config.n_jobs)
    lists = _draw_lists(documents, sample, class_ids, profile, FIRST_FEATURE_WEIGHTS, config)
    feature_weights = _fit_features(documents, lists, profile, config)
    term_weights = _fit_terms(counts, documents, lists, profile, feature_weights, config)
    del documents  # as large as what replaces them
    documents = weight_documents(counts, idf * term_weights, config.n_jobs)
    feature_weights = _fit_features(documents, lists, profile, config)
    # Once more with the candidates that the scorer itself draws, as prediction will.
    listed = sample[: config.n_listed]
    lists = _draw_lists(documents, listed, class_ids, profile, feature_weights, config)
    feature_weights = _fit_features(documents, lists, profile, config)
    return SharedWeights(collection_model, term_weights, feature_weights)


def _draw_lists(
    documents: WeightedDocuments,
    sample: Integers,
    class_ids: Integers,
    profile: Profile,
    feature_weights: Floats,
    config: FitConfig,
) -> ClassLists:
    """Return each sampled document's true class and the highest-scored others, by all its terms."""
    true_classes = class_ids[sample]
    scorer = build_scorer(profile, feature_weights, config.n_jobs)
    index = build_index(scorer, profile.statistics.n_terms, config.n_jobs)
    classes = mine_hard_negatives(
        documents, sample, true_classes, scorer, index, None, config.n_negatives, config.n_jobs
    )
    negatives = np.ascontiguousarray(classes[:, 1:])
    scores = score_pairs(documents, negatives, scorer, config.n_jobs, document_ids=sample)
    true_scores = leave_one_out_scores(
        documents, true_classes, profile, feature_weights, config.n_jobs, document_ids=sample
    )
    if config.negatives == "random":
        classes = draw_random_negatives(classes, profile.statistics.n_classes, config.seed)
    left_out = true_classes if config.leave_one_out else np.full_like(true_classes, -1)
    reached = true_scores >= scores.min(axis=1)
    return _draw_for_unreached(
        ClassLists(sample, classes, left_out, reached, np.zeros(classes.shape, np.float32)),
        class_ids,
        profile.statistics.n_classes,
        config,
    )


def _draw_for_unreached(
    lists: ClassLists, class_ids: Integers, n_classes: int, config: FitConfig
) -> ClassLists:
    """Replace half of the negatives of documents whose true class scores below all of them.

    Against the highest alone such a document would teach that high scores are a bad sign. Uniform
    negatives, each standing for (K - 1) / `n_uniform` classes, make the softmax over the list an
    estimate of the softmax over all classes.
    """
    unreached = np.flatnonzero(~lists.reached)
    n_uniform = min(config.n_uniform, (lists.classes.shape[1] - 1) // 2)
    if not len(unreached) or not n_uniform or not lists.classes.shape[1] < n_classes:
        return lists
    drawn = draw_uniform_negatives(
        class_ids, lists.document_ids[unreached], n_classes, n_uniform, config.seed, config.n_jobs
    )
    kept = lists.classes[unreached, :-n_uniform]
    multiplicities = np.full(drawn.shape, np.log((n_classes - 1) / n_uniform), np.float32)
    for column in range(1, kept.shape[1]):  # a class that is in the list as itself counts once
        multiplicities[drawn == kept[:, column : column + 1]] = -np.inf
    classes, log_multiplicities = lists.classes.copy(), lists.log_multiplicities.copy()
    classes[unreached, -n_uniform:] = drawn
    log_multiplicities[unreached, -n_uniform:] = multiplicities
    return replace(lists, classes=classes, log_multiplicities=log_multiplicities)


def _fit_features(
    documents: WeightedDocuments, lists: ClassLists, profile: Profile, config: FitConfig
) -> Floats:
    """Learn the six weights on the documents that are reached: their candidates are ranked by them.

    Where there is nothing to learn from the weights keep their defaults.
    """
    listed = lists[np.flatnonzero(lists.reached)[: config.n_listed]]
    if config.features == "default" or len(listed) < config.min_listed:
        return DEFAULT_FEATURE_WEIGHTS
    features = score_features(
        documents, listed.document_ids, listed.classes, listed.left_out, profile, config.n_jobs
    )
    if config.features == "cosine":
        weights = np.zeros(len(SCORE_FEATURE_NAMES))
        weights[:1] = fit_feature_weights(features[:, :, :1])
        return weights
    return fit_feature_weights(features, bounds=FEATURE_WEIGHT_BOUNDS)


def _fit_terms(
    counts: CountMatrix,
    documents: WeightedDocuments,
    lists: ClassLists,
    profile: Profile,
    feature_weights: Floats,
    config: FitConfig,
) -> Floats:
    """Learn the factor of each term."""
    if not config.term_weights:
        return np.ones(counts.n_terms)

    def contributions_of(block: slice) -> Contributions:
        listed = lists[block]
        contributions = term_contributions(
            documents,
            listed.document_ids,
            listed.classes,
            listed.left_out,
            profile,
            feature_weights,
            config.n_jobs,
        )
        biases = contributions.biases + listed.log_multiplicities
        return contributions._replace(biases=biases)

    return fit_term_weights(counts, lists.document_ids, contributions_of)
