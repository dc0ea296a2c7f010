"""Cost of teaching, durable write included: one text, many in a call, undo, opening again.

    python -m longtail_bench.teaching ../shared/data/wikitaxa-genus --changes 10000

A classifier of texts is fitted on the training part and saved; then texts of the test part are
taught, each in a call of its own. Wall time and CPU time are both shown: on a shared machine only
the second compares, but only the first has the disk in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail import TextClassifier
from longtail.teaching import Teacher, load
from longtail_bench.text import read_texts

N_TAUGHT = 2000
N_UNDONE = 20  # changes anywhere in the journal that are undone
N_TOGETHER = 1000
N_TIMES = 5  # that what can be repeated is repeated


class Clock:
    """Wall and CPU seconds of calls, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[tuple[float, float]]] = {}

    def time(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function and note what it took."""
        wall, processor = time.perf_counter(), time.process_time()
        result = call(*arguments)
        elapsed = time.perf_counter() - wall, time.process_time() - processor
        self.seconds.setdefault(name, []).append(elapsed)
        return result

    def rows(self) -> list[tuple[str, int, list[float]]]:
        """Return name, number of calls, and median, 95 % and longest: wall, then CPU, in ms."""
        return [
            (
                name,
                len(elapsed),
                (1000 * np.percentile(elapsed, [50, 95, 100], axis=0)).T.ravel().tolist(),
            )
            for name, elapsed in self.seconds.items()
        ]


def measure_teaching(
    model: Path, texts: Sequence[str], labels: Sequence[Any], n_changes: int
) -> Clock:
    """Teach texts together and one by one, forget, undo, and open the model again.

    Parameters
    ----------
    model : Path
        A saved model of texts, which is changed.
    texts, labels : sequence
        Documents to teach: `n_changes` one by one, the last ones together.
    n_changes : int
        How many texts are taught one by one.

    Returns
    -------
    Clock
    """
    clock = Clock()
    n_together = min(N_TOGETHER, len(texts) // 2)
    together = list(texts[-n_together:]), list(labels[-n_together:])
    _warm_up(model, texts, labels)
    for _ in range(N_TIMES):
        clock.time("open the file alone", load, model)
        opened = load(model)
        clock.time(f"partial_fit of {n_together}, just opened", opened.partial_fit, *together)
    teacher = Teacher(model)
    for i in range(min(n_changes, N_TAUGHT)):
        clock.time("teach one", teacher.teach, [texts[i]], [labels[i]])
    for _ in range(N_TIMES):
        teacher.teach([texts[0]], [labels[0]])
        clock.time("undo the last", teacher.undo)
    clock.time("forget one", teacher.forget, [texts[0]], [labels[0]])
    clock.time(f"teach {n_together} together", teacher.teach, *together)
    for i in range(N_TAUGHT, n_changes):
        teacher.teach([texts[i]], [labels[i]])
    taught = [c.number for c in teacher.changes() if c.in_effect and c.action == "teach"]
    taught = taught[1:]  # what the first one taught is forgotten
    n_undone = min(N_UNDONE, len(taught))
    for i in range(n_undone):
        change_number = taught[(2 * i + 1) * len(taught) // (2 * n_undone)]
        clock.time(
            "undo any one",
            lambda change_number=change_number: teacher.undo(numbers=[change_number]),
        )
    teacher.close()
    for _ in range(N_TIMES):
        clock.time(f"open with {len(teacher.changes()):,} changes", load, model)
    clock.time("rename a class", teacher.rename_class, labels[1], "a class renamed")
    clock.time("merge a class", teacher.merge_classes, "a class renamed", labels[0])
    clock.time("predict one text then", teacher.model.predict, [texts[0]])
    clock.time("refine", teacher.refine)
    clock.time("compact", teacher.compact)
    teacher.close()
    return clock


def _warm_up(model: Path, texts: Sequence[str], labels: Sequence[Any]) -> None:
    """Load every kernel that is measured, on a copy."""
    beside = model.with_name("warm-up.longtail")
    shutil.copy(model, beside)
    teacher = Teacher(beside)
    teacher.teach(list(texts[:300]), list(labels[:300]))
    teacher.teach([texts[0]], [labels[0]])
    teacher.undo()
    teacher.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit on a data set, teach its test documents, and print what each step takes."""
    parser = argparse.ArgumentParser(description="What teaching costs.")
    parser.add_argument("folder", help="a data set with texts: train.tsv.xz and test.tsv.xz")
    parser.add_argument("--model", help="a file to save the fitted model in, or to take it from")
    parser.add_argument("--changes", type=int, default=N_TAUGHT, help="texts taught one by one")
    options = parser.parse_args(arguments)
    texts, labels = read_texts(Path(options.folder) / "test.tsv.xz")
    n_changes = min(options.changes, len(texts) // 2)
    with tempfile.TemporaryDirectory(dir=os.curdir) as folder:
        path = Path(folder) / "model.longtail"
        if options.model and Path(options.model).exists():
            shutil.copy(options.model, path)
        else:
            classifier = TextClassifier(random_state=0, n_jobs=-1)
            classifier.fit(*read_texts(Path(options.folder) / "train.tsv.xz")).save(path)
            if options.model:
                shutil.copy(path, options.model)
        clock = measure_teaching(path, texts, labels.tolist(), n_changes)
    write = sys.stdout.write
    write(f"{Path(options.folder).name}, milliseconds: wall p50, p95, max; CPU p50, p95, max\n")
    for name, n_times, figures in clock.rows():
        cells = "".join(f"{figure:10.1f}" for figure in figures)
        write(f"{name:36s} {n_times:4d} times {cells}\n")


if __name__ == "__main__":
    main()
