"""How time and memory grow with the number of classes, on synthetic long-tailed sets.

In: numbers of classes, and systems. Out: a row for each of both, measured in a process of its own,
and the exponents of the growth. Our estimators draw their data themselves; other systems read it in
their environments. A row that does not finish says so.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longtail_bench.environments import BaselineEnvironmentError
from longtail_bench.measure import Progress
from longtail_bench.opening import measure_opening
from longtail_bench.processes import Limits, RunError
from longtail_bench.rows import NO_ENVIRONMENT, OK, Row
from longtail_bench.runner import Runner
from longtail_bench.speed import (
    ESTIMATORS,
    describe_cost,
    describe_memory,
    input_megabytes,
    run_row,
    warm_up,
)
from longtail_bench.splits import write_splits
from longtail_bench.stages import time_call, time_stages
from longtail_bench.synthetic import draw_counts
from longtail_bench.systems import SYSTEMS, check_systems
from longtail_bench.worker import peak_megabytes

N_TEST = 2000
# Systems that are measured stage by stage; the others are run as `bench run` does.
OUR_SYSTEMS = {"longtail": "LongTailClassifier", "paper": "DoubleSamplingClassifier"}


@dataclass(frozen=True)
class Quantity:
    """Something that grows: what it is called, its unit, and where it stands in a row."""

    name: str
    measured_in: str
    of: Callable[[dict[str, Any]], float]


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("fit", "CPU s", lambda row: row["fit"]["cpu_seconds"]),
    Quantity(
        "predict a document",
        "CPU µs",
        lambda row: row["predict"]["cpu_microseconds"],
    ),
    Quantity("peak memory", "MB", lambda row: row["memory"]["peak_megabytes"]),
    Quantity("model", "MB", lambda row: row["memory"]["model_bytes"] / 1e6),
)


@dataclass(frozen=True)
class Exponent:
    """A power of the number of classes, fitted to all rows of a system and to the last two."""

    estimator: str
    quantity: str
    overall: float
    at_the_end: float


def run_growth(
    classes: Sequence[int],
    systems: Sequence[str] = tuple(OUR_SYSTEMS),
    *,
    documents_per_class: float = 5.0,
    seed: int = 0,
    n_threads: int = 2,
    time_limit: float = 3600.0,
    memory_limit: float = math.inf,
    progress: Progress = lambda *_: None,
    on_row: Callable[[dict[str, Any]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure systems on synthetic sets of growing size.

    Parameters
    ----------
    classes : sequence of int
        Numbers of classes.
    systems : sequence of str
        Keys of `SYSTEMS`. The environment of a peer is created when it is first needed.
    documents_per_class : float, default=5.0
        Mean number of training documents of a class.
    seed : int, default=0
        Of the data and the systems.
    n_threads : int, default=2
        Number of threads.
    time_limit : float, default=3600
        Seconds on the clock, drawing the data included, after which a row is given up.
    memory_limit : float, optional
        Megabytes after which a row is given up.
    progress : callable, optional
        Called with what is being measured, how many rows are done, and how many there are.
    on_row : callable, optional
        Called with each row.

    Returns
    -------
    list of dict
        As `measure_growth` returns them; a row that did not finish has an ``error``.
    """
    check_systems(systems)
    for name, values, least in (
        ("classes", classes, 2),
        ("documents_per_class", [documents_per_class], 1),
        ("n_threads", [n_threads], 1),
    ):
        if not values or min(values) < least:
            raise ValueError(f"{name} must be at least {least}; got {values!r}.")
    rows: list[dict[str, Any]] = []
    for n_classes in classes:
        for system in systems:
            title = OUR_SYSTEMS.get(system, SYSTEMS[system].title)
            progress(f"{n_classes:,} classes: {title}", len(rows), len(classes) * len(systems))
            arguments = {
                "n_classes": n_classes,
                "estimator": title,
                "documents_per_class": documents_per_class,
                "n_threads": n_threads,
                "seed": seed,
            }
            limits = Limits(time_limit, memory_limit)
            if system in OUR_SYSTEMS:
                function = "longtail_bench.growth:measure_growth"
                found = run_row(function, arguments, n_threads, limits)
            else:
                found = _run_system(system, arguments, limits)
            rows.append({**arguments, **found})
            on_row(rows[-1])
    return rows


