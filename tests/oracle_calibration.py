"""From scores to probabilities in plain lists and loops, importing nothing of ours.

A map is a list of (log odds, probability) knots; without knots it is the logistic function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tests import oracle_score

LARGEST_LOG_ODDS = 50.0
Knots = list[tuple[float, float]]
Point = tuple[float, bool]  # log odds, and whether the candidate is correct


@dataclass(frozen=True)
class Calibrator:
    """The maps of the best candidate and of the others; the points of the best, highest first."""

    top: Knots = field(default_factory=list)
    others: Knots = field(default_factory=list)
    held_out: list[Point] = field(default_factory=list)
    marginal: bool = False
    likely: list[Point] = field(default_factory=list)  # marginals of at least 0.05, highest first
    short_length: int = 1  # a document of fewer terms is short
    short_slope: float = 0.0


def candidate_log_odds(scores: Sequence[float]) -> list[float]:
    """ln(p / (1 - p)) of the softmax over a document's candidates, at most 50 either way."""
    if len(scores) == 1:
        return [LARGEST_LOG_ODDS]
    return [min(max(v, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS) for v in oracle_score.log_odds(scores)]


def label_log_odds(scores: Sequence[float]) -> list[float]:
    """Each score less the log-sum-exp of those after the fifth, or of the second half of few."""
    if len(scores) == 1:
        return [LARGEST_LOG_ODDS]
    rest = scores[min(5, len(scores) // 2) :]
    tail = rest[0] + math.log(math.fsum(math.exp(v - rest[0]) for v in rest))
    return [min(max(v - tail, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS) for v in scores]


def fit_calibrator(
    scores: Sequence[Sequence[float]],
    correct: Sequence[Sequence[bool]],
    fewest: int,
    marginal: bool,
) -> Calibrator:
    """One map for column 0 and one for all others; none with too few documents."""
    if len(scores) < fewest:
        return Calibrator(marginal=marginal)
    odds = label_log_odds if marginal else candidate_log_odds
    rows = [
        list(zip(odds(row), hits, strict=True)) for row, hits in zip(scores, correct, strict=True)
    ]
    top = [row[0] for row in rows]
    others = [point for row in rows for point in row[1:]]
    held_out = sorted(top, key=lambda point: -point[0])
    fitted = Calibrator(fit_map(top), fit_map(others), held_out, marginal)
    if not marginal:
        return fitted
    points = [
        point
        for row, hits in zip(scores, correct, strict=True)
        for point in zip(calibrate(row, fitted), hits, strict=True)
        if point[0] >= 0.05
    ]
    return replace(fitted, likely=sorted(points, key=lambda point: -point[0]))


def fit_map(points: Sequence[Point]) -> Knots:
    """Isotonic regression by pool adjacent violators; a knot at the mean of each pool.

    Equal log odds are one point from the start (Ayer et al., 1955).
    """
    pools: list[list[Point]] = []
    for point in sorted(points):
        if pools and pools[-1][-1][0] == point[0]:
            pools[-1].append(point)
        else:
            pools.append([point])
    merged: list[list[Point]] = []
    for pool in pools:
        merged.append(pool)
        while len(merged) > 1 and frequency(merged[-2]) >= frequency(merged[-1]):
            last = merged.pop()
            merged[-1] = merged[-1] + last
    return [(math.fsum(v for v, _ in pool) / len(pool), frequency(pool)) for pool in merged]


def frequency(pool: Sequence[Point]) -> float:
    """Share of hits."""
    return sum(hit for _, hit in pool) / len(pool)


def read_map(knots: Knots, odds: float) -> float:
    """Interpolate between knots, level beyond them."""
    if not knots:
        return 1.0 / (1.0 + math.exp(-odds))
    if odds <= knots[0][0]:
        return knots[0][1]
    for (x0, y0), (x1, y1) in pairwise(knots):
        if odds < x1:
            return y0 + (y1 - y0) * (odds - x0) / (x1 - x0)
    return knots[-1][1]


def shortness(length: int, short_length: int) -> float:
    """ln of how many times shorter a document is than one that is not short; 0 if it is not."""
    return max(0.0, math.log(short_length / max(length, 1)))


def doubt(p: float, length: int, short_length: int, slope: float) -> float:
    """The probability whose log odds are lower by slope times shortness; at most 0.999 before."""
    loss = slope * shortness(length, short_length)
    if loss == 0.0:
        return p
    p = min(p, 0.999)
    odds = p / (1.0 - p) * math.exp(-loss)
    return odds / (1.0 + odds)


def learn_shortness(
    calibrator: Calibrator,
    lengths: Sequence[int],
    truncated: Sequence[tuple[int, Sequence[float], bool]],
) -> Calibrator:
    """The slope under which so many truncated documents are correct as are expected.

    Each counts by its shortness: that is where the likelihood has its maximum. `truncated` has the
    length, the scores and whether the best candidate is correct of each.
    """
    if not calibrator.top:
        return calibrator
    short = max(sorted(lengths)[int(0.1 * (len(lengths) - 1))], 1)

    def surplus(slope: float) -> float:
        return math.fsum(
            shortness(length, short)
            * (hit - doubt(calibrate(row, calibrator)[0], length, short, slope))
            for length, row, hit in truncated
        )

    low, high = 0.0, 4.0
    if surplus(1e-300) >= 0.0:
        return replace(calibrator, short_length=short)
    while high - low > 1e-11:
        middle = (low + high) / 2.0
        low, high = (low, middle) if surplus(middle) >= 0.0 else (middle, high)
    return replace(calibrator, short_length=short, short_slope=low)


def calibrate(
    scores: Sequence[float], calibrator: Calibrator, length: int | None = None
) -> list[float]:
    """Probabilities of a document's candidates: none above the best, together at most 1.

    Marginals are not brought to a sum of 1.
    """
    odds = label_log_odds(scores) if calibrator.marginal else candidate_log_odds(scores)
    top = read_map(calibrator.top, odds[0])
    others = [read_map(calibrator.others, v) for v in odds[1:]]
    if length is not None:
        short, slope = calibrator.short_length, calibrator.short_slope
        top = doubt(top, length, short, slope)
        if calibrator.marginal:
            others = [doubt(v, length, short, slope) for v in others]
    others = [min(v, top) for v in others]
    total = math.fsum(others)
    if calibrator.marginal:
        return [top, *others]
    if total > 1.0 - top:
        others = [v * (1.0 - top) / total for v in others]
    return [top, *others]


def choose_set(probabilities: Sequence[float], max_labels: int | None = None) -> int:
    """The number of labels, one at least, of the highest 2 sum of the chosen / (k + sum of all)."""
    total = math.fsum(probabilities)
    most = len(probabilities[:max_labels])
    sizes = [1, *(k for k in range(2, most + 1) if probabilities[k - 1] >= 0.01)]
    return max(sizes, key=lambda k: (2.0 * math.fsum(probabilities[:k]) / (k + total), -k))
