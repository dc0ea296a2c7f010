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
    """How one self fares; `hits` is what each correct document counts."""

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


def count_documents(true_classes: Sequence[int], labels: Sequence[int]) -> list[float]:
    """n / (n - 1): of n documents of a class n - 1 can be held out, and stand for all."""
    sizes = [list(labels).count(c) for c in true_classes]
    return [n / (n - 1) for n in sizes]


def measure(
    true_classes: Sequence[int],
    found: Sequence[Sequence[int]],
    sizes: Sequence[int],
    counts: Sequence[float],
) -> Figures:
    """Accuracy, macro F1, recall among the candidates, and accuracy by size of the class."""
    rows = list(zip(true_classes, found, counts, strict=True))
    correct = [row[0] == c for c, row, _ in rows]
    by_band = []
    for low, high in BANDS:
        band = [
            hit for hit, c in zip(correct, true_classes, strict=True) if low <= sizes[c] <= high
        ]
        by_band.append(sum(band) / len(band) if band else -1.0)
    total = math.fsum(counts)
    return Figures(
        accuracy=math.fsum(n for hit, n in zip(correct, counts, strict=True) if hit) / total,
        macro_f1=macro_f1(true_classes, [row[0] for row in found], counts),
        recall=math.fsum(n for c, row, n in rows if c in row) / total,
        by_band=by_band,
        hits=[hit * n for hit, n in zip(correct, counts, strict=True)],
    )


def macro_f1(
    true_classes: Sequence[int], predicted: Sequence[int], counts: Sequence[float]
) -> float:
    """Mean over true classes of 2 hits / (true + predicted), each as its documents on average."""
    rows = list(zip(true_classes, predicted, counts, strict=True))
    scores, weights = [], []
    for c in sorted(set(true_classes)):
        actual = [n for true, _, n in rows if true == c]
        claimed = [n for _, guess, n in rows if guess == c]
        hits = [n for true, guess, n in rows if true == guess == c]
        scores.append(2.0 * math.fsum(hits) / math.fsum(actual + claimed))
        weights.append(math.fsum(actual) / len(actual))
    products = [score * weight for score, weight in zip(scores, weights, strict=True)]
    return math.fsum(products) / math.fsum(weights)


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
    counts: Sequence[float],
    settings: Settings,
) -> Mixture:
    """Three weights >= 0 by the listwise softmax loss, brought to 1 for the score.

    On documents whose true class is among the candidates; (1, 1) where these are too few, or the
    score is worth nothing.
    """
    lists, list_counts = [], []
    for row, hits, count in zip(parts, correct, counts, strict=True):
        if any(hits):
            true = hits.index(True)
            lists.append([row[true], *row[:true], *row[true + 1 :]])
            list_counts.append(count)
    if len(lists) < settings.fewest_mixed or len(parts[0]) < 2:
        return 1.0, 1.0
    score, residual, bias = fit_feature_weights(
        [[[single(v) for v in part] for part in row] for row in lists],
        settings.mixture_decay,
        bounds=[(0.0, None)] * 3,
        counts=list_counts,
    )
    return (residual / score, bias / score) if score > 0.0 else (1.0, 1.0)
