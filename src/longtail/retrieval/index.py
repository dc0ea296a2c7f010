"""The inverted index: postings and dense rows of quantized scorer weights, term by term.

In: a linear scorer, class by class. Out: the same numbers term by term, rounded, with known errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._kernels import quantization as kernels
from longtail._kernels.types import Block, Index, Postings, Quantization
from longtail._parallel import parallel_for
from longtail.model.scorer import LinearScorer
from longtail.sparse import Floats, Integers, append_constant, index_dtype

# A term that more than this share of the classes has becomes a row of bytes. At one in sixteen a
# row takes twice the memory of its postings and is added several times faster.
DENSE_SHARE = 1 / 16
# Blocks of terms that are filled one after the other: each passes over all classes, but its
# postings stay in the cache. At 29,268 classes of 229 terms, CPU seconds with 1, 2, 4, 8, 16 and 32
# blocks: .41, .32, .25, .22, .24, .35.
MAX_BLOCKS = 8
TERMS_PER_BLOCK = 32  # of a class in the mean, below which finding them costs what the cache saves
ENTRIES_PER_BLOCK = 1 << 19  # 2 MB of postings, which a cache holds


@dataclass(frozen=True)
class InvertedIndex:
    """A term-major approximation of a linear scorer, with known errors."""

    # (n_terms + 1,) int64: where each term's postings begin; terms that are rows have none.
    indptr: Integers
    # (n_postings,) uint16, int32 or int64: class ids, ascending within a term.
    classes: NDArray[Any]
    # (n_postings,) uint16: what a unit of the term adds to the class, in levels.
    quantized: NDArray[np.uint16]
    # (n_terms,) int32: which of `dense_rows` the term is; -1 for postings.
    dense_row_ids: NDArray[np.int32]
    # (n_terms,) float32: a level stands for `zero_point + scale * level`. The zero point is at most
    # 0.
    zero_points: NDArray[np.float32]
    scales: NDArray[np.float32]
    # (n_rows, n_classes) uint8: levels of the terms that many classes have.
    dense_rows: NDArray[np.uint8]
    # (n_classes,) float32: those of the scorer.
    length_weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    # int64: classes that the search passes over.
    tombstones: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def arrays(self) -> Index:
        """Arrays for the kernels."""
        return Index(
            self.indptr,
            self.classes,
            self.quantized,
            self.dense_row_ids,
            self.zero_points,
            self.scales,
            self.dense_rows.reshape(-1),
            self.length_weights,
            self.biases,
            self.tombstones,
            self.ranges,
        )

    @cached_property
    def ranges(self) -> Floats:
        """Lowest and highest bias, lowest and highest length weight."""
        arrays = (self.biases, self.length_weights)
        return np.array([f(array) for array in arrays for f in (np.min, np.max)], np.float64)

    def grow_terms(self, n_terms: int) -> InvertedIndex:
        """Make room for terms that no class has."""
        n_new = n_terms - len(self.dense_row_ids)
        return replace(
            self,
            indptr=append_constant(self.indptr, n_new, self.indptr[-1]),
            dense_row_ids=append_constant(self.dense_row_ids, n_new, -1),
            zero_points=append_constant(self.zero_points, n_new),
            scales=append_constant(self.scales, n_new),
        )


@dataclass(frozen=True, eq=False)
class IndexShards:
    """An inverted index in parts, each of classes that follow each other."""

    # Where each part begins, and the number of classes; a part has at least as many classes as are
    # searched for.
    bounds: list[int]
    # Gives the index of a part, whose first class is number 0; called when the part is searched.
    open: Callable[[int], InvertedIndex]


AnyIndex = InvertedIndex | IndexShards


def build_index(
    scorer: LinearScorer,
    n_terms: int,
    n_jobs: int | None = None,
    *,
    n_of_all: int | None = None,
    dense_share: float = DENSE_SHARE,
) -> InvertedIndex:
    """Turn a linear scorer into an inverted index.

    Where the classes are some of `n_of_all` that are searched as well, ids have the type of those:
    the search is compiled for each type. With a `dense_share` of 1 no term is a dense
    row, so that each tells which classes have it.
    """
    n_classes = len(scorer.biases)
    indptr, work = np.zeros(n_terms + 1, np.int64), np.zeros(n_terms + 1, np.int64)
    quantization = Quantization(
        np.zeros(n_terms, np.int32), np.zeros(n_terms, np.float32), np.zeros(n_terms, np.float32)
    )
    max_postings = int(dense_share * n_classes)
    n_rows = kernels.plan_index(scorer.arrays, max_postings, indptr, work, quantization)
    postings = Postings(
        indptr.copy(),
        np.empty(indptr[-1], _posting_dtype(n_of_all or n_classes)),
        np.empty(indptr[-1], np.uint16),
        np.zeros((n_rows, n_classes), np.uint8),
    )
    per_block = max(TERMS_PER_BLOCK * n_classes, ENTRIES_PER_BLOCK)
    parallel_for(
        lambda first, last: kernels.fill_index(
            scorer.arrays, quantization, Block(first, last), postings
        ),
        work,
        n_jobs,
        min(MAX_BLOCKS, max(1, len(scorer.indices) // per_block)),
    )
    return InvertedIndex(
        indptr=indptr,
        **quantization._asdict(),
        classes=postings.classes,
        quantized=postings.quantized,
        dense_rows=postings.dense_rows,
        length_weights=scorer.length_weights.astype(np.float32),
        biases=scorer.biases.astype(np.float32),
    )


def _posting_dtype(n_classes: int) -> type[np.integer[Any]]:
    """Return the smallest type that the search reads quickly and that holds a class id."""
    return np.uint16 if n_classes <= 1 << 16 else index_dtype(n_classes)
