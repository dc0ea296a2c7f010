"""A support vector machine for each class, in plain dicts and loops, importing nothing of ours.

Its negatives are the documents that have the class in their list, and random ones that stand for
all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests import oracle_score as scoring
from tests.oracle_sampling import GOLDEN, MASK, mix
from tests.oracle_score import Document
from tests.oracle_search import Scorer, single


@dataclass(frozen=True)
class Example:
    """A document of a class, side 1, or a negative, side -1."""

    x: Document
    side: float
    cost: float


def fit_separators(
    weighted: Sequence[Document],
    labels: Sequence[Sequence[int]],
    negatives: Sequence[Sequence[int]],
    drawn: Sequence[int],
    n_documents: int,
    n_classes: int,
    C: float,
    negatives_per_label: int,
    fewest_negatives: int,
    tolerance: float,
    most_passes: int,
    smallest_weight: float,
) -> Scorer:
    """Each class against the documents that list it, and some of those that were drawn.

    There are `n_documents` to learn from in all. A class without documents, or a weight below the
    smallest, counts as 0.
    """
    lists = [[*own, *row] for own, row in zip(labels, negatives, strict=True)]
    weights: list[dict[int, float]] = []
    biases: list[float] = []
    for c, pairs in enumerate(scoring.list_pairs(lists, n_classes)):
        listed = [i for i, _ in pairs]
        n_labels = sum(c in labels[i] for i in listed)
        n_random = negatives_per_label * n_labels + fewest_negatives
        others = [i for i in follow(drawn, c, n_random) if i not in listed]
        stands_for = max(n_documents - len(listed), 1) / max(len(others), 1)
        examples = [Example(weighted[i], 1.0 if c in labels[i] else -1.0, C) for i in listed]
        examples += [Example(weighted[i], -1.0, C * max(stands_for, 1.0)) for i in others]
        w, b = {}, 0.0
        if n_labels:
            w, b = fit_hinge(examples, c, tolerance, most_passes)
        weights.append({t: single(v) for t, v in w.items() if v and abs(v) >= smallest_weight})
        biases.append(b)
    return Scorer(weights, [0.0] * n_classes, biases)


def follow(drawn: Sequence[int], c: int, n: int) -> list[int]:
    """The n documents, or all, that follow each other from the place of a class on."""
    if not drawn:
        return []
    first = mix((c + GOLDEN) & MASK) % len(drawn)
    return [*drawn[first:], *drawn[:first]][:n]


def fit_hinge(
    examples: Sequence[Example], c: int, tolerance: float, most_passes: int
) -> tuple[dict[int, float], float]:
    """Dual coordinate descent for a support vector machine with squared hinge loss.

    Hsieh et al. (2008). Minimises |w|^2 / 2 + b^2 / 2 + sum cost max(0, 1 - side (w.x + b))^2. Each
    pass shuffles the order that the last one left. An example that moves less than a tenth of the
    tolerance rests for one pass.
    """
    w: dict[int, float] = {}
    b = 0.0
    n = len(examples)
    alphas, resting, order = [0.0] * n, [False] * n, list(range(n))
    for count in range(most_passes):
        largest = 0.0
        shuffle(order, c, count)
        for k in order:
            if resting[k]:
                resting[k] = False
                continue
            x, side = examples[k].x, examples[k].side
            penalty = 0.5 / examples[k].cost
            curvature = 2.0 + penalty  # documents have length 1
            score = b + math.fsum(v * w.get(t, 0.0) for t, v in x.items())
            slope = side * score - 1.0 + alphas[k] * penalty
            alpha = max(alphas[k] - slope / curvature, 0.0)
            step = side * (alpha - alphas[k])
            largest = max(largest, abs(step) * curvature)
            resting[k] = abs(step) * curvature < 0.1 * tolerance
            alphas[k] = alpha
            b += step
            for t, v in x.items():
                w[t] = w.get(t, 0.0) + step * v
        if largest < tolerance:
            break
    return w, b


def shuffle(order: list[int], c: int, count: int) -> None:
    """Fisher and Yates' shuffle, from the last place down; draws are hashes."""
    seed = mix((mix((c + GOLDEN) & MASK) + count * GOLDEN) & MASK)
    for k in range(len(order) - 1, 0, -1):
        other = (mix((seed + k * GOLDEN) & MASK) >> 32) * (k + 1) >> 32
        order[k], order[other] = order[other], order[k]
