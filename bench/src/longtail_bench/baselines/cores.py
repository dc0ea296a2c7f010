"""Cores for packages that start more threads than they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limit_cores(n_cores: int) -> Iterator[None]:
    """Keep threads that are started inside on so many cores, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:n_cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
