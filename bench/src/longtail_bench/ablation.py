"""What each ingredient of LongTailClassifier is worth: the same fit with one of them switched off.

In: a data set. Out: a Measurement for each variant. A variant overrides one step of the estimator;
the estimator itself knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from longtail import LongTailClassifier
from longtail.datasets import CountDataset
from longtail.training.config import FitConfig
from longtail_bench.measure import Measurement, Progress, measure


class Variant(LongTailClassifier):
    """The estimator with other experiment fields in its `FitConfig`."""

    experiment: dict[str, Any]

    def _config(self) -> FitConfig:
        return replace(super()._config(), **self.experiment)


def _variant(**experiment: Any) -> Callable[..., LongTailClassifier]:
    return type("Variant", (Variant,), {"experiment": experiment})


VARIANTS: dict[str, Callable[..., LongTailClassifier]] = {
    "LongTailClassifier": LongTailClassifier,
    "without residuals": _variant(residuals=False),
    "without term weights": _variant(term_weights=False),
    "without either": _variant(residuals=False, term_weights=False),
    "feature weights fixed": _variant(features="default"),
    "cosine only": _variant(features="cosine"),
    "without leave-one-out": _variant(leave_one_out=False),
    "random negatives": _variant(negatives="random"),
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
