"""The additive score in plain dicts and loops: slow, obvious, and importing nothing of ours.

A document is a dict term -> count, a weighted document a dict term -> weight, a class its number of
documents and the sum of its length-normalised documents, a dict term -> sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Document = dict[int, float]
Sums = dict[int, float]


@dataclass
class OracleClasses:
    """Sizes and sums of the classes, and the idf and background share of each term."""

    sizes: list[int]
    sums: list[Sums]
    idf: list[float]
    background: list[float]


def to_documents(rows: Sequence[Sequence[float]]) -> list[Document]:
    """Turn dense rows into dicts without zeros."""
    return [{t: float(v) for t, v in enumerate(row) if v != 0} for row in rows]


def frequency(count: float) -> float:
    """1 + ln(count), and the count itself up to one."""
    return 1.0 + math.log(count) if count > 1 else count


def weigh(document: Document, term_weights: Sequence[float]) -> Document:
    """Weigh each term's log frequency and bring the document to length 1."""
    weights = {t: frequency(v) * term_weights[t] for t, v in document.items()}
    length = math.sqrt(math.fsum(v * v for v in weights.values()))
    return {t: v / length if length > 0 else 0.0 for t, v in weights.items()}


def sum_classes(
    documents: Sequence[Document], y: Sequence[int], n_classes: int
) -> tuple[list[int], list[Sums]]:
    """Count the documents of each class and sum them, each brought to length 1 before any idf."""
    sizes = [0] * n_classes
    sums: list[Sums] = [{} for _ in range(n_classes)]
    for document, c in zip(documents, y, strict=True):
        sizes[c] += 1
        for t, v in weigh(document, [1.0] * (max(document, default=0) + 1)).items():
            sums[c][t] = sums[c].get(t, 0.0) + v
    return sizes, sums


def build_classes(
    documents: Sequence[Document], y: Sequence[int], n_classes: int, n_terms: int
) -> OracleClasses:
    """Sum the classes and take idf and background from all documents."""
    sizes, sums = sum_classes(documents, y, n_classes)
    m = len(documents)
    df = [sum(t in document for document in documents) for t in range(n_terms)]
    totals = [math.fsum(class_sums.get(t, 0.0) for class_sums in sums) for t in range(n_terms)]
    total = math.fsum(totals)
    shares = [v / total if total > 0 else 0.0 for v in totals]
    smallest = min((v for v in shares if v > 0), default=1.0)
    return OracleClasses(
        sizes=sizes,
        sums=sums,
        idf=[math.log((1 + m) / (1 + n)) + 1 for n in df],
        background=[v if v > 0 else smallest for v in shares],
    )


def without_document(
    classes: OracleClasses, documents: Sequence[Document], y: Sequence[int], left_out: int
) -> OracleClasses:
    """Sum the classes of all documents but one; idf and background stay those of all."""
    kept = [i for i in range(len(documents)) if i != left_out]
    sizes, sums = sum_classes(
        [documents[i] for i in kept], [y[i] for i in kept], len(classes.sizes)
    )
    return OracleClasses(sizes, sums, classes.idf, classes.background)


def length_of(classes: OracleClasses, c: int) -> float:
    """|s_c|, each term weighted by its idf, and at least 1e-3."""
    squares = math.fsum((v * classes.idf[t]) ** 2 for t, v in classes.sums[c].items())
    return math.sqrt(max(squares, 1e-6))


def background_penalty(classes: OracleClasses, c: int) -> float:
    """ln(1 + sum_t s_ct / 100)."""
    return math.log(1 + math.fsum(classes.sums[c].values()) / 100)


def log_size(classes: OracleClasses, c: int) -> float:
    """ln(n_c); a class without documents counts as half a document."""
    return math.log(max(classes.sizes[c], 0.5))


def features(classes: OracleClasses, x: Document, c: int) -> list[float]:
    """The six features of a weighted document and a class."""
    idf, s = classes.idf, classes.sums[c]
    shared = [t for t in x if s.get(t, 0.0) > 0]
    product = math.fsum(x[t] * idf[t] * s[t] for t in shared)
    length = length_of(classes, c)
    return [
        product / length,
        math.fsum(x[t] * math.log(1 + s[t] / (100 * classes.background[t])) for t in shared)
        - math.fsum(x.values()) * background_penalty(classes, c),
        log_size(classes, c),
        math.fsum(x[t] * idf[t] for t in shared),
        product / length**0.8,
        math.fsum(x[t] * idf[t] * s[t] / (s[t] + 0.3) for t in shared),
    ]


def score(classes: OracleClasses, x: Document, c: int, weights: Sequence[float]) -> float:
    """The weighted sum of the features."""
    return math.fsum(w * v for w, v in zip(weights, features(classes, x, c), strict=True))


