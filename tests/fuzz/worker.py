"""One process that runs cases: ``python -m tests.fuzz.worker FOLDER random FIRST LAST``.

Before each case its name goes into ``FOLDER/current``, so that whoever started this process knows
which case ended it. What is wrong goes to standard output, one JSON object a line.
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.fuzz import cases

MEMORY = 1 << 30  # bytes that loading and using a file of some 30 kB may take on top


def limit_memory() -> None:
    """Let the process have so much more memory than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def select_cases(mode: str, arguments: list[str]) -> Iterator[tuple[str, cases.Content]]:
    """Yield names and contents."""
    if mode == "random":
        for number in range(int(arguments[0]), int(arguments[1])):
            yield cases.random_case(number)
    else:
        found = cases.file_cases if mode == "files" else cases.systematic_cases
        yield from islice(found(arguments[0]), int(arguments[1]), None)


def main(folder: Path, mode: str, arguments: list[str]) -> None:
    """Run the cases; the last line on standard output counts what happened to them."""
    path, current = folder / "case.longtail", folder / "current"
    outcomes = {"refused": 0, "works": 0, "found": 0}
    warm_up(path)
    limit_memory()
    for n_done, (name, content) in enumerate(select_cases(mode, arguments)):
        current.write_text(json.dumps({"name": name, "done": n_done}))
        try:
            content.write(path)
            outcome = cases.run_case(path)
        except Exception:
            outcome = "found"
            content.write(folder / f"found-{n_done}.longtail")
            print(json.dumps({"name": name, "file": f"found-{n_done}.longtail",
                              "trace": traceback.format_exc(limit=-6)}), flush=True)  # fmt: skip
        outcomes[outcome] += 1
    print(json.dumps(outcomes), flush=True)


def warm_up(path: Path) -> None:
    """Compile what the cases call, which takes memory."""
    for seed in cases.SEEDS:
        cases.copy_seed(seed).write(path)
        cases.run_case(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
