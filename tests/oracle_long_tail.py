"""LongTailClassifier's whole fit and prediction in plain dicts and loops.

Slow, obvious, and importing nothing of ours. A document is a dict term -> count, a class an id from
0 to K - 1. `fit` reads as the list of its steps. A step is swapped through `Steps`; each number
that decides how much is done is one of `Settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tests.oracle_calibration import Calibrator, calibrate, fit_calibrator
from tests.oracle_sampling import draw_documents, hold_out
from tests.oracle_score import Document, OracleClasses, Parts
from tests.oracle_search import (
    Problem,
    Ranking,
    Scorer,
    build_classes,
    build_scorer,
    leave_out,
    prune,
    rerank,
    search,
    sum_up,
    weigh,
)
from tests.oracle_training import (
    Features,
    feature_score,
    fit_feature_weights,
    fit_residuals,
    fit_term_weights,
    list_features,
    split_scores,
)

FIRST_WEIGHTS = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]  # the dampened cosine mines the first lists
DEFAULT_WEIGHTS = [8.0, 0.3, 0.0, 0.1, 2.5, 0.0]  # where there are too few lists to learn from

Lists = dict[int, list[int]]  # document -> true class and hard negatives


@dataclass(frozen=True)
class Settings:
    """How much of everything; the defaults are the estimator's."""

    n_sampled: int = 40_000
    n_listed: int = 10_000
    first_candidates: int = 20
    fewest_listed: int = 10
    held_out_share: float = 0.15
    most_held_out: int = 15_000
    fewest_calibrated: int = 50
    tolerance: float = 0.05
    most_passes: int = 6
    lowest_offset: float = -5.0
    smallest_weight: float = 0.01


@dataclass(frozen=True)
class Steps:
    """The steps of a fit that may be swapped."""

    prune: Callable[[Problem, Document], Document] = prune
    fit_feature_weights: Callable[[Sequence[Features]], list[float]] = fit_feature_weights
    fit_term_weights: Callable[[Sequence[Parts]], dict[int, float]] = fit_term_weights
    fit_residuals: Callable[..., Scorer] = fit_residuals
    fit_calibrator: Callable[..., Calibrator] = fit_calibrator


@dataclass(frozen=True)
class OracleModel:
    """What a fit leaves behind."""

    problem: Problem
    candidates: int
    steps: Steps
    held_out: list[int]
    sample: list[int]
    term_weights: list[float]
    feature_weights: list[float]
    scorer: Scorer
    residuals: Scorer
    calibrator: Calibrator


def fit(
    documents: Sequence[Document],
    labels: Sequence[int],
    n_terms: int,
    seed: int,
    candidates: int = 20,
    C: float = 1.0,
    settings: Settings | None = None,
    steps: Steps | None = None,
) -> OracleModel:
    """Sum, draw, learn the shared score, mine, calibrate on what is held out, learn residuals."""
    settings, steps = settings or Settings(), steps or Steps()
    problem = sum_up(documents, labels, n_terms)
    n_held_out = min(int(settings.held_out_share * len(labels)), settings.most_held_out)
    held_out = hold_out(labels, n_held_out, seed)
    sample = draw_documents(labels, settings.n_sampled, seed, without=held_out)
    term_weights, feature_weights = learn_score(problem, sample, settings, steps)
    weighted = [weigh(problem, document, term_weights) for document in documents]
    classes = build_classes(problem, range(len(labels)))
    scorer = build_scorer(classes, feature_weights)
    lists = mine(problem, weighted, range(len(labels)), scorer, candidates, steps)

    def learn_residuals(classes: OracleClasses, used: Collection[int]) -> Scorer:
        scorer = build_scorer(classes, feature_weights)
        scores = {
            i: score_list(problem, i, weighted[i], lists[i], scorer, classes, used, feature_weights)
            for i in used
        }
        return steps.fit_residuals(
            weighted,
            list(lists.values()),
            scores,
            problem.n_classes,
            C,
            settings.tolerance,
            settings.most_passes,
            settings.lowest_offset,
            settings.smallest_weight,
        )

    calibrator = Calibrator()
    if held_out:
        used = [i for i in range(len(labels)) if i not in held_out]
        rest = build_classes(problem, used)
        rest_scorer, rest_residuals = (
            build_scorer(rest, feature_weights),
            learn_residuals(rest, used),
        )
        ranked = []
        for i in held_out:
            found = search(steps.prune(problem, weighted[i]), rest_scorer, candidates)
            ranked.append(rerank(weighted[i], found, rest_scorer, rest_residuals))
        calibrator = steps.fit_calibrator(
            [[score for _, score in row] for row in ranked],
            [[c == labels[i] for c, _ in row] for i, row in zip(held_out, ranked, strict=True)],
            settings.fewest_calibrated,
        )
    return OracleModel(
        problem,
        candidates,
        steps,
        held_out,
        sample,
        term_weights,
        feature_weights,
        scorer,
        residuals=learn_residuals(classes, range(len(labels))),
        calibrator=calibrator,
    )


