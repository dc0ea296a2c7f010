"""`OnDisk`: runs the stages of `training.pipeline` as tasks, each with a file as its result.

A stage's arguments are plain values, files of earlier results, or views that put such files
together. A task opens them, calls the stage, and writes the dataclass that it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints, overload

import numpy as np

from longtail.distributed.blocks import Block, count_entries
from longtail.distributed.memory_plan import Plan
from longtail.distributed.stages import FAN_IN, Stages
from longtail.distributed.task_results import TaskResult, read_part, read_result
from longtail.distributed.tasks import Run
from longtail.model.statistics import ClassStatistics
from longtail.training.runner import divide

_RESULT = "result"


@dataclass(frozen=True)
class Stored:
    """The file of a result: `TaskResult` of a dataclass of some type."""

    path: str
    kind: type

    def open(self) -> Any:
        """Map the result."""
        return read_part(self.kind, read_result(self.path), _RESULT)


@dataclass(frozen=True, eq=False)
class View:
    """Results put together by a function, in each task that needs them."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


class _Opened(Sequence[Any]):
    """Results, each of which is opened whenever it is asked for."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self._handles = handles

    def __len__(self) -> int:
        return len(self._handles)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return _Opened(self._handles[i])
        return open_result(self._handles[i])


def open_result(value: Any, known: dict[Any, Any] | None = None) -> Any:
    """Return what a handle stands for, and any other value itself; each file is mapped once."""
    known = {} if known is None else known
    if isinstance(value, list | tuple):
        is_handle = any(isinstance(entry, Stored | View | Block) for entry in value)
        return _Opened(value) if is_handle else value
    if not isinstance(value, Stored | View | Block):
        return value
    key = value.path if isinstance(value, Stored) else id(value)
    if key not in known:
        if isinstance(value, View):
            given = {name: open_result(entry, known) for name, entry in value.arguments.items()}
            known[key] = value.function(**given)
        else:
            known[key] = value.open()
    return known[key]


def call_stage(run: Run, called: Callable[..., Any], arguments: dict[str, Any]) -> TaskResult:
    """Call a stage on opened results."""
    known: dict[Any, Any] = {}
    given = {name: open_result(value, known) for name, value in arguments.items()}
    return TaskResult().add(_RESULT, called(**given, n_jobs=run.n_jobs))


@dataclass(frozen=True)
class OnDisk:
    """Runs stages as tasks; their results are files, found again by what they follow from."""

    stages: Stages
    plan: Plan
    keeps_results: bool = True

    @property
    def n_jobs(self) -> int | None:
        """Number of threads of what runs in this process."""
        return self.stages.n_jobs

    def begin(self, stage: str) -> None:
        """Do nothing: each task tells its stage."""

    def one(self, stage: str, function: Callable[..., Any], **arguments: Any) -> Stored:
        """Run a stage as one task."""
        return self.each(stage, function, [{}], **arguments)[0]

    def each(
        self,
        stage: str,
        function: Callable[..., Any],
        cases: Sequence[dict[str, Any]],
        *,
        identity: Any = None,
        **arguments: Any,
    ) -> list[Stored]:
        """Run a stage as one task for each case.

        `identity` stands for the arguments where they do not decide the result.
        """
        kind = get_type_hints(function)["return"]
        given = [{"arguments": {**case, **arguments}} for case in cases]
        paths = self.stages.each(stage, call_stage, given, identity=identity, called=function)
        return [Stored(path, kind) for path in paths]

    def reduce(self, stage: str, function: Callable[..., Any], parts: Sequence[Stored]) -> Stored:
        """Run a stage on groups of results until one is left."""
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = self.each(stage, function, [{"parts": list(group)} for group in groups])
        return parts[0]

    def view(self, function: Callable[..., Any], **arguments: Any) -> View:
        """Return what tasks put together where they need it."""
        return View(function, arguments)

    def read(self, result: Any) -> Any:
        """Map a result in this process."""
        return open_result(result)

    def divide_index(self, statistics: Stored, min_classes: int) -> list[int]:
        """Return bounds of the parts of an index."""
        sums: ClassStatistics = self.read(statistics)
        n_shards = self.plan.count_index_shards(sums)
        return divide(np.diff(sums.indptr), n_shards, min_classes)

    def divide_classes(
        self, blocks: Sequence[Block], statistics: Stored, n_mined: int
    ) -> list[int]:
        """Return bounds of the shards of classes that learn together."""
        n_documents = sum(block.n_documents for block in blocks)
        n_shards = self.plan.count_residual_shards(count_entries(blocks), n_documents, n_mined)
        return divide(self.read(statistics).class_sizes, n_shards, 1)
