"""What a fit learns, in plain dicts and loops, importing nothing of ours.

Feature weights and term weights on lists (a document's true class and its hard negatives),
residuals class by class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import minimize

from tests import oracle_score as scoring
from tests.oracle import solve
from tests.oracle_score import Document, OracleClasses
from tests.oracle_search import SIZE, Scorer, single

Bounds = tuple[float | None, float | None]
FEATURE_BOUNDS: list[Bounds] = [(None, None)] * 6
FEATURE_BOUNDS[SIZE] = (-0.5, 1.0)  # the other weights are free
Features = list[list[float]]  # of a document with each class of its list, true class first


def list_features(
    classes: OracleClasses, left_out: OracleClasses, x: Document, row: Sequence[int]
) -> Features:
    """The six features of a document with each class of its list, left out of its true class."""
    return [
        [single(v) for v in scoring.features(left_out if column == 0 else classes, x, c)]
        for column, c in enumerate(row)
    ]


def feature_score(
    classes: OracleClasses, x: Document, c: int, feature_weights: Sequence[float]
) -> float:
    """The weighted sum of the stored features."""
    features = scoring.features(classes, x, c)
    return sum(single(v) * w for v, w in zip(features, feature_weights, strict=True))


def split_scores(
    left_out: OracleClasses, x: Document, row: Sequence[int], feature_weights: Sequence[float]
) -> scoring.Parts:
    """What each term adds to the score of each class of a list."""
    split = [scoring.contributions(left_out, x, c, feature_weights) for c in row]
    return scoring.Parts(
        [{t: single(v) for t, v in terms.items()} for terms, _ in split],
        [single(constant) for _, constant in split],
    )


def fit_term_weights(parts: Sequence[scoring.Parts]) -> dict[int, float]:
    """Three passes of AdaGrad, in the order of the sample."""
    return scoring.learn_factors(parts, learning_rate=0.1, decay=1e-3, n_epochs=3)


def scale_lists(lists: Sequence[Features]) -> tuple[list[list[list[float]]], list[float]]:
    """Each feature less that of the true class, in standard deviations over all lists."""
    scales = []
    for column in zip(*(features for row in lists for features in row), strict=True):
        mean = math.fsum(column) / len(column)
        variance = math.fsum((v - mean) ** 2 for v in column) / len(column)
        scales.append(math.sqrt(variance) + 1e-9)
    scaled = [
        [
            [single(v - first) / s for v, first, s in zip(features, row[0], scales, strict=True)]
            for features in row
        ]
        for row in lists
    ]
    return scaled, scales


def listwise_gradient(
    weights: Sequence[float],
    lists: Sequence[Features],
    decay: float,
) -> list[float]:
    """Mean over lists of sum_c (softmax_c - [c is true]) * features_c, plus 2 * decay * w."""
    gradient = [2.0 * decay * w for w in weights]
    for row in lists:
        scores = [math.fsum(w * v for w, v in zip(weights, pair, strict=True)) for pair in row]
        for column, share in enumerate(scoring.softmax(scores)):
            for d, v in enumerate(row[column]):
                gradient[d] += (share - (column == 0)) * v / len(lists)
    return gradient


def listwise_hessian(
    weights: Sequence[float],
    lists: Sequence[Features],
    decay: float,
) -> list[list[float]]:
    """Mean over lists of the covariance of the features under the softmax, plus 2 * decay."""
    n = len(weights)
    hessian = [[2.0 * decay * (a == b) for b in range(n)] for a in range(n)]
    for row in lists:
        scores = [math.fsum(w * v for w, v in zip(weights, pair, strict=True)) for pair in row]
        shares = scoring.softmax(scores)
        means = [math.fsum(p * x[a] for p, x in zip(shares, row, strict=True)) for a in range(n)]
        for share, pair in zip(shares, row, strict=True):
            centred = [v - mean for v, mean in zip(pair, means, strict=True)]
            for a in range(n):
                for b in range(n):
                    hessian[a][b] += share * centred[a] * centred[b] / len(lists)
    return hessian


def fit_feature_weights(
    lists: Sequence[Features],
    decay: float = 1e-3,
    bounds: Sequence[Bounds] = FEATURE_BOUNDS,
) -> list[float]:
    """Minimise the listwise softmax loss (Cao et al., 2007) from zero with L-BFGS-B.

    It stops 1e-6 away from the minimum; Newton's method goes on from there, along the weights that
    are not at a bound.
    """
    scaled, scales = scale_lists(lists)
    scaled_bounds = [
        (None if low is None else low * s, None if high is None else high * s)
        for (low, high), s in zip(bounds, scales, strict=True)
    ]
    result = minimize(
        lambda w: (
            scoring.listwise_loss(w, scaled, decay),
            listwise_gradient(w, scaled, decay),
        ),
        [0.0] * len(scales),
        jac=True,
        method="L-BFGS-B",
        bounds=scaled_bounds,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    weights = [float(w) for w in result.x]
    free = [d for d, w in enumerate(weights) if w not in scaled_bounds[d]]
    for _ in range(3):
        gradient = listwise_gradient(weights, scaled, decay)
        hessian = listwise_hessian(weights, scaled, decay)
        step = solve([[hessian[a][b] for b in free] for a in free], [gradient[a] for a in free])
        for d, change in zip(free, step, strict=True):
            weights[d] -= change
    return [w / s for w, s in zip(weights, scales, strict=True)]


def fit_residuals(
    weighted: Sequence[Document],
    labels: Sequence[Sequence[int]],
    negatives: Sequence[Sequence[int]],
    scores: dict[int, list[float]],
    n_classes: int,
    C: float,
    tolerance: float,
    most_passes: int,
    lowest_offset: float,
    smallest_weight: float,
    has_several: bool,
) -> Scorer:
    """A logistic regression for each class: its documents against those that have it in their list.

    `scores` holds the scores of the documents to learn from; a pair's offset is its log odds among
    its list. A class without documents, or a weight below the smallest, counts as 0.
    """
    offsets = {
        i: [single(v) for v in competing_log_odds(row, len(labels[i]), has_several)]
        for i, row in scores.items()
    }
    lists = [[*own, *row] for own, row in zip(labels, negatives, strict=True)]
    weights: list[dict[int, float]] = []
    biases: list[float] = []
    for pairs in scoring.list_pairs(lists, n_classes):
        close = [
            (weighted[i], 1.0 if column < len(labels[i]) else -1.0, offsets[i][column])
            for i, column in pairs
            if i in offsets and (column < len(labels[i]) or offsets[i][column] >= lowest_offset)
        ]
        w, b = {}, 0.0
        if any(side > 0 for _, side, _ in close):
            w, b = fit_logistic(close, C, tolerance * C, most_passes)
        weights.append({t: single(v) for t, v in w.items() if abs(v) >= smallest_weight})
        biases.append(b)
    return Scorer(weights, [0.0] * n_classes, biases)


def competing_log_odds(scores: Sequence[float], n_labels: int, has_several: bool) -> list[float]:
    """A label against the negatives alone; a negative against all others, labels included.

    Where documents have several labels, a label's is at least -1.5, and at most 50.
    """
    negatives = scores[n_labels:]
    of_labels = [
        scoring.log_odds([v, *negatives])[0] if negatives else math.inf for v in scores[:n_labels]
    ]
    if has_several:
        of_labels = [min(max(v, -1.5), 50.0) for v in of_labels]
    alone = len(scores) == 1
    of_all = [math.inf] * len(scores) if alone else scoring.log_odds(scores)
    return of_labels + of_all[n_labels:]


def fit_logistic(
    pairs: Sequence[tuple[Document, float, float]], C: float, tolerance: float, most_passes: int
) -> tuple[dict[int, float], float]:
    """Dual coordinate descent for logistic regression with offsets (Yu, Huang and Lin, 2011).

    Minimises |w|^2 / 2 + b^2 / 2 + C sum ln(1 + exp(-side (offset + w.x + b))). A pair that moves
    less than a tenth of the tolerance rests for one pass.
    """
    w: dict[int, float] = {}
    b = 0.0
    alphas, resting = [0.0] * len(pairs), [False] * len(pairs)
    guesses = [0.0] * len(pairs)
    for _ in range(most_passes):
        largest = 0.0
        for k, (x, side, offset) in enumerate(pairs):
            if resting[k]:
                resting[k] = False
                continue
            score = offset + b + math.fsum(v * w.get(t, 0.0) for t, v in x.items())
            rest = side * score - 2.0 * alphas[k]  # documents have length 1, with the bias 2
            guess = guesses[k] if alphas[k] else min(-rest, 0.0)
            guesses[k], share = minimise_dual(guess, rest, C)
            alpha = C * share
            step = side * (alpha - alphas[k])
            largest = max(largest, abs(step))
            resting[k] = abs(step) < 0.1 * tolerance
            alphas[k] = alpha
            b += step
            for t, v in x.items():
                w[t] = w.get(t, 0.0) + step * v
        if largest < tolerance:
            break
    return w, b


def minimise_dual(r: float, log_odds: float, C: float) -> tuple[float, float]:
    """Solve r + log_odds + 2 C s(r) = 0 for r and s(r), s the logistic function; r is a guess.

    At most 5 steps of Newton's method and 25 halvings, until the left side is below 1e-3.
    """
    low, high = -log_odds - 2.0 * C, -log_odds
    r = min(max(r, low), high)
    for count in range(30):
        share = logistic(r)
        gap = r + log_odds + 2.0 * C * share
        step = gap / (1.0 + 2.0 * C * share * (1.0 - share))
        if abs(gap) < 1e-3:
            return r - step, share - share * (1.0 - share) * step
        low, high = (low, r) if gap > 0.0 else (r, high)
        r -= step
        if count >= 5 or not low <= r <= high:
            r = 0.5 * (low + high)
    return r, logistic(r)


def logistic(v: float) -> float:
    """1 / (1 + exp(-v)), also where the exponential is beyond all numbers."""
    return 1.0 / (1.0 + math.exp(-v)) if v > -700.0 else 0.0
