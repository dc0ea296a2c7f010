"""Changes in a row that teach or forget documents, applied to a model together.

In: a model and changes. Out: the model as it is after them one by one, bit for bit; or an error
where that cannot be said of all of them together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._columns import align_labels, as_labels
from longtail._validation import check_columns, check_same_kind, look_up
from longtail.estimators.added_documents import AddedDocuments, drop_late, has_late, hash_rows
from longtail.estimators.editing import Change as EditChange
from longtail.estimators.text_state import TextState, add_counts, check_lengths, grow_vocabulary
from longtail.sparse import CountMatrix, Integers
from longtail.store.changes import Change
from longtail.teaching.documents import unpack
from longtail.text.entering import enter_in_turn
from longtail.training.long_tail import LongTailState
from longtail.training.ordered_editing import change_in_order

MOST_REPLAYED_AT_ONCE = 20_000  # documents; bounds the memory that replaying takes

Flags = NDArray[np.bool_]


class Run(NamedTuple):
    """The documents of changes in a row.

    Attributes
    ----------
    documents : list of str, or csr_array of shape (n_documents, n_terms)
        In the order of the changes.
    y : ndarray of shape (n_documents,)
        Their labels.
    changes : ndarray of shape (n_documents,), int64
        Of which change each is, from 0 on.
    added : ndarray of shape (n_documents,), bool
        Whether it is taught, or forgotten.
    """

    documents: Any
    y: NDArray[Any]
    changes: Integers
    added: Flags


def split_runs(model: Any, changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield the changes in effect, together where one call does the same as several.

    Statistics are sums, so documents may be taught, or forgotten, all at once; with a
    `LongTailClassifier` in any order.
    """
    run: list[Change] = []
    n_documents = 0
    in_any_order = model.classifier_._takes_mixed_edits
    for change in changes:
        if not change.in_effect or change.action == "undo":
            continue
        n_more = len(change.labels)
        if run and (
            n_more == 0
            or change.action == "recalibrate"  # older outcomes make room for each call's
            or run[0].action == "recalibrate"
            or not (in_any_order or change.action == run[0].action)
            or n_documents + n_more > MOST_REPLAYED_AT_ONCE
        ):
            yield run
            run, n_documents = [], 0
        run.append(change)
        n_documents += n_more
        if n_more == 0:
            yield run
            run, n_documents = [], 0
    if run:
        yield run


def find_change(run: Sequence[Change], document: int) -> int:
    """Return which change of a run has a document."""
    ends = np.cumsum([len(change.labels) for change in run])
    return int(np.searchsorted(ends, document, side="right"))


def apply_run(model: Any, run: Sequence[Change]) -> None:
    """Teach and forget the documents of several changes.

    Parameters
    ----------
    model : estimator
        Changed in place, or left as it is.
    run : sequence of Change
        Of `split_runs`.

    Raises
    ------
    ValueError
        If they cannot be applied together; perhaps they can be one by one.
    """
    read = _read_run(model, run)
    if not read.added.any():
        model.forget(read.documents, read.y)
    elif model.takes_texts:
        check_lengths(read.documents, read.y, "y")
        model._swap(lambda state: _change_texts(state, read, model.n_jobs))
    elif read.added.all():
        model.partial_fit(read.documents, read.y)
    else:
        X, y = model._check_input(read.documents, read.y, reset=False)
        model._edit(_change_in_order(X, y, read.added))


def _read_run(model: Any, run: Sequence[Change]) -> Run:
    """Return the documents of changes, and which change has them."""
    documents, labels = unpack(model, [batch for change in run for batch in change.batches])
    n_documents = [len(change.labels) for change in run]
    added = np.array([change.action == "teach" for change in run])
    changes = np.repeat(np.arange(len(run)), n_documents)
    return Run(documents, as_labels(labels), changes, added[changes])


