"""`Teacher`: one method for each kind of change to a saved model.

A change is applied to a copy of the model first, as it will be read back; then it is written to the
journal; only when the disk has it does the copy take the model's place. So an error leaves memory
and disk as they were, and they always agree. The model file itself is only rewritten by `compact`.
"""

from __future__ import annotations

import copy
import numbers as number_types
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from longtail._words import count
from longtail.estimators.loading import AnyClassifier
from longtail.estimators.text_state import describe
from longtail.exceptions import ModelFileError
from longtail.model.edits import Edit, Merge, Move, Remove, Rename, SetHierarchy, as_list
from longtail.model.entry import Changes, Entry
from longtail.model.overlay import RefusedError
from longtail.store.changes import Change, Row, encode
from longtail.store.container import read_checksum
from longtail.store.forking import Turn
from longtail.store.journal import Journal, refined_path, waiting_changes
from longtail.store.journal_rows import Header
from longtail.teaching.documents import change_documents, plain_label, read_documents
from longtail.teaching.log import Ledger, as_rows
from longtail.teaching.opening import (
    State,
    advance,
    attach,
    catch_up,
    find_concerned,
    open_state,
    take_all,
    with_encoder,
)
from longtail.teaching.refined import (
    AUTOMATIC,
    Refined,
    drop_superseded,
    open_file,
    put_in_place,
    write_refined,
)
from longtail.teaching.refiner import Refiner, is_due

Result = TypeVar("Result")


