"""Main segment and delta segment: one search over the indexed classes and those taught since.

Rebuilding the index for one document costs a second and a half at 29,000 classes, so the classes
that change are kept in a delta segment, scored one by one, and are tombstones in the main one. What
is found is the same, bit for bit: a class has the same sums, the same weights and the same exact
score in either segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._kernels.types import PairScores
from longtail.retrieval.index import InvertedIndex
from longtail.retrieval.search import make_queries, rerank, search_batches
from longtail.scoring.linear import (
    ClassResiduals,
    LinearScorer,
    add_scorers,
    score_pairs_with_residuals,
)
from longtail.scoring.weighting import WeightedDocuments
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


def search_segments(
    documents: WeightedDocuments,
    pruned: WeightedDocuments,
    main: tuple[LinearScorer, ClassResiduals, InvertedIndex],
    delta: DeltaSegment | None,
    n_candidates: int,
    k: int,
    n_jobs: int | None = None,
) -> tuple[NDArray[Any], Floats]:
    """Return the best of each document's candidates over both segments, best first; exact.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    pruned : WeightedDocuments
        The same rows, with weights of 0 for the terms that do not search.
    main : tuple of LinearScorer, ClassResiduals and InvertedIndex
        The indexed classes; the index has the tombstones of `delta`.
    delta : DeltaSegment or None
        The classes that changed since.
    n_candidates : int
        q, the classes of highest score by the pruned query.
    k : int
        How many of these, by score and residual; at most `n_candidates`.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, k)
        Class ids; ties go to the lower one.
    scores : ndarray of shape (n_documents, k), float64
        Score by all terms plus residual.
    """
    scorer, residuals, index = main
    n_indexed = min(n_candidates, len(index.biases) - len(index.tombstones))
    n_documents = documents.rows.n_documents

    def rank(ids: Integers, shortlist: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        scores = score_pairs_with_residuals(
            documents, pruned, ids, shortlist, scorer, residuals.as_scorer, n_jobs
        )
        if delta is not None:
            shortlist, scores = _add_delta(shortlist, scores, delta, documents, pruned, ids, n_jobs)
        return rerank(shortlist, scores, n_candidates, k, n_jobs)

    return search_batches(
        pruned,
        index,
        make_queries(np.arange(n_documents)),
        n_indexed,
        rank,
        n_jobs,
        n_unindexed=0 if delta is None else len(delta.classes),
    )


def _add_delta(
    shortlist: NDArray[Any],
    scores: PairScores,
    delta: DeltaSegment,
    documents: WeightedDocuments,
    pruned: WeightedDocuments,
    document_ids: Integers,
    n_jobs: int | None,
) -> tuple[NDArray[Any], PairScores]:
    """Add every delta class to the shortlists, as class ids of the model in ascending order."""
    rows = np.tile(np.arange(len(delta.classes)), (len(document_ids), 1))
    delta_scores = score_pairs_with_residuals(
        documents,
        pruned,
        document_ids,
        rows,
        delta.ranking_scorer,
        delta.ranking_residuals.as_scorer,
        n_jobs,
    )
    classes = np.hstack([np.append(delta.main_ids, -1)[shortlist], delta.delta_ids[rows]])
    order = np.argsort(classes, axis=1, kind="stable")
    merged = (np.hstack(pair) for pair in zip(scores, delta_scores, strict=True))
    return (
        np.take_along_axis(classes, order, axis=1),
        PairScores(*(np.take_along_axis(array, order, axis=1) for array in merged)),
    )
