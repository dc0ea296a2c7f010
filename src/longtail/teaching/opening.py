"""A model file with its journal: opened, and brought up to date.

In: a path. Out: the model with all live changes of its journal, and where the journal ends.
"""

from __future__ import annotations

import copy
import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from longtail.estimators.loading import AnyClassifier
from longtail.exceptions import ModelFileError
from longtail.model import parents
from longtail.model.entry import Changes, Entry
from longtail.model.overlay import RefusedError, overlay_of
from longtail.model.parents import CycleError
from longtail.store.changes import Change
from longtail.store.container import read_checksum
from longtail.store.journal import (
    Journal,
    JournalContents,
    JournalReader,
    check_same_model,
    journal_path,
    read_journal,
)
from longtail.store.journal_rows import Header
from longtail.teaching.documents import UNFIT
from longtail.teaching.log import Bounds, Ledger, misfit, read_again, read_entries
from longtail.teaching.refined import Memory, open_file, open_refined


def load(
    path: str | os.PathLike[str], *, verify: bool = True, embedder: Any = None
) -> AnyClassifier:
    """Open a model that `save` wrote, with all that it was taught since.

    Parameters
    ----------
    path : path-like
        The file. Its journal, if it has one, lies beside it.
    verify : bool, default=True
        Check every array against its checksum and the model's own invariants. Skip this only for a
        file that was verified where it lies. The journal is always checked.
    embedder : callable, optional
        The encoder of a model that was fitted with one: a file holds no code.

    Returns
    -------
    DoubleSamplingClassifier, LongTailClassifier or TextClassifier
        Whatever was saved; its predictions are those of the model that was saved and taught, bit
        for bit. What it learns from here on is not recorded: see `Teacher`.

    Raises
    ------
    longtail.exceptions.ModelFileError
        If anything is wrong with the file or its journal, or they do not belong together.
    ValueError
        If the encoder is another than that of the fit, or the model has none.

    Warns
    -----
    RuntimeWarning
        If a crash left an unfinished record at the end of the journal; it was never acknowledged.
    """
    model: AnyClassifier = open_state(path, verify).model
    if embedder is not None:
        model._use_embedder(embedder)
    return model


@dataclass(frozen=True)
class State:
    """A model, the checksum of its file, and its journal as it was then; None without one.

    Changes up to `last_in_base` are in the base of the model and cannot be taken out of it.
    `memory` is what a `Teacher` was told; None where only what the file keeps is kept.
    """

    model: Any
    checksum: str
    header: Header | None
    ledger: Ledger = field(default_factory=lambda: Ledger.of([]))
    last_in_base: int = 0
    memory: Memory | None = None

    @property
    def is_attached(self) -> bool:
        """Whether the journal continues; otherwise the next change begins a new one."""
        return self.header is not None and self.header.model == self.checksum


def with_encoder(state: State, embedder: Any) -> State:
    """Return the state with the encoder of texts, where one is given that the model lacks."""
    if embedder is None or not state.model._needs_encoder:
        return state
    model = copy.copy(state.model)
    model._use_embedder(embedder)
    return replace(state, model=model)


def open_state(
    path: str | os.PathLike[str],
    verify: bool,
    journal: Journal | None = None,
    memory: Memory | None = None,
) -> State:
    """Open a model file and take in its journal, which the caller may have locked already."""
    with _without_collector():
        return _open(path, verify, journal, memory)


def _open(
    path: str | os.PathLike[str], verify: bool, journal: Journal | None, memory: Memory | None
) -> State:
    """Open a model file and take in its journal."""
    read = partial(read_journal, journal_path(path)) if journal is None else journal.read
    while True:
        checksum, contents = read_checksum(path), read()
        try:
            state = _take_journal(Path(path), checksum, contents, verify, memory)
        except (ModelFileError, FileNotFoundError):
            if read_checksum(path) == checksum and read() == contents:
                raise
            continue
        # Another process may have replaced the file meanwhile, and removed those of refinements;
        # then all is read again.
        if read_checksum(path) == checksum:
            return state


def _take_journal(
    path: Path,
    checksum: str,
    contents: JournalContents | None,
    verify: bool,
    memory: Memory | None,
) -> State:
    """Return the state of the model file that is there with what its journal held."""
    model = open_file(path, memory, verify=verify)
    if contents is None:
        return State(model, checksum, None, memory=memory)
    check_same_model(path, contents, checksum)
    if contents.header.model != checksum:
        return State(model, checksum, contents.header, memory=memory)
    changes = contents.changes
    with naming(changes):
        opened = State(model, checksum, contents.header, memory=memory)
        return take_all(path, opened, changes, verify)


