"""The additive score of LongTailClassifier, from class statistics and a few learned numbers.

In: class statistics, a weight for each term and one for each of six features. Out: scores of
(document, class) pairs, with the document left out of its own class where asked. Every feature is a
sum over the document's terms, so a score collapses into one value for each (class, term), a slope
and a constant for each class:

    score(x, c) = constant_c + slope_c * sum_t x_t + sum_t x_t * value_ct

x is the document: 1 + ln(count), times idf, times the learned weight of the term,
length-normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import scoring as kernels
from longtail._parallel import parallel_for, uniform_work
from longtail.scoring.features import (
    group_by_class,
)
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
)
from longtail.sparse import Floats, Integers, check_csr, gather_rows, offsets_from_lengths

PAIRS_PER_CLASS = 1 / 8  # from here on it pays to spread a class out over all terms (measured)


@dataclass(frozen=True)
class LinearScorer:
    """A score collapsed into numbers of classes and terms.

    Attributes
    ----------
    indptr, indices : ndarrays
        Terms of each class; those of the statistics.
    weights : ndarray of shape (nnz,), float32 or float64
        What a unit of the term adds to the class.
    length_weights, biases : ndarrays of shape (n_classes,), float64
        What a unit of any term adds, and what every document gets.
    """

    indptr: Integers
    indices: NDArray[Any]
    weights: NDArray[Any]
    length_weights: Floats
    biases: Floats

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that scoring takes, in their order."""
        return self.indptr, self.indices, self.weights, self.length_weights, self.biases

    @classmethod
    def without_bias(
        cls, indptr: Integers, indices: NDArray[Any], weights: NDArray[Any]
    ) -> LinearScorer:
        """Return a scorer in which terms alone count."""
        zeros = np.zeros(len(indptr) - 1)
        return cls(indptr, indices, weights, zeros, zeros)


def build_scorer(
    profile: Profile, feature_weights: Floats, n_jobs: int | None = None
) -> LinearScorer:
    """Turn statistics and feature weights into values, slopes and constants."""
    statistics = profile.statistics
    values = np.empty(len(statistics.indices), np.float32)
    slopes, constants = np.empty(statistics.n_classes), np.empty(statistics.n_classes)
    parallel_for(
        lambda first, last: kernels.collapse_features(
            *profile.class_arrays, feature_weights, first, last, values, slopes, constants
        ),
        statistics.indptr,
        n_jobs,
    )
    return LinearScorer(statistics.indptr, statistics.indices, values, slopes, constants)


def score_pairs(
    documents: WeightedDocuments,
    classes: NDArray[Any],
    score: LinearScorer,
    n_jobs: int | None = None,
    *,
    document_ids: Integers | None = None,
) -> Floats:
    """Score each document with each class of its row, shape (M, width).

    A few documents search each class's row for their terms; many are worked off class by class.
    Both add the same numbers in the same order.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    classes : ndarray of shape (M, width)
        Class numbers; -1 for none, which scores -inf.
    score : LinearScorer
        Of the classes.
    n_jobs : int or None
        Number of threads.
    document_ids : ndarray of shape (M,), optional
        Row numbers; all documents when left out.

    Returns
    -------
    ndarray of shape (M, width), float64
    """
    document_ids = np.arange(documents.rows.n_documents) if document_ids is None else document_ids
    scores = np.full(classes.shape, -np.inf)
    if _are_few(classes, len(score.biases)):
        parallel_for(
            lambda first, last: kernels.score_pairs(
                *_document_arrays(documents),
                document_ids,
                classes,
                *score.arrays,
                first,
                last,
                scores,
            ),
            uniform_work(len(document_ids)),
            n_jobs,
        )
        return scores
    starts, pairs = group_by_class(classes, len(score.biases))
    flat = scores.ravel()
    n_terms = int(documents.rows.indices.max(initial=0)) + 1
    parallel_for(
        lambda first, last: kernels.score_pairs_by_class(
            *_document_arrays(documents),
            document_ids,
            classes.shape[1],
            starts,
            pairs,
            *score.arrays,
            first,
            last,
            np.zeros(n_terms, score.weights.dtype),
            flat,
        ),
        starts,
        n_jobs,
    )
    return scores


