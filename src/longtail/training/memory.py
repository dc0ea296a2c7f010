"""Documents that a model keeps: the last ones of each class.

In: documents as they are added and forgotten. Out: the counts and classes of those that are kept,
from which what is learned can be learned anew (`relearning`). Sums never depend on them.

A class keeps at most so many documents, the last ones that were added; or all classes the same
number, as many as there is room for. What is kept follows from the documents of the base and the
live entries since, in the order of their numbers, whatever was undone in between.

Documents are kept in three bytes for each term: how far it is from the term before, and how often
it occurs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail.model.embeddings import Embeddings
from longtail.model.entry import NO_ROWS, Changes, Entry
from longtail.model.overlay import Overlay
from longtail.sparse import CountMatrix, Integers, RowTable, stack_rows

AS_MANY_AS_FIT = 0  # documents of each class
# Terms of documents for which there is room, beside each (class, term) pair of the model. A pair
# takes some 60 bytes in a file (cve-stream until 2017: 16 MB, 260,515 pairs), and a term three.
TERMS_PER_PAIR = 2
MAX_GAP = 2**16 - 1
MAX_SMALL_COUNT = 2**8 - 1


@dataclass(frozen=True, eq=False)
class DocumentMemory(RowTable):
    """Documents, in the order in which they were added."""

    ENTRIES = ("gaps", "data")
    ROWS = ("class_ids", "embeddings")

    # How many documents of each class are kept, at most; or `AS_MANY_AS_FIT`.
    per_class: int
    indptr: Integers  # (n_kept + 1,) int64: where the entries of each document begin
    # (n_kept_entries,) uint16: how far the term is from the one before in the document, or from 0.
    gaps: NDArray[np.uint16]
    # (n_kept_entries,) uint8 or float64: counts; 0 where there is no term, only a gap.
    data: NDArray[Any]
    class_ids: Integers  # (n_kept,) int64: class of each document, in the base
    n_changed: int = 0  # documents added and forgotten since everything was learned
    # The live entries since, by their number, that add or forget documents.
    pending: dict[int, Entry] = field(default_factory=dict)
    # (n_kept, n_dimensions) int16: as `model.embeddings` has them; none where documents have none
    embeddings: Embeddings | None = None

    @classmethod
    def of(
        cls, counts: CountMatrix, class_ids: Integers, per_class: int, n_pairs: int = 0
    ) -> DocumentMemory:
        """Keep the last documents of each class; see `drop_oldest`."""
        return _pack(counts, class_ids, per_class).drop_oldest(n_pairs)

    @classmethod
    def empty(cls) -> DocumentMemory:
        """Return a memory for as many documents as fit."""
        nothing = np.zeros(0, np.int64)
        return _pack(NO_ROWS, nothing, AS_MANY_AS_FIT)

    @property
    def n_documents(self) -> int:
        """How many documents are kept, those pending not counted."""
        return len(self.class_ids)

    def take_in(self, changes: Changes) -> DocumentMemory:
        """Note documents that come and go, at next to no cost."""
        came, went = (
            [entry for entry in entries if entry.has_documents and entry.weights is None]
            for entries in (changes.plus, changes.minus)
        )
        if not came and not went:
            return self
        left = {entry.number for entry in went}
        pending = {n: entry for n, entry in self.pending.items() if n not in left}
        pending |= {entry.number: _copy(entry) for entry in came}
        n_changed = sum(len(e.class_ids) for e in came) - sum(len(e.class_ids) for e in went)
        return replace(self, n_changed=self.n_changed + n_changed, pending=pending)

    def drop_oldest(self, n_pairs: int) -> DocumentMemory:
        """Return what is left where each class keeps its last documents.

        Parameters
        ----------
        n_pairs : int
            (class, term) pairs of the model, which say how much room there is.
        """
        order = np.argsort(self.class_ids, kind="stable")
        ends = np.cumsum(np.bincount(self.class_ids))
        n_later = ends[self.class_ids[order]] - 1 - np.arange(len(order))
        per_class = self.per_class
        if per_class == AS_MANY_AS_FIT:
            needed = np.cumsum(np.bincount(n_later, np.diff(self.indptr)[order]))
            per_class = int(np.searchsorted(needed, TERMS_PER_PAIR * n_pairs, side="right"))
        return self.gather(np.sort(order[n_later < per_class]))

    def settle(self, overlay: Overlay | None, n_pairs: int) -> DocumentMemory:
        """Take in what is pending; the class ids are those to the outside of an overlay, then."""
        if overlay is None:
            return self
        outer_ids = overlay.outer_ids
        added = [e for _, e in sorted(self.pending.items()) if e.action == "teach"]
        rows = [_pack(e.counts, outer_ids[e.class_ids], self.per_class) for e in added]
        moved = replace(self, class_ids=outer_ids[overlay.row_ids[self.class_ids]], pending={})
        everything = stack_rows([moved, *rows])
        stays = everything.class_ids >= 0
        stays[everything._find_forgotten(self.pending.values(), outer_ids)] = False
        kept = everything.gather(np.flatnonzero(stays)).drop_oldest(n_pairs)
        return replace(kept, data=_narrow(kept.data))

    def documents(self, n_terms: int) -> CountMatrix:
        """Return the documents that are kept, as a fit takes them."""
        starts = np.append(0, np.cumsum(self.gaps, dtype=np.int64))[self.indptr[:-1]]
        terms = np.cumsum(self.gaps, dtype=np.int64) - np.repeat(starts, np.diff(self.indptr))
        there = self.data > 0
        indptr = np.append(0, np.cumsum(there))[self.indptr]
        data = self.data[there].astype(np.float64)
        counts = CountMatrix(indptr, terms[there].astype(np.int32), data, n_terms)
        return replace(CountMatrix.from_matrix(counts.to_csr()), embeddings=self.embeddings)

    def class_sizes(self, n_classes: int) -> Integers:
        """Return how many documents of each class are kept."""
        return np.bincount(self.class_ids, minlength=n_classes)

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
            gone = _pack(entry.counts, outer_ids[entry.class_ids], self.per_class)
            for row, class_id in enumerate(gone.class_ids.tolist()):
                same = rows.get(_key(gone, row, class_id))
                if same:
                    found.append(same.pop())
        return found


def _pack(counts: CountMatrix, class_ids: Integers, per_class: int) -> DocumentMemory:
    """Return documents with the gaps between their terms; a large one takes several entries."""
    far = np.diff(counts.indices, prepend=0).astype(np.int64)
    firsts = counts.indptr[:-1][np.diff(counts.indptr) > 0]
    far[firsts] = counts.indices[firsts]
    n_whole = far // MAX_GAP
    ends = np.cumsum(n_whole + 1)
    n_entries = int(ends[-1]) if len(ends) else 0
    gaps, data = np.full(n_entries, MAX_GAP, np.uint16), np.zeros(n_entries)
    gaps[ends - 1], data[ends - 1] = far - n_whole * MAX_GAP, counts.data
    indptr = np.append(0, ends)[counts.indptr]
    found = DocumentMemory(per_class, indptr, gaps, _narrow(data), class_ids)
    return replace(found, embeddings=counts.embeddings)


def _narrow(data: NDArray[Any]) -> NDArray[Any]:
    """Return counts in the smallest type of the format that holds them all."""
    small = data.astype(np.uint8) if data.max(initial=0) <= MAX_SMALL_COUNT else data
    return small if np.array_equal(small, data) else data


def _key(table: DocumentMemory, row: int, class_id: int) -> tuple[int, bytes, bytes]:
    """Return what tells a document of a class from others."""
    entries = slice(table.indptr[row], table.indptr[row + 1])
    data = table.data[entries].astype(np.float64)
    return class_id, table.gaps[entries].tobytes(), data.tobytes()


def _copy(entry: Entry) -> Entry:
    """Return an entry whose documents are nobody else's; the caller may change the others."""
    counts = entry.counts
    copied = replace(counts, indices=counts.indices.copy(), data=counts.data.copy())
    return replace(entry, counts=copied)
