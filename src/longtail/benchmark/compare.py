"""Systems side by side on the same data, each in a process of its own, in one run.

In: names of systems and data sets. Out: one Row for each system, data set and seed; a failure or a
time-out is a row too. Only figures of the same run compare: the machine may be busy with other
work, and then everything takes longer.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from longtail import metrics
from longtail.benchmark import worker
from longtail.benchmark.data import find_data_set, load_counts
from longtail.benchmark.environments import PEERS, clean_variables, ensure_environment
from longtail.benchmark.measure import Progress
from longtail.datasets import CountDataset

SYSTEMS = {
    "longtail": "LongTailClassifier",
    "paper": "(π,κ)-DS, the paper",
    "centroid": "nearest centroid",
    "pecos": "PECOS XR-Linear",
}

_NAN = math.nan
# What the numeric libraries take their number of threads from; n_threads alone would not bind them.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# OpenMP threads spin while they wait, and on a busy machine that is charged as processor time: the
# same fit of PECOS took 7.4 to 10.1 s, and 6.8 to 8.0 s when waiting threads sleep.
_WAITING = {"OMP_WAIT_POLICY": "passive"}


@dataclass(frozen=True)
class Row:
    """What one system reached on one data set and what that cost.

    Shares are from 0 to 1, times in seconds; all are NaN where `error` says why there are none.

    Attributes
    ----------
    system, data : str
        Names.
    seed : int
        Decides every random draw of the system.
    n_test : int
        Number of documents predicted.
    accuracy, top_5 : float
        Share of test documents whose class comes first, or among the first five.
    macro_f1, macro_f1_of_means : float
        Mean of the per-class F1; the paper's harmonic mean of macro precision and macro recall.
    fit_seconds, fit_processor_seconds : float
        From counts to a fitted system, weighting of terms included: on the clock, and of the
        processor over all threads.
    tfidf_processor_seconds : float
        The part of it that weights terms, where that is a step of its own.
    predict_seconds, predict_processor_seconds : float
        All test documents in one call, weighting of terms included.
    warmup_seconds : float
        Spent on compiling before anything was measured.
    peak_megabytes : float
        Largest memory of the process from start to end: interpreter, libraries, data, compiler.
    bands : list of FrequencyBand
        Results by number of training documents of a class.
    error : str or None
        Why there are no results.
    """

    system: str
    data: str
    seed: int
    n_test: int = 0
    accuracy: float = _NAN
    macro_f1: float = _NAN
    macro_f1_of_means: float = _NAN
    top_5: float = _NAN
    fit_seconds: float = _NAN
    fit_processor_seconds: float = _NAN
    tfidf_processor_seconds: float = _NAN
    predict_seconds: float = _NAN
    predict_processor_seconds: float = _NAN
    warmup_seconds: float = _NAN
    peak_megabytes: float = _NAN
    bands: tuple[metrics.FrequencyBand, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Ratio:
    """Cost of one system divided by that of another on the same data in the same run.

    Below 1 the first is cheaper. With several seeds the means are divided. NaN where `error` says
    why there is nothing to divide.
    """

    data: str
    system: str
    peer: str
    fit_processor: float = _NAN
    predict_processor: float = _NAN
    peak_memory: float = _NAN
    error: str | None = None


class RunError(RuntimeError):
    """A worker that gave no result; one line that says why."""


def compare(
    data: Sequence[str | os.PathLike[str]],
    systems: Sequence[str],
    *,
    n_threads: int = 2,
    seeds: Sequence[int] = (0,),
    time_limit: float = 3600,
    progress: Progress = lambda *_: None,
    data_folder: str | os.PathLike[str] | None = None,
    environments: str | os.PathLike[str] | None = None,
    on_row: Callable[[Row], None] = lambda _: None,
) -> list[Row]:
    """Run each system on each data set with each seed, one after the other.

    Parameters
    ----------
    data : sequence of str or path-like
        Folders with counts, or names of such folders in `data_folder`.
    systems : sequence of str
        Keys of `SYSTEMS`. The environment of a peer is created when it is first needed.
    n_threads : int, default=2
        Threads of each system.
    seeds : sequence of int, default=(0,)
        Decide the random draws.
    time_limit : float, default=3600
        Seconds on the clock after which a run is stopped, everything included.
    progress : callable, optional
        Called with what is being run, how many runs are done, and how many there are.
    data_folder : str or path-like, optional
        Where data sets are looked for by name.
    environments : str or path-like, optional
        Where environments of peers are; see `environments_folder`.
    on_row : callable, optional
        Called with each row as soon as it is there.

    Returns
    -------
    list of Row
        By data set, then seed, then system, so that what is compared runs close together.

    Raises
    ------
    ValueError
        If a system is not known or a number makes no sense.
    FileNotFoundError
        If a data set is absent.
    """
    _check(data, systems, n_threads, seeds, time_limit)
    places = [find_data_set(name, data_folder) for name in data]
    rows: list[Row] = []
    n_runs = len(places) * len(systems) * len(seeds)
    with tempfile.TemporaryDirectory(prefix="longtail-compare-") as scratch:
        runner = _Runner(n_threads, time_limit, environments, Path(scratch))
        for place in places:
            for row in _run_data_set(place, systems, seeds, runner, progress, len(rows), n_runs):
                rows.append(row)
                on_row(row)
    return rows


def cost_ratios(rows: Sequence[Row], system: str = "longtail", peer: str = "pecos") -> list[Ratio]:
    """Divide what one system cost by what another cost, for each data set.

    Parameters
    ----------
    rows : sequence of Row
        Of one run of `compare`.
    system, peer : str
        Numerator and denominator.

    Returns
    -------
    list of Ratio
        One for each data set, in the order of the rows.

    Examples
    --------
    >>> costs = dict(predict_processor_seconds=1.0, peak_megabytes=300.0)
    >>> rows = [Row("longtail", "letters", 0, fit_processor_seconds=9.0, **costs),
    ...         Row("pecos", "letters", 0, fit_processor_seconds=6.0, **costs)]
    >>> cost_ratios(rows)[0].fit_processor
    1.5
    """
    return [_divide(rows, name, system, peer) for name in dict.fromkeys(row.data for row in rows)]


def write_parts(data: CountDataset, path: Path) -> None:
    """Store what a worker needs: counts of both parts and the classes of the training part.

    Not compressed, so that reading takes neither time nor memory that a system could be blamed for.
    """
    arrays = {"n_terms": np.array(data.X_train.shape[1]), "train_y": data.y_train}
    for part, X in (("train", data.X_train), ("test", data.X_test)):
        arrays |= {f"{part}_{name}": getattr(X, name) for name in ("data", "indices", "indptr")}
    np.savez(path, **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Runner:
    """How workers are started."""

    n_threads: int
    time_limit: float
    environments: str | os.PathLike[str] | None
    scratch: Path

    def command(self, system: str) -> tuple[list[str], dict[str, str]]:
        """Return interpreter and environment variables for a system."""
        threads = {name: str(self.n_threads) for name in _THREAD_VARIABLES} | _WAITING
        if system in PEERS:
            python = ensure_environment(system, self.environments)
            # -I: nothing of the caller's installation may reach the peer.
            return [str(python), "-I"], {**clean_variables(), **threads}
        ours = str(Path(__file__).parents[2])  # the folder that this package was imported from
        paths = os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))
        # -P: the folder of the script holds modules whose names would hide others.
        return [sys.executable, "-P"], {**os.environ, **threads, "PYTHONPATH": paths}

    def run(self, system: str, parts: Path, seed: int) -> Path:
        """Run a worker to its end and return the path of its results."""
        interpreter, variables = self.command(system)
        output, messages = self.scratch / "output.json", self.scratch / "messages.txt"
        output.unlink(missing_ok=True)
        command = [*interpreter, worker.__file__, system, str(parts), str(self.n_threads)]
        with messages.open("wb") as stream:
            process = subprocess.Popen(
                [*command, str(seed), str(output)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
            try:
                code = process.wait(self.time_limit)
            except subprocess.TimeoutExpired:
                raise RunError(f"not finished after {self.time_limit:g} s") from None
            finally:
                # On a time-out or an interrupt: the worker, and whatever it may have started.
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if code:
            raise RunError(_explain_exit(code, messages))
        return output


def _check(
    data: Sequence[object],
    systems: Sequence[str],
    n_threads: int,
    seeds: Sequence[int],
    time_limit: float,
) -> None:
    """Refuse what cannot be run, before anything runs."""
    for system in systems:
        if system not in SYSTEMS:
            raise ValueError(f"systems must be among {', '.join(SYSTEMS)}; got {system!r}.")
    for name, values in (("data", data), ("systems", systems), ("seeds", seeds)):
        if isinstance(values, str) or not len(values):
            raise ValueError(f"{name} must be a list with at least one entry; got {values!r}.")
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1; got {n_threads}.")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0; got {time_limit}.")


def _run_data_set(
    place: Path,
    systems: Sequence[str],
    seeds: Sequence[int],
    runner: _Runner,
    progress: Progress,
    n_done: int,
    n_runs: int,
) -> Iterator[Row]:
    """Yield the rows of one data set."""
    name = place.resolve().name
    runs = [(system, seed) for seed in seeds for system in systems]
    progress(f"{name}: reading", n_done, n_runs)
    try:
        data = load_counts(place)
    except ValueError as error:
        yield from (Row(system, name, seed, error=str(error)) for system, seed in runs)
        return
    parts = runner.scratch / "parts.npz"
    write_parts(data, parts)
    for position, (system, seed) in enumerate(runs):
        progress(f"{name}: {SYSTEMS[system]}, seed {seed}", n_done + position, n_runs)
        try:
            output = runner.run(system, parts, seed)
            yield _score(Row(system, name, seed), data, output)
        except (RunError, OSError) as error:
            yield Row(system, name, seed, error=str(error))
    progress(f"{name}: done", n_done + len(runs), n_runs)


def _score(row: Row, data: CountDataset, output: Path) -> Row:
    """Fill a row from a worker's costs and its ranking of the test documents."""
    costs = json.loads(output.read_text(encoding="utf-8"))
    ranking = np.load(output.with_suffix(".npy"))
    first, sizes = ranking[:, 0], np.bincount(data.y_train, minlength=len(data.classes))
    return Row(
        system=row.system,
        data=row.data,
        seed=row.seed,
        n_test=len(data.y_test),
        accuracy=metrics.accuracy(data.y_test, first),
        macro_f1=metrics.macro_f1(data.y_test, first),
        macro_f1_of_means=metrics.macro_f1_of_means(data.y_test, first),
        top_5=metrics.top_k_accuracy(data.y_test, ranking),
        bands=tuple(metrics.frequency_report(data.y_test, first, dict(enumerate(sizes.tolist())))),
        **costs,
    )


def _explain_exit(code: int, messages: Path) -> str:
    """Say in one line why a worker ended: the signal, or the last line that it wrote."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"ended by {name}" + (", as when memory runs out" if name == "SIGKILL" else "")
    lines = messages.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else f"ended with exit code {code}"


def _divide(rows: Sequence[Row], data: str, system: str, peer: str) -> Ratio:
    """Return the ratios for one data set."""
    ours, theirs = (
        [row for row in rows if (row.system, row.data) == (name, data)] for name in (system, peer)
    )
    for name, chosen in ((system, ours), (peer, theirs)):
        errors = [row.error for row in chosen if row.error] if chosen else ["not run"]
        if errors:
            return Ratio(data, system, peer, error=f"{name}: {errors[0]}")

    def ratio(cost: str) -> float:
        top, bottom = (fmean(getattr(row, cost) for row in chosen) for chosen in (ours, theirs))
        return top / bottom if bottom else _NAN

    return Ratio(
        data,
        system,
        peer,
        fit_processor=ratio("fit_processor_seconds"),
        predict_processor=ratio("predict_processor_seconds"),
        peak_memory=ratio("peak_megabytes"),
    )