def contributions(
    classes: OracleClasses, x: Document, c: int, weights: Sequence[float]
) -> tuple[dict[int, float], float]:
    """What each term adds to a score, and what no term decides.

    Each feature but the size is a sum over the terms, so a term's part is the score of a document
    with that term alone, at the same weight.
    """
    constant = weights[2] * log_size(classes, c)
    return {t: score(classes, {t: v}, c, weights) - constant for t, v in x.items()}, constant


def highest(
    x: Document,
    values: Sequence[dict[int, float]],
    slopes: Sequence[float],
    constants: Sequence[float],
    q: int,
    own: int = -1,
) -> list[tuple[int, float]]:
    """The q classes of highest score; ties go to the lower class number."""
    scores = []
    for c, class_values in enumerate(values):
        if c != own:
            total = constants[c] + slopes[c] * math.fsum(x.values())
            total += math.fsum(x[t] * class_values.get(t, 0.0) for t in x)
            scores.append((c, total))
    return sorted(scores, key=lambda pair: (-pair[1], pair[0]))[:q]


def softmax(scores: Sequence[float]) -> list[float]:
    """Shares of the exponentials."""
    top = max(scores)
    exponentials = [math.exp(v - top) for v in scores]
    return [v / math.fsum(exponentials) for v in exponentials]


def listwise_loss(
    weights: Sequence[float], rows: Sequence[Sequence[Sequence[float]]], decay: float
) -> float:
    """Mean of -ln softmax(features . w)[0], plus decay * |w|^2."""
    losses = []
    for row in rows:
        scores = [math.fsum(w * v for w, v in zip(weights, pair, strict=True)) for pair in row]
        losses.append(-math.log(softmax(scores)[0]))
    return math.fsum(losses) / len(rows) + decay * math.fsum(w * w for w in weights)


@dataclass
class Parts:
    """A document's scores split by term: `terms[k][t]` and `constants[k]` for column k."""

    terms: list[dict[int, float]]
    constants: list[float]


def factored_scores(parts: Parts, factors: dict[int, float]) -> list[float]:
    """The scores of a document's classes where each term counts by its factor."""
    return [
        constant + math.fsum(factors.get(t, 1.0) * v for t, v in terms.items())
        for terms, constant in zip(parts.terms, parts.constants, strict=True)
    ]


def factored_loss(documents: Sequence[Parts], factors: dict[int, float]) -> float:
    """Mean softmax loss of the first column."""
    losses = [-math.log(softmax(factored_scores(parts, factors))[0]) for parts in documents]
    return math.fsum(losses) / len(losses)


def learn_factors(
    documents: Sequence[Parts], learning_rate: float, decay: float, n_epochs: int
) -> dict[int, float]:
    """AdaGrad on the logarithms, document by document; accumulators start at 0.01."""
    logs: dict[int, float] = {}
    squares: dict[int, float] = {}
    for _ in range(n_epochs):
        for parts in documents:
            factors = {t: math.exp(v) for t, v in logs.items()}
            shares = softmax(factored_scores(parts, factors))
            for t in parts.terms[0]:
                gradient = math.fsum(
                    (share - (column == 0)) * parts.terms[column][t] * factors.get(t, 1.0)
                    for column, share in enumerate(shares)
                )
                gradient += decay * logs.get(t, 0.0)
                squares[t] = squares.get(t, 0.01) + gradient**2
                logs[t] = logs.get(t, 0.0) - learning_rate * gradient / math.sqrt(squares[t])
    return {t: math.exp(v) for t, v in logs.items()}


def log_odds(scores: Sequence[float]) -> list[float]:
    """Each score minus the log-sum-exp of the others."""
    odds = []
    for column, own in enumerate(scores):
        others = [v for other, v in enumerate(scores) if other != column]
        top = max(others)
        odds.append(own - top - math.log(math.fsum(math.exp(v - top) for v in others)))
    return odds


def list_pairs(classes: Sequence[Sequence[int]], n_classes: int) -> list[list[tuple[int, int]]]:
    """For each class the (row, column) places that hold it, in reading order."""
    return [
        [(i, k) for i, row in enumerate(classes) for k, v in enumerate(row) if v == c]
        for c in range(n_classes)
    ]


def logistic_objective(
    w: dict[int, float],
    b: float,
    documents: Sequence[Document],
    signs: Sequence[float],
    offsets: Sequence[float],
    C: float,
) -> float:
    """1/2 |w|^2 + 1/2 b^2 + C sum ln(1 + exp(-y (offset + w.x + b)))."""
    loss = 0.0
    for x, sign, offset in zip(documents, signs, offsets, strict=True):
        margin = sign * (offset + b + math.fsum(v * w.get(t, 0.0) for t, v in x.items()))
        loss += max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))
    return 0.5 * math.fsum(v * v for v in w.values()) + 0.5 * b * b + C * loss
