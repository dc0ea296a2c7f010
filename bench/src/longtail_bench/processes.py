"""A command in a session of its own, stopped when it takes too long or too much memory.

Memory is that of all processes of the session together, looked up in /proc ten times a second, or
less often where a look takes long. A system without /proc has no limit on memory, and no peak but
what the command itself reports.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longtail_bench.rows import FAILED, MEMORY, TIME_OUT

_PROC = Path("/proc")
_INTERVAL = 0.1  # seconds between two looks at the memory
_PAUSE = 50  # times as long as a look takes: looking must not slow down what is measured


class RunError(RuntimeError):
    """A run that gave no result: what kind of end, and one line that says why."""

    def __init__(self, outcome: str, message: str, peak_megabytes: float = float("nan")) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.peak_megabytes = peak_megabytes


@dataclass(frozen=True)
class Limits:
    """Limits of a run: seconds of wall time, megabytes over all its processes."""

    seconds: float = 3600.0
    megabytes: float = float("inf")


def run_limited(
    command: Sequence[str], variables: Mapping[str, str], limits: Limits, messages: Path
) -> float:
    """Run a command to its end and return the largest memory of all its processes, in MB.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    variables : mapping
        Environment variables.
    limits : Limits
        When to stop it.
    messages : Path
        What it writes goes here.

    Raises
    ------
    RunError
        If it was stopped or failed.
    """
    with messages.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            peak = _wait(process, limits)
        finally:
            # Also on an interrupt: the process, and whatever it may have started.
            _end_session(process)
    if process.returncode:
        reason = _explain_exit(process.returncode, messages)
        # A system that sees that it will not fit is out of memory as one that is stopped for it.
        raise RunError(MEMORY if reason.startswith("MemoryError") else FAILED, reason, peak)
    return peak


def _wait(process: subprocess.Popen[bytes], limits: Limits) -> float:
    """Wait for the end and return the peak, or raise when a limit is passed."""
    peak, started = 0.0, time.monotonic()
    while True:
        looked = time.process_time()
        peak = max(peak, session_megabytes(process.pid))
        pause = max(_INTERVAL, _PAUSE * (time.process_time() - looked))
        if peak > limits.megabytes:
            raise RunError(MEMORY, f"more than {limits.megabytes:,.0f} MB of memory", peak)
        left = limits.seconds - (time.monotonic() - started)
        if left <= 0:
            raise RunError(TIME_OUT, f"not finished after {limits.seconds:g} s", peak)
        try:
            process.wait(min(pause, left))
            return peak
        except subprocess.TimeoutExpired:
            continue


def session_processes(session: int) -> list[int]:
    """Return the processes of a session that are alive."""
    found = []
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; state, parent, group, session follow it.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def session_megabytes(session: int) -> float:
    """Return the memory of all processes of a session; what they share counts once."""
    processes = session_processes(session)
    if len(processes) == 1:
        return _value(processes[0], "status", "VmRSS:")
    return sum(_value(process, "smaps_rollup", "Pss:") for process in processes)


def _value(process: int, file: str, name: str) -> float:
    """Return a size that a file in /proc states in kB, in MB; 0 if the process is gone."""
    try:
        for line in (_PROC / str(process) / file).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a session."""
    for left in {process.pid, *session_processes(process.pid)}:
        if left != process.pid or process.returncode is None:
            try:
                os.kill(left, signal.SIGKILL)
            except ProcessLookupError:
                continue
    process.wait()


def _explain_exit(code: int, messages: Path) -> str:
    """Say in one line why a process ended: the signal, or the last line that it wrote."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"ended by {name}" + (", as when memory runs out" if name == "SIGKILL" else "")
    lines = messages.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else f"ended with exit code {code}"