def _change_in_order(X: Any, y: NDArray[Any], added: Flags) -> EditChange:
    """Let counts be added and forgotten in their order."""

    def change(classifier: Any, model: LongTailState) -> LongTailState:
        check_same_kind(y, model.all_classes)
        check_columns(model.label_form, y)
        counts, labels = CountMatrix.from_matrix(X), align_labels(y, model.all_classes)
        return change_in_order(model, counts, labels, added, classifier.n_jobs)

    return change


def _change_texts(state: TextState, run: Run, n_jobs: int | None) -> TextState:
    """Return the state with the texts of a run taught and forgotten, all tokenized once."""
    entering = state.vocabulary, run.documents, run.changes, run.added, n_jobs
    vocabulary, X = enter_in_turn(*entering)
    if run.added.all():
        return add_counts(state, vocabulary, X, run.y)
    before = state.model.all_classes
    X, register, kept = _count_in_order(X, run, before, state.n_fitted, state.added)
    grown = replace(grow_vocabulary(state, vocabulary), added=register)
    changed = grown.edit(_change_in_order(X, run.y, run.added))
    after, register = changed.model.all_classes, changed.added
    kept = kept[look_up(after, run.y[kept]) >= 0]
    register = register.add(X[kept], look_up(after, run.y[kept]), state.n_fitted)
    return replace(changed, added=register)


def _count_in_order(
    X: csr_array[Any], run: Run, classes: NDArray[Any], n_fitted: int, register: AddedDocuments
) -> tuple[csr_array[Any], AddedDocuments, Integers]:
    """Return counts as they were when the documents were added: see `count_as_added`.

    And the register without what was forgotten of it, and which documents are to be added to it.
    """
    follower = _RegisterInOrder(register, look_up(classes, run.y), run.y.tolist())
    late = has_late(X, n_fitted)
    asked = np.flatnonzero(late | register.complete)
    missing = np.zeros(len(run.y), np.bool_)
    for document, row_hash in zip(asked.tolist(), hash_rows(X, asked), strict=True):
        if run.added[document]:
            follower.add(document, row_hash)
        elif not follower.remove(document, row_hash):
            missing[document] = True
            if register.complete:
                row = drop_late(X[[document]], n_fitted, np.ones(1, np.bool_))
                if not follower.remove(document, hash_rows(row, np.zeros(1, np.int64))[0]):
                    raise ValueError(f"document {document} was never added, or was forgotten")
    return drop_late(X, n_fitted, missing), follower.rest(), follower.added()


class _RegisterInOrder:
    """A register while documents come and go; what came first goes first.

    Parameters
    ----------
    register : AddedDocuments
        As it was before.
    class_ids : ndarray of shape (n_documents,), int64
        Of the documents to come and go, among the classes before; -1 where it is a new class.
    labels : list
        Of the same documents.
    """

    def __init__(self, register: AddedDocuments, class_ids: Integers, labels: list[Any]) -> None:
        self._register, self._class_ids, self._labels = register, class_ids, labels
        self._used: set[int] = set()  # entries of the register
        self._present: defaultdict[tuple[Any, ...], deque[int]] = defaultdict(deque)

    def add(self, document: int, row_hash: NDArray[np.uint64]) -> None:
        """Let a document come."""
        self._present[(self._labels[document], *row_hash.tolist())].append(document)

    def remove(self, document: int, row_hash: NDArray[np.uint64]) -> bool:
        """Let the same document go, and return whether it was there."""
        class_id = self._class_ids[document, None]
        if class_id[0] >= 0 and self._register.find(row_hash[None], class_id, self._used)[0] >= 0:
            return True
        same = self._present[(self._labels[document], *row_hash.tolist())]
        if not same:
            return False
        same.popleft()
        return True

    def rest(self) -> AddedDocuments:
        """Return the register without what went."""
        return self._register.remove(np.array(sorted(self._used), np.int64))

    def added(self) -> Integers:
        """Return which documents came and are still there, ascending."""
        return np.array(sorted(i for same in self._present.values() for i in same), np.int64)
