"""`Teacher`: one method for each kind of change to a saved model.

A change is applied to a copy of the model first, as it will be read back; then it is written to the
journal; only when the disk has it does the copy take the model's place. So an error leaves memory
and disk as they were, and they always agree. The model file itself is only rewritten by `compact`.
"""

from __future__ import annotations

import numbers as number_types
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from longtail._words import count
from longtail.estimators.loading import Classifier
from longtail.estimators.loading import load as load_file
from longtail.store.changes import Change, mark_undone
from longtail.store.container import read_checksum
from longtail.store.journal import Journal
from longtail.store.journal_rows import Header
from longtail.store.overview import waiting_changes
from longtail.store.snapshots import remove_unknown
from longtail.teaching.class_changes import Attempt, Batches, ClassChanges, attempt_change
from longtail.teaching.documents import pack
from longtail.teaching.opening import State, attach, catch_up, open_state
from longtail.teaching.replay import ReplayError, copy_model, shares_segment
from longtail.teaching.snapshots import SnapshotWriter, Tail, rebuild

__all__ = ["Teacher"]

Result = TypeVar("Result")


class Teacher(ClassChanges):
    """Change a saved model, durably: every change is on the disk before it has an effect.

    Several processes may teach the same model; each sees the others' changes before it makes its
    own. Threads may share a teacher. Every method that changes something returns when the change is
    durable, and raises an error with model and journal as they were otherwise.

    Parameters
    ----------
    path : path-like
        A model file that `save` wrote. Its journal is `path` with ``.journal`` at the end.
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
        self._turns: tuple[int, threading.RLock] = (os.getpid(), threading.RLock())
        self._journal = Journal(path)
        weakref.finalize(self, self._journal.close)
        self._snapshots = SnapshotWriter(path)
        self._state = open_state(path, verify)
        self._before: _Before | None = None
        self._shown: tuple[State, Any] | None = None

    @property
    def _turn(self) -> threading.RLock:
        """The lock among threads; a forked process has one of its own."""
        pid, lock = self._turns
        if pid != os.getpid():
            self._turns = (os.getpid(), lock := threading.RLock())
        return lock

    @property
    def model(self) -> Classifier:
        """The model with all changes; what the caller does to it stays with the caller."""
        state, shown = self._state, self._shown
        if shown is None or shown[0] is not state:
            shown = self._shown = state, copy_model(state.model)
        model: Classifier = shown[1]
        return model

    def __repr__(self) -> str:
        kind, n_classes = type(self._state.model).__name__, len(self._state.model.classes_)
        return f"Teacher({str(self._path)!r}): {kind} of {count(n_classes, 'class')}"

    def teach(self, documents: Any, labels: Any, by: str | None = None) -> int:
        """Add documents of known or new classes, as `partial_fit` does; all of them or none.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            Texts for a model that takes texts, counts for one that takes counts.
        labels : array-like of shape (n_documents,), or label sets
            Their labels; lists of labels, or an indicator matrix, for a model with label sets.
        by : str, optional
            Who teaches; kept in the journal.

        Returns
        -------
        int
            The number of the change.
        """
        attempt = attempt_change("teach", lambda model: pack(model, documents, labels))
        return self._record("teach", attempt, by)

    def forget(
        self, documents: Any, labels: Any, by: str | None = None, *, erase: bool = False
    ) -> int:
        """Take documents away that were fitted or taught before; all of them or none.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            The same as when they were added.
        labels : array-like of shape (n_documents,), or label sets
            The same as when they were added; of a label set, those to forget.
        by : str, optional
            Who says so; kept in the journal.
        erase : bool, default=False
            Leave no copy of the documents behind: the journal keeps them otherwise, so that this
            can be undone. All changes are folded into the model file, as by `compact`, and cannot
            be undone afterwards.

        Returns
        -------
        int
            The number of the change.

        Raises
        ------
        DocumentError
            Which of several documents was never added, as far as that can be noticed.
        """
        attempt = attempt_change("forget", lambda model: pack(model, documents, labels))
        return _fold(self, attempt) if erase else self._record("forget", attempt, by)

    def undo(
        self, n: int = 1, by: str | None = None, *, numbers: Sequence[int] | None = None
    ) -> int:
        """Take changes back, exactly: the model is as if they had never been made.

        Parameters
        ----------
        n : int, default=1
            How many: the last ones in effect. Calling twice goes back twice.
        by : str, optional
            Who says so; kept in the journal.
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

        def attempt(state: State) -> tuple[Any, Batches]:
            before = self._before
            if n == 1 and numbers is None and before is not None and before.is_of(state):
                self._journal.read(before.header)  # refuses a record that is damaged
                return before.model, [{"changes": [before.header.next_number]}]
            contents = self._journal.read() if state.is_attached else None
            changes = mark_undone(contents.changes if contents is not None else [])
            next_number = state.header.next_number if state.header else 1
            content = {"changes": _choose_undone(changes, n, numbers, next_number)}
            undo = Change(changes[-1].number + 1, "", by, "undo", (content,))
            try:
                remaining = mark_undone([*changes, undo])
                return rebuild(self._path, state.checksum, contents, remaining), [content]
            except ReplayError as error:
                raise ValueError(
                    f"change {', '.join(map(str, content['changes']))} cannot be undone, because "
                    f"change {error.change.number} ({error.change.action}) builds on it: {error}"
                ) from None

        return self._record("undo", attempt, by)

    def changes(self) -> list[Change]:
        """Return the journal, oldest first; `in_effect` is False for what an undo took back."""
        return waiting_changes(self._path)

    def refresh(self) -> None:
        """Take in what other processes have taught since the last call of any method."""
        if self._journal.exists():
            self._hold(lambda _: None)
        elif self._state.header is not None or read_checksum(self._path) != self._state.checksum:
            self._state = open_state(self._path, verify=True)

    def compact(self) -> None:
        """Write the model with all changes folded in, and empty the journal for good.

        Afterwards nothing before it can be undone, and no document is left in the journal. The file
        is replaced at once or not at all; a crash at any point leaves the old file with its changes
        or the new one, which has them.
        """
        if self._journal.exists():
            _fold(self, None)

    def close(self) -> None:
        """Close the journal, as the end of the process does; another call opens it again.

        A snapshot that is being written is finished first.
        """
        with self._turn:
            self._snapshots.wait()
            self._journal.close()

    def _record(self, action: str, attempt: Attempt, by: str | None) -> int:
        """Apply a change to a copy of the model, record it, then let the copy be the model."""
        _check_author(by)
        if not self._journal.exists():
            attempt(self._state)  # an error must not create a journal

        def record(state: State) -> int:
            model, batches = attempt(state)
            before = attach(self._journal, state)
            header = self._journal.append(before, action, batches, by)
            self._before = None
            if action != "undo" and shares_segment(model, state.model):
                self._before = _Before(state.model, state.checksum, before)
            tail = state.tail if before is state.header else Tail.at(before)
            tail = tail.extend(state.model, model)
            if action == "undo":
                tail = tail.extend_by_undo(header, batches[0]["changes"])
            tail = self._snapshots.offer(self._journal, model, header, tail)
            self._state = State(model, state.checksum, header, tail)
            return header.next_number - 1

        return self._hold(record)

    def _hold(self, work: Callable[[State], Result]) -> Result:
        """Work with the state up to date, holding the journal alone among threads and processes.

        No context manager of Python's: Ctrl-C between its beginning and the block, or within its
        end, would leave a transaction open. Here it is released wherever one interrupt comes.
        """
        with self._turn:
            try:
                try:
                    self._journal.begin()
                    self._state = catch_up(self._path, self._journal, self._state)
                    remove_unknown(self._journal)
                    return work(self._state)
                finally:
                    self._journal.release()
            except BaseException:
                self._journal.release()
                raise