def predict_topk(model: OracleModel, documents: Sequence[Document], k: int) -> list[Ranking]:
    """The k best classes of each document with their scores."""
    return [rank(model, document)[:k] for document in documents]


def predict_proba_topk(model: OracleModel, documents: Sequence[Document], k: int) -> list[Ranking]:
    """The k best classes of each document with calibrated probabilities."""
    rows = []
    for document in documents:
        ranked = rank(model, document)
        probabilities = calibrate([score for _, score in ranked], model.calibrator)
        rows.append([(c, p) for (c, _), p in zip(ranked, probabilities, strict=True)][:k])
    return rows


def rank(model: OracleModel, document: Document) -> Ranking:
    """Candidates by the pruned query, ranked by score and residual of all terms."""
    x = weigh(model.problem, document, model.term_weights)
    found = search(model.steps.prune(model.problem, x), model.scorer, model.candidates)
    return rerank(x, found, model.scorer, model.residuals)


def mine(
    problem: Problem,
    weighted: Sequence[Document],
    documents: Collection[int],
    scorer: Scorer,
    n_negatives: int,
    steps: Steps,
) -> Lists:
    """The true class of each document and the highest-scored others by its pruned query."""
    lists = {}
    for i in documents:
        true, query = problem.labels[i], steps.prune(problem, weighted[i])
        lists[i] = [true, *search(query, scorer, n_negatives, excluded=true)]
    return lists


def score_list(
    problem: Problem,
    i: int,
    x: Document,
    row: Sequence[int],
    scorer: Scorer,
    classes: OracleClasses,
    used: Collection[int],
    feature_weights: Sequence[float],
) -> list[float]:
    """Score a document with each class of its list, with the true class without the document."""
    left_out = leave_out(problem, classes, i, used)
    true_score = feature_score(left_out, x, row[0], feature_weights)
    return [true_score, *(scorer.score(x, c) for c in row[1:])]


def learn_score(
    problem: Problem, sample: Sequence[int], settings: Settings, steps: Steps
) -> tuple[list[float], list[float]]:
    """Term weights and feature weights on lists of the sampled documents.

    Feature weights are learned three times: to learn term weights with, with these, and on the
    lists that the score itself then mines.
    """
    all_documents = range(len(problem.labels))
    classes = build_classes(problem, all_documents)
    left_out = {i: leave_out(problem, classes, i, all_documents) for i in sample}

    def draw_lists(sample: Sequence[int], feature_weights: Sequence[float]) -> Lists:
        """Leave out the documents whose true class scores below all others: nothing helps them."""
        scorer = build_scorer(classes, feature_weights)
        lists = mine(problem, weighted, sample, scorer, settings.first_candidates, steps)
        scores = {
            i: score_list(
                problem, i, weighted[i], row, scorer, classes, all_documents, feature_weights
            )
            for i, row in lists.items()
        }
        return {i: row for i, row in lists.items() if scores[i][0] >= min(scores[i][1:])}

    def learn_features(lists: Lists) -> list[float]:
        if len(lists) < settings.fewest_listed:
            return DEFAULT_WEIGHTS
        listed = list(lists.items())[: settings.n_listed]
        return steps.fit_feature_weights(
            [list_features(classes, left_out[i], weighted[i], row) for i, row in listed]
        )

    ones = [1.0] * problem.n_terms
    weighted = [weigh(problem, document, ones) for document in problem.documents]
    lists = draw_lists(sample, FIRST_WEIGHTS)
    feature_weights = learn_features(lists)
    factors = steps.fit_term_weights(
        [split_scores(left_out[i], weighted[i], row, feature_weights) for i, row in lists.items()]
    )
    term_weights = [factors.get(t, 1.0) for t in range(problem.n_terms)]
    weighted = [weigh(problem, document, term_weights) for document in problem.documents]
    feature_weights = learn_features(lists)
    lists = draw_lists(sample[: settings.n_listed], feature_weights)
    return term_weights, learn_features(lists)
