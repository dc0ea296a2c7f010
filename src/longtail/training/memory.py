"""Documents that a model keeps on request: the last ones of each class.

In: documents as they are added and forgotten. Out: the counts and classes of those that are kept,
from which everything that is learned can be learned anew (`relearning.relearn`). Sums never
depend on them.

A class keeps at most so many documents, the last ones that were added. What is kept follows from
the documents of the base and the live entries since, in the order of their numbers, whatever was
undone in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail.model.embeddings import Embeddings
from longtail.model.entry import Changes, Entry
from longtail.model.overlay import Overlay
from longtail.sparse import CountMatrix, Integers, RowTable, stack_rows


@dataclass(frozen=True, eq=False)
class DocumentMemory(RowTable):
    """Documents in CSR form, in the order in which they were added."""

    ENTRIES = ("indices", "data")
    ROWS = ("class_ids", "embeddings")

    per_class: int  # how many documents of each class are kept, at most
    indptr: Integers  # (n_kept + 1,) int64: where the terms of each document begin
    indices: NDArray[np.int32]  # (n_kept_entries,) int32: terms, ascending within a document
    data: NDArray[np.float64]  # (n_kept_entries,) float64: counts
    class_ids: Integers  # (n_kept,) int64: class of each document, in the base
    n_changed: int = 0  # documents added and forgotten since everything was learned
    # The live entries since, by their number, that add or forget documents.
    pending: dict[int, Entry] = field(default_factory=dict)
    # (n_kept, n_dimensions) int16: as `model.embeddings` has them; none where documents have none
    embeddings: Embeddings | None = None

    @classmethod
    def of(cls, counts: CountMatrix, class_ids: Integers, per_class: int) -> DocumentMemory:
        """Keep the last documents of each class."""
        everything = cls(
            per_class,
            counts.indptr,
            counts.indices.astype(np.int32, copy=False),
            counts.data.astype(np.float64, copy=False),
            class_ids,
            embeddings=counts.embeddings,
        )
        return everything.drop_oldest()

    @property
    def n_documents(self) -> int:
        """How many documents are kept, those pending not counted."""
        return len(self.class_ids)

    def take_in(self, changes: Changes) -> DocumentMemory:
        """Note documents that come and go, at next to no cost."""
        came = [entry for entry in changes.plus if entry.has_documents]
        went = [entry for entry in changes.minus if entry.has_documents]
        if not came and not went:
            return self
        left = {entry.number for entry in went}
        pending = {n: entry for n, entry in self.pending.items() if n not in left}
        pending |= {entry.number: _copy(entry) for entry in came}
        n_changed = sum(len(e.class_ids) for e in came) - sum(len(e.class_ids) for e in went)
        return replace(self, n_changed=self.n_changed + n_changed, pending=pending)

    def drop_oldest(self) -> DocumentMemory:
        """Return what is left where each class keeps its last documents."""
        order = np.argsort(self.class_ids, kind="stable")
        ends = np.cumsum(np.bincount(self.class_ids))
        n_later = ends[self.class_ids[order]] - 1 - np.arange(len(order))
        return self.gather(np.sort(order[n_later < self.per_class]))

    def settle(self, overlay: Overlay | None = None) -> DocumentMemory:
        """Take in what is pending; the class ids are those to the outside of an overlay, then."""
        if overlay is None:
            return self
        outer_ids = overlay.outer_ids
        added = [e for _, e in sorted(self.pending.items()) if e.action == "teach"]
        rows = [
            DocumentMemory(
                self.per_class,
                entry.counts.indptr,
                entry.counts.indices.astype(np.int32, copy=False),
                entry.counts.data.astype(np.float64, copy=False),
                outer_ids[entry.class_ids],
                embeddings=entry.counts.embeddings,
            )
            for entry in added
        ]
        kept = replace(self, class_ids=outer_ids[overlay.row_ids[self.class_ids]], pending={})
        everything = stack_rows([kept, *rows])
        stays = everything.class_ids >= 0
        stays[everything._find_forgotten(self.pending.values(), outer_ids)] = False
        return everything.gather(np.flatnonzero(stays)).drop_oldest()

    def documents(self, n_terms: int) -> CountMatrix:
        """Return the documents that are kept, as a fit takes them."""
        counts = CountMatrix(self.indptr, self.indices, self.data, n_terms)
        return replace(CountMatrix.from_matrix(counts.to_csr()), embeddings=self.embeddings)

    def labels(self, classes: NDArray[Any]) -> LabelSets:
        """Return their labels."""
        return LabelSets.single(self.class_ids, classes)

    def _find_forgotten(self, entries: Iterable[Entry], outer_ids: Integers) -> list[int]:
        """Return the rows of documents that were forgotten; of equal ones the last."""
        forgotten = [entry for entry in entries if entry.action == "forget"]
        if not forgotten:
            return []
        concerned = np.unique(np.concatenate([outer_ids[entry.class_ids] for entry in forgotten]))
        rows: dict[tuple[int, bytes, bytes], list[int]] = {}
        for row in np.flatnonzero(np.isin(self.class_ids, concerned)).tolist():
            rows.setdefault(_key(self, row, int(self.class_ids[row])), []).append(row)
        found = []
        for entry in forgotten:
            for row, class_id in enumerate(outer_ids[entry.class_ids].tolist()):
                same = rows.get(_key(entry.counts, row, class_id))
                if same:
                    found.append(same.pop())
        return found


def _key(table: DocumentMemory | CountMatrix, row: int, class_id: int) -> tuple[int, bytes, bytes]:
    """Return what tells a document of a class from others."""
    entries = slice(table.indptr[row], table.indptr[row + 1])
    indices, data = table.indices[entries].astype(np.int32), table.data[entries].astype(np.float64)
    return class_id, indices.tobytes(), data.tobytes()


def _copy(entry: Entry) -> Entry:
    """Return an entry whose documents are nobody else's; the caller may change the others."""
    counts = entry.counts
    copied = replace(counts, indices=counts.indices.copy(), data=counts.data.copy())
    return replace(entry, counts=copied)