class Teacher:
    """Change a saved model, durably: every change is on the disk before it has an effect.

    Several processes may teach the same model; each sees the others' changes before it makes its
    own. Threads may share a teacher. A method that makes a change returns its number once it is
    durable, and raises an error with model and journal as they were otherwise. It does to the
    model what the model's own method of that name does, `teach` what `partial_fit` does. `by` says
    who makes the change; the journal keeps it.

    Parameters
    ----------
    path : path-like
        A model file that `save` wrote. Its journal is `path` with ``.journal`` at the end.
    verify : bool, default=True
        As for `load`.
    refine : {"auto", "never"}, default="auto"
        Whether the teacher refines the model by itself when that is due (`health` says so): in a
        thread of low priority, beside predictions and changes. Such a refinement is a change by
        "auto" in the journal. Once one is undone there is no other, until `refine` is called.
    memory : {"auto", "never"}, default="auto"
        Whether the model keeps documents that it is taught, for `refine` to learn from: the last
        ones of each class, as many as take a tenth of its size. They are counts of terms, in the
        files that `refine` and `compact` write. "never" keeps none, drops those that are there, and
        lets the file that `compact` writes say so. A model that was fitted with a number as its
        `memory` keeps as many as that says. Label sets and embeddings: none.
    embedder : callable, optional
        As for `load`: the encoder of a model that was fitted with one.

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

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        verify: bool = True,
        refine: Literal["auto", "never"] = "auto",
        memory: Literal["auto", "never"] = "auto",
        embedder: Any = None,
    ) -> None:
        for name, value in (("refine", refine), ("memory", memory)):
            if value not in ("auto", "never"):
                raise ValueError(f'{name} must be "auto" or "never"; got {value!r}.')
        self._path = Path(path)
        self._refiner = Refiner(self._path) if refine == "auto" else None
        self._embedder = embedder
        self._turn = Turn()
        self._journal = Journal(path)
        weakref.finalize(self, self._journal.close)
        self._state = open_state(path, verify, memory=memory)
        self._shown: tuple[State, Any] | None = None

    @property
    def _state(self) -> State:
        """The model with all changes, and where its journal ends."""
        return self._current

    @_state.setter
    def _state(self, state: State) -> None:
        self._current = with_encoder(state, self._embedder)

    @property
    def model(self) -> AnyClassifier:
        """The model with all changes; what the caller does to it stays with the caller."""
        state, shown = self._state, self._shown
        if shown is None or shown[0] is not state:
            shown = self._shown = state, copy.copy(state.model)
        model: AnyClassifier = shown[1]
        return model

    def __repr__(self) -> str:
        kind, n_classes = type(self._state.model).__name__, len(self._state.model.classes_)
        return f"Teacher({str(self._path)!r}): {kind} of {count(n_classes, 'class')}"

    def teach(self, documents: Any, labels: Any, by: str | None = None) -> int:
        """Add documents of known or new classes; all of them or none.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            Texts for a model that takes texts, counts for one that takes counts.
        labels : array-like of shape (n_documents,), or label sets
            Their labels; lists of labels, or an indicator matrix, for a model with label sets.
        by : str, optional
            Who teaches.
        """
        return self._record(_with_documents("teach", documents, labels), by)

    def forget(
        self, documents: Any, labels: Any, by: str | None = None, *, erase: bool = False
    ) -> int:
        """Take documents away that were fitted or taught before; all of them or none.

        Parameters
        ----------
        documents, labels
            The same as when they were added; of a label set, the labels to forget.
        by : str, optional
            Who says so.
        erase : bool, default=False
            Leave no copy of the documents behind: the journal keeps them otherwise, so that this
            can be undone. All changes are folded into the model file, as by `compact`, and cannot
            be undone afterwards.

        Raises
        ------
        DocumentError
            Which of several documents was never added, as far as that can be noticed.
        """
        attempt = _with_documents("forget", documents, labels)
        return _fold(self, attempt) if erase else self._record(attempt, by)

    def rename_class(self, old: Any, new: Any, by: str | None = None) -> int:
        """Give a class another label, which no class has."""
        return self._record(_with_edit(Rename(plain_label(old), plain_label(new))), by)

    def merge_classes(self, source: Any, into: Any, by: str | None = None) -> int:
        """Move all documents of one class into another."""
        return self._record(_with_edit(Merge(plain_label(source), plain_label(into))), by)

    def remove_class(self, label: Any, by: str | None = None) -> int:
        """Forget a class with all its documents."""
        return self._record(_with_edit(Remove(plain_label(label))), by)

    def set_class_text(self, label: Any, text: str | None, by: str | None = None) -> int:
        """Give a class of a model of texts another name or description, or with None take it away.

        Raises
        ------
        ValueError
            If the model keeps no texts of classes (a model of counts), or the text is no string.
        """
        if not hasattr(self.model, "class_texts_") or not hasattr(self.model, "set_class_text"):
            raise ValueError(f"{type(self.model).__name__} keeps no texts of classes.")
        if text is not None and not isinstance(text, str):
            raise ValueError(f"text must be a string or None; got {text!r}.")
        named = plain_label(label)

        def edit(model: Any) -> Edit:
            return describe(model._fitted(), named, text, model.n_jobs)

        return self._record(_with_edit(edit), by)

    def set_hierarchy(self, hierarchy: Any, by: str | None = None) -> int:
        """Give the classes parents."""
        self._check_takes_parents()
        return self._record(_with_edit(SetHierarchy(hierarchy)), by)

    def move_class(self, label: Any, parents: Any, by: str | None = None) -> int:
        """Give a class or an inner node other parents."""
        self._check_takes_parents()
        edit = Move(plain_label(label), [plain_label(parent) for parent in as_list(parents)])
        return self._record(_with_edit(edit), by)

    def _check_takes_parents(self) -> None:
        if not hasattr(self.model, "set_hierarchy"):
            raise ValueError(f"{type(self.model).__name__} takes no hierarchy.")

    def recalibrate(self, documents: Any, labels: Any, by: str | None = None) -> int:
        """Correct the probabilities by documents before they are taught.

        The journal keeps the documents, as it does when they are taught.

        Raises
        ------
        ValueError
            If the model has nothing of the kind, or documents have several labels.
        """
        if not hasattr(self.model, "recalibrate"):
            raise ValueError(f"{type(self.model).__name__} has nothing to recalibrate.")
        return self._record(_with_documents("recalibrate", documents, labels), by)

    @property
    def refine_due(self) -> bool:
        """Whether enough was taught since the last `refine` for another one."""
        return is_due(self._state)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait for a refinement under way; return whether none is left after so many seconds."""
        return self._refiner is None or self._refiner.wait(timeout)

    def refine(self, by: str | None = None) -> int:
        """Bring what all classes share up to date.

        As the model's own `refine` without documents: document frequencies and collection model
        follow from the sums. It takes as long as rebuilding the index, and writes a file as large
        as the model file, which stays until `compact`; call it after every few hundred documents
        taught.

        Raises
        ------
        ValueError
            If the model has nothing of the kind (`DoubleSamplingClassifier`).
        """
        if not hasattr(self.model, "refine"):
            raise ValueError(f"{type(self.model).__name__} has nothing to refine.")
        _check_author(by)

        def refine(state: State) -> int:
            header = attach(self._journal, state)
            change_number = header.next_number
            with self._journal.new_file() as beside:
                model, live = copy.copy(state.model), state.ledger.in_effect
                refined = write_refined(beside, model, live, change_number - 1)
                self._take_refined(header, refined, by)
            return change_number

        return self._hold(refine)

    def _take_refined(self, header: Header, refined: Refined, by: str | None) -> None:
        """Record a refined model, and let it be the model; the journal is held."""
        put_in_place(self._journal, refined, header.next_number)
        try:
            self._journal.append(header, "refine", [refined.row], by)
        except OSError:  # the disk may be full: the file must not stay
            self._drop_superseded()
            raise
        self._state = open_state(self._path, False, self._journal, self._state.memory)
        self._drop_superseded()

    def _drop_superseded(self) -> None:
        """Remove files of refinements that are not needed; what fails is left to the next one.

        A change that was recorded, or refused, has let go of the journal: another process may have
        a file in place already that it is about to record.
        """
        self._journal.release()
        with suppress(OSError):
            self._journal.begin()
            drop_superseded(self._journal.model, self._read())

    def _refine_beside(self) -> int:
        """Refine what the model is now while others predict and teach; return the change.

        0 where it was in vain: what it began with was undone or folded into the file meanwhile.
        """
        before = self._state
        if before.header is None or not is_due(before):
            return 0
        with self._journal.new_file() as beside:
            model, live = copy.copy(before.model), before.ledger.in_effect
            refined = write_refined(beside, model, live, before.header.next_number - 1)

            def record(state: State) -> int:
                is_same = state.is_attached and state.checksum == before.checksum
                is_same &= state.ledger.refined == before.ledger.refined
                if state.header is None or not is_same or not live <= state.ledger.in_effect:
                    return 0
                self._take_refined(state.header, refined, AUTOMATIC)
                return state.header.next_number

            is_wanted = self._refiner is None or self._refiner.is_wanted
            return self._hold(record) if is_wanted else 0

    def undo(
        self, n: int = 1, by: str | None = None, *, numbers: Sequence[int] | None = None
    ) -> int:
        """Take changes back, exactly: the model is as if they had never been made.

        Parameters
        ----------
        n : int, default=1
            How many: the last ones in effect. Calling twice goes back twice.
        by : str, optional
            Who says so.
        numbers : sequence of int, optional
            Which ones, instead of the last `n`. The number of an undo brings back what it took.

        Raises
        ------
        ValueError
            If there are no such changes in effect, or a later change builds on one of them.
        """
        _check_author(by)
        if not self._journal.exists():
            _choose_undone(self._state, n, numbers)

        def undo(state: State) -> int:
            undone_numbers = _choose_undone(state, n, numbers)
            header = attach(self._journal, state)
            row = Row(facts=encode({"changes": undone_numbers}))
            change = Change(header.next_number, "", by, "undo", (row,), path=self._journal.path)
            self._check_kept(state.ledger, state.ledger.extend([change]), undone_numbers)
            try:
                after = advance(state, header, [change], self._journal.read_some)
                if after is None:
                    after = self._open_with(state, change)
            except RefusedError as error:
                raise ValueError(self._explain(change, undone_numbers, error)) from None
            header = self._journal.append(header, "undo", [row], by)
            self._state = replace(after, header=header)
            return header.next_number - 1

        return self._hold(undo)

    def _check_kept(self, before: Ledger, after: Ledger, undone_numbers: list[int]) -> None:
        """Refuse to go back to an automatic refinement whose file was removed."""
        refined = after.refined
        if refined not in (0, before.refined) and not refined_path(self._path, refined).exists():
            names = ", ".join(map(str, undone_numbers))
            instead = "refine anew instead"
            if refined in before.live:
                instead = f"undo {refined} as well, and all refinements before it"
            raise ValueError(
                f"change {names} cannot be undone: what change {refined} (refine) learned is not "
                f"kept any more; {instead}."
            )

    def _open_with(self, state: State, change: Change) -> State:
        """Return the state after one more change than the journal has, from the files."""
        model = open_file(self._path, state.memory, verify=False)
        if read_checksum(self._path) != state.checksum:
            raise ModelFileError(self._path, "was replaced by another process; try again")
        opened = State(model, state.checksum, state.header, memory=state.memory)
        return take_all(self._path, opened, [*self._read(), change])

    def _read(self) -> list[Change]:
        """Return all changes of the journal, which is held."""
        contents = self._journal.read()
        return [] if contents is None else contents.changes

    def _explain(self, undo: Change, undone_numbers: list[int], error: RefusedError) -> str:
        """Return why changes cannot be undone: a later one that builds on them, if any does."""
        names = ", ".join(map(str, undone_numbers))
        found = find_concerned([*self._read(), undo], error)
        later = [c for c in found if c.number > min(undone_numbers) and c.action != "undo"]
        # Documents added to an existing class block nothing.
        blocking = [c for c in later if c.action != "teach" or "classes" in c.facts] or later
        if not blocking:
            return f"change {names} cannot be undone: {error}"
        first = blocking[0]
        return (
            f"change {names} cannot be undone, because change {first.number} ({first.action}) "
            f"builds on it: {error}"
        )

    def changes(self) -> list[Change]:
        """Return the journal, oldest first; `in_effect` is False for what an undo took back."""
        return waiting_changes(self._path)

    def refresh(self) -> None:
        """Take in what other processes have taught since the last call of any method."""
        if self._journal.exists():
            self._hold(lambda _: None)
        elif self._state.header is not None or read_checksum(self._path) != self._state.checksum:
            self._state = open_state(self._path, verify=True, memory=self._state.memory)

    def compact(self) -> None:
        """Write the model with all changes folded in, and empty the journal for good.

        Afterwards nothing before it can be undone, and no document is left in the journal. The file
        is replaced at once or not at all; a crash at any point leaves the old file with its changes
        or the new one, which has them. With `memory="never"` it has no document either.
        """
        if self._journal.exists():
            _fold(self, None)
        elif self._state.memory == "never":
            self._state.model.save(self._path)
            self._state = open_state(self._path, verify=False, memory=self._state.memory)

    def close(self) -> None:
        """Close the journal, as the end of the process does; another call opens it again."""
        if self._refiner is not None:
            self._refiner.is_wanted = False
        self._turn.run(self._journal.close)

    def _record(self, attempt: Attempt, by: str | None) -> int:
        """Apply a change to a copy of the model, record it, then let the copy be the model."""
        _check_author(by)
        if not self._journal.exists():
            attempt(self._state.model, 1)  # an error must not create a journal

        def record(state: State) -> int:
            change_number = 1 if state.header is None else state.header.next_number
            done = attempt(state.model, change_number)
            rows = as_rows(done.entry, done.shown)
            before = attach(self._journal, state)
            header = self._journal.append(before, done.entry.action, rows, by)
            change = Change(change_number, "", by, done.entry.action, ())
            ledger = state.ledger.extend([change]) if state.is_attached else Ledger.of([change])
            self._state = replace(state, model=done.model, header=header, ledger=ledger)
            return change_number

        recorded = self._hold(record)
        if self._refiner is not None:
            self._refiner.look(self)
        return recorded

    def _hold(self, work: Callable[[State], Result]) -> Result:
        """Work with the state up to date, holding the journal alone among threads and processes.

        No context manager of Python's: Ctrl-C between its beginning and the block, or within its
        end, would leave a transaction open. Here it is released wherever one interrupt comes.
        """

        def hold() -> Result:
            try:
                try:
                    self._journal.begin()
                    self._state = catch_up(self._path, self._journal, self._state)
                    return work(self._state)
                finally:
                    self._journal.release()
            except BaseException:
                self._journal.release()
                raise

        return self._turn.run(hold)


