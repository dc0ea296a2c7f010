"""How far a fit is: its stages go to a listener, the `longtail` logger and, if asked, stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with a stage, how much of it is done, and of how much; 0 of 0 where that is not known.
OnStage = Callable[[str, int, int], None]

_LISTENER: ContextVar[OnStage | None] = ContextVar("longtail_progress", default=None)
_LOGGER = logging.getLogger("longtail")


@contextmanager
def report_progress(listener: OnStage) -> Iterator[None]:
    """Let a callable hear the stages of every fit inside the block.

    Examples
    --------
    >>> from longtail import LongTailClassifier
    >>> stages = []
    >>> with report_progress(lambda stage, done, total: stages.append(stage)):
    ...     _ = LongTailClassifier(random_state=0).fit([[1, 0], [0, 1]], ["a", "b"])
    >>> stages[0]
    'statistics'
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class StageReporter:
    """Passes stages on, with the time that has gone by.

    Parameters
    ----------
    verbose : int
        Above 0, a line for each stage goes to standard error.
    """

    def __init__(self, verbose: int = 0) -> None:
        self._verbose = verbose
        self._listener = _LISTENER.get()
        self._start = self._stage_start = time.monotonic()
        self._stage = ""

    def __call__(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Tell that a stage begins or goes on."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._stage_start = stage, now
            self._say(f"{stage} ({now - self._start:.1f} s)")
        elif done and self._verbose > 1:
            rate = done / max(now - self._stage_start, 1e-9)
            left = (total - done) / rate
            self._say(f"{stage}: {done / total:.0%}, {rate:,.0f}/s, {left:.0f} s left")
        if self._listener is not None:
            self._listener(stage, done, total)

    def _say(self, line: str) -> None:
        _LOGGER.info(line)
        if self._verbose:
            sys.stderr.write(f"longtail: {line}\n")
