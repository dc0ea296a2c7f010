"""Blocks of documents on the scratch path: loaded, gathered by document id, summed by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail._labels import LabelSets, find_sets
from longtail.distributed.results import (
    Contents,
    read_flat_labels,
    read_labels,
    read_part,
    read_result,
)
from longtail.distributed.tasks import Run
from longtail.sparse import CountMatrix, Integers, index_dtype, offsets_from_lengths, stack_rows
from longtail.statistics.classes import ClassStatistics

STATISTICS = "statistics"


@dataclass(frozen=True)
class Block:
    """Some documents that follow each other.

    Attributes
    ----------
    counts : str
        The file of their counts and labels.
    n_documents : int
        How many.
    n_terms : int
        Number of terms of all blocks.
    is_wide : bool
        Whether the counts of some block need 64 bits: then those of all have them, as in one
        matrix.
    labels : str
        The file of their labels as class ids; empty before these are known.
    """

    counts: str
    n_documents: int
    n_terms: int
    is_wide: bool
    labels: str = ""

    def load(self) -> CountMatrix:
        """Map the counts; bits and types are those that one matrix of all blocks would have."""
        counts = read_part(CountMatrix, read_result(self.counts), "counts")
        return CountMatrix(
            counts.indptr,
            counts.indices.astype(index_dtype(self.n_terms), copy=False),
            counts.data.astype(np.float64 if self.is_wide else np.float32, copy=False),
            self.n_terms,
        )

    def load_labels(self) -> LabelSets:
        """Map the labels as ids of the classes of all blocks, which are not told by name."""
        file = read_result(self.labels)
        classes = np.arange(file.parameters["n_classes"])
        return LabelSets(file.arrays["indptr"], file.arrays["class_ids"], classes)


def sum_block(run: Run, block: Block, classes: str, sublinear: bool) -> Contents:
    """Look up the class ids of a block, and sum its documents by class."""
    labels = find_sets(read_labels(block.counts), read_flat_labels(classes))
    n_classes = len(labels.classes)
    statistics = ClassStatistics.from_counts(
        block.load(), labels, n_classes, sublinear=sublinear, n_jobs=run.n_jobs
    )
    arrays = {"indptr": labels.indptr, "class_ids": labels.class_ids}
    return Contents({"n_classes": n_classes}, arrays).add(STATISTICS, statistics)


def add_statistics(run: Run, paths: list[str]) -> Contents:
    """Add statistics; in any order, the sums are the same integers."""
    total = read_statistics(paths[0])
    for path in paths[1:]:
        total = total + read_statistics(path)
    return Contents().add(STATISTICS, total)


def read_statistics(path: str) -> ClassStatistics:
    """Map class statistics."""
    return read_part(ClassStatistics, read_result(path), STATISTICS)


def gather_documents(blocks: Sequence[Block], ids: Integers) -> tuple[CountMatrix, LabelSets]:
    """Return the documents of some ids, in their order, with their labels."""
    starts = offsets_from_lengths(np.array([block.n_documents for block in blocks]))
    order = np.argsort(ids, kind="stable")
    bounds = np.searchsorted(ids[order], starts)
    counts: list[CountMatrix] = []
    labels: list[LabelSets] = []
    for i, block in enumerate(blocks):
        rows = ids[order[bounds[i] : bounds[i + 1]]] - starts[i]
        if len(rows) or not counts:  # one at least, so that types are known
            counts.append(block.load().gather(rows))
            labels.append(block.load_labels().gather(rows))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return stack_rows(counts).gather(inverse), stack_rows(labels).gather(inverse)
