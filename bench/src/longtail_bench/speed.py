"""Where the time and the memory of the two estimators go, on one data set.

In: a data set, an estimator and a number of threads. Out: a row of JSON with the cost of each stage
of fit and prediction, what the search reads, its time against brute force and against the time that
the machine's memory needs to deliver all postings, single-document latency, and bytes of the model.
Each row is measured in a process of its own. Times are on the clock and of the processor; on a
shared machine only the second compares.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.datasets import CountDataset, load_wordnet_counts
from longtail.estimators.long_tail import LongTailClassifier
from longtail.paper.estimator import DoubleSamplingClassifier
from longtail_bench.data import find_data_set, find_data_sets, load_counts, name_data_set
from longtail_bench.jobs import run_job
from longtail_bench.measure import Progress
from longtail_bench.processes import Limits, RunError
from longtail_bench.rows import OK
from longtail_bench.searching import (
    compare_with_brute_force,
    count_reads,
    prepare_search,
    time_prediction,
)
from longtail_bench.splits import write_splits
from longtail_bench.stages import Cost, read_clocks, time_stages
from longtail_bench.synthetic import draw_counts
from longtail_bench.worker import load_part, model_bytes, peak_megabytes

ESTIMATORS: dict[str, Any] = {
    "LongTailClassifier": LongTailClassifier,
    "DoubleSamplingClassifier": DoubleSamplingClassifier,
}
EMBEDDED = "wordnet"  # the set inside the package
N_CALLS = 500  # single documents whose latency is measured
POSTING_BYTES = 8  # a class id and a float32
COPIED_BYTES, N_COPIES = 1 << 28, 5  # far more than any cache; the fastest copy counts
_WARM_UP_CLASSES = 150


def run_speed(
    data: Sequence[str | os.PathLike[str]],
    estimators: Sequence[str] = tuple(ESTIMATORS),
    *,
    n_threads: Sequence[int] = (1, 2),
    n_documents: int = 10_000,
    seed: int = 0,
    time_limit: float = 3600.0,
    data_folder: str | os.PathLike[str] | None = None,
    progress: Progress = lambda *_: None,
    on_row: Callable[[dict[str, Any]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure estimators on data sets, each in a process of its own.

    Parameters
    ----------
    data : sequence of str or path-like
        Folders with counts, names of such folders in `data_folder`, or ``wordnet``, the set inside
        the package.
    estimators : sequence of str
        Keys of `ESTIMATORS`.
    n_threads : sequence of int, default=(1, 2)
        Numbers of threads.
    n_documents : int, default=10000
        Test documents predicted; all of them if there are fewer.
    seed : int, default=0
        Of the estimators.
    time_limit : float, default=3600
        Seconds on the clock after which a row is given up.
    data_folder : str or path-like, optional
        Where data sets are looked for by name.
    progress : callable, optional
        Called with what is being measured, how many rows are done, and how many there are.
    on_row : callable, optional
        Called with each row.

    Returns
    -------
    list of dict
        As `measure_speed` returns them; a row that failed has an ``error``.
    """
    check_estimators(estimators)
    for name, values in (("n_threads", n_threads), ("n_documents", [n_documents])):
        if not values or min(values) < 1:
            raise ValueError(f"{name} must be integers of at least 1; got {values!r}.")
    rows: list[dict[str, Any]] = []
    n_rows = len(data) * len(estimators) * len(n_threads)
    with tempfile.TemporaryDirectory(prefix="longtail-speed-") as folder:
        parts = Path(folder) / "parts.npz"
        for name, counts in _load(data, data_folder):
            write_splits(counts, parts)
            del counts
            for estimator in estimators:
                for threads in n_threads:
                    progress(f"{name}: {estimator}, {threads} threads", len(rows), n_rows)
                    row = {"data": name, "estimator": estimator, "n_threads": threads, "seed": seed}
                    arguments = {
                        "parts": str(parts),
                        "estimator": estimator,
                        "n_threads": threads,
                        "n_documents": n_documents,
                        "seed": seed,
                    }
                    function = "longtail_bench.speed:measure_speed"
                    row |= run_row(function, arguments, threads, Limits(time_limit))
                    rows.append(row)
                    on_row(row)
    return rows


