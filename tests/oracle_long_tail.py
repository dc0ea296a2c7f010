"""LongTailClassifier's whole fit and prediction in plain dicts and loops.

Slow, obvious, and importing nothing of ours. A document is a dict term -> count, a class an id from
0 to K - 1. `fit` reads as the list of its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracle_calibration import Calibrator, calibrate, choose_set
from tests.oracle_held_out import check_residuals, check_scorers
from tests.oracle_names import add_scorers, weigh_names
from tests.oracle_sampling import draw_labels, hold_out
from tests.oracle_score import Document, log_size
from tests.oracle_scored_classes import (
    Scored,
    Settings,
    Shared,
    Steps,
    Task,
    find,
    learn_residuals,
    learn_separators,
    mine_used,
    score_classes,
    weigh_for_residuals,
)
from tests.oracle_search import Ranking, Scorer, build_scorer, rerank, sum_up, weigh
from tests.oracle_self_check import SelfCheck
from tests.oracle_shared_weights import learn_shared


@dataclass(frozen=True)
class OracleModel:
    """What a fit leaves behind."""

    task: Task
    held_out: list[int]
    sample: list[tuple[int, int]]  # document, and place of its label
    shared: Shared
    check: SelfCheck
    scored: Scored
    residuals: Scorer
    calibrator: Calibrator

    @property
    def scorer(self) -> Scorer:
        """Of all documents, without names."""
        return self.scored.scorer

    @property
    def ranking_scorer(self) -> Scorer:
        """Of documents and names."""
        if self.task.names is None:
            return self.scorer
        given = self.scored.classes.sizes, self.check.mixture.name_weights
        return add_scorers(self.scorer, self.task.names.as_scorer(*given))

    @property
    def ranking_residuals(self) -> Scorer:
        """Residuals, and what is left of the bonus of classes without documents."""
        if self.task.names is None:
            return self.residuals
        given = self.scored.classes.sizes, self.check.mixture.name_weights
        pairs = zip(self.residuals.biases, self.task.names.late_bonus(*given), strict=True)
        return replace(self.residuals, biases=[bias + late for bias, late in pairs])


def fit(
    documents: Sequence[Document],
    labels: Sequence[Sequence[int]],
    n_terms: int,
    seed: int,
    candidates: int = 20,
    C: float = 1.0,
    settings: Settings | None = None,
    steps: Steps | None = None,
    texts: Mapping[int, Document] | None = None,
) -> OracleModel:
    """Sum, draw, learn the shared score, check it on what is held out, learn residuals on all.

    `texts` has the counts of the terms of classes' names.
    """
    settings, texts = settings or Settings(), texts or {}
    problem = sum_up(documents, labels, n_terms, texts)
    names = weigh_names(problem, texts) if texts else None
    task = Task(problem, seed, candidates, C, settings, steps or Steps(), names)
    n_held_out = min(int(settings.held_out_share * len(labels)), settings.most_held_out)
    may_be_empty = range(problem.n_classes) if task.has_several else texts
    held_out = hold_out(labels, n_held_out, seed, may_be_empty)
    sample = draw_labels(labels, settings.n_sampled, seed, without=held_out)
    shared = learn_shared(task, sample)
    check, calibrator, learned = SelfCheck(), Calibrator(), None
    if held_out:
        shared, check = check_scorers(task, held_out, shared)
        check, calibrator, learned = check_residuals(task, held_out, shared, check)
    scored = score_classes(task.problem, range(len(labels)), shared)
    log_sizes = [log_size(scored.classes, c) for c in range(task.problem.n_classes)]
    if learned is None or len(held_out) >= settings.most_lacking * len(labels):
        mined = mine_used(task, scored, check.budget)
        learned = learn_residuals(task, scored, mined), learn_separators(task, scored, mined)
    residuals = check.mixture.scale(*learned, log_sizes)
    ranking = build_scorer(
        scored.classes,
        lambda c: check.mixture.feature_weights(shared.feature_weights, log_sizes[c]),
    )
    scored = replace(scored, scorer=ranking)
    return OracleModel(task, held_out, sample, shared, check, scored, residuals, calibrator)


def predict_topk(model: OracleModel, documents: Sequence[Document], k: int) -> list[Ranking]:
    """The k best classes of each document with their scores."""
    return [ranked[:k] for ranked in rank(model, documents)]


def predict_proba_topk(model: OracleModel, documents: Sequence[Document], k: int) -> list[Ranking]:
    """The k best classes of each document with calibrated probabilities."""
    rows = []
    for document, ranked in zip(documents, rank(model, documents), strict=True):
        scores = [score for _, score in ranked]
        probabilities = calibrate(scores, model.calibrator, len(document)) if scores else []
        rows.append([(c, p) for (c, _), p in zip(ranked, probabilities, strict=True)][:k])
    return rows


def predict(model: OracleModel, documents: Sequence[Document]) -> list[int]:
    """The best class of each document; the largest, ties to the lower, where there is none."""
    sizes = model.scored.classes.sizes
    largest = max(range(len(sizes)), key=lambda c: (sizes[c], -c))
    return [ranked[0][0] if ranked else largest for ranked in rank(model, documents)]


def predict_sets(
    model: OracleModel, documents: Sequence[Document], max_labels: int | None = None
) -> list[list[int]]:
    """The label set of highest expected F1 of each document, most probable label first.

    That of a document without candidates is empty.
    """
    ranked = predict_proba_topk(model, documents, model.task.n_candidates)
    return [[c for c, _ in row[: choose_set([p for _, p in row], max_labels)]] for row in ranked]


def rank(model: OracleModel, documents: Sequence[Document]) -> list[Ranking]:
    """Candidates by the pruned query, ranked by score and residual of all terms.

    A document without a term that a class has, and that weighs anything, has no candidates.
    """
    scored, residuals = replace(model.scored, scorer=model.ranking_scorer), model.ranking_residuals
    rankings = []
    for document in documents:
        x = weigh(model.task.problem, document, model.shared.term_weights)
        if not any(x.values()):
            rankings.append([])
            continue
        found = find(scored, x, model.task.n_candidates, model.check.budget)
        inputs = weigh_for_residuals(model.task.problem, document, model.shared)
        rankings.append(rerank(x, inputs, found, scored.scorer, residuals))
    return rankings
