"""Which classes the search may give each document: some listed ones, or all but these.

In: sorted class ids of each subset, and the subset of each document. Out: what the search and the
ranking ask: the same subset in a segment's rows, and whether it contains a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import Floats, Integers, offsets_from_lengths


@dataclass(frozen=True, eq=False)
class ClassSubsets:
    """Subsets of the classes, each by the shorter of two lists, and the subset of each document."""

    subset_ids: Integers  # (n_documents,) int64: the subset of each document
    indptr: Integers  # (n_subsets + 1,) int64: where the list of each subset begins
    class_ids: Integers  # (nnz,) int64: ascending within a list
    # (n_subsets,) bool: whether a list holds the classes of the subset; otherwise those that it
    # lacks.
    are_allowed: NDArray[np.bool_]
    n_classes: int  # of the model

    @classmethod
    def of_masks(cls, subset_ids: Integers, masks: Sequence[NDArray[np.bool_]]) -> ClassSubsets:
        """Return subsets given by masks over all classes."""
        are_allowed = np.array([2 * np.count_nonzero(mask) <= len(mask) for mask in masks], bool)
        lists = [
            np.flatnonzero(mask == allowed)
            for mask, allowed in zip(masks, are_allowed.tolist(), strict=True)
        ]
        return cls(
            subset_ids,
            offsets_from_lengths(np.array([len(ids) for ids in lists], np.int64)),
            np.concatenate([np.zeros(0, np.int64), *lists]),
            are_allowed,
            len(masks[0]) if len(masks) else 0,
        )

    @property
    def n_allowed(self) -> Integers:
        """How many classes each subset has."""
        lengths = np.diff(self.indptr)
        return np.where(self.are_allowed, lengths, self.n_classes - lengths)

    def gather(self, documents: Integers | slice) -> ClassSubsets:
        """Return the subsets of some documents."""
        return replace(self, subset_ids=self.subset_ids[documents])

    def to_segment(self, rows: Integers) -> ClassSubsets:
        """Return the same subsets in the rows of a segment, of which each class has one or -1."""
        found = rows[self.class_ids]
        before = np.concatenate([[0], np.cumsum(found >= 0)])
        n_rows = int(rows.max(initial=-1)) + 1
        return replace(
            self, indptr=before[self.indptr], class_ids=found[found >= 0], n_classes=n_rows
        )

    def mask(self, subset: int) -> NDArray[np.bool_]:
        """Return whether each class is in a subset."""
        is_allowed = bool(self.are_allowed[subset])
        mask = np.full(self.n_classes, not is_allowed)
        mask[self.class_ids[self.indptr[subset] : self.indptr[subset + 1]]] = is_allowed
        return mask

    def contain(self, classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which class ids of each document's row are in its subset; -1 never is."""
        if len(self.are_allowed) == 1:  # one for all: without a search for each class
            return np.asarray(np.append(self.mask(0), False)[classes])
        owners = np.repeat(np.arange(len(self.are_allowed)), np.diff(self.indptr))
        keys = np.append(owners * np.int64(self.n_classes) + self.class_ids, -1)
        wanted = self.subset_ids[:, None] * np.int64(self.n_classes) + classes
        listed = keys[np.searchsorted(keys[:-1], wanted)] == wanted
        return np.asarray((listed == self.are_allowed[self.subset_ids][:, None]) & (classes >= 0))

    def share_of_rest(self, classes: NDArray[Any], within: NDArray[np.bool_]) -> Floats:
        """Return which share of the classes that are not in each document's row its subset has.

        `within` says which of those in the row are in the subset.
        """
        n_listed = np.count_nonzero(classes >= 0, axis=1)
        n_left = self.n_allowed[self.subset_ids] - np.count_nonzero(within, axis=1)
        return np.asarray(n_left / np.maximum(self.n_classes - n_listed, 1))

    def first_of(self, class_ids: Integers) -> Integers:
        """Return the first of these class ids, which are all, in each document's subset."""
        used, positions = np.unique(self.subset_ids, return_inverse=True)
        firsts = [class_ids[self.mask(subset)[class_ids].argmax()] for subset in used.tolist()]
        return np.array(firsts, np.int64)[positions]
