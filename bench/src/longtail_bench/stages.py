"""Cost of each stage of a fit: the time between the stages that `fit` reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from longtail._progress import report_progress

FIRST = "validation"  # what runs before the first stage is reported


class Cost(NamedTuple):
    """Wall time, and CPU time over all threads, in seconds."""

    wall: float
    cpu: float

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        """Return both together."""
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Cost) -> Cost:
        """Return what is left."""
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


def read_clocks() -> Cost:
    """Return wall time and the CPU time of this process, all threads."""
    return Cost(time.perf_counter(), time.process_time())


def time_call(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """Call a function; returns its result and what it cost."""
    start = read_clocks()
    result = call()
    return result, read_clocks() - start


def time_stages(call: Callable[[], Any]) -> tuple[Any, Cost, dict[str, Cost]]:
    """Call a function that fits and measure it and its stages.

    Parameters
    ----------
    call : callable
        Without arguments.

    Returns
    -------
    result
        What the call returned.
    total : Cost
        Of the whole call.
    costs : dict of str to Cost
        By stage, in the order in which they were first reported; they add up to the total. A stage
        lasts until the next is reported, the last until the call returns.
    """
    stage, start = FIRST, read_clocks()
    costs = {FIRST: Cost(0.0, 0.0)}
    reported = start

    def close(next_stage: str) -> None:
        nonlocal stage, reported
        now = read_clocks()
        costs[stage] = costs[stage] + (now - reported)
        costs.setdefault(next_stage, Cost(0.0, 0.0))
        stage, reported = next_stage, now

    def listen(name: str, _done: int, _total: int) -> None:
        if name != stage:
            close(name)

    with report_progress(listen):
        result = call()
    close(stage)
    return result, reported - start, costs
