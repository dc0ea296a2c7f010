"""Systems on data sets, each run in processes of its own, with limits; finished rows are kept.

In: names of systems and data sets. Out: one Row for each system, data set and seed; a failure or a
time-out is a row too. A file of results makes a run resumable: what is in it is not run again. Only
figures of the same run compare: the machine may be busy with other work, and then everything takes
longer.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longtail_bench.data import find_data_set, name_data_set
from longtail_bench.environments import BaselineEnvironmentError
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.measure import Progress
from longtail_bench.processes import Limits, RunError
from longtail_bench.rows import (
    FAILED,
    HELD_OUT,
    MEMORY,
    NO_ENVIRONMENT,
    OK,
    TEST,
    TIME_OUT,
    Row,
    append_row,
    read_rows,
)
from longtail_bench.runner import Runner, describe_machine, machine_megabytes
from longtail_bench.splits import LabelSetSplit, Split, digest_data, hold_out
from longtail_bench.systems import LABEL_SET_SETTINGS, SYSTEMS, Settings, check_systems, trials
from longtail_bench.table_data import TableColumns, is_table, load_data

_MEMORY_SHARE = (
    0.9  # of the machine, unless told otherwise: the rest is for the rest of the machine
)


def run(
    data: Sequence[str | os.PathLike[str]],
    systems: Sequence[str],
    *,
    out: str | os.PathLike[str] | None = None,
    n_threads: int = 2,
    seeds: Sequence[int] = (0,),
    time_limit: float = 3600,
    memory_limit: float | None = None,
    settings: Mapping[str, Settings] | None = None,
    tune: int = 0,
    retry: bool = False,
    progress: Progress = lambda *_: None,
    data_folder: str | os.PathLike[str] | None = None,
    columns: TableColumns | None = None,
    environments: str | os.PathLike[str] | None = None,
    on_row: Callable[[Row], None] = lambda _: None,
) -> list[Row]:
    """Run each system on each data set with each seed, one after the other.

    Parameters
    ----------
    data : sequence of str or path-like
        Folders with counts, names of such folders in `data_folder`, files of counts (.npz), or
        tables.
    systems : sequence of str
        Keys of `SYSTEMS`. The environment of a peer is created when it is first needed.
    out : str or path-like, optional
        Each row is appended to this file as soon as it is there. Rows that it already has, with the
        same data, system, seed, threads and settings, are not run again, except those that a lower
        limit stopped.
    n_threads : int, default=2
        Threads of each system.
    seeds : sequence of int, default=(0,)
        Decide the random draws.
    time_limit : float, default=3600
        Seconds on the clock after which a run is stopped, everything included.
    memory_limit : float, optional
        Megabytes of all processes of a run together, after which it is stopped; nine tenths of the
        machine's if left out.
    settings : mapping of str to dict, optional
        System -> parameters that replace its own.
    tune : int, default=0
        If above 0, so many settings of each system are tried on held-out training documents, and
        the most accurate are used.
    retry : bool, default=False
        Run again what failed.
    progress : callable, optional
        Called with what is being run, how many runs are done, and how many there are.
    data_folder : str or path-like, optional
        Where data sets are looked for by name.
    columns : TableColumns, optional
        What is read of tables among the data sets.
    environments : str or path-like, optional
        Where environments of peers are; see `environments_folder`.
    on_row : callable, optional
        Called with each new row.

    Returns
    -------
    list of Row
        By data set, then seed, then system, so that what is compared runs close together. Without
        those of held-out documents.

    Raises
    ------
    ValueError
        If a system is not known, a number makes no sense or the file holds something else.
    OSError
        If a data set is absent, or a row cannot be written.
    """
    settings = dict(settings or {})
    check_systems(systems)
    if settings:
        check_systems(list(settings))
    _check(data, n_threads, seeds, time_limit, memory_limit, tune)
    paths = [find_data_set(name, data_folder) for name in data]
    columns = columns or TableColumns()
    for path in paths:
        columns.check(path)
    if columns.test is not None and len(paths) > 1:
        raise ValueError(f"--test goes with one table; got {len(paths)} data sets.")
    limits = Limits(time_limit, memory_limit or machine_megabytes() * _MEMORY_SHARE)
    with tempfile.TemporaryDirectory(prefix="longtail-bench-") as scratch:
        runner = Runner(n_threads, limits, environments, Path(scratch))
        ledger = _Ledger(out, limits, retry, on_row)
        session = _Session(runner, ledger, settings, tune, progress, columns)
        session.n_runs = (
            len(paths)
            * len(seeds)
            * sum(1 + len(trials(system, tune, 0)) if tune else 1 for system in systems)
        )
        rows = [row for path in paths for row in session.run_data_set(path, systems, list(seeds))]
    progress("done", session.n_runs, session.n_runs)
    return rows


class _Ledger:
    """The rows that are already there, and where new ones go."""

    def __init__(
        self,
        out: str | os.PathLike[str] | None,
        limits: Limits,
        retry: bool,
        on_row: Callable[[Row], None],
    ) -> None:
        self.out = None if out is None else Path(out)
        self.on_row = on_row
        self.finished: dict[tuple[Any, ...], Row] = {}
        if self.out is not None:
            with self.out.open("ab"):  # whether it can be written is best known before hours pass
                pass
            for row in read_rows(self.out):
                if _is_finished(row, limits, retry):
                    self.finished[row.key] = row

    def add(self, row: Row) -> None:
        """Keep a new row, in the file first."""
        if self.out is not None:
            append_row(self.out, row)
        self.finished[row.key] = row
        self.on_row(row)


class _Session:
    """One call of `run`: what to do with each data set."""

    def __init__(
        self,
        runner: Runner,
        ledger: _Ledger,
        settings: Mapping[str, Settings],
        tune: int,
        progress: Progress,
        columns: TableColumns,
    ) -> None:
        self.columns = columns
        self.runner = runner
        self.ledger = ledger
        self.settings = settings
        self.tune = tune
        self.progress = progress
        self.machine = describe_machine()
        self.n_done = 0
        self.n_runs = 0

    def run_data_set(
        self, path: Path, systems: Sequence[str], seeds: Sequence[int]
    ) -> Iterator[Row]:
        """Yield the rows of one data set."""
        name = name_data_set(path)
        digest = digest_data(path, self.columns if is_table(path) else None)
        self.progress(f"{name}: reading", self.n_done, self.n_runs)
        blank = Row(
            "",
            name,
            0,
            n_threads=self.runner.n_threads,
            time_limit=self.runner.limits.seconds,
            memory_limit=self.runner.limits.megabytes,
            data_digest=digest,
            machine=self.machine,
        )
        parts: dict[str, Split | LabelSetSplit] = {}
        try:
            parts = self._split(path)
        except ValueError as error:
            blank = replace(blank, outcome=FAILED, error=str(error))
        sets = isinstance(parts.get(TEST), LabelSetSplit)
        for seed in seeds:
            for system in systems:
                settings = self._settings_of(system, sets)
                row = replace(blank, system=system, seed=seed, settings=settings)
                yield self._choose_and_run(row, parts) if parts else self._give_up(row)

    def _split(self, path: Path) -> dict[str, Split | LabelSetSplit]:
        """Return what is fitted and predicted."""
        data = load_data(path, self.columns)
        file = self.runner.scratch / "test.npz"
        if isinstance(data, LabelSetDataset):
            if self.tune:
                raise ValueError("settings are searched for documents with one label each only.")
            return {TEST: LabelSetSplit(data, file)}
        parts: dict[str, Split | LabelSetSplit] = {TEST: Split(data, file)}
        if self.tune:
            parts[HELD_OUT] = Split(hold_out(data), self.runner.scratch / "held-out.npz")
        return parts

    def _settings_of(self, system: str, sets: bool) -> Settings:
        """Return a system's settings with what the caller replaces."""
        defaults = SYSTEMS[system].settings
        for_sets = LABEL_SET_SETTINGS.get(system, {}) if sets else {}
        return {**defaults, **for_sets, **self.settings.get(system, {})}

    def _choose_and_run(self, row: Row, parts: Mapping[str, Split | LabelSetSplit]) -> Row:
        """Run one system, after a search of its settings if one is wanted."""
        if not self.tune:
            return self._run_once(row, parts[TEST])
        tried = [
            self._run_once(
                replace(
                    row, split=HELD_OUT, settings={**candidate, **self.settings.get(row.system, {})}
                ),
                parts[HELD_OUT],
            )
            for candidate in trials(row.system, self.tune, row.seed)
        ]
        good = [trial for trial in tried if trial.outcome == OK]
        row = replace(row, tuned=len(tried))
        if not good:
            return self._give_up(replace(tried[0], split=TEST, tuned=len(tried)))
        best = max(good, key=lambda trial: trial.accuracy)  # the first of equals
        return self._run_once(replace(row, settings=best.settings), parts[TEST])

    def _run_once(self, row: Row, split: Split | LabelSetSplit) -> Row:
        """Run a worker and keep its row, unless the row is there already."""
        title = f"{row.data}: {SYSTEMS[row.system].title}, seed {row.seed}"
        if row.split == HELD_OUT:
            title += f", trying {_spell(row.settings)}"
        self.progress(title, self.n_done, self.n_runs)
        self.n_done += 1
        if (known := self.ledger.finished.get(row.key)) is not None:
            return known
        row = replace(row, **split.sizes)
        try:
            row = _score(row, split, self.runner.run(row, split.path, split.top))
        except RunError as error:
            peak = error.peak_megabytes
            row = replace(row, outcome=error.outcome, error=str(error), peak_megabytes=peak)
        except BaselineEnvironmentError as error:
            row = replace(row, outcome=NO_ENVIRONMENT, error=str(error))
        self.ledger.add(row)
        return row

    def _give_up(self, row: Row) -> Row:
        """Keep a row that says why there is nothing to run."""
        self.n_done += 1
        if row.key not in self.ledger.finished:
            self.ledger.add(row)
        return self.ledger.finished[row.key]


