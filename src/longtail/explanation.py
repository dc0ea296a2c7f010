"""A score taken apart, feature by feature and term by term.

In: one document, one class and the fitted parts. Out: an Explanation whose parts add up to the
score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.results import Explanation
from longtail.scoring.linear import LinearScorer
from longtail.scoring.paper import CENTROID_DISTANCE, FEATURE_NAMES, pair_features
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus


@dataclass(frozen=True)
class ScoreParts:
    """The contributions of one (document, class) pair before they have names."""

    features: Floats
    terms: NDArray[Any]
    contributions: Floats
    constant: float


def split_paper_score(
    rows: CountMatrix,
    document: int,
    class_number: int,
    statistics: ClassStatistics,
    corpus: Corpus,
    weights: Floats,
    term_scores: Floats,
) -> ScoreParts:
    """Split the paper's linear score of one pair by feature and by shared term.

    The centroid distance is 1 - cos: its 1 is the constant, its cosine is a sum over shared terms.
    """
    features = pair_features(rows, statistics, [document], [[class_number]], corpus=corpus)[0, 0]
    terms, in_document, in_class = shared_terms(rows, document, class_number, statistics)
    squares = (rows.data * corpus.idf[rows.indices])[
        rows.indptr[document] : rows.indptr[document + 1]
    ] ** 2
    document_norm = float(np.sqrt(squares.sum()))
    class_norm = float(_class_norm(statistics, class_number, corpus.idf))
    cosines = rows.data[in_document] * corpus.idf[terms] ** 2 * statistics.centroid_sums[in_class]
    if len(terms):
        cosines = cosines / (document_norm * class_norm)
    return ScoreParts(
        features=features * weights,
        terms=terms,
        contributions=term_scores[in_class] - weights[CENTROID_DISTANCE] * cosines,
        constant=float(weights[CENTROID_DISTANCE]),
    )


def split_linear_score(
    documents: WeightedDocuments,
    class_number: int,
    features: Floats,
    score: LinearScorer,
    correction: LinearScorer,
) -> ScoreParts:
    """Split an additive score and its correction for the only document given.

    A slope counts for every term of the document, shared or not; `features` holds what each feature
    adds, to which the correction is added as the last.
    """
    rows, weights = documents.rows, documents.weights.astype(np.float64)
    contributions = weights * score.length_weights[class_number]
    learned = np.zeros(len(rows.indices))
    for part, values in ((score, contributions), (correction, learned)):
        entries = slice(part.indptr[class_number], part.indptr[class_number + 1])
        _, in_document, in_class = np.intersect1d(
            rows.indices, part.indices[entries], assume_unique=True, return_indices=True
        )
        values[in_document] += weights[in_document] * part.weights[entries][in_class]
    constant = float(correction.biases[class_number])
    return ScoreParts(
        features=np.append(features, learned.sum() + constant),
        terms=rows.indices,
        contributions=contributions + learned,
        constant=constant + float(score.biases[class_number]),
    )


def shared_terms(
    rows: CountMatrix, document: int, class_number: int, statistics: ClassStatistics
) -> tuple[NDArray[Any], Integers, Integers]:
    """Return the terms that document and class share, and where each stands in either matrix."""
    start, stop = rows.indptr[document], rows.indptr[document + 1]
    first, last = statistics.indptr[class_number], statistics.indptr[class_number + 1]
    terms, in_document, in_class = np.intersect1d(
        rows.indices[start:stop],
        statistics.indices[first:last],
        assume_unique=True,
        return_indices=True,
    )
    return terms, in_document + start, in_class + first


def explain_score(
    parts: ScoreParts,
    score: float,
    label: Any,
    runner_up: tuple[Any, float] | None,
    top_terms: int,
    term_names: NDArray[Any] | None,
    feature_names: tuple[str, ...] = FEATURE_NAMES,
) -> Explanation:
    """Give the parts their names and keep the largest terms apart."""
    order = np.lexsort((parts.terms, -np.abs(parts.contributions)))
    top, others = order[:top_terms], order[top_terms:]
    names = parts.terms[top] if term_names is None else term_names[parts.terms[top]]
    runner_up_label, runner_up_score = (None, -np.inf) if runner_up is None else runner_up
    return Explanation(
        label=label,
        score=float(score),
        features=dict(zip(feature_names, parts.features.tolist(), strict=True)),
        terms=dict(zip(names.tolist(), parts.contributions[top].tolist(), strict=True)),
        rest=float(parts.contributions[others].sum()),
        constant=parts.constant,
        runner_up=runner_up_label,
        runner_up_score=float(runner_up_score),
    )


def _class_norm(statistics: ClassStatistics, class_number: int, idf: Floats) -> Any:
    """Return the length of one class's idf-weighted centroid sum."""
    first, last = statistics.indptr[class_number], statistics.indptr[class_number + 1]
    weights = statistics.centroid_sums[first:last] * idf[statistics.indices[first:last]]
    return np.linalg.norm(weights)
