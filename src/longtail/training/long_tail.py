"""The flagship's fit: statistics, a scorer learned on hard negatives, a residual per class.

In: counts, class ids and a `FitConfig`. Out: a `LongTailState`, from which prediction, explanation
and editing work. Step by step:

1. sum the documents of each class (`statistics`)
2. draw documents, find their hard negatives, and learn what the six features and every term are
   worth, each document left out of its own class (`sampling`, `negatives`, `listwise`)
3. collapse that into one weight for each (class, term) and index it (`scoring`, `retrieval`)
4. find every document's hard negatives, and learn each class's residual on them (`residuals`)
5. repeat step 4 without some documents and calibrate on these (`calibration`)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._parallel import release_memory
from longtail._progress import OnStage
from longtail._validation import cap_candidates
from longtail.retrieval.delta import DeltaSegment
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search
from longtail.scoring.features import (
    leave_one_out_scores,
)
from longtail.scoring.linear import ClassResiduals, LinearScorer, build_scorer, score_pairs
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
    weight_documents,
)
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.calibration import Calibrator, fit_calibrator
from longtail.training.config import FitConfig
from longtail.training.negatives import draw_random_negatives, mine_hard_negatives
from longtail.training.residuals import fit_residuals
from longtail.training.sampling import draw_documents, hold_out
from longtail.training.shared_weights import SharedWeights, fit_shared_weights


@dataclass(frozen=True, eq=False)
class LongTailState:
    """Everything that is fitted: learned parts first, then what follows from them.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    statistics : ClassStatistics
        The sums of the documents of each class.
    corpus, current_corpus : Corpus
        The global quantities of the last fit; the same with the terms seen since.
    collection_model : ndarray of shape (n_terms,), float64
        P_t, each term's share of the sums of all classes.
    term_weights : ndarray of shape (n_terms,), float64
        Learned factor of each term.
    feature_weights : ndarray of shape (6,), float64
        Learned weight of each feature.
    residuals : ClassResiduals
        What each class has learned on its hard negatives.
    calibrator : Calibrator
        From scores to probabilities.
    pruning : QueryPruning
        Which terms of a document search.
    stale : ndarray of shape (n_classes,), bool
        Classes whose documents changed since their residuals were learned.
    scorer : LinearScorer
        Statistics and weights collapsed into one number for each (class, term).
    index : InvertedIndex
        The scorer, term by term.
    delta : DeltaSegment or None
        Classes that changed since the index was built.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    corpus: Corpus
    current_corpus: Corpus
    collection_model: Floats
    term_weights: Floats
    feature_weights: Floats
    residuals: ClassResiduals
    calibrator: Calibrator
    pruning: QueryPruning
    stale: NDArray[np.bool_]
    scorer: LinearScorer
    index: InvertedIndex
    delta: DeltaSegment | None = None

    @property
    def all_classes(self) -> NDArray[Any]:
        """Labels of all classes, those of the delta segment included."""
        return self.classes if self.delta is None else self.delta.all_classes

    @cached_property
    def document_weights(self) -> Floats:
        """What a document's term frequencies are multiplied by."""
        corpus = self.current_corpus if self.delta is None else self.delta.corpus
        # A term that no document has had says nothing, as if it were no term at all.
        return np.where(corpus.document_frequencies > 0, corpus.idf * self.term_weights, 0.0)

    def profile(self) -> Profile:
        """Return what the features need of the indexed classes."""
        return Profile.of(self.statistics, self.current_corpus, self.collection_model)


