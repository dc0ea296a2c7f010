"""`LongTailState`: what a fit of the flagship learns, and what follows from it.

In: the learned parts. Out: the state from which prediction, explanation and editing work. The order
in which the parts are learned is in `training.pipeline`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import WithKnown, cached_property
from longtail._labels import LabelForm
from longtail.model.class_tables import ScoredClasses
from longtail.model.corpus import Corpus
from longtail.model.embeddings import Embeddings
from longtail.model.entry import Entry
from longtail.model.meaning import Table
from longtail.model.names import ClassNames, add_names
from longtail.model.overlay import SMALL_TIER, Base, Overlay
from longtail.model.parents import Parents, find_hierarchy
from longtail.model.scorer import ClassResiduals, LinearScorer, build_scorer
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile, WeightedDocuments, weight_documents
from longtail.retrieval.index import DENSE_SHARE, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import Segment
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.taxonomy.hierarchy import Hierarchy
from longtail.training.back_off import BackOff
from longtail.training.calibration import Calibrator
from longtail.training.memory import DocumentMemory
from longtail.training.observed import InUse
from longtail.training.outcomes import Calibrations
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import SharedWeights

# The index of the last few classes that changed takes 5 ms to build at 29,000 classes and 506,000
# terms, whatever few they are; to score all of them takes 0.1 ms per document.
MAX_UNINDEXED_DOCUMENTS = 16


@dataclass(frozen=True, eq=False)
class LongTailState(WithKnown, ScoredClasses):
    """Everything that is fitted: learned parts first, then what follows from them."""

    classes: NDArray[Any]  # (n_classes,): labels, sorted
    statistics: ClassStatistics  # the sums of the documents of each class
    corpus: Corpus  # the global quantities of the last fit
    collection_model: Floats  # (n_terms,): P_t, each term's share of the sums of all classes
    term_weights: Floats  # (n_terms,): learned factor of each term
    # (6,): learned weight of each feature; hard negatives are mined by them.
    feature_weights: Floats
    residuals: ClassResiduals  # residual and separator of each class as they count, in one row
    calibrator: Calibrator  # from scores to probabilities
    pruning: QueryPruning  # which terms of a document search
    # (n_classes,): classes whose documents changed since their residuals were learned.
    stale: NDArray[np.bool_]
    # Statistics and weights collapsed into one number for each (class, term), without names.
    scorer: LinearScorer
    index: InvertedIndex  # the scorer of documents and names, term by term
    # How the learned parts fared on held-out documents, and which were kept.
    check: SelfCheck = field(default_factory=SelfCheck)
    # Whether a document may have several labels, and in which form `predict` gives them.
    label_form: LabelForm = field(default_factory=LabelForm)
    # Documents of the last fit; the statistics count one once for each of its labels.
    n_fitted_documents: int = 0
    candidate_factor: int = 1  # times as many candidates as the estimator asks for
    # Classes that changed since the index was built; everything else is the base that it is over.
    overlay: Overlay | None = None
    # What `recalibrate` was told since; the calibrator has seen it.
    calibrations: Calibrations | None = None
    names: ClassNames | None = None  # the terms of the names of classes, where any has a text
    memory: DocumentMemory | None = None  # the last documents of each class, where any are kept
    # The parents of the classes of the base, where any were given; see `current_hierarchy`.
    hierarchy: Hierarchy | None = None
    # What live entries say of parents since, by the number of the entry.
    parent_edits: dict[int, Parents] = field(default_factory=dict)
    in_use: InUse = field(default_factory=InUse)  # what was learned from documents taught
    # The live entries since that observed something, by number; `refine` learns from them.
    pending: dict[int, Entry] = field(default_factory=dict)

    @property
    def name_weights(self) -> Floats:
        """The weights of names."""
        return self.check.name_weights

    @property
    def centers(self) -> Embeddings | None:
        """From where documents and class texts are compared by their embeddings."""
        return self.check.meaning_centers

    @property
    def several(self) -> bool:
        """Whether documents of the last fit had other than one label."""
        return self.calibrator.marginal

    @property
    def n_dimensions(self) -> int | None:
        """Dimensions of the embeddings of documents; None where these have none."""
        sums = self.statistics.embedding_sums
        return None if sums is None else int(sums.shape[1])

    @property
    def needs_embeddings(self) -> bool:
        """Whether embeddings count in the ranking."""
        return self.n_dimensions is not None and bool(self.check.meaning.any())

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Directions of all classes, table by table as in `segments`."""
        overlay = self.overlay
        if overlay is None:
            return (Table(self.meanings, np.arange(len(self.classes))),)
        return overlay.tables(self.meanings)

    def find_rows(self, class_ids: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the rows of classes in each of `tables`; -1 where one is not."""
        overlay = self.overlay
        if overlay is None:
            return [class_ids]
        ids = np.append(overlay.ids, -1)[class_ids.ravel()]
        found = overlay.locate(np.maximum(ids, 0))
        return [np.where(ids < 0, -1, found[i]).reshape(class_ids.shape) for i in overlay.searched]

    @cached_property
    def calibrator_in_use(self) -> Calibrator:
        """The calibrator that has seen what became of all documents taught since the fit."""
        observed = [entry.learned for _, entry in sorted(self.pending.items())]
        return self.in_use.wait(observed).waiting.count(self.calibrator)

    def have_evidence(self, counts: CountMatrix) -> NDArray[np.bool_]:
        """Return which documents have a known term, or a vector where these count."""
        known = counts.have_any(self.known_terms)
        if self.needs_embeddings and counts.embeddings is not None:
            known |= counts.embeddings.any(axis=1)
        return known

    @property
    def base(self) -> Base:
        """The classes below the overlay."""
        named = None if self.names is None else self.names.named
        return Base(self.classes, self.statistics, named)

    @property
    def all_classes(self) -> NDArray[Any]:
        """Labels of all classes, those of the overlay included."""
        return self.classes if self.overlay is None else self.overlay.all_classes

    @property
    def all_statistics(self) -> ClassStatistics:
        """The sums of all classes."""
        return self.statistics if self.overlay is None else self.overlay.statistics()

    @property
    def class_sizes(self) -> Integers:
        """Number of documents of each class; cheap, unlike the sums."""
        return self.statistics.class_sizes if self.overlay is None else self.overlay.class_sizes()

    def gather_statistics(self, class_ids: Integers) -> ClassStatistics:
        """Return the sums of some classes; the document frequencies are those of all documents."""
        overlay = self.overlay
        if overlay is None:
            return self.statistics.gather(class_ids)
        sums = overlay.gather(overlay.ids[class_ids])
        return replace(sums, document_frequencies=overlay.document_frequencies)

    @property
    def class_frequencies(self) -> Integers:
        """Number of classes that have each term."""
        overlay = self.overlay
        return self.statistics.class_frequencies if overlay is None else overlay.class_frequencies

    @cached_property
    def current_corpus(self) -> Corpus:
        """The corpus of the last fit, with later terms as if one document had each."""
        return self.corpus.with_entered_terms(self.statistics.n_terms)

    @cached_property
    def shares(self) -> Floats:
        """P_t; terms that the collection model lacks have its smallest share."""
        model = self.collection_model
        return np.where(model > 0, model, self.smallest_share)

    @cached_property
    def smallest_share(self) -> float:
        """The smallest share of a term that the last fit had."""
        given = self.collection_model[self.collection_model > 0]
        return float(given.min()) if len(given) else 1.0

    @cached_property
    def had_terms(self) -> NDArray[np.bool_]:
        """Which terms a document of the last fit had, or one that is there now."""
        overlay = self.overlay
        of_all = self.statistics if overlay is None else overlay
        had: NDArray[np.bool_] = of_all.document_frequencies > 0
        had[: len(self.corpus.document_frequencies)] |= self.corpus.document_frequencies > 0
        return had

    def count_terms(self, counts: CountMatrix) -> Integers:
        """Return how many terms each document has that a document of the model has, or had."""
        if self.had_terms.all():
            return np.diff(counts.indptr)
        n_before = np.append(0, np.cumsum(self.had_terms[counts.indices]))
        return np.asarray(n_before[counts.indptr[1:]] - n_before[counts.indptr[:-1]])

    @cached_property
    def document_weights(self) -> Floats:
        """Factors of a document's term frequencies."""
        # A term that no document has had says nothing, as if it were no term at all.
        return np.where(self.had_terms, self.current_corpus.idf * self.term_weights, 0.0)

    @cached_property
    def residual_weights(self) -> Floats:
        """Factors of a document's term frequencies for residuals."""
        if not self.several:
            return self.document_weights
        return np.where(self.had_terms, self.current_corpus.idf, 0.0)

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
        is_known = self.class_frequencies > 0
        for names in self._names_there():
            is_known[names.indices[names.weights > 0]] = True
        return is_known & (self.document_weights > 0)

    def _names_there(self) -> list[ClassNames]:
        """Return the names of the classes that are there."""
        overlay = self.overlay
        if overlay is None:
            return [] if self.names is None else [self.names]
        tables = [self.names, *(tier.names for tier in overlay.tiers)]
        found = overlay.locate(overlay.ids)
        return [
            names.gather(rows[rows >= 0])
            for names, rows in zip(tables, found, strict=True)
            if names is not None
        ]

    def segments_for(self, n_documents: int) -> tuple[Segment, ...]:
        """Return what is searched for so many documents: for a few without an index of changes."""
        is_indexed = "segments" in vars(self) or self.pruning.matching_only
        if n_documents > MAX_UNINDEXED_DOCUMENTS or is_indexed:
            return self.segments
        return self._unindexed_segments

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments to search: the indexed classes, then those that changed since."""
        return self._find_segments(0)

    @cached_property
    def _unindexed_segments(self) -> tuple[Segment, ...]:
        return self._find_segments(SMALL_TIER)

    def _find_segments(self, max_unindexed: int) -> tuple[Segment, ...]:
        main = Segment(self.ranking_scorer, self.ranking_residuals.as_scorer, self.index)
        overlay = self.overlay
        if overlay is None:
            return (main,)
        # A class matches in either segment: the terms of the few changed ones, of which
        # many would be dense rows, must tell which classes have them.
        dense_share = 1.0 if self.pruning.matching_only else DENSE_SHARE
        return overlay.segments(main, len(self.term_weights), max_unindexed, dense_share)

    @cached_property
    def current_hierarchy(self) -> Hierarchy | None:
        """The hierarchy of today."""
        if self.overlay is None:
            return self.hierarchy
        return find_hierarchy(self.hierarchy, self.overlay, self.parent_edits)

    @cached_property
    def back_off(self) -> BackOff | None:
        """The back-off to nodes of the hierarchy, where there is one."""
        if self.current_hierarchy is None:
            return None
        return BackOff(
            self.current_hierarchy,
            self.all_classes,
            self.calibrator,
            self.find_today(),
            self.calibrator.unknown_share,
        )

    def find_today(self) -> Integers:
        """Return the class of today of each class of the base; -1 where it is gone."""
        if self.overlay is None:
            return np.arange(len(self.classes))
        found: Integers = self.overlay.outer_ids[self.overlay.row_ids]
        return found

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
    """Put the learned parts together; build the scorer and the index of what counts how much."""
    feature_weights = check.kept_mixture.ranking_weights(shared.feature_weights)
    ranking = build_scorer(profile, feature_weights, n_jobs)
    sizes = profile.statistics.class_sizes
    scorer = add_names(ranking, names, sizes, check.name_weights)
    return LongTailState(
        classes=classes,
        statistics=profile.statistics,
        corpus=profile.corpus,
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
