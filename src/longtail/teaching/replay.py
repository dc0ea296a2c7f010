"""What changes do to a model, one by one or many together.

In: a model and changes. Out: the model with those that are in effect; the same bits whether they
are applied one by one or together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from longtail.estimators.text import TextClassifier
from longtail.exceptions import DocumentError, ModelFileError
from longtail.store.changes import Change
from longtail.teaching.documents import unpack
from longtail.text import extend_vocabulary

MOST_REPLAYED_AT_ONCE = 20_000  # documents; bounds the memory that replaying takes

_UNFIT = (ValueError, TypeError, KeyError, IndexError)  # what a model says of unfit documents
Batches = Sequence[dict[str, Any]]


class ReplayError(Exception):
    """A change that cannot be applied."""

    def __init__(self, change: Change, reason: Exception) -> None:
        super().__init__(str(reason))
        self.change = change


def copy_model(model: Any) -> Any:
    """Return a model that can change without the other: what is fitted is replaced, not changed."""
    return copy.copy(model)


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
    elif action == "remove":
        model.remove_class(content["label"])
    else:
        documents, labels = unpack(model, [batch for batches in contents for batch in batches])
        if action == "teach" and len(contents) > 1 and isinstance(model, TextClassifier):
            _enter_terms(model, contents)
        # Counts come without the names of their columns, which were compared when they were given.
        names = vars(model).pop("feature_names_in_", None)
        (model.partial_fit if action == "teach" else model.forget)(documents, labels)
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
            or n_documents + n_more > MOST_REPLAYED_AT_ONCE
        ):
            yield run
            run, n_documents = [], 0
        run.append(change)
        n_documents += n_more
    if run:
        yield run


def _enter_terms(model: TextClassifier, contents: Sequence[Batches]) -> None:
    """Let the new terms of each change enter in turn, so that they get the ids they had.

    All enter at once, in the order of their bytes; then they are ordered by the change that brought
    them, and by their bytes within each. One by one takes 4 ms a change, and more in a large
    vocabulary.
    """
    fitted = model._fitted()
    n_known = fitted.vocabulary.n_terms
    by_change = [[text for batch in batches for text in batch["documents"]] for batches in contents]
    texts = [text for texts in by_change for text in texts]
    grown = extend_vocabulary(fitted.vocabulary, texts, model.n_jobs)
    if grown.n_terms == n_known:
        return
    X = grown.count(texts, model.n_jobs)
    changes = np.repeat(np.arange(len(by_change)), [len(texts) for texts in by_change])
    changes = np.repeat(changes, np.diff(X.indptr))[X.indices >= n_known]
    terms = X.indices[X.indices >= n_known] - n_known
    entered = np.full(grown.n_terms - n_known, len(by_change))
    np.minimum.at(entered, terms, changes)
    order = np.argsort(entered, kind="stable")
    frequencies = np.bincount(terms[changes == entered[terms]], minlength=len(order))
    known = slice(grown.offsets[n_known])
    spans = pairwise(grown.offsets[n_known:].tolist())
    new = [grown.utf8[start:stop] for start, stop in spans]
    lengths = np.diff(grown.offsets[n_known:])[order]
    vocabulary = replace(
        grown,
        utf8=np.concatenate([grown.utf8[known], *(new[term] for term in order.tolist())]),
        offsets=np.append(grown.offsets[: n_known + 1], grown.offsets[n_known] + lengths.cumsum()),
        document_frequencies=np.append(
            grown.document_frequencies[:n_known], frequencies[order]
        ).astype(np.int64),
    )
    classifier = copy.copy(fitted.classifier)
    classifier._grow_terms(vocabulary.n_terms)
    model._state = replace(fitted, vocabulary=vocabulary, classifier=classifier)


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
