"""Candidate selection: the q classes whose centroids are nearest to a document, exactly.

In: class statistics. Out: a term-major index, and through it the candidates of each document
(Algorithm 2 of the paper). No array of documents x classes is ever built: one row of sums serves
each block of documents.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._kernels import candidates as kernels
from longtail.scoring import AdditiveScore, WeightedRows
from longtail.statistics import (
    ClassStatistics,
    Corpus,
    CountRows,
    Floats,
    Integers,
    index_dtype,
)
from longtail.threads import even_indptr, run_blocks


@dataclass(frozen=True)
class CandidateIndex:
    """For each term the classes that have it, with their normalised centroid weights.

    Attributes
    ----------
    indptr : ndarray of shape (n_terms + 1,), int64
        Where each term's classes begin.
    classes : ndarray of shape (nnz,), int32 or int64
        Class numbers, ascending within a term.
    weights : ndarray of shape (nnz,), float64
        I_t^2 c_t / |c| for the centroid c: times the document's term frequency, summed over its
        terms and divided by the length of the tf-idf weighted document, this is the cosine.
    n_classes : int
        K.
    """

    indptr: Integers
    classes: NDArray[Any]
    weights: Floats
    n_classes: int

    def validate(self, n_terms: int) -> None:
        """Check that every position the search will follow exists; a file may have broken it."""
        check_index(self.indptr, self.classes, self.weights, n_terms, self.n_classes)


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


def build_index(statistics: ClassStatistics, corpus: Corpus) -> CandidateIndex:
    """Turn the centroids into a term-major index."""
    norms = statistics.centroid_norms(corpus.idf)
    norms[norms == 0] = 1.0
    sizes = np.diff(statistics.indptr)
    weights = statistics.centroid_sums * corpus.idf[statistics.indices] ** 2
    weights /= np.repeat(norms, sizes)
    by_class = sp.csr_array(
        (weights, statistics.indices, statistics.indptr),
        shape=(statistics.n_classes, statistics.n_terms),
    )
    by_term = by_class.tocsc()
    return CandidateIndex(
        indptr=by_term.indptr.astype(np.int64, copy=False),
        classes=by_term.indices.astype(index_dtype(statistics.n_classes), copy=False),
        weights=by_term.data,
        n_classes=statistics.n_classes,
    )


def find_candidates(
    rows: CountRows,
    index: CandidateIndex,
    idf: Floats,
    n_candidates: int,
    *,
    sublinear: bool = False,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Return the classes of highest cosine for each document; ties go to the lower class number.

    Parameters
    ----------
    rows : CountRows
        Documents.
    index : CandidateIndex
        Of the classes.
    idf : ndarray of shape (n_terms,)
        I_t.
    n_candidates : int
        q, at most n_classes.
    sublinear : bool
        As in the statistics behind the index.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, q), int64
        Class numbers, nearest first.
    cosines : ndarray of shape (n_documents, q), float64
        Their cosines.
    """
    classes = np.empty((rows.n_documents, n_candidates), np.int64)
    cosines = np.empty((rows.n_documents, n_candidates))
    run_blocks(
        lambda first, last: kernels.nearest_classes(
            rows.indptr,
            rows.indices,
            rows.data,
            sublinear,
            idf,
            index.indptr,
            index.classes,
            index.weights,
            index.n_classes,
            first,
            last,
            classes,
            cosines,
        ),
        rows.indptr,
        n_jobs,
    )
    return classes, cosines


