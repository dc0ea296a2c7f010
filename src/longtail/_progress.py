"""How far a fit is: its stages go to a listener, the `longtail` logger and, if asked, stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

# Called with a stage, how much of it is done, and of how much; 0 of 0 where that is not known.
OnStage = Callable[[str, int, int], None]

_LISTENER: ContextVar[OnStage | None] = ContextVar("longtail_progress", default=None)
_REPORTER: ContextVar[StageReporter | None] = ContextVar("longtail_stages", default=None)
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


def advance(step: str, done: int, total: int) -> None:
    """Tell how far a step of the current stage is; outside of a fit there is no listener."""
    reporter = _REPORTER.get()
    if reporter is not None:
        reporter.advance(step, done, total)


class StageReporter:
    """Passes stages on, with the time that has gone by.

    With `verbose` above 0 a line for each stage goes to standard error.
    """

    def __init__(self, verbose: int = 0) -> None:
        self._verbose = verbose
        self._listener = _LISTENER.get()
        self._start = self._step_start = time.monotonic()
        self._stage = self._step = ""

    @contextmanager
    def listening(self) -> Iterator[Self]:
        """Hear the steps of the stages that run inside the block."""
        token = _REPORTER.set(self)
        try:
            yield self
        finally:
            _REPORTER.reset(token)

    def advance(self, step: str, done: int, total: int) -> None:
        """Tell how far a step is; steps of one stage are distinguished by their names."""
        now, name = time.monotonic(), step
        if step != self._stage:
            name = f"{self._stage}: {step}" if self._stage else step
        if name != self._step or not done:
            self._step, self._step_start = name, now
        elif self._verbose > 1:
            rate = done / max(now - self._step_start, 1e-9)
            left = (total - done) / rate
            self._say(f"{name}: {done / total:.0%}, {rate:,.0f}/s, {left:.0f} s left")
        if self._listener is not None:
            self._listener(name, done, total)

    def __call__(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Tell that a stage begins."""
        if stage != self._stage:
            self._stage = stage
            self._say(f"{stage} ({time.monotonic() - self._start:.1f} s)")
        if self._listener is not None:
            self._listener(stage, done, total)

    def finish(self, sentence: str = "") -> None:
        """Tell that all stages are done, and what came of them."""
        self._say(f"done ({time.monotonic() - self._start:.1f} s)")
        if sentence:
            self._say(sentence)

    def tell(self, line: str) -> None:
        """Tell what was found out, beside the stages."""
        self._say(line)

    def _say(self, line: str) -> None:
        _LOGGER.info(line)
        if self._verbose:
            sys.stderr.write(f"longtail: {line}\n")
