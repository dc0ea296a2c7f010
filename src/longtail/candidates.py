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
from longtail.statistics import (
    ClassStatistics,
    Corpus,
    CountRows,
    Floats,
    Integers,
    index_dtype,
)
from longtail.threads import run_blocks


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
        """Check that every position the search will follow exists; a file may have broken it.

        Raises
        ------
        ValueError
            If one does not.
        """
        sound = (
            len(self.indptr) == n_terms + 1
            and self.indptr[0] == 0
            and not np.any(np.diff(self.indptr) < 0)
            and self.indptr[-1] == len(self.classes) == len(self.weights)
            and (
                not len(self.classes)
                or 0 <= self.classes.min() <= self.classes.max() < self.n_classes
            )
        )
        if not sound:
            raise ValueError("the candidate index does not fit its classes and terms.")


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


def cap_candidates(candidates: int, n_classes: int) -> int:
    """Return q, at most n_classes."""
    if not isinstance(candidates, numbers.Integral) or candidates < 1:
        raise ValueError(
            f"candidates must be an integer of at least 1; got {candidates!r}. "
            f"It is capped at the number of classes (here {n_classes})."
        )
    return min(int(candidates), n_classes)
