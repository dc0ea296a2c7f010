"""What changes do to a model, one by one or many together.

In: a model and changes. Out: the model with those that are in effect; the same bits whether they
are applied one by one or together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail._columns import as_labels
from longtail.estimators._text_state import TextState, add_counts, check_lengths
from longtail.estimators.text import TextClassifier
from longtail.exceptions import DocumentError, ModelFileError
from longtail.sparse import Integers
from longtail.store.changes import Change
from longtail.teaching.documents import unpack
from longtail.text import Vocabulary, extend_vocabulary

MOST_REPLAYED_AT_ONCE = 20_000  # documents; bounds the memory that replaying takes

# What a model says of unfit documents, and of actions that its kind does not have.
_UNFIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
Batches = Sequence[dict[str, Any]]


class ReplayError(Exception):
    """A change that cannot be applied."""

    def __init__(self, change: Change, reason: Exception) -> None:
        super().__init__(str(reason))
        self.change = change


def copy_model(model: Any) -> Any:
    """Return a model that can change without the other: what is fitted is replaced, not changed."""
    return copy.copy(model)


def shares_segment(model: Any, other: Any) -> bool:
    """Return whether two models share the sums of their main segment: keeping both costs little."""
    states = [getattr(m, "classifier_", m)._state for m in (model, other)]
    first, second = (state.statistics.indices for state in states)
    return first is second


def apply(model: Any, action: str, contents: Sequence[Batches]) -> None:
    """Do to the model what changes say; several are teach or forget changes in a row.

    Parameters
    ----------
    model : estimator
        Changed in place.
    action : str
        Of all of them.
    contents : sequence of sequence of dict
        The batches of each change.
    """
    content = contents[0][0]
    if action == "rename":
        model.rename_class(content["old"], content["new"])
    elif action == "merge":
        model.merge_classes(content["source"], content["into"])
    elif action == "describe":
        model.set_class_text(content["label"], content["text"])
    elif action == "refine":
        model.refine()
    elif action == "remove":
        model.remove_class(content["label"])
    else:
        documents, labels = unpack(model, [batch for batches in contents for batch in batches])
        if action == "teach" and len(contents) > 1 and isinstance(model, TextClassifier):
            _teach_together(model, contents, documents, labels)
            return
        # Counts come without the names of their columns, which were compared when they were given.
        names = vars(model).pop("feature_names_in_", None)
        method = {"teach": "partial_fit", "forget": "forget", "recalibrate": "recalibrate"}[action]
        getattr(model, method)(documents, labels)
        if names is not None:
            model.feature_names_in_ = names


def apply_new(model: Any, action: str, batches: Batches) -> None:
    """Apply a change of the caller's; of several documents, name the first that is refused.

    Raises
    ------
    DocumentError
        Which document, and why.
    """
    before = copy_model(model)
    try:
        apply(model, action, [batches])
    except _UNFIT as error:
        n_documents = sum(len(batch.get("labels", ())) for batch in batches)
        if action != "forget" or n_documents < 2:
            raise
        document, reason = _find_refused(before, batches, n_documents, error)
        raise DocumentError(document, reason) from None


def replay(model: Any, changes: Iterable[Change]) -> Any:
    """Apply the changes in effect to a model that is nobody else's, and return it.

    Raises
    ------
    ReplayError
        Which change cannot be applied, and why.
    """
    for run in _runs(changes):
        before = copy_model(model)
        try:
            apply(model, run[0].action, [change.batches for change in run])
        except _UNFIT:
            model = before
            for change in run:  # which one?
                try:
                    apply(model, change.action, [change.batches])
                except _UNFIT as error:
                    raise ReplayError(change, error) from None
    return model


def replay_journal(path: Path, model: Any, changes: Iterable[Change]) -> Any:
    """Apply the changes of a journal, or say which one does not fit the model."""
    try:
        return replay(model, changes)
    except ReplayError as error:
        raise ModelFileError(
            path,
            f"record {error.change.number} ({error.change.action}) does not fit the model: {error}",
        ) from None


def _runs(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield the changes in effect, together where one call does the same as several.

    Statistics are sums, so documents may be taught, or forgotten, all at once.
    """
    run: list[Change] = []
    n_documents = 0
    for change in changes:
        if not change.in_effect or change.action == "undo":
            continue
        n_more = len(change.labels)
        if run and (
            n_more == 0
            or change.action != run[0].action
            or change.action == "recalibrate"  # older outcomes make room for each call's
            or n_documents + n_more > MOST_REPLAYED_AT_ONCE
        ):
            yield run
            run, n_documents = [], 0
        run.append(change)
        n_documents += n_more
    if run:
        yield run


