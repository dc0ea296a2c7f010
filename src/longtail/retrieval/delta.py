"""The delta segment: classes that changed since the index of a model was built.

Rebuilding the index for one document costs a second and a half at 29,000 classes, so the classes
that change are kept in a delta segment and are tombstones in the main one. What
is found is the same, bit for bit: a class has the same sums, the same weights and the same exact
score in either segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail.retrieval.index import build_index
from longtail.retrieval.search import Segment
from longtail.scoring.linear import ClassResiduals, LinearScorer, add_scorers
from longtail.sparse import Floats, Integers, append_constant
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.statistics.editing import grow_terms


@dataclass(frozen=True, eq=False)
class DeltaSegment:
    """Classes that changed since the index of a model was built.

    Attributes
    ----------
    classes : ndarray of shape (n_delta,)
        Their labels, sorted.
    statistics : ClassStatistics
        Their sums; the document frequencies are those of all documents of the model.
    n_occurrences : float
        Sum of all counts of the model.
    residuals : ClassResiduals
        Of these classes.
    corpus : Corpus
        The quantities of the last fit, with the document frequencies of the terms seen since.
    collection_model : ndarray of shape (n_terms,), float64
        P_t; terms that the last fit lacked have its smallest share.
    smallest_share : float
        That one.
    scorer : LinearScorer
        Of these classes, without their names.
    name_scorer : LinearScorer or None
        What names add, where any class of the model has one.
    late_bonus : ndarray of shape (n_delta,), float64, or None
        What names add once candidates are found.
    tombstones : ndarray of shape (n_main,), bool
        Classes of the main segment that are here instead, or gone.
    all_classes : ndarray of shape (n_classes,)
        Labels of all classes, sorted.
    main_ids, delta_ids : ndarrays of int64
        Class id among all classes of each main and each delta class; -1 for tombstones.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    n_occurrences: float
    residuals: ClassResiduals
    corpus: Corpus
    collection_model: Floats
    smallest_share: float
    scorer: LinearScorer
    tombstones: NDArray[np.bool_]
    all_classes: NDArray[Any]
    main_ids: Integers
    delta_ids: Integers
    name_scorer: LinearScorer | None = None
    late_bonus: Floats | None = None

    @cached_property
    def ranking_scorer(self) -> LinearScorer:
        """The scorer of documents and names."""
        names = self.name_scorer
        return self.scorer if names is None else add_scorers(self.scorer, names)

    @cached_property
    def ranking_residuals(self) -> ClassResiduals:
        """Residuals, and what is left of the bonus of classes without documents."""
        if self.late_bonus is None:
            return self.residuals
        return self.residuals.raise_biases(self.late_bonus)

    @cached_property
    def segment(self) -> Segment:
        """These classes as they are searched."""
        scorer, n_terms = self.ranking_scorer, self.statistics.n_terms
        index = build_index(scorer, n_terms, n_of_all=len(self.tombstones))
        return Segment(scorer, self.ranking_residuals.as_scorer, index, self.delta_ids)

    def grow_terms(self, n_terms: int) -> DeltaSegment:
        """Add terms that no document has."""
        shares = self.collection_model
        return replace(
            self,
            statistics=grow_terms(self.statistics, n_terms),
            corpus=self.corpus.grow_terms(n_terms),
            collection_model=append_constant(shares, n_terms - len(shares), self.smallest_share),
        )

    def find_in_main(self) -> Integers:
        """Return the main segment's row of each class; -1 where it has none."""
        rows = np.full(len(self.all_classes), -1)
        alive = np.flatnonzero(~self.tombstones)
        rows[self.main_ids[alive]] = alive
        return rows

    def find_in_delta(self) -> Integers:
        """Return this segment's row of each class; -1 where it has none."""
        rows = np.full(len(self.all_classes), -1)
        rows[self.delta_ids] = np.arange(len(self.classes))
        return rows
