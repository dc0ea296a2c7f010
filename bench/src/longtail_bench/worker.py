"""One system on one data set, in a process of its own.

    python worker.py JOB.json
    python worker.py JOB.json turns    # predicts as often as it is told to, and what it is told to

In: a job as `run` writes it, and the arrays that `write_splits` stores; the labels of the predicted
part are not among them. Out: what fitting and predicting cost, in OUTPUT.json, and the first
classes of each predicted document, best first, in OUTPUT.npy (-1 where a ranking is shorter).

A peer's environment runs this file too: beside numpy, scipy and scikit-learn it imports only the
system that it is asked for.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

TOP = 5  # classes ranked for each document; more where documents have label sets

# The warm-up: enough documents and classes for every kernel to run, few enough to be over at once
_WARM_UP_DOCUMENTS, _WARM_UP_CLASSES, _WARM_UP_TERMS = 600, 150, 200


class Cost(NamedTuple):
    """Seconds of a step: on the clock, and of the processor over all threads and children."""

    seconds: float
    cpu_seconds: float


class Stopwatch:
    """Measures a step from its creation on."""

    def __init__(self) -> None:
        self.start = _now()

    def read(self) -> Cost:
        """Return what the step has cost so far."""
        seconds, cpu_seconds = _now()
        return Cost(seconds - self.start.seconds, cpu_seconds - self.start.cpu_seconds)


def build_system(job: dict[str, Any]) -> Any:
    """Return the estimator of a job, unfitted, with its settings and what the run decides."""
    estimator = getattr(import_module(job["module"]), job["estimator"])()
    parameters = estimator.get_params()
    decided = {
        "random_state": job["seed"],
        "n_jobs": job["n_threads"],
        "max_gigabytes": job["memory_limit"] / 1000 if job["memory_limit"] else None,
    }
    estimator.set_params(**{name: decided[name] for name in decided if name in parameters})
    unknown = set(job["settings"]) - set(parameters)
    if unknown:
        known = ", ".join(name for name in parameters if name not in decided)
        raise ValueError(
            f"{job['estimator']} has no setting {sorted(unknown)[0]!r}; it has {known or 'none'}."
        )
    return estimator.set_params(**job["settings"])


def fit(estimator: Any, X: Any, y: Any, names: dict[str, Any]) -> None:
    """Fit on class ids or, where `y` is an indicator matrix, on label sets.

    Of the names of classes (`load_names`) an estimator gets what `fit_sets` asks for.
    """
    if not sp.issparse(y):
        estimator.fit(X, y)
    elif not hasattr(estimator, "fit_sets"):
        rows: Any = y
        estimator.fit(X, [row.tolist() for row in np.split(rows.indices, rows.indptr[1:-1])])
    else:
        wanted = signature(estimator.fit_sets).parameters
        estimator.fit_sets(X, y, **{name: names[name] for name in names if name in wanted})


def rank(estimator: Any, X: Any, k: int = TOP) -> NDArray[np.int64]:
    """Return the first class ids of each document, -1 where there are fewer."""
    if hasattr(estimator, "rank"):
        class_ids, scores = estimator.rank(X, k)
    else:
        class_ids, scores = estimator.predict_topk(X, k)
    return np.where(np.isneginf(scores), -1, class_ids)


def warm_up(job: dict[str, Any], like: Any, sets: bool) -> float:
    """Fit and predict a small made-up set whose arrays have the types of `like`.

    Kernels are compiled for the types of their arrays; here they all are, so that no compilation
    falls into the measurement. Returns the seconds on the clock.
    """
    stopwatch = Stopwatch()
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, _WARM_UP_CLASSES + 1)
    y = rng.choice(_WARM_UP_CLASSES, _WARM_UP_DOCUMENTS, p=popularity / popularity.sum())
    y[:_WARM_UP_CLASSES] = np.arange(_WARM_UP_CLASSES)
    profiles = rng.dirichlet(np.full(_WARM_UP_TERMS, 0.1), _WARM_UP_CLASSES)
    X = sp.csr_array(np.array([rng.multinomial(12, profiles[c]) for c in y]).astype(like.dtype))
    X.indices = X.indices.astype(like.indices.dtype)
    X.indptr = X.indptr.astype(like.indptr.dtype)
    labels: Any = y.astype(np.int64)
    if sets:
        pairs = np.sort(np.column_stack([labels, (labels + 1) % _WARM_UP_CLASSES]))
        ones, starts = np.ones(pairs.size, np.float32), np.arange(0, pairs.size + 1, 2)
        shape = (_WARM_UP_DOCUMENTS, _WARM_UP_CLASSES)
        labels = sp.csr_array((ones, pairs.ravel(), starts), shape=shape)
    estimator = build_system(job)
    of_classes = sp.csr_array(profiles > 1 / _WARM_UP_TERMS, dtype=np.float64)
    terms = [f"t{term}" for term in range(_WARM_UP_TERMS)]
    texts = [" ".join(terms[term] for term in np.flatnonzero(row)) for row in of_classes.toarray()]
    documents: Any = X
    if job["reads_texts"]:
        documents = [" ".join(np.repeat(terms, row)) for row in X.toarray().astype(int)]
    fit(estimator, documents, labels, {"names": of_classes, "texts": texts, "terms": terms})
    rank(estimator, documents)
    return stopwatch.read().seconds


def run(job: dict[str, Any]) -> None:
    """Fit and predict one system, and write what it answered and what that cost."""
    output = Path(job["output"])
    estimator = build_system(job)
    X, y = load_part(Path(job["data"]), "train")
    names = load_names(Path(job["data"]))
    warmup_seconds = warm_up(job, X, sp.issparse(y)) if job["warm_up"] else 0.0
    documents = load_texts(Path(job["data"]), "train") if job["reads_texts"] else X
    fitting, fit_conversion = _measure(estimator, lambda: fit(estimator, documents, y, names))
    ranking, predict, predict_conversion = _predict(estimator, job, Path(job["data"]))
    peak = peak_megabytes()  # what follows is not the system's
    np.save(output.with_suffix(".npy"), ranking)
    results = {
        "fit_seconds": fitting.seconds,
        "fit_cpu_seconds": fitting.cpu_seconds,
        "predict_seconds": predict.seconds,
        "predict_cpu_seconds": predict.cpu_seconds,
        "conversion_seconds": fit_conversion + predict_conversion,
        "warmup_seconds": warmup_seconds,
        "peak_megabytes": peak,
        "model_bytes": model_bytes(estimator),
        "versions": versions(job["packages"]),
        "parameters": {
            name: value
            for name, value in estimator.get_params().items()
            if name not in ("n_jobs", "random_state", "max_gigabytes")
        },
    }
    output.write_text(json.dumps(results), encoding="utf-8")


def run_turns(job: dict[str, Any]) -> None:
    """Fit one system, then predict for each line that comes in; each costs a line of JSON.

    A line names a file that has a test part. Its ranking is in OUTPUT.npy when the answer comes.
    """
    # What a package prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    estimator = build_system(job)
    X, y = load_part(Path(job["data"]), "train")
    names = load_names(Path(job["data"]))
    if job["warm_up"]:
        warm_up(job, X, sp.issparse(y))
    documents = load_texts(Path(job["data"]), "train") if job["reads_texts"] else X
    cost, _ = _measure(estimator, lambda: fit(estimator, documents, y, names))
    answers.write(json.dumps(cost._asdict()) + "\n")
    answers.flush()
    for line in sys.stdin:
        ranking, cost, _ = _predict(estimator, job, Path(line.rstrip("\n")))
        np.save(Path(job["output"]).with_suffix(".npy"), ranking)
        answers.write(json.dumps(cost._asdict()) + "\n")
        answers.flush()


def _predict(
    estimator: Any, job: dict[str, Any], path: Path
) -> tuple[NDArray[np.int64], Cost, float]:
    """Return the ranking of the test part of a file, and what `_measure` returns."""
    X = load_texts(path, "test") if job["reads_texts"] else load_part(path, "test")[0]
    rankings: list[NDArray[np.int64]] = []
    cost, conversion = _measure(estimator, lambda: rankings.append(rank(estimator, X, job["top"])))
    return rankings[0], cost, conversion


def _measure(estimator: Any, step: Any) -> tuple[Cost, float]:
    """Return what a step cost without the conversion of formats, and that conversion's seconds."""
    stopwatch = Stopwatch()
    step()
    cost = stopwatch.read()
    conversion = getattr(estimator, "conversion_", None)
    if conversion is None:
        return cost, 0.0
    seconds = conversion.seconds
    return Cost(cost.seconds - seconds, cost.cpu_seconds - conversion.cpu_seconds), seconds


