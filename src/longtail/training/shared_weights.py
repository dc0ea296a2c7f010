"""The weights that all classes share: one for each of six features, one for each term.

In: a sample of (document, label) pairs, and class statistics. Out: `SharedWeights`. The document of
a pair is left out of the class, which so looks to it as to a new document; the classes it is told
from are outside the document's whole label set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from longtail._elementary import log
from longtail._kernels.types import Contributions
from longtail._labels import LabelSets
from longtail.model.corpus import Corpus
from longtail.model.features import (
    DEFAULT_FEATURE_WEIGHTS,
    FEATURE_WEIGHT_BOUNDS,
    FIRST_FEATURE_WEIGHTS,
    SCORE_FEATURE_NAMES,
    leave_one_out_scores,
    score_features,
    term_contributions,
)
from longtail.model.scorer import build_scorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import (
    Profile,
    WeightedDocuments,
    estimate_collection_model,
    weight_documents,
)
from longtail.retrieval.index import build_index
from longtail.sparse import CountMatrix, Floats, Integers, count_terms
from longtail.training.config import FitConfig
from longtail.training.documents import Documents, gather_documents
from longtail.training.listwise import fit_feature_weights, fit_term_weights
from longtail.training.negatives import ClassLists, draw_random_negatives, mine_hard_negatives
from longtail.training.sampling import Draws, draw_uniform_negatives


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """Weights that are learned once for all classes.

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


@dataclass(frozen=True, eq=False)
class SampledLabels:
    """Sampled (document, label) pairs, in the order of the gradient steps.

    Attributes
    ----------
    class_ids : ndarray of shape (n_sampled,)
        The label of each pair.
    labels : LabelSets
        The whole label set of its document.
    pair_ids : ndarray of shape (n_sampled,)
        Its id among all pairs, which decides what is drawn for it.
    document_ids : ndarray of shape (n_sampled,)
        The id of its document; a document may be in several pairs.
    sample_weights, costs : ndarray of shape (n_sampled,), float64, or None
        How many documents it counts as in its class, and what its loss counts; None where all
        are 1.
    """

    class_ids: Integers
    labels: LabelSets
    pair_ids: Integers
    document_ids: Integers
    sample_weights: Floats | None = None
    costs: Floats | None = None

    @classmethod
    def of(cls, labels: LabelSets, pair_ids: Integers) -> SampledLabels:
        """Return some pairs of all documents."""
        document_ids = labels.document_ids[pair_ids]
        return cls(
            labels.class_ids[pair_ids],
            labels.gather(document_ids),
            pair_ids,
            document_ids,
            None if labels.weights is None else labels.weights[pair_ids],
            None if labels.costs is None else labels.costs[pair_ids],
        )

    def slice_pairs(self, pairs: slice) -> SampledLabels:
        """Return pairs that follow each other."""
        return SampledLabels(
            self.class_ids[pairs],
            self.labels.slice(pairs),
            self.pair_ids[pairs],
            self.document_ids[pairs],
            None if self.sample_weights is None else self.sample_weights[pairs],
            None if self.costs is None else self.costs[pairs],
        )


def fit_shared_weights(
    counts: CountMatrix,
    sample: SampledLabels,
    statistics: ClassStatistics,
    corpus: Corpus,
    config: FitConfig,
) -> SharedWeights:
    """Learn term and feature weights on the sampled pairs, in their order.

    Parameters
    ----------
    counts : CountMatrix
        The document of each pair.
    sample : SampledLabels
        The pairs.
    statistics : ClassStatistics
        Of all documents.
    corpus : Corpus
        Of all documents.
    config : FitConfig
        Hyperparameters.

    Returns
    -------
    SharedWeights
    """
    collection_model = estimate_collection_model(statistics)
    profile = Profile.of(statistics, corpus, collection_model)
    idf = corpus.idf
    documents = weight_documents(counts, idf, config.n_jobs)
    lists = _draw_lists(documents, sample, profile, FIRST_FEATURE_WEIGHTS, config)
    feature_weights = _fit_features(documents, lists, profile, config)
    term_weights = _fit_terms(counts, documents, lists, profile, feature_weights, config)
    del documents  # as large as what replaces them
    documents = weight_documents(counts, idf * term_weights, config.n_jobs)
    feature_weights = _fit_features(documents, lists, profile, config)
    # Once more with the candidates that the scorer itself draws, as prediction will.
    listed = sample.slice_pairs(slice(config.n_listed))
    lists = _draw_lists(documents, listed, profile, feature_weights, config)
    feature_weights = _fit_features(documents, lists, profile, config)
    return SharedWeights(collection_model, term_weights, feature_weights)


def learn_shared_weights(
    blocks: Sequence[Documents],
    draws: Draws,
    statistics: ClassStatistics,
    corpus: Corpus,
    config: FitConfig,
    n_jobs: int | None,
) -> SharedWeights:
    """Learn term and feature weights on the pairs that were drawn."""
    sampled = gather_documents(blocks, draws.document_ids)
    pairs = SampledLabels(
        draws.class_ids,
        sampled.labels,
        draws.sample,
        draws.document_ids,
        draws.weights,
        draws.costs,
    )
    config = replace(config, n_jobs=n_jobs)
    return fit_shared_weights(sampled.counts, pairs, statistics, corpus, config)


