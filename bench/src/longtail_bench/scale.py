"""Cost of each stage of a fit over partitions, and an estimate for other sizes.

In: numbers of documents, classes, partitions and workers. Out: CPU seconds and bytes of each stage,
measured on synthetic long-tailed sets, and a cost model: for each stage a sum of terms that the
stage's work is made of, with coefficients that are not negative, fitted by relative least squares.
A configuration that the model was not fitted on says how far it is off.
"""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import csr_array

from longtail import LongTailClassifier
from longtail.distributed import TaskReport, fit_partitions
from longtail_bench.synthetic import TERMS_EXPONENT, TERMS_FACTOR, draw_documents, zipf

SAMPLED = 40_000  # documents that the shared weights are learned on
DOCUMENTS_PER_CLASS = 3  # at least
CHECKED = 17_000  # held-out documents that are searched, 2,000 of them five times


@dataclass(frozen=True)
class Configuration:
    """Sizes of a fit."""

    n_documents: int
    n_classes: int
    n_partitions: int
    n_workers: int = 1


@dataclass(frozen=True)
class Stage:
    """The cost of a stage."""

    cpu_seconds: float = 0.0
    bytes_read: float = 0.0
    bytes_written: float = 0.0
    n_tasks: int = 0
    by_worker: dict[str, float] = field(default_factory=dict)  # CPU seconds

    @property
    def longest(self) -> float:
        """CPU seconds of the worker that had most to do: the wall time of idle machines."""
        return max(self.by_worker.values(), default=0.0)

    def add(self, report: TaskReport) -> Stage:
        """Return the costs with those of one more task."""
        return Stage(
            self.cpu_seconds + report.cpu_seconds,
            self.bytes_read + report.bytes_read,
            self.bytes_written + report.bytes_written,
            self.n_tasks + 1,
            self.by_worker
            | {report.worker: self.by_worker.get(report.worker, 0.0) + report.cpu_seconds},
        )


@dataclass(frozen=True)
class ScaleRow:
    """A configuration, its wall time and the costs of its stages."""

    configuration: Configuration
    seconds: float
    stages: dict[str, Stage] = field(default_factory=dict)

    @property
    def speedup(self) -> float:
        """CPU seconds of all tasks by those of the busiest worker of each stage."""
        costs = self.stages.values()
        return sum(cost.cpu_seconds for cost in costs) / sum(cost.longest for cost in costs)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ScaleRow:
        """Return the row that `as_json` gave the values of."""
        stages = {name: Stage(**stage) for name, stage in values["stages"].items()}
        return cls(Configuration(**values["configuration"]), values["seconds"], stages)


def read_rows(path: Path) -> dict[Configuration, ScaleRow]:
    """Read rows that were written as JSON lines; the last one of each configuration."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [ScaleRow.from_json(json.loads(line)) for line in lines]
    return {row.configuration: row for row in rows}


def draw_partition(
    n_documents: int, n_classes: int, first: int, last: int, seed: int
) -> tuple[csr_array[Any], NDArray[np.int64]]:
    """Draw the documents from `first` to `last`; each class has one, the rest follow Zipf's law."""
    rng = np.random.default_rng([seed, n_classes, first, last])
    ids = np.arange(first, last)
    classes = np.where(ids < n_classes, ids, zipf(rng.random(len(ids)), n_classes))
    n_terms = round(TERMS_FACTOR * n_classes**TERMS_EXPONENT)
    return draw_documents(classes, n_classes, n_terms, rng), classes


def list_parts(configuration: Configuration, seed: int) -> list[Callable[[], Any]]:
    """Return the partitions of a configuration."""
    edges = np.linspace(0, configuration.n_documents, configuration.n_partitions + 1).astype(int)
    sizes = configuration.n_documents, configuration.n_classes
    return [
        functools.partial(draw_partition, *sizes, int(first), int(last), seed)
        for first, last in itertools.pairwise(edges)
    ]


