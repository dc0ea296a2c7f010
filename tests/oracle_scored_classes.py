"""Classes with their scorer: hard negatives mined by it, residuals learned on them.

Plain dicts and loops, importing nothing of ours. A document is a dict term -> count, a class an id
from 0 to K - 1. What a fit is told is a `Task`: a step is swapped through `Steps`, each number that
decides how much is done is one of `Settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from tests.oracle_calibration import Calibrator, fit_calibrator
from tests.oracle_names import FIRST_NAME_WEIGHTS, Names, add_scorers
from tests.oracle_sampling import draw_documents
from tests.oracle_score import Document, OracleClasses, Parts
from tests.oracle_search import (
    Problem,
    Scorer,
    build_classes,
    build_scorer,
    count_classes,
    leave_out,
    prune,
    search,
    weigh,
)
from tests.oracle_separators import fit_separators
from tests.oracle_training import (
    feature_score,
    fit_feature_weights,
    fit_residuals,
    fit_term_weights,
)


@dataclass(frozen=True)
class Settings:
    """How much of everything; the defaults are the estimator's."""

    n_sampled: int = 40_000
    n_listed: int = 10_000
    first_candidates: int = 20
    n_uniform: int = 10
    fewest_listed: int = 10
    held_out_share: float = 0.15
    most_held_out: int = 15_000
    most_checked: int = 2_000
    most_lost_recall: float = 0.01
    most_lost_f1: float = 0.01
    most_lost_f1_of_all: float = 0.002  # where all such classes compete
    fewest_mixed: int = 200
    fewest_bent: int = 1_000
    macro_share: float = 0.15
    mixture_prior: float = 1.0
    smallest_spread: float = 0.5
    fewest_calibrated: int = 50
    most_truncated: int = 500
    residual_cost: float = 2.0
    tolerance: float = 0.05
    most_passes: int = 6
    lowest_offset: float = -5.0
    smallest_weight: float = 0.05
    most_drawn: int = 10_000
    separator_lead: float = 1.0  # standard errors by which separators must be ahead
    separator_lag: float = 1.0  # with several labels: by which they may be behind
    negatives_per_label: int = 5
    fewest_negatives: int = 20
    fewest_negatives_of_several: int = 100
    separator_tolerance: float = 0.3
    separator_passes: int = 10
    smallest_separator: float = 0.1
    most_lacking: float = 0.05
    fewest_emptied: int = 20


@dataclass(frozen=True)
class Steps:
    """The steps of a fit that may be swapped."""

    fit_feature_weights: Callable[..., list[float]] = fit_feature_weights
    fit_term_weights: Callable[[Sequence[Parts]], dict[int, float]] = fit_term_weights
    fit_residuals: Callable[..., Scorer] = fit_residuals
    fit_separators: Callable[..., Scorer] = fit_separators
    fit_calibrator: Callable[..., Calibrator] = fit_calibrator