def _fold(teacher: Teacher, attempt: Attempt | None) -> int:
    """Write a model with all changes, and one more, as the model file; empty the journal."""
    if attempt is not None and not teacher._journal.exists():
        attempt(teacher._state.model, 1)

    def fold(state: State) -> bool:
        if attempt is None and not state.is_attached:
            return True
        change_number = 1 if state.header is None else state.header.next_number
        model = state.model if attempt is None else attempt(state.model, change_number).model
        before = attach(teacher._journal, state)
        with teacher._journal.new_file() as beside:
            model.save(beside)
            # A file that does not open must not replace one.
            model = open_file(beside, state.memory, verify=True)
            n_used = int(attempt is not None)
            header = teacher._journal.replace_model(beside, before, n_used)
        if header is not None:
            teacher._state = State(model, header.model, header, memory=state.memory)
        return header is not None

    def fold_and_erase() -> int:
        while not teacher._hold(fold):
            pass  # another process made a change meanwhile
        header = teacher._state.header
        if not teacher._journal.erase() and attempt is not None:
            raise TimeoutError(
                "the documents are forgotten, but their text is still in the journal, which "
                "another process is reading; call compact() when it has ended."
            )
        return 0 if header is None else header.next_number - 1

    return teacher._turn.run(fold_and_erase)