def _fold(teacher: Teacher, attempt: Attempt | None) -> int:
    """Write a model with all changes, and one more, as the model file; empty the journal."""
    if attempt is not None and not teacher._journal.exists():
        attempt(teacher._state)

    def fold(state: State) -> bool:
        if attempt is None and not state.is_attached:
            return True
        model = state.model if attempt is None else attempt(state)[0]
        before = attach(teacher._journal, state)
        with teacher._journal.new_file() as beside:
            model.save(beside)
            model = load_file(beside)  # a file that does not open must not replace one
            n_used = int(attempt is not None)
            header = teacher._journal.replace_model(beside, before, n_used)
        if header is not None:
            teacher._state = State(model, header.model, header, Tail.at(header))
        return header is not None

    with teacher._turn:
        teacher._snapshots.cancel()
        while not teacher._hold(fold):
            pass  # another process made a change meanwhile
        header = teacher._state.header
        if not teacher._journal.erase() and attempt is not None:
            raise TimeoutError(
                "the documents are forgotten, but their text is still in the journal, which "
                "another process is reading; call compact() when it has ended."
            )
        return 0 if header is None else header.next_number - 1


class _Before(NamedTuple):
    """The model before the last change, where it shares nearly all with the one after it."""

    model: Any
    checksum: str  # of the model file
    header: Header  # of the journal before the change

    def is_of(self, state: State) -> bool:
        """Return whether the change is the last one of a state."""
        header = state.header
        return (
            state.checksum == self.checksum
            and state.is_attached
            and header is not None
            and header.next_number == self.header.next_number + 1
        )


def _check_author(by: object) -> None:
    """Refuse an author that a journal cannot hold."""
    if not isinstance(by, str | None):
        raise TypeError(f"by must be a string or None; got {by!r}.")
    if by is not None:
        try:
            by.encode()
        except UnicodeEncodeError:
            raise ValueError(f"by must be text that UTF-8 can hold; got {by!r}.") from None


def _choose_undone(
    changes: list[Change], n: int, numbers: Sequence[int] | None, next_number: int
) -> list[int]:
    """Return the numbers of the changes to undo, or say why they cannot be."""
    known = {change.number: change for change in changes}
    if numbers is None:
        if not isinstance(n, number_types.Integral) or n < 1:
            raise ValueError(f"n must be an integer of at least 1; got {n!r}.")
        done = [c.number for c in changes if c.in_effect and c.action != "undo"]
        if not done:
            raise ValueError("there is nothing to undo: no change is in effect.")
        if n > len(done):
            raise ValueError(
                f"only {count(len(done), 'change')} can be undone: no other is in effect. "
                f"Got n={n}."
            )
        return done[-int(n) :]
    wanted = sorted({int(change_number) for change_number in numbers})
    for change_number in wanted:
        if change_number not in known and 0 < change_number < next_number:
            raise ValueError(
                f"change {change_number} is part of the model file since the journal was "
                f"compacted, and can no longer be undone; forget its documents instead."
            )
        if change_number not in known:
            raise ValueError(f"there is no change {change_number} in the journal of this model.")
        if not known[change_number].in_effect:
            raise ValueError(f"change {change_number} is undone already.")
    if not wanted:
        raise ValueError("numbers must have one number at least.")
    return wanted
