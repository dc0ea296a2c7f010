"""Edits of classes: labels and statistics in, labels and statistics out.

What an estimator has learned of a class moves with it: `sources` says from which class each class
of the result inherits. Everything here is exact and pure; estimators derive the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._columns import align_labels, as_labels
from longtail._labels import LabelSets
from longtail._validation import (
    check_documents_left,
    check_same_kind,
    find_label,
)
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics import editing as statistics_editing
from longtail.statistics.classes import ClassStatistics


class ClassEdit(NamedTuple):
    """The result of an edit.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    statistics : ClassStatistics
        Their sums.
    sources : ndarray of shape (n_classes,)
        The class of the state before whose learned parts each class inherits; -1 for none.
    changed : ndarray of shape (n_classes,), bool
        Classes whose documents are others than before.
    merged : tuple of two ints, or None
        A class of the state before whose documents are now those of another.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    sources: Integers
    changed: NDArray[np.bool_]
    merged: tuple[int, int] | None = None

    @property
    def unchanged(self) -> Integers:
        """Source of each class whose documents are those of its source; -1 for the others."""
        return np.where(self.changed, -1, self.sources)

    def find_targets(self, n_before: int) -> Integers:
        """Return which class has the documents of each class before; -1 where it is gone."""
        targets = invert(self.sources, n_before)
        if self.merged is not None:
            targets[self.merged[0]] = targets[self.merged[1]]
        return targets


def invert(sources: Integers, n_before: int) -> Integers:
    """Return the class that inherits from each class before; -1 where none does."""
    targets = np.full(n_before, -1)
    targets[sources[sources >= 0]] = np.flatnonzero(sources >= 0)
    return targets


def sum_labelled(
    counts: CountMatrix,
    y: NDArray[Any],
    classes: NDArray[Any],
    *,
    sublinear: bool,
    n_jobs: int | None = None,
    weights: Floats | None = None,
) -> ClassStatistics:
    """Sum documents whose labels are all among sorted classes, as often as their weights say."""
    labels = LabelSets.single(np.searchsorted(classes, y), classes, weights)
    return ClassStatistics.from_counts(
        counts, labels, len(classes), sublinear=sublinear, n_jobs=n_jobs
    )


class TaughtSums(NamedTuple):
    """Sums of some documents; nothing in it has the length of the vocabulary.

    Attributes
    ----------
    statistics : ClassStatistics
        Of each label, without document frequencies.
    terms : ndarray of int64
        The terms of the documents, ascending.
    frequencies : ndarray of int64
        In how many of the documents each of these is.
    n_occurrences : float
        Sum of all counts.
    """

    statistics: ClassStatistics
    terms: Integers
    frequencies: Integers
    n_occurrences: float


def sum_compactly(
    counts: CountMatrix,
    y: NDArray[Any],
    classes: NDArray[Any],
    *,
    sublinear: bool,
    weights: Floats | None = None,
) -> TaughtSums:
    """Sum documents whose labels are all among sorted classes, at a cost of their own terms."""
    terms, entries = np.unique(counts.indices, return_inverse=True)
    compact = CountMatrix(
        counts.indptr, entries.astype(counts.indices.dtype), counts.data, len(terms)
    )
    sums = sum_labelled(compact, y, classes, sublinear=sublinear, weights=weights)
    expanded = replace(sums, indices=terms[sums.indices])
    return TaughtSums(
        statistics_editing.without_frequencies(expanded),
        terms.astype(np.int64),
        sums.document_frequencies,
        float(sums.class_lengths.sum())
        if weights is not None
        else float(counts.data.sum(dtype=np.float64)),
    )


