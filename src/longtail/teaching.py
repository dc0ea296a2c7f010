"""Teaching: a model file that people correct, with effect at once and nothing lost.

In: a model file, and documents to teach or forget, classes to rename, merge or remove. Out: the
model with these changes, and a log of them beside the file (`longtail.store.journal`). The file itself is
only rewritten by `Teacher.compact`; `load` opens it and replays the log.

A change is applied to a copy of the model first, as it will be read back; then it is written to the
log; only when the disk has it does the copy take the model's place. So an error leaves memory and
disk as they were, and they always agree.
"""

from __future__ import annotations

import copy
import numbers as number_types
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from longtail.estimators.loading import load as load_file
from longtail.estimators.text import TextClassifier
from longtail.exceptions import ModelFileError
from longtail.sparse import check_sparse
from longtail.store.container import read_checksum
from longtail.store.files import sync_folder
from longtail.store.journal import (
    Change,
    ChangeLog,
    End,
    LogContents,
    lock_log,
    log_path,
    mark_undone,
    pack_counts,
    read_log,
    unpack_counts,
)

__all__ = ["Teacher", "load"]

MOST_REPLAYED_AT_ONCE = 20_000  # documents; bounds the memory that replaying takes


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Open a model that `save` wrote, with all that it was taught since.

    Parameters
    ----------
    path : path-like
        The file. Its change log, if it has one, lies beside it.
    verify : bool, default=True
        Check every array against its checksum and the model's own invariants. Skip this only for a
        file that was verified where it lies. The log is always checked.

    Returns
    -------
    DoubleSamplingClassifier, LongTailClassifier or TextClassifier
        Whatever was saved; its predictions are those of the model that was saved and taught, bit
        for bit. What it learns from here on is not logged: see `Teacher`.

    Raises
    ------
    longtail.exceptions.ModelFileError
        If anything is wrong with the file or its log, or the log belongs to another model.

    Warns
    -----
    RuntimeWarning
        If a crash left an unfinished record at the end of the log; it was never acknowledged.
    """
    return _open(path, verify).model


@dataclass(frozen=True)
class _State:
    """A model as of a place in its log; without `end` there is no log that goes on."""

    model: Any
    checksum: str
    end: End | None
    next_number: int


class Teacher:
    """Change a saved model, durably: every change is on the disk before it has an effect.

    Several processes may teach the same model; each sees the others' changes before it makes its
    own. Threads may share a teacher. Every method that changes something returns when the change is
    durable, and raises an error with model and log as they were otherwise.

    Parameters
    ----------
    path : path-like
        A model file that `save` wrote. Its log is `path` with ``.changes`` at the end.
    verify : bool, default=True
        As for `load`.

    Attributes
    ----------
    model : estimator
        The model with all changes. Every change puts a new object in its place; the old one stays
        as it is, so ask for it anew to see the change.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from longtail import LongTailClassifier, Teacher, load
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> path = tempfile.mkdtemp() + "/letters.longtail"
    >>> LongTailClassifier(random_state=0).fit(X, ["a", "a", "b", "b"]).save(path)
    >>> teacher = Teacher(path)
    >>> teacher.teach([[0, 5, 0]], ["c"], by="ann")
    1
    >>> teacher.model.predict([[0, 1, 0]]).tolist(), load(path).classes_.tolist()
    (['c'], ['a', 'b', 'c'])
    >>> teacher.undo()
    2
    >>> teacher.model.classes_.tolist()
    ['a', 'b']
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = True) -> None:
        self._path = Path(path)
        self._turn = threading.Lock()
        self._state = _open(path, verify)

    @property
    def model(self) -> Any:
        """The model with all changes."""
        return self._state.model

    def teach(self, documents: Any, labels: ArrayLike, by: str | None = None) -> int:
        """Add documents of known or new classes, as `partial_fit` does.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            Texts for a model that takes texts, counts for one that takes counts.
        labels : array-like of shape (n_documents,)
            Their labels.
        by : str, optional
            Who teaches; kept in the log.

        Returns
        -------
        int
            The number of the change.
        """
        return self._record("teach", lambda model: _pack(model, documents, labels), by)

    def forget(self, documents: Any, labels: ArrayLike, by: str | None = None) -> int:
        """Take documents away that were fitted or taught before, as the model's `forget` does.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            The same as when they were added.
        labels : array-like of shape (n_documents,)
            The same as when they were added.
        by : str, optional
            Who says so; kept in the log.

        Returns
        -------
        int
            The number of the change.
        """
        return self._record("forget", lambda model: _pack(model, documents, labels), by)

    def rename_class(self, old: Any, new: Any, by: str | None = None) -> int:
        """Give a class another label, which no class has; return the number of the change."""
        return self._record("rename", lambda _: {"old": _plain(old), "new": _plain(new)}, by)

    def merge_classes(self, source: Any, into: Any, by: str | None = None) -> int:
        """Move all documents of one class into another; return the number of the change."""
        content = {"source": _plain(source), "into": _plain(into)}
        return self._record("merge", lambda _: content, by)

    def remove_class(self, label: Any, by: str | None = None) -> int:
        """Forget a class with all its documents; return the number of the change."""
        return self._record("remove", lambda _: {"label": _plain(label)}, by)

    def undo(
        self, n: int = 1, by: str | None = None, *, numbers: Sequence[int] | None = None
    ) -> int:
        """Take changes back, exactly: the model is as if they had never been made.

        Parameters
        ----------
        n : int, default=1
            How many: the last ones in effect. Calling twice goes back twice.
        by : str, optional
            Who says so; kept in the log.
        numbers : sequence of int, optional
            Which ones, instead of the last `n`. The number of an undo brings back what it took.

        Returns
        -------
        int
            The number of this undo.

        Raises
        ------
        ValueError
            If there are no such changes in effect, or a later change builds on one of them.
        """
        with self._locked() as (log, state):
            contents = log.read()
            changes = mark_undone(contents.changes if contents else [])
            content = {"changes": _choose_undone(changes, n, numbers)}
            marked = mark_undone([*changes, Change(state.next_number, "", by, "undo", content)])
            try:
                model = _replay(_load_base(self._path, state.checksum), marked)
            except _ReplayError as error:
                raise ValueError(
                    f"change {', '.join(map(str, content['changes']))} cannot be undone, because "
                    f"change {error.change.number} ({error.change.action}) builds on it: {error}"
                ) from None
            return self._append(log, replace(state, model=model), "undo", content, by)

    def changes(self) -> list[Change]:
        """Return the log, oldest first; `in_effect` is False for what an undo took back."""
        contents = read_log(log_path(self._path))
        if contents is None or _is_folded(contents, read_checksum(self._path)):
            return []
        return mark_undone(contents.changes)

    def refresh(self) -> None:
        """Take in what other processes have taught since the last call of any method."""
        with self._locked():
            pass

    def compact(self) -> None:
        """Write the model with all changes folded in, and begin a new, empty log.

        Afterwards nothing before it can be undone. The file is replaced at once or not at all; a
        crash at any point leaves the old file with its log or the new one.
        """
        with self._locked() as (log, state):
            if state.end is None:
                return
            target = Path(os.path.realpath(self._path))
            beside = target.parent / f".longtail-{os.getpid()}-{secrets.token_hex(8)}.tmp"
            try:
                state.model.save(beside)
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
                # A file that does not open must not replace one that does.
                model = load_file(beside)
                checksum = read_checksum(beside)
                # From here on the log says where its changes went. Whoever finds it beside the new
                # file knows that they are in there; beside the old file it counts as before.
                end = log.append(state.end, "compact", {"into": checksum}, None)
                os.replace(beside, target)
                sync_folder(target.parent)  # before the old log is given up
            except BaseException:
                with suppress(OSError):
                    beside.unlink()
                raise
            end = log.start(checksum, first=end.number)
            self._state = _State(model, checksum, end, end.number)

    def _record(
        self, action: str, content_for: Callable[[Any], dict[str, Any]], by: str | None
    ) -> int:
        """Apply a change to a copy of the model, log it, then let the copy be the model."""
        with self._locked() as (log, state):
            content = content_for(state.model)
            model = _copy(state.model)
            _apply(model, action, [content])
            return self._append(log, replace(state, model=model), action, content, by)

    def _append(
        self, log: ChangeLog, state: _State, action: str, content: dict[str, Any], by: str | None
    ) -> int:
        """Write a record, and only then make its effect the state; return its number."""
        if not isinstance(by, str | None):
            raise TypeError(f"by must be a string or None; got {by!r}.")
        end = state.end or log.start(state.checksum, first=state.next_number)
        end = log.append(end, action, content, by)
        self._state = replace(state, end=end, next_number=end.number)
        return end.number - 1

    @contextmanager
    def _locked(self) -> Iterator[tuple[ChangeLog, _State]]:
        """Hold the log, alone among threads and processes, with the state brought up to date."""
        with self._turn, lock_log(log_path(self._path)) as log:
            self._catch_up(log)
            yield log, self._state

    def _catch_up(self, log: ChangeLog) -> None:
        """Take in what other processes have done to model and log since the last look."""
        state = self._state
        if read_checksum(self._path) != state.checksum:
            self._state = _open(self._path, verify=True, log=log)
            return
        try:
            news = log.read_after(state.checksum, state.end) if state.end else log.read()
        except ModelFileError:  # begun anew by another process, or damaged: the whole log tells
            news = None
        if state.end is None and news is None:
            return  # still no log
        if state.end is None or news is None or any(c.action == "undo" for c in news.changes):
            self._state = _open(self._path, verify=False, log=log)
        elif news.changes:
            model = _replay_log(log.path, _copy(state.model), news.changes)
            self._state = _State(model, state.checksum, news.end, news.end.number)