@dataclass(frozen=True)
class Task:
    """The documents of a fit, and what it is told."""

    problem: Problem
    seed: int
    candidates: int = 20
    C: float = 1.0
    settings: Settings = field(default_factory=Settings)
    steps: Steps = field(default_factory=Steps)
    names: Names | None = None

    def known_names(self, used: Collection[int]) -> Names | None:
        """Those that count where the other documents are held out.

        All, where these have several labels and have emptied enough classes that have a name.
        """
        if self.names is None:
            return None
        labels, names = self.problem.labels, self.names
        if self.has_several:
            names = names.of_terms(self.known_terms(used))
        have_documents = {c for own in labels for c in own}
        left = {c for i in used for c in labels[i]}
        emptied = [c for c in have_documents - left if self.names.named[c]]
        if self.has_several and len(emptied) >= self.settings.fewest_emptied:
            return names
        return names.of_classes(have_documents)

    def known_terms(self, used: Collection[int]) -> set[int]:
        """Those of the used documents that have a label."""
        documents, labels = self.problem.documents, self.problem.labels
        return {t for i in used if labels[i] for t in documents[i]}

    def as_new(self, i: int, used: Collection[int]) -> Document:
        """A document that is not used, without terms that no labelled document used has.

        So a new one is read.
        """
        known = self.known_terms(used)
        return {t: n for t, n in self.problem.documents[i].items() if t in known}

    @property
    def has_several(self) -> bool:
        """Whether any document has other than one label."""
        return any(len(own) != 1 for own in self.problem.labels)

    @property
    def n_candidates(self) -> int:
        """As many for each label of a document in the mean, where documents have several."""
        if not self.has_several:
            return self.candidates
        n_labels = sum(len(own) for own in self.problem.labels)
        return self.candidates * min(max(2, n_labels // len(self.problem.labels)), 10)

    @property
    def n_mined(self) -> int:
        """How many hard negatives a document has: with label sets 200 per class in the mean.

        But no fewer than twice the candidates that are asked for, and no more than four times.
        """
        if not self.has_several:
            return self.candidates
        wanted = 200 * self.problem.n_classes // len(self.problem.labels)
        return sorted([2 * self.candidates, wanted, 4 * self.candidates])[1]


@dataclass(frozen=True)
class Shared:
    """What is learned once for all classes."""

    term_weights: list[float]
    feature_weights: list[float]


@dataclass(frozen=True)
class Scored:
    """The sums of some documents, their scorer, and all documents weighted for it."""

    used: Collection[int]
    classes: OracleClasses
    class_frequencies: list[int]
    scorer: Scorer
    feature_weights: list[float]
    weighted: list[Document]
    residual_inputs: list[Document]


def score_classes(problem: Problem, used: Collection[int], shared: Shared) -> Scored:
    """Sum the used documents; idf and collection model stay those of all."""
    classes = build_classes(problem, used)
    return Scored(
        used,
        classes,
        count_classes(classes, problem.n_terms),
        build_scorer(classes, shared.feature_weights),
        shared.feature_weights,
        [weigh(problem, document, shared.term_weights) for document in problem.documents],
        [weigh_for_residuals(problem, document, shared) for document in problem.documents],
    )


def weigh_for_residuals(problem: Problem, document: Document, shared: Shared) -> Document:
    """What residuals multiply: without term weights where documents have several labels."""
    several = any(len(own) != 1 for own in problem.labels)
    ones = [1.0] * problem.n_terms
    return weigh(problem, document, ones if several else shared.term_weights)


def add_names(task: Task, scored: Scored) -> Scored:
    """The scorer of documents and names, before the weights of names are learned."""
    names = task.known_names(scored.used)
    if names is None:
        return scored
    of_names = names.as_scorer(scored.classes.sizes, FIRST_NAME_WEIGHTS)
    return replace(scored, scorer=add_scorers(scored.scorer, of_names))


def find(
    scored: Scored, x: Document, q: int, budget: int | None = None, excluded: Collection[int] = ()
) -> list[int]:
    """The q classes of highest score by the pruned query; by the whole one without a budget."""
    if budget is not None:
        x = prune(scored.class_frequencies, budget * len(scored.classes.sizes), x)
    return search(x, scored.scorer, q, excluded)


def mine(
    problem: Problem, scored: Scored, i: int, n_negatives: int, budget: int | None = None
) -> list[int]:
    """The highest-scored classes of a document outside its label set, one at least left."""
    n_negatives = min(n_negatives, problem.n_classes - 1)
    return find(scored, scored.weighted[i], n_negatives, budget, excluded=problem.labels[i])


def score_list(
    problem: Problem, scored: Scored, i: int, labels: Sequence[int], negatives: Sequence[int]
) -> list[float]:
    """Score a document with some of its labels, each without the document, and with negatives."""
    x = scored.weighted[i]
    own = [
        feature_score(
            leave_out(problem, scored.classes, i, c, scored.used), x, c, scored.feature_weights
        )
        for c in labels
    ]
    return [*own, *(scored.scorer.score(x, c) for c in negatives)]


@dataclass(frozen=True)
class Mined:
    """The labels and negatives of the used documents; the others have none."""

    labels: list[Sequence[int]]
    negatives: list[list[int]]


def mine_used(task: Task, scored: Scored, budget: int | None) -> Mined:
    """The negatives that the scorer finds for the used documents."""
    labels = task.problem.labels
    lists = {i: mine(task.problem, scored, i, task.n_mined, budget) for i in scored.used}
    return Mined(
        [labels[i] if i in lists else [] for i in range(len(labels))],
        [lists.get(i, []) for i in range(len(labels))],
    )


def learn_separators(task: Task, scored: Scored, mined: Mined) -> Scorer:
    """The separator of each class on the used documents, their negatives, and random ones."""
    settings, n_documents = task.settings, len(task.problem.labels)
    return task.steps.fit_separators(
        scored.residual_inputs,
        mined.labels,
        mined.negatives,
        draw_documents(n_documents, settings.most_drawn, task.seed, scored.used),
        len(scored.used),
        task.problem.n_classes,
        task.C,
        settings.negatives_per_label,
        settings.fewest_negatives_of_several if task.has_several else settings.fewest_negatives,
        settings.separator_tolerance,
        settings.separator_passes,
        settings.smallest_separator,
    )


def learn_residuals(task: Task, scored: Scored, mined: Mined) -> Scorer:
    """The residual of each class on the used documents and their negatives."""
    settings, labels = task.settings, mined.labels
    return task.steps.fit_residuals(
        scored.residual_inputs,
        labels,
        mined.negatives,
        {
            i: score_list(task.problem, scored, i, labels[i], mined.negatives[i])
            for i in scored.used
        },
        task.problem.n_classes,
        settings.residual_cost * task.C,
        settings.tolerance,
        settings.most_passes,
        settings.lowest_offset,
        settings.smallest_weight,
        task.has_several,
    )
