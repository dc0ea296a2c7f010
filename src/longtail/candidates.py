"""Candidate selection: the q classes of highest score for a document, exactly.

In: a score that is a sum over terms (for the paper: the cosine with each class's centroid). Out: a
term-major index, and through it the candidates of each document (Algorithm 2 of the paper). No
array of documents x classes is ever built: one row of sums serves each block of documents.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import candidates as kernels
from longtail.counts import CountRows, Floats, Integers, count_terms, index_dtype, running_total
from longtail.scoring import AdditiveScore, WeightedRows, corrected_scores, pair_scores
from longtail.statistics import ClassStatistics, Corpus
from longtail.threads import even_indptr, run_blocks

# A term that more than this share of the classes has becomes a row of bytes. At one in sixteen a
# row takes twice the memory of its postings and is added several times faster.
DENSE_SHARE = 1 / 16
BLOCK = 32_768  # documents searched at once; classes are then read one after the other
ROOM = 1 << 21  # classes noted at once

# Given documents and the classes noted for each, returns the best of them with their scores.
Rank = Callable[[Integers, NDArray[Any]], tuple[NDArray[Any], Floats]]


@dataclass(frozen=True)
class RareTerms:
    """Which of a document's terms draw its candidates: the rarest, up to a number of postings.

    Common terms are in nearly every class and tell little. With one posting a class, candidates
    come faster than from all terms, and on held-out documents they were no worse, or better.

    Attributes
    ----------
    counts : ndarray of shape (n_terms,), int32 or int64
        Number of classes that have each term.
    most_postings : int
        Bound on the sum of a document's counts; one term is always kept.
    """

    counts: NDArray[Any]
    most_postings: int

    @classmethod
    def of(cls, statistics: ClassStatistics) -> RareTerms:
        """Count the classes of each term, and allow one posting a class."""
        counts = count_terms(statistics.indices, statistics.n_terms)
        return cls(counts.astype(index_dtype(statistics.n_classes)), statistics.n_classes)

    def keep(
        self, documents: WeightedRows, chosen: Integers, n_jobs: int | None = None
    ) -> WeightedRows:
        """Return the same rows; all but the rarest terms of the chosen ones weigh nothing.

        The weights of rows that are not chosen are undefined.
        """
        rows = documents.rows
        weights, totals = np.empty_like(documents.weights), np.empty_like(documents.totals)
        run_blocks(
            lambda first, last: kernels.keep_rarest_terms(
                rows.indptr,
                rows.indices,
                documents.weights,
                chosen[first:last],
                self.counts,
                self.most_postings,
                np.empty(rows.most_terms, np.int64),
                weights,
                totals,
            ),
            even_indptr(len(chosen)),
            n_jobs,
        )
        return WeightedRows(rows, weights, totals)

    def grow_terms(self, n_terms: int) -> RareTerms:
        """Make room for terms that no class has."""
        return replace(self, counts=np.pad(self.counts, (0, n_terms - len(self.counts))))


@dataclass(frozen=True)
class ScoreIndex:
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

    def grow_terms(self, n_terms: int) -> ScoreIndex:
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
        check_index(self.indptr, self.classes, self.words, n_terms, n_classes)
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
INDEX_PARTS = tuple(part.name for part in fields(ScoreIndex) if part.name != "passed")


def check_index(
    indptr: Integers, indices: NDArray[Any], values: NDArray[Any], n_rows: int, n_columns: int
) -> None:
    """Check that CSR parts fit each other and their shape.

    Raises
    ------
    ValueError
        If they do not.
    """
    sound = (
        len(indptr) == n_rows + 1
        and indptr[0] == 0
        and not np.any(np.diff(indptr) < 0)
        and indptr[-1] == len(indices) == len(values)
        and (not len(indices) or 0 <= indices.min() <= indices.max() < n_columns)
    )
    if not sound:
        raise ValueError("an index does not fit its classes and terms.")


def index_score(score: AdditiveScore, n_terms: int, n_jobs: int | None = None) -> ScoreIndex:
    """Turn a score into a term-major index."""
    n_classes = len(score.constants)
    counts = count_terms(score.indices, n_terms)
    common = counts > DENSE_SHARE * n_classes
    indptr = running_total(np.where(common, 0, counts))
    rows = np.where(common, np.cumsum(common) - 1, -1).astype(np.int32)
    work = running_total(counts)
    lows, highs = np.zeros(n_terms, np.float32), np.zeros(n_terms, np.float32)
    parts = (score.indptr, score.indices, score.values)
    run_blocks(
        lambda first, last: kernels.find_extremes(*parts, first, last, lows, highs), work, n_jobs
    )
    n_levels = np.where(common, kernels.BYTE_LEVELS, kernels.WORD_LEVELS)
    steps = ((highs.astype(np.float64) - lows) / n_levels).astype(np.float32)
    place, classes = indptr.copy(), np.empty(indptr[-1], _posting_dtype(n_classes))
    words = np.empty(indptr[-1], np.uint16)
    levels = np.zeros((int(np.count_nonzero(common)), n_classes), np.uint8)
    run_blocks(
        lambda first, last: kernels.fill_index(
            *parts, rows, lows, steps, first, last, place, classes, words, levels
        ),
        work,
        n_jobs,
    )
    return ScoreIndex(
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


def find_highest(
    documents: WeightedRows,
    score: AdditiveScore,
    index: ScoreIndex,
    n_candidates: int,
    *,
    chosen: Integers | None = None,
    own: Integers | None = None,
    rare: RareTerms | None = None,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Return the classes of highest score for each document, best first; exact.

    Parameters
    ----------
    documents : WeightedRows
        All documents; no weight is negative.
    score : AdditiveScore
        Of the classes.
    index : ScoreIndex
        Of that score.
    n_candidates : int
        q, at most the number of classes, less one where `own` is given.
    chosen : ndarray of shape (M,), optional
        Row numbers; all documents when left out.
    own : ndarray of shape (M,), optional
        A class to pass over for each document.
    rare : RareTerms, optional
        Score a document by its rarest terms alone; by all when left out.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (M, q), int32 or int64
        Class numbers; ties go to the lower one.
    scores : ndarray of shape (M, q), float64
        Their scores.
    """
    chosen = np.arange(documents.rows.n_documents) if chosen is None else chosen
    own = np.full(len(chosen), -1, np.int64) if own is None else own
    if not chosen.size * n_candidates:
        shape = len(chosen), n_candidates
        return np.empty(shape, index_dtype(len(score.constants))), np.empty(shape)
    few = documents if rare is None else rare.keep(documents, chosen, n_jobs)

    def rank(numbers: Integers, noted: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        scores = pair_scores(few, noted, score, n_jobs, chosen=numbers)
        return rank_pairs(noted, scores, n_candidates, n_jobs)

    return _search(few, index, chosen, own, n_candidates, _room(n_candidates), rank, n_jobs)


def find_best(
    documents: WeightedRows,
    score: AdditiveScore,
    index: ScoreIndex,
    n_candidates: int,
    correction: AdditiveScore,
    k: int,
    *,
    rare: RareTerms,
    n_jobs: int | None = None,
) -> tuple[NDArray[Any], Floats]:
    """Return the best of each document's candidates by score and correction, best first.

    The candidates are those of `find_highest` with the same arguments.

    Parameters
    ----------
    documents, score, index, n_candidates, rare, n_jobs
        As in `find_highest`.
    correction : AdditiveScore
        What each class has learned; its slopes are 0.
    k : int
        How many, at most `n_candidates`.

    Returns
    -------
    classes : ndarray of shape (n_documents, k), int32 or int64
        Class numbers; ties go to the lower one.
    scores : ndarray of shape (n_documents, k), float64
        Score by all terms plus correction.
    """
    every = np.arange(documents.rows.n_documents)
    few = rare.keep(documents, every, n_jobs)

    def rank(numbers: Integers, noted: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        scores = corrected_scores(documents, few, numbers, noted, score, correction, n_jobs)
        return _rank_twice(noted, *scores, n_candidates, k, n_jobs)

    own = np.full(len(every), -1)
    return _search(few, index, every, own, n_candidates, _room(n_candidates), rank, n_jobs)


def _room(wanted: int) -> int:
    """Return how many classes are noted for a document; ties and near ties may need more."""
    return 2 * wanted + 12


def _search(
    documents: WeightedRows,
    index: ScoreIndex,
    chosen: Integers,
    own: Integers,
    wanted: int,
    room: int,
    rank: Rank,
    n_jobs: int | None,
) -> tuple[NDArray[Any], Floats]:
    """Note what may be among the `wanted` highest, and let `rank` decide."""
    at_once = max(1, min(BLOCK, ROOM // room))
    found = []
    for start in range(0, len(chosen), at_once):
        part = slice(start, start + at_once)
        numbers, passed_over = chosen[part], own[part]
        noted, n_noted = _note(documents, index, numbers, passed_over, wanted, room, n_jobs)
        fits = n_noted <= room
        if fits.all():
            found.append(rank(numbers, noted))
            continue
        inside = rank(numbers[fits], noted[fits])
        more = min(8 * room, len(index.constants))
        numbers, passed_over = numbers[~fits], passed_over[~fits]
        outside = _search(documents, index, numbers, passed_over, wanted, more, rank, n_jobs)
        found.append((_merge(fits, inside[0], outside[0]), _merge(fits, inside[1], outside[1])))
    if len(found) == 1:
        return found[0]
    classes, scores = zip(*found, strict=True)
    return np.concatenate(classes), np.concatenate(scores)


def _merge(first: NDArray[np.bool_], rows: NDArray[Any], other_rows: NDArray[Any]) -> NDArray[Any]:
    """Put rows together, from `rows` where `first` is true."""
    merged = np.empty((len(first), rows.shape[1]), rows.dtype)
    merged[first], merged[~first] = rows, other_rows
    return merged


def _note(
    documents: WeightedRows,
    index: ScoreIndex,
    chosen: Integers,
    own: Integers,
    wanted: int,
    width: int,
    n_jobs: int | None,
) -> tuple[NDArray[Any], Integers]:
    """Return the classes that may be among the highest, -1 where there are fewer, and how many."""
    rows = documents.rows
    noted = np.full((len(chosen), width), -1, index_dtype(len(index.constants)))
    n_noted = np.zeros(len(chosen), np.int64)
    run_blocks(
        lambda first, last: kernels.note_classes(
            rows.indptr,
            rows.indices,
            documents.weights,
            documents.totals,
            chosen,
            own,
            *index.arrays,
            wanted,
            first,
            last,
            *_make_scratch(len(index.constants), rows.most_terms),
            noted,
            n_noted,
        ),
        even_indptr(len(chosen)),
        n_jobs,
    )
    return noted, n_noted


def _make_scratch(n_classes: int, most_terms: int) -> tuple[NDArray[Any], ...]:
    """Return what the search writes to; what is never written to takes no memory."""
    n_chunks, n_terms = -(-n_classes // kernels.CHUNK), most_terms + 4
    return (
        np.empty(n_classes, np.uint16),
        np.empty(n_chunks, np.uint16),
        np.empty(n_classes, np.uint16),
        np.empty(n_classes, np.int64),
        np.empty(n_terms, np.int64),
        np.empty(n_terms),
        np.empty(n_terms, np.uint16),
        np.empty(n_terms, np.uint16),
    )


def rank_pairs(
    classes: NDArray[Any], scores: Floats, k: int, n_jobs: int | None = None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best classes of each row with their scores, best first.

    Parameters
    ----------
    classes : ndarray of shape (n_documents, width)
        Class numbers; -1 for none.
    scores : ndarray of shape (n_documents, width), float64
        Their scores.
    k : int
        How many; each row has at least as many classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, k)
        Ties go to the lower class number.
    scores : ndarray of shape (n_documents, k), float64
    """
    best = np.empty((len(classes), k), classes.dtype)
    best_scores = np.empty((len(classes), k))
    run_blocks(
        lambda first, last: kernels.rank_pairs(classes, scores, first, last, best, best_scores),
        even_indptr(len(classes)),
        n_jobs,
    )
    return best, best_scores


def _rank_twice(
    classes: NDArray[Any],
    scores: Floats,
    corrected: Floats,
    n_candidates: int,
    k: int,
    n_jobs: int | None,
) -> tuple[NDArray[Any], Floats]:
    """Return the k best by corrected score among the candidates, the best by score."""
    best = np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k))
    run_blocks(
        lambda first, last: kernels.rank_twice(
            classes,
            scores,
            corrected,
            first,
            last,
            np.empty(n_candidates, np.int64),
            np.empty(n_candidates),
            *best,
        ),
        even_indptr(len(classes)),
        n_jobs,
    )
    return best


def centroid_score(statistics: ClassStatistics, corpus: Corpus) -> AdditiveScore:
    """Return the score whose sum over a document of length 1 is the cosine with each centroid.

    The value of a class c and a term t is I_t^2 c_t / |c|; documents are weighed by
    `weigh_for_cosine`.
    """
    norms = statistics.centroid_norms(corpus.idf)
    norms[norms == 0] = 1.0
    values = statistics.centroid_sums * corpus.idf[statistics.indices] ** 2
    values /= np.repeat(norms, np.diff(statistics.indptr))
    zeros = np.zeros(statistics.n_classes)
    return AdditiveScore(statistics.indptr, statistics.indices, values, zeros, zeros)


def weigh_for_cosine(
    rows: CountRows, idf: Floats, *, sublinear: bool = False, n_jobs: int | None = None
) -> WeightedRows:
    """Divide each document's term frequencies by the length of its tf-idf weighted vector."""
    weights = np.empty(len(rows.data))
    run_blocks(
        lambda first, last: kernels.weigh_for_cosine(
            rows.indptr, rows.indices, rows.data, sublinear, idf, first, last, weights
        ),
        rows.indptr,
        n_jobs,
    )
    return WeightedRows(rows, weights, np.zeros(rows.n_documents))


def cap_candidates(candidates: int, n_classes: int) -> int:
    """Return q, at most n_classes."""
    if not isinstance(candidates, numbers.Integral) or candidates < 1:
        raise ValueError(
            f"candidates must be an integer of at least 1; got {candidates!r}. "
            f"It is capped at the number of classes (here {n_classes})."
        )
    return min(int(candidates), n_classes)
