"""Documents with their labels, in blocks: drawn and gathered by id, summed by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail.model.corpus import Corpus
from longtail.model.statistics import ClassStatistics
from longtail.sparse import CountMatrix, Integers, offsets_from_lengths, stack_rows
from longtail.training.config import FitConfig
from longtail.training.sampling import Draws, draw_documents


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents with their labels: all, a block of them, or some that were drawn."""

    counts: CountMatrix
    labels: LabelSets

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.labels.n_documents

    def gather(self, ids: Integers) -> Documents:
        """Return some documents, in the order given."""
        return Documents(self.counts.gather(ids), self.labels.gather(ids))


def gather_documents(blocks: Sequence[Documents], ids: Integers) -> Documents:
    """Return the documents of some ids, in their order, from blocks that follow each other."""
    if len(blocks) == 1:
        return blocks[0].gather(ids)
    starts = offsets_from_lengths(np.array([block.labels.n_documents for block in blocks]))
    order = np.argsort(ids, kind="stable")
    bounds = np.searchsorted(ids[order], starts)
    gathered: list[Documents] = []
    for i in range(len(blocks)):
        rows = ids[order[bounds[i] : bounds[i + 1]]] - starts[i]
        if len(rows) or not gathered:  # one at least, so that types are known
            gathered.append(blocks[i].gather(rows))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return stack_documents(gathered).gather(inverse)


def draw_blocks(
    blocks: Sequence[Documents],
    have_text: NDArray[np.bool_] | None,
    config: FitConfig,
    n_jobs: int | None,
) -> Draws:
    """Draw documents and pairs from the labels of all blocks; `have_text` are classes."""
    labels = [blocks[i].labels for i in range(len(blocks))]
    joined = labels[0] if len(labels) == 1 else stack_rows(labels)
    return draw_documents(joined, have_text, config)


def gather_held_out(blocks: Sequence[Documents], draws: Draws, n_jobs: int | None) -> Documents:
    """Return the held-out documents."""
    return gather_documents(blocks, draws.held_out)


def stack_documents(parts: Sequence[Documents]) -> Documents:
    """Return documents of several parts, one part after the other."""
    return Documents(
        stack_rows([entry.counts for entry in parts]), stack_rows([entry.labels for entry in parts])
    )


def sum_documents(counts: CountMatrix, labels: LabelSets, n_jobs: int | None) -> ClassStatistics:
    """Sum documents by class, with dampened term frequencies."""
    n_classes = len(labels.classes)
    return ClassStatistics.from_counts(counts, labels, n_classes, sublinear=True, n_jobs=n_jobs)


def sum_block(documents: Documents, sublinear: bool, n_jobs: int | None) -> ClassStatistics:
    """Sum the documents of a block by class."""
    labels = documents.labels
    return ClassStatistics.from_counts(
        documents.counts, labels, len(labels.classes), sublinear=sublinear, n_jobs=n_jobs
    )


def add_statistics(parts: Sequence[ClassStatistics], n_jobs: int | None) -> ClassStatistics:
    """Add statistics; in any order, the sums are the same integers."""
    total = parts[0]
    for i in range(1, len(parts)):
        total = total + parts[i]
    return total


def subtract_statistics(
    statistics: ClassStatistics, apart: ClassStatistics, n_jobs: int | None
) -> ClassStatistics:
    """Return the statistics without the documents of `apart`."""
    return statistics - apart


def describe_corpus(statistics: ClassStatistics, n_jobs: int | None) -> Corpus:
    """Return the quantities that all classes share."""
    return statistics.corpus