class _Done(NamedTuple):
    """A change as numbers, what people see of it, and the changed model."""

    entry: Entry
    shown: dict[str, Any]
    model: Any


Attempt = Callable[[Any, int], _Done]  # called with a model and the number of the change


def _with_documents(action: str, documents: Any, labels: Any) -> Attempt:
    """Return a function that teaches or forgets documents in a copy of a model."""

    def attempt(model: Any, change_number: int) -> _Done:
        given = read_documents(model, documents, labels)
        entry, changed = change_documents(model, action, given, change_number)
        return _Done(entry, given.shown, changed)

    return attempt


def _with_edit(edit: Edit | Callable[[Any], Edit]) -> Attempt:
    """Return a function that edits a class of a copy of a model; the edit may depend on it."""

    def attempt(model: Any, change_number: int) -> _Done:
        made = edit if isinstance(edit, Edit) else edit(model)
        entry = made.entry(model._classifier_of_counts(), model._arrays, change_number)
        return _Done(entry, made.shown, copy.copy(model)._take_changes(Changes.of(entry)))

    return attempt


def _check_author(by: object) -> None:
    """Refuse an author that a journal cannot hold."""
    if not isinstance(by, str | None):
        raise TypeError(f"by must be a string or None; got {by!r}.")
    if by is not None:
        try:
            by.encode()
        except UnicodeEncodeError:
            raise ValueError(f"by must be text that UTF-8 can hold; got {by!r}.") from None


