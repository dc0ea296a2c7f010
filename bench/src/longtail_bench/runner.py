"""Workers: one system on one split of a data set, in processes of its own; and the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import longtail
import longtail_bench
from longtail_bench import worker
from longtail_bench.environments import clean_variables, ensure_environment, package_names
from longtail_bench.processes import Limits, run_limited
from longtail_bench.rows import Row
from longtail_bench.systems import SYSTEMS

_PACKAGES = ["numpy", "scipy", "scikit-learn", "numba", "joblib"]
# What the numeric libraries take their number of threads from; n_threads alone would not bind them.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# OpenMP threads spin while they wait, and on a busy machine that is charged as CPU time: the
# same fit of PECOS took 7.4 to 10.1 s, and 6.8 to 8.0 s when waiting threads sleep.
_WAITING = {"OMP_WAIT_POLICY": "passive"}


def machine_megabytes() -> float:
    """Return the memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6


def describe_machine() -> dict[str, Any]:
    """Return what runs the systems: processor, cores, memory, operating system."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "memory_megabytes": round(machine_megabytes()),
        "system": f"{platform.system()} {platform.release()}",
    }


@dataclass(frozen=True)
class Runner:
    """How workers are started."""

    n_threads: int
    limits: Limits
    environments: str | os.PathLike[str] | None
    scratch: Path

    def run(self, row: Row, parts: Path, top: int = worker.TOP) -> Path:
        """Run a worker to its end and return the path of its results; `top` classes are ranked."""
        output = self.scratch / "output.json"
        output.unlink(missing_ok=True)
        command, variables = self.prepare(row, parts, top, output)
        load = [os.getloadavg()[0]]
        peak = run_limited(command, variables, self.limits, self.scratch / "messages.txt")
        load.append(os.getloadavg()[0])
        results = json.loads(output.read_text(encoding="utf-8"))
        # Looks at /proc may miss the peak of a process; the process itself knows only its own.
        results["peak_megabytes"] = max(peak, results["peak_megabytes"])
        # A busy machine makes everything slower, CPU time by shared caches and cores as well.
        results["machine"] = row.machine | {"load": [round(value, 1) for value in load]}
        output.write_text(json.dumps(results), encoding="utf-8")
        return output

    def prepare(
        self, row: Row, parts: Path, top: int, output: Path
    ) -> tuple[list[str], dict[str, str]]:
        """Write a worker's job beside its output; return its command and environment variables."""
        system = SYSTEMS[row.system]
        job = {
            "module": system.module,
            "estimator": system.estimator,
            "settings": row.settings,
            "reads_texts": system.reads_texts,
            "seed": row.seed,
            "n_threads": self.n_threads,
            "memory_limit": self.limits.megabytes,
            "warm_up": system.environment is None,  # only ours compile anything
            "packages": package_names(system.environment) if system.environment else _PACKAGES,
            "data": str(parts),
            "top": top,
            "source": str(self._source()),
            "output": str(output),
        }
        path = output.with_suffix(".job")
        path.write_text(json.dumps(job), encoding="utf-8")
        interpreter, variables = self._interpreter(system.environment)
        return [*interpreter, worker.__file__, str(path)], variables

    def _interpreter(self, environment: str | None) -> tuple[list[str], dict[str, str]]:
        """Return interpreter and environment variables for a system."""
        threads = {name: str(self.n_threads) for name in _THREAD_VARIABLES} | _WAITING
        if environment is not None:
            python = ensure_environment(environment, self.environments)
            # -I: nothing of the caller's installation may reach the peer.
            return [str(python), "-I"], {**clean_variables(), **threads}
        # -P: the folder of the script holds modules whose names would hide others.
        return [sys.executable, "-P"], {**os.environ, **threads}

    def _source(self) -> Path:
        """Return a folder that holds these two packages and nothing else of this installation."""
        folder = self.scratch / "source"
        if not folder.exists():
            folder.mkdir()
            for module in (longtail, longtail_bench):
                package = Path(module.__path__[0])
                (folder / package.name).symlink_to(package, target_is_directory=True)
        return folder


class FittedWorker:
    """A system in a process of its own: fitted at once, then predicts when it is told to.

    Parameters
    ----------
    runner : Runner
        How it is started.
    row : Row
        The system and its settings.
    parts : Path
        File that it is fitted on, as `write_parts` writes it.
    output : Path
        Its files have this name.
    top : int
        Classes ranked for each document.

    Raises
    ------
    RuntimeError
        If it ends before it has answered.
    """

    def __init__(
        self, runner: Runner, row: Row, parts: Path, output: Path, top: int = worker.TOP
    ) -> None:
        self._system, self._ranking = row.system, output.with_suffix(".npy")
        self._messages = output.with_suffix(".txt")
        command, variables = runner.prepare(row, parts, top, output)
        with self._messages.open("w") as messages:
            self._process = subprocess.Popen(
                [*command, "turns"],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
            )
        self.fit_cpu_seconds = self._read_cost()

    def predict(self, parts: Path) -> tuple[NDArray[np.int64], float]:
        """Return the first classes of the test part of a file, and the CPU seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{parts}\n")
        self._process.stdin.flush()
        cpu_seconds = self._read_cost()
        return np.load(self._ranking), cpu_seconds

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _read_cost(self) -> float:
        """Return the CPU seconds that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.end()
            said = self._messages.read_text(errors="replace").strip().splitlines()
            raise RuntimeError(
                f"{self._system} ended without an answer: {said[-1] if said else 'no message'}"
            )
        return float(json.loads(line)["cpu_seconds"])
