"""Worth of a taxonomy: answers by nodes beside abstaining, levels, subsets, candidates.

In: a data set and the parents of its classes. Out: rows for the docs. A model is fitted on the
training documents; everything is measured on the test documents, which decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import LongTailClassifier
from longtail.datasets import CountDataset
from longtail.taxonomy import Hierarchy
from longtail_bench.stages import time_call

PRECISIONS = (0.8, 0.9, 0.95)
DEPTHS = (1, 5, 10, 20)  # of the ranking that a chooser sees
N_TIMED = 4_000  # test documents
N_WITHIN = 1_000  # classes of the subset that is timed


@dataclass(frozen=True)
class BackOffRow:
    """Answers at one precision; depths are means over all documents, 0 for no answer.

    `right_depth` counts correct answers alone. The fields that begin with `flat` are those of
    `predict_proba_topk` with `threshold_for`, which answers a class or nothing.
    """

    asked: float
    precision: float
    answered: float
    depth: float
    right_depth: float
    flat_precision: float
    flat_answered: float
    flat_depth: float
    flat_right_depth: float


@dataclass(frozen=True)
class LevelRow:
    """The best node at a depth: accuracy, its mean probability, and what thresholds keep."""

    level: int
    accuracy: float
    probability: float
    kept: dict[float, tuple[float, float]]  # precision and share of documents, by precision asked


class Ancestors:
    """The nodes at or above labels."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        labels = hierarchy.nodes.tolist()
        owners = np.repeat(np.arange(len(labels)), np.diff(hierarchy.indptr)).tolist()
        self._parents: dict[Any, list[Any]] = {label: [] for label in labels}
        for owner, parent in zip(owners, hierarchy.parents.tolist(), strict=True):
            self._parents[labels[owner]].append(labels[parent])
        self._depths = dict(zip(labels, hierarchy.depths.tolist(), strict=True))
        self._known: dict[Any, frozenset[Any]] = {}

    def of(self, label: Any) -> frozenset[Any]:
        """Return a label and its ancestors."""
        if label not in self._known:
            found, waiting = {label}, [label]
            while waiting:
                new = set(self._parents.get(waiting.pop(), ())) - found
                found |= new
                waiting += new
            self._known[label] = frozenset(found)
        return self._known[label]

    def are_right(self, answers: Any, true: Any) -> NDArray[np.bool_]:
        """Return whether each answer is at or above the true label."""
        return np.array([a in self.of(t) for a, t in zip(answers, true, strict=True)], np.bool_)

    def depth(self, label: Any) -> int:
        """Return how far a label is from the top."""
        return int(self._depths.get(label, 1))


def fit(data: CountDataset, hierarchy: Any, seed: int, n_jobs: int) -> LongTailClassifier:
    """Fit on the training documents, with the names of classes as labels."""
    names = np.asarray(data.classes)
    model = LongTailClassifier(random_state=seed, n_jobs=n_jobs)
    model.fit(data.X_train, names[data.y_train], hierarchy=hierarchy)
    return model


def measure_back_off(model: LongTailClassifier, X: Any, true: Any) -> list[BackOffRow]:
    """Compare answers by nodes with abstaining."""
    if model.hierarchy_ is None:
        raise ValueError("the model has no hierarchy.")
    above = Ancestors(model.hierarchy_)
    top = model.predict_proba_topk(X, 1)
    flat_depths = np.array([above.depth(label) for label in top.classes[:, 0].tolist()])
    flat_correct = top.classes[:, 0] == true
    rows = []
    for asked in PRECISIONS:
        found = model.predict_nodes(X, asked)
        correct = above.are_right(found.labels.tolist(), true) & found.valid
        kept = model.threshold_for(asked).keeps(top)[:, 0]
        rows.append(
            BackOffRow(
                asked,
                _share(correct, found.valid),
                float(found.valid.mean()),
                float(found.depths.mean()),
                float((found.depths * correct).mean()),
                _share(flat_correct, kept),
                float(kept.mean()),
                float((flat_depths * kept).mean()),
                float((flat_depths * kept * flat_correct).mean()),
            )
        )
    return rows


def measure_levels(
    model: LongTailClassifier, X: Any, true: Any, levels: tuple[int, ...]
) -> list[LevelRow]:
    """Say how good the best node at each depth is."""
    if model.hierarchy_ is None:
        raise ValueError("the model has no hierarchy.")
    above, rows = Ancestors(model.hierarchy_), []
    for level in levels:
        top = model.predict_proba_topk(X, 1, level=level)
        correct = above.are_right(top.classes[:, 0].tolist(), true)
        kept = {}
        for asked in PRECISIONS:
            keeps = model.threshold_for(asked, level=level).keeps(top)[:, 0]
            kept[asked] = _share(correct, keeps), float(keeps.mean())
        rows.append(LevelRow(level, float(correct.mean()), float(top.scores[:, 0].mean()), kept))
    return rows


def measure_recall(model: LongTailClassifier, X: Any, true: Any) -> dict[int, float]:
    """Return the share of documents whose class is among the first k: what a chooser can reach."""
    classes = model.predict_topk(X, max(DEPTHS)).classes
    hits = classes == np.asarray(true)[:, None]
    return {k: float(hits[:, :k].any(axis=1).mean()) for k in DEPTHS}


def measure_speed(model: LongTailClassifier, X: Any, seed: int = 0) -> dict[str, float]:
    """Return CPU µs for a document of each way to predict: the least of three runs, in turns."""
    sample = X[:N_TIMED]
    allowed = np.random.default_rng(seed).choice(
        model.classes_, min(N_WITHIN, len(model.classes_)), replace=False
    )
    calls: dict[str, Callable[[], Any]] = {
        "topk": lambda: model.predict_topk(sample, 5),
        f"topk within {N_WITHIN:,}": lambda: model.predict_topk(sample, 5, within=allowed),
        "proba": lambda: model.predict_proba_topk(sample, 5),
        f"proba within {N_WITHIN:,}": lambda: model.predict_proba_topk(sample, 5, within=allowed),
    }
    if model.hierarchy_ is not None:
        calls["nodes"] = lambda: model.predict_nodes(sample)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(4):  # the first compiles and fills caches
        for name, call in calls.items():
            times[name].append(time_call(call)[1].cpu / sample.shape[0] * 1e6)
    return {name: min(found[1:]) for name, found in times.items()}


def _share(correct: NDArray[np.bool_], kept: NDArray[np.bool_]) -> float:
    return float(correct[kept].mean()) if kept.any() else float("nan")
