"""What each stage of an estimator costs, measured from outside.

For the time of a measurement the functions of the stages are replaced by ones that call them and
read the clocks before and after; the estimators themselves know nothing of it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from longtail.estimators import double_sampling as paper
from longtail.estimators._base import CountClassifier
from longtail.estimators.double_sampling import DoubleSamplingClassifier
from longtail.estimators.long_tail import LongTailClassifier
from longtail.retrieval import search as candidates
from longtail.retrieval.pruning import QueryPruning
from longtail.sparse import CountMatrix
from longtail.statistics.classes import ClassStatistics


class Stage(NamedTuple):
    """A function that does the work of a stage; several may share a stage."""

    stage: str
    owner: Any
    function: str


class Cost(NamedTuple):
    """Seconds on the clock, and of the processor over all threads."""

    wall: float
    processor: float

    def __sub__(self, other: Cost) -> Cost:
        """Return what is left."""
        return Cost(self.wall - other.wall, self.processor - other.processor)


# A stage inside another counts as part of the outer one: calibration learns corrections of its own.
FIT_STAGES: dict[str, tuple[Stage, ...]] = {
    "LongTailClassifier": (
        Stage("validation", CountClassifier, "_check_input"),
        Stage("validation", CountMatrix, "from_matrix"),
        Stage("statistics", ClassStatistics, "from_counts"),
        Stage("shared score", LongTailClassifier, "_learn_score"),
        Stage("index", LongTailClassifier, "_collapse"),
        Stage("index", LongTailClassifier, "_index"),
        Stage("weighing", LongTailClassifier, "_weigh"),
        Stage("mining", LongTailClassifier, "_mine"),
        Stage("calibration", LongTailClassifier, "_calibrate"),
        Stage("corrections", LongTailClassifier, "_learn_class_weights"),
    ),
    "DoubleSamplingClassifier": (
        Stage("validation", CountClassifier, "_check_input"),
        Stage("validation", CountMatrix, "from_matrix"),
        Stage("statistics", ClassStatistics, "from_counts"),
        Stage("sampling", DoubleSamplingClassifier, "_draw_sample"),
        Stage("pair features", paper, "adversary_differences"),
        Stage("learning", paper, "learn_scorer"),
        Stage("index", DoubleSamplingClassifier, "_assemble"),
    ),
}
PREDICT_STAGES: dict[str, tuple[Stage, ...]] = {
    "LongTailClassifier": (
        Stage("validation", CountClassifier, "_check_rows"),
        Stage("weighing", LongTailClassifier, "_weigh"),
        Stage("rarest terms", QueryPruning, "prune"),
        Stage("search", candidates, "_note"),
        Stage("scores and corrections", candidates, "corrected_scores"),
        Stage("ranking", candidates, "_rank_twice"),
    ),
    "DoubleSamplingClassifier": (
        Stage("validation", CountClassifier, "_check_rows"),
        Stage("weighing", paper, "weigh_for_cosine"),
        Stage("search", candidates, "_note"),
        Stage("exact search scores", candidates, "pair_scores"),
        Stage("ranking", candidates, "rank_pairs"),
        Stage("feature scores", paper, "pair_scores"),
        Stage("ranking", paper, "rank_pairs"),
    ),
}
REST = "everything else"


@contextmanager
def replaced(owner: Any, name: str, around: Callable[..., Any]) -> Iterator[None]:
    """Let `around(function, *arguments)` stand in for a function of a module or class."""
    original = vars(owner)[name]
    is_classmethod = isinstance(original, classmethod)
    function = original.__func__ if is_classmethod else original

    @functools.wraps(function)
    def replacement(*arguments: Any, **options: Any) -> Any:
        return around(function, *arguments, **options)

    setattr(owner, name, classmethod(replacement) if is_classmethod else replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def read_clocks() -> Cost:
    """Return the clock and the processor time of this process, all threads."""
    return Cost(time.perf_counter(), time.process_time())


def time_stages(
    stages: tuple[Stage, ...], call: Callable[[], Any]
) -> tuple[Any, Cost, dict[str, Cost]]:
    """Call a function and measure it and its stages.

    Parameters
    ----------
    stages : tuple of Stage
        What to measure inside; a stage that runs inside another belongs to the outer one.
    call : callable
        Without arguments.

    Returns
    -------
    result
        What the call returned.
    total : Cost
        Of the whole call.
    costs : dict of str to Cost
        By stage, in the order of `stages`, and what none of them took.
    """
    costs = {stage.stage: Cost(0.0, 0.0) for stage in stages}
    is_open = False

    def around(stage: str, function: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal is_open
        if is_open:
            return function(*arguments, **options)
        is_open, start = True, read_clocks()
        try:
            return function(*arguments, **options)
        finally:
            spent, before, is_open = read_clocks() - start, costs[stage], False
            costs[stage] = Cost(before.wall + spent.wall, before.processor + spent.processor)

    with ExitStack() as stack:
        for stage, owner, name in stages:
            stack.enter_context(replaced(owner, name, functools.partial(around, stage)))
        start = read_clocks()
        result = call()
        total = read_clocks() - start
    rest = total
    for cost in costs.values():
        rest -= cost
    return result, total, costs | {REST: rest}