def _choose_undone(state: State, n: int, numbers: Sequence[int] | None) -> list[int]:
    """Return the numbers of the changes to undo, or say why they cannot be."""
    ledger = state.ledger
    if numbers is None:
        if not isinstance(n, number_types.Integral) or n < 1:
            raise ValueError(f"n must be an integer of at least 1; got {n!r}.")
        done = sorted(ledger.in_effect)
        if not done:
            raise ValueError("there is nothing to undo: no change is in effect.")
        if n > len(done):
            raise ValueError(
                f"only {count(len(done), 'change')} can be undone: no other is in effect. "
                f"Got n={n}."
            )
        return done[-int(n) :]
    next_number = 1 if state.header is None else state.header.next_number
    wanted = sorted({int(change_number) for change_number in numbers})
    for change_number in wanted:
        if change_number not in ledger.actions and 0 < change_number < next_number:
            raise ValueError(
                f"change {change_number} is part of the model file since the journal was "
                f"compacted, and can no longer be undone; forget its documents instead."
            )
        if change_number not in ledger.actions:
            raise ValueError(f"there is no change {change_number} in the journal of this model.")
        if change_number not in ledger.live:
            raise ValueError(f"change {change_number} is undone already.")
    if not wanted:
        raise ValueError("numbers must have one number at least.")
    return wanted