def fit_long_tail(
    counts: CountMatrix,
    class_ids: Integers,
    classes: NDArray[Any],
    config: FitConfig,
    on_stage: OnStage = lambda *_: None,
) -> LongTailState:
    """Run the stages of a fit.

    Parameters
    ----------
    counts : CountMatrix
        The documents.
    class_ids : ndarray of shape (n_documents,)
        The row of `classes` of each document.
    classes : ndarray of shape (n_classes,)
        Labels, sorted; each has a document.
    config : FitConfig
        What to do.
    on_stage : callable
        Hears the name of each stage as it begins.

    Returns
    -------
    LongTailState
        The same bits for any `n_jobs`.
    """
    n_classes, n_jobs = len(classes), config.n_jobs
    n_held_out = min(int(config.held_out_share * len(class_ids)), config.max_held_out)
    held_out = hold_out(class_ids, n_classes, n_held_out * config.calibrate, config.seed)
    sample = draw_documents(class_ids, n_classes, config.n_sampled, config.seed, without=held_out)
    on_stage("statistics", 0, 0)
    statistics = sum_documents(counts, class_ids, n_classes, n_jobs)
    corpus, pruning = statistics.corpus, QueryPruning.of(statistics)
    on_stage("shared weights", 0, 0)
    shared = fit_shared_weights(counts, class_ids, statistics, pruning, sample, config)
    release_memory()
    documents = weight_documents(counts, corpus.idf * shared.term_weights, n_jobs)
    on_stage("mining", 0, 0)
    lists = _mine_all(
        documents, class_ids, ScoredClasses.of(statistics, corpus, shared, n_jobs), pruning, config
    )
    calibrator = Calibrator.identity()
    if len(held_out):
        on_stage("calibration", 0, 0)
        # Sums are exact: what is subtracted can be added again, so that statistics, scorer and
        # index are in memory once.
        apart = sum_documents(counts.gather(held_out), class_ids[held_out], n_classes, n_jobs)
        statistics = statistics - apart
        release_memory()
        scored = ScoredClasses.of(statistics, corpus, shared, n_jobs)
        calibrator = _calibrate(documents, lists, held_out, scored, pruning, config)
        statistics = statistics + apart
        del apart, scored
    on_stage("residuals", 0, 0)
    scored = ScoredClasses.of(statistics, corpus, shared, n_jobs)
    release_memory()
    residuals = learn_residuals(documents, lists, scored, config)
    on_stage("index", 0, 0)
    return LongTailState(
        classes=classes,
        statistics=statistics,
        corpus=corpus,
        current_corpus=corpus,
        collection_model=shared.collection_model,
        term_weights=shared.term_weights,
        feature_weights=shared.feature_weights,
        residuals=residuals,
        calibrator=calibrator,
        pruning=pruning,
        stale=np.zeros(n_classes, np.bool_),
        scorer=scored.scorer,
        index=build_index(scored.scorer, statistics.n_terms, n_jobs),
    )


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """Classes with their scorer."""

    profile: Profile
    feature_weights: Floats
    scorer: LinearScorer

    @classmethod
    def of(
        cls, statistics: ClassStatistics, corpus: Corpus, shared: SharedWeights, n_jobs: int | None
    ) -> ScoredClasses:
        """Collapse statistics and shared weights."""
        profile = Profile.of(statistics, corpus, shared.collection_model)
        return cls(
            profile, shared.feature_weights, build_scorer(profile, shared.feature_weights, n_jobs)
        )

    @property
    def n_classes(self) -> int:
        """K."""
        return self.profile.statistics.n_classes

    def build_index(self, n_jobs: int | None) -> InvertedIndex:
        """Return the scorer term by term."""
        return build_index(self.scorer, self.profile.statistics.n_terms, n_jobs)


def _mine_all(
    documents: WeightedDocuments,
    class_ids: Integers,
    scored: ScoredClasses,
    pruning: QueryPruning,
    config: FitConfig,
) -> NDArray[Any]:
    """Return every document's true class and its negatives, shape (n_documents, 1 + q)."""
    classes = mine_hard_negatives(
        documents,
        np.arange(len(class_ids)),
        class_ids,
        scored.scorer,
        scored.build_index(config.n_jobs),
        pruning,
        cap_candidates(config.candidates, scored.n_classes),
        config.n_jobs,
    )
    if config.negatives == "random":
        return draw_random_negatives(classes, scored.n_classes, config.seed)
    return classes


def learn_residuals(
    documents: WeightedDocuments,
    lists: NDArray[Any],
    scored: ScoredClasses,
    config: FitConfig,
    *,
    class_mask: NDArray[np.bool_] | None = None,
    document_mask: NDArray[np.bool_] | None = None,
) -> ClassResiduals:
    """Learn the residual of each class, or of some, on all documents, or on some."""
    if not config.residuals:
        return ClassResiduals.none(scored.n_classes)

    def score_block(block: slice) -> Floats:
        scores = score_pairs(
            documents.slice_documents(block), lists[block], scored.scorer, config.n_jobs
        )
        if config.leave_one_out:
            scores[:, 0] = leave_one_out_scores(
                documents.slice_documents(block),
                lists[block, 0],
                scored.profile,
                scored.feature_weights,
                config.n_jobs,
            )
        return scores

    return fit_residuals(
        documents,
        lists,
        score_block,
        scored.n_classes,
        config.C,
        class_mask=class_mask,
        document_mask=document_mask,
        n_jobs=config.n_jobs,
    )


def _calibrate(
    documents: WeightedDocuments,
    lists: NDArray[Any],
    held_out: Integers,
    scored: ScoredClasses,
    pruning: QueryPruning,
    config: FitConfig,
) -> Calibrator:
    """Learn the residuals without the documents held out, and see how these then fare.

    The statistics lack them as well, so they are as new as a test document; only the negatives of
    the others are those found before.
    """
    used = np.ones(len(lists), np.bool_)
    used[held_out] = False
    candidates, _ = search(
        documents,
        scored.scorer,
        scored.build_index(config.n_jobs),
        cap_candidates(config.candidates, scored.n_classes),
        document_ids=held_out,
        pruning=pruning,
        n_jobs=config.n_jobs,
    )
    residuals = learn_residuals(documents, lists, scored, config, document_mask=used)
    release_memory()
    held_out_documents = documents.gather(held_out)
    scores = score_pairs(held_out_documents, candidates, scored.scorer, config.n_jobs)
    scores += score_pairs(held_out_documents, candidates, residuals.as_scorer, config.n_jobs)
    ranked, scores = rank_topk(candidates, scores, candidates.shape[1], config.n_jobs)
    return fit_calibrator(scores, ranked == lists[held_out, :1])


def sum_documents(
    counts: CountMatrix, class_ids: Integers, n_classes: int, n_jobs: int | None
) -> ClassStatistics:
    """Sum documents by class, with dampened term frequencies."""
    return ClassStatistics.from_counts(counts, class_ids, n_classes, sublinear=True, n_jobs=n_jobs)
