"""From scores to probabilities in plain lists and loops, importing nothing of ours.

A map is a list of (log odds, probability) knots; without knots it is the logistic function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests import oracle_score

LARGEST_LOG_ODDS = 50.0
Knots = list[tuple[float, float]]


@dataclass(frozen=True)
class Calibrator:
    """The maps of the best candidate and of the others."""

    top: Knots = field(default_factory=list)
    others: Knots = field(default_factory=list)


def candidate_log_odds(scores: Sequence[float]) -> list[float]:
    """ln(p / (1 - p)) of the softmax over a document's candidates, at most 50 either way."""
    if len(scores) == 1:
        return [LARGEST_LOG_ODDS]
    return [min(max(v, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS) for v in oracle_score.log_odds(scores)]


def fit_calibrator(
    scores: Sequence[Sequence[float]], correct: Sequence[Sequence[bool]], fewest: int
) -> Calibrator:
    """One map for column 0 and one for all others; none with too few documents."""
    if len(scores) < fewest:
        return Calibrator()
    rows = [candidate_log_odds(row) for row in scores]
    top = [(odds[0], hits[0]) for odds, hits in zip(rows, correct, strict=True)]
    others = [
        pair
        for odds, hits in zip(rows, correct, strict=True)
        for pair in zip(odds[1:], hits[1:], strict=True)
    ]
    return Calibrator(fit_map(top), fit_map(others))


def fit_map(pairs: Sequence[tuple[float, bool]]) -> Knots:
    """Isotonic regression by pool adjacent violators; a knot at the mean of each pool.

    Equal log odds are one point from the start (Ayer et al., 1955).
    """
    pools: list[list[tuple[float, bool]]] = []
    for pair in sorted(pairs):
        if pools and pools[-1][-1][0] == pair[0]:
            pools[-1].append(pair)
        else:
            pools.append([pair])
    merged: list[list[tuple[float, bool]]] = []
    for pool in pools:
        merged.append(pool)
        while len(merged) > 1 and frequency(merged[-2]) >= frequency(merged[-1]):
            last = merged.pop()
            merged[-1] = merged[-1] + last
    return [(math.fsum(v for v, _ in pool) / len(pool), frequency(pool)) for pool in merged]


def frequency(pool: Sequence[tuple[float, bool]]) -> float:
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


def calibrate(scores: Sequence[float], calibrator: Calibrator) -> list[float]:
    """Probabilities of a document's candidates: none above the best, together at most 1."""
    odds = candidate_log_odds(scores)
    top = read_map(calibrator.top, odds[0])
    others = [min(read_map(calibrator.others, v), top) for v in odds[1:]]
    total = math.fsum(others)
    if total > 1.0 - top:
        others = [v * (1.0 - top) / total for v in others]
    return [top, *others]
