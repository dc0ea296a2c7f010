"""Trace which modules of ours each operation enters, and in which order.

Run as ``python tools/walk.py``; ``--write`` puts the walks into ``docs/architecture.md``. A walk is
the list of modules by first entry. A return is an entry into a module that was left before: a call,
not the end of one. Compiled kernels that Python code calls are seen too; those that kernels call
are not.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import longtail
from longtail import Teacher, TextClassifier, load
from longtail.distributed import fit_partitions
from longtail.exceptions import UncalibratedWarning

ROOT = Path(__file__).resolve().parents[1]
SOURCE = f"{Path(longtail.__file__).parent}{os.sep}"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- written by tools/walk.py -->\n", "<!-- end of walks -->"
SECTION = re.compile(f"(?<={BEGIN}).*(?={END})", re.DOTALL)
N_CLASSES, N_EACH = 12, 8


@dataclass
class Walk:
    """The modules that were entered, and how often one was entered again."""

    modules: list[str] = field(default_factory=list)
    n_returns: int = 0
    _here: str = ""

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a call into another module of ours; a function for `sys.setprofile`."""
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(SOURCE) or frame.f_code.co_name == "<module>":
            return
        module = (
            Path(path.removeprefix(SOURCE)).with_suffix("").as_posix().removesuffix("/__init__")
        )
        if module == self._here:
            return
        self._here = module
        if module in self.modules:
            self.n_returns += 1
        else:
            self.modules.append(module)


def trace(operation: Callable[[], Any]) -> Walk:
    """Return the walk of an operation."""
    walk = Walk()
    sys.setprofile(walk.profile)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return walk


def walk_all(folder: Path) -> dict[str, Walk]:
    """Trace one operation after the other on a small model of texts."""
    labels = [f"class {i % N_CLASSES}" for i in range(N_CLASSES * N_EACH)]
    texts = [f"own{i % N_CLASSES} common{i % 5} other{i % 7}" for i in range(len(labels))]
    half = len(texts) // 2
    partitions = [lambda: (texts[:half], labels[:half]), lambda: (texts[half:], labels[half:])]
    path = folder / "model.longtail"
    model = TextClassifier(random_state=0)
    walks = {
        "fit": trace(lambda: model.fit(texts, labels)),
        "predict": trace(lambda: model.predict(texts[:3])),
        "explain": trace(lambda: model.explain(texts[:1])),
        "save": trace(lambda: model.save(path)),
        "load": trace(lambda: load(path)),
    }
    with closing(Teacher(path)) as teacher:
        walks["teach"] = trace(lambda: teacher.teach(["own1 new"], ["class 1"]))
        walks["undo"] = trace(teacher.undo)
        walks["rename"] = trace(lambda: teacher.rename_class("class 2", "another name"))
    whole = TextClassifier(random_state=0)
    walks["fit over two partitions"] = trace(
        lambda: fit_partitions(whole, partitions, scratch=folder / "scratch")
    )
    return walks


def trace_operations() -> dict[str, Walk]:
    """Return the walks of the second run: the first one imports and compiles on the way."""
    warnings.simplefilter("ignore", UncalibratedWarning)
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            walks = walk_all(Path(folder))
    return walks


def describe(walks: dict[str, Walk]) -> str:
    """Return the walks as Markdown: a table of their sizes, and the modules of each in order."""
    lines = ["| operation | modules | returns |", "|---|---|---|"]
    lines += [f"| {name} | {len(w.modules)} | {w.n_returns} |" for name, w in walks.items()]
    for name, walk in walks.items():
        lines += ["", f"**{name}**: " + ", ".join(f"`{module}`" for module in walk.modules)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the walks, or write them into the page."""
    found = describe(trace_operations())
    if "--write" not in sys.argv[1:]:
        print(found, end="")
        return 0
    page = PAGE.read_text()
    if SECTION.search(page) is None:
        print(f"{PAGE} has no marks between which the walks could stand", file=sys.stderr)
        return 1
    PAGE.write_text(SECTION.sub(lambda _: f"\n{found}\n", page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