def check_estimators(names: Sequence[str]) -> None:
    """Refuse estimators that there are not."""
    for name in names:
        if name not in ESTIMATORS:
            raise ValueError(f"estimators must be among {', '.join(ESTIMATORS)}; got {name!r}.")


def run_row(
    function: str, arguments: Mapping[str, Any], n_threads: int, limits: Limits
) -> dict[str, Any]:
    """Run a job and return its row; a failure is a row that says why."""
    try:
        return {"outcome": OK, "error": None, **run_job(function, arguments, n_threads, limits)}
    except RunError as error:
        return {
            "outcome": error.outcome,
            "error": str(error),
            "peak_megabytes": error.peak_megabytes,
        }


def measure_speed(
    parts: str, estimator: str, n_threads: int, n_documents: int, seed: int
) -> dict[str, Any]:
    """Fit an estimator and measure everything about it, in this process.

    Parameters
    ----------
    parts : str
        A file of counts that `write_splits` wrote.
    estimator : str
        A key of `ESTIMATORS`.
    n_threads, n_documents, seed : int
        As in `run_speed`.

    Returns
    -------
    dict
        ``sizes``, ``fit``, ``predict``, ``latency``, ``search``, ``bandwidth``, ``memory``, and the
        search against brute force on the ``searched_terms`` and on ``all_terms``; units as
        the names say.
    """
    X, y = load_part(Path(parts), "train")
    classifier = ESTIMATORS[estimator](random_state=seed, n_jobs=n_threads)
    warm_up(classifier, X)
    sizes = {"train": X.shape[0], "classes": len(np.unique(y)), "terms": X.shape[1]}
    peaks = {"input_megabytes": input_megabytes(X), "peak_before_megabytes": peak_megabytes()}
    _, total, stages = time_stages(partial(classifier.fit, X, y))
    fit = describe_cost(total, stages)
    peaks["peak_fit_megabytes"] = peak_megabytes()
    del X, y
    X = load_part(Path(parts), "test")[0][:n_documents]
    classifier.predict(X[:1])  # what a model prepares once
    total, stages = time_prediction(classifier, X)
    predict = describe_cost(total, stages) | {
        "cpu_microseconds": total.cpu / X.shape[0] * 1e6,
        "documents_per_second": X.shape[0] / total.wall,
    }
    peaks["peak_predict_megabytes"] = peak_megabytes()
    search = prepare_search(classifier, X)
    compared = compare_with_brute_force(search, n_threads)
    bandwidth = measure_bandwidth(n_threads)
    return {
        "sizes": sizes | {"documents": X.shape[0]},
        "fit": fit,
        "predict": predict,
        "latency": measure_latency(classifier, X),
        "search": (reads := count_reads(search)),
        "bandwidth": bandwidth | describe_floor(reads["postings"], bandwidth),
        "searched_terms": compared,
        "all_terms": compared
        if search.pruning is None
        else compare_with_brute_force(replace(search, pruning=None), n_threads),
        "memory": peaks | describe_memory(classifier),
    }


def warm_up(classifier: Any, like: Any) -> None:
    """Fit and predict a small set, so that no kernel is compiled or loaded while it is measured."""
    data = draw_counts(_WARM_UP_CLASSES, n_test=300)
    for X in (data.X_train, data.X_test):
        X.data = X.data.astype(like.dtype)
        X.indices, X.indptr = (
            X.indices.astype(like.indices.dtype),
            X.indptr.astype(like.indptr.dtype),
        )
    warmed_up = type(classifier)(random_state=0, n_jobs=classifier.n_jobs)
    warmed_up.fit(data.X_train, data.y_train)
    for X in (data.X_test, data.X_test[:1]):
        warmed_up.predict(X)
        compare_with_brute_force(prepare_search(warmed_up, X), 1)


def input_megabytes(X: Any) -> float:
    """Return the size of a CSR matrix."""
    return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6


def describe_cost(total: Cost, stages: Mapping[str, Cost]) -> dict[str, Any]:
    """Return a cost and that of its stages as plain numbers."""
    return {
        "wall_seconds": total.wall,
        "cpu_seconds": total.cpu,
        "stages": {
            stage: {"wall_seconds": cost.wall, "cpu_seconds": cost.cpu}
            for stage, cost in stages.items()
        },
    }


# ---- the machine, single documents, memory