def score_pairs_with_residuals(
    documents: WeightedDocuments,
    few: WeightedDocuments,
    document_ids: Integers,
    classes: NDArray[Any],
    score: LinearScorer,
    correction: LinearScorer,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Score pairs twice in one pass: by a few terms, and by all with the correction of the class.

    Both are the bits of `score_pairs`; documents and classes are fetched once instead of three
    times.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents.
    few : WeightedDocuments
        The same rows, with weights of 0 for most terms.
    document_ids : ndarray of shape (M,)
        Row numbers.
    classes : ndarray of shape (M, width)
        Class numbers; -1 for none, which scores -inf.
    score, correction : LinearScorer
        Of the classes; the slopes of the correction are 0.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    scores, corrected : ndarrays of shape (M, width), float64
        Score of the few terms; score and correction of all terms.
    """
    scores, corrected = np.full(classes.shape, -np.inf), np.full(classes.shape, -np.inf)
    document_arrays = (*_document_arrays(documents), few.weights, few.totals, document_ids)
    class_arrays = (
        *score.arrays,
        correction.indptr,
        correction.indices,
        correction.weights,
        correction.biases,
    )
    if _are_few(classes, len(score.biases)):
        parallel_for(
            lambda first, last: kernels.score_pairs_with_residuals(
                *document_arrays, classes, *class_arrays, first, last, scores, corrected
            ),
            uniform_work(len(document_ids)),
            n_jobs,
        )
        return scores, corrected
    starts, pairs = group_by_class(classes, len(score.biases))
    outputs = scores.ravel(), corrected.ravel()
    n_terms = int(documents.rows.indices.max(initial=0)) + 1
    parallel_for(
        lambda first, last: kernels.score_pairs_with_residuals_by_class(
            *document_arrays,
            classes.shape[1],
            starts,
            pairs,
            *class_arrays,
            first,
            last,
            np.zeros(2 * n_terms, score.weights.dtype),
            *outputs,
        ),
        starts,
        n_jobs,
    )
    return scores, corrected


def _are_few(classes: NDArray[Any], n_classes: int) -> bool:
    """Tell whether there are too few pairs to spread each class out over all terms."""
    enough = PAIRS_PER_CLASS * n_classes
    return bool(classes.size < enough or np.count_nonzero(classes >= 0) < enough)


def _document_arrays(documents: WeightedDocuments) -> tuple[Any, ...]:
    """Return the arrays that scoring takes of the documents, in their order."""
    rows = documents.rows
    return rows.indptr, rows.indices, documents.weights, documents.totals


@dataclass(frozen=True)
class ClassResiduals:
    """Learned weights of each class, in CSR form: an additive correction of its score.

    Attributes
    ----------
    indptr : ndarray of shape (n_classes + 1,), int64
        Where each class's weights begin.
    indices : ndarray of shape (nnz,), int32
        Terms, ascending within a class.
    weights : ndarray of shape (nnz,), float32
        Weights.
    biases : ndarray of shape (n_classes,), float64
        What every document gets.
    """

    indptr: Integers
    indices: NDArray[Any]
    weights: NDArray[np.float32]
    biases: Floats

    @classmethod
    def none(cls, n_classes: int) -> ClassResiduals:
        """Return the weights of classes that have not learned any."""
        return cls(
            np.zeros(n_classes + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            np.zeros(n_classes),
        )

    def validate(self, n_classes: int, n_terms: int) -> None:
        """Check that every position scoring will follow exists; a file may have broken it."""
        check_csr(self.indptr, self.indices, self.weights, n_classes, n_terms)

    @cached_property
    def as_scorer(self) -> LinearScorer:
        """The weights as a score of their own."""
        return LinearScorer(
            self.indptr, self.indices, self.weights, np.zeros_like(self.biases), self.biases
        )

    def gather_classes(self, sources: Integers) -> ClassResiduals:
        """Return a class for each source: that class's weights, or none where it is -1."""
        indptr, entries = gather_rows(self.indptr, sources)
        return ClassResiduals(
            indptr,
            self.indices[entries],
            self.weights[entries],
            np.append(self.biases, 0.0)[sources],
        )

    def select_classes(self, keep: NDArray[np.bool_]) -> ClassResiduals:
        """Leave out the classes that are not kept."""
        entries = np.repeat(keep, np.diff(self.indptr))
        return ClassResiduals(
            offsets_from_lengths(np.diff(self.indptr)[keep]),
            self.indices[entries],
            self.weights[entries],
            self.biases[keep],
        )

    def replace_classes(self, others: ClassResiduals, mask: NDArray[np.bool_]) -> ClassResiduals:
        """Take the classes of the mask from `others` and the rest from here."""
        mine, theirs = self.select_classes(~mask), others.select_classes(mask)
        sizes = np.zeros(len(mask), np.int64)
        sizes[~mask], sizes[mask] = np.diff(mine.indptr), np.diff(theirs.indptr)
        indptr = offsets_from_lengths(sizes)
        entry_mask = np.repeat(mask, sizes)
        indices = np.empty(indptr[-1], self.indices.dtype)
        values = np.empty(indptr[-1], np.float32)
        for source, where in ((mine, ~entry_mask), (theirs, entry_mask)):
            indices[where], values[where] = source.indices, source.weights
        return ClassResiduals(indptr, indices, values, np.where(mask, others.biases, self.biases))
