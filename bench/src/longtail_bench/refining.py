"""Latency of predictions while a `Teacher` refines its model, against that without.

    python -m longtail_bench.refining ../shared/data/wordnet-hypernym

A model is fitted on half of the training documents and taught a tenth more. One text at a time is
predicted, once by a teacher that does not refine, once for as long as the other one does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import LongTailClassifier, Teacher, TextClassifier
from longtail_bench.text import read_texts

N_PREDICTED = 2_000  # texts, without a refinement

Seconds = NDArray[np.float64]


def measure(
    path: Path, taught: tuple[list[str], Any], texts: Sequence[str], refine: Any
) -> Seconds:
    """Return how long each prediction took after documents were taught.

    As many as `N_PREDICTED`, or for as long as a refinement is under way.
    """
    teacher, found = Teacher(path, refine=refine), list[float]()
    for text in texts[:100]:
        teacher.model.predict([text])  # warm
    teacher.teach(*taught)
    while len(found) < N_PREDICTED if refine == "never" else not teacher.settle(0.0):
        begin = time.perf_counter()
        teacher.model.predict([texts[len(found) % len(texts)]])
        found.append(time.perf_counter() - begin)
    teacher.close()
    return np.array(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on a data set and print both."""
    parser = argparse.ArgumentParser(description="Predictions during a refinement.")
    parser.add_argument("folder", help="a data set: train.tsv.xz and test.tsv.xz")
    parser.add_argument("--documents", type=int, help="of the training part; all by default")
    options = parser.parse_args(arguments)
    train, test = (read_texts(Path(options.folder) / f"{n}.tsv.xz") for n in ("train", "test"))
    rows = np.random.default_rng(0).permutation(len(train[0]))[: options.documents]
    half, more = len(rows) // 2, len(rows) // 20

    def gather(rows: NDArray[np.int64]) -> tuple[list[str], Any]:
        return [train[0][i] for i in rows.tolist()], train[1][rows]

    counts = LongTailClassifier(memory="auto", random_state=0, n_jobs=1)
    model = TextClassifier(counts, random_state=0, n_jobs=1).fit(*gather(rows[:half]))
    for refine in ("never", "auto"):
        with tempfile.TemporaryDirectory(prefix="longtail-refining-") as folder:
            model.save(path := Path(folder) / "model.longtail")
            found = measure(path, gather(rows[half : half + more]), test[0], refine)
        low, high = np.percentile(1e3 * found, [50, 99]) if len(found) else (np.nan, np.nan)
        sys.stdout.write(
            f"refine={refine!r}: {len(found):5d} predictions, p50 {low:.2f} ms, p99 {high:.2f} ms\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
