"""The ten features of a (document, class) pair: Table 1 of the paper, one catalogue entry each.

In: counts, class statistics and the pairs. Out: an array (M, n_columns, 10) in the order of the
table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._kernels import paper as kernels
from longtail._kernels import weighting as weighting_kernels
from longtail._kernels.types import Block, PaperClasses
from longtail._parallel import parallel_for, uniform_work
from longtail.model.corpus import Corpus
from longtail.model.features import Feature
from longtail.model.scorer import LinearScorer
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import WeightedDocuments
from longtail.sparse import CountMatrix, Floats


def centroid_scorer(statistics: ClassStatistics, corpus: Corpus) -> LinearScorer:
    """Return the score whose sum over a document of length 1 is the cosine with each centroid.

    The value of a class c and a term t is I_t^2 c_t / |c|; documents are weighed by
    `weight_for_cosine`.
    """
    norms = statistics.centroid_norms(corpus.idf)
    norms[norms == 0] = 1.0
    values = statistics.centroid_sums * corpus.idf[statistics.indices] ** 2
    values /= np.repeat(norms, np.diff(statistics.indptr))
    return LinearScorer.without_bias(statistics.indptr, statistics.indices, values)


def weight_for_cosine(
    rows: CountMatrix, idf: Floats, *, sublinear: bool = False, n_jobs: int | None = None
) -> WeightedDocuments:
    """Divide each document's term frequencies by the length of its tf-idf weighted vector."""
    weights = np.empty(len(rows.data))
    parallel_for(
        lambda first, last: weighting_kernels.weight_for_cosine(
            rows.arrays, idf, sublinear, Block(first, last), weights
        ),
        rows.indptr,
        n_jobs,
    )
    return WeightedDocuments(rows, weights, np.zeros(rows.n_documents))


FEATURES: tuple[Feature, ...] = (
    Feature("class_count", "ln(1 + y_t)", "how often the class uses the shared terms"),
    Feature("rarity", "ln(1 + l_S / F_t)", "how rare the shared terms are in the corpus"),
    Feature("idf", "I_t", "in how few documents the shared terms occur"),
    Feature("share_idf", "y_t / |y| * I_t", "the shared terms' part of the class, by idf"),
    Feature("share", "ln(1 + y_t / |y|)", "the shared terms' part of the class"),
    Feature("log_share_idf", "ln(1 + y_t / |y| * I_t)", "the same, by idf, dampened"),
    Feature("share_rarity", "ln(1 + y_t / |y| * l_S / F_t)", "the same, against the corpus"),
    Feature("shared_terms", "1", "the number of shared terms"),
    Feature(
        "centroid_distance", "1 - cos(x, centroid(y))", "tf-idf distance to the class centroid"
    ),
    Feature(
        "bm25",
        "I_t * 2 y_t / (y_t + 0.25 + 0.75 len(y) / avg(len(y)))",
        "BM25 of the class as a document and the document as a query",
    ),
)

FEATURE_NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)

CENTROID_DISTANCE = FEATURE_NAMES.index("centroid_distance")


def pair_features(
    X: Any,
    statistics: ClassStatistics,
    documents: ArrayLike,
    classes: ArrayLike,
    *,
    corpus: Corpus | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Compute Table 1 for each document with each class of its row.

    Parameters
    ----------
    X : sparse or dense matrix of shape (n_documents, n_terms), or CountMatrix
        Counts.
    statistics : ClassStatistics
        Of the classes.
    documents : array-like of shape (M,), int
        Rows of X.
    classes : array-like of shape (M, n_columns), int
        Class ids.
    corpus : Corpus, optional
        The global quantities; those of `statistics` when left out.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (M, n_columns, 10), float64
        In the order of `FEATURES`.

    Raises
    ------
    ValueError
        If a row, class or number of terms is out of range.
    """
    rows = X if isinstance(X, CountMatrix) else CountMatrix.from_matrix(X)
    corpus = statistics.corpus if corpus is None else corpus
    documents, classes = _check_pairs(rows, statistics, documents, classes)
    paper_classes = as_paper_classes(statistics, corpus)
    features = np.empty((*classes.shape, len(FEATURES)))
    parallel_for(
        lambda first, last: kernels.fill_pair_features(
            rows.arrays, documents, classes, paper_classes, Block(first, last), features
        ),
        uniform_work(len(documents)),
        n_jobs,
    )
    return features


def term_scores(
    statistics: ClassStatistics, corpus: Corpus, weights: Floats, n_jobs: int | None = None
) -> Floats:
    """Collapse the weighted features of each (class, term) into the one number it adds to a score.

    Every feature but the ninth is a sum over shared terms of a number that depends on class and
    term only, so a linear score needs this one number and the cosine.

    Parameters
    ----------
    statistics : ClassStatistics
        Of the classes.
    corpus : Corpus
        The global quantities.
    weights : ndarray of shape (10,)
        Weight of each feature; the ninth plays no part here.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (nnz,), float64
        Aligned with `statistics.indices`.
    """
    scores = np.empty(len(statistics.indices))
    paper_classes = as_paper_classes(statistics, corpus)
    parallel_for(
        lambda first, last: kernels.fill_term_scores(
            paper_classes, weights, Block(first, last), scores
        ),
        statistics.indptr,
        n_jobs,
    )
    return scores


def as_paper_classes(statistics: ClassStatistics, corpus: Corpus) -> PaperClasses:
    """Gather what kernels read of classes and corpus."""
    return PaperClasses(
        *statistics.arrays,
        lengths=statistics.class_lengths,
        norms=statistics.centroid_norms(corpus.idf),
        idf=corpus.idf,
        rarity=corpus.rarity,
        count_quantum=2.0**-statistics.count_bits,
        mean_length=corpus.mean_class_length,
        sublinear=statistics.sublinear,
    )


def _check_pairs(
    rows: CountMatrix, statistics: ClassStatistics, documents: ArrayLike, classes: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs as int64 arrays, after checking their shapes and ranges."""
    if rows.n_terms != statistics.n_terms:
        raise ValueError(
            f"X has {rows.n_terms} terms, but the statistics have {statistics.n_terms}; "
            "both must come from the same vocabulary."
        )
    documents = np.asarray(documents, dtype=np.int64)
    classes = np.asarray(classes, dtype=np.int64)
    if documents.ndim != 1 or classes.ndim != 2 or len(documents) != len(classes):
        raise ValueError(
            "documents must have shape (M,) and classes (M, n_columns); "
            f"got {documents.shape} and {classes.shape}."
        )
    for name, values, limit in (
        ("documents", documents, rows.n_documents),
        ("classes", classes, statistics.n_classes),
    ):
        if values.size and (values.min() < 0 or values.max() >= limit):
            raise ValueError(
                f"{name} must be ids from 0 to {limit - 1}; got {values.min()} to {values.max()}."
            )
    return documents, classes
