"""What teaching one document costs, durable write included.

    python -m longtail_bench.teaching ../shared/data/wikitaxa-genus

A classifier is fitted on the training part and saved; then single documents of the test part are
taught, each in a call of its own. Wall time and CPU time are both shown: on a shared machine
only the second compares, but only the first has the disk in it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail.estimators.long_tail import LongTailClassifier
from longtail.teaching import Teacher, load
from longtail_bench.data import load_counts

N_TAUGHT = 100


def measure_teaching(model: Path, X: Any, labels: Sequence[Any]) -> dict[str, list[float]]:
    """Teach documents one by one, reopen, undo and compact.

    Parameters
    ----------
    model : Path
        A saved model, which is changed.
    X : csr_array of shape (n_documents, n_terms)
        Documents to teach.
    labels : sequence
        Their labels.

    Returns
    -------
    dict of str to list of float
        Wall seconds of each step, and under the same name with ``, processor`` its processor
        seconds.
    """
    seconds: dict[str, list[float]] = {}

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = call(*arguments)
        seconds.setdefault(name, []).append(time.perf_counter() - wall)
        seconds.setdefault(f"{name}, CPU", []).append(time.process_time() - processor)
        return result

    teacher = timed("open", Teacher, model)
    teacher.teach(X[:1], labels[:1])  # compiles, and creates the log
    for i in range(1, X.shape[0]):
        timed("teach", teacher.teach, X[[i]], labels[i : i + 1])
        timed("predict after it", teacher.model.predict, X[[i]])
    for i in range(1, X.shape[0]):
        timed("forget", teacher.forget, X[[i]], labels[i : i + 1])
    timed("undo one", teacher.undo)
    timed("reopen and replay", load, model)
    timed("compact", teacher.compact)
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit on a data set, teach its test documents, and print what each step takes."""
    parser = argparse.ArgumentParser(description="What teaching one document costs.")
    parser.add_argument("folder", help="a data set: a folder with counts.npz")
    parser.add_argument("--model", help="a file to save the fitted model in, or to take it from")
    parser.add_argument("--documents", type=int, default=N_TAUGHT, help="how many to teach")
    options = parser.parse_args(arguments)
    data = load_counts(options.folder)
    n_taught = min(options.documents + 1, data.X_test.shape[0])
    # Every third document founds a class; the others join the one that they belong to.
    labels = data.classes[data.y_test[:n_taught]].astype(object)
    labels[::3] = [f"new class {i}" for i in range(len(labels[::3]))]
    with tempfile.TemporaryDirectory(dir=os.curdir) as folder:
        path = Path(folder) / "model.longtail"
        if options.model and Path(options.model).exists():
            path.write_bytes(Path(options.model).read_bytes())
        else:
            classifier = LongTailClassifier(random_state=0, n_jobs=-1)
            classifier.fit(data.X_train, data.classes[data.y_train]).save(path)
            if options.model:
                Path(options.model).write_bytes(path.read_bytes())
        seconds = measure_teaching(path, data.X_test[:n_taught], labels.tolist())
    write = sys.stdout.write
    write(f"{Path(options.folder).name}: {len(data.classes):,} classes, milliseconds\n")
    for name, values in seconds.items():
        p50, p95 = np.percentile(np.array(values) * 1000, [50, 95])
        write(f"{name:42s} {len(values):4d} times   p50 {p50:8.1f}   p95 {p95:8.1f}\n")


if __name__ == "__main__":
    main()
