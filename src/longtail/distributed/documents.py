"""Blocks of documents on the scratch path: loaded, gathered by document id, summed by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail._validation import look_up
from longtail.distributed.results import Contents, read_labels, read_part, read_result
from longtail.distributed.tasks import Run
from longtail.sparse import CountMatrix, Integers, index_dtype, offsets_from_lengths
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
    class_ids : str
        The file of their class ids; empty before it is known.
    """

    counts: str
    n_documents: int
    n_terms: int
    is_wide: bool
    class_ids: str = ""

    def load(self) -> CountMatrix:
        """Map the counts; bits and types are those that one matrix of all blocks would have."""
        counts = read_part(CountMatrix, read_result(self.counts), "counts")
        return CountMatrix(
            counts.indptr,
            counts.indices.astype(index_dtype(self.n_terms), copy=False),
            counts.data.astype(np.float64 if self.is_wide else np.float32, copy=False),
            self.n_terms,
        )

    def load_class_ids(self) -> Integers:
        """Map the class ids."""
        return read_result(self.class_ids).arrays["class_ids"]


def sum_block(run: Run, block: Block, classes: str, sublinear: bool) -> Contents:
    """Look up the class ids of a block, and sum its documents by class."""
    labels = read_labels(read_result(classes))
    class_ids = look_up(labels, read_labels(read_result(block.counts)))
    statistics = ClassStatistics.from_counts(
        block.load(), class_ids, len(labels), sublinear=sublinear, n_jobs=run.n_jobs
    )
    return Contents(arrays={"class_ids": class_ids}).add(STATISTICS, statistics)


def add_statistics(run: Run, paths: list[str]) -> Contents:
    """Add statistics; in any order, the sums are the same integers."""
    total = read_statistics(paths[0])
    for path in paths[1:]:
        total = total + read_statistics(path)
    return Contents().add(STATISTICS, total)


def read_statistics(path: str) -> ClassStatistics:
    """Map class statistics."""
    return read_part(ClassStatistics, read_result(path), STATISTICS)


def gather_documents(blocks: Sequence[Block], ids: Integers) -> tuple[CountMatrix, Integers]:
    """Return the documents of some ids, in their order, with their class ids."""
    starts = offsets_from_lengths(np.array([block.n_documents for block in blocks]))
    order = np.argsort(ids, kind="stable")
    bounds = np.searchsorted(ids[order], starts)
    counts: list[CountMatrix] = []
    class_ids: list[Integers] = []
    for i, block in enumerate(blocks):
        rows = ids[order[bounds[i] : bounds[i + 1]]] - starts[i]
        if len(rows) or not counts:  # one at least, so that types are known
            counts.append(block.load().gather(rows))
            class_ids.append(block.load_class_ids()[rows])
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return stack_counts(counts).gather(inverse), np.concatenate(class_ids)[inverse]


def stack_counts(parts: Sequence[CountMatrix]) -> CountMatrix:
    """Put documents under each other."""
    lengths = np.concatenate([np.diff(rows.indptr) for rows in parts])
    return CountMatrix(
        offsets_from_lengths(lengths),
        np.concatenate([rows.indices for rows in parts]),
        np.concatenate([rows.data for rows in parts]),
        parts[0].n_terms,
    )
