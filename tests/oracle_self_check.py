"""How a fit judges itself on held-out documents, in plain lists, importing nothing of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle_mixture import Mixture
from tests.oracle_scored_classes import Settings

SCORERS = ("nearest centroid", "default feature weights", "no term weights", "learned")
RESIDUALS = ("none", "as learned", "mixture", "mixture with separators")
BANDS = ((1, 1), (2, 5), (6, 20), (21, 100), (101, math.inf))  # smallest and largest size
BUDGETS = (1, 4, 16)  # postings per class, beside the whole query
BONUSES = [n / 10 for n in range(11)]  # of classes without documents, on top of the learned one


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
    mixture: Mixture = field(default_factory=Mixture)


def measure(
    labels: Sequence[Sequence[int]], found: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Figures:
    """R-precision, macro F1, recall among the candidates, and correct labels by size of the class.

    Of a document with n labels the first n candidates are predicted.
    """
    predicted = [row[: len(own)] for own, row in zip(labels, found, strict=True)]
    pairs = [(i, c) for i, own in enumerate(labels) for c in own]
    by_band = []
    for low, high in BANDS:
        band = [c in predicted[i] for i, c in pairs if low <= sizes[c] <= high]
        by_band.append(sum(band) / len(band) if band else -1.0)
    hits = [
        sum(c in row for c in own) / len(own)
        for own, row in zip(labels, predicted, strict=True)
        if own
    ]
    return Figures(
        accuracy=math.fsum(hits) / len(hits),
        macro_f1=macro_f1(labels, predicted),
        recall=sum(c in found[i] for i, c in pairs) / len(pairs),
        by_band=by_band,
        hits=hits,
    )


def macro_f1(labels: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]]) -> float:
    """Mean of 2 hits / (true + predicted) over the classes that are either."""
    rows = list(zip(labels, predicted, strict=True))
    scores = []
    for c in sorted({c for own, row in rows for c in (*own, *row)}):
        hits = sum(c in own and c in row for own, row in rows)
        scores.append(2.0 * hits / sum((c in own) + (c in row) for own, row in rows))
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


def choose_budget(recalls: Sequence[float], best: float, settings: Settings) -> int | None:
    """The fewest postings per class that lose at most a share of what the best budget finds."""
    for budget, recall in zip(BUDGETS, recalls, strict=True):
        if recall >= (1.0 - settings.most_lost_recall) * best:
            return budget
    return None


def first_f1(labels: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> float:
    """Mean over documents of the F1 of the first five candidates."""
    scores = [
        2.0 * sum(c in own for c in row[:5]) / (len(row[:5]) + len(own))
        for own, row in zip(labels, found, strict=True)
    ]
    return math.fsum(scores) / len(scores)


def choose_bonus(figures: Sequence[float], settings: Settings, all_compete: bool = False) -> float:
    """The highest bonus that loses at most a share of the best F1."""
    lost = settings.most_lost_f1_of_all if all_compete else settings.most_lost_f1
    least = (1.0 - lost) * max(figures)
    return max(b for b, figure in zip(BONUSES, figures, strict=True) if figure >= least)


def share_bonus(n_held_out: int, n_empty: int) -> float:
    """-ln of how many times more classes have no document than were held out whole."""
    return -math.log(max(1.0, n_empty / n_held_out))


def choose_residuals(
    figures: Sequence[Figures], settings: Settings, has_several: bool = False
) -> int:
    """The highest sum of accuracy and macro F1 without separators; the first where they tie.

    With separators, if the hits lead by more than one standard error; with several labels, if they
    are behind by no more than that.
    """
    *simpler, separated = figures
    sums = [entry.accuracy + entry.macro_f1 for entry in simpler]
    kept = max(range(len(simpler)), key=sums.__getitem__)
    gains = [a - b for a, b in zip(separated.hits, figures[kept].hits, strict=True)]
    lead, error = math.fsum(gains), math.sqrt(math.fsum(d * d for d in gains))
    if has_several:
        return len(simpler) if error and lead >= -settings.separator_lag * error else kept
    return len(simpler) if lead > settings.separator_lead * error else kept
