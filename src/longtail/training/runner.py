"""Where the stages of a fit run: a runner calls a stage, or has it run elsewhere.

A stage is a plain function of arrays that returns a frozen dataclass of arrays. What a runner
returns stands for that dataclass: the object itself, or the file that holds it. The order of the
stages is in `pipeline` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longtail._parallel import release_memory
from longtail._progress import OnStage

# What classes learn from is listed shard by shard: 9 bytes a pair, and as much while it is sorted.
# More shards look through all pairs more often, which takes 2 ns a pair.
PAIRS_PER_SHARD = 1 << 23

Result = Any  # what a stage has returned, or the file that holds it


class Runner(Protocol):
    """Runs stages; `keeps_results` says whether results stay where they are without memory."""

    @property
    def keeps_results(self) -> bool:
        """Whether results are on disk."""

    @property
    def n_jobs(self) -> int | None:
        """Number of threads of what runs in this process."""

    def begin(self, stage: str) -> None:
        """Tell whoever listens that a part of the fit begins."""

    def one(self, stage: str, function: Callable[..., Any], **arguments: Any) -> Result:
        """Run a stage on results and plain values; it is told `n_jobs` as well."""

    def each(
        self,
        stage: str,
        function: Callable[..., Any],
        cases: Sequence[dict[str, Any]],
        **arguments: Any,
    ) -> list[Result]:
        """Run a stage on each of some cases, which do not need each other."""

    def reduce(self, stage: str, function: Callable[..., Any], parts: Sequence[Result]) -> Result:
        """Run a stage that makes one of several `parts`, in any order, until one is left."""

    def view(self, function: Callable[..., Any], **arguments: Any) -> Result:
        """Put results together where they are needed; takes no time and no memory."""

    def read(self, result: Result) -> Any:
        """Return a result itself."""

    def divide_index(self, statistics: Result, min_classes: int) -> list[int]:
        """Return bounds of the parts of an index, each of at least so many classes."""

    def divide_classes(
        self, blocks: Sequence[Result], statistics: Result, n_mined: int
    ) -> list[int]:
        """Return bounds of the shards of classes that learn together."""


@dataclass(frozen=True)
class InMemory:
    """Calls each stage here: one block of documents, which shards of classes share."""

    n_jobs: int | None = None
    on_stage: OnStage = lambda *_: None
    keeps_results: bool = False

    def begin(self, stage: str) -> None:
        """Tell the listener."""
        self.on_stage(stage, 0, 0)

    def one(self, stage: str, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call the stage."""
        release_memory()  # what was freed since the stage before
        return function(**arguments, n_jobs=self.n_jobs)

    def each(
        self,
        stage: str,
        function: Callable[..., Any],
        cases: Sequence[dict[str, Any]],
        **arguments: Any,
    ) -> list[Any]:
        """Call the stage for each case."""
        return [self.one(stage, function, **case, **arguments) for case in cases]

    def reduce(self, stage: str, function: Callable[..., Any], parts: Sequence[Any]) -> Any:
        """Call the stage where there are several parts."""
        return parts[0] if len(parts) == 1 else self.one(stage, function, parts=parts)

    def view(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call the function."""
        return function(**arguments)

    def read(self, result: Any) -> Any:
        """Return the result."""
        return result

    def divide_index(self, statistics: Any, min_classes: int) -> list[int]:
        """Return one part."""
        return [0, statistics.n_classes]

    def divide_classes(self, blocks: Sequence[Any], statistics: Any, n_mined: int) -> list[int]:
        """Return shards of about `PAIRS_PER_SHARD` each."""
        n_pairs = sum(block.n_documents for block in blocks) * (1 + n_mined)
        return divide(statistics.class_sizes, -(-n_pairs // PAIRS_PER_SHARD), 1)


def divide(work: NDArray[Any], n_parts: int, min_classes: int) -> list[int]:
    """Return bounds of ranges of classes of about equal work, each of at least so many classes."""
    n_classes = len(work)
    n_parts = max(1, min(n_parts, n_classes // max(min_classes, 1)))
    targets = np.linspace(0, work.sum() + n_classes, n_parts + 1)[1:-1]
    bounds = [0]
    for i, bound in enumerate(np.searchsorted(np.cumsum(work + 1), targets).tolist(), 1):
        lowest, highest = bounds[-1] + min_classes, n_classes - (n_parts - i) * min_classes
        bounds.append(min(max(bound, lowest), highest))
    return [*bounds, n_classes]
