"""The weights that all classes share, in plain dicts and loops, importing nothing of ours.

Learned on lists: a sampled document's true class, without the document, and its negatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle_sampling import draw_adversaries
from tests.oracle_score import Parts
from tests.oracle_scored_classes import Scored, Shared, Task, mine, score_classes, score_list
from tests.oracle_search import leave_out, single
from tests.oracle_training import list_features, split_scores

FIRST_WEIGHTS = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]  # the dampened cosine mines the first lists
DEFAULT_WEIGHTS = [8.0, 0.3, 0.0, 0.1, 2.5, 0.0]  # where there are too few lists to learn from
CENTROID_WEIGHTS = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # nearest centroid


@dataclass(frozen=True)
class ClassList:
    """A document's true class and its negatives.

    `reached` says whether the true class scores at least as high as the lowest negative;
    `log_multiplicities` is ln(m) of the m classes that each class stands for.
    """

    document: int
    classes: list[int]
    reached: bool
    log_multiplicities: list[float]


def learn_shared(task: Task, sample: Sequence[int]) -> Shared:
    """Term weights and feature weights on lists of the sampled documents.

    Feature weights are learned three times: to learn term weights with, with these, and on the
    lists that the score itself then mines.
    """
    problem = task.problem
    everything = range(len(problem.labels))
    ones = [1.0] * problem.n_terms
    scored = score_classes(problem, everything, Shared(ones, FIRST_WEIGHTS))
    lists = [draw_list(task, scored, i) for i in sample]
    feature_weights = learn_features(task, scored, lists)
    factors = task.steps.fit_term_weights(
        [split_list(task, scored, entry, feature_weights) for entry in lists]
    )
    term_weights = [factors.get(t, 1.0) for t in range(problem.n_terms)]
    scored = score_classes(problem, everything, Shared(term_weights, feature_weights))
    feature_weights = learn_features(task, scored, lists)
    scored = score_classes(problem, everything, Shared(term_weights, feature_weights))
    lists = [draw_list(task, scored, i) for i in sample[: task.settings.n_listed]]
    return Shared(term_weights, learn_features(task, scored, lists))


def draw_list(task: Task, scored: Scored, i: int) -> ClassList:
    """Mine the negatives of a document with its whole query.

    Where the true class scores below all of them the last are replaced by uniform ones.
    """
    classes = mine(task.problem, scored, i, task.settings.first_candidates)
    true_score, *others = score_list(task.problem, scored, i, classes)
    mined = ClassList(i, classes, true_score >= min(others), [0.0] * len(classes))
    if mined.reached or len(classes) == task.problem.n_classes:  # no class is left to draw
        return mined
    return draw_for_unreached(task, mined)


def draw_for_unreached(task: Task, mined: ClassList) -> ClassList:
    """Replace the last n negatives by uniform ones, each for (K - 1) / n classes in the softmax.

    At most half are replaced. Sampled softmax (Bengio and Senecal, 2008): a class drawn with
    probability n / (K - 1) counts by the reciprocal; one that is listed as itself counts once.
    """
    n_classes = task.problem.n_classes
    n_uniform = min(task.settings.n_uniform, (len(mined.classes) - 1) // 2)
    true, kept = mined.classes[0], mined.classes[: len(mined.classes) - n_uniform]
    drawn = draw_adversaries(true, mined.document, n_classes, n_uniform, task.seed)
    log_multiplicity = single(math.log((n_classes - 1) / n_uniform)) if n_uniform else 0.0
    added = [-math.inf if c in kept else log_multiplicity for c in drawn]
    return replace(mined, classes=kept + drawn, log_multiplicities=[0.0] * len(kept) + added)


def learn_features(task: Task, scored: Scored, lists: Sequence[ClassList]) -> list[float]:
    """The six weights on the first documents that are reached; defaults where they are too few."""
    reached = [entry for entry in lists if entry.reached][: task.settings.n_listed]
    if len(reached) < task.settings.fewest_listed:
        return DEFAULT_WEIGHTS
    features = []
    for entry in reached:
        left_out = leave_out(task.problem, scored.classes, entry.document, scored.used)
        x = scored.weighted[entry.document]
        features.append(list_features(scored.classes, left_out, x, entry.classes))
    return task.steps.fit_feature_weights(features)


def split_list(
    task: Task, scored: Scored, entry: ClassList, feature_weights: Sequence[float]
) -> Parts:
    """What each term adds to each score; what no term decides gets the log multiplicity as well."""
    left_out = leave_out(task.problem, scored.classes, entry.document, scored.used)
    parts = split_scores(left_out, scored.weighted[entry.document], entry.classes, feature_weights)
    constants = zip(parts.constants, entry.log_multiplicities, strict=True)
    return Parts(parts.terms, [single(v + m) for v, m in constants])