def load_part(path: Path, split: str) -> tuple[Any, Any]:
    """Return the counts and the class ids of one part; the test part has none.

    Label sets are an indicator matrix.
    """
    with np.load(path) as arrays:
        data, indices, indptr = (
            arrays[f"{split}_{name}"] for name in ("data", "indices", "indptr")
        )
        X = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, int(arrays["n_terms"])))
        if split != "train":
            return X, np.empty(0, dtype=np.int64)
        if "train_y" in arrays.files:
            return X, arrays["train_y"]
        ids, starts = arrays["train_labels"], arrays["train_label_indptr"]
        ones = np.ones(len(ids), np.float32)
        return X, sp.csr_array((ones, ids, starts), shape=(X.shape[0], int(arrays["n_classes"])))


def load_texts(path: Path, split: str) -> list[str]:
    """Return the documents of one part themselves."""
    with np.load(path) as arrays:
        if f"{split}_lengths" not in arrays.files:
            raise ValueError("the data set has counts only; texts come from a table.")
        data, ends = arrays[f"{split}_utf8"].tobytes(), np.cumsum(arrays[f"{split}_lengths"])
        starts = [0, *ends.tolist()]
        return [data[start:end].decode() for start, end in pairwise(starts)]


def load_names(path: Path) -> dict[str, Any]:
    """Return the classes' names as counts and as texts, and the terms; nothing without names."""
    with np.load(path) as arrays:
        if "name_indptr" not in arrays.files:
            return {}
        data, indices, indptr = (arrays[f"name_{name}"] for name in ("data", "indices", "indptr"))
        shape = (len(indptr) - 1, int(arrays["n_terms"]))
        texts = {name: arrays[name].tobytes().decode().split("\n") for name in ("texts", "terms")}
        return {"names": sp.csr_array((data, indices, indptr), shape=shape)} | texts