def _open(path: str | os.PathLike[str], verify: bool, log: ChangeLog | None = None) -> _State:
    """Open a model file and replay its log, which the caller may have locked already."""
    while True:
        checksum = read_checksum(path)
        model = load_file(path, verify=verify)
        contents = read_log(log_path(path)) if log is None else log.read()
        # Another process may have replaced the file meanwhile; then all is read again.
        if read_checksum(path) == checksum:
            break
    if contents is None:
        return _State(model, checksum, None, 1)
    number = contents.end.number
    if contents.model == checksum:
        model = _replay_log(log_path(path), model, mark_undone(contents.changes))
        return _State(model, checksum, contents.end, number)
    if contents.changes and not _is_folded(contents, checksum):
        raise ModelFileError(
            log_path(path),
            f"holds {len(contents.changes)} change(s) of another model file than the one beside "
            f"it: {os.fspath(path)} was replaced since. If they are no longer wanted, or the new "
            "file has them already, delete this log; otherwise put the file back that it belongs "
            f"to (checksum {contents.model[:12]}...)",
        )
    return _State(model, checksum, None, number)


def _is_folded(contents: LogContents, checksum: str) -> bool:
    """Tell whether a compaction has put this log's changes into the model file beside it."""
    last = contents.changes[-1] if contents.changes else None
    return last is not None and last.action == "compact" and last.content["into"] == checksum


