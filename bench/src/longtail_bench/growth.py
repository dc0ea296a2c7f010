"""How time and memory grow with the number of classes, on synthetic long-tailed sets.

In: numbers of classes. Out: a row for each estimator and number, measured in a process of its own
that draws its data itself, and the exponents of the growth. A row that does not finish says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail_bench.measure import Progress
from longtail_bench.processes import Limits
from longtail_bench.rows import OK
from longtail_bench.speed import (
    ESTIMATORS,
    check_estimators,
    describe_cost,
    describe_memory,
    input_megabytes,
    run_row,
    warm_up,
)
from longtail_bench.stages import time_call, time_stages
from longtail_bench.synthetic import draw_counts
from longtail_bench.worker import peak_megabytes

N_TEST = 2000


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
    """A power of the number of classes, fitted to all rows of an estimator and to the last two."""

    estimator: str
    quantity: str
    overall: float
    at_the_end: float


def run_growth(
    classes: Sequence[int],
    estimators: Sequence[str] = tuple(ESTIMATORS),
    *,
    documents_per_class: float = 5.0,
    seed: int = 0,
    n_threads: int = 2,
    time_limit: float = 3600.0,
    memory_limit: float = math.inf,
    progress: Progress = lambda *_: None,
    on_row: Callable[[dict[str, Any]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure estimators on synthetic sets of growing size.

    Parameters
    ----------
    classes : sequence of int
        Numbers of classes.
    estimators : sequence of str
        Keys of `ESTIMATORS`.
    documents_per_class : float, default=5.0
        Mean number of training documents of a class.
    seed : int, default=0
        Of the data and the estimators.
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
    check_estimators(estimators)
    for name, values, least in (
        ("classes", classes, 2),
        ("documents_per_class", [documents_per_class], 1),
        ("n_threads", [n_threads], 1),
    ):
        if not values or min(values) < least:
            raise ValueError(f"{name} must be at least {least}; got {values!r}.")
    rows: list[dict[str, Any]] = []
    for n_classes in classes:
        for estimator in estimators:
            progress(
                f"{n_classes:,} classes: {estimator}", len(rows), len(classes) * len(estimators)
            )
            arguments = {
                "n_classes": n_classes,
                "estimator": estimator,
                "documents_per_class": documents_per_class,
                "n_threads": n_threads,
                "seed": seed,
            }
            function = "longtail_bench.growth:measure_growth"
            limits = Limits(time_limit, memory_limit)
            rows.append({**arguments, **run_row(function, arguments, n_threads, limits)})
            on_row(rows[-1])
    return rows


def measure_growth(
    n_classes: int, estimator: str, documents_per_class: float, n_threads: int, seed: int
) -> dict[str, Any]:
    """Draw a set, fit and predict, in this process.

    Returns
    -------
    dict
        ``sizes``, ``fit``, ``predict``, ``accuracy`` and ``memory``.
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
    }


def fit_exponents(rows: Sequence[dict[str, Any]]) -> list[Exponent]:
    """Fit value = constant * K^exponent for each quantity and estimator, by least squares of logs.

    Parameters
    ----------
    rows : sequence of dict
        As `run_growth` returns them. Those without results are passed over; an estimator with fewer
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
