"""The paper in plain dicts and loops: slow, obvious, and importing nothing of ours.

A document is a dict term -> count; a corpus a list of them with a list of class numbers. Numbered
features and equations are those of the paper; where it is open, the reading is the one in the
docstrings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.oracle_sampling import draw_pairs

Document = dict[int, float]


@dataclass
class OracleCorpus:
    """Everything Table 1 needs, by its own names."""

    m: int
    n_classes: int
    df: dict[int, int]
    F: dict[int, float]
    l_S: float
    y_t: list[dict[int, float]]
    length: list[float]
    centroid: list[dict[int, float]]


def to_documents(rows: Sequence[Sequence[float]]) -> list[Document]:
    """Turn dense rows into dicts without zeros."""
    return [{t: float(v) for t, v in enumerate(row) if v != 0} for row in rows]


def log_frequency(count: float) -> float:
    """1 + ln(count), and the count itself below one."""
    return 1.0 + math.log(count) if count > 1 else count


def build_corpus(
    documents: list[Document],
    y: Sequence[int],
    n_classes: int,
    frequency: Callable[[float], float] = lambda count: count,
) -> OracleCorpus:
    """Sum everything over documents and classes.

    The centroid of a class is the mean of its length-normalised documents; the idf weighs it
    afterwards.
    """
    df: dict[int, int] = {}
    F: dict[int, float] = {}
    y_t: list[dict[int, float]] = [{} for _ in range(n_classes)]
    centroid: list[dict[int, float]] = [{} for _ in range(n_classes)]
    sizes = [0] * n_classes
    for document, c in zip(documents, y, strict=True):
        sizes[c] += 1
        norm = math.sqrt(math.fsum(frequency(v) ** 2 for v in document.values()))
        for t, v in document.items():
            df[t] = df.get(t, 0) + 1
            F[t] = F.get(t, 0.0) + v
            y_t[c][t] = y_t[c].get(t, 0.0) + v
            centroid[c][t] = centroid[c].get(t, 0.0) + frequency(v) / norm
    for c in range(n_classes):
        centroid[c] = {t: v / sizes[c] for t, v in centroid[c].items()}
    return OracleCorpus(
        m=len(documents),
        n_classes=n_classes,
        df=df,
        F=F,
        l_S=math.fsum(F.values()),
        y_t=y_t,
        length=[math.fsum(counts.values()) for counts in y_t],
        centroid=centroid,
    )


def idf(corpus: OracleCorpus, t: int) -> float:
    """I_t = ln((1 + m) / (1 + df_t)) + 1."""
    return math.log((1 + corpus.m) / (1 + corpus.df.get(t, 0))) + 1


def cosine(
    corpus: OracleCorpus,
    document: Document,
    c: int,
    frequency: Callable[[float], float] = lambda count: count,
) -> float:
    """Cosine of the tf-idf weighted document and centroid; 0 where either is empty."""
    x = {t: frequency(v) * idf(corpus, t) for t, v in document.items()}
    z = {t: v * idf(corpus, t) for t, v in corpus.centroid[c].items()}
    product = math.fsum(x[t] * z[t] for t in x if t in z)
    norms = math.sqrt(math.fsum(v * v for v in x.values()) * math.fsum(v * v for v in z.values()))
    return product / norms if norms > 0 else 0.0


def features(corpus: OracleCorpus, document: Document, c: int) -> list[float]:
    """The ten features of Table 1."""
    y_t, length = corpus.y_t[c], corpus.length[c]
    shared = [t for t in document if t in y_t]
    average = corpus.l_S / corpus.n_classes

    def total(value: Callable[[int], float]) -> float:
        return math.fsum(value(t) for t in shared)

    return [
        total(lambda t: math.log(1 + y_t[t])),
        total(lambda t: math.log(1 + corpus.l_S / corpus.F[t])),
        total(lambda t: idf(corpus, t)),
        total(lambda t: y_t[t] / length * idf(corpus, t)),
        total(lambda t: math.log(1 + y_t[t] / length)),
        total(lambda t: math.log(1 + y_t[t] / length * idf(corpus, t))),
        total(lambda t: math.log(1 + y_t[t] / length * corpus.l_S / corpus.F[t])),
        total(lambda t: 1.0),
        1 - cosine(corpus, document, c),
        total(lambda t: idf(corpus, t) * 2 * y_t[t] / (y_t[t] + 0.25 + 0.75 * length / average)),
    ]


def transform(
    phi: list[list[list[float]]], y: Sequence[int], adversaries: list[list[int]]
) -> tuple[list[list[float]], list[int]]:
    """Eq. 4 for the given adversaries of each document: difference of the two sides, and label."""
    differences, labels = [], []
    for i, true in enumerate(y):
        for k in adversaries[i]:
            first, second, label = (k, true, -1) if k < true else (true, k, 1)
            differences.append([a - b for a, b in zip(phi[i][first], phi[i][second], strict=True)])
            labels.append(label)
    return differences, labels


def nearest(corpus: OracleCorpus, document: Document, q: int) -> list[int]:
    """The q classes of highest cosine; ties go to the lower class number."""
    order = sorted(range(corpus.n_classes), key=lambda c: (-cosine(corpus, document, c), c))
    return order[:q]


def predict(
    corpus: OracleCorpus, document: Document, weights: Sequence[float], q: int
) -> list[int]:
    """Algorithm 2: the q nearest centroids, ordered by f; ties go to the lower class number.

    A document without a term of any class has none.
    """
    if not any(t in y_t for t in document for y_t in corpus.y_t):
        return []
    return sorted(
        nearest(corpus, document, q), key=lambda c: (-score(corpus, document, c, weights), c)
    )


def score(corpus: OracleCorpus, document: Document, c: int, weights: Sequence[float]) -> float:
    """f(φ(x^c)) = w . φ."""
    return math.fsum(w * v for w, v in zip(weights, features(corpus, document, c), strict=True))


def svm_objective(
    weights: Sequence[float], differences: list[list[float]], labels: Sequence[int], C: float
) -> float:
    """1/2 |w|^2 + C sum max(0, 1 - label w.d)^2, LIBLINEAR's primal with squared hinge loss."""
    loss = 0.0
    for difference, label in zip(differences, labels, strict=True):
        margin = label * math.fsum(w * d for w, d in zip(weights, difference, strict=True))
        loss += max(0.0, 1.0 - margin) ** 2
    return 0.5 * math.fsum(w * w for w in weights) + C * loss


