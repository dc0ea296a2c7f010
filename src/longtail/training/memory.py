"""Documents that a model keeps on request: the last ones of each class.

In: documents as they are added and forgotten. Out: the counts and classes of those that are kept,
from which everything that is learned can be learned anew (`relearning.relearn`). Sums never
depend on them.

A class keeps at most so many documents, the last ones that were added. A document that is forgotten
leaves the memory at once; one that had made room for a later one does not come back. What is kept
after some changes does not depend on whether they came one by one or together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail._validation import look_up
from longtail.sparse import CountMatrix, Integers, RowTable, stack_rows

PendingChange = tuple[
    CountMatrix, NDArray[Any], int
]  # documents, labels, 1 for added or -1 for forgotten


@dataclass(frozen=True, eq=False)
class DocumentMemory(RowTable):
    """Documents in CSR form, in the order in which they were added.

    Attributes
    ----------
    per_class : int
        How many documents of each class are kept, at most.
    indptr : ndarray of shape (n_kept + 1,), int64
        Where the terms of each document begin.
    indices : ndarray of shape (n_kept_entries,), int32
        Terms, ascending within a document.
    data : ndarray of shape (n_kept_entries,), float64
        Counts.
    class_ids : ndarray of shape (n_kept,), int64
        Class of each document, in the main segment.
    n_changed : int
        Documents added and forgotten since everything was learned.
    pending : tuple of (CountMatrix, ndarray of labels, int)
        What was added and forgotten since the segments were merged.
    """

    ENTRIES = ("indices", "data")
    ROWS = ("class_ids",)

    per_class: int
    indptr: Integers
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    class_ids: Integers
    n_changed: int = 0
    pending: tuple[PendingChange, ...] = field(default=())

    @classmethod
    def of(cls, counts: CountMatrix, class_ids: Integers, per_class: int) -> DocumentMemory:
        """Keep the last documents of each class."""
        everything = cls(
            per_class,
            counts.indptr,
            counts.indices.astype(np.int32, copy=False),
            counts.data.astype(np.float64, copy=False),
            class_ids,
        )
        return everything.drop_oldest()

    @property
    def n_documents(self) -> int:
        """How many documents are kept, those pending not counted."""
        return len(self.class_ids)

    def record(self, counts: CountMatrix, y: NDArray[Any], direction: int) -> DocumentMemory:
        """Record documents that are added (direction 1) or forgotten (-1), at next to no cost."""
        copied = replace(  # the caller may change the others
            counts, indices=counts.indices.copy(), data=counts.data.copy()
        )
        return replace(
            self,
            n_changed=self.n_changed + len(y),
            pending=(*self.pending, (copied, y.copy(), direction)),
        )

    def move_classes(self, targets: Integers) -> DocumentMemory:
        """Give the documents of each class to another; -1 drops them."""
        moved = replace(self, class_ids=targets[self.class_ids])
        return moved.gather(np.flatnonzero(moved.class_ids >= 0)).drop_oldest()

    def drop_oldest(self) -> DocumentMemory:
        """Return what is left where each class keeps its last documents."""
        order = np.argsort(self.class_ids, kind="stable")
        ends = np.cumsum(np.bincount(self.class_ids))
        n_later = ends[self.class_ids[order]] - 1 - np.arange(len(order))
        return self.gather(np.sort(order[n_later < self.per_class]))

    def settle(self, classes: NDArray[Any]) -> DocumentMemory:
        """Take in what is pending, change by change; the class ids are those of `classes`."""
        if not self.pending:
            return self
        added = [(counts, y) for counts, y, direction in self.pending if direction > 0]
        batches = [
            DocumentMemory(
                self.per_class,
                counts.indptr,
                counts.indices.astype(np.int32, copy=False),
                counts.data.astype(np.float64, copy=False),
                look_up(classes, y),
            )
            for counts, y in added
        ]
        everything = replace(stack_rows([self, *batches]), pending=())
        return everything.gather(self._replay(everything, classes))

    def documents(self, n_terms: int) -> CountMatrix:
        """Return the documents that are kept, as a fit takes them."""
        counts = CountMatrix(self.indptr, self.indices, self.data, n_terms)
        return CountMatrix.from_matrix(counts.to_csr())

    def labels(self, classes: NDArray[Any]) -> LabelSets:
        """Return their labels."""
        return LabelSets.single(self.class_ids, classes)

    def _replay(self, everything: DocumentMemory, classes: NDArray[Any]) -> Integers:
        """Return which rows are left after the pending changes, ascending."""
        kept: dict[int, list[int]] = {}
        changed = {i for _, y, _ in self.pending for i in look_up(classes, y).tolist()}
        stays = np.ones(self.n_documents, np.bool_)
        for row in np.flatnonzero(np.isin(self.class_ids, list(changed))).tolist():
            kept.setdefault(int(self.class_ids[row]), []).append(row)
            stays[row] = False
        row = self.n_documents
        for counts, y, direction in self.pending:
            for document, class_id in enumerate(look_up(classes, y).tolist()):
                rows = kept.setdefault(class_id, [])
                if direction > 0:
                    rows.append(row)
                    row += 1
                    del rows[: -self.per_class]
                else:
                    _remove_last(rows, everything, counts.slice(slice(document, None)))
        left = [row for class_id, rows in kept.items() if class_id >= 0 for row in rows]
        return np.sort(np.concatenate([np.flatnonzero(stays), np.array(left, np.int64)]))


def _remove_last(rows: list[int], memory: DocumentMemory, forgotten: CountMatrix) -> None:
    """Take the last row that is the first of some documents off a list, if it is there."""
    first, last = forgotten.indptr[:2]
    for i in range(len(rows) - 1, -1, -1):
        kept = slice(memory.indptr[rows[i]], memory.indptr[rows[i] + 1])
        if np.array_equal(memory.indices[kept], forgotten.indices[first:last]) and np.array_equal(
            memory.data[kept], forgotten.data[first:last]
        ):
            del rows[i]
            return
