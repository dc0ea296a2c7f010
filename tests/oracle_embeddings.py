"""Embeddings in plain Python: fixed point, sums by class, signs, what meaning adds to a score."""

from __future__ import annotations

import math
from collections.abc import Sequence

ONE = 4096

Vector = Sequence[float]


def to_unit(vector: Vector) -> list[int]:
    """Return a vector of length 1 in units of 1 / 4096, rounded to even; zeros stay zeros."""
    largest = max(abs(x) for x in vector)
    if largest == 0:
        return [0] * len(vector)
    length = math.sqrt(sum((x / largest) ** 2 for x in vector))
    return [round(x / largest * (ONE / length)) for x in vector]


def sum_by_class(
    units: Sequence[Sequence[int]], labels: Sequence[int], n_classes: int
) -> list[list[int]]:
    """Return the sum of the vectors of each class."""
    sums = [[0] * len(units[0]) for _ in range(n_classes)]
    for unit, label in zip(units, labels, strict=True):
        sums[label] = [a + b for a, b in zip(sums[label], unit, strict=True)]
    return sums


def cosine(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the product of two unit vectors in fixed point."""
    return sum(x * y for x, y in zip(a, b, strict=True)) / ONE**2


def differing_signs(a: Sequence[int], b: Sequence[int]) -> int:
    """Return in how many coordinates one is above zero and the other is not."""
    return sum((x > 0) != (y > 0) for x, y in zip(a, b, strict=True))


def weigh(rows: Sequence[float], log_size: float, bends: Sequence[float]) -> float:
    """Return a weight by the size of the class: a line that bends."""
    bent = [slope * max(log_size - bend, 0.0) for slope, bend in zip(rows[2:], bends, strict=True)]
    return rows[0] + rows[1] * log_size + sum(bent)


def score_mean(
    document: Sequence[int],
    class_sum: Sequence[int],
    size: int,
    weights: Sequence[Sequence[float]],
    bends: Sequence[float],
) -> float:
    """Return what the mean of a class adds to the score of a document."""
    mean = to_unit(class_sum)
    if not any(mean) or not any(document):
        return 0.0
    log_size = math.log(max(size, 0.5))
    of_cosine, of_mean = ([row[part] for row in weights] for part in (0, 1))
    added = weigh(of_cosine, log_size, bends) * cosine(document, mean)
    return added + weigh(of_mean, log_size, bends)


def find_center(units: Sequence[Sequence[int]]) -> list[int]:
    """Return the mean of the vectors that are none of zeros."""
    there = [unit for unit in units if any(unit)]
    return [round(sum(column) / len(there)) for column in zip(*there, strict=True)]


def move_to(center: Sequence[int], unit: Sequence[int]) -> list[int]:
    """Return the direction of a vector as seen from a centre."""
    if not any(unit):
        return [0] * len(unit)
    return to_unit([x - c for x, c in zip(unit, center, strict=True)])


def score_name(
    document: Sequence[int],
    name: Sequence[int],
    size: int,
    weights: Sequence[Sequence[float]],
    bends: Sequence[float],
    centers: Sequence[Sequence[int]],
) -> float:
    """Return what the name of a class adds to the score of a document."""
    near = cosine(move_to(centers[0], document), move_to(centers[1], name))
    log_size = math.log(max(size, 0.5))
    of_name, alone = ([row[part] for row in weights] for part in (2, 3))
    added = weigh(of_name, log_size, bends) * near
    return added + (weigh(alone, log_size, bends) * near if size == 0 else 0.0)
