"""Ablation of LongTailClassifier: the same fit with one ingredient switched off.

In: a data set. Out: a Measurement for each variant. A variant is a `FitConfig` with other
experiment fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail import LongTailClassifier
from longtail._labels import LabelSets
from longtail.datasets import CountDataset
from longtail.paper.sampling import draw_seed
from longtail.results import TopK
from longtail.sparse import CountMatrix
from longtail.training.config import FitConfig
from longtail.training.pipeline import fit_long_tail
from longtail_bench.measure import Measurement, Progress, measure

VARIANTS: dict[str, dict[str, Any]] = {
    "LongTailClassifier": {},
    "without residuals": {"residuals": False},
    "without separators": {"separators": False},
    "without term weights": {"term_weights": False},
    "without either": {"residuals": False, "term_weights": False},
    "feature weights fixed": {"features": "default"},
    "cosine only": {"features": "cosine"},
    "nearest centroid": {
        "features": "cosine",
        "term_weights": False,
        "residuals": False,
        "separators": False,
    },
    "without leave-one-out": {"leave_one_out": False},
    "random negatives": {"negatives": "random"},
    "without uniform negatives": {"n_uniform": 0},
    "mixture without class size": {"by_size": False},
    "without self-check": {"self_check": False},
    "5 candidates": {"candidates": 5},
    "50 candidates": {"candidates": 50},
    "C = 0.3": {"C": 0.3},
    "C = 3": {"C": 3.0},
}


def choose_variants(names: str | None) -> tuple[str, ...]:
    """Return the variants that are named, separated by semicolons; all of them for None.

    Examples
    --------
    >>> choose_variants("cosine only; C = 3")
    ('cosine only', 'C = 3')
    """
    if names is None:
        return tuple(VARIANTS)
    selected = tuple(name.strip() for name in names.split(";"))
    for name in selected:
        if name not in VARIANTS:
            raise ValueError(f"no variant {name!r}; there are: {'; '.join(VARIANTS)}")
    return selected


class ConfiguredClassifier:
    """LongTailClassifier fitted with any fields of `FitConfig`.

    Parameters
    ----------
    fields : mapping of str to object
        Fields of `FitConfig` that differ from the default.
    random_state : int
        As in `LongTailClassifier`.
    n_jobs : int or None
        Number of threads.

    Examples
    --------
    >>> classifier = ConfiguredClassifier({"residuals": False}, random_state=0)
    >>> X, y = np.array([[3, 0], [2, 1], [0, 2], [0, 4]]), np.array(["a", "a", "b", "b"])
    >>> classifier.fit(X, y).predict_topk([[1, 0]], 1).classes.tolist()
    [['a']]
    """

    def __init__(
        self, fields: Mapping[str, Any], random_state: int = 0, n_jobs: int | None = None
    ) -> None:
        self.config = FitConfig(seed=draw_seed(random_state), n_jobs=n_jobs, **fields)

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Learn from counts and labels."""
        classes, class_ids = np.unique(y, return_inverse=True)
        labels = LabelSets.single(class_ids, classes)
        state = fit_long_tail(CountMatrix.from_matrix(X), labels, self.config)
        self.fitted_ = LongTailClassifier.from_state(
            state, candidates=self.config.candidates, C=self.config.C, n_jobs=self.config.n_jobs
        )
        return self

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with their scores."""
        return self.fitted_.predict_topk(X, k)


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
            classifier = ConfiguredClassifier(VARIANTS[name], seed, n_jobs)
            yield seed, measure(name, classifier, data, progress)