def fit(
    documents: list[Document],
    y: Sequence[int],
    n_classes: int,
    seeds: Iterable[int],
    examples_per_class: float,
    adversaries: int,
    C: float,
) -> tuple[OracleCorpus, list[int], list[list[int]], list[float]]:
    """Algorithm 1 whole; draws anew, with the next seed, until a document is kept.

    Returns the corpus, the documents kept, the adversaries of each and the feature weights.
    """
    corpus = build_corpus(documents, y, n_classes)
    for seed in seeds:
        kept, others = draw_pairs(y, n_classes, examples_per_class, adversaries, seed)
        if kept:
            break
    phi = [[features(corpus, documents[i], c) for c in range(n_classes)] for i in kept]
    differences, labels = transform(phi, [y[i] for i in kept], others)
    return corpus, kept, others, fit_svm(differences, labels, C)


def fit_svm(differences: list[list[float]], labels: Sequence[int], C: float) -> list[float]:
    """The minimum of `svm_objective`, each feature divided by its largest absolute difference.

    Newton's method: between the points where a margin crosses 1 the objective is quadratic.
    """
    scales = [max(map(abs, column)) or 1.0 for column in zip(*differences, strict=True)]
    scaled = [[d / s for d, s in zip(row, scales, strict=True)] for row in differences]
    n, w = len(scales), [0.0] * len(scales)
    for _ in range(100):
        gradient = list(w)
        hessian = [[float(i == j) for j in range(n)] for i in range(n)]
        for row, label in zip(scaled, labels, strict=True):
            margin = label * math.fsum(a * b for a, b in zip(w, row, strict=True))
            if margin < 1.0:
                for i in range(n):
                    gradient[i] -= 2.0 * C * (1.0 - margin) * label * row[i]
                    for j in range(n):
                        hessian[i][j] += 2.0 * C * row[i] * row[j]
        step = solve(hessian, gradient)
        here, length = svm_objective(w, scaled, labels, C), 1.0
        there = [a - b for a, b in zip(w, step, strict=True)]
        while svm_objective(there, scaled, labels, C) > here and length > 1e-9:
            length /= 2.0
            there = [a - length * b for a, b in zip(w, step, strict=True)]
        if max(map(abs, step)) < 1e-12 or length <= 1e-9:
            break
        w = there
    return [a / s for a, s in zip(w, scales, strict=True)]


def solve(matrix: list[list[float]], vector: Sequence[float]) -> list[float]:
    """Gaussian elimination of a positive definite system."""
    n = len(vector)
    rows = [[*row, v] for row, v in zip(matrix, vector, strict=True)]
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - math.fsum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x


def macro_f1s(y_true: Sequence[object], y_pred: Sequence[object]) -> tuple[float, float]:
    """Mean of the per-class F1, and harmonic mean of macro precision and macro recall."""
    labels = set(y_true) | set(y_pred)
    f1s, precisions, recalls = [], [], []
    for label in labels:
        right = sum(a == b == label for a, b in zip(y_true, y_pred, strict=True))
        predicted = sum(b == label for b in y_pred)
        true = sum(a == label for a in y_true)
        precisions.append(right / predicted if predicted else 0.0)
        recalls.append(right / true if true else 0.0)
        f1s.append(2 * right / (predicted + true))
    precision, recall = math.fsum(precisions) / len(labels), math.fsum(recalls) / len(labels)
    harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return math.fsum(f1s) / len(labels), harmonic