def _run_system(system: str, given: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Draw a set and run a system on it; return what `measure_growth` does, without stages."""
    seed, n_threads = given["seed"], given["n_threads"]
    row = Row(system, "synthetic", seed, settings=dict(SYSTEMS[system].settings))
    with tempfile.TemporaryDirectory(prefix="longtail-growth-") as folder:
        path = Path(folder) / "parts.npz"
        data = draw_counts(given["n_classes"], given["documents_per_class"], N_TEST, seed)
        X, y_test = data.X_train, data.y_test
        sizes = {"train": X.shape[0], "terms": X.shape[1], "entries": X.nnz, "test": N_TEST}
        megabytes = input_megabytes(X)
        write_splits(data, path)
        del data, X
        try:
            output = Runner(n_threads, limits, None, Path(folder)).run(row, path, 1)
        except RunError as error:
            peak = error.peak_megabytes
            return {"outcome": error.outcome, "error": str(error), "peak_megabytes": peak}
        except BaselineEnvironmentError as error:
            return {"outcome": NO_ENVIRONMENT, "error": str(error)}
        found = json.loads(output.read_text(encoding="utf-8"))
        predicted = np.load(output.with_suffix(".npy"))[:, 0]
    fit, predict = (
        {"wall_seconds": found[f"{step}_seconds"], "cpu_seconds": found[f"{step}_cpu_seconds"]}
        for step in ("fit", "predict")
    )
    return {
        "outcome": OK,
        "error": None,
        "sizes": sizes,
        "fit": fit,
        "predict": predict | {"cpu_microseconds": predict["cpu_seconds"] / N_TEST * 1e6},
        "accuracy": float(np.mean(predicted == y_test)),
        "memory": {
            "input_megabytes": megabytes,
            "peak_megabytes": found["peak_megabytes"],
            "model_bytes": found["model_bytes"],
        },
        "versions": found["versions"],
    }


def measure_growth(
    n_classes: int, estimator: str, documents_per_class: float, n_threads: int, seed: int
) -> dict[str, Any]:
    """Draw a set, fit and predict, in this process.

    Returns
    -------
    dict
        ``sizes``, ``fit``, ``predict``, ``accuracy``, ``memory`` and ``opening``.
    """
    data = draw_counts(n_classes, documents_per_class, N_TEST, seed)
    X, y = data.X_train, data.y_train
    classifier = ESTIMATORS[estimator](random_state=seed, n_jobs=n_threads)
    warm_up(classifier, X)
    memory = {"input_megabytes": input_megabytes(X), "peak_before_megabytes": peak_megabytes()}
    _, total, stages = time_stages(lambda: classifier.fit(X, y))
    fit = describe_cost(total, stages)
    memory["peak_fit_megabytes"] = peak_megabytes()
    classifier.predict(data.X_test[:1])
    predicted, total = time_call(lambda: classifier.predict(data.X_test))
    memory["peak_megabytes"] = peak_megabytes()
    return {
        "sizes": {"train": X.shape[0], "terms": X.shape[1], "entries": X.nnz, "test": N_TEST},
        "fit": fit,
        "predict": describe_cost(total, {}) | {"cpu_microseconds": total.cpu / N_TEST * 1e6},
        "accuracy": float(np.mean(predicted == data.y_test)),
        "memory": memory | describe_memory(classifier),
        "opening": measure_opening(classifier, data.X_test),
    }


def fit_exponents(rows: Sequence[dict[str, Any]]) -> list[Exponent]:
    """Fit value = constant * K^exponent for each quantity and system, by least squares of logs.

    Parameters
    ----------
    rows : sequence of dict
        As `run_growth` returns them. Those without results are passed over; a system with fewer
        than two has no exponents.

    Returns
    -------
    list of Exponent
    """
    found = []
    for estimator in dict.fromkeys(row["estimator"] for row in rows):
        mine = sorted(
            (row for row in rows if row["estimator"] == estimator and row["outcome"] == OK),
            key=lambda row: row["n_classes"],
        )
        if len({row["n_classes"] for row in mine}) < 2:
            continue
        sizes = np.log([row["n_classes"] for row in mine])
        for quantity in QUANTITIES:
            values = np.log([quantity.of(row) for row in mine])
            found.append(
                Exponent(
                    estimator,
                    quantity.name,
                    float(np.polyfit(sizes, values, 1)[0]),
                    float((values[-1] - values[-2]) / (sizes[-1] - sizes[-2])),
                )
            )
    return found
