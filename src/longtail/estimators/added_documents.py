"""How documents were counted when they were added, so that they can be subtracted the same way.

In: counts of texts by the vocabulary as it is now. Out: their counts as of the time when they were
added, or which of them never were.

A document of the fit was counted with the terms of the fit. A document added later brought all of
its terms into the vocabulary, so it was counted with all of them. Where a text has terms that
entered after the fit ("late" terms) the two differ, and the class's sums do not tell which it was:
the model keeps a 128-bit hash of the counts, with the class, of each document added with late
terms. With ``remember_documents=True`` it keeps one for every document, and a document that was
never added is noticed for certain but for a chance of 2**-128 per document kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._caching import cached_property
from longtail.model.entry import Changes
from longtail.model.overlay import Overlay
from longtail.sparse import CountMatrix, Integers

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class _Since:
    """Documents that came (sign 1) or went (-1) since, with the persistent ids of their classes."""

    counts: CountMatrix
    class_ids: Integers
    sign: int

    @cached_property
    def hashes(self) -> Hashes:
        """Of each document; computed where one is forgotten, or the model is saved."""
        return hash_rows(self.counts, np.arange(len(self.class_ids)))


@dataclass(frozen=True, eq=False)
class AddedDocuments:
    """Hashes of documents, each with its class; a document added twice is there twice."""

    # (n, 2) uint64: of the documents of the base: hashes of rows of counts, ascending in the first
    # column.
    hashes: Hashes
    class_ids: Integers  # (n,) int64: class of each, in the base
    complete: bool  # whether every document of the model is here, or only those with late terms
    # What came and went since; sums do not depend on the order, nor does this.
    since: tuple[_Since, ...] = ()

    @classmethod
    def empty(cls, *, complete: bool = False) -> AddedDocuments:
        """Return a register without documents."""
        return cls(np.zeros((0, 2), np.uint64), np.zeros(0, np.int64), complete)

    def add(self, X: csr_array[Any], class_ids: Integers, n_fitted: int) -> AddedDocuments:
        """Return the register of a base with documents added, as they are counted now."""
        kept = np.arange(X.shape[0]) if self.complete else np.flatnonzero(has_late(X, n_fitted))
        if not len(kept):
            return self
        return self._sorted(
            np.concatenate([self.hashes, hash_rows(X, kept)]),
            np.concatenate([self.class_ids, class_ids[kept]]),
        )

    def take_in(self, changes: Changes, n_fitted: int) -> AddedDocuments:
        """Return the register after documents came and went."""
        found = []
        for documents in changes.documents(0):
            kept = np.arange(documents.counts.n_documents)
            if not self.complete:
                kept = np.flatnonzero(has_late(documents.counts, n_fitted))
            if len(kept):
                counts, class_ids = documents.counts.gather(kept), documents.class_ids[kept]
                found.append(_Since(counts, class_ids, documents.direction))
        return replace(self, since=(*self.since, *found)) if found else self

    @cached_property
    def _joined(self) -> tuple[Hashes, Integers, Integers]:
        """Hashes, persistent ids and signs of what came and went."""
        nothing = np.zeros(0, np.int64)
        hashes = [np.zeros((0, 2), np.uint64), *(batch.hashes for batch in self.since)]
        class_ids = [nothing, *(batch.class_ids for batch in self.since)]
        signs = [nothing, *(np.full(len(batch.class_ids), batch.sign) for batch in self.since)]
        return np.concatenate(hashes), np.concatenate(class_ids), np.concatenate(signs)

    def count(self, row_hash: NDArray[np.uint64], outer_id: int, overlay: Overlay) -> int:
        """Return how often a document is in the class that has a place among all labels."""
        first = int(np.searchsorted(self.hashes[:, 0], row_hash[0], side="left"))
        last = int(np.searchsorted(self.hashes[:, 0], row_hash[0], side="right"))
        same = self.hashes[first:last, 1] == row_hash[1]
        outer_ids = overlay.outer_ids[overlay.row_ids[self.class_ids[first:last]]]
        n_found = int(np.count_nonzero(same & (outer_ids == outer_id)))
        hashes, class_ids, signs = self._joined
        rows = np.flatnonzero((hashes == row_hash).all(axis=1))
        rows = rows[overlay.outer_ids[class_ids[rows]] == outer_id]
        return n_found + int(signs[rows].sum())

    def settle(self, overlay: Overlay | None) -> AddedDocuments:
        """Return the register of a base in which classes have the places that an overlay says."""
        if overlay is None:
            return self
        new_hashes, new_ids, new_signs = self._joined
        hashes = np.concatenate([self.hashes, new_hashes])
        ids = np.concatenate([overlay.row_ids[self.class_ids], new_ids])
        signs = np.concatenate([np.ones(len(self.class_ids), np.int64), new_signs])
        outer_ids = overlay.outer_ids[ids]
        there = outer_ids >= 0
        keys = np.column_stack([hashes[there], outer_ids[there].astype(np.uint64)])
        if not len(keys):
            return AddedDocuments.empty(complete=self.complete)
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        times = np.bincount(which.ravel(), signs[there], len(distinct)).astype(np.int64)
        rows = np.repeat(np.arange(len(distinct)), np.maximum(times, 0))
        return self._sorted(distinct[rows, :2], distinct[rows, 2].astype(np.int64))

    def _sorted(self, hashes: Hashes, class_ids: Integers) -> AddedDocuments:
        order = np.argsort(hashes[:, 0], kind="stable")
        return AddedDocuments(np.ascontiguousarray(hashes[order]), class_ids[order], self.complete)


def count_as_added(
    X: csr_array[Any], outer_ids: Integers, n_fitted: int, added: AddedDocuments, overlay: Overlay
) -> csr_array[Any]:
    """Return counts, by the vocabulary as it is now, as they were when the documents were added.

    `outer_ids` are those of their classes among all labels; the first `n_fitted` terms are those of
    the fit; the overlay tells the classes of the register.

    Raises
    ------
    ValueError
        If the register is complete and a document is not in it.
    """
    late = has_late(X, n_fitted)
    used: dict[tuple[int, ...], int] = {}

    def find(row_hash: NDArray[np.uint64], outer_id: int) -> bool:
        key = (*row_hash.tolist(), outer_id)
        if added.count(row_hash, outer_id, overlay) <= used.get(key, 0):
            return False
        used[key] = used.get(key, 0) + 1
        return True

    asked = np.arange(X.shape[0]) if added.complete else np.flatnonzero(late)
    missing = np.zeros(X.shape[0], np.bool_)
    for document, row_hash in zip(asked.tolist(), hash_rows(X, asked), strict=True):
        missing[document] = not find(row_hash, int(outer_ids[document]))
    X = drop_late(X, n_fitted, missing & late)
    if added.complete:
        again = np.flatnonzero(missing)
        for document, row_hash in zip(again.tolist(), hash_rows(X, again), strict=True):
            if not (late[document] and find(row_hash, int(outer_ids[document]))):
                raise ValueError(
                    f"document {document} was never added to its class, or was forgotten. Give "
                    "the same documents with the same labels as when they were added."
                )
    return X


def has_late(X: csr_array[Any] | CountMatrix, n_fitted: int) -> NDArray[np.bool_]:
    """Return whether each document has a term that entered after the fit."""
    late = np.zeros(len(X.indptr) - 1, np.bool_)
    filled = np.flatnonzero(np.diff(X.indptr))
    late[filled] = X.indices[X.indptr[filled + 1] - 1] >= n_fitted  # terms ascend within a row
    return late


def drop_late(X: csr_array[Any], n_fitted: int, documents: NDArray[np.bool_]) -> csr_array[Any]:
    """Return the counts without the late terms of some documents."""
    if not documents.any():
        return X
    dropped = (X.indices >= n_fitted) & np.repeat(documents, np.diff(X.indptr))
    X = csr_array((np.where(dropped, 0.0, X.data), X.indices, X.indptr), shape=X.shape, copy=True)
    X.eliminate_zeros()
    return X


def hash_rows(X: csr_array[Any] | CountMatrix, documents: Integers) -> Hashes:
    """Return a hash of the terms and counts of some rows: BLAKE2b, 128 bits."""
    indices, data = X.indices.astype("<i8"), X.data.astype("<f8")
    hashes = np.empty((len(documents), 2), np.uint64)
    for i, document in enumerate(documents.tolist()):
        row = slice(X.indptr[document], X.indptr[document + 1])
        digest = hashlib.blake2b(indices[row].tobytes(), digest_size=16)
        digest.update(data[row].tobytes())
        hashes[i] = np.frombuffer(digest.digest(), "<u8")
    return hashes
