"""Classes with their scorer: hard negatives mined by it, residuals learned on them.

In: class statistics and shared weights. Out: `ScoredClasses`, from which the stages of a fit, the
self-check and `refine` go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import cap_candidates
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.features import leave_one_out_scores
from longtail.scoring.linear import ClassResiduals, LinearScorer, build_scorer, score_pairs
from longtail.scoring.weighting import Profile, WeightedDocuments
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.config import FitConfig
from longtail.training.negatives import draw_random_negatives, mine_hard_negatives
from longtail.training.residuals import fit_residuals
from longtail.training.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """Classes with their scorer."""

    profile: Profile
    feature_weights: Floats
    scorer: LinearScorer

    @classmethod
    def of(
        cls, statistics: ClassStatistics, corpus: Corpus, shared: SharedWeights, n_jobs: int | None
    ) -> ScoredClasses:
        """Collapse statistics and shared weights."""
        profile = Profile.of(statistics, corpus, shared.collection_model)
        return cls(
            profile, shared.feature_weights, build_scorer(profile, shared.feature_weights, n_jobs)
        )

    @property
    def n_classes(self) -> int:
        """K."""
        return self.profile.statistics.n_classes

    def build_index(self, n_jobs: int | None) -> InvertedIndex:
        """Return the scorer term by term."""
        return build_index(self.scorer, self.profile.statistics.n_terms, n_jobs)


def mine_all(
    documents: WeightedDocuments,
    class_ids: Integers,
    scored: ScoredClasses,
    pruning: QueryPruning,
    config: FitConfig,
) -> NDArray[Any]:
    """Return every document's true class and its negatives, shape (n_documents, 1 + q)."""
    classes = mine_hard_negatives(
        documents,
        np.arange(len(class_ids)),
        class_ids,
        scored.scorer,
        scored.build_index(config.n_jobs),
        pruning,
        cap_candidates(config.candidates, scored.n_classes),
        config.n_jobs,
    )
    if config.negatives == "random":
        return draw_random_negatives(classes, scored.n_classes, config.seed)
    return classes


def learn_residuals(
    documents: WeightedDocuments,
    lists: NDArray[Any],
    scored: ScoredClasses,
    config: FitConfig,
    *,
    class_mask: NDArray[np.bool_] | None = None,
    document_mask: NDArray[np.bool_] | None = None,
) -> ClassResiduals:
    """Learn the residual of each class, or of some, on all documents, or on some."""
    if not config.residuals:
        return ClassResiduals.none(scored.n_classes)

    def score_block(block: slice) -> Floats:
        scores = score_pairs(
            documents.slice_documents(block), lists[block], scored.scorer, config.n_jobs
        )
        if config.leave_one_out:
            scores[:, 0] = leave_one_out_scores(
                documents.slice_documents(block),
                lists[block, 0],
                scored.profile,
                scored.feature_weights,
                config.n_jobs,
            )
        return scores

    return fit_residuals(
        documents,
        lists,
        score_block,
        scored.n_classes,
        config.residual_cost * config.C,
        class_mask=class_mask,
        document_mask=document_mask,
        n_jobs=config.n_jobs,
    )


def sum_documents(
    counts: CountMatrix, class_ids: Integers, n_classes: int, n_jobs: int | None
) -> ClassStatistics:
    """Sum documents by class, with dampened term frequencies."""
    return ClassStatistics.from_counts(counts, class_ids, n_classes, sublinear=True, n_jobs=n_jobs)