def model_bytes(estimator: Any) -> int:
    """Return the size of a fitted estimator when it is stored."""
    if hasattr(estimator, "model_bytes"):
        return int(estimator.model_bytes())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if hasattr(estimator, "save"):
            estimator.save(path)
        else:
            with path.open("wb") as file:
                pickle.dump(estimator, file, protocol=5)
        files = path.rglob("*") if path.is_dir() else [path]
        return sum(file.stat().st_size for file in files)


def versions(packages: list[str]) -> dict[str, str]:
    """Return the versions of Python and of packages, as far as they are installed."""
    found = {"python": sys.version.split()[0], "longtail": import_module("longtail").__version__}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def peak_megabytes() -> float:
    """Return the largest memory that this process has had, in MB.

    Linux lets a child inherit `ru_maxrss` from the process that started it (it survives exec), so
    that a large parent would count; the peak of its own address space stands in /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _now() -> Cost:
    """Return the clock and the CPU time of this process and all its children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_seconds = sum(usage.ru_utime + usage.ru_stime for usage in used)
    return Cost(time.perf_counter(), cpu_seconds + _living_children())


def _living_children() -> float:
    """Return the CPU time of child processes that have not ended, such as a pool's."""
    seconds = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(fields[1]) == os.getpid():
            # User and system time of the process, then of those it has waited for
            seconds += sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return seconds


def main(path: Path, *, turns: bool = False) -> None:
    """Run the job that a file describes."""
    if sys.platform == "linux":
        # PR_SET_PDEATHSIG: whatever ends the benchmark ends this process too, even a SIGKILL.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    job = json.loads(path.read_text(encoding="utf-8"))
    sys.path.insert(0, job["source"])
    (run_turns if turns else run)(job)


if __name__ == "__main__":
    main(Path(sys.argv[1]), turns="turns" in sys.argv[2:])
