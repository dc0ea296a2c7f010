"""Classes taught since the index was built: few, so they are kept apart and scored one by one.

Rebuilding the index for one document costs a third of a second at 29,000 classes; this costs
milliseconds. What is found is the same, bit for bit: a class has the same sums, the same values and
the same exact score in either place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import look_up
from longtail.scoring.linear import ClassResiduals, LinearScorer
from longtail.sparse import Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus

if TYPE_CHECKING:
    from longtail.estimators.long_tail import LongTailState


@dataclass(frozen=True)
class DeltaSegment:
    """What has changed since the index of a model was built.

    Attributes
    ----------
    classes : ndarray of shape (n_recent,)
        Labels of the classes that are kept here, sorted.
    statistics : ClassStatistics
        Their sums; the document frequencies are those of all documents of the model.
    term_counts : ndarray of shape (n_terms,), float64
        F_t of all documents of the model.
    class_weights : ClassWeights
        What these classes have learned.
    corpus : Corpus
        The quantities of the last fit, with the terms seen since.
    score : AdditiveScore
        Of these classes.
    superseded : ndarray of shape (n_settled,), bool
        Classes of the model that are here instead, or gone.
    everyone : ndarray of shape (n_classes,)
        Labels of all classes, sorted.
    settled_places, recent_places : ndarrays of int64
        Where the model's classes and these stand in `all_classes`; -1 for the superseded.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    term_counts: Floats
    residuals: ClassResiduals
    corpus: Corpus
    score: LinearScorer
    tombstones: NDArray[np.bool_]
    all_classes: NDArray[Any]
    settled_places: Integers
    recent_places: Integers

    def grow_terms(self, n_terms: int) -> DeltaSegment:
        """Make room for terms that no document has."""
        n_new = n_terms - len(self.term_counts)
        return replace(
            self,
            statistics=self.statistics.grow_terms(n_terms),
            term_counts=np.pad(self.term_counts, (0, n_new)),
            corpus=self.corpus.grow_terms(n_terms),
        )

    def settled_numbers(self) -> Integers:
        """Return, for each of everyone, its number in the model; -1 where it is here."""
        numbers = np.full(len(self.all_classes), -1)
        settled = np.flatnonzero(~self.tombstones)
        numbers[self.settled_places[settled]] = settled
        return numbers

    def recent_numbers(self) -> Integers:
        """Return, for each of everyone, its number here; -1 where it is not."""
        numbers = np.full(len(self.all_classes), -1)
        numbers[self.recent_places] = np.arange(len(self.classes))
        return numbers


def change_classes(
    model: LongTailState,
    labels: NDArray[Any],
    documents: Callable[[NDArray[Any]], ClassStatistics],
    sign: int,
    collapse: Callable[[ClassStatistics, Corpus], LinearScorer],
) -> DeltaSegment:
    """Add documents to some classes, or subtract them.

    Parameters
    ----------
    model : LongTailModel
        With or without recent classes.
    labels : ndarray
        Labels of the documents, each once.
    documents : callable
        Sums the documents into classes of the labels it is given.
    sign : int
        1 to add, -1 to subtract.
    collapse : callable
        Turns statistics into a score.

    Returns
    -------
    Recent

    Raises
    ------
    ValueError
        If documents are subtracted that were never added.
    """
    before = model.delta
    taught = documents(labels)
    fresh = _fresh_terms(model, taught)
    labels = np.union1d(labels, _settled_with_terms(model, fresh))
    if before is not None:
        labels = np.union1d(labels, before.classes)
    taught = documents(labels)
    sums, weights, in_settled = _gather(model, labels)
    sums = sums + taught if sign > 0 else sums - taught
    tombstones = np.zeros(len(model.classes), np.bool_) if before is None else before.tombstones
    tombstones = tombstones.copy()
    tombstones[in_settled[in_settled >= 0]] = True
    n_documents = model.statistics.class_sizes[~tombstones].sum() + sums.n_documents
    sums = sums.with_frequencies(np.minimum(sums.document_frequencies, n_documents))
    counts_before = model.statistics.corpus.term_counts if before is None else before.term_counts
    term_counts = counts_before + sign * taught.corpus.term_counts
    corpus = model.corpus.with_new_terms(sums.document_frequencies, term_counts)
    kept = np.flatnonzero(sums.class_sizes > 0)
    labels, sums = labels[kept], sums.gather_classes(kept)
    all_classes, settled_places, recent_places = _merge_labels(model.classes, tombstones, labels)
    return DeltaSegment(
        classes=labels,
        statistics=sums,
        term_counts=term_counts,
        residuals=weights.gather_classes(kept),
        corpus=corpus,
        score=collapse(sums, corpus),
        tombstones=tombstones,
        all_classes=all_classes,
        settled_places=settled_places,
        recent_places=recent_places,
    )


