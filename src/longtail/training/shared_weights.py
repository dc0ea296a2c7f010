"""The weights that all classes share: one for each of six features, one for each term.

In: counts with class ids, class statistics and a sample of documents. Out: `SharedWeights`. Each
sampled document is left out of its class, so that the classes look to it as to a new document.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail._kernels.types import Contributions
from longtail.retrieval.index import build_index
from longtail.retrieval.pruning import QueryPruning
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
    pruning: QueryPruning,
    sample: Integers,
    config: FitConfig,
) -> SharedWeights:
    """Learn term and feature weights on the sampled documents, in their order."""
    collection_model = estimate_collection_model(statistics)
    profile = Profile.of(statistics, statistics.corpus, collection_model)
    idf = statistics.corpus.idf
    documents = weight_documents(counts, idf, config.n_jobs)
    lists = _draw_lists(
        documents, sample, class_ids, profile, FIRST_FEATURE_WEIGHTS, pruning, config
    )
    feature_weights = _fit_features(documents, lists, profile, config)
    term_weights = _fit_terms(counts, documents, lists, profile, feature_weights, config)
    del documents  # as large as what replaces them
    documents = weight_documents(counts, idf * term_weights, config.n_jobs)
    feature_weights = _fit_features(documents, lists, profile, config)
    # Once more with the candidates that the scorer itself draws, as prediction will.
    lists = _draw_lists(
        documents, sample[: config.n_listed], class_ids, profile, feature_weights, pruning, config
    )
    feature_weights = _fit_features(documents, lists, profile, config)
    return SharedWeights(collection_model, term_weights, feature_weights)


def _draw_lists(
    documents: WeightedDocuments,
    sample: Integers,
    class_ids: Integers,
    profile: Profile,
    feature_weights: Floats,
    pruning: QueryPruning,
    config: FitConfig,
) -> ClassLists:
    """Return each sampled document's true class and the highest-scored others.

    Documents whose true class would not be among the candidates are left out: no weights can help
    them.
    """
    true_classes = class_ids[sample]
    scorer = build_scorer(profile, feature_weights, config.n_jobs)
    index = build_index(scorer, profile.statistics.n_terms, config.n_jobs)
    classes = mine_hard_negatives(
        documents, sample, true_classes, scorer, index, pruning, config.n_negatives, config.n_jobs
    )
    negatives = np.ascontiguousarray(classes[:, 1:])
    scores = score_pairs(documents, negatives, scorer, config.n_jobs, document_ids=sample)
    true_scores = leave_one_out_scores(
        documents, true_classes, profile, feature_weights, config.n_jobs, document_ids=sample
    )
    if config.negatives == "random":
        classes = draw_random_negatives(classes, profile.statistics.n_classes, config.seed)
    left_out = true_classes if config.leave_one_out else np.full_like(true_classes, -1)
    return ClassLists(sample, classes, left_out)[true_scores >= scores.min(axis=1)]


def _fit_features(
    documents: WeightedDocuments, lists: ClassLists, profile: Profile, config: FitConfig
) -> Floats:
    """Learn the six weights, or keep the defaults where there is nothing to learn from."""
    if config.features == "default" or len(lists) < config.min_listed:
        return DEFAULT_FEATURE_WEIGHTS
    listed = lists[: config.n_listed]
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
        return term_contributions(
            documents,
            listed.document_ids,
            listed.classes,
            listed.left_out,
            profile,
            feature_weights,
            config.n_jobs,
        )

    return fit_term_weights(counts, lists.document_ids, contributions_of)
