"""Predictions of several systems in turns, so that a busy machine slows all of them alike.

    python -m longtail_bench.turns ../shared/data/tib-subjects longtail,pecos [TURNS]

In: a data set and names of systems. Out: one JSON line for each system with the CPU seconds of its
fit and of each prediction of the whole test part. Each system is a process of its own, as in `run`,
with one thread; all are fitted first, one after the other, and then predict in turns.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from longtail_bench.data import name_data_set
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.processes import Limits
from longtail_bench.rows import Row
from longtail_bench.runner import FittedWorker, Runner
from longtail_bench.splits import LabelSetSplit, Split
from longtail_bench.systems import LABEL_SET_SETTINGS, SYSTEMS, check_systems
from longtail_bench.table_data import load_data


def predict_in_turns(path: Path, systems: list[str], n_turns: int = 5) -> list[dict[str, Any]]:
    """Fit systems on a data set and let each predict its test part `n_turns` times, in turns.

    Parameters
    ----------
    path : Path
        Folder or file of counts.
    systems : list of str
        Keys of `SYSTEMS`.
    n_turns : int, default=5
        Predictions of each system.

    Returns
    -------
    list of dict
        For each system `system`, `n_test`, `fit_cpu_seconds` and the list `predict_cpu_seconds`.

    Raises
    ------
    ValueError
        If a system is not known or there is no turn.
    RuntimeError
        If a system ends before it has answered.
    """
    check_systems(systems)
    if n_turns < 1:
        raise ValueError(f"n_turns must be at least 1; got {n_turns}.")
    data = load_data(path)
    sets = isinstance(data, LabelSetDataset)
    with tempfile.TemporaryDirectory(prefix="longtail-bench-") as scratch, ExitStack() as stack:
        runner = Runner(1, Limits(), None, Path(scratch))
        file = Path(scratch) / "test.npz"
        split: Any = (
            LabelSetSplit(data, file) if isinstance(data, LabelSetDataset) else Split(data, file)
        )
        workers, rows = [], []
        for system in systems:
            settings = dict(SYSTEMS[system].settings)
            settings |= LABEL_SET_SETTINGS.get(system, {}) if sets else {}
            row = Row(system, name_data_set(path), 0, settings=settings)
            output = Path(scratch) / f"{system}.json"
            workers.append(FittedWorker(runner, row, split.path, output, split.top))
            stack.callback(workers[-1].end)
            rows.append({"system": system, "n_test": split.sizes["n_test"]})
            rows[-1]["fit_cpu_seconds"] = workers[-1].fit_cpu_seconds
        for row_of, predicted in zip(rows, _take_turns(workers, file, n_turns), strict=True):
            row_of["predict_cpu_seconds"] = predicted
    return rows


def _take_turns(workers: list[FittedWorker], file: Path, n_turns: int) -> list[list[float]]:
    """Return the CPU seconds of each prediction, by system."""
    turns = [[worker.predict(file)[1] for worker in workers] for _ in range(n_turns)]
    return [list(costs) for costs in zip(*turns, strict=True)]


def main() -> None:
    """Print a row for each system, with the load of the machine at the end."""
    path, systems, *turns = sys.argv[1:]
    for row in predict_in_turns(Path(path), systems.split(","), *map(int, turns)):
        sys.stdout.write(json.dumps(row | {"load": os.getloadavg()[0]}) + "\n")


if __name__ == "__main__":
    main()
