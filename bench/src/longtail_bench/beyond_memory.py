"""A large synthetic set, fitted and predicted under a memory limit, seen from outside.

In: sizes, a memory limit and a scratch folder. Out: CPU seconds of each stage, the peak memory of
all processes together, looked up from another process while they run, and the accuracy on new
documents. Fit and prediction are processes of their own. A run that was stopped goes on where it
was: results of tasks and what they have cost are kept in the scratch folder.
"""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from longtail import LongTailClassifier
from longtail.distributed import TaskReport, fit_partitions, predict_partitions
from longtail_bench.processes import Limits, run_limited
from longtail_bench.scale import Configuration, Stage, draw_partition, list_parts

NEW_DOCUMENTS, NEW_PARTITIONS = 20_000, 4
MODEL, MESSAGES = "model.longtail", "messages.txt"
TASKS = {"fit": "fit.jsonl", "predict": "predict.jsonl"}  # what tasks have cost, a line each
DAY = 86_400.0  # seconds; what a run may take


@dataclass(frozen=True)
class LargeRow:
    """Time and memory of a fit and predictions of a large set."""

    configuration: Configuration  # sizes
    memory_limit: str | None  # as it was given to the fit
    # Largest resident memory of all processes together, mapped files included; of a run that was
    # stopped and goes on, since then.
    fit_megabytes: float
    predict_megabytes: float
    # Costs of the stages, those of earlier runs in the same scratch folder included.
    stages: dict[str, Stage] = field(default_factory=dict)
    accuracy: float = float("nan")  # share of new documents whose class comes first

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of all tasks."""
        return sum(stage.cpu_seconds for stage in self.stages.values())

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"cpu_seconds": self.cpu_seconds}


def measure_large(
    configuration: Configuration, scratch: Path, memory_limit: str | None = None, seed: int = 0
) -> LargeRow:
    """Fit and predict a synthetic set in processes of their own, and watch their memory.

    Parameters
    ----------
    configuration : Configuration
        Sizes; more than one worker are processes of a pool.
    scratch : Path
        A folder, is created; keeps everything.
    memory_limit : str, optional
        As for `fit_partitions`.
    seed : int, default=0
        Of documents and model.

    Raises
    ------
    RunError
        If a process fails; its messages are in the scratch folder.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    wanted = {"configuration": asdict(configuration), "memory_limit": memory_limit, "seed": seed}
    peaks = {
        step: run_limited(
            [sys.executable, "-m", __name__, step, str(scratch), json.dumps(wanted)],
            os.environ,
            Limits(DAY),
            scratch / MESSAGES,
        )
        for step in ("fit", "predict")
    }
    return LargeRow(
        configuration,
        memory_limit,
        peaks["fit"],
        peaks["predict"],
        {
            stage: cost
            for file in TASKS.values()
            for stage, cost in add_tasks(scratch / file).items()
        },
        count_correct(scratch / "predictions", new_parts(configuration, seed)),
    )


def new_parts(configuration: Configuration, seed: int) -> list[Callable[[], Any]]:
    """Return partitions of documents that were not fitted; their classes follow Zipf's law."""
    first = configuration.n_documents
    edges = np.linspace(first, first + NEW_DOCUMENTS, NEW_PARTITIONS + 1).astype(int)
    sizes = configuration.n_documents, configuration.n_classes
    return [
        functools.partial(draw_partition, *sizes, int(low), int(high), seed)
        for low, high in itertools.pairwise(edges)
    ]


def add_tasks(path: Path) -> dict[str, Stage]:
    """Add up what tasks have cost, stage by stage."""
    stages: dict[str, Stage] = defaultdict(Stage)
    for line in path.read_text(encoding="utf-8").splitlines():
        report = TaskReport(**json.loads(line))
        stages[report.stage] = stages[report.stage].add(report)
    return dict(stages)


def count_correct(predictions: Path, parts: list[Callable[[], Any]]) -> float:
    """Return the share of documents whose class was predicted."""
    n_correct = n_documents = 0
    for file, draw in zip(sorted(predictions.glob("part-*.jsonl")), parts, strict=True):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        _, y = draw()
        n_correct += sum(row["classes"][0] == c for row, c in zip(rows, y.tolist(), strict=True))
        n_documents += len(rows)
    return n_correct / n_documents


@contextmanager
def _pool(n_workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Give a pool of processes, or None where this process is the only worker."""
    if n_workers == 1:
        yield None
        return
    with ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn")) as pool:
        yield pool


def _run(step: str, scratch: Path, wanted: dict[str, Any]) -> None:
    """Fit, or predict, and write down what each task has cost as soon as it is done."""
    configuration, seed = Configuration(**wanted["configuration"]), wanted["seed"]

    def on_task(report: TaskReport) -> None:
        with (scratch / TASKS[step]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(report)) + "\n")

    def on_stage(stage: str, done: int, n_tasks: int) -> None:
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {stage}: {done} of {n_tasks}\n")
        sys.stdout.flush()

    with _pool(configuration.n_workers) as pool:
        shared: dict[str, Any] = {"client": pool, "on_stage": on_stage, "on_task": on_task}
        if step == "predict":
            (scratch / TASKS[step]).unlink(missing_ok=True)  # predicts all of it anew
            parts = new_parts(configuration, seed)
            predict_partitions(scratch / MODEL, parts, scratch / "predictions", **shared)
            return
        fit_partitions(
            LongTailClassifier(random_state=seed),
            list_parts(configuration, seed),
            scratch=scratch / "results",
            memory_limit=wanted["memory_limit"],
            **shared,
        ).save(scratch / MODEL)


if __name__ == "__main__":
    _run(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
