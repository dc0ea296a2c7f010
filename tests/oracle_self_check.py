"""How a fit judges itself on held-out documents, in plain lists, importing nothing of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle_scored_classes import Settings
from tests.oracle_search import single
from tests.oracle_training import fit_feature_weights

SCORERS = ("nearest centroid", "default feature weights", "no term weights", "learned")
RESIDUALS = ("none", "as learned", "mixture")
BANDS = ((1, 1), (2, 5), (6, 20), (21, 100), (101, math.inf))  # smallest and largest size
BUDGETS = (1, 4, 16)  # postings per class, beside the whole query
Part = tuple[float, float, float]  # score, residual without its bias, bias
Mixture = tuple[float, float]  # how much weights and biases of the residuals count


@dataclass(frozen=True)
class Figures:
    """How one self fares; `hits` is 1 for each correct document."""

    accuracy: float
    macro_f1: float
    recall: float
    by_band: list[float]
    hits: list[float]

    @property
    def row(self) -> list[float]:
        """What is stored: all but the hits."""
        return [self.accuracy, self.macro_f1, self.recall, *self.by_band]


@dataclass(frozen=True)
class SelfCheck:
    """What is kept, and why; `budget` is None for the whole query."""

    scorer_figures: list[Figures] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    residual_figures: list[Figures] = field(default_factory=list)
    scorer: int = SCORERS.index("learned")
    budget: int | None = None
    residuals: int = RESIDUALS.index("as learned")
    mixture: Mixture = (1.0, 1.0)


def measure(
    true_classes: Sequence[int], found: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Figures:
    """Accuracy, macro F1, recall among the candidates, and accuracy by size of the class."""
    rows = list(zip(true_classes, found, strict=True))
    correct = [row[0] == c for c, row in rows]
    by_band = []
    for low, high in BANDS:
        band = [
            hit for hit, c in zip(correct, true_classes, strict=True) if low <= sizes[c] <= high
        ]
        by_band.append(sum(band) / len(band) if band else -1.0)
    return Figures(
        accuracy=sum(correct) / len(correct),
        macro_f1=macro_f1(true_classes, [row[0] for row in found]),
        recall=sum(c in row for c, row in rows) / len(rows),
        by_band=by_band,
        hits=[float(hit) for hit in correct],
    )


def macro_f1(true_classes: Sequence[int], predicted: Sequence[int]) -> float:
    """Mean of 2 hits / (true + predicted) over the classes that are either."""
    rows = list(zip(true_classes, predicted, strict=True))
    scores = []
    for c in sorted({*true_classes, *predicted}):
        hits = sum(true == guess == c for true, guess in rows)
        scores.append(2.0 * hits / (list(true_classes).count(c) + list(predicted).count(c)))
    return math.fsum(scores) / len(scores)


def choose_scorer(figures: Sequence[Figures]) -> int:
    """The simpler one of the largest lead, if it leads by more than one standard error.

    The lead is the sum of the differences d of the hits, its standard error sqrt(sum d^2); the
    macro F1 must not be lower.
    """
    learned, leads = figures[-1], {}
    for row, simpler in enumerate(figures[:-1]):
        gains = [a - b for a, b in zip(simpler.hits, learned.hits, strict=True)]
        lead, error = math.fsum(gains), math.sqrt(math.fsum(d * d for d in gains))
        if lead > error and simpler.macro_f1 >= learned.macro_f1:
            leads[row] = lead
    return max(leads, key=leads.__getitem__, default=len(figures) - 1)


def choose_budget(recalls: Sequence[float], whole: float, settings: Settings) -> int | None:
    """The fewest postings per class that lose at most a share of what the whole query finds."""
    for budget, recall in zip(BUDGETS, recalls, strict=True):
        if recall >= (1.0 - settings.most_lost_recall) * whole:
            return budget
    return None


def choose_residuals(figures: Sequence[Figures]) -> int:
    """The highest sum of accuracy and macro F1; the first where they tie."""
    return max(range(len(figures)), key=lambda row: figures[row].accuracy + figures[row].macro_f1)


def mix(part: Part, mixture: Mixture) -> float:
    """Score, and residual as it counts."""
    return part[0] + mixture[0] * part[1] + mixture[1] * part[2]


def fit_mixture(
    parts: Sequence[Sequence[Part]],
    correct: Sequence[Sequence[bool]],
    settings: Settings,
) -> Mixture:
    """Three weights >= 0 by the listwise softmax loss, brought to 1 for the score.

    On documents whose true class is among the candidates; (1, 1) where these are too few, or the
    score is worth nothing.
    """
    lists = []
    for row, hits in zip(parts, correct, strict=True):
        if any(hits):
            true = hits.index(True)
            lists.append([row[true], *row[:true], *row[true + 1 :]])
    if len(lists) < settings.fewest_mixed or len(parts[0]) < 2:
        return 1.0, 1.0
    score, residual, bias = fit_feature_weights(
        [[[single(v) for v in part] for part in row] for row in lists],
        settings.mixture_decay,
        bounds=[(0.0, None)] * 3,
    )
    return (residual / score, bias / score) if score > 0.0 else (1.0, 1.0)
