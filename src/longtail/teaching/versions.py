"""Versions of a taught model: changes that say what they were made against, and followers.

In: a model file with its journal. Out: the model together with its version, the same for every
process that reads the same journal. A version names the model file (the beginning of its checksum)
and the last change: ``4f1c0a9b7d23.17``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from longtail.exceptions import ModelFileError, VersionConflictError
from longtail.store import journal_database as database
from longtail.store.container import read_checksum
from longtail.store.journal import OpenJournal, journal_path
from longtail.teaching.opening import State, open_state, take_news, with_encoder
from longtail.teaching.teacher import Result, Teacher

Fingerprint = tuple[tuple[int, int, int, int] | None, ...]


class ModelVersion(NamedTuple):
    """A model and the version it has."""

    model: Any
    version: str


class VersionedTeacher(Teacher):
    """A `Teacher` whose changes can be tied to the version that they were made against.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import TextClassifier
    >>> path = tempfile.mkdtemp() + "/animals.longtail"
    >>> texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs"]
    >>> TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox"]).save(path)
    >>> teacher = VersionedTeacher(path)
    >>> version = teacher.current.version
    >>> with teacher.made_against(version):
    ...     teacher.teach(["an owl hoots"], ["owl"])
    1
    >>> with teacher.made_against(version):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     teacher.undo()
    Traceback (most recent call last):
        ...
    longtail.exceptions.VersionConflictError: ...
    """

    _expected: str | None = None

    @property
    def current(self) -> ModelVersion:
        """The model with its version, both of the same moment."""
        return _name_version(self._state)

    @contextmanager
    def made_against(self, version: str | None) -> Iterator[None]:
        """Refuse changes made inside where the model has another version by then.

        Parameters
        ----------
        version : str or None
            The version; None accepts any.

        Raises
        ------
        VersionConflictError
            From the change, which then has no effect.
        """
        with self._turn.held():
            self._expected = version
            try:
                yield
            finally:
                self._expected = None

    def _hold(self, work: Callable[[State], Result]) -> Result:
        def work_on_expected(state: State) -> Result:
            current = _name_version(state).version
            if self._expected not in (None, current):
                raise VersionConflictError(str(self._expected), current)
            return work(state)

        return super()._hold(work_on_expected)


class Follower:
    """Reads a model and what others teach it; needs no permission to write.

    Parameters
    ----------
    path : path-like
        The model file.
    embedder : callable, optional
        As for `load`.
    """

    def __init__(self, path: str | os.PathLike[str], *, embedder: Any = None) -> None:
        self._path, self._embedder = Path(path), embedder
        self._state = with_encoder(open_state(path, verify=True), embedder)

    @property
    def current(self) -> ModelVersion:
        """The model with its version, both of the same moment."""
        return _name_version(self._state)

    def refresh(self) -> None:
        """Take in what was taught since."""
        self._state = with_encoder(_read_news(self._path, self._state), self._embedder)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def fingerprint(path: str | os.PathLike[str]) -> Fingerprint:
    """Return what changes whenever a model file or its journal does; costs three calls of stat."""
    journal = journal_path(path)
    return tuple(map(_identity, (Path(path), journal, database.companions(journal)[0])))


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _name_version(state: State) -> ModelVersion:
    last_change = 0 if state.header is None else state.header.next_number - 1
    return ModelVersion(state.model, f"{state.checksum[:12]}.{last_change}")


def _read_news(path: Path, state: State) -> State:
    """Return the state with what is new in the journal; opens everything again where it must."""
    journal = journal_path(path)
    if read_checksum(path) != state.checksum:
        return open_state(path, verify=True)
    if not state.is_attached or not database.exists(journal):
        return open_state(path, verify=False)

    try:
        found = database.read_once(
            journal, lambda connection: take_news(OpenJournal(journal, connection), state)
        )
    except ModelFileError:  # damaged: opening it says how
        found = None
    return found or open_state(path, verify=False)
