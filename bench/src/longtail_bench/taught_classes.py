"""Recall of classes that were taught a few documents, against classes fitted with them.

    python -m longtail_bench.taught_classes ../shared/data/wordnet-hypernym --seeds 3

Classes are held out whole. A model is fitted on the documents of the others and taught a few
documents of each; another is fitted on all of these at once. Compared are the recall of the classes
held out, over their test documents, and the accuracy of all other test documents.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longtail import LongTailClassifier, Teacher, TextClassifier
from longtail_bench.text import read_texts

N_CLASSES = 300
N_TAUGHT = 3
MEMORY = 20  # documents of each class that the model with a memory keeps

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """Documents by what happens to them."""

    # int64: training documents of the other classes, and those that are taught.
    base: NDArray[np.int64]
    taught: NDArray[np.int64]
    held_out: Flags  # (n_test,) bool: test documents of the classes held out


@dataclass(frozen=True)
class TaughtRow:
    """How a model fares."""

    system: str  # which
    recall: float  # of the classes held out: share of their test documents that is correct
    others: float  # accuracy of all other test documents
    cpu_seconds: float  # what it took beyond the step before


def split_classes(
    y: NDArray[Any], y_test: NDArray[Any], n_classes: int, n_taught: int, seed: int
) -> Split:
    """Draw classes that have documents enough to be taught, and one to be tested on.

    Raises
    ------
    ValueError
        If there are too few of them.
    """
    rng = np.random.default_rng(seed)
    labels, sizes = np.unique(y, return_counts=True)
    fit = labels[(sizes >= n_taught) & np.isin(labels, y_test)]
    if len(fit) < n_classes:
        raise ValueError(
            f"n_classes must be at most {len(fit)}, the classes with {n_taught} training documents "
            f"and a test document; got {n_classes}."
        )
    drawn = rng.choice(fit, n_classes, replace=False)
    taught = [rng.choice(np.flatnonzero(y == label), n_taught, replace=False) for label in drawn]
    return Split(np.flatnonzero(~np.isin(y, drawn)), np.concatenate(taught), np.isin(y_test, drawn))


def compare(
    texts: Sequence[str],
    y: NDArray[Any],
    test_texts: Sequence[str],
    y_test: NDArray[Any],
    split: Split,
    seed: int,
) -> Iterable[TaughtRow]:
    """Yield what each way of learning the classes reaches."""

    def gather(documents: NDArray[np.int64]) -> tuple[list[str], NDArray[Any]]:
        return [texts[i] for i in documents.tolist()], y[documents]

    def measure(system: str, model: Any, since: float) -> TaughtRow:
        spent = time.process_time() - since
        correct = model.predict(list(test_texts)) == y_test
        held_out = split.held_out
        return TaughtRow(system, correct[held_out].mean(), correct[~held_out].mean(), spent)

    def measure_teacher(memory: Literal["auto"] | None) -> TaughtRow:
        counts = LongTailClassifier(memory=memory, random_state=seed, n_jobs=1)
        model = TextClassifier(counts, random_state=seed, n_jobs=1).fit(*gather(split.base))
        with tempfile.TemporaryDirectory(prefix="longtail-taught-") as folder:
            model.save(path := Path(folder) / "model.longtail")
            teacher = Teacher(path)
            begin = time.process_time()
            teacher.teach(*gather(split.taught))
            teacher.settle()
            kept = ', memory="auto"' if memory else ""
            row = measure(f"Teacher{kept}", teacher.model, begin)
            teacher.close()
        return row

    yield measure_teacher(None)
    yield measure_teacher("auto")
    for memory in (0, MEMORY):
        kept = f", {memory} documents a class kept" if memory else ""
        counts = LongTailClassifier(memory=memory, random_state=seed, n_jobs=1)
        model = TextClassifier(counts, random_state=seed, n_jobs=1).fit(*gather(split.base))
        begin = time.process_time()
        model.partial_fit(*gather(split.taught))
        if not memory:
            yield measure("taught", model, begin)
            begin = time.process_time()
        yield measure(f"taught and refined{kept}", model.refine(), begin)
    begin = time.process_time()
    model = TextClassifier(random_state=seed, n_jobs=1)
    model.fit(*gather(np.sort(np.concatenate([split.base, split.taught]))))
    yield measure("fitted", model, begin)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare on a data set, with several draws of classes; print each and the mean."""
    parser = argparse.ArgumentParser(description="Classes that are taught a few documents.")
    parser.add_argument("folder", help="a data set: train.tsv.xz and test.tsv.xz")
    parser.add_argument("--seeds", type=int, default=3, help="how many draws of classes")
    parser.add_argument("--classes", type=int, default=N_CLASSES, help="how many are held out")
    parser.add_argument("--documents", type=int, default=N_TAUGHT, help="taught of each")
    options = parser.parse_args(arguments)
    train, test = (read_texts(Path(options.folder) / f"{n}.tsv.xz") for n in ("train", "test"))
    rows: list[TaughtRow] = []
    for seed in range(options.seeds):
        split = split_classes(train[1], test[1], options.classes, options.documents, seed)
        for row in compare(*train, *test, split, seed):
            rows.append(row)
            _write(row, f"{Path(options.folder).name}, seed {seed}")
    for system in dict.fromkeys(row.system for row in rows):
        mine = [row for row in rows if row.system == system]
        means = (
            float(np.mean([getattr(row, name) for row in mine]))
            for name in ("recall", "others", "cpu_seconds")
        )
        _write(TaughtRow(system, *means), f"{Path(options.folder).name}, mean")


def _write(row: TaughtRow, where: str) -> None:
    sys.stdout.write(
        f"{where}: {row.system:48s} recall {row.recall:7.2%}   others {row.others:7.2%}   "
        f"{row.cpu_seconds:6.1f} CPU s\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
