"""Classes with their scorer: hard negatives mined by it, residuals learned on them.

In: class statistics and shared weights. Out: `ScoredClasses`, from which the stages of a fit, the
self-check and `refine` go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail._validation import cap_candidates
from longtail.retrieval.index import AnyIndex, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.features import leave_one_out_scores
from longtail.scoring.linear import ClassResiduals, LinearScorer, build_scorer, score_pairs
from longtail.scoring.weighting import Profile, WeightedDocuments
from longtail.sparse import CountMatrix, Floats, Integers, index_dtype
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.config import FitConfig
from longtail.training.negatives import (
    MinedPairs,
    draw_random_negatives,
    mine_pairs,
)
from longtail.training.residuals import batch_log_odds, solve_residuals
from longtail.training.separators import draw_negatives, solve_separators
from longtail.training.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """Classes with their scorer; feature weights of shape (6,), or (5, 6) by class size."""

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

    def reweight(self, feature_weights: Floats, n_jobs: int | None) -> ScoredClasses:
        """Return the same classes with other feature weights."""
        return ScoredClasses(
            self.profile, feature_weights, build_scorer(self.profile, feature_weights, n_jobs)
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
    labels: LabelSets,
    scored: ScoredClasses,
    index: AnyIndex,
    pruning: QueryPruning,
    config: FitConfig,
) -> MinedPairs:
    """Return every document's labels and negatives."""
    mined = mine_pairs(
        documents,
        labels,
        scored.scorer,
        index,
        pruning,
        cap_candidates(config.n_mined, scored.n_classes),
        config.n_jobs,
    )
    if config.negatives == "random":
        negatives = draw_random_negatives(labels, mined.n_negatives, config.seed)
        return mined.with_negatives(negatives)
    return mined


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """What each class has learned: its residual, and its separator where there are any."""

    residuals: ClassResiduals
    separators: ClassResiduals | None = None


def learn_rows(
    documents: WeightedDocuments,
    mined: MinedPairs,
    scored: ScoredClasses,
    config: FitConfig,
    *,
    separators: bool,
    class_mask: NDArray[np.bool_] | None = None,
    without: Integers | None = None,
) -> LearnedRows:
    """Learn the residual of each class, or of some, and its separator where asked for.

    On all documents but those `without`. A class without documents among them has nothing to learn
    from but negatives, and learns nothing.
    """
    if not config.residuals:
        return LearnedRows(ClassResiduals.none(scored.n_classes))
    learns = (scored.profile.statistics.class_sizes > 0) & (mined.labels.class_sizes > 0)
    if not learns.all():
        class_mask = learns if class_mask is None else class_mask & learns
    n_documents, document_mask = mined.labels.n_documents, None
    if without is not None:
        document_mask = np.ones(n_documents, np.bool_)
        document_mask[without] = False
    log_odds = mined_log_odds(documents, mined, scored, config)
    given = documents, mined, log_odds, scored.n_classes
    residuals = solve_residuals(
        *given, config.residual_cost * config.C, class_mask, document_mask, config.n_jobs
    )
    if not separators:
        return LearnedRows(residuals)
    drawn = draw_negatives(n_documents, config.seed, without)
    positions = np.full(n_documents, -1)
    positions[drawn] = np.arange(len(drawn))
    learned = solve_separators(
        *given,
        config.C,
        documents.gather(drawn),
        positions,
        n_documents - (0 if without is None else len(without)),
        multilabel=config.several,
        class_mask=class_mask,
        document_mask=document_mask,
        n_jobs=config.n_jobs,
    )
    return LearnedRows(residuals, learned)


def mined_log_odds(
    documents: WeightedDocuments, mined: MinedPairs, scored: ScoredClasses, config: FitConfig
) -> NDArray[np.float32]:
    """Return the score of each mined pair against what it competes with, leaving one out."""

    def score_block(block: slice) -> Floats:
        rows, lists = documents.slice(block), mined.slice(block)
        of_negatives = score_pairs(rows, lists.negatives, scored.scorer, config.n_jobs)
        class_ids, document_ids = lists.labels.class_ids, lists.labels.document_ids
        if config.leave_one_out:
            of_labels = leave_one_out_scores(
                rows,
                class_ids,
                scored.profile,
                scored.feature_weights,
                config.n_jobs,
                document_ids=document_ids,
                sample_weights=lists.labels.weights,
            )
        else:
            of_labels = score_pairs(
                rows,
                class_ids[:, None].astype(index_dtype(scored.n_classes)),
                scored.scorer,
                config.n_jobs,
                document_ids=document_ids,
            )[:, 0]
        return lists.join(of_labels, of_negatives)

    return batch_log_odds(mined, score_block, config.n_jobs, config.several)


def sum_documents(counts: CountMatrix, labels: LabelSets, n_jobs: int | None) -> ClassStatistics:
    """Sum documents by class, with dampened term frequencies."""
    n_classes = len(labels.classes)
    return ClassStatistics.from_counts(counts, labels, n_classes, sublinear=True, n_jobs=n_jobs)
