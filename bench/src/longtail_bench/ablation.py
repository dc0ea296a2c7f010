"""What each ingredient of LongTailClassifier is worth: the same fit with one of them switched off.

In: a data set. Out: a Measurement for each variant. A variant overrides one step of the estimator;
the estimator itself knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from longtail import LongTailClassifier
from longtail.datasets import CountDataset
from longtail.estimators.long_tail import LongTailState
from longtail.scoring.features import (
    DEFAULT_FEATURE_WEIGHTS,
    SCORE_FEATURE_NAMES,
    score_features,
)
from longtail.scoring.linear import ClassResiduals, score_pairs
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.listwise import fit_feature_weights
from longtail_bench.measure import Measurement, Progress, measure


class WithoutClassWeights(LongTailClassifier):
    """No correction per class: the shared score decides alone."""

    def _learn_class_weights(
        self, documents: Any, hard_negatives: Any, model: LongTailState, **options: Any
    ) -> ClassResiduals:
        return ClassResiduals.none(len(model.classes))


class WithoutTermWeights(LongTailClassifier):
    """Every term counts with its idf alone."""

    def _learn_term_weights(
        self, rows: CountMatrix, sample: Integers, contributions_of: Any
    ) -> Floats:
        return np.ones(rows.n_terms)


class WithoutLearnedFeatures(LongTailClassifier):
    """Feature weights fixed at their defaults."""

    def _learn_feature_weights(self, documents: Any, lists: Any, profile: Any) -> Floats:
        return DEFAULT_FEATURE_WEIGHTS


class CosineOnly(LongTailClassifier):
    """One feature instead of six; only its scale is learned."""

    def _learn_feature_weights(self, documents: Any, lists: Any, profile: Any) -> Floats:
        features = score_features(
            documents, lists.documents, lists.classes, lists.own, profile, self.n_jobs
        )
        weights = np.zeros(len(SCORE_FEATURE_NAMES))
        weights[:1] = fit_feature_weights(features[:, :, :1])
        return weights


class WithoutLeaveOneOut(LongTailClassifier):
    """Documents stay inside their own class when scores and corrections are learned."""

    def _draw_lists(
        self, documents: Any, sample: Any, numbers: Any, profile: Any, feature_weights: Any
    ) -> Any:
        lists = super()._draw_lists(documents, sample, numbers, profile, feature_weights)
        return lists._replace(own=np.full_like(lists.own, -1))

    def _score(
        self, documents: Any, hard_negatives: Any, model: LongTailState, profile: Any
    ) -> Floats:
        return score_pairs(documents, hard_negatives, model.scorer, self.n_jobs)


class RandomAdversaries(LongTailClassifier):
    """Rivals drawn uniformly, as in the paper, instead of the highest-scored ones."""

    def _draw_lists(
        self, documents: Any, sample: Any, numbers: Any, profile: Any, feature_weights: Any
    ) -> Any:
        lists = super()._draw_lists(documents, sample, numbers, profile, feature_weights)
        return lists._replace(classes=_draw_uniformly(lists.classes, profile.statistics.n_classes))

    def _mine(self, documents: Any, numbers: Integers, model: LongTailState) -> Any:
        hard_negatives = super()._mine(documents, numbers, model)
        return _draw_uniformly(hard_negatives, len(model.classes))


VARIANTS: dict[str, Callable[..., LongTailClassifier]] = {
    "LongTailClassifier": LongTailClassifier,
    "without class weights": WithoutClassWeights,
    "without term weights": WithoutTermWeights,
    "without either": type("WithoutEither", (WithoutClassWeights, WithoutTermWeights), {}),
    "feature weights fixed": WithoutLearnedFeatures,
    "cosine only": CosineOnly,
    "without leave-one-out": WithoutLeaveOneOut,
    "random adversaries": RandomAdversaries,
    "5 candidates": lambda **options: LongTailClassifier(candidates=5, **options),
    "50 candidates": lambda **options: LongTailClassifier(candidates=50, **options),
    "C = 0.3": lambda **options: LongTailClassifier(C=0.3, **options),
    "C = 3": lambda **options: LongTailClassifier(C=3.0, **options),
}


def run_ablation(
    data: CountDataset,
    seeds: tuple[int, ...] = (0, 1, 2),
    n_jobs: int | None = None,
    variants: tuple[str, ...] = tuple(VARIANTS),
    progress: Progress = lambda *_: None,
) -> Iterator[tuple[int, Measurement]]:
    """Measure every variant with every seed; yields (seed, measurement) as they come."""
    for name in variants:
        for seed in seeds:
            classifier = VARIANTS[name](random_state=seed, n_jobs=n_jobs)
            yield seed, measure(name, classifier, data, progress)


def _draw_uniformly(classes: Integers, n_classes: int) -> Integers:
    """Keep column 0 and fill the others with distinct other classes."""
    rng = np.random.default_rng(0)
    drawn = np.empty_like(classes)
    drawn[:, 0] = classes[:, 0]
    for row in drawn:
        others = rng.choice(n_classes - 1, size=len(row) - 1, replace=False)
        row[1:] = others + (others >= row[0])
    return drawn
