"""`Stages`: runs the tasks of a stage, tells how far it is, and returns where the results are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtail._progress import OnStage
from longtail.distributed.task_results import TaskResult, hash_contents, write_result
from longtail.distributed.tasks import TaskReport, call_each, make_task, name_result, run_tasks

FAN_IN = 8  # results that one task adds up: with 512 blocks a tree has three levels

OnTask = Callable[[TaskReport], None]


@dataclass(frozen=True)
class Stages:
    """Where tasks run, and the callbacks that follow them."""

    scratch: str  # the folder of results
    client: Any  # where tasks run
    n_jobs: int | None  # threads of a task that runs alone
    # Hear a stage with tasks done and tasks in all, and what each task has cost.
    on_stage: OnStage
    on_task: OnTask
    targets: list[str] = field(default_factory=list)  # the results so far

    def each(
        self,
        stage: str,
        function: Callable[..., TaskResult],
        cases: Sequence[dict[str, Any]],
        **arguments: Any,
    ) -> list[str]:
        """Run a task for each case, whose arguments are beside those of all; return their files."""
        one = len(cases) == 1
        tasks = [
            make_task(self.scratch, stage, "all" if one else str(i), function, **arguments, **case)
            for i, case in enumerate(cases)
        ]
        done = 0
        self.on_stage(stage, done, len(tasks))
        for report in run_tasks(tasks, self.client, self.n_jobs):
            done += 1
            self.on_task(report)
            self.on_stage(stage, done, len(tasks))
        targets = [task.target for task in tasks]
        self.targets.extend(targets)
        return targets

    def one(self, stage: str, function: Callable[..., TaskResult], **arguments: Any) -> str:
        """Run the only task of a stage; return its file."""
        return self.each(stage, function, [{}], **arguments)[0]

    def keep(self, stage: str, contents: TaskResult) -> str:
        """Write an input for tasks to the scratch path, unless it is there; return the file.

        It is named by its content, so that what is computed from it is found again by that.
        """
        target = name_result(self.scratch, stage, hash_contents(contents))
        if not os.path.exists(target):
            write_result(target, contents)
        self.targets.append(target)
        return target

    def reduce(
        self, stage: str, function: Callable[..., TaskResult], paths: list[str], **arguments: Any
    ) -> list[str]:
        """Add results up in a tree, until at most `FAN_IN` are left."""
        while len(paths) > FAN_IN:
            starts = range(0, len(paths), FAN_IN)
            groups = [{"paths": paths[start : start + FAN_IN]} for start in starts]
            paths = self.each(stage, function, groups, **arguments)
        return paths

    def call(self, stage: str, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        """Return what a function gives for each of some values; small results, in order."""
        self.on_stage(stage, 0, len(values))
        calls = [(i, function, value) for i, value in enumerate(values)]
        run = os.urandom(8).hex()
        keys = [f"{stage}-{i}-{run}" for i in range(len(values))]
        return [entry for _, entry in sorted(call_each(_numbered, calls, self.client, keys))]


def _numbered(task_id: int, function: Callable[[Any], Any], value: Any) -> tuple[int, Any]:
    return task_id, function(value)