def measure_scale(
    configuration: Configuration,
    *,
    seed: int = 0,
    scratch: str | None = None,
    memory_limit: str | None = None,
    on_stage: Any = None,
) -> ScaleRow:
    """Fit a configuration and add up what its tasks cost; one worker is this process.

    Raises
    ------
    ValueError
        If classes have so few documents that none can be held out: whole stages would cost nothing.
    """
    if configuration.n_documents < DOCUMENTS_PER_CLASS * configuration.n_classes:
        raise ValueError(
            f"{configuration} has fewer than {DOCUMENTS_PER_CLASS} documents per class; give more "
            "documents or fewer classes."
        )
    stages: dict[str, Stage] = defaultdict(Stage)

    def on_task(report: TaskReport) -> None:
        stages[report.stage] = stages[report.stage].add(report)

    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=scratch, prefix="scale-") as folder:
        n_workers = configuration.n_workers
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(n_workers, mp_context=context) if n_workers > 1 else None
        try:
            fit_partitions(
                LongTailClassifier(random_state=seed),
                list_parts(configuration, seed),
                client=pool,
                scratch=folder,
                memory_limit=memory_limit,
                on_stage=on_stage or (lambda *_: None),
                on_task=on_task,
            )
        finally:
            if pool is not None:
                pool.shutdown()
    return ScaleRow(configuration, time.perf_counter() - start, dict(stages))


# What the work of a stage is made of: constant, documents, classes, and documents searched times
# classes (a search passes over the constants of every class).
TERMS: dict[str, Callable[[Configuration], tuple[float, ...]]] = {
    "reading": lambda c: (1.0, c.n_documents),
    "classes": lambda c: (1.0, c.n_classes),
    "statistics": lambda c: (1.0, c.n_documents, c.n_partitions * c.n_classes),
    "draws": lambda c: (1.0, c.n_documents),
    "shared weights": lambda c: (
        min(SAMPLED, c.n_documents),
        min(SAMPLED, c.n_documents) * c.n_classes,
        c.n_classes,
    ),
    "self-check": lambda c: (1.0, CHECKED * c.n_classes, c.n_classes),
    "scorer": lambda c: (1.0, c.n_documents, c.n_classes),
    "index": lambda c: (1.0, c.n_documents, c.n_classes),
    "weights": lambda c: (1.0, c.n_documents),
    "mining": lambda c: (
        c.n_documents,
        c.n_documents * c.n_classes,
        c.n_partitions * c.n_classes,
    ),
    "log odds": lambda c: (1.0, c.n_documents, c.n_partitions * c.n_classes),
    "residuals": lambda c: (1.0, c.n_documents, c.n_classes),
    "calibration": lambda c: (1.0, CHECKED * c.n_classes, c.n_classes),
}
MEASURES = ("cpu_seconds", "bytes_written")


@dataclass(frozen=True)
class CostModel:
    """Coefficients of every stage and measure, and the mean relative error where it was fitted."""

    coefficients: dict[str, dict[str, list[float]]]
    error: float

    def predict(self, configuration: Configuration) -> dict[str, dict[str, float]]:
        """Return what each stage of a configuration would cost."""
        return {
            stage: {
                measure: float(np.dot(TERMS[stage](configuration), values))
                for measure, values in by_measure.items()
            }
            for stage, by_measure in self.coefficients.items()
        }

    def total(self, configuration: Configuration, measure: str = "cpu_seconds") -> float:
        """Return the sum over all stages."""
        return sum(costs[measure] for costs in self.predict(configuration).values())


def fit_cost_model(rows: Sequence[ScaleRow]) -> CostModel:
    """Fit the coefficients to what was measured.

    Raises
    ------
    ValueError
        If there are fewer rows than terms of a stage.
    """
    if len(rows) < 3:
        raise ValueError(f"rows must hold at least 3 configurations; got {len(rows)}.")
    coefficients: dict[str, dict[str, list[float]]] = {}
    for stage, terms in TERMS.items():
        measured = [row.stages.get(stage, Stage()) for row in rows]
        work = np.array([terms(row.configuration) for row in rows])
        coefficients[stage] = {
            measure: _fit_relative(work, np.array([getattr(s, measure) for s in measured]))
            for measure in MEASURES
        }
    model = CostModel(coefficients, 0.0)
    errors = [relative_error(model, row) for row in rows]
    return CostModel(coefficients, float(np.mean(errors)))


def relative_error(model: CostModel, row: ScaleRow) -> float:
    """Return by how much the CPU seconds of a row differ from the model's, as a share of them."""
    measured = sum(stage.cpu_seconds for stage in row.stages.values())
    return abs(model.total(row.configuration) - measured) / measured


def _fit_relative(work: NDArray[np.float64], costs: NDArray[np.float64]) -> list[float]:
    """Return coefficients, none negative, that minimise the sum of squared relative errors."""
    known = costs > 0
    if not known.any():
        return [0.0] * work.shape[1]
    scales = np.maximum(work.max(axis=0), 1e-300)
    found, _ = nnls(work[known] / scales / costs[known, None], np.ones(int(known.sum())))
    return [float(value) for value in found / scales]
