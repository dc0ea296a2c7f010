"""`LongTailState`: what a fit of the flagship learns, and what follows from it.

In: the learned parts. Out: the state from which prediction, explanation and editing work. The order
in which the parts are learned is in `pipeline`.
"""

from __future__ import annotations

import logging
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import Known, cached_property, keep_known
from longtail._labels import LabelForm
from longtail.retrieval.delta import DeltaSegment
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import Segment
from longtail.scoring.linear import ClassResiduals, LinearScorer, add_scorers, build_scorer
from longtail.scoring.names import ClassNames, add_names
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
    weight_documents,
)
from longtail.sparse import CountMatrix, Floats, count_terms, gather_rows
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.calibration import Calibrator
from longtail.training.memory import DocumentMemory
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import SharedWeights

_LOGGER = logging.getLogger("longtail")


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
        Learned weight of each feature; hard negatives are mined by them.
    residuals : ClassResiduals
        Residual and separator of each class as they count, in one row.
    calibrator : Calibrator
        From scores to probabilities.
    pruning : QueryPruning
        Which terms of a document search.
    stale : ndarray of shape (n_classes,), bool
        Classes whose documents changed since their residuals were learned.
    check : SelfCheck
        How the learned parts fared on held-out documents, and which were kept.
    names : ClassNames or None
        The terms of the names of classes, where any has a text.
    memory : DocumentMemory or None
        The last documents of each class, where the model keeps any.
    label_form : LabelForm
        Whether a document may have several labels, and in which form `predict` gives them.
    n_fitted_documents : int
        Documents of the last fit; the statistics count a document once for each of its labels.
    candidate_factor : int
        How many times as many candidates a document has as the estimator asks for.
    scorer : LinearScorer
        Statistics and weights collapsed into one number for each (class, term), without names.
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
    label_form: LabelForm = field(default_factory=LabelForm)
    n_fitted_documents: int = 0
    candidate_factor: int = 1
    delta: DeltaSegment | None = None
    names: ClassNames | None = None
    memory: DocumentMemory | None = None
    known: InitVar[Known] = field(default=None, kw_only=True)  # of cached properties

    def __post_init__(self, known: Known) -> None:
        keep_known(self, known)

    @property
    def several(self) -> bool:
        """Whether documents of the last fit had other than one label."""
        return self.calibrator.marginal

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

    @cached_property
    def residual_weights(self) -> Floats:
        """What a document's term frequencies are multiplied by where residuals are concerned."""
        if not self.several:
            return self.document_weights
        corpus = self.current_corpus if self.delta is None else self.delta.corpus
        return np.where(corpus.document_frequencies > 0, corpus.idf, 0.0)

    def weigh(self, counts: CountMatrix, n_jobs: int | None = None) -> WeightedDocuments:
        """Weigh documents for the scorer and for residuals."""
        documents = weight_documents(counts, self.document_weights, n_jobs)
        if not self.several:
            return documents
        plain = weight_documents(counts, self.residual_weights, n_jobs)
        return replace(documents, plain_weights=plain.weights)

    @cached_property
    def known_terms(self) -> NDArray[np.bool_]:
        """Which terms are evidence for a class: in its documents or its name, and of any weight."""
        is_known = self.statistics.class_frequencies > 0
        if self.delta is not None:
            _, gone = gather_rows(self.statistics.indptr, np.flatnonzero(self.delta.tombstones))
            n_gone = count_terms(self.statistics.indices[gone], len(is_known))
            is_known = self.statistics.class_frequencies > n_gone
            is_known[self.delta.statistics.indices] = True
        if self.names is not None:
            is_known[self.names.indices[self.names.weights > 0]] = True
        return is_known & (self.document_weights > 0)

    @cached_property
    def name_scorer(self) -> LinearScorer | None:
        """What names add to the score."""
        if self.names is None:
            return None
        return self.names.as_scorer(self.statistics.class_sizes, self.check.name_weights)

    @cached_property
    def ranking_scorer(self) -> LinearScorer:
        """The scorer of documents and names, which the index has term by term."""
        names = self.name_scorer
        return self.scorer if names is None else add_scorers(self.scorer, names)

    @cached_property
    def ranking_residuals(self) -> ClassResiduals:
        """Residuals, and what is left of the bonus of classes without documents."""
        if self.names is None:
            return self.residuals
        sizes, weights = self.statistics.class_sizes, self.check.name_weights
        return self.residuals.raise_biases(self.names.late_bonus(sizes, weights))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What is searched: the classes as they were indexed, then those that changed since."""
        delta, residuals = self.delta, self.ranking_residuals.as_scorer
        main_ids = None if delta is None else delta.main_ids
        main = Segment(self.ranking_scorer, residuals, self.index, main_ids)
        return (main,) if delta is None or not len(delta.classes) else (main, delta.segment)

    @property
    def ranking_weights(self) -> Floats:
        """Feature weights of the scorer by the size of the class, shape (5, 6)."""
        return self.check.kept_mixture.ranking_weights(self.feature_weights)

    def profile(self) -> Profile:
        """Return what the features need of the indexed classes."""
        return Profile.of(self.statistics, self.current_corpus, self.collection_model)


def build_state(
    classes: NDArray[Any],
    profile: Profile,
    shared: SharedWeights,
    residuals: ClassResiduals,
    check: SelfCheck,
    calibrator: Calibrator,
    pruning: QueryPruning,
    n_jobs: int | None = None,
    names: ClassNames | None = None,
) -> LongTailState:
    """Put the learned parts together; build the scorer and the index of what counts how much.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    profile : Profile
        Statistics and corpus.
    shared : SharedWeights
        What features and terms are worth.
    residuals : ClassResiduals
        As they count.
    check : SelfCheck
        Says how much features and residuals count.
    calibrator : Calibrator
        From scores to probabilities.
    pruning : QueryPruning
        Which terms of a document search.
    n_jobs : int or None
        Number of threads.
    names : ClassNames, optional
        The terms of the names of classes.

    Returns
    -------
    LongTailState
        For one label per document.
    """
    feature_weights = check.kept_mixture.ranking_weights(shared.feature_weights)
    ranking = build_scorer(profile, feature_weights, n_jobs)
    sizes = profile.statistics.class_sizes
    scorer = add_names(ranking, names, sizes, check.name_weights)
    return LongTailState(
        classes=classes,
        statistics=profile.statistics,
        corpus=profile.corpus,
        current_corpus=profile.corpus,
        collection_model=shared.collection_model,
        term_weights=shared.term_weights,
        feature_weights=shared.feature_weights,
        residuals=residuals,
        calibrator=calibrator,
        pruning=pruning,
        stale=np.zeros(len(classes), np.bool_),
        check=check,
        scorer=ranking,
        index=build_index(scorer, profile.statistics.n_terms, n_jobs),
        names=names,
    )
