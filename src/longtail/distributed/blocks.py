"""Blocks of documents on the scratch path: files of counts, and of labels as class ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail._labels import LabelSets, find_sets
from longtail.distributed.task_results import (
    TaskResult,
    read_flat_labels,
    read_labels,
    read_part,
    read_result,
)
from longtail.distributed.tasks import Run
from longtail.sparse import CountMatrix, index_dtype
from longtail.training.documents import Documents


@dataclass(frozen=True)
class Block:
    """Some documents that follow each other."""

    counts: str  # the file of their counts and labels
    n_documents: int  # how many
    n_terms: int  # number of terms of all blocks
    # Whether the counts of some block need 64 bits: then those of all have them, as in one matrix.
    is_wide: bool
    labels: str = ""  # the file of their labels as class ids; empty before these are known

    def open(self) -> Documents:
        """Map the documents; their labels are ids of the classes of all blocks.

        Bits and types are those that one matrix of all blocks would have.
        """
        counts = read_part(CountMatrix, read_result(self.counts), "counts")
        file = read_result(self.labels)
        classes = np.arange(file.parameters["n_classes"])
        return Documents(
            CountMatrix(
                counts.indptr,
                counts.indices.astype(index_dtype(self.n_terms), copy=False),
                counts.data.astype(np.float64 if self.is_wide else np.float32, copy=False),
                self.n_terms,
                counts.embeddings,
            ),
            LabelSets(file.arrays["indptr"], file.arrays["class_ids"], classes),
        )


def number_labels(run: Run, block: Block, classes: str) -> TaskResult:
    """Look up the class ids of a block."""
    labels = find_sets(read_labels(block.counts), read_flat_labels(classes))
    arrays = {"indptr": labels.indptr, "class_ids": labels.class_ids}
    return TaskResult({"n_classes": len(labels.classes)}, arrays)


def count_entries(blocks: Sequence[Block]) -> int:
    """Return how many entries blocks have."""
    return sum(int(read_result(block.counts).parameters["n_entries"]) for block in blocks)