def continue_term_weights(
    counts: CountMatrix,
    sample: SampledLabels,
    profile: Profile,
    learned: SharedWeights,
    config: FitConfig,
) -> Floats:
    """Go on learning term weights, on pairs that they were not learned on.

    Terms that were in many documents before hardly move; what a fit would have made of the others
    takes as many steps as there.

    Parameters
    ----------
    counts : CountMatrix
        The document of each pair.
    sample : SampledLabels
        The pairs.
    profile : Profile
        Of all classes; has these documents.
    learned : SharedWeights
        As they are.
    config : FitConfig
        What to do.

    Returns
    -------
    ndarray of shape (n_terms,), float64
    """
    statistics = profile.statistics
    documents = weight_documents(counts, profile.corpus.idf, config.n_jobs)
    lists = _draw_lists(documents, sample, profile, FIRST_FEATURE_WEIGHTS, config)
    n_others = statistics.limited_frequencies - count_terms(counts.indices, counts.n_terms)
    sampled = min(1.0, config.n_sampled / max(statistics.n_documents, 1))
    before = learned.term_weights, sampled * np.maximum(n_others, 0)
    weights = _fit_terms(
        counts, documents, lists, profile, learned.feature_weights, config, before=before
    )
    # Weights of a file may be so large that a softmax over them is not a number.
    return np.where(np.isfinite(weights) & (weights > 0.0), weights, learned.term_weights)


def _draw_lists(
    documents: WeightedDocuments,
    sample: SampledLabels,
    profile: Profile,
    feature_weights: Floats,
    config: FitConfig,
) -> ClassLists:
    """Return each sampled label and the highest-scored negatives, by all terms of the document."""
    rows = np.arange(len(sample.pair_ids))
    scorer = build_scorer(profile, feature_weights, config.n_jobs)
    index = build_index(scorer, profile.statistics.n_terms, config.n_jobs)
    n_negatives = _count_negatives(sample.labels, config)
    _, once, pair_rows = np.unique(sample.document_ids, return_index=True, return_inverse=True)
    labels = sample.labels.gather(once)
    negatives = mine_hard_negatives(
        documents, once, labels, scorer, index, None, n_negatives, config.n_jobs
    )[pair_rows]
    rows = np.flatnonzero((negatives >= 0).all(axis=1))  # few documents have nearly every label
    negatives, true_classes = negatives[rows], sample.class_ids[rows]
    scores = score_pairs(documents, negatives, scorer, config.n_jobs, document_ids=rows)
    weights = None if sample.sample_weights is None else sample.sample_weights[rows]
    true_scores = leave_one_out_scores(
        documents,
        true_classes,
        profile,
        feature_weights,
        config.n_jobs,
        document_ids=rows,
        sample_weights=weights,
    )
    reached = true_scores >= scores.min(axis=1)
    if config.negatives == "random":
        labels = sample.labels.gather(rows)
        negatives = draw_random_negatives(labels, n_negatives, config.seed)
    classes = np.column_stack([true_classes.astype(negatives.dtype), negatives])
    left_out = true_classes if config.leave_one_out else np.full_like(true_classes, -1)
    multiplicities = np.zeros(classes.shape, np.float32)
    costs = None if sample.costs is None else sample.costs[rows]
    lists = ClassLists(rows, classes, left_out, reached, multiplicities, weights, costs)
    if sample.labels.has_several:
        # Half of the labels are out of reach, and more than the others they are about nothing in
        # the document: on tib-subjects learning from them cost 1 to 2 points of precision at 1.
        return lists[np.flatnonzero(reached)]
    return _draw_for_unreached(lists, sample, config)


def _count_negatives(labels: LabelSets, config: FitConfig) -> int:
    """Return how many negatives each list has: as many as nearly every document can have."""
    n_classes = len(labels.classes)
    largest_set = min(int(labels.sizes.max(initial=1)), max(n_classes // 2, 1))
    return min(config.n_negatives, n_classes - max(largest_set, 1))


def _draw_for_unreached(lists: ClassLists, sample: SampledLabels, config: FitConfig) -> ClassLists:
    """Replace half of the negatives of pairs whose label scores below all of them.

    Against the highest alone such a document would teach that high scores are a bad sign. Uniform
    negatives, each standing for (K - 1) / `n_uniform` classes, make the softmax over the list an
    estimate of the softmax over all classes.
    """
    unreached, n_classes = np.flatnonzero(~lists.reached), len(sample.labels.classes)
    n_uniform = min(config.n_uniform, (lists.classes.shape[1] - 1) // 2)
    if not len(unreached) or not n_uniform or not lists.classes.shape[1] < n_classes:
        return lists
    drawn = draw_uniform_negatives(
        lists.classes[unreached, 0],
        sample.pair_ids[lists.document_ids[unreached]],
        n_classes,
        n_uniform,
        config.seed,
        config.n_jobs,
    )
    kept = lists.classes[unreached, :-n_uniform]
    multiplicities = np.full(drawn.shape, log((n_classes - 1) / n_uniform), np.float32)
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
        documents,
        listed.document_ids,
        listed.classes,
        listed.left_out,
        profile,
        config.n_jobs,
        sample_weights=listed.sample_weights,
    )
    if config.features == "cosine":
        weights = np.zeros(len(SCORE_FEATURE_NAMES))
        weights[:1] = fit_feature_weights(features[:, :, :1], costs=listed.costs)
        return weights
    return fit_feature_weights(features, bounds=FEATURE_WEIGHT_BOUNDS, costs=listed.costs)


def _fit_terms(
    counts: CountMatrix,
    documents: WeightedDocuments,
    lists: ClassLists,
    profile: Profile,
    feature_weights: Floats,
    config: FitConfig,
    before: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Learn the factor of each term, or go on with what was learned before."""
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
            sample_weights=listed.sample_weights,
        )
        biases = contributions.biases + listed.log_multiplicities
        return contributions._replace(biases=biases)

    return fit_term_weights(
        counts, lists.document_ids, contributions_of, before=before, costs=lists.costs
    )
