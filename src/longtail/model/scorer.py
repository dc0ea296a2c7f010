"""The linear score of LongTailClassifier, from class statistics and a few learned numbers.

In: class statistics, a weight for each term and one for each of six features. Out: scores of
(document, class) pairs. Every feature is a sum over the document's terms, so a score collapses into
one weight for each (class, term), a length weight and a bias for each class:

    score(x, c) = bias_c + length_weight_c * sum_t x_t + sum_t x_t * weight_ct

x is the document: 1 + ln(count), times idf, times the learned weight of the term,
length-normalised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._caching import cached_property
from longtail._kernels import scoring as kernels
from longtail._kernels.features import collapse_features
from longtail._kernels.types import Block, PairScores, Rescoring, Scorer
from longtail._parallel import parallel_for, uniform_work
from longtail.model.features import group_by_class
from longtail.model.weighting import Profile, WeightedDocuments
from longtail.sparse import CountMatrix, Floats, Integers, RowTable, index_dtype, splice_rows

SMALLEST_TABLE = 1 << 12  # slots: 16 kB, which the fastest cache holds
PAIRS_PER_CLASS = 1 / 8  # from here on it pays to spread a class out over all terms (measured)
# Fewer are scored before an array of all terms is made: 256 classes in 0.1 ms instead of 1.7.
MIN_SPREAD_PAIRS = 4096


@dataclass(frozen=True)
class LinearScorer(RowTable):
    """A score collapsed into numbers per class and term."""

    ENTRIES = ("indices", "weights")
    ROWS = ("length_weights", "biases")

    # Terms of each class; those of the statistics.
    indptr: Integers
    indices: NDArray[Any]
    # (nnz,) float32 or float64: what a unit of the term adds to the class.
    weights: NDArray[Any]
    # (n_classes,) float64: what a unit of any term adds, and what every document gets.
    length_weights: Floats
    biases: Floats

    @property
    def arrays(self) -> Scorer:
        """Arrays for the kernels."""
        return Scorer(self.indptr, self.indices, self.weights, self.length_weights, self.biases)

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
    """Collapse statistics and feature weights into weights, length weights and biases.

    Feature weights have shape (6,), or (5, 6) where they depend on the size of the class
    (`weigh_by_size`).
    """
    statistics = profile.statistics
    if feature_weights.ndim == 1:
        feature_weights = feature_weights[None]
    weights = np.empty(len(statistics.indices), np.float32)
    length_weights, biases = np.empty(statistics.n_classes), np.empty(statistics.n_classes)
    parallel_for(
        lambda first, last: collapse_features(
            profile.arrays,
            feature_weights,
            Block(first, last),
            np.empty(feature_weights.shape[1]),
            weights,
            length_weights,
            biases,
        ),
        statistics.indptr,
        n_jobs,
    )
    return LinearScorer(statistics.indptr, statistics.indices, weights, length_weights, biases)


def add_scorers(first: LinearScorer, second: LinearScorer) -> LinearScorer:
    """Return the scorer whose scores are the sums of the scores of two others."""
    n_terms = max(int(scorer.indices.max(initial=0)) for scorer in (first, second)) + 1
    shape = len(first.biases), n_terms
    # With row bounds of 64 bits scipy would copy all term ids to as many.
    bounds = index_dtype(len(first.indices) + len(second.indices))
    matrices = (
        csr_array((scorer.weights, scorer.indices, scorer.indptr.astype(bounds)), shape=shape)
        for scorer in (first, second)
    )
    total = next(matrices) + next(matrices)
    return LinearScorer(
        total.indptr.astype(np.int64, copy=False),
        total.indices.astype(first.indices.dtype, copy=False),
        total.data,
        first.length_weights + second.length_weights,
        first.biases + second.biases,
    )


def score_pairs(
    documents: WeightedDocuments,
    classes: NDArray[Any],
    scorer: LinearScorer,
    n_jobs: int | None = None,
    *,
    document_ids: Integers | None = None,
) -> Floats:
    """Score documents, all of them when left out, with the classes of their rows.

    `classes` has a row for each document; -1 is no class, which scores -inf.
    """
    if document_ids is None:
        document_ids = np.arange(documents.rows.n_documents)
    scores = np.empty(classes.shape)
    none = ClassResiduals.none(0)
    once = Rescoring(
        documents.weights[:0],
        documents.weights[:0],
        documents.totals[:0],
        none.indptr,
        none.indices,
        none.weights,
        none.biases,
    )
    outputs = PairScores(scores, np.empty((0, 0)))
    _score(documents, document_ids, classes, scorer, once, outputs, n_jobs)
    return scores


def score_pairs_with_residuals(
    documents: WeightedDocuments,
    pruned: WeightedDocuments,
    document_ids: Integers,
    classes: NDArray[Any],
    scorer: LinearScorer,
    residuals: LinearScorer,
    n_jobs: int | None = None,
) -> PairScores:
    """Score pairs twice in one pass: by pruned documents, and by all terms with residuals.

    Both are the bits of `score_pairs`; documents and classes are fetched once instead of three
    times. `pruned` are the same rows as `documents`, with weights of 0 for most terms; the length
    weights of the residuals are 0. The result has `scores` by the pruned documents, and `rescored`
    by all terms and with residuals.
    """
    outputs = PairScores(np.empty(classes.shape), np.empty(classes.shape))
    rescoring = Rescoring(
        documents.weights,
        documents.residual_inputs,
        documents.totals,
        residuals.indptr,
        residuals.indices,
        residuals.weights,
        residuals.biases,
    )
    _score(pruned, document_ids, classes, scorer, rescoring, outputs, n_jobs)
    return outputs


def _score(
    documents: WeightedDocuments,
    document_ids: Integers,
    classes: NDArray[Any],
    scorer: LinearScorer,
    rescoring: Rescoring,
    outputs: PairScores,
    n_jobs: int | None,
) -> None:
    """Fill scores pair by pair where there are few pairs, else class by class: the same bits."""
    vectors = documents.vectors
    if _has_few_pairs(classes, len(scorer.biases)):
        n_slots = count_slots(documents.rows)
        parallel_for(
            lambda first, last: kernels.score_pairs(
                vectors,
                document_ids,
                classes,
                scorer.arrays,
                rescoring,
                Block(first, last),
                np.zeros(n_slots, np.int32),
                outputs,
            ),
            uniform_work(len(document_ids)),
            n_jobs,
        )
        return
    for scores in outputs:
        scores.fill(-np.inf)
    pairs = group_by_class(classes, len(scorer.biases))
    flat = PairScores(outputs.scores.ravel(), outputs.rescored.ravel())
    n_terms = int(documents.rows.indices.max(initial=0)) + 1
    n_values = 2 * n_terms if len(rescoring.biases) else n_terms
    parallel_for(
        lambda first, last: kernels.score_pairs_by_class(
            vectors,
            document_ids,
            pairs,
            scorer.arrays,
            rescoring,
            Block(first, last),
            np.zeros(n_values, scorer.weights.dtype),
            flat,
        ),
        pairs.starts,
        n_jobs,
    )


def count_slots(rows: CountMatrix) -> int:
    """Return the size of the hash table of a document's terms, a power of two.

    Most terms of a class are not in the document, and should be told so by one look at a free slot:
    with 1 slot of 16 taken a pair takes 1.5 times as long as with 1 of 100.
    """
    longest = int((rows.indptr[1:] - rows.indptr[:-1]).max(initial=0))
    return max(SMALLEST_TABLE, 1 << (2 * longest).bit_length())


def _has_few_pairs(classes: NDArray[Any], n_classes: int) -> bool:
    """Return whether there are too few pairs to spread each class out over all terms."""
    enough = max(PAIRS_PER_CLASS * n_classes, MIN_SPREAD_PAIRS)
    return bool(classes.size < enough or np.count_nonzero(classes >= 0) < enough)


@dataclass(frozen=True)
class ClassResiduals(RowTable):
    """Learned weights of each class, in CSR form: what is added to its linear score."""

    ENTRIES = ("indices", "weights")
    ROWS = ("biases",)

    indptr: Integers  # (n_classes + 1,) int64: where each class's weights begin
    indices: NDArray[Any]  # (nnz,) int32: terms, ascending within a class
    weights: NDArray[np.float32]  # (nnz,) float32: weights
    biases: Floats  # (n_classes,) float64: what every document gets

    @classmethod
    def none(cls, n_classes: int) -> ClassResiduals:
        """Return the weights of classes that have not learned any."""
        return cls(
            np.zeros(n_classes + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            np.zeros(n_classes),
        )

    @cached_property
    def as_scorer(self) -> LinearScorer:
        """The weights as a score of their own."""
        return LinearScorer(
            self.indptr, self.indices, self.weights, np.zeros_like(self.biases), self.biases
        )

    def scale(self, of_weights: Floats, of_biases: Floats) -> ClassResiduals:
        """Return the same weights and biases times factors of shape (n_classes,)."""
        of_entries = np.repeat(of_weights.astype(np.float32), np.diff(self.indptr))
        return replace(self, weights=self.weights * of_entries, biases=self.biases * of_biases)

    def raise_biases(self, added: Floats) -> ClassResiduals:
        """Return the same weights with higher biases."""
        return replace(self, biases=self.biases + added)

    def replace_classes(self, others: ClassResiduals, mask: NDArray[np.bool_]) -> ClassResiduals:
        """Take the classes of the mask from `others` and the rest from here."""
        rows = np.arange(len(mask))
        return splice_rows([self, others], np.where(mask, -1, rows), np.where(mask, rows, -1))


def add_residuals(first: ClassResiduals, second: ClassResiduals) -> ClassResiduals:
    """Return the sum of two learned rows for each class."""
    total = add_scorers(first.as_scorer, second.as_scorer)
    return ClassResiduals(total.indptr, total.indices, total.weights, total.biases)
