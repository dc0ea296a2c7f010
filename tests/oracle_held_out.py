"""The model and its simpler selves on held-out documents, in plain loops.

Imports nothing of ours. The sums of the classes lack these documents; idf and collection model are
those of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tests.oracle_calibration import Calibrator, learn_shortness
from tests.oracle_mixture import NO_RESIDUALS, Mixture, Part, add_separators, fit_mixture
from tests.oracle_names import Names
from tests.oracle_sampling import uniform
from tests.oracle_score import Document, features, log_size
from tests.oracle_scored_classes import (
    Scored,
    Shared,
    Task,
    add_names,
    find,
    learn_residuals,
    learn_separators,
    mine_used,
    score_classes,
    weigh_for_residuals,
)
from tests.oracle_search import Ranking, Scorer, single, weigh
from tests.oracle_self_check import (
    BONUSES,
    BUDGETS,
    Figures,
    SelfCheck,
    choose_bonus,
    choose_budget,
    choose_residuals,
    choose_scorer,
    first_f1,
    measure,
    share_bonus,
)
from tests.oracle_shared_weights import CENTROID_WEIGHTS, DEFAULT_WEIGHTS


def check_scorers(task: Task, held_out: Sequence[int], learned: Shared) -> tuple[Shared, SelfCheck]:
    """Compare the learned scorer with simpler ones; find the posting budget of the one to keep."""
    used, labels = rest_of(task, held_out), task.problem.labels
    checked = held_out[: task.settings.most_checked]
    own = [labels[i] for i in checked]
    new = [task.as_new(i, used) for i in checked]
    ones = [1.0] * task.problem.n_terms
    selves = [
        Shared(ones, CENTROID_WEIGHTS),
        Shared(learned.term_weights, DEFAULT_WEIGHTS),
        Shared(ones, learned.feature_weights),
        learned,
    ]

    def measure_scorer(scored: Scored, shared: Shared, budget: int | None = None) -> Figures:
        weighted = [weigh(task.problem, x, shared.term_weights) for x in new]
        found = [find(scored, x, task.n_candidates, budget) for x in weighted]
        return measure(own, found, scored.classes.sizes)

    scorers = [score_classes(task.problem, used, shared) for shared in selves]
    figures = [measure_scorer(*pair) for pair in zip(scorers, selves, strict=True)]
    kept = choose_scorer(figures)
    named = add_names(task, scorers[kept])  # candidates are found by names as well
    *recalls, whole = [
        measure_scorer(named, selves[kept], budget).recall for budget in (*BUDGETS, None)
    ]
    return selves[kept], SelfCheck(
        scorer_figures=figures,
        recalls=[*recalls, whole],
        scorer=kept,
        budget=choose_budget(
            recalls, max([whole, *(recalls if task.has_several else [])]), task.settings
        ),
    )


def check_residuals(
    task: Task, held_out: Sequence[int], shared: Shared, check: SelfCheck
) -> tuple[SelfCheck, Calibrator, tuple[Scorer, Scorer]]:
    """Learn residuals and separators without the held-out documents, and how much they count.

    Then calibrate. Returns both as well.
    """
    scored = score_classes(task.problem, rest_of(task, held_out), shared)
    mined = mine_used(task, scored, check.budget)
    residuals = learn_residuals(task, scored, mined)
    separators = learn_separators(task, scored, mined)
    own = [task.problem.labels[i] for i in held_out]
    named, names = add_names(task, scored), task.known_names(scored.used)
    new = [task.as_new(i, scored.used) for i in held_out]
    candidates, parts = [], []

    def split_all(document: Document) -> tuple[list[int], list[Part]]:
        x = weigh(task.problem, document, shared.term_weights)
        inputs = weigh_for_residuals(task.problem, document, shared)
        found = find(named, x, task.n_candidates, check.budget)
        return found, [split(named, residuals, separators, names, x, inputs, c) for c in found]

    for document in new:
        found, own_parts = split_all(document)
        candidates.append(found)
        parts.append(own_parts)
    correct = [[c in labels for c in row] for labels, row in zip(own, candidates, strict=True)]
    given = parts, correct, candidates, task.settings
    learned = fit_mixture(*given)
    added = add_separators(learned, *given)
    mixtures = [NO_RESIDUALS, Mixture(), learned, added]

    def rank(mixture: Mixture) -> list[Ranking]:
        return [rank_parts(mixture, *row) for row in zip(candidates, parts, strict=True)]

    def measure_ranking(ranked: Sequence[Ranking]) -> Figures:
        return measure(own, classes_of(ranked), scored.classes.sizes)

    rankings = [rank(mixture) for mixture in mixtures]
    figures = [measure_ranking(ranked) for ranked in rankings]
    kept = choose_residuals(figures, task.settings, task.has_several)
    mixture, ranked = mixtures[kept], rankings[kept]
    alone = names.without_documents(scored.classes.sizes) if names else []
    n_empty = 0 if names is None else sum(task.names.named) - sum(names.named)
    if alone:
        all_compete = task.has_several and n_empty == 0
        f1s = [first_f1(own, classes_of(rank(mixture.raise_bonus(more)))) for more in BONUSES]
        mixture = mixture.raise_bonus(choose_bonus(f1s, task.settings, all_compete))
        ranked = rank(mixture)
        figures[kept] = measure_ranking(ranked)
    shared_bonus = share_bonus(len(alone), n_empty) if alone else 0.0
    calibrator = task.steps.fit_calibrator(
        [[score for _, score in row] for row in ranked],
        [[c in labels for c, _ in row] for labels, row in zip(own, ranked, strict=True)],
        task.settings.fewest_calibrated,
        task.has_several,
    )
    truncated = []
    for place, document in truncate_documents(task, new):
        ranking = rank_parts(mixture, *split_all(document))
        truncated.append(
            (len(document), [score for _, score in ranking], ranking[0][0] in own[place])
        )
    lengths = [len(document) for document in new]
    mixture = mixture.raise_bonus(shared_bonus)
    checked = replace(check, residual_figures=figures, residuals=kept, mixture=mixture)
    return checked, learn_shortness(calibrator, lengths, truncated), (residuals, separators)


def rank_parts(mixture: Mixture, found: Sequence[int], parts: Sequence[Part]) -> Ranking:
    """The candidates of a document by their mixed scores."""
    scored = [(c, mixture.mix(part)) for c, part in zip(found, parts, strict=True)]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def truncate_documents(task: Task, held_out: Sequence[Document]) -> list[tuple[int, Document]]:
    """The first held-out documents with the terms of lowest draw: a half, a quarter and so on.

    Each with its place among the held-out ones, which decides the draws with the place of the term.
    """
    truncated = []
    for share in (1 / 2, 1 / 4, 1 / 8, 1 / 16):
        for place, document in enumerate(held_out[: task.settings.most_truncated]):
            terms = sorted(document)
            draws = {t: uniform(task.seed, place, k) for k, t in enumerate(terms)}
            left = sorted(terms, key=draws.__getitem__)[: math.ceil(share * len(terms))]
            truncated.append((place, {t: document[t] for t in sorted(left)}))
    return truncated


def classes_of(ranked: Sequence[Ranking]) -> list[list[int]]:
    """The classes of rankings, without their scores."""
    return [[c for c, _ in row] for row in ranked]


def split(
    scored: Scored,
    residuals: Scorer,
    separators: Scorer,
    names: Names | None,
    x: Document,
    inputs: Document,
    c: int,
) -> Part:
    """What the score of a document for a class consists of; `inputs` is what residuals multiply."""
    stored, bias = [single(v) for v in features(scored.classes, x, c)], residuals.biases[c]
    values = [*stored, residuals.score(inputs, c) - bias, bias]
    bias = separators.biases[c]
    values += [separators.score(inputs, c) - bias, bias]
    if names is not None:
        is_alone = c in names.without_documents(scored.classes.sizes)
        values += [names.match(x, c), float(is_alone)]
    return Part(scored.scorer.score(x, c), values, log_size(scored.classes, c))


def rest_of(task: Task, held_out: Sequence[int]) -> list[int]:
    """The documents that are not held out."""
    return [i for i in range(len(task.problem.labels)) if i not in held_out]