def _load_base(path: Path, checksum: str) -> Any:
    """Open the model file alone, without its log; it was verified before."""
    model = load_file(path, verify=False)
    if read_checksum(path) != checksum:
        raise ModelFileError(path, "was replaced by another process meanwhile; try again")
    return model


class _ReplayError(Exception):
    """A change that cannot be applied."""

    def __init__(self, change: Change, reason: Exception) -> None:
        super().__init__(str(reason))
        self.change = change


def _replay_log(path: Path, model: Any, changes: Iterable[Change]) -> Any:
    """Apply the changes of a log, or say which one does not fit the model."""
    try:
        return _replay(model, changes)
    except _ReplayError as error:
        raise ModelFileError(
            path,
            f"record {error.change.number} ({error.change.action}) does not fit the model: {error}",
        ) from None


def _replay(model: Any, changes: Iterable[Change]) -> Any:
    """Apply the changes in effect to a model that is nobody else's, and return it."""
    for run in _runs(changes):
        before = _copy(model)
        try:
            _apply(model, run[0].action, [change.content for change in run])
        except _UNFIT:
            model = before
            for change in run:  # which one?
                try:
                    _apply(model, change.action, [change.content])
                except _UNFIT as error:
                    raise _ReplayError(change, error) from None
    return model


def _runs(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield the changes in effect, together where one call does the same as several.

    Statistics are sums, so documents may be taught, or forgotten, all at once.
    """
    run: list[Change] = []
    n_documents = 0
    for change in changes:
        if not change.in_effect or change.action in ("undo", "compact"):
            continue
        n_more = len(change.content.get("labels", ()))
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


def _apply(model: Any, action: str, contents: list[dict[str, Any]]) -> None:
    """Do to the model what the records say; several are teach or forget records in a row."""
    content = contents[0]
    if action == "rename":
        model.rename_class(content["old"], content["new"])
    elif action == "merge":
        model.merge_classes(content["source"], content["into"])
    elif action == "remove":
        model.remove_class(content["label"])
    else:
        packed = [content["documents"] for content in contents]
        documents = _unpack_documents(model, packed)
        if action == "teach" and len(packed) > 1 and isinstance(model, TextClassifier):
            _enter_terms(model, packed)
        labels = _as_labels(model, [label for content in contents for label in content["labels"]])
        # Counts come without the names of their columns, which were compared when they were given.
        names = vars(model).pop("feature_names_in_", None)
        (model.partial_fit if action == "teach" else model.forget)(documents, labels)
        if names is not None:
            model.feature_names_in_ = names


def _enter_terms(model: TextClassifier, batches: list[list[str]]) -> None:
    """Let the new terms of each batch enter in turn, so that they get the numbers that they had."""
    fitted = model._fitted()
    vocabulary, classifier = fitted.vocabulary, copy.copy(fitted.classifier)
    for texts in batches:
        vocabulary = vocabulary.extended(texts, model.n_jobs)
    if vocabulary.n_terms > fitted.vocabulary.n_terms:
        classifier._grow_terms(vocabulary.n_terms)
    model._state = replace(fitted, vocabulary=vocabulary, classifier=classifier)


def _copy(model: Any) -> Any:
    """Return a model that can change without the other: what is fitted is replaced, not changed."""
    return copy.copy(model)


def _takes_texts(model: Any) -> bool:
    """Tell whether a model takes texts; the others take counts."""
    return isinstance(model, TextClassifier)


def _pack(model: Any, documents: Any, labels: ArrayLike) -> dict[str, Any]:
    """Return documents and labels as a record holds them, or say what is wrong with them."""
    named = np.asarray(labels)
    if named.ndim != 1:
        raise ValueError(f"labels must be a list with one label for each document; got {labels!r}.")
    packed = _pack_texts(documents) if _takes_texts(model) else _pack_rows(model, documents)
    n_documents = packed["n_documents"] if isinstance(packed, dict) else len(packed)
    if n_documents != len(named) or not n_documents:
        raise ValueError(
            f"labels must have one label for each document, and there must be one at least; got "
            f"{n_documents} document(s) and {len(named)} label(s)."
        )
    # A list of strings and numbers would become an array of strings.
    source = labels if isinstance(labels, list | tuple) else named.tolist()
    return {"documents": packed, "labels": [_plain(label) for label in source]}


def _pack_texts(documents: Any) -> list[str]:
    """Return texts as a record holds them."""
    texts = [documents] if isinstance(documents, str) else list(documents)
    if isinstance(documents, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"documents must be a list of texts; got {documents!r:.80}.")
    return [str(text) for text in texts]


def _pack_rows(model: Any, documents: Any) -> dict[str, Any]:
    """Return counts as a record holds them."""
    if isinstance(documents, list | tuple) and any(isinstance(row, str) for row in documents):
        raise TypeError("this model takes a matrix of counts; documents holds texts.")
    check_sparse(documents)
    X = validate_data(model, documents, reset=False, accept_sparse="csr", dtype=np.float64)
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return pack_counts(X)


def _plain(label: Any) -> str | int | float:
    """Return a label as JSON knows it."""
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, str | int | float) or value != value:
        raise TypeError(f"a label must be a string or a number; got {label!r}.")
    return value


def _unpack_documents(model: Any, packed: list[Any]) -> Any:
    """Return the documents of some records together, as the model takes them."""
    if any(isinstance(documents, list) != _takes_texts(model) for documents in packed):
        raise ValueError("it holds texts where the model takes counts, or counts for texts")
    if _takes_texts(model):
        return [text for texts in packed for text in texts]
    return sparse.vstack([unpack_counts(counts) for counts in packed], format="csr")


def _as_labels(model: Any, labels: list[str | int | float]) -> NDArray[Any]:
    """Return labels in the type of the model's classes where that holds them exactly."""
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("labels must be all strings or all numbers")
    kind = model.classes_.dtype
    given = np.array(labels, dtype=object if kind.kind == "O" else None)
    if given.dtype.kind in "iufb" and kind.kind in "iufb":
        cast = given.astype(kind)
        return cast if np.array_equal(cast, given) else given
    return given


def _choose_undone(changes: list[Change], n: int, numbers: Sequence[int] | None) -> list[int]:
    """Return the numbers of the changes to undo, or say why they cannot be."""
    known = {change.number: change for change in changes}
    if numbers is None:
        if not isinstance(n, number_types.Integral) or n < 1:
            raise ValueError(f"n must be an integer of at least 1; got {n!r}.")
        done = [c.number for c in changes if c.in_effect and c.action not in ("undo", "compact")]
        if n > len(done):
            raise ValueError(f"there are {len(done)} change(s) in effect to undo; got n={n}.")
        return done[-int(n) :]
    chosen = sorted({int(number) for number in numbers})
    for number in chosen:
        if number not in known or known[number].action == "compact":
            raise ValueError(f"there is no change {number} in the log of this model.")
        if not known[number].in_effect:
            raise ValueError(f"change {number} is undone already.")
    if not chosen:
        raise ValueError("numbers must have one number at least.")
    return chosen


_UNFIT = (ValueError, TypeError, KeyError, IndexError)  # what a model says of unfit documents
