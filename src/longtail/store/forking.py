"""Forks wait until no other thread of this process holds a journal.

SQLite keeps the locks of a process in its memory. A child that is forked while a thread holds a
journal inherits them without the thread that would release them, and would wait forever.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

# Held while a transaction begins, and while a process forks; a fork releases it on both sides.
GATE = threading.RLock()
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
    GATE.acquire()
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and any(j.is_held_elsewhere() for j in list(_WATCHED)):
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=GATE.release, after_in_child=GATE.release)