def rank_candidates(
    rows: CountRows,
    statistics: ClassStatistics,
    term_scores: Floats,
    distance_weight: float,
    candidates: Integers,
    cosines: Floats,
    k: int,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Score the candidates of each document and return the best k of them, best first.

    Parameters
    ----------
    rows : CountRows
        Documents.
    statistics : ClassStatistics
        Of the classes.
    term_scores : ndarray of shape (nnz,)
        What each (class, term) adds to a score, as from `longtail.features.term_scores`.
    distance_weight : float
        Weight of the ninth feature.
    candidates, cosines : ndarrays of shape (n_documents, q)
        As from `find_candidates`.
    k : int
        How many to return, at most q.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (n_documents, k), int64
    scores : ndarray of shape (n_documents, k), float64
    """
    classes = np.empty((rows.n_documents, k), np.int64)
    scores = np.empty((rows.n_documents, k))
    run_blocks(
        lambda first, last: kernels.rank_candidates(
            rows.indptr,
            rows.indices,
            statistics.indptr,
            statistics.indices,
            term_scores,
            distance_weight,
            candidates,
            cosines,
            first,
            last,
            classes,
            scores,
        ),
        rows.indptr,
        n_jobs,
    )
    return classes, scores


@dataclass(frozen=True)
class ScoreIndex:
    """A term-major copy of an additive score.

    Attributes
    ----------
    indptr : ndarray of shape (n_terms + 1,), int64
        Where each term's classes begin.
    classes : ndarray of shape (nnz,), int32 or int64
        Class numbers, ascending within a term.
    values : ndarray of shape (nnz,), float32
        What a unit of the term adds to the class.
    slopes, constants : ndarrays of shape (n_classes,), float64
        Those of the score.
    """

    indptr: Integers
    classes: NDArray[Any]
    values: NDArray[np.float32]
    slopes: Floats
    constants: Floats

    def validate(self, n_terms: int) -> None:
        """Check that every position the search will follow exists; a file may have broken it."""
        check_index(self.indptr, self.classes, self.values, n_terms, len(self.constants))


def index_score(score: AdditiveScore, n_terms: int) -> ScoreIndex:
    """Turn a score into a term-major index."""
    n_classes = len(score.constants)
    by_term = sp.csr_array(
        (score.values, score.indices, score.indptr), shape=(n_classes, n_terms)
    ).tocsc()
    return ScoreIndex(
        by_term.indptr.astype(np.int64, copy=False),
        by_term.indices.astype(index_dtype(n_classes), copy=False),
        by_term.data,
        score.slopes,
        score.constants,
    )


def find_highest(
    documents: WeightedRows,
    index: ScoreIndex,
    n_candidates: int,
    *,
    chosen: Integers | None = None,
    own: Integers | None = None,
    most_postings: int | None = None,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Return the classes of highest additive score for each document, best first.

    Parameters
    ----------
    documents : WeightedRows
        All documents.
    index : ScoreIndex
        Of the score.
    n_candidates : int
        q, at most the number of classes, less one where `own` is given.
    chosen : ndarray of shape (M,), optional
        Row numbers; all documents when left out.
    own : ndarray of shape (M,), optional
        A class to pass over for each document.
    most_postings : int, optional
        Bound on the postings read for a document; its rarest terms come first. All when left out.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    classes : ndarray of shape (M, q), int32 or int64
        Class numbers; ties go to the lower one.
    scores : ndarray of shape (M, q), float64
        Their scores over the terms that were read.
    """
    rows = documents.rows
    chosen = np.arange(rows.n_documents) if chosen is None else chosen
    own = np.full(len(chosen), -1, np.int64) if own is None else own
    most = np.iinfo(np.int64).max if most_postings is None else most_postings
    classes = np.empty((len(chosen), n_candidates), index.classes.dtype)
    scores = np.empty((len(chosen), n_candidates))
    run_blocks(
        lambda first, last: kernels.highest_classes(
            rows.indptr,
            rows.indices,
            documents.weights,
            chosen,
            own,
            index.indptr,
            index.classes,
            index.values,
            index.slopes,
            index.constants,
            most,
            first,
            last,
            classes,
            scores,
        ),
        even_indptr(len(chosen)),
        n_jobs,
    )
    return classes, scores


def cap_candidates(candidates: int, n_classes: int) -> int:
    """Return q, at most n_classes."""
    if not isinstance(candidates, numbers.Integral) or candidates < 1:
        raise ValueError(
            f"candidates must be an integer of at least 1; got {candidates!r}. "
            f"It is capped at the number of classes (here {n_classes})."
        )
    return min(int(candidates), n_classes)
