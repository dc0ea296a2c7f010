"""Starts workers, goes on after one has crashed, keeps the files that did it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import longtail

ROOT = Path(__file__).parents[2]
REGRESSIONS = ROOT / "tests" / "persistence" / "regressions"
CACHE = ROOT / ".numba-boundscheck"  # kernels compiled with bounds checks


@dataclass
class Report:
    """What happened to some cases."""

    works: int = 0
    refused: int = 0
    found: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_cases(self) -> int:
        """How many were run."""
        return self.works + self.refused + len(self.found)


def environment() -> dict[str, str]:
    """Return the environment of a worker: bounds checks on, a cache of their own, no threads."""
    paths = [str(Path(longtail.__file__).parents[1]), str(ROOT)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(CACHE),
        "OPENBLAS_NUM_THREADS": "1",
    }


def run_cases(mode: str, first: str, second: int, last: int | None = None) -> Report:
    """Run cases until all are done, whatever crashes.

    Parameters
    ----------
    mode : {"random", "sample", "suite", "systematic", "files"}
        Numbers `second` to `last` of random cases; one mutation of every array and value; part
        `first` of the suite's share of the systematic ones; all of those of seed `first`; the files
        in folder `first`; from `second` on.
    first : str
        Name of a seed or a folder, or number of a part.
    second, last : int
        Range of cases.
    """
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while True:
            arguments = [first, str(second)] if last is None else [str(second), str(last)]
            command = [sys.executable, "-m", "tests.fuzz.worker", name, mode, *arguments]
            process = subprocess.run(
                command, env=environment(), cwd=ROOT, capture_output=True, text=True
            )
            lines = [json.loads(line) for line in process.stdout.splitlines() if line[:1] == "{"]
            for line in lines:
                if "trace" in line:
                    report.found.append(keep(folder / line["file"], line["name"], line["trace"]))
            if process.returncode == 0:
                report.works += lines[-1]["works"]
                report.refused += lines[-1]["refused"]
                return report
            if not (folder / "current").exists():
                raise RuntimeError(f"the worker did not start: {process.stderr[-3000:]}")
            current = json.loads((folder / "current").read_text())
            trace = f"ended with {process.returncode}: {process.stderr[-2000:]}"
            report.found.append(keep(folder / "case.longtail", current["name"], trace))
            report.refused += current["done"]  # or worked: the worker can no longer tell
            second += current["done"] + 1
            (folder / "current").unlink()


def keep(file: Path, case: str, trace: str) -> dict[str, Any]:
    """Copy a file to the regressions; a test opens all of them."""
    name = hashlib.sha256(file.read_bytes()).hexdigest()[:12] + ".longtail"
    REGRESSIONS.mkdir(exist_ok=True)
    shutil.copyfile(file, REGRESSIONS / name)
    return {"case": case, "file": name, "trace": trace}
