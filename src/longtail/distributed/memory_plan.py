"""How much memory a fit over partitions takes, and how small its blocks and shards must be.

In: a limit for all processes of a machine. Out: a `Plan`, or a refusal that says what is needed.
Sizes are bounds computed from the arrays that a stage holds at once; files that are mapped count as
if they were in memory, although the system can drop their pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail._words import count
from longtail.distributed.blocks import Block
from longtail.distributed.partitions import Partition
from longtail.estimators.embedder import Embedder
from longtail.exceptions import MemoryLimitError
from longtail.model.statistics import ClassStatistics
from longtail.text import Vocabulary
from longtail.text.vocabulary import are_words

# Peaks in one process, measured from outside with mapped files included, were 493 MB at 2.6 million
# terms of classes, 975 MB at 12.9 million up to calibration, 4,988 MB at 105.9 million to mining.
PROCESS_BYTES = 370 * 10**6  # an interpreter with numpy, scipy, scikit-learn and compiled kernels
CLASS_TERM_BYTES = 50  # a term of a class where all classes are in one process
ENTRY_BYTES = 16  # an entry of counts with 64 bits, its term and its weight
READING_FACTOR = 6  # an entry while it is parsed, stacked and written, in copies of itself
CHARACTER_BYTES = 24  # of text while it is tokenized: its tokens, their ids, their terms
DRAW_BYTES = 130  # a document while samples are drawn; 128 were measured at ten million
PAIR_BYTES = 24  # a mined pair of a document and a class, its log odds, and their groups
INDEX_BYTES = 14  # an entry of the index, its scorer, and the quantization of both

# With class texts. On tib-subjects 1.4 million characters of words and 0.6 million of names took
# 0.35 GB while words that look alike were sought, 280 MB of it for the words.
NAMED_TERM_BYTES = 12  # a term of a class in the scorer of documents and names, beside the other
TERM_BYTES = 100  # a term of the vocabulary while its words are compared with those of the texts
TERM_CHARACTER_BYTES = 220  # of a word of the vocabulary: its n-grams, their weights and index
TEXT_CHARACTER_BYTES = 180  # of a class's text: the same, and twenty terms for each word

# With embeddings, for each number of a vector.
READ_VECTOR_BYTES = 6  # of a text that is read: the vectors of a block as int16, twice, and others
CLASS_VECTOR_BYTES = 8  # of a class: the sum of its documents, their mean, its name
HELD_OUT_VECTOR_BYTES = 1  # of a document: a fifth of them is held out, whole and truncated

BLOCK_ENTRIES = 4_000_000  # 64 MB of counts
BLOCK_CHARACTERS = 16_000_000
SHARD_ENTRIES = 4_000_000  # of documents that a shard of classes gathers at least
MIN_SHARDS, MAX_SHARDS = 4, 256

_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


@dataclass(frozen=True)
class Plan:
    """Sizes of blocks and shards."""

    limit: int | None  # bytes for all processes together
    n_workers: int  # tasks that run at once
    # Processes that share the limit: the workers and this one, or this one alone.
    n_processes: int = 1
    # A block of counts or of texts ends when it has so many.
    block_entries: int = BLOCK_ENTRIES
    block_characters: int = BLOCK_CHARACTERS

    @property
    def worker_bytes(self) -> float:
        """Bytes that a task may take."""
        if self.limit is None:
            return float("inf")
        return self.limit / self.n_processes - PROCESS_BYTES

    def count_index_shards(self, statistics: ClassStatistics) -> int:
        """Return into how many parts the index is divided: a task holds one at a time."""
        n_bytes = INDEX_BYTES * len(statistics.indices)
        if self.limit is None:
            return 1
        return max(1, int(-(-n_bytes // max(0.25 * self.worker_bytes, 1.0))))

    def count_residual_shards(self, n_entries: int, n_documents: int, n_mined: int) -> int:
        """Return into how many parts the classes are divided when residuals are learned.

        Without a limit it does not depend on the number of workers, so that results are found again
        by any number. With one, a part must hold its documents even where every candidate of a
        document is a hard negative.
        """
        n_shards = min(max(n_entries // SHARD_ENTRIES, MIN_SHARDS), MAX_SHARDS)
        if self.limit is None:
            return n_shards
        document = ENTRY_BYTES * n_entries / n_documents + PAIR_BYTES * (1 + n_mined)
        gathered = document * n_documents * (1 + n_mined)
        return max(n_shards, int(-(-gathered // max(0.5 * self.worker_bytes, 1.0))))

    def check_class_texts(self, vocabulary: Vocabulary, texts: Sequence[str]) -> None:
        """Refuse to go on where the words that look like those of the texts take too much.

        Raises
        ------
        MemoryLimitError
            With the limit that would do.
        """
        if self.limit is None:
            return
        lengths = np.diff(vocabulary.offsets)
        fewest = (
            self.n_processes * PROCESS_BYTES
            + TERM_BYTES * vocabulary.n_terms
            + TERM_CHARACTER_BYTES * int(lengths[are_words(vocabulary)].sum())
            + TEXT_CHARACTER_BYTES * sum(map(len, texts))
        )
        self._check(
            fewest,
            f"{len(texts):,} class texts and a vocabulary of {vocabulary.n_terms:,} terms",
        )

    def check(
        self, statistics: ClassStatistics, blocks: Sequence[Block], n_name_terms: int = 0
    ) -> None:
        """Refuse to go on where the classes alone take more than the limit.

        Raises
        ------
        MemoryLimitError
            With the limit that would do.
        """
        if self.limit is None:
            return
        n_entries = len(statistics.indices)
        n_documents = sum(block.n_documents for block in blocks)
        sums = statistics.embedding_sums
        n_dimensions = 0 if sums is None else sums.shape[1]
        # Mapped files are shared by all workers and count once.
        classes = CLASS_TERM_BYTES * (n_entries + n_name_terms) + 8 * 8 * statistics.n_classes
        if n_name_terms:
            classes += NAMED_TERM_BYTES * n_entries
        classes += CLASS_VECTOR_BYTES * n_dimensions * statistics.n_classes
        classes += HELD_OUT_VECTOR_BYTES * n_dimensions * n_documents
        fewest = self.n_processes * PROCESS_BYTES + max(classes, DRAW_BYTES * n_documents)
        self._check(
            fewest,
            f"{statistics.n_classes:,} classes with {n_entries + n_name_terms:,} terms and "
            f"{n_documents:,} documents",
        )

    def _check(self, fewest: float, held: str) -> None:
        if self.limit is not None and fewest > self.limit:
            raise MemoryLimitError(
                f"memory_limit={_show(self.limit)} is too low for {held} on "
                f"{count(self.n_workers, 'worker')}: at least {_show(fewest)} are needed. "
                "Raise it, use fewer workers, or leave rare terms out."
            )


def plan_memory(
    limit: int | str | None, partitions: Sequence[Partition], n_workers: int, n_processes: int
) -> Plan:
    """Return the sizes that a limit allows, or refuse it before any work.

    Raises
    ------
    ValueError
        If the limit is no size.
    MemoryLimitError
        If not even one block can be read with it.
    """
    n_bytes = parse_bytes(limit)
    if n_bytes is None:
        return Plan(None, n_workers, n_processes)
    left = n_bytes / n_processes - PROCESS_BYTES
    fewest = 8_000_000  # a chunk of the readers, and what becomes of it
    if left < fewest * CHARACTER_BYTES:
        needed = n_processes * (PROCESS_BYTES + fewest * CHARACTER_BYTES)
        raise MemoryLimitError(
            f"memory_limit={_show(n_bytes)} is too low for {count(n_workers, 'worker')}: at least "
            f"{_show(needed)} are needed to read {count(len(partitions), 'partition')}. "
            "Raise it, or use fewer workers."
        )
    return Plan(
        n_bytes,
        n_workers,
        n_processes,
        int(min(BLOCK_ENTRIES, left / (READING_FACTOR * ENTRY_BYTES))),
        int(min(BLOCK_CHARACTERS, left / CHARACTER_BYTES)),
    )


def count_vector_characters(embedder: Embedder | None) -> int:
    """Return how many characters take as much memory as the vector of a document is read."""
    if embedder is None:
        return 0
    return -(-READ_VECTOR_BYTES * len(embedder.probe) // CHARACTER_BYTES)


def parse_bytes(size: int | str | None) -> int | None:
    """Return a number of bytes.

    Examples
    --------
    >>> parse_bytes("6GB"), parse_bytes("512 MiB")
    (6000000000, 536870912)
    """
    if size is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(size).lower())
    if match is None or match[2].removesuffix("b") + "b" * bool(match[2]) not in _BYTES:
        raise ValueError(f"memory_limit must be a number of bytes, or such as '6GB'; got {size!r}.")
    return int(float(match[1]) * _BYTES[match[2].removesuffix("b") + "b" * bool(match[2])])


def _show(n_bytes: float) -> str:
    """Return a size, rounded up: what is said to be needed must be enough."""
    return f"{math.ceil(n_bytes / 1e7) / 100:.2f}GB"
