"""The paper's score of a pair, feature by feature and term by term.

In: a state, documents and one class for each. Out: their `ScoreParts`, which add up to the score of
Algorithm 2.
"""

from __future__ import annotations

import numpy as np

from longtail.model.explanation import ScoreParts, find_common_terms
from longtail.paper.double_sampling import DoubleSamplingState
from longtail.paper.features import CENTROID_DISTANCE, pair_features, weight_for_cosine
from longtail.sparse import CountMatrix, Integers


def split_paper_scores(
    state: DoubleSamplingState,
    counts: CountMatrix,
    class_ids: Integers,
    n_jobs: int | None = None,
) -> list[ScoreParts]:
    """Split the score of each document for one class by feature and by shared term.

    The centroid distance is 1 - cos: its 1 is the constant, its cosine is a sum over shared terms.
    """
    statistics, corpus, weights = state.statistics, state.current_corpus, state.pairwise.weights
    documents = np.arange(counts.n_documents)
    class_ids = np.asarray(class_ids)
    features = pair_features(
        counts, statistics, documents, class_ids[:, None], corpus=corpus, n_jobs=n_jobs
    )[:, 0]
    cosine_weights = weight_for_cosine(counts, corpus.idf, n_jobs=n_jobs).weights
    parts = []
    for document, class_id in zip(documents, class_ids, strict=True):
        row = slice(*counts.indptr[document : document + 2])
        class_row = slice(*statistics.indptr[class_id : class_id + 2])
        terms, shared, in_class = np.intersect1d(
            counts.indices[row], statistics.indices[class_row], assume_unique=True,
            return_indices=True,
        )  # fmt: skip
        cosines = cosine_weights[row][shared] * state.centroids.weights[class_row][in_class]
        parts.append(
            ScoreParts(
                features=features[document] * weights,
                terms=terms,
                contributions=state.term_scores.weights[class_row][in_class]
                - weights[CENTROID_DISTANCE] * cosines,
                constant=float(weights[CENTROID_DISTANCE]),
                common=find_common_terms(terms, statistics, corpus),
            )
        )
    return parts
