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
from longtail.counts import CountRows, Floats, Integers, index_dtype, running_total
from longtail.features import Feature
from longtail.statistics import CENTROID_BITS, ClassStatistics, Corpus
from longtail.threads import even_indptr, run_blocks

UNIT = 2.0**-CENTROID_BITS
PAIRS_PER_CLASS = 1 / 8  # from here on it pays to spread a class out over all terms (measured)

# s_ct is the sum of term t over the length-normalised documents of class c, P_t its share of all
# classes' sums.
SCORE_FEATURES: tuple[Feature, ...] = (
    Feature("cosine", "idf_t s_ct / |s_c|", "direction of the class centroid"),
    Feature(
        "likelihood",
        "ln(1 + s_ct / (100 P_t)) - ln(1 + sum_t s_ct / 100)",
        "smoothed likelihood of the terms in the class, against the background",
    ),
    Feature("size", "ln(n_c), once", "number of documents of the class"),
    Feature("coverage", "idf_t where s_ct > 0", "whether the class has the term at all"),
    Feature("dampened_cosine", "idf_t s_ct / |s_c|^0.8", "the cosine, kinder to large classes"),
    Feature("saturation", "idf_t s_ct / (s_ct + 0.3)", "how firmly the class has the term"),
)
SCORE_FEATURE_NAMES: tuple[str, ...] = tuple(feature.name for feature in SCORE_FEATURES)

# To find the first candidates, before anything is learned: the cosine, kinder to large classes.
FIRST_FEATURE_WEIGHTS: Floats = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
# A document left out makes its own class smaller. Where classes are of equal size that alone tells
# which is its own, so the weight of the size would grow without end, and a small new class would
# win everywhere. On real sets it is between -0.4 and 0.1.
_ANY = (-np.inf, np.inf)
FEATURE_WEIGHT_BOUNDS = (_ANY, _ANY, (-0.5, 1.0), _ANY, _ANY, _ANY)
# Where there is nothing to learn from; about what the feature weights are on most data.
DEFAULT_FEATURE_WEIGHTS: Floats = np.array([8.0, 0.3, 0.0, 0.1, 2.5, 0.0])


@dataclass(frozen=True)
class WeightedRows:
    """Documents with the weights that scoring uses.

    Attributes
    ----------
    rows : CountRows
        The counts.
    weights : ndarray of shape (nnz,), float32 or float64
        Aligned with `rows.indices`; each row has length 1.
    totals : ndarray of shape (n_documents,), float64
        Sum of each row's weights.
    """

    rows: CountRows
    weights: NDArray[Any]
    totals: Floats

    def take(self, documents: Integers) -> WeightedRows:
        """Return the given documents, in their order."""
        entries = self.rows.entries(documents)
        return WeightedRows(
            self.rows.take(documents, entries), self.weights[entries], self.totals[documents]
        )

    def part(self, documents: slice) -> WeightedRows:
        """Return documents that follow each other, without copying them."""
        return WeightedRows(self.rows.part(documents), self.weights, self.totals[documents])


@dataclass(frozen=True)
class Profile:
    """What the score needs to know of classes and corpus, all derived from additive sums."""

    statistics: ClassStatistics
    corpus: Corpus
    background: Floats

    @classmethod
    def of(cls, statistics: ClassStatistics, corpus: Corpus, background: Floats) -> Profile:
        """Return the profile; terms that the background lacks share the smallest share it has."""
        known = background[background > 0]
        smallest = known.min() if len(known) else 1.0
        return cls(statistics, corpus, np.where(background > 0, background, smallest))

    @cached_property
    def squares(self) -> Floats:
        """Squared length of each idf-weighted class sum."""
        return (self.statistics.centroid_norms(self.corpus.idf) * UNIT) ** 2

    @cached_property
    def masses(self) -> Floats:
        """Sum of each class sum over its terms."""
        return self.statistics.centroid_masses * UNIT

    def zero_sums(self) -> Integers:
        """Return a zero for each term: a kernel spreads the sums of a class out over them."""
        return np.zeros(self.statistics.n_terms, np.int64)

    @cached_property
    def class_arrays(self) -> tuple[Any, ...]:
        """The arrays that every scoring kernel takes, in their order."""
        return (
            self.statistics.indptr,
            self.statistics.indices,
            self.statistics.centroid_sums,
            UNIT,
            self.statistics.class_sizes,
            self.squares,
            self.masses,
            self.corpus.idf,
            self.background,
        )


