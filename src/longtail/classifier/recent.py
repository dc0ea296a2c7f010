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

from longtail.classifier.labels import look_up
from longtail.counts import Floats, Integers
from longtail.refinement import ClassWeights
from longtail.scoring import AdditiveScore
from longtail.statistics import ClassStatistics, Corpus

if TYPE_CHECKING:
    from longtail.classifier.long_tail import LongTailModel


@dataclass(frozen=True)
class Recent:
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
        Where the model's classes and these stand in `everyone`; -1 for the superseded.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    term_counts: Floats
    class_weights: ClassWeights
    corpus: Corpus
    score: AdditiveScore
    superseded: NDArray[np.bool_]
    everyone: NDArray[Any]
    settled_places: Integers
    recent_places: Integers

    def grow_terms(self, n_terms: int) -> Recent:
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
        numbers = np.full(len(self.everyone), -1)
        settled = np.flatnonzero(~self.superseded)
        numbers[self.settled_places[settled]] = settled
        return numbers

    def recent_numbers(self) -> Integers:
        """Return, for each of everyone, its number here; -1 where it is not."""
        numbers = np.full(len(self.everyone), -1)
        numbers[self.recent_places] = np.arange(len(self.classes))
        return numbers


def change_classes(
    model: LongTailModel,
    labels: NDArray[Any],
    documents: Callable[[NDArray[Any]], ClassStatistics],
    sign: int,
    collapse: Callable[[ClassStatistics, Corpus], AdditiveScore],
) -> Recent:
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
    before = model.recent
    taught = documents(labels)
    fresh = _fresh_terms(model, taught)
    labels = np.union1d(labels, _settled_with_terms(model, fresh))
    if before is not None:
        labels = np.union1d(labels, before.classes)
    taught = documents(labels)
    sums, weights, in_settled = _gather(model, labels)
    sums = sums + taught if sign > 0 else sums - taught
    superseded = np.zeros(len(model.classes), np.bool_) if before is None else before.superseded
    superseded = superseded.copy()
    superseded[in_settled[in_settled >= 0]] = True
    n_documents = model.statistics.class_sizes[~superseded].sum() + sums.n_documents
    sums = sums.with_frequencies(np.minimum(sums.document_frequencies, n_documents))
    counts_before = model.statistics.corpus.term_counts if before is None else before.term_counts
    term_counts = counts_before + sign * taught.corpus.term_counts
    corpus = model.corpus.with_new_terms(sums.document_frequencies, term_counts)
    kept = np.flatnonzero(sums.class_sizes > 0)
    labels, sums = labels[kept], sums.take_classes(kept)
    everyone, settled_places, recent_places = _merge_labels(model.classes, superseded, labels)
    return Recent(
        classes=labels,
        statistics=sums,
        term_counts=term_counts,
        class_weights=weights.take_classes(kept),
        corpus=corpus,
        score=collapse(sums, corpus),
        superseded=superseded,
        everyone=everyone,
        settled_places=settled_places,
        recent_places=recent_places,
    )


def settle(model: LongTailModel) -> tuple[NDArray[Any], ClassStatistics, ClassWeights, Integers]:
    """Return labels, statistics and weights of all classes, and the model's number of each."""
    recent = model.recent
    if recent is None:
        raise ValueError("there is nothing recent to settle.")
    settled, here = recent.settled_numbers(), recent.recent_numbers()
    nothing = np.zeros_like(recent.statistics.document_frequencies)
    statistics = model.statistics.take_classes(settled).with_frequencies(nothing)
    statistics = statistics + recent.statistics.take_classes(here)
    weights = model.class_weights.take_classes(settled).replace_classes(
        recent.class_weights.take_classes(here), here >= 0
    )
    return recent.everyone, statistics, weights, settled


def _gather(
    model: LongTailModel, labels: NDArray[Any]
) -> tuple[ClassStatistics, ClassWeights, Integers]:
    """Return sums and weights of the classes as they are now, and their numbers in the model."""
    in_settled = look_up(model.classes, labels)
    if model.recent is None:
        return (
            model.statistics.take_classes(in_settled),
            model.class_weights.take_classes(in_settled),
            in_settled,
        )
    recent = model.recent
    in_recent = look_up(recent.classes, labels)
    gone = (in_settled >= 0) & recent.superseded[in_settled]
    in_settled = np.where(gone, -1, in_settled)
    nothing = np.zeros_like(recent.statistics.document_frequencies)
    sums = recent.statistics.take_classes(in_recent)
    sums = sums + model.statistics.take_classes(in_settled).with_frequencies(nothing)
    weights = model.class_weights.take_classes(in_settled).replace_classes(
        recent.class_weights.take_classes(in_recent), in_recent >= 0
    )
    return sums, weights, in_settled


def _fresh_terms(model: LongTailModel, taught: ClassStatistics) -> Integers:
    """Return the taught terms that the last fit had not seen: their idf is about to change."""
    terms = np.asarray(np.unique(taught.indices), np.int64)
    known = np.pad(
        model.corpus.document_frequencies,
        (0, taught.n_terms - len(model.corpus.document_frequencies)),
    )
    fresh: Integers = terms[known[terms] == 0]
    return fresh


def _settled_with_terms(model: LongTailModel, terms: Integers) -> NDArray[Any]:
    """Return the labels of settled classes that have one of the fresh terms.

    Only a class touched since the last fit can have one.
    """
    if not len(terms):
        return model.classes[:0]
    touched = np.flatnonzero(model.touched)
    rows = model.statistics.take_classes(touched)
    owners = np.repeat(touched, np.diff(rows.indptr))
    numbers = np.unique(owners[np.isin(rows.indices, terms)])
    if model.recent is not None:
        numbers = numbers[~model.recent.superseded[numbers]]
    return model.classes[numbers]


def _merge_labels(
    settled: NDArray[Any], superseded: NDArray[np.bool_], recent: NDArray[Any]
) -> tuple[NDArray[Any], Integers, Integers]:
    """Return all labels in order, and where the settled and the recent ones stand among them."""
    if np.array_equal(settled[superseded], recent):  # known classes only: no label comes or goes
        places = np.arange(len(settled))
        return settled, np.where(superseded, -1, places), places[superseded]
    left = settled[~superseded]
    recent_places = np.searchsorted(left, recent) + np.arange(len(recent))
    is_recent = np.zeros(len(left) + len(recent), np.bool_)
    is_recent[recent_places] = True
    everyone = np.empty(len(is_recent), np.result_type(left, recent))
    everyone[recent_places], everyone[~is_recent] = recent, left
    settled_places = np.full(len(settled), -1)
    settled_places[~superseded] = np.flatnonzero(~is_recent)
    return everyone, settled_places, recent_places
