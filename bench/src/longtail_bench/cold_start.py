"""Cold start: CPU seconds of a first fit and predict where no kernel has been compiled.

Each row is a process on a copy of the package without compiled kernels, and a second one after it:
what the first takes more is compiling. Times are CPU seconds of the process, so that other work on
the machine counts as little as it can.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import longtail

Progress = Callable[[str, int, int | None], None]
TASKS = ("counts", "text")

_SCRIPT = """
import json, sys, time
import numpy as np
from scipy.sparse import csr_array

start = time.process_time()
from longtail import LongTailClassifier, TextClassifier
LongTailClassifier, TextClassifier
imported = time.process_time()
labels = np.arange(400) % 40
if sys.argv[1] == "counts":
    counts = np.random.default_rng(0).poisson(0.15, (400, 60)) + 2 * np.eye(60)[labels]
    documents, classifier = csr_array(counts), LongTailClassifier(random_state=0, n_jobs=1)
else:
    documents = [f"made up text {i % 40} of number {i % 7} and {i % 40 * 5}" for i in range(400)]
    classifier = TextClassifier(random_state=0, n_jobs=1)
classifier.fit(documents, labels).predict(documents[:50])
done = time.process_time()
n_compiled = 0
for name, module in list(sys.modules.items()):
    if name.startswith("longtail._kernels."):
        for value in vars(module).values():
            if getattr(value, "__module__", None) == name and hasattr(value, "stats"):
                n_compiled += sum(value.stats.cache_misses.values())
print(json.dumps([imported - start, done - imported, n_compiled]))
"""


def run_cold_start(progress: Progress, tasks: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """Return a row for each task: CPU seconds of importing, of compiling, and of all the rest."""
    rows = []
    for i, task in enumerate(tasks):
        progress("cold start", i, len(tasks))
        with tempfile.TemporaryDirectory() as folder:
            environment = _install(Path(folder))
            imported, cold, n_compiled = _run(task, environment)
            _, warm, _ = _run(task, environment)
        rows.append(
            {
                "task": task,
                "import_cpu_seconds": imported,
                "compile_cpu_seconds": cold - warm,
                "run_cpu_seconds": warm,
                "compiled": n_compiled,
            }
        )
    progress("cold start", len(tasks), len(tasks))
    return rows


def _install(folder: Path) -> dict[str, str]:
    """Copy the package without what was compiled for it; return the environment that uses it."""
    without = shutil.ignore_patterns("__pycache__")
    package = Path(longtail.__file__).parent
    shutil.copytree(package, folder / "site" / "longtail", ignore=without)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
    return kept | {"PYTHONPATH": str(folder / "site"), "HOME": str(folder)}


def _run(task: str, environment: dict[str, str]) -> tuple[float, float, int]:
    """Return CPU seconds of importing, CPU seconds of fit and predict, and compiled signatures."""
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT, task],
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"the {task} task failed: {process.stderr[-2000:]}")
    imported, used, n_compiled = json.loads(process.stdout)
    return imported, used, n_compiled