def measure_bandwidth(n_threads: int, n_bytes: int = COPIED_BYTES) -> dict[str, float]:
    """Copy a large array and return bytes read and written a second, of wall and CPU time.

    Each thread copies its own part; the fastest of several copies counts, as others may be using
    the memory too.
    """
    source, target = np.ones(n_bytes, np.uint8), np.zeros(n_bytes, np.uint8)
    pairs = list(
        zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True)
    )
    best = Cost(np.inf, np.inf)
    with ThreadPoolExecutor(n_threads) as threads:
        for _ in range(N_COPIES):
            start = read_clocks()
            list(threads.map(lambda pair: np.copyto(*pair), pairs))
            spent = read_clocks() - start
            best = Cost(min(best.wall, spent.wall), min(best.cpu, spent.cpu))
    return {
        "bytes_per_wall_second": 2 * n_bytes / best.wall,
        "bytes_per_cpu_second": 2 * n_bytes / best.cpu,
    }


def describe_floor(postings: float, bandwidth: Mapping[str, float]) -> dict[str, float]:
    """Return the microseconds a document in which memory can deliver all of its postings."""
    n_bytes = POSTING_BYTES * postings
    return {
        "floor_bytes": n_bytes,
        "floor_wall_microseconds": n_bytes / bandwidth["bytes_per_wall_second"] * 1e6,
        "floor_cpu_microseconds": n_bytes / bandwidth["bytes_per_cpu_second"] * 1e6,
    }


def measure_latency(classifier: Any, X: Any, n_calls: int = N_CALLS) -> dict[str, float]:
    """Predict documents one at a time and return percentiles in milliseconds."""
    rows = [X[[i % X.shape[0]]] for i in range(n_calls)]
    costs = np.empty((n_calls, 2))
    for i, row in enumerate(rows):
        wall, processor = time.perf_counter(), time.process_time()
        classifier.predict(row)
        costs[i] = time.perf_counter() - wall, time.process_time() - processor
    p50, p95 = np.percentile(1000 * costs, [50, 95], axis=0)
    return {
        "calls": n_calls,
        "p50_wall_milliseconds": p50[0],
        "p95_wall_milliseconds": p95[0],
        "p50_cpu_milliseconds": p50[1],
        "p95_cpu_milliseconds": p95[1],
    }


def describe_memory(classifier: Any) -> dict[str, Any]:
    """Return the bytes of a fitted model: by part, its largest arrays, and as a file."""
    arrays = model_arrays(classifier)
    parts: dict[str, int] = {}
    for name, size in arrays.items():
        component = name.partition(".")[0]
        parts[component] = parts.get(component, 0) + size
    largest = sorted(arrays.items(), key=lambda entry: -entry[1])[:8]
    return {
        "model_bytes": sum(arrays.values()),
        "file_bytes": model_bytes(classifier),
        "parts": parts,
        "largest": dict(largest),
    }


def model_arrays(classifier: Any) -> dict[str, int]:
    """Return the bytes of every array of a fitted model; one that several parts share counts once.

    Parameters
    ----------
    classifier : estimator
        Fitted.

    Returns
    -------
    dict of str to int
        Name, such as ``index.values``, and bytes.
    """
    seen: set[int] = set()
    sizes: dict[str, int] = {}
    for name, array in _walk("", classifier.state_):
        address = array.__array_interface__["data"][0]
        if array.nbytes and address not in seen:
            seen.add(address)
            sizes[name] = array.nbytes
    return sizes


def _walk(prefix: str, component: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a part by name, with what its cached properties hold."""
    if isinstance(component, np.ndarray):
        yield prefix, component
    elif isinstance(component, tuple | list):
        for position, value in enumerate(component):
            yield from _walk(f"{prefix}.{position}", value)
    elif is_dataclass(component):
        for name, value in vars(component).items():
            yield from _walk(f"{prefix}.{name}" if prefix else name, value)


def _load(
    data: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None
) -> Iterator[tuple[str, CountDataset]]:
    """Yield data sets one after the other; that all of them are there is checked first."""
    paths = [None if name == EMBEDDED else find_data_set(name, folder) for name in data]
    for path in paths:
        if path is None:
            yield EMBEDDED, load_wordnet_counts()
        else:
            yield name_data_set(path), load_counts(path)


def available_data(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the data sets of a folder, or of the embedded one if there are none."""
    try:
        return list(find_data_sets(folder))
    except FileNotFoundError:
        return [EMBEDDED]
