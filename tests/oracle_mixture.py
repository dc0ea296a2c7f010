"""How much features and residuals count by the size of the class, in plain lists.

Imports nothing of ours. A part is what one candidate has: score, six features, the residual without
its bias, the bias, the same of the separator, and ln n_c; where classes have names, what the
document has in common with the name, and 1 for a class without documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.oracle_names import FIRST_NAME_WEIGHTS, add_scorers
from tests.oracle_score import softmax
from tests.oracle_scored_classes import Settings
from tests.oracle_search import Scorer, single

SIZE, N_FEATURES, N_LEARNED, N_PARTS = 2, 6, 4, 10
OF_SEPARATOR = (8, 9)  # weights and bias

Columns = Sequence[tuple[int, int]]  # what may change: value and row of the basis
Table = list[list[float]]


@dataclass(frozen=True)
class Part:
    """One candidate of a document."""

    score: float
    values: list[float]
    log_size: float


@dataclass(frozen=True)
class Mixture:
    """Added to each feature's weight, and factors of the residual's weights and bias and of the
    separator's.

    The first row for a class of one document, the second per unit of ln n_c, the others per unit
    beyond a class of 2, 5 and 20 documents. `names` is added to the weight of a name, and to the
    bonus of a class without documents.
    """

    features: list[list[float]] = field(default_factory=lambda: [[0.0] * 6 for _ in range(5)])
    residuals: list[list[float]] = field(
        default_factory=lambda: [[1.0, 1.0, 0.0, 0.0], *([0.0] * N_LEARNED for _ in range(4))]
    )
    names: list[list[float]] = field(default_factory=lambda: [[0.0, 0.0] for _ in range(5)])

    def mix(self, part: Part) -> float:
        """The final score."""
        factors = self.factors(part.log_size)[: len(part.values)]
        return part.score + math.fsum(v * f for v, f in zip(part.values, factors, strict=True))

    def factors(self, log_size: float) -> list[float]:
        """What counts for a class of this size: six changes, four factors, and two changes."""
        rows = zip(self.features, self.residuals, self.names, strict=True)
        table = [a + b + c for a, b, c in rows]
        basis = size_basis(log_size)
        return [dot(basis, column) for column in zip(*table, strict=True)]

    def scale(self, residuals: Scorer, separators: Scorer, log_sizes: Sequence[float]) -> Scorer:
        """Residual and separator of each class as they count, in one row.

        Nothing stays where no factor is left.
        """
        if not any(any(row) for row in self.residuals):
            return Scorer([{} for _ in log_sizes], [0.0] * len(log_sizes), [0.0] * len(log_sizes))
        factors = [self.factors(size)[N_FEATURES:N_PARTS] for size in log_sizes]
        of_weights, of_biases, *of_separators = zip(*factors, strict=True)
        scaled = scale_rows(residuals, of_weights, of_biases)
        if not any(any(row[2:]) for row in self.residuals):
            return scaled
        total = add_scorers(scaled, scale_rows(separators, *of_separators))
        return replace(
            total, weights=[{t: w for t, w in row.items() if w} for row in total.weights]
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


def scale_rows(rows: Scorer, weights: Sequence[float], biases: Sequence[float]) -> Scorer:
    """Weights, in 32 bits, and biases times a factor for each class."""
    return Scorer(
        [
            {t: single(w * single(factor)) for t, w in row.items()}
            for row, factor in zip(rows.weights, weights, strict=True)
        ],
        rows.length_weights,
        [b * factor for b, factor in zip(rows.biases, biases, strict=True)],
    )


def size_basis(log_size: float) -> list[float]:
    """What the five rows of a mixture are multiplied by."""
    return [1.0, log_size, *(max(log_size - math.log(n), 0.0) for n in (2, 5, 20))]


NO_RESIDUALS = Mixture(residuals=[[0.0] * N_LEARNED for _ in range(5)])


@dataclass(frozen=True)
class LabelLists:
    """Labels with the candidates that they compete with, and all candidates of their documents."""

    lists: list[list[Part]]  # the label first
    shares: list[tuple[float, list[int]]]  # of the loss, and the groups that count once in it
    listed: list[Part]
    varies: bool  # whether classes are of different sizes
    settings: Settings

    def learn(self, first: Sequence[Sequence[float]], columns: Columns) -> Table:
        """What to add to the first scores: values times a weight, by the rows of the basis."""
        n_values, n_lists = len(self.listed[0].values), len(self.lists)
        scales = [deviation([p.values[k] for p in self.listed]) + 1e-9 for k in range(n_values)]
        values = [
            [
                [p.values[k] / scales[k] * size_basis(p.log_size)[row] for k, row in columns]
                for p in candidates_of
            ]
            for candidates_of in self.lists
        ]
        rest = 1.0 - math.fsum(share for share, _ in self.shares)
        weights = [rest / n_lists] * n_lists
        for share, groups in self.shares:
            once = [1.0 / groups.count(g) for g in groups]
            weights = [w + share * v / math.fsum(once) for w, v in zip(weights, once, strict=True)]
        changes = minimise(values, first, weights, self.settings.mixture_prior / n_lists)
        table = [[0.0] * n_values for _ in range(5)]
        for (k, row), change in zip(columns, changes, strict=True):
            table[row][k] = change / scales[k]
        return table


def list_labels(
    parts: Sequence[Sequence[Part]],
    correct: Sequence[Sequence[bool]],
    candidates: Sequence[Sequence[int]],
    settings: Settings,
    size_share: float = 0.0,
) -> LabelLists | None:
    """The labels that are among the candidates; None where these are too few.

    Each against as many of the others as the document with most labels leaves, or half of all.
    """
    q = len(parts[0])
    n_others = q - min(max(1, *(sum(hits) for hits in correct)), q // 2 + 1)
    lists, classes, bands, listed = [], [], [], []
    for row, hits, found in zip(parts, correct, candidates, strict=True):
        others = [part for part, hit in zip(row, hits, strict=True) if not hit]
        if len(others) < n_others or not any(hits):
            continue
        listed += row
        for part, hit, c in zip(row, hits, found, strict=True):
            if hit:
                lists.append([part, *others[:n_others]])
                classes.append(c)
                bands.append(size_band(part.log_size))
    if len(lists) < settings.fewest_mixed or n_others < 1:
        return None
    varies = deviation([part.log_size for part in listed]) >= settings.smallest_spread
    shares = [(settings.macro_share, classes), (size_share, bands)]
    return LabelLists(lists, shares, listed, varies, settings)


def size_band(log_size: float) -> int:
    """Of classes of 1, 2 to 5, 6 to 20, 21 to 100 and more documents."""
    return sum(math.exp(log_size) > most + 0.5 for most in (1, 5, 20, 100))


def fit_mixture(
    parts: Sequence[Sequence[Part]],
    correct: Sequence[Sequence[bool]],
    candidates: Sequence[Sequence[int]],
    settings: Settings,
) -> Mixture:
    """Changes by the weighted softmax loss of the labels, plus a penalty; Newton's method.

    Separators do not count; nothing changes where labels are too few.
    """
    found = list_labels(parts, correct, candidates, settings)
    if found is None:
        return Mixture()
    n_parts = len(parts[0][0].values)
    # The size and the bonus are one number each, a name's weight is a line.
    n_rows = [1 if k == SIZE else 0 if k in OF_SEPARATOR else 5 for k in range(N_PARTS)] + [2, 1]
    columns = [(k, row) for row in range(5) for k in range(n_parts) if row < n_rows[k]]
    if len(found.lists) < settings.fewest_bent:
        columns = [(part, row) for part, row in columns if row < 2]
    if not found.varies:
        columns = [(part, 0) for part in range(n_parts) if part not in (SIZE, *OF_SEPARATOR)]
    first = [[p.score + p.values[6] + p.values[7] for p in row] for row in found.lists]
    table = [row + [0.0] * (N_PARTS + 2 - n_parts) for row in found.learn(first, columns)]
    return Mixture(
        [row[:N_FEATURES] for row in table],
        add_tables(Mixture().residuals, [row[N_FEATURES:N_PARTS] for row in table]),
        [row[N_PARTS:] for row in table],
    )


def add_separators(
    mixture: Mixture,
    parts: Sequence[Sequence[Part]],
    correct: Sequence[Sequence[bool]],
    candidates: Sequence[Sequence[int]],
    settings: Settings,
    several: bool,
) -> Mixture:
    """Other factors of residual and separator, beside one factor of all else.

    By this one, which must not be small, they are divided: the rest of the mixture stays.
    """
    rest = replace(mixture, residuals=[[0.0] * N_LEARNED for _ in range(5)])
    fewer = [
        [
            Part(mixture.mix(p), [rest.mix(p), *p.values[N_FEATURES:N_PARTS]], p.log_size)
            for p in row
        ]
        for row in parts
    ]
    size_share = 0.0 if several else settings.size_share
    found = list_labels(fewer, correct, candidates, settings, size_share)
    if found is None:
        return mixture
    n_rows = 1 if not found.varies else 2 if len(found.lists) < settings.fewest_bent else 5
    most_rows = 1, 5, 5, 5, 2  # of all else, residual and separator with their biases
    columns = [
        (k, row) for row in range(n_rows) for k in range(1 + N_LEARNED) if row < most_rows[k]
    ]
    first = [[p.score for p in row] for row in found.lists]
    table = found.learn(first, columns)
    factor = 1.0 + table[0][0]
    if factor < 0.1:
        return mixture
    changed = add_tables(mixture.residuals, [row[1:] for row in table])
    return replace(mixture, residuals=[[v / factor for v in row] for row in changed])


def add_tables(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Table:
    """The sum, entry by entry."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


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
