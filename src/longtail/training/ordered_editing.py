"""Documents that were added and forgotten in turn, changed at once in a `LongTailState`.

In: a state, and documents in the order in which they came and went. Out: the state that
`change_documents` leads to one by one, bit for bit; or an error where that cannot be said of all of
them together.

Sums do not depend on the order, but four things do. (1) Whether a document may be forgotten: it
must have been there by then. A document that leaves is set off against one that came before it in
the list and has the same label and counts. If the sums before the list hold all others that leave,
then they hold each of them in its turn, for they only had more by then. (2) A class that loses its
last document loses what it has learned, even if it gets another one later; such a list is refused.
(3) Document frequencies are clipped where a removed class left them behind: a list by which that
might happen is refused. (4) Which documents a memory keeps; it is told of all in their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import check_documents_left, look_up
from longtail.sparse import CountMatrix, Integers
from longtail.training.delta_editing import gather_sums
from longtail.training.editing import edit_documents, sum_compactly
from longtail.training.long_tail import LongTailState
from longtail.training.long_tail_editing import (
    DELTA_CAPACITY,
    change_sums,
    derive,
    inherit,
    merge_learned,
    settle_memory,
)

Flags = NDArray[np.bool_]


class RevivedClassError(ValueError):
    """A class lost its last document and then got another; `document` is the one that it got."""

    def __init__(self, label: Any, document: int) -> None:
        super().__init__(f"class {label!r} disappears and comes back with document {document}")
        self.document = document


def change_in_order(
    state: LongTailState,
    counts: CountMatrix,
    y: NDArray[Any],
    added: Flags,
    n_jobs: int | None = None,
) -> LongTailState:
    """Add and forget documents, the same bits as one by one.

    Parameters
    ----------
    state : LongTailState
        Stays as it is.
    counts : CountMatrix
        The documents in their order, each counted as when it was added.
    y : ndarray of shape (n_documents,)
        Their labels.
    added : ndarray of shape (n_documents,), bool
        Whether each is added, or forgotten.
    n_jobs : int or None, default=None
        Number of threads.

    Raises
    ------
    RevivedClassError
        If a class disappears and comes back; the documents before it can go together.
    ValueError
        If a document that is forgotten might not be there; fewer together may tell.
    """
    _check_forgotten(state, counts, y, added)
    n_delta = 0 if state.delta is None else len(state.delta.classes)
    is_large = n_delta + len(np.unique(y)) > DELTA_CAPACITY
    if is_large:
        state = merge_learned(state)
    scorer_rows = np.arange(len(state.classes))
    for is_added in (True, False):
        rows = np.flatnonzero(added == is_added)
        direction = 1 if is_added else -1
        if is_large:
            named = None if state.names is None else state.names.named
            sums = state.classes, state.statistics, counts.gather(rows), y[rows]
            edit = edit_documents(*sums, direction, n_jobs, named)
            state = inherit(state, edit)
            scorer_rows = np.append(scorer_rows, -1)[edit.unchanged]
        else:
            state = change_sums(state, counts.gather(rows), y[rows], direction, n_jobs)
        if is_added:  # by now it has all classes of the documents
            state = _record_in_order(state, counts, y, added)
            if state.delta is None:
                state = replace(state, memory=settle_memory(state, state.classes))
    return derive(state, n_jobs, scorer_rows) if is_large else state


def check_order(labels: NDArray[Any], sizes: Integers, y: NDArray[Any], added: Flags) -> None:
    """Refuse a list of documents by which a class disappears and comes back.

    Parameters
    ----------
    labels, sizes : ndarray of shape (n_labels,)
        Classes that documents leave, and their numbers of documents.
    y, added : ndarray of shape (n_documents,)
        As for `change_in_order`.

    Raises
    ------
    RevivedClassError
        With the document that brings it back.
    ValueError
        If a class would have fewer documents than none.
    """
    left = Counter(dict(zip(labels.tolist(), sizes.tolist(), strict=True)))
    gone: set[Any] = set()
    for document, (label, is_added) in enumerate(zip(y.tolist(), added.tolist(), strict=True)):
        if label not in left:
            continue
        left[label] += 1 if is_added else -1
        if is_added and label in gone:
            raise RevivedClassError(label, document)
        if left[label] < 0:
            raise ValueError(f"class {label!r} has no document left to forget")
        if left[label] == 0:
            gone.add(label)


def _check_forgotten(
    state: LongTailState, counts: CountMatrix, y: NDArray[Any], added: Flags
) -> None:
    """Refuse documents that cannot be forgotten in their turn, as far as that can be noticed."""
    labels = np.unique(y[~added])
    sums, _, _ = gather_sums(state, labels)
    check_order(labels, sums.class_sizes, y, added)
    rows = _find_earlier(counts, y, added)
    if not len(rows):
        return
    forgotten = sum_compactly(counts.gather(rows), y[rows], labels, sublinear=True)
    _ = sums - forgotten.statistics.gather(np.arange(len(labels)))
    segment = state.statistics if state.delta is None else state.delta.statistics
    alive = slice(None) if state.delta is None else ~state.delta.tombstones
    n_documents = state.statistics.class_sizes[alive].sum().item() - len(rows)
    if state.delta is not None:
        n_documents += state.delta.statistics.n_documents
    check_documents_left(n_documents)
    frequencies = segment.document_frequencies.copy()
    frequencies[forgotten.terms] -= forgotten.frequencies
    if np.any(frequencies < 0) or np.any(frequencies > n_documents):
        raise ValueError("document frequencies do not tell what was there in which turn")


def _find_earlier(counts: CountMatrix, y: NDArray[Any], added: Flags) -> Integers:
    """Return the documents that are forgotten and were not added before them in the list."""
    ids = look_up(np.unique(y[~added]), y)
    # What came and has not left yet: how many of each kind.
    present: defaultdict[tuple[int, bytes, bytes], int] = defaultdict(int)
    earlier = []
    bounds = list(pairwise(counts.indptr.tolist()))
    for document in np.flatnonzero(ids >= 0).tolist():
        entries = slice(*bounds[document])
        key = (
            int(ids[document]),
            counts.indices[entries].tobytes(),
            counts.data[entries].tobytes(),
        )
        if added[document]:
            present[key] += 1
        elif present[key]:
            present[key] -= 1
        else:
            earlier.append(document)
    return np.array(earlier, np.int64)


def _record_in_order(
    state: LongTailState, counts: CountMatrix, y: NDArray[Any], added: Flags
) -> LongTailState:
    """Let the memory of a model that has one know of all documents, in their order."""
    memory = state.memory
    if memory is None:
        return state
    turns = np.flatnonzero(np.diff(added)) + 1
    for first, last in pairwise([0, *turns.tolist(), len(y)]):
        rows = np.arange(first, last)
        memory = memory.record(counts.gather(rows), y[rows], 1 if added[first] else -1)
    return replace(state, memory=memory)
