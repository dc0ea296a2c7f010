"""The paper's fit: (π,κ)-double sampling, ten features, one linear SVM (Algorithm 1).

In: counts, class ids and a configuration. Out: a `DoubleSamplingState`, which holds all that
prediction (Algorithm 2) needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from longtail._caching import cached_property
from longtail._labels import LabelSets
from longtail._progress import OnStage
from longtail.model import overlay as overlays
from longtail.model.class_tables import Rows
from longtail.model.corpus import Corpus
from longtail.model.entry import Changes
from longtail.model.overlay import Base, Overlay
from longtail.model.scorer import LinearScorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.paper.features import (
    CENTROID_DISTANCE,
    centroid_scorer,
    term_scores,
    weight_for_cosine,
)
from longtail.paper.pairwise import PairwiseScorer, adversary_differences, fit_pairwise_scorer
from longtail.paper.sampling import PairSample, draw_pairs
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.retrieval.search import rank_topk, search
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers

MAX_DRAWS = 1000  # with one document and π = 0.01, the chance that all draws are empty is e^-10


@dataclass(frozen=True, eq=False)
class DoubleSamplingState:
    """The fitted parts of the paper's method.

    `corpus` holds the global quantities of the last fit; `centroids`, `index` and `term_scores`
    follow from the rest.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    corpus: Corpus
    pairwise: PairwiseScorer
    centroids: LinearScorer
    index: InvertedIndex
    term_scores: LinearScorer
    sample: PairSample | None = None  # known to the process that fitted the model
    overlay: Overlay | None = None

    @cached_property
    def current_corpus(self) -> Corpus:
        """The corpus of the last fit with the terms seen since."""
        return self.corpus.with_terms_of(self.statistics.corpus)

    @property
    def base(self) -> Base:
        """Labels and sums before any change."""
        return Base(self.classes, self.statistics) if self.overlay is None else self.overlay.base

    @property
    def all_classes(self) -> NDArray[Any]:
        """Labels of all classes."""
        return self.classes

    @property
    def all_statistics(self) -> ClassStatistics:
        """The sums of all classes."""
        return self.statistics

    @property
    def class_sizes(self) -> Integers:
        """Number of documents of each class."""
        return self.statistics.class_sizes

    def gather_statistics(self, class_ids: Integers) -> ClassStatistics:
        """Return the sums of some classes; the document frequencies are those of all documents."""
        return self.statistics.gather(class_ids)

    def have_evidence(self, counts: CountMatrix) -> NDArray[np.bool_]:
        """Return which documents have a known term."""
        return counts.have_any(self.known_terms)

    @cached_property
    def known_terms(self) -> NDArray[np.bool_]:
        """Which terms a class has."""
        return self.statistics.class_frequencies > 0


@dataclass(frozen=True)
class DoubleSamplingConfig:
    """Hyperparameters: π and κ, the SVM's C, the random state and the number of threads."""

    examples_per_class: float = 2
    adversaries: int = 30
    C: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None


def fit_double_sampling(
    counts: CountMatrix,
    labels: LabelSets,
    config: DoubleSamplingConfig,
    on_stage: OnStage,
) -> DoubleSamplingState:
    """Run Algorithm 1; `on_stage` hears the name of each stage as it begins.

    Weights of documents count in the statistics; documents are drawn once each.
    """
    on_stage("statistics", 0, 0)
    class_ids, classes = labels.class_ids, labels.classes
    statistics = ClassStatistics.from_counts(counts, labels, len(classes), n_jobs=config.n_jobs)
    on_stage("sampling", 0, 0)
    sample = draw_sample(class_ids, len(classes), config)
    on_stage("pair features", 0, 0)
    differences = adversary_differences(counts, statistics, sample, config.n_jobs)
    on_stage("pairwise scorer", 0, 0)
    scorer = fit_pairwise_scorer(differences, None, config.C, config.n_jobs)
    del differences  # the largest array of a fit is freed for the index
    on_stage("index", 0, 0)
    return derive_state(classes, statistics, statistics.corpus, scorer, sample, config.n_jobs)


def draw_sample(class_ids: Integers, n_classes: int, config: DoubleSamplingConfig) -> PairSample:
    """Draw until there is a document: a draw may come out empty when the data are few."""
    random_state = check_random_state(config.random_state)
    for _ in range(MAX_DRAWS):
        sample = draw_pairs(
            class_ids,
            n_classes,
            config.examples_per_class,
            config.adversaries,
            random_state,
            n_jobs=config.n_jobs,
        )
        if len(sample):
            return sample
    raise ValueError(
        f"examples_per_class={config.examples_per_class!r} is so small that {MAX_DRAWS} draws "
        f"kept none of the {len(class_ids)} documents; the paper uses 1 or 2."
    )


def derive_state(
    classes: NDArray[Any],
    statistics: ClassStatistics,
    corpus: Corpus,
    pairwise: PairwiseScorer,
    sample: PairSample | None,
    n_jobs: int | None = None,
) -> DoubleSamplingState:
    """Derive what prediction needs from the statistics and the learned weights."""
    current = corpus.with_terms_of(statistics.corpus)
    centroids = centroid_scorer(statistics, current)
    weights = term_scores(statistics, current, pairwise.weights, n_jobs=n_jobs)
    return DoubleSamplingState(
        classes=classes,
        statistics=statistics,
        corpus=corpus,
        pairwise=pairwise,
        sample=sample,
        centroids=centroids,
        index=build_index(centroids, statistics.n_terms, n_jobs),
        term_scores=LinearScorer.without_bias(statistics.indptr, statistics.indices, weights),
    )


def take_in(
    state: DoubleSamplingState, changes: Changes, n_jobs: int | None = None
) -> DoubleSamplingState:
    """Return the state after changes: everything but what was learned is derived anew."""
    overlay = overlays.overlay_of(state)
    if changes.n_new_terms:
        before = overlay.base.statistics
        grown = before.grow_terms(before.n_terms + changes.n_new_terms)
        overlay = overlay.grow_terms(overlay.base._replace(statistics=grown))
    overlay = overlays.change(overlay, changes, lambda _, ids, sums: Rows(ids, sums))
    changed = derive_state(
        overlay.all_classes,
        overlay.statistics(),
        state.corpus,
        state.pairwise,
        state.sample,
        n_jobs,
    )
    return replace(changed, overlay=overlay)


def rank_by_paper(
    state: DoubleSamplingState,
    counts: CountMatrix,
    n_candidates: int,
    k: int,
    n_jobs: int | None = None,
    subsets: ClassSubsets | None = None,
) -> tuple[NDArray[Any], Floats]:
    """Run Algorithm 2: the k best of each document's q nearest centroids, best first."""
    documents = weight_for_cosine(counts, state.current_corpus.idf, n_jobs=n_jobs)
    candidates, cosines = search(
        documents, state.centroids, state.index, n_candidates, subsets=subsets, n_jobs=n_jobs
    )
    counted = replace(documents, weights=np.ones_like(documents.weights))
    scores = score_pairs(counted, candidates, state.term_scores, n_jobs)
    cosines[candidates < 0] = 0.0  # of a subset of fewer classes: -inf
    scores += state.pairwise.weights[CENTROID_DISTANCE] * (1.0 - cosines)
    return rank_topk(candidates, scores, k, n_jobs)
