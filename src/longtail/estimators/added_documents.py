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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._validation import shift_ids

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class AddedDocuments:
    """Hashes of documents, each with its class; a document added twice is there twice.

    Attributes
    ----------
    hashes : ndarray of shape (n, 2), uint64
        Hashes of rows of counts, ascending in the first column.
    class_ids : ndarray of shape (n,), int64
        Class of each.
    complete : bool
        Whether every document of the model is here, or only those with late terms.
    """

    hashes: Hashes
    class_ids: Integers
    complete: bool

    @classmethod
    def empty(cls, *, complete: bool = False) -> AddedDocuments:
        """Return a register without documents."""
        return cls(np.zeros((0, 2), np.uint64), np.zeros(0, np.int64), complete)

    def add(self, X: csr_array[Any], class_ids: Integers, n_fitted: int) -> AddedDocuments:
        """Return the register with documents added, as they are counted now."""
        kept = np.arange(X.shape[0]) if self.complete else np.flatnonzero(has_late(X, n_fitted))
        if not len(kept):
            return self
        hashes = np.concatenate([self.hashes, hash_rows(X, kept)])
        ids = np.concatenate([self.class_ids, class_ids[kept]])
        order = np.argsort(hashes[:, 0], kind="stable")
        return AddedDocuments(hashes[order], ids[order], self.complete)

    def find(self, hashes: Hashes, class_ids: Integers, used: set[int]) -> Integers:
        """Return where each document is, -1 where it is not; none is found twice.

        Parameters
        ----------
        hashes, class_ids : ndarray
            The documents, in the order in which they are looked up.
        used : set of int
            Entries that are taken already; those found are added to it.
        """
        found = np.full(len(hashes), -1)
        first = np.searchsorted(self.hashes[:, 0], hashes[:, 0], side="left")
        last = np.searchsorted(self.hashes[:, 0], hashes[:, 0], side="right")
        for i in np.flatnonzero(last > first).tolist():
            for entry in range(first[i], last[i]):
                same = self.hashes[entry, 1] == hashes[i, 1]
                if same and self.class_ids[entry] == class_ids[i] and entry not in used:
                    used.add(entry)
                    found[i] = entry
                    break
        return found

    def remove(self, entries: Integers) -> AddedDocuments:
        """Return the register without the entries that `find` returned."""
        kept = np.ones(len(self.class_ids), np.bool_)
        kept[entries[entries >= 0]] = False
        return AddedDocuments(self.hashes[kept], self.class_ids[kept], self.complete)

    def follow_new(self, before: NDArray[Any], labels: NDArray[Any]) -> AddedDocuments:
        """Return the register after classes were added; `follow` says the same more slowly.

        Parameters
        ----------
        before : ndarray
            Labels of the classes until then, sorted.
        labels : ndarray
            Labels of the new ones, sorted.
        """
        ids = shift_ids(self.class_ids, np.searchsorted(before, labels))
        return AddedDocuments(self.hashes, ids, self.complete)

    def follow(
        self, before: NDArray[Any], after: NDArray[Any], renamed: tuple[Any, Any] | None = None
    ) -> AddedDocuments:
        """Return the register after the model's classes changed.

        Parameters
        ----------
        before, after : ndarray
            Labels of the classes, sorted. The documents of a class that is gone are dropped.
        renamed : tuple of two labels, optional
            A class of `before` whose documents are now those of a class of `after`.
        """
        if not len(self.class_ids) or before is after:
            return self
        used, entries = np.unique(self.class_ids, return_inverse=True)
        labels = before[used]  # comparing the labels of all classes takes milliseconds
        target = np.searchsorted(after, labels)
        target[target == len(after)] = 0
        target[after[target] != labels] = -1
        if renamed is not None:
            target[labels == renamed[0]] = np.searchsorted(after, renamed[1])
        ids = target[entries]
        return AddedDocuments(self.hashes[ids >= 0], ids[ids >= 0], self.complete)


def count_as_added(
    X: csr_array[Any], class_ids: Integers, n_fitted: int, added: AddedDocuments
) -> tuple[csr_array[Any], AddedDocuments]:
    """Return counts as they were when the documents were added, and the register without them.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        Counts by the vocabulary as it is now.
    class_ids : ndarray of shape (n_documents,)
        Their classes.
    n_fitted : int
        The first `n_fitted` terms are those of the fit.
    added : AddedDocuments
        The register.

    Raises
    ------
    ValueError
        If the register is complete and a document is not in it.
    """
    used: set[int] = set()
    entries = np.full(X.shape[0], -1)
    asked = np.arange(X.shape[0]) if added.complete else np.flatnonzero(has_late(X, n_fitted))
    entries[asked] = added.find(hash_rows(X, asked), class_ids[asked], used)
    missing = has_late(X, n_fitted) & (entries < 0)
    X = drop_late(X, n_fitted, missing)
    if added.complete:
        asked = np.flatnonzero(missing)
        entries[asked] = added.find(hash_rows(X, asked), class_ids[asked], used)
        if np.any(entries < 0):
            raise ValueError(
                f"document {np.flatnonzero(entries < 0)[0]} was never added to its class, or was "
                "forgotten. Give the same documents with the same labels as when they were added."
            )
    return X, added.remove(entries)


def has_late(X: csr_array[Any], n_fitted: int) -> NDArray[np.bool_]:
    """Return whether each document has a term that entered after the fit."""
    late = np.zeros(X.shape[0], np.bool_)
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


def hash_rows(X: csr_array[Any], documents: Integers) -> Hashes:
    """Return a hash of the terms and counts of some rows: BLAKE2b, 128 bits."""
    indices, data = X.indices.astype("<i8"), X.data.astype("<f8")
    hashes = np.empty((len(documents), 2), np.uint64)
    for i, document in enumerate(documents.tolist()):
        row = slice(X.indptr[document], X.indptr[document + 1])
        digest = hashlib.blake2b(indices[row].tobytes(), digest_size=16)
        digest.update(data[row].tobytes())
        hashes[i] = np.frombuffer(digest.digest(), "<u8")
    return hashes
