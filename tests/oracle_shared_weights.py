"""The weights that all classes share, in plain dicts and loops, importing nothing of ours.

Learned on lists: a sampled label of a document, without the document, and negatives outside the
document's whole label set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle_sampling import draw_adversaries
from tests.oracle_score import OracleClasses, Parts
from tests.oracle_scored_classes import Scored, Shared, Task, mine, score_classes, score_list
from tests.oracle_search import leave_out, single
from tests.oracle_training import list_features, split_scores

FIRST_WEIGHTS = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]  # the dampened cosine mines the first lists
DEFAULT_WEIGHTS = [8.0, 0.3, 0.0, 0.1, 2.5, 0.0]  # where there are too few lists to learn from
CENTROID_WEIGHTS = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # nearest centroid


@dataclass(frozen=True)
class ClassList:
    """A label of a document and its negatives; `pair` is its number among all pairs.

    `reached` says whether the true class scores at least as high as the lowest negative;
    `log_multiplicities` is ln(m) of the m classes that each class stands for.
    """

    document: int
    pair: int
    classes: list[int]
    reached: bool
    log_multiplicities: list[float]


def learn_shared(task: Task, sample: Sequence[tuple[int, int]]) -> Shared:
    """Term weights and feature weights on lists of the sampled documents.

    Feature weights are learned three times: to learn term weights with, with these, and on the
    lists that the score itself then mines.
    """
    problem = task.problem
    everything = range(len(problem.labels))
    ones = [1.0] * problem.n_terms
    scored = score_classes(problem, everything, Shared(ones, FIRST_WEIGHTS))
    lists = draw_lists(task, scored, sample)
    feature_weights = learn_features(task, scored, lists)
    factors = task.steps.fit_term_weights(
        [split_list(task, scored, entry, feature_weights) for entry in lists]
    )
    term_weights = [factors.get(t, 1.0) for t in range(problem.n_terms)]
    scored = score_classes(problem, everything, Shared(term_weights, feature_weights))
    feature_weights = learn_features(task, scored, lists)
    scored = score_classes(problem, everything, Shared(term_weights, feature_weights))
    lists = draw_lists(task, scored, sample[: task.settings.n_listed])
    return Shared(term_weights, learn_features(task, scored, lists))


def draw_lists(task: Task, scored: Scored, sample: Sequence[tuple[int, int]]) -> list[ClassList]:
    """The lists of sampled labels; those of documents with too few classes outside are left out.

    Where documents have several labels, so are those out of reach.

    As many negatives as a document with the most labels of the sample can have, or one with half of
    all classes.
    """
    labels, n_classes = task.problem.labels, task.problem.n_classes
    most = max([len(labels[i]) for i, _ in sample], default=1)
    n_negatives = min(task.settings.first_candidates, n_classes - min(most, max(n_classes // 2, 1)))
    lists = [draw_list(task, scored, *pair, n_negatives) for pair in sample]
    kept = [entry for entry in lists if entry is not None]
    if any(len(labels[i]) != 1 for i, _ in sample):
        return [entry for entry in kept if entry.reached]
    return kept


def draw_list(task: Task, scored: Scored, i: int, place: int, n_negatives: int) -> ClassList | None:
    """Mine the negatives of a document with its whole query.

    Where the label scores below all of them the last are replaced by uniform ones.
    """
    labels = task.problem.labels
    negatives, true = mine(task.problem, scored, i, n_negatives), labels[i][place]
    if len(negatives) < n_negatives:
        return None
    true_score, *others = score_list(task.problem, scored, i, [true], negatives)
    classes = [true, *negatives]
    pair = sum(len(own) for own in labels[:i]) + place
    mined = ClassList(i, pair, classes, true_score >= min(others), [0.0] * len(classes))
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
    drawn = draw_adversaries(true, mined.pair, n_classes, n_uniform, task.seed)
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
        left_out = without_document(task, scored, entry)
        x = scored.weighted[entry.document]
        features.append(list_features(scored.classes, left_out, x, entry.classes))
    return task.steps.fit_feature_weights(features)


def without_document(task: Task, scored: Scored, entry: ClassList) -> OracleClasses:
    """The classes, the label of a list summed without its document."""
    true = entry.classes[0]
    return leave_out(task.problem, scored.classes, entry.document, true, scored.used)


def split_list(
    task: Task, scored: Scored, entry: ClassList, feature_weights: Sequence[float]
) -> Parts:
    """What each term adds to each score; what no term decides gets the log multiplicity as well."""
    left_out = without_document(task, scored, entry)
    parts = split_scores(left_out, scored.weighted[entry.document], entry.classes, feature_weights)
    constants = zip(parts.constants, entry.log_multiplicities, strict=True)
    return Parts(parts.terms, [single(v + m) for v, m in constants])