@dataclass(frozen=True)
class AdditiveScore:
    """A score collapsed into numbers of classes and terms.

    Attributes
    ----------
    indptr, indices : ndarrays
        Terms of each class; those of the statistics.
    values : ndarray of shape (nnz,), float32 or float64
        What a unit of the term adds to the class.
    slopes, constants : ndarrays of shape (n_classes,), float64
        What a unit of any term adds, and what every document gets.
    """

    indptr: Integers
    indices: NDArray[Any]
    values: NDArray[Any]
    slopes: Floats
    constants: Floats

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that scoring takes, in their order."""
        return self.indptr, self.indices, self.values, self.slopes, self.constants


def background_shares(statistics: ClassStatistics) -> Floats:
    """Return P_t, each term's share of the sums of all classes."""
    totals = statistics.centroid_totals
    return totals / max(float(totals.sum()), 1.0)


def weigh_documents(
    rows: CountRows, term_weights: Floats, n_jobs: int | None = None
) -> WeightedRows:
    """Weigh and length-normalise documents; `term_weights` is idf times the learned weight."""
    weights = np.empty(len(rows.data), np.float32)
    totals = np.empty(rows.n_documents)
    run_blocks(
        lambda first, last: kernels.weigh_rows(
            rows.indptr, rows.indices, rows.data, term_weights, first, last, weights, totals
        ),
        rows.indptr,
        n_jobs,
    )
    return WeightedRows(rows, weights, totals)