def _check(
    data: Sequence[object],
    n_threads: int,
    seeds: Sequence[int],
    time_limit: float,
    memory_limit: float | None,
    tune: int,
) -> None:
    """Refuse what cannot be run, before anything runs."""
    for name, values in (("data", data), ("seeds", seeds)):
        if isinstance(values, str) or not len(values):
            raise ValueError(f"{name} must be a list with at least one entry; got {values!r}.")
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1; got {n_threads}.")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0; got {time_limit}.")
    if memory_limit is not None and not memory_limit > 0:
        raise ValueError(f"memory_limit must be a number of MB above 0; got {memory_limit}.")
    if tune < 0:
        raise ValueError(f"tune must be a number of settings to try, or 0; got {tune}.")


def _is_finished(row: Row, limits: Limits, retry: bool) -> bool:
    """Tell whether a row of the file makes a new run needless."""
    if row.outcome == OK:
        return True
    if retry or row.outcome == NO_ENVIRONMENT:  # costs nothing to try again
        return False
    if row.outcome == TIME_OUT:
        return row.time_limit >= limits.seconds
    return row.outcome != MEMORY or row.memory_limit >= limits.megabytes


def _score(row: Row, split: Split | LabelSetSplit, output: Path) -> Row:
    """Fill a row from a worker's costs and its ranking of the documents."""
    results = json.loads(output.read_text(encoding="utf-8"))
    ranking = np.load(output.with_suffix(".npy"))
    return replace(split.score(row, ranking), **results)


def _spell(settings: Settings) -> str:
    """Return settings as a user would write them."""
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "its defaults"