def take_all(path: Path, state: State, changes: Sequence[Change], verify: bool = False) -> State:
    """Return the state of a model file with the live changes of its journal.

    Raises
    ------
    RefusedError
        If sums or labels forbid them.
    """
    ledger, model = Ledger.of(changes), state.model
    entries = read_entries(changes, bounds_of(model))
    if ledger.refined:
        model, last_in_base = open_refined(
            path, model, entries, ledger, verify=verify, memory=state.memory
        )
        return replace(state, model=model, ledger=ledger, last_in_base=last_in_base)
    live = [entry for entry in entries if entry.number in ledger.live]
    model = model._take_changes(Changes(entries, live)) if entries else model
    return replace(state, model=model, ledger=ledger)


def bounds_of(model: Any) -> Bounds:
    """Return what the numbers of the next change of a model may be."""
    arrays = model._arrays
    n_terms = arrays.base.statistics.n_terms
    learns = hasattr(model, "refine")
    n_dimensions = getattr(arrays, "n_dimensions", None)
    return Bounds(overlay_of(arrays).n_ids, n_terms, model.takes_texts, learns, n_dimensions)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause garbage collection, which would scan thousands of live entries in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def naming(changes: Sequence[Change]) -> Iterator[None]:
    """Turn a refusal into an error of the journal, and name the last change that it concerns."""
    try:
        yield
    except ModelFileError:
        raise
    except UNFIT as error:
        raise misfit(find_concerned(changes, error)[-1], error) from None


def find_concerned(changes: Sequence[Change], error: Exception) -> list[Change]:
    """Return the changes in effect that a refusal is about, as far as it tells; the last else."""
    live = Ledger.of(changes).in_effect
    found = []
    for change in changes:
        if change.number not in live:
            continue
        ids = np.frombuffer(b"".join([row.classes for row in change.rows]), "<i8").tolist()
        if isinstance(error, CycleError):
            concerned = change.action in (*parents.ACTIONS, "rename")
        elif isinstance(error, RefusedError):
            concerned = change.action not in parents.ACTIONS
            concerned &= not error.class_ids.isdisjoint(ids)
        else:  # of terms that cannot enter
            concerned = change.action == "teach" and "terms" in change.facts
        if concerned and change.action != "refine":
            found.append(change)
    return found or list(changes[-1:])


def advance(
    state: State,
    header: Header,
    news: Sequence[Change],
    read_some: Callable[[Header, Sequence[int]], list[Change]],
) -> State | None:
    """Return the state with what is new in its journal; None where all must be opened again.

    Raises
    ------
    RefusedError
        If sums or labels forbid it.
    """
    ledger, bounds = state.ledger.extend(news), bounds_of(state.model)
    if ledger.refined != state.ledger.refined:
        return None
    entries = read_entries(news, bounds)
    plus: list[Entry] = list(entries)
    minus: list[Entry] = []
    if any(change.action == "undo" for change in news):
        was, now = state.ledger.in_effect, ledger.in_effect
        if min((was ^ now), default=header.next_number) <= state.last_in_base:
            return None
        new = {entry.number: entry for entry in entries}
        old = read_some(header, sorted((was ^ now) - new.keys()))
        known = {entry.number: entry for entry in read_again(old, bounds)} | new
        plus = [known[change_number] for change_number in sorted(now - was)]
        minus = [known[change_number] for change_number in sorted(was - now)]
    model = copy.copy(state.model)
    if entries or plus or minus:
        model._take_changes(Changes(entries, plus, minus))
    return replace(state, model=model, header=header, ledger=ledger)


def catch_up(path: Path, journal: Journal, state: State) -> State:
    """Return the state with what other processes have done since; the journal is locked."""
    if read_checksum(path) != state.checksum:
        return open_state(path, True, journal, state.memory)
    return take_news(journal, state) or open_state(path, False, journal, state.memory)


def take_news(journal: JournalReader, state: State) -> State | None:
    """Return the state with what is new in its journal; None where all must be opened again."""
    header = journal.header()
    if header == state.header:
        return state
    if header is None or not state.is_attached or header.model != state.checksum:
        return None
    try:
        news = journal.read(state.header)
        return None if news is None else advance(state, header, news.changes, journal.read_some)
    except (ModelFileError, RefusedError):  # restarted by another process, or damaged
        return None


def attach(journal: Journal, state: State) -> Header:
    """Return the header of the journal; restart one that does not belong to the model file."""
    if state.header is not None and state.is_attached:
        return state.header
    return journal.restart(state.header, state.checksum)