def settle(model: LongTailState) -> tuple[NDArray[Any], ClassStatistics, ClassResiduals, Integers]:
    """Return labels, statistics and weights of all classes, and the model's number of each."""
    recent = model.delta
    if recent is None:
        raise ValueError("there is nothing recent to settle.")
    settled, here = recent.settled_numbers(), recent.recent_numbers()
    nothing = np.zeros_like(recent.statistics.document_frequencies)
    statistics = model.statistics.gather_classes(settled).with_frequencies(nothing)
    statistics = statistics + recent.statistics.gather_classes(here)
    weights = model.residuals.gather_classes(settled).replace_classes(
        recent.residuals.gather_classes(here), here >= 0
    )
    return recent.all_classes, statistics, weights, settled


def _gather(
    model: LongTailState, labels: NDArray[Any]
) -> tuple[ClassStatistics, ClassResiduals, Integers]:
    """Return sums and weights of the classes as they are now, and their numbers in the model."""
    in_settled = look_up(model.classes, labels)
    if model.delta is None:
        return (
            model.statistics.gather_classes(in_settled),
            model.residuals.gather_classes(in_settled),
            in_settled,
        )
    recent = model.delta
    in_recent = look_up(recent.classes, labels)
    gone = (in_settled >= 0) & recent.tombstones[in_settled]
    in_settled = np.where(gone, -1, in_settled)
    nothing = np.zeros_like(recent.statistics.document_frequencies)
    sums = recent.statistics.gather_classes(in_recent)
    sums = sums + model.statistics.gather_classes(in_settled).with_frequencies(nothing)
    weights = model.residuals.gather_classes(in_settled).replace_classes(
        recent.residuals.gather_classes(in_recent), in_recent >= 0
    )
    return sums, weights, in_settled


def _fresh_terms(model: LongTailState, taught: ClassStatistics) -> Integers:
    """Return the taught terms that the last fit had not seen: their idf is about to change."""
    terms = np.asarray(np.unique(taught.indices), np.int64)
    known = np.pad(
        model.corpus.document_frequencies,
        (0, taught.n_terms - len(model.corpus.document_frequencies)),
    )
    fresh: Integers = terms[known[terms] == 0]
    return fresh


def _settled_with_terms(model: LongTailState, terms: Integers) -> NDArray[Any]:
    """Return the labels of settled classes that have one of the fresh terms.

    Only a class touched since the last fit can have one.
    """
    if not len(terms):
        return model.classes[:0]
    stale = np.flatnonzero(model.stale)
    rows = model.statistics.gather_classes(stale)
    owners = np.repeat(stale, np.diff(rows.indptr))
    numbers = np.unique(owners[np.isin(rows.indices, terms)])
    if model.delta is not None:
        numbers = numbers[~model.delta.tombstones[numbers]]
    return model.classes[numbers]


def _merge_labels(
    settled: NDArray[Any], tombstones: NDArray[np.bool_], recent: NDArray[Any]
) -> tuple[NDArray[Any], Integers, Integers]:
    """Return all labels in order, and where the settled and the recent ones stand among them."""
    if np.array_equal(settled[tombstones], recent):  # known classes only: no label comes or goes
        places = np.arange(len(settled))
        return settled, np.where(tombstones, -1, places), places[tombstones]
    left = settled[~tombstones]
    recent_places = np.searchsorted(left, recent) + np.arange(len(recent))
    is_recent = np.zeros(len(left) + len(recent), np.bool_)
    is_recent[recent_places] = True
    all_classes = np.empty(len(is_recent), np.result_type(left, recent))
    all_classes[recent_places], all_classes[~is_recent] = recent, left
    settled_places = np.full(len(settled), -1)
    settled_places[~tombstones] = np.flatnonzero(~is_recent)
    return all_classes, settled_places, recent_places