def score_features(
    documents: WeightedRows,
    chosen: Integers,
    classes: Integers,
    own: Integers,
    profile: Profile,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Compute the six features of the chosen documents with the classes of their rows.

    Parameters
    ----------
    documents : WeightedRows
        All documents.
    chosen : ndarray of shape (M,)
        Row numbers.
    classes : ndarray of shape (M, width)
        Class numbers.
    own : ndarray of shape (M,)
        The class whose statistics contain the document and must forget it first; -1 for none.
    profile : Profile
        Of the classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (M, width, 6), float32
    """
    features = np.empty((classes.size, len(SCORE_FEATURES)), np.float32)
    starts, pairs = group_pairs(classes, profile.statistics.n_classes)
    rows = documents.rows
    run_blocks(
        lambda first, last: kernels.fill_score_features(
            rows.indptr,
            rows.indices,
            rows.data,
            documents.weights,
            documents.totals,
            chosen,
            own,
            classes.shape[1],
            starts,
            pairs,
            *profile.class_arrays,
            first,
            last,
            profile.zero_sums(),
            features,
        ),
        starts,
        n_jobs,
    )
    return features.reshape(*classes.shape, len(SCORE_FEATURES))


@dataclass(frozen=True)
class Contributions:
    """What each term of a document adds to its score for each class of its row.

    The terms of document i and column k stand at `places[i] + k * length` of `values`; `constants`
    (M, width) is what no term decides.
    """

    places: Integers
    values: NDArray[np.float32]
    constants: NDArray[np.float32]


def term_contributions(
    documents: WeightedRows,
    chosen: Integers,
    classes: Integers,
    own: Integers,
    profile: Profile,
    feature_weights: Floats,
    n_jobs: int | None = None,
) -> Contributions:
    """Split the scores of the chosen documents by term; parameters as in `score_features`."""
    rows = documents.rows
    places = running_total(np.diff(rows.indptr)[chosen] * classes.shape[1])
    values = np.empty(places[-1], np.float32)
    constants = np.empty(classes.size, np.float32)
    starts, pairs = group_pairs(classes, profile.statistics.n_classes)
    run_blocks(
        lambda first, last: kernels.fill_contributions(
            rows.indptr,
            rows.indices,
            rows.data,
            documents.weights,
            chosen,
            own,
            classes.shape[1],
            starts,
            pairs,
            *profile.class_arrays,
            feature_weights,
            places,
            first,
            last,
            profile.zero_sums(),
            values,
            constants,
        ),
        starts,
        n_jobs,
    )
    return Contributions(places, values, constants.reshape(classes.shape))


def collapse_score(
    profile: Profile, feature_weights: Floats, n_jobs: int | None = None
) -> AdditiveScore:
    """Turn statistics and feature weights into values, slopes and constants."""
    statistics = profile.statistics
    values = np.empty(len(statistics.indices), np.float32)
    slopes, constants = np.empty(statistics.n_classes), np.empty(statistics.n_classes)
    run_blocks(
        lambda first, last: kernels.fill_values(
            *profile.class_arrays, feature_weights, first, last, values, slopes, constants
        ),
        statistics.indptr,
        n_jobs,
    )
    return AdditiveScore(statistics.indptr, statistics.indices, values, slopes, constants)


def own_scores(
    documents: WeightedRows,
    own: Integers,
    profile: Profile,
    feature_weights: Floats,
    n_jobs: int | None = None,
    *,
    chosen: Integers | None = None,
) -> Floats:
    """Score each chosen document, or all, for its own class, without the document itself."""
    chosen = np.arange(documents.rows.n_documents) if chosen is None else chosen
    own = np.ascontiguousarray(own, np.int64)  # one type, so that the kernel is compiled once
    features = score_features(documents, chosen, own[:, None], own, profile, n_jobs)[:, 0]
    # Column by column: the bits of a product of matrices depend on how many rows there are.
    scores = np.zeros(len(chosen))
    for column, weight in zip(features.T, feature_weights, strict=True):
        scores += column * weight
    return scores


def group_pairs(classes: NDArray[Any], n_classes: int) -> tuple[Integers, NDArray[Any]]:
    """List the pairs `row * width + column` of each class: where it begins, and the pairs.

    A class of -1 is no pair.
    """
    starts, place = np.zeros(n_classes + 1, np.int64), np.empty(n_classes, np.int64)
    pairs = np.empty(classes.size, index_dtype(classes.size))
    # One type, so that the kernel is compiled once.
    flat = classes.ravel().astype(index_dtype(n_classes), copy=False)
    kernels.group_pairs(flat, n_classes, place, starts, pairs)
    return starts, pairs


def pair_scores(
    documents: WeightedRows,
    classes: NDArray[Any],
    score: AdditiveScore,
    n_jobs: int | None = None,
    *,
    chosen: Integers | None = None,
) -> Floats:
    """Score each document with each class of its row, shape (n_chosen, width).

    A few documents search each class's row for their terms; many are worked off class by class.
    Both add the same numbers in the same order.

    Parameters
    ----------
    documents : WeightedRows
        All documents.
    classes : ndarray of shape (n_chosen, width)
        Class numbers; -1 for none, which scores -inf.
    score : AdditiveScore
        Of the classes.
    n_jobs : int or None
        Number of threads.
    chosen : ndarray of shape (n_chosen,), optional
        Row numbers; all documents when left out.

    Returns
    -------
    ndarray of shape (n_chosen, width), float64
    """
    chosen = np.arange(documents.rows.n_documents) if chosen is None else chosen
    scores = np.full(classes.shape, -np.inf)
    if _are_few(classes, len(score.constants)):
        run_blocks(
            lambda first, last: kernels.fill_pair_scores(
                *_document_arrays(documents), chosen, classes, *score.arrays, first, last, scores
            ),
            even_indptr(len(chosen)),
            n_jobs,
        )
        return scores
    starts, pairs = group_pairs(classes, len(score.constants))
    flat = scores.ravel()
    n_terms = int(documents.rows.indices.max(initial=0)) + 1
    run_blocks(
        lambda first, last: kernels.fill_pair_scores_by_class(
            *_document_arrays(documents),
            chosen,
            classes.shape[1],
            starts,
            pairs,
            *score.arrays,
            first,
            last,
            np.zeros(n_terms, score.values.dtype),
            flat,
        ),
        starts,
        n_jobs,
    )
    return scores


def corrected_scores(
    documents: WeightedRows,
    few: WeightedRows,
    chosen: Integers,
    classes: NDArray[Any],
    score: AdditiveScore,
    correction: AdditiveScore,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Score pairs twice in one pass: by a few terms, and by all with the correction of the class.

    Both are the bits of `pair_scores`; documents and classes are fetched once instead of three
    times.

    Parameters
    ----------
    documents : WeightedRows
        All documents.
    few : WeightedRows
        The same rows, with weights of 0 for most terms.
    chosen : ndarray of shape (n_chosen,)
        Row numbers.
    classes : ndarray of shape (n_chosen, width)
        Class numbers; -1 for none, which scores -inf.
    score, correction : AdditiveScore
        Of the classes; the slopes of the correction are 0.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    scores, corrected : ndarrays of shape (n_chosen, width), float64
        Score of the few terms; score and correction of all terms.
    """
    scores, corrected = np.full(classes.shape, -np.inf), np.full(classes.shape, -np.inf)
    document_arrays = (*_document_arrays(documents), few.weights, few.totals, chosen)
    class_arrays = (
        *score.arrays,
        correction.indptr,
        correction.indices,
        correction.values,
        correction.constants,
    )
    if _are_few(classes, len(score.constants)):
        run_blocks(
            lambda first, last: kernels.fill_corrected_scores(
                *document_arrays, classes, *class_arrays, first, last, scores, corrected
            ),
            even_indptr(len(chosen)),
            n_jobs,
        )
        return scores, corrected
    starts, pairs = group_pairs(classes, len(score.constants))
    outputs = scores.ravel(), corrected.ravel()
    n_terms = int(documents.rows.indices.max(initial=0)) + 1
    run_blocks(
        lambda first, last: kernels.fill_corrected_scores_by_class(
            *document_arrays,
            classes.shape[1],
            starts,
            pairs,
            *class_arrays,
            first,
            last,
            np.zeros(2 * n_terms, score.values.dtype),
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


def _document_arrays(documents: WeightedRows) -> tuple[Any, ...]:
    """Return the arrays that scoring takes of the documents, in their order."""
    rows = documents.rows
    return rows.indptr, rows.indices, documents.weights, documents.totals
