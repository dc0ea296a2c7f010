"""How much features and residuals count by the size of the class, in plain lists.

Imports nothing of ours. A part is what one candidate has: score, six features, the residual without
its bias, the bias, and ln n_c; where classes have names, what the document has in common with the
name, and 1 for a class without documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.oracle_names import FIRST_NAME_WEIGHTS
from tests.oracle_score import softmax
from tests.oracle_scored_classes import Settings
from tests.oracle_search import Scorer, single

SIZE, N_FEATURES, N_PARTS = 2, 6, 8


@dataclass(frozen=True)
class Part:
    """One candidate of a document."""

    score: float
    values: list[float]
    log_size: float


@dataclass(frozen=True)
class Mixture:
    """Added to each feature's weight, and factors of the residual's weights and bias.

    The first row for a class of one document, the second per unit of ln n_c, the others per unit
    beyond a class of 2, 5 and 20 documents. `names` is added to the weight of a name, and to the
    bonus of a class without documents.
    """

    features: list[list[float]] = field(default_factory=lambda: [[0.0] * 6 for _ in range(5)])
    residuals: list[list[float]] = field(
        default_factory=lambda: [[1.0, 1.0], *([0.0, 0.0] for _ in range(4))]
    )
    names: list[list[float]] = field(default_factory=lambda: [[0.0, 0.0] for _ in range(5)])

    def mix(self, part: Part) -> float:
        """The final score."""
        factors = self.factors(part.log_size)[: len(part.values)]
        return part.score + math.fsum(v * f for v, f in zip(part.values, factors, strict=True))

    def factors(self, log_size: float) -> list[float]:
        """What counts for a class of this size: six changes, two factors, and two changes."""
        rows = zip(self.features, self.residuals, self.names, strict=True)
        table = [a + b + c for a, b, c in rows]
        basis = size_basis(log_size)
        return [dot(basis, column) for column in zip(*table, strict=True)]

    def scale(self, residuals: Scorer, log_sizes: Sequence[float]) -> Scorer:
        """The residual of each class as it counts; nothing stays where no factor is left."""
        if not any(any(row) for row in self.residuals):
            return Scorer([{} for _ in log_sizes], [0.0] * len(log_sizes), [0.0] * len(log_sizes))
        factors = [self.factors(size)[N_FEATURES:N_PARTS] for size in log_sizes]
        return Scorer(
            [
                {t: single(w * single(weight)) for t, w in row.items()}
                for row, (weight, _) in zip(residuals.weights, factors, strict=True)
            ],
            residuals.length_weights,
            [b * bias for b, (_, bias) in zip(residuals.biases, factors, strict=True)],
        )

    def feature_weights(self, learned: Sequence[float], log_size: float) -> list[float]:
        """Of the final ranking, for a class of this size."""
        changes = self.factors(log_size)[:N_FEATURES]
        return [w + change for w, change in zip(learned, changes, strict=True)]

    def raise_bonus(self, more: float) -> Mixture:
        """The same with another bonus of classes without documents."""
        weight, bonus = self.names[0]
        return replace(self, names=[[weight, bonus + more], *self.names[1:]])

    @property
    def name_weights(self) -> list[float]:
        """Of a name, per unit of ln n_c, and the bonus."""
        added = self.names[0][0], self.names[1][0], self.names[0][1]
        return [first + more for first, more in zip(FIRST_NAME_WEIGHTS, added, strict=True)]


def size_basis(log_size: float) -> list[float]:
    """What the five rows of a mixture are multiplied by."""
    return [1.0, log_size, *(max(log_size - math.log(n), 0.0) for n in (2, 5, 20))]


NO_RESIDUALS = Mixture(residuals=[[0.0, 0.0] for _ in range(5)])


def fit_mixture(
    parts: Sequence[Sequence[Part]],
    correct: Sequence[Sequence[bool]],
    candidates: Sequence[Sequence[int]],
    settings: Settings,
) -> Mixture:
    """Changes by the weighted softmax loss of the labels, plus a penalty; Newton's method.

    On the labels that are among the candidates, each against as many of the others as the document
    with most labels leaves, or half of all; nothing changes where these are too few.
    """
    q = len(parts[0])
    n_others = q - min(max(1, *(sum(hits) for hits in correct)), q // 2 + 1)
    lists, classes, listed = [], [], []
    for row, hits, found in zip(parts, correct, candidates, strict=True):
        others = [part for part, hit in zip(row, hits, strict=True) if not hit]
        if len(others) < n_others or not any(hits):
            continue
        listed += row
        for part, hit, c in zip(row, hits, found, strict=True):
            if hit:
                lists.append([part, *others[:n_others]])
                classes.append(c)
    if len(lists) < settings.fewest_mixed or n_others < 1:
        return Mixture()
    n_parts = len(parts[0][0].values)
    # The size and the bonus are one number each, a name's weight is a line.
    n_rows = [1 if k == SIZE else 5 for k in range(N_PARTS)] + [2, 1]
    columns = [(k, row) for row in range(5) for k in range(n_parts) if row < n_rows[k]]
    if len(lists) < settings.fewest_bent:
        columns = [(part, row) for part, row in columns if row < 2]
    if deviation([part.log_size for part in listed]) < settings.smallest_spread:
        columns = [(part, 0) for part in range(n_parts) if part != SIZE]
    scales = [deviation([part.values[k] for part in listed]) + 1e-9 for k in range(n_parts)]
    values = [
        [
            [p.values[k] / scales[k] * size_basis(p.log_size)[row] for k, row in columns]
            for p in candidates_of
        ]
        for candidates_of in lists
    ]
    scores = [[p.score + p.values[6] + p.values[7] for p in row] for row in lists]
    once = [1.0 / classes.count(c) for c in classes]
    share = settings.macro_share
    weights = [(1 - share) / len(lists) + share * v / math.fsum(once) for v in once]
    changes = minimise(values, scores, weights, settings.mixture_prior / len(lists))
    table = [[0.0] * (N_PARTS + 2) for _ in range(5)]
    for (k, row), change in zip(columns, changes, strict=True):
        table[row][k] = change / scales[k]
    return Mixture(
        [row[:N_FEATURES] for row in table],
        [[1.0 + table[0][6], 1.0 + table[0][7]], *(row[N_FEATURES:N_PARTS] for row in table[1:])],
        [row[N_PARTS:] for row in table],
    )


def deviation(values: Sequence[float]) -> float:
    """The standard deviation."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def minimise(
    lists: Sequence[Sequence[Sequence[float]]],
    scores: Sequence[Sequence[float]],
    weights: Sequence[float],
    decay: float,
) -> list[float]:
    """Newton's method until nothing moves; a step that does not lower the loss is halved."""
    n = len(lists[0][0])

    def shares_of(changes: Sequence[float]) -> list[list[float]]:
        return [
            softmax([s + dot(changes, x) for s, x in zip(own, row, strict=True)])
            for own, row in zip(scores, lists, strict=True)
        ]

    def loss(changes: Sequence[float]) -> float:
        losses = [-w * math.log(row[0]) for w, row in zip(weights, shares_of(changes), strict=True)]
        return math.fsum(losses) + decay * dot(changes, changes)

    changes = [0.0] * n
    for _ in range(100):
        gradient = [2 * decay * v for v in changes]
        hessian = [[2 * decay * (a == b) for b in range(n)] for a in range(n)]
        for row, shares, w in zip(lists, shares_of(changes), weights, strict=True):
            means = [
                math.fsum(p * x[a] for p, x in zip(shares, row, strict=True)) for a in range(n)
            ]
            for a in range(n):
                gradient[a] += w * (means[a] - row[0][a])
                for b in range(a + 1):
                    hessian[a][b] += w * sum(
                        p * (x[a] - means[a]) * (x[b] - means[b])
                        for p, x in zip(shares, row, strict=True)
                    )
        hessian = [[hessian[max(a, b)][min(a, b)] for b in range(n)] for a in range(n)]
        step, before = solve(hessian, gradient), loss(changes)
        if max(abs(v) for v in step) < 1e-12:
            break
        while loss([c - v for c, v in zip(changes, step, strict=True)]) > before + 1e-14:
            step = [v / 2 for v in step]
        changes = [c - v for c, v in zip(changes, step, strict=True)]
    return changes


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The inner product."""
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gauss' elimination; the matrix is positive definite."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    n = len(rows)
    for a in range(n):
        for b in range(a + 1, n):
            factor = rows[b][a] / rows[a][a]
            rows[b] = [y - factor * x for x, y in zip(rows[a], rows[b], strict=True)]
    solution = [0.0] * n
    for a in reversed(range(n)):
        rest = math.fsum(rows[a][b] * solution[b] for b in range(a + 1, n))
        solution[a] = (rows[a][n] - rest) / rows[a][a]
    return solution