def edit_documents(
    classes: NDArray[Any],
    statistics: ClassStatistics,
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
    n_jobs: int | None = None,
    named: NDArray[np.bool_] | None = None,
    weights: Floats | None = None,
) -> ClassEdit:
    """Add documents (direction 1), or subtract them (-1); a class with none left disappears.

    Those of the classes that are `named` stay. `weights` says as how many documents each counts.

    Raises
    ------
    ValueError
        If documents are subtracted that were never added, or none would be left.
    """
    y = align_labels(y, classes)
    labels = np.union1d(classes, y)
    positions = np.searchsorted(labels, classes)
    sources = np.full(len(labels), -1)
    sources[positions] = np.arange(len(positions))
    known = statistics_editing.scatter_classes(statistics, positions, len(labels))
    taught = sum_labelled(
        counts, y, labels, sublinear=statistics.sublinear, n_jobs=n_jobs, weights=weights
    )
    total = known + taught if direction > 0 else known - taught
    check_documents_left(total.n_documents)
    # A removed class leaves its document frequencies behind; see `statistics.editing`.
    total = statistics_editing.with_frequencies(
        total, np.minimum(total.document_frequencies, total.n_documents)
    )
    stays = total.class_sizes > 0
    if named is not None:
        stays[positions] |= named
    kept = np.flatnonzero(stays)
    return ClassEdit(
        labels[kept],
        statistics_editing.drop_empty_classes(total, stays),
        sources[kept],
        np.isin(labels[kept], y),
    )


def add_class(classes: NDArray[Any], statistics: ClassStatistics, label: Any) -> ClassEdit:
    """Make sure that there is a class of the label, be it without documents."""
    added = align_labels(as_labels([label]), classes)
    check_same_kind(added, classes)
    labels = np.union1d(classes, added)
    positions = np.searchsorted(labels, classes)
    sources = np.full(len(labels), -1)
    sources[positions] = np.arange(len(positions))
    return ClassEdit(
        labels,
        statistics_editing.scatter_classes(statistics, positions, len(labels)),
        sources,
        np.zeros(len(labels), np.bool_),
    )


def rename_class(
    classes: NDArray[Any], statistics: ClassStatistics, old: Any, new: Any
) -> ClassEdit:
    """Give a class another label."""
    class_id = find_label(classes, old)
    renamed = align_labels(as_labels([new]), classes)
    check_same_kind(renamed, classes)
    if np.any(classes == new):
        raise ValueError(
            f"there is a class {new!r} already. To add the documents of {old!r} to it, merge them "
            "instead of renaming."
        )
    labels = np.concatenate([classes, renamed])[:-1]
    labels[class_id] = new
    sources = np.argsort(labels, kind="stable")
    positions = np.empty_like(sources)
    positions[sources] = np.arange(len(sources))
    return ClassEdit(
        labels[sources],
        statistics_editing.scatter_classes(statistics, positions, len(labels)),
        sources,
        np.zeros(len(labels), np.bool_),
    )


def merge_classes(
    classes: NDArray[Any], statistics: ClassStatistics, source: Any, into: Any
) -> ClassEdit:
    """Add the documents of one class to another; the first then no longer exists."""
    class_ids = find_label(classes, source), find_label(classes, into)
    if class_ids[0] == class_ids[1]:
        raise ValueError(f"cannot merge class {source!r} into itself.")
    kept = np.delete(np.arange(len(classes)), class_ids[0])
    return ClassEdit(
        classes[kept],
        statistics_editing.merge_classes(statistics, *class_ids),
        kept,
        classes[kept] == into,
        class_ids,
    )


def remove_class(classes: NDArray[Any], statistics: ClassStatistics, label: Any) -> ClassEdit:
    """Remove a class with all its documents."""
    class_id = find_label(classes, label)
    if len(classes) == 1:
        raise ValueError("cannot remove the last class of a model; fit a new one instead.")
    kept = np.delete(np.arange(len(classes)), class_id)
    return ClassEdit(
        classes[kept],
        statistics_editing.remove_class(statistics, class_id),
        kept,
        np.zeros(len(kept), np.bool_),
    )
