"""Snapshots of a taught model: when one is written, and how opening starts from one.

In: a model file with its journal. Out: the model to start replaying from; or a file with the model
after the last change, written in a thread. A snapshot is a cache: whether there is one, and whether
it can be read, changes no bit of a model, only how long opening takes.

When one is due: what replaying costs is building the index anew, not the single document. Building
it takes a little less than writing a snapshot. So one is written where the index was built anew
since the last one, and `FEW_CHANGES` were made or `FEW_REBUILDS` of them did so (renames, all
changes of a `DoubleSamplingClassifier`); and after `MOST_CHANGES` in any case. Where the model file
is smaller than `LEAST_BYTES`, building its index takes milliseconds, and only `MOST_CHANGES`
counts. docs/measurements/speed.md has the measurements.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longtail.estimators.loading import load as load_file
from longtail.exceptions import ModelFileError
from longtail.store.changes import Change, mark_undone
from longtail.store.container import read_checksum
from longtail.store.journal import Contents, Journal
from longtail.store.journal_rows import Header
from longtail.store.snapshots import Snapshot, find_usable, put_snapshot, snapshot_path
from longtail.store.state_io import read_labels
from longtail.teaching.replay import ReplayError, copy_model, replay, shares_index

__all__ = ["SnapshotWriter", "Start", "Tail", "open_start", "rebuild", "replay_from"]

FEW_CHANGES, MOST_CHANGES = 200, 1000  # rows of the journal
FEW_REBUILDS = 4
LEAST_BYTES = 16 << 20

_LOGGER = logging.getLogger("longtail")


@dataclass(frozen=True)
class Tail:
    """What opening a model replays: the journal after what it starts from.

    Attributes
    ----------
    start_row, start_number : int
        The last row, and the last change, of what it starts from.
    n_rebuilds : int
        How many changes since have built the index anew; those that were replayed together count
        once.
    """

    start_row: int = 0
    start_number: int = 0
    n_rebuilds: int = 0

    @classmethod
    def at(cls, header: Header) -> Tail:
        """Return an empty one at the end of a journal."""
        return cls(header.end_row, header.next_number - 1)

    def extend(self, before: Any, after: Any) -> Tail:
        """Return the tail after a change that made one model of another."""
        return replace(self, n_rebuilds=self.n_rebuilds + (not shares_index(before, after)))

    def extend_by_undo(self, header: Header, undone: Sequence[int]) -> Tail:
        """Return the tail after an undo: without the snapshot, where that has what was undone."""
        if min(undone) > self.start_number:
            return self
        return Tail(header.start_row, 0, self.n_rebuilds)

    def is_due(self, header: Header, n_bytes: int) -> bool:
        """Return whether replaying takes long enough for a snapshot: see the module."""
        n_changes = header.end_row - self.start_row
        if n_changes >= MOST_CHANGES:
            return True
        enough = (
            n_changes >= FEW_CHANGES and self.n_rebuilds > 0
        ) or self.n_rebuilds >= FEW_REBUILDS
        return enough and n_bytes >= LEAST_BYTES


# ---- opening


@dataclass(frozen=True)
class Start:
    """A model to start replaying from, and the last change that it has; 0 for the model file."""

    model: Any
    row: int
    change_number: int


def open_start(
    path: str | os.PathLike[str], contents: Contents, changes: Sequence[Change], verify: bool
) -> Start:
    """Open the snapshot of a model if it can be used, otherwise the model file.

    Parameters
    ----------
    path : path-like
        The model file.
    contents : Contents
        Its journal.
    changes : sequence of Change
        Those of the journal, and perhaps one more; `in_effect` says what is replayed.
    verify : bool
        Compare the arrays of the model file with their checksums. Those of a snapshot always are.
    """
    snapshot = contents.snapshot
    if snapshot is not None and _has_same_effect(changes, snapshot.change_number):
        model = _load_snapshot(path, snapshot)
        if model is not None:
            return Start(model, snapshot.row, snapshot.change_number)
    return Start(load_file(path, verify=verify), contents.header.start_row, 0)


def replay_from(
    start: Start, path: Path, checksum: str, contents: Contents, changes: Sequence[Change]
) -> tuple[Any, Tail]:
    """Return the model with the changes that it lacks, and what opening would replay.

    A snapshot that the changes do not fit is not what the journal says, and is not used.

    Raises
    ------
    ReplayError
        Which change cannot be applied to the model file and the changes before, and why.
    """
    missing = [change for change in changes if change.number > start.change_number]
    try:
        model = replay(copy_model(start.model), missing)
    except ReplayError:
        if start.change_number == 0:
            raise
        _LOGGER.warning("%s is not of its journal, and is not used", snapshot_path(path))
        start = Start(load_base(path, checksum), contents.header.start_row, 0)
        model = replay(copy_model(start.model), changes)
    return model, Tail(start.row, start.change_number).extend(start.model, model)


def rebuild(path: Path, checksum: str, contents: Contents | None, changes: Sequence[Change]) -> Any:
    """Return a model with other changes in effect than before; the journal is locked.

    Raises
    ------
    ReplayError
        Which change cannot be applied, and why.
    """
    if contents is None:
        return load_base(path, checksum)
    start = open_start(path, contents, changes, verify=True)
    if read_checksum(path) != checksum:
        raise ModelFileError(path, "was replaced by another process meanwhile; try again")
    return replay_from(start, path, checksum, contents, changes)[0]


def load_base(path: Path, checksum: str) -> Any:
    """Open the model file alone, without its journal."""
    model = load_file(path)
    if read_checksum(path) != checksum:
        raise ModelFileError(path, "was replaced by another process meanwhile; try again")
    return model


def _has_same_effect(changes: Sequence[Change], change_number: int) -> bool:
    """Return whether the changes up to one are in effect as they were right after it."""
    now = [change for change in changes if change.number <= change_number]
    then = mark_undone(now)
    return all(
        a.in_effect == b.in_effect for a, b in zip(now, then, strict=True) if a.action != "undo"
    )


def _load_snapshot(path: str | os.PathLike[str], snapshot: Snapshot) -> Any:
    """Open a snapshot; None where it is not there, not sound, or not the one that is meant."""
    file = snapshot_path(path)
    try:
        if read_checksum(file) != snapshot.checksum:
            return None
        model = load_file(file)
        return model if read_checksum(file) == snapshot.checksum else None
    except FileNotFoundError:
        return None
    except (ModelFileError, OSError) as error:
        _LOGGER.warning("the snapshot is not used: %s", error)
        return None


# ---- writing


class SnapshotWriter:
    """Writes snapshots of a model in a thread, one at a time; of those that wait, the last.

    Parameters
    ----------
    path : path-like
        The model file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.realpath(path))
        self._thread: threading.Thread | None = None
        # No lock: a fork in the wrong moment would leave it locked for the child.
        self._waiting: deque[tuple[Any, Header]] = deque(maxlen=1)

    def offer(self, journal: Journal, model: Any, header: Header, tail: Tail) -> Tail:
        """Begin to write a snapshot if one is due; return what opening will replay then.

        Parameters
        ----------
        journal : Journal
            Its last transaction is committed.
        model : estimator
            Nobody else's: it must not change. Its fitted parts never do.
        header : Header
            The end of the journal, whose changes the model has.
        tail : Tail
            What opening would replay now.
        """
        try:
            n_bytes = self._path.stat().st_size
            if not tail.is_due(header, n_bytes):
                return tail
            found = find_usable(journal)  # another process may have been faster
            if found is not None and found.row > tail.start_row:
                tail = Tail(found.row, found.change_number)
            if tail.is_due(header, n_bytes):
                self._waiting.append((copy_model(model), header))
                self._begin()
                tail = Tail.at(header)
        except (OSError, ModelFileError, RuntimeError) as error:  # a process has so many threads
            _LOGGER.warning("no snapshot of %s was written: %s", self._path, error)
        return tail

    def wait(self) -> None:
        """Wait for the snapshot that is being written; the caller does not hold the journal."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self._write_waiting()  # that came when the thread was about to end

    def cancel(self) -> None:
        """Let nothing more be written, and wait for what is."""
        self._waiting.clear()
        self.wait()

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._write_waiting)
            thread.start()
            self._thread = thread

    def _write_waiting(self) -> None:
        with suppress(IndexError):
            while True:
                write_snapshot(self._path, *self._waiting.pop())


def write_snapshot(path: Path, model: Any, header: Header) -> bool:
    """Write a snapshot, and let the journal say so; return whether there is one now.

    A failure is logged: nothing depends on a snapshot.

    Parameters
    ----------
    path : Path
        The model file.
    model : estimator
        With all changes up to the end of the journal that is given.
    header : Header
        The journal as it was then.
    """
    journal = Journal(path)
    try:
        with journal.new_file() as beside:
            model.save(beside)
            # A label that is very long makes strings objects when they are read.
            if read_labels(beside).dtype.kind != model.classes_.dtype.kind:
                return False
            return put_snapshot(journal, beside, header)
    except Exception as error:
        _LOGGER.warning("no snapshot of %s was written: %s", path, error)
        return False
    finally:
        journal.close()
