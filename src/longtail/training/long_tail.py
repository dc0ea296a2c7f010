"""The flagship's fit: statistics, a scorer learned on hard negatives, a residual per class.

In: counts, class ids and a `FitConfig`. Out: a `LongTailState`, from which prediction, explanation
and editing work. Step by step:

1. sum the documents of each class (`statistics`)
2. draw documents, find their hard negatives, and learn what the six features and every term are
   worth, each document left out of its own class (`shared_weights`, `negatives`, `listwise`)
3. compare that with simpler scorers on held-out documents, and see how few terms of a document find
   its candidates as well as all do (`held_out`, `self_check`)
4. learn residuals without the held-out documents; learn on these how much the residuals count, and
   calibrate (`held_out`, `calibration`)
5. find every document's hard negatives, and learn each class's residual on them (`negatives`,
   `residuals`)
6. collapse statistics and weights into one number for each (class, term), and index it (`scoring`,
   `retrieval`)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._parallel import release_memory
from longtail._progress import OnStage
from longtail.retrieval.delta import DeltaSegment
from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import ClassResiduals, LinearScorer
from longtail.scoring.weighting import (
    Profile,
    weight_documents,
)
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.calibration import Calibrator
from longtail.training.config import FitConfig
from longtail.training.held_out import HeldOutTest, check_residuals, check_scorers
from longtail.training.sampling import draw_documents, hold_out
from longtail.training.scored_classes import ScoredClasses, learn_residuals, mine_all, sum_documents
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import fit_shared_weights


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
    check : SelfCheck
        How the learned parts fared on held-out documents, and which were kept.
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
    check: SelfCheck = field(default_factory=SelfCheck)
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
    corpus = statistics.corpus
    on_stage("shared weights", 0, 0)
    shared = fit_shared_weights(counts, class_ids, statistics, sample, config)
    release_memory()
    check, calibrator = SelfCheck(), Calibrator.identity()
    if len(held_out):
        on_stage("self-check", 0, 0)
        # Sums are exact: what is subtracted can be added again, so that statistics, scorer and
        # index are in memory once.
        apart = sum_documents(counts.gather(held_out), class_ids[held_out], n_classes, n_jobs)
        statistics = statistics - apart
        test = HeldOutTest(counts, class_ids, held_out, statistics, corpus, config)
        shared, check = check_scorers(test, shared)
        on_stage("calibration", 0, 0)
        check, calibrator = check_residuals(test, shared, check)
        statistics = statistics + apart
        del apart, test
        release_memory()
    on_stage("mining", 0, 0)
    pruning = QueryPruning.of(statistics, check.postings_per_class)
    documents = weight_documents(counts, corpus.idf * shared.term_weights, n_jobs)
    scored = ScoredClasses.of(statistics, corpus, shared, n_jobs)
    lists = mine_all(documents, class_ids, scored, pruning, config)
    release_memory()
    on_stage("residuals", 0, 0)
    residuals = check.kept_mixture.scale(learn_residuals(documents, lists, scored, config))
    del documents, lists
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
        check=check,
        scorer=scored.scorer,
        index=scored.build_index(n_jobs),
    )
