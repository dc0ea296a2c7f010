"""The inverted index: postings and dense rows of quantized scorer weights, term by term.

In: a linear scorer, class by class. Out: the same numbers term by term, rounded, with known errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import search as kernels
from longtail._parallel import parallel_for
from longtail.scoring.linear import LinearScorer
from longtail.sparse import (
    Floats,
    Integers,
    check_csr,
    count_terms,
    index_dtype,
    offsets_from_lengths,
)

# A term that more than this share of the classes has becomes a row of bytes. At one in sixteen a
# row takes twice the memory of its postings and is added several times faster.
DENSE_SHARE = 1 / 16


@dataclass(frozen=True)
class InvertedIndex:
    """A term-major approximation of an additive score, with known errors.

    Attributes
    ----------
    indptr : ndarray of shape (n_terms + 1,), int64
        Where each term's postings begin; terms that are rows have none.
    classes : ndarray of shape (n_postings,), uint16, int32 or int64
        Class numbers, ascending within a term.
    words : ndarray of shape (n_postings,), uint16
        What a unit of the term adds to the class, in steps above the lowest.
    rows : ndarray of shape (n_terms,), int32
        Which of `bytes` the term is; -1 for postings.
    lows, steps : ndarrays of shape (n_terms,), float32
        A word or a byte stands for `low + step * word`. `low` is at most 0.
    bytes : ndarray of shape (n_rows, n_classes), uint8
        Rounded values of the terms that many classes have.
    slopes, constants : ndarrays of shape (n_classes,), float32
        Those of the score.
    passed : ndarray of int64
        Classes that the search passes over.
    """

    indptr: Integers
    classes: NDArray[Any]
    words: NDArray[np.uint16]
    rows: NDArray[np.int32]
    lows: NDArray[np.float32]
    steps: NDArray[np.float32]
    bytes: NDArray[np.uint8]
    slopes: NDArray[np.float32]
    constants: NDArray[np.float32]
    passed: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that the search takes, in their order."""
        return (
            self.indptr,
            self.classes,
            self.words,
            self.rows,
            self.lows,
            self.steps,
            self.bytes.reshape(-1),
            self.slopes,
            self.constants,
            self.passed,
            self.ranges,
        )

    @cached_property
    def ranges(self) -> Floats:
        """Lowest and highest constant, lowest and highest slope."""
        parts = (self.constants, self.slopes)
        return np.array([f(part) for part in parts for f in (np.min, np.max)], np.float64)

    def grow_terms(self, n_terms: int) -> InvertedIndex:
        """Make room for terms that no class has."""
        new = (0, n_terms - len(self.rows))
        return replace(
            self,
            indptr=np.pad(self.indptr, new, mode="edge"),
            rows=np.pad(self.rows, new, constant_values=-1),
            lows=np.pad(self.lows, new),
            steps=np.pad(self.steps, new),
        )

    def validate(self, n_terms: int) -> None:
        """Check that every position the search will follow exists; a file may have broken it."""
        n_classes = len(self.constants)
        check_csr(self.indptr, self.classes, self.words, n_terms, n_classes)
        per_term = (self.rows, self.lows, self.steps)
        sound = (
            all(len(array) == n_terms for array in per_term)
            and len(self.slopes) == n_classes
            and self.bytes.ndim == 2
            and self.bytes.shape[1] == n_classes
            and (not n_terms or -1 <= self.rows.min() <= self.rows.max() < len(self.bytes))
            and not np.any(self.bytes > kernels.BYTE_LEVELS)
            and (not len(self.passed) or 0 <= self.passed.min() <= self.passed.max() < n_classes)
        )
        if not sound:
            raise ValueError("an index does not fit its classes and terms.")


# What a model file holds of an index; classes are passed over only until it is built anew.
INDEX_PARTS = tuple(part.name for part in fields(InvertedIndex) if part.name != "passed")


def build_index(score: LinearScorer, n_terms: int, n_jobs: int | None = None) -> InvertedIndex:
    """Turn a score into a term-major index."""
    n_classes = len(score.constants)
    counts = count_terms(score.indices, n_terms)
    common = counts > DENSE_SHARE * n_classes
    indptr = offsets_from_lengths(np.where(common, 0, counts))
    rows = np.where(common, np.cumsum(common) - 1, -1).astype(np.int32)
    work = offsets_from_lengths(counts)
    lows, highs = np.zeros(n_terms, np.float32), np.zeros(n_terms, np.float32)
    parts = (score.indptr, score.indices, score.values)
    parallel_for(
        lambda first, last: kernels.find_extremes(*parts, first, last, lows, highs), work, n_jobs
    )
    n_levels = np.where(common, kernels.BYTE_LEVELS, kernels.WORD_LEVELS)
    steps = ((highs.astype(np.float64) - lows) / n_levels).astype(np.float32)
    place, classes = indptr.copy(), np.empty(indptr[-1], _posting_dtype(n_classes))
    words = np.empty(indptr[-1], np.uint16)
    levels = np.zeros((int(np.count_nonzero(common)), n_classes), np.uint8)
    parallel_for(
        lambda first, last: kernels.fill_index(
            *parts, rows, lows, steps, first, last, place, classes, words, levels
        ),
        work,
        n_jobs,
    )
    return InvertedIndex(
        indptr=indptr,
        classes=classes,
        words=words,
        rows=rows,
        lows=lows,
        steps=steps,
        bytes=levels,
        slopes=score.slopes.astype(np.float32),
        constants=score.constants.astype(np.float32),
    )


def _posting_dtype(n_classes: int) -> type[np.integer[Any]]:
    """Return the smallest type that the search reads quickly and that holds a class number."""
    return np.uint16 if n_classes <= 1 << 16 else index_dtype(n_classes)
