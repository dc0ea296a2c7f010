"""Class sums, the linear scorer and the search in plain dicts and loops, importing nothing of ours.

A document is a dict term -> count, a class an id from 0 to K - 1. What the model stores in 32 bits
is rounded here as well (`single`): a choice between nearly equal scores then comes out the same.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tests import oracle_score as scoring
from tests.oracle_score import Document, OracleClasses, Sums

QUANTUM = 2.0**-38  # class sums are whole multiples of it, so leaving a document out is exact
SIZE = 2  # the feature that no term decides

Ranking = list[tuple[int, float]]  # classes with their scores, best first


@dataclass(frozen=True)
class Problem:
    """The documents of a fit; `quantized` holds each as the multiples of QUANTUM it adds."""

    documents: Sequence[Document]
    labels: Sequence[Sequence[int]]  # of each document, ascending
    n_classes: int
    n_terms: int
    quantized: Sequence[dict[int, int]]
    idf: list[float]
    collection_model: list[float]
    class_frequencies: list[int]


@dataclass(frozen=True)
class Scorer:
    """score(x, c) = bias_c + length_weight_c * sum_t x_t + sum_t x_t * weight_ct."""

    weights: list[dict[int, float]]
    length_weights: list[float]
    biases: list[float]

    def score(self, x: Document, c: int) -> float:
        """Of one weighted document and one class."""
        product = math.fsum(v * self.weights[c].get(t, 0.0) for t, v in x.items())
        return self.biases[c] + self.length_weights[c] * math.fsum(x.values()) + product


def single(value: float) -> float:
    """Round to 32 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def sum_up(
    documents: Sequence[Document],
    labels: Sequence[Sequence[int]],
    n_terms: int,
    named: Collection[int] = (),
) -> Problem:
    """Document frequencies, idf, each term's share of all class sums, classes per term.

    A document counts once for each of its labels, in everything. Named classes need no document.
    """
    n_classes = max(*named, *(c for own in labels for c in own)) + 1
    m = sum(map(len, labels))
    ones = [1.0] * n_terms
    quantized = [
        {t: round(v / QUANTUM) for t, v in scoring.weigh(document, ones).items()}
        for document in documents
    ]
    rows = list(zip(quantized, labels, strict=True))
    df = [sum(len(own) for units, own in rows if t in units) for t in range(n_terms)]
    totals = [sum(len(own) * units.get(t, 0) for units, own in rows) for t in range(n_terms)]
    shares = [v / max(sum(totals), 1) for v in totals]
    smallest = min((v for v in shares if v > 0), default=1.0)
    vocabularies = [{t for units, own in rows if c in own for t in units} for c in range(n_classes)]
    return Problem(
        documents,
        labels,
        n_classes,
        n_terms,
        quantized,
        idf=[math.log((1 + m) / (1 + n)) + 1 for n in df],
        collection_model=[v if v > 0 else smallest for v in shares],
        class_frequencies=[sum(t in terms for terms in vocabularies) for t in range(n_terms)],
    )


def build_classes(problem: Problem, used: Collection[int]) -> OracleClasses:
    """Sums over some documents; idf and collection model stay those of all."""
    members = [[i for i in used if c in problem.labels[i]] for c in range(problem.n_classes)]
    return OracleClasses(
        [len(ids) for ids in members],
        [sum_documents(problem, ids) for ids in members],
        problem.idf,
        problem.collection_model,
    )


def sum_documents(problem: Problem, members: Collection[int]) -> Sums:
    """The sum of length-normalised documents, without terms that none of them has."""
    totals: dict[int, int] = {}
    for i in members:
        for t, v in problem.quantized[i].items():
            totals[t] = totals.get(t, 0) + v
    return {t: v * QUANTUM for t, v in totals.items()}


def leave_out(
    problem: Problem, classes: OracleClasses, i: int, true: int, used: Collection[int]
) -> OracleClasses:
    """The same classes, but one label of document i summed without it."""
    members = [j for j in used if true in problem.labels[j] and j != i]
    sizes, sums = list(classes.sizes), list(classes.sums)
    sizes[true], sums[true] = len(members), sum_documents(problem, members)
    return OracleClasses(sizes, sums, classes.idf, classes.background)


def weigh(problem: Problem, document: Document, term_weights: Sequence[float]) -> Document:
    """x_t = (1 + ln count) * idf_t * term weight, length-normalised; unseen terms weigh 0."""
    weights = [
        problem.idf[t] * term_weights[t] if problem.class_frequencies[t] else 0.0
        for t in range(problem.n_terms)
    ]
    return {t: single(v) for t, v in scoring.weigh(document, weights).items()}


def build_scorer(
    classes: OracleClasses, weights_of: Sequence[float] | Callable[[int], Sequence[float]]
) -> Scorer:
    """Every feature is a sum over terms: a class's score of each term alone says all.

    The feature weights are those of all classes, or given for each class.
    """
    weights, length_weights, biases = [], [], []
    for c, sums in enumerate(classes.sums):
        feature_weights = weights_of(c) if callable(weights_of) else weights_of
        bias = feature_weights[SIZE] * scoring.log_size(classes, c)
        length_weight = -feature_weights[1] * scoring.background_penalty(classes, c)
        weights.append(
            {
                t: single(
                    scoring.score(classes, {t: 1.0}, c, feature_weights) - bias - length_weight
                )
                for t in sums
            }
        )
        length_weights.append(length_weight)
        biases.append(bias)
    return Scorer(weights, length_weights, biases)


def count_classes(classes: OracleClasses, n_terms: int) -> list[int]:
    """In how many classes each term is."""
    return [sum(t in sums for sums in classes.sums) for t in range(n_terms)]


def prune(class_frequencies: Sequence[int], budget: int, x: Document) -> Document:
    """The rarest terms, as long as together they have no more postings than the budget.

    At least one term stays; ties in the number of classes go to the lower term.
    """
    kept: Document = {}
    for t in sorted(x, key=lambda t: (class_frequencies[t], t)):
        if kept and class_frequencies[t] > budget:
            break
        budget -= class_frequencies[t]
        kept[t] = x[t]
    return kept


def search(query: Document, scorer: Scorer, q: int, excluded: Collection[int] = ()) -> list[int]:
    """The q classes of highest score by brute force over all classes; ties to the lower class."""
    parts = scorer.weights, scorer.length_weights, scorer.biases
    ranked = scoring.highest(query, *parts, len(scorer.biases), -1)
    return [c for c, _ in ranked if c not in excluded][:q]


def rerank(
    x: Document, inputs: Document, found: Sequence[int], scorer: Scorer, residuals: Scorer
) -> Ranking:
    """Classes by score and residual, which have inputs of their own; ties go to the lower class."""
    scores = [(c, scorer.score(x, c) + residuals.score(inputs, c)) for c in found]
    return sorted(scores, key=lambda pair: (-pair[1], pair[0]))
