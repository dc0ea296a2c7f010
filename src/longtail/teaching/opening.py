"""A model file with its journal: opened, and brought up to date.

In: a path. Out: the model with all changes of its journal, and where the journal ends.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from longtail.estimators.loading import Classifier
from longtail.estimators.loading import load as load_file
from longtail.exceptions import ModelFileError
from longtail.store.changes import mark_undone
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, journal_path, read_journal
from longtail.store.journal_rows import Header
from longtail.store.overview import check_same_model
from longtail.teaching.replay import copy_model, replay_journal, translate_refusals
from longtail.teaching.snapshots import Start, Tail, open_start, replay_from

__all__ = ["State", "attach", "catch_up", "load", "open_state"]


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Classifier:
    """Open a model that `save` wrote, with all that it was taught since.

    Parameters
    ----------
    path : path-like
        The file. Its journal, if it has one, lies beside it.
    verify : bool, default=True
        Check every array against its checksum and the model's own invariants. Skip this only for a
        file that was verified where it lies. The journal is always checked.

    Returns
    -------
    DoubleSamplingClassifier, LongTailClassifier or TextClassifier
        Whatever was saved; its predictions are those of the model that was saved and taught, bit
        for bit. What it learns from here on is not recorded: see `Teacher`.

    Raises
    ------
    longtail.exceptions.ModelFileError
        If anything is wrong with the file or its journal, or they do not belong together.

    Warns
    -----
    RuntimeWarning
        If a crash left an unfinished record at the end of the journal; it was never acknowledged.
    """
    model: Classifier = open_state(path, verify).model
    return model


@dataclass(frozen=True)
class State:
    """A model, the checksum of its file, and its journal as it was then; None without one."""

    model: Any
    checksum: str
    header: Header | None
    tail: Tail = field(default_factory=Tail)  # what opening the model would replay

    @property
    def is_attached(self) -> bool:
        """Whether the journal goes on; otherwise it is begun anew with the next change."""
        return self.header is not None and self.header.model == self.checksum


def open_state(path: str | os.PathLike[str], verify: bool, journal: Journal | None = None) -> State:
    """Open a model file and replay its journal, which the caller may have locked already.

    Opening starts from a snapshot where there is one that can be used.
    """
    while True:
        checksum = read_checksum(path)
        read = partial(read_journal, journal_path(path)) if journal is None else journal.read
        contents = read(lazily=True)
        changes = [] if contents is None else mark_undone(contents.changes)
        if contents is not None and contents.header.model == checksum:
            start = open_start(path, contents, changes, verify)
        else:
            start = Start(load_file(path, verify=verify), 0, 0)
        # Another process may have replaced the file meanwhile; then all is read again.
        if read_checksum(path) == checksum:
            break
    if contents is None:
        return State(start.model, checksum, None)
    check_same_model(path, contents, checksum)
    if contents.header.model != checksum:
        return State(start.model, checksum, contents.header)
    with translate_refusals(journal_path(path)):
        model, tail = replay_from(start, Path(path), checksum, contents, changes)
    return State(model, checksum, contents.header, tail)


def catch_up(path: Path, journal: Journal, state: State) -> State:
    """Return the state with what other processes have done since; the journal is locked."""
    header = journal.header()
    if read_checksum(path) != state.checksum:
        return open_state(path, verify=True, journal=journal)
    if header == state.header:
        return state
    if header is None or not state.is_attached or header.model != state.checksum:
        return open_state(path, verify=False, journal=journal)
    try:
        news = journal.read(state.header)
    except ModelFileError:  # begun anew by another process, or damaged: all of it tells
        return open_state(path, verify=False, journal=journal)
    if news is None or any(change.action == "undo" for change in news.changes):
        return open_state(path, verify=False, journal=journal)
    model = replay_journal(journal.path, copy_model(state.model), news.changes)
    return State(model, state.checksum, news.header, state.tail.extend(state.model, model))


def attach(journal: Journal, state: State) -> Header:
    """Return the header of the journal, begun anew where it does not belong to the model file."""
    if state.header is not None and state.is_attached:
        return state.header
    return journal.restart(state.header, state.checksum)
