"""Who waits for the compiler: the time that kernels take to compile, as it happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from numba.core import event

# Called with how many kernels were compiled so far, and how many seconds that took.
OnCompiled = Callable[[int, float], None]


class _Clock(event.Listener):
    """Counts kernels and time; those that a kernel calls compile inside it and are not counted."""

    def __init__(self, listener: OnCompiled) -> None:
        self._listener = listener
        self._local = threading.local()
        self.n_kernels, self.seconds = 0, 0.0

    def on_start(self, event: Any) -> None:
        """Note when the outermost kernel of this thread begins."""
        depth = getattr(self._local, "depth", 0)
        if depth == 0:
            self._local.start = monotonic()
            self._listener(self.n_kernels, self.seconds)
        self._local.depth = depth + 1

    def on_end(self, event: Any) -> None:
        """Count it when it is done."""
        self._local.depth -= 1
        if self._local.depth == 0:
            self.n_kernels += 1
            self.seconds += monotonic() - self._local.start
            self._listener(self.n_kernels, self.seconds)


@contextmanager
def on_compiled(listener: OnCompiled) -> Iterator[None]:
    """Call a listener when a kernel begins to compile and when it is done; not for cached ones."""
    with event.install_listener("numba:compile", _Clock(listener)):
        yield
