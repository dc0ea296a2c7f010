"""One process that runs cases: ``python -m tests.fuzz.worker FOLDER random FIRST LAST``.

Before each case its name goes into ``FOLDER/current``, so that whoever started this process knows
which case ended it. What is wrong goes to standard output, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from longtail._kernels.compiling import on_compiled
from tests.fuzz import cases
from tests.fuzz.seeds import SEEDS, copy_seed

ADDRESSES = 1 << 30  # bytes of address space on top of the warm process, compilers included
# Most resident bytes on top of what the process has: a constant, and per byte of the file.
BOUNDS = {"load": (2 << 20, 16), "use": (16 << 20, 64)}


def limit_addresses() -> None:
    """Let the process have so much more address space than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


class MemoryBoundError(Exception):
    """A call took more than its file allows."""


class PeakMemory:
    """Runs a function and refuses what took more resident memory than the file allows.

    A call in which a kernel was compiled is not judged: the compiler takes more than any file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.n_compiled = 0
        self._clear = open("/proc/self/clear_refs", "w")  # noqa: SIM115 - open for all cases

    def __call__(self, what: str, call: Callable[[], Any]) -> Any:
        """Call it; the peak is that of the call, whatever came before."""
        constant, factor = BOUNDS[what]
        allowed = constant + factor * self._path.stat().st_size
        self._clear.write("5")  # the peak begins anew (proc(5))
        self._clear.flush()
        before, n_compiled = self._resident("VmRSS:"), self.n_compiled
        result = call()
        took = self._resident("VmHWM:") - before
        compiled = self.n_compiled > n_compiled
        if took > allowed and not compiled:
            raise MemoryBoundError(f"{what} took {took:,} bytes; {allowed:,} are allowed")
        return result

    def compiled(self, n_kernels: int, seconds: float) -> None:
        """Hear that a kernel was compiled."""
        self.n_compiled += 1

    @staticmethod
    def _resident(name: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
        raise RuntimeError(f"/proc/self/status has no {name}")


def select_cases(mode: str, arguments: list[str]) -> Iterator[cases.Case]:
    """Yield names and contents."""
    if mode == "random":
        for number in range(int(arguments[0]), int(arguments[1])):
            yield cases.random_case(number)
    elif mode == "suite":
        yield from islice(cases.suite_part(int(arguments[0])), int(arguments[1]), None)
    elif mode == "sample":
        yield from islice(cases.sample_cases(), int(arguments[1]), None)
    else:
        found = cases.file_cases if mode == "files" else cases.systematic_cases
        yield from islice(found(arguments[0]), int(arguments[1]), None)


def main(folder: Path, mode: str, arguments: list[str]) -> None:
    """Run the cases; the last line on standard output counts what happened to them."""
    path = folder / "case.longtail"
    os.fsync = lambda descriptor: None  # what a power cut leaves is tested elsewhere
    warm_up(path)
    limit_addresses()
    measured = PeakMemory(path)
    with on_compiled(measured.compiled):
        outcomes = run_all(select_cases(mode, arguments), folder, measured)
    print(json.dumps(outcomes), flush=True)


def run_all(found: Iterator[cases.Case], folder: Path, measured: PeakMemory) -> dict[str, int]:
    """Run the cases, and count what happened to them."""
    path, current = folder / "case.longtail", folder / "current"
    outcomes = {"refused": 0, "works": 0, "found": 0}
    for n_done, (name, content, deep) in enumerate(found):
        current.write_text(json.dumps({"name": name, "done": n_done}))
        try:
            outcome = run_one(content, path, deep, measured)
        except Exception:
            outcome = "found"
            content.write(folder / f"found-{n_done}.longtail")
            print(json.dumps({"name": name, "file": f"found-{n_done}.longtail",
                              "trace": traceback.format_exc(limit=-6)}), flush=True)  # fmt: skip
        outcomes[outcome] += 1
    return outcomes


def run_one(content: Any, path: Path, deep: bool, measured: PeakMemory) -> str:
    """Run a case; where it takes too much memory, once more.

    The allocator may grow or give back a few pages in any call. What a file makes the process take,
    it makes it take every time.
    """
    content.write(path)
    try:
        return cases.run_case(path, deep, measured)
    except MemoryBoundError:
        content.write(path)
        return cases.run_case(path, deep, measured)


def warm_up(path: Path) -> None:
    """Compile what the cases call, which takes memory."""
    for seed in SEEDS:
        copy_seed(seed).write(path)
        cases.run_case(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