def _teach_together(
    model: TextClassifier, contents: Sequence[Batches], texts: list[str], labels: Any
) -> None:
    """Teach the texts of several changes, counted once; new terms get the ids they had."""
    y = as_labels(labels)
    check_lengths(texts, y, "y")
    n_texts = [sum(len(batch["documents"]) for batch in batches) for batches in contents]
    changes = np.repeat(np.arange(len(contents)), n_texts)

    def taught(state: TextState) -> TextState:
        vocabulary, X = _enter_terms(state.vocabulary, texts, changes, model.n_jobs)
        return add_counts(state, vocabulary, X, y)

    model._swap(taught)


def _enter_terms(
    vocabulary: Vocabulary, texts: list[str], changes: Integers, n_jobs: int | None
) -> tuple[Vocabulary, csr_array[Any]]:
    """Let the new terms of each change enter in turn; return the vocabulary and the counts.

    All enter at once, in the order of their bytes; then they are ordered by the change that brought
    them, and by their bytes within each. One by one takes 4 ms a change, and more in a large
    vocabulary.
    """
    n_known = vocabulary.n_terms
    grown = extend_vocabulary(vocabulary, texts, n_jobs)
    X = grown.count(texts, n_jobs)
    if grown.n_terms == n_known:
        return grown, X
    is_new = X.indices >= n_known
    change_of = np.repeat(changes, np.diff(X.indptr))[is_new]
    terms = X.indices[is_new] - n_known
    entered = np.full(grown.n_terms - n_known, len(texts))
    np.minimum.at(entered, terms, change_of)
    order = np.argsort(entered, kind="stable")
    frequencies = np.bincount(terms[change_of == entered[terms]], minlength=len(order))
    starts = grown.offsets[n_known:-1][order]
    lengths = np.diff(grown.offsets[n_known:])[order]
    # The bytes of all new terms, term after term in the new order.
    ends = lengths.cumsum()
    moved = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
    ordered = replace(
        grown,
        utf8=np.concatenate([grown.utf8[: grown.offsets[n_known]], grown.utf8[moved]]),
        offsets=np.append(grown.offsets[: n_known + 1], grown.offsets[n_known] + ends),
        document_frequencies=np.append(
            grown.document_frequencies[:n_known], frequencies[order]
        ).astype(np.int64),
    )
    new_ids = np.arange(grown.n_terms)
    new_ids[n_known + order] = np.arange(n_known, grown.n_terms)
    X.indices = new_ids.astype(X.indices.dtype)[X.indices]
    X.has_sorted_indices = False
    X.sort_indices()
    return ordered, X


def _find_refused(
    model: Any, batches: Batches, n_documents: int, error: Exception
) -> tuple[int, Exception]:
    """Return the first document that a model does not forget, and why: by bisection.

    What is refused together with fewer documents is refused together with more.
    """
    documents, labels = unpack(model, batches)
    low, high = 0, n_documents  # the first `low` documents are accepted, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            copy_model(model).forget(documents[:middle], labels[:middle])
            low = middle
        except _UNFIT as reason:
            high, error = middle, reason
    return low, error
