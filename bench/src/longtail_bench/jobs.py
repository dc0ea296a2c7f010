"""A function of this package in a process of its own, with limits: arguments and result are JSON.

    python -m longtail_bench.jobs JOB.json

So its peak memory is its own, and one that takes too long or too much can be stopped.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from longtail_bench.processes import Limits, run_limited

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_job(
    function: str, arguments: Mapping[str, Any], n_threads: int, limits: Limits
) -> dict[str, Any]:
    """Call a function in a process of its own and return its result.

    Parameters
    ----------
    function : str
        Module and name, such as ``longtail_bench.speed:measure``.
    arguments : mapping
        Keyword arguments, as far as JSON can hold them.
    n_threads : int
        Threads of the numeric libraries.
    limits : Limits
        When to stop it.

    Returns
    -------
    dict
        What the function returned.

    Raises
    ------
    RunError
        If it was stopped or failed.
    """
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {
        **os.environ,
        **dict.fromkeys(_THREAD_VARIABLES, str(n_threads)),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    with tempfile.TemporaryDirectory(prefix="longtail-job-") as folder:
        path, output = Path(folder) / "job.json", Path(folder) / "output.json"
        job = {"function": function, "arguments": dict(arguments), "output": str(output)}
        path.write_text(json.dumps(job), encoding="utf-8")
        # -P: a file in the working folder must not hide a module.
        command = [sys.executable, "-P", "-m", "longtail_bench.jobs", str(path)]
        run_limited(command, variables, limits, Path(folder) / "messages.txt")
        result: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return result


def main(path: Path) -> None:
    """Do the job that a file describes."""
    if sys.platform == "linux":
        # PR_SET_PDEATHSIG: whatever ends the benchmark ends this process too, even a SIGKILL.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    job = json.loads(path.read_text(encoding="utf-8"))
    module, _, name = job["function"].partition(":")
    result = getattr(import_module(module), name)(**job["arguments"])
    Path(job["output"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
