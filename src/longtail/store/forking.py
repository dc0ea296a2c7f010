"""Turns among threads; and forks that wait until no other thread holds a journal.

SQLite keeps the locks of a process in its memory. A child that is forked while a thread holds a
journal inherits them without the thread that would release them, and would wait forever.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar
from weakref import WeakSet

Result = TypeVar("Result")


class Turn:
    """A lock among the threads of a process; a forked one has a lock of its own."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}  # by process
        self._holder = 0, 0  # process and thread

    @property
    def lock(self) -> threading.RLock:
        """The lock of this process."""
        pid = os.getpid()
        return self._locks.get(pid) or self._locks.setdefault(pid, threading.RLock())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for a block; not for the main thread, which an interrupt may come to."""
        with self.lock:
            self._holder = os.getpid(), threading.get_ident()
            try:
                yield
            finally:
                self._holder = 0, 0

    def run(self, work: Callable[[], Result]) -> Result:
        """Call a function alone among threads; a call inside of it is a part of it.

        No `with`: an interrupt (Ctrl-C) between the end of its block and that of the lock would
        leave the lock held. Here it is released wherever one interrupt comes.
        """
        lock, me = self.lock, (os.getpid(), threading.get_ident())
        if self._holder == me:
            return work()
        try:
            try:
                lock.acquire()
                self._holder = me
                return work()
            finally:
                self._end(lock, me)
        except BaseException:
            self._end(lock, me)
            raise

    def _end(self, lock: threading.RLock, me: tuple[int, int]) -> None:
        """Release the lock if this thread holds it."""
        if self._holder == me:
            self._holder = 0, 0
        with suppress(RuntimeError):  # it does not: interrupted before, or released already
            lock.release()


# Taken while a transaction begins, and while a process forks.
GATE = Turn()
_PATIENCE = 60.0  # seconds; then the fork goes on, and the child may wait in vain


class Watched(Protocol):
    """Something that may hold a journal."""

    def is_held_elsewhere(self) -> bool:
        """Return whether another thread of this process holds it."""
        ...


_WATCHED: WeakSet[Watched] = WeakSet()


def watch(journal: Watched) -> None:
    """Let forks wait for a journal from now on."""
    _WATCHED.add(journal)


def _before() -> None:
    GATE.lock.acquire()
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and any(j.is_held_elsewhere() for j in list(_WATCHED)):
        time.sleep(0.001)


def _after() -> None:
    GATE.lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after)
