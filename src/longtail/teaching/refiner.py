"""Refining by itself: in a thread of low priority, when enough was taught.

In: a `Teacher` after each change. Out: now and then a change by "auto". Predictions never wait for
it: the model of the teacher is replaced by one assignment. Changes wait only while the refined
model, finished and on the disk, is opened.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from longtail.training import relearning

if TYPE_CHECKING:
    from longtail.teaching.opening import State
    from longtail.teaching.teacher import Teacher

NICENESS = 10  # of the thread, where each thread has its own (Linux)

_LOGGER = logging.getLogger("longtail")


def is_due(state: State) -> bool:
    """Return whether a model should be refined; not once the last refinement was undone."""
    if not hasattr(state.model, "refine"):
        return False
    refined = [n for n, action in state.ledger.actions.items() if action == "refine"]
    if refined and max(refined) not in state.ledger.live:
        return False
    return relearning.is_due(state.model._arrays)


class Refiner:
    """One thread at most that refines the model of a teacher."""

    def __init__(self, path: Path) -> None:
        self._path = path  # of the model file, for the log
        self.is_wanted = True  # whether what is under way shall take effect
        self._begun: tuple[int, threading.Thread] | None = None

    def look(self, teacher: Teacher) -> None:
        """Begin to refine if that is due and nothing is under way; returns at once."""
        if self._is_busy() or not is_due(teacher._state):
            return
        # The thread must not keep a teacher alive.
        self.is_wanted = True
        thread = threading.Thread(
            target=_refine, args=(ref(teacher), self._path), name="longtail-refine", daemon=True
        )
        self._begun = os.getpid(), thread
        thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is under way; return whether that came in time."""
        begun = self._begun
        if begun is None or begun[0] != os.getpid() or begun[1] is threading.current_thread():
            return True
        begun[1].join(timeout)
        return not begun[1].is_alive()

    def _is_busy(self) -> bool:
        begun = self._begun  # a thread does not survive a fork
        return begun is not None and begun[0] == os.getpid() and begun[1].is_alive()


def _refine(teacher_ref: Any, path: Path) -> None:
    """Refine a model; whatever goes wrong is logged, and the model stays as it is."""
    with suppress(AttributeError, OSError):  # of this thread alone; other systems have no such call
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    teacher = teacher_ref()
    if teacher is None:
        return
    try:
        change_number = teacher._refine_beside()
    except Exception as error:  # nobody would catch it
        _LOGGER.warning("%s was not refined: %s", path, error)
        return
    if change_number:
        _LOGGER.info("%s is refined (change %d)", path, change_number)
