"""What changes do to a model, one by one or many together.

In: a model and changes. Out: the model with those that are in effect; the same bits whether they
are applied one by one or together.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longtail.exceptions import DocumentError, ModelFileError
from longtail.store.changes import Change
from longtail.teaching.documents import unpack
from longtail.teaching.runs import apply_run, find_change, split_runs
from longtail.training.ordered_editing import RevivedClassError

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
    states = [m.classifier_.state_ for m in (model, other)]
    first, second = (state.statistics.indices for state in states)
    return first is second


def shares_index(model: Any, other: Any) -> bool:
    """Return whether two models share their postings: one was made of the other without a rebuild.

    A class that is renamed may keep its sums; its index is built anew all the same.
    """
    states = [m.classifier_.state_ for m in (model, other)]
    first, second = (state.index.quantized for state in states)
    return first is second


def apply(model: Any, action: str, batches: Batches) -> None:
    """Do to the model what a change says.

    Parameters
    ----------
    model : estimator
        Changed in place.
    action : str
        What is done.
    batches : sequence of dict
        To what.
    """
    content = batches[0]
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
        documents, labels = unpack(model, batches)
        method = {"teach": "partial_fit", "forget": "forget", "recalibrate": "recalibrate"}[action]
        with _without_names(model):
            getattr(model, method)(documents, labels)


@contextmanager
def _without_names(model: Any) -> Iterator[None]:
    """Take the names of columns away: counts of a journal were compared with them before."""
    names = vars(model).pop("feature_names_in_", None)
    yield
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
        apply(model, action, batches)
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
    for run in split_runs(model, changes):
        model = _replay_run(model, run)
    return model


def _replay_run(model: Any, run: Sequence[Change]) -> Any:
    """Apply changes together; where that is refused, in two parts one after the other."""
    before = copy_model(model)
    try:
        if len(run) == 1:
            apply(model, run[0].action, run[0].batches)
        else:
            with _without_names(model):
                apply_run(model, run)
        return model
    except RevivedClassError as error:
        middle = find_change(run, error.document)
    except _UNFIT as error:
        if len(run) == 1:
            raise ReplayError(run[0], error) from None
        middle = len(run) // 2
    return _replay_run(_replay_run(before, run[:middle]), run[middle:])


def replay_journal(path: Path, model: Any, changes: Iterable[Change]) -> Any:
    """Apply the changes of a journal, or say which one does not fit the model."""
    with translate_refusals(path):
        return replay(model, changes)


@contextmanager
def translate_refusals(path: Path) -> Iterator[None]:
    """Turn a change of a journal that cannot be applied into an error of its file."""
    try:
        yield
    except ReplayError as error:
        raise ModelFileError(
            path,
            f"record {error.change.number} ({error.change.action}) does not fit the model: {error}",
        ) from None


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
