"""How much features and residuals count in the final ranking, by the size of the class.

In: candidates of held-out documents with their scores, features and residuals. Out: a `Mixture`.
Feature weights are learned before there are residuals, and are the same for a class of one document
and a class of a thousand; residuals are learned one class at a time. What each of them is worth
beside the others, and how that changes with the size of the class, shows on documents that no class
has seen.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import log
from longtail._kernels import types as kernel_types
from longtail._kernels.features import SMALLEST_SIZE
from longtail._kernels.listwise import sum_mixture_losses
from longtail._kernels.types import Coordinates, Lists, SoftmaxSums
from longtail._newton import NotDefiniteError, Objective, minimise
from longtail.model.features import N_BY_SIZE, SCORE_FEATURE_NAMES, SIZE, weigh_by_size
from longtail.model.scorer import ClassResiduals, add_residuals
from longtail.sparse import Floats, Integers
from longtail.training.listwise import new_scratch

N_FEATURES = len(SCORE_FEATURE_NAMES)
N_PARTS = N_FEATURES + 4  # and the weights and the bias of the residual, and of the separator

SEPARATOR = N_FEATURES + 2  # column of the separator without its bias; the bias is the next

MIN_MIXED = 200  # with fewer labels nothing is learned
# With fewer labels what counts is a line in ln n_c. The calibration sees the same documents: 39
# numbers learned on 320 labels made it promise a precision of 0.80 where 0.74 was reached.
MIN_BENT = 1_000
# Of the loss, in which each class counts once, not each document. On held-out documents of five
# sets nothing is lost by less than 0.25 (linux-subsystem gains 0.25 / 0.27); 0 costs macro F1.
MACRO_SHARE = 0.15
PRIOR = 1.0  # weight of the penalty on changes, in documents
# Where classes are of about one size, the true class of a held-out document is the smaller one,
# because it lacks the document. That holds for no new document.
SMALLEST_SPREAD = 0.5  # standard deviation of ln n_c from which on the size counts

AS_LEARNED = np.array([1.0, 1.0, 0.0, 0.0])  # a separator has no scale of its own

SMALLEST_FACTOR = 0.1  # of the features' score, by which what is learned beside it is divided

_LOGGER = logging.getLogger("longtail")


@dataclass(frozen=True, eq=False)
class PairParts:
    """What the scores of documents with their candidates consist of.

    Attributes
    ----------
    scores : ndarray of shape (n_documents, q), float64
        By the scorer alone.
    values : ndarray of shape (n_documents, q, 10 or 12), float64
        The six features, the residual without its bias, the bias, and the same of the separator;
        where classes have names, what the document has in common with the name, and 1 for a class
        without documents.
    log_sizes : ndarray of shape (n_documents, q), float64
        ln n_c.
    """

    scores: Floats
    values: Floats
    log_sizes: Floats

    def __getitem__(self, selection: Any) -> PairParts:
        """Return the parts of some documents, or of some of their candidates."""
        return PairParts(self.scores[selection], self.values[selection], self.log_sizes[selection])


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is added to the weight of each feature, and what residuals count.

    Row 0 holds for a class of one document; row 1 is added to it per unit of ln n_c, and each
    further one per unit beyond its bend.

    Attributes
    ----------
    features : ndarray of shape (5, 6), float64
        Added to the feature weights.
    residuals : ndarray of shape (5, 4), float64
        Factors of a residual's weights and of its bias, and of the separator's.
    names : ndarray of shape (5, 2), float64
        Added to the weight of a name and to the bonus of a class without documents; the bonus does
        not depend on ln n_c.
    """

    features: Floats = field(default_factory=lambda: np.zeros((N_BY_SIZE, N_FEATURES)))
    residuals: Floats = field(default_factory=lambda: np.eye(N_BY_SIZE, 1) * AS_LEARNED)
    names: Floats = field(default_factory=lambda: np.zeros((N_BY_SIZE, 2)))

    @classmethod
    def without_residuals(cls) -> Mixture:
        """Return the scorer alone."""
        return cls(residuals=np.zeros((N_BY_SIZE, len(AS_LEARNED))))

    def mix(self, parts: PairParts) -> Floats:
        """Return the scores of pairs."""
        scores = parts.scores.copy()
        factors = np.concatenate([self.features, self.residuals, self.names], axis=1)
        # Column by column: the bits of a matrix product depend on how many rows there are.
        for column, rows in enumerate(factors.T[: parts.values.shape[2]]):
            scores += parts.values[:, :, column] * weigh_by_size(rows, parts.log_sizes)
        return scores

    @property
    def uses_separators(self) -> bool:
        """Whether separators count."""
        return bool(self.residuals[:, 2:].any())

    def scale(
        self,
        residuals: ClassResiduals,
        separators: ClassResiduals | None,
        class_sizes: Integers,
    ) -> ClassResiduals:
        """Return residuals and separators as they count, in one row for each class."""
        if not self.residuals.any():
            return ClassResiduals.none(len(residuals.biases))
        factors = [weigh_by_size(rows, log_sizes(class_sizes)) for rows in self.residuals.T]
        scaled = residuals.scale(*factors[:2])
        if separators is None or not self.uses_separators:
            return scaled
        return add_residuals(scaled, separators.scale(*factors[2:]))

    def ranking_weights(self, feature_weights: Floats) -> Floats:
        """Return the feature weights of the final ranking, shape (5, 6)."""
        return np.concatenate([feature_weights + self.features[:1], self.features[1:]])

    def name_weights(self, first: Floats) -> Floats:
        """Return the three weights of names, where they began with `first`."""
        return np.asarray(first + np.array([*self.names[:2, 0], self.names[0, 1]]))

    def raise_bonus(self, more: float) -> Mixture:
        """Return the same mixture with another bonus of classes without documents."""
        return replace(self, names=self.names + np.eye(N_BY_SIZE, 1) * np.array([0.0, more]))


def log_sizes(class_sizes: Integers) -> Floats:
    """Return ln n_c, as the size feature has it."""
    return log(np.maximum(class_sizes, SMALLEST_SIZE))


def fit_mixture(
    parts: PairParts, correct: NDArray[np.bool_], candidates: Integers, *, by_size: bool = True
) -> Mixture:
    """Learn the mixture under which each label wins a softmax over the candidates that are none.

    Separators do not count in it.

    Parameters
    ----------
    parts : PairParts
        Of held-out documents with their candidates.
    correct : ndarray of shape (n_documents, q), bool
        Which candidates are labels.
    candidates : ndarray of shape (n_documents, q)
        Class ids, each once in a row.
    by_size : bool, default=True
        Whether the mixture may depend on the size of the class.

    Returns
    -------
    Mixture
        The plain one where there is too little to learn from.
    """
    unchanged = Mixture()
    lists = _LabelLists.of(correct, candidates)
    if lists is None:
        return unchanged
    used = np.ones((N_BY_SIZE, parts.values.shape[2]), np.bool_)
    # A bonus of large classes that bends balances the likelihood's penalty on them at the usual
    # length of a document alone: a text of three words would belong to the largest class.
    used[1:, SIZE] = False
    used[:, SEPARATOR:N_PARTS] = False
    used[2:, N_PARTS if lists.can_bend else 0 :] = False  # a line is enough for names
    used[1, N_PARTS + 1 :] = False  # ln n_c of classes without documents is one number
    if not by_size or not lists.vary_in_size(parts):
        used[:, SIZE] = used[1:] = False
    # The residual counts once before anything is learned.
    first = parts.scores + parts.values[:, :, N_FEATURES] + parts.values[:, :, N_FEATURES + 1]
    changes = lists.learn(first, parts.values, parts.log_sizes, used)
    if changes is None:
        return unchanged
    of_features, of_residuals, of_names = np.split(changes, [N_FEATURES, N_PARTS], axis=1)
    return Mixture(
        of_features,
        unchanged.residuals + of_residuals,
        of_names if of_names.size else unchanged.names,
    )


def add_separators(
    mixture: Mixture,
    parts: PairParts,
    correct: NDArray[np.bool_],
    candidates: Integers,
    *,
    by_size: bool = True,
) -> Mixture:
    """Learn what separators count beside features that stay as they are; parameters as above.

    Candidates are found by the features, so these keep their weights: where separators took their
    place in large classes, these were found less often (cve-product 87.9 instead of 89.4 %). The
    bias of a separator counts apart from its weights: that gains 0.5 points of accuracy and 0.9 of
    macro F1 on held-out documents of cve-product, and 0.1 or less on others.
    Residuals and separators are learned beside a multiple of the features' score, by which the
    result is divided: that changes no ranking.

    Returns
    -------
    Mixture
        The one given where there is too little to learn from.
    """
    lists = _LabelLists.of(correct, candidates)
    if lists is None:
        return mixture
    residuals = parts.values[:, :, N_FEATURES:N_PARTS]
    of_features = replace(mixture, residuals=np.zeros_like(mixture.residuals)).mix(parts)
    used = np.ones((N_BY_SIZE, 1 + residuals.shape[2]), np.bool_)
    used[1:, 0] = False
    # A line is enough here: with bends large classes of cve-product lose 0.3 points more.
    used[2:, -1] = False
    if not lists.can_bend:
        used[2:] = False
    if not by_size or not lists.vary_in_size(parts):
        used[1:] = False
    values = np.concatenate([of_features[:, :, None], residuals], axis=2)
    changes = lists.learn(mixture.mix(parts), values, parts.log_sizes, used)
    if changes is None or 1.0 + changes[0, 0] < SMALLEST_FACTOR:
        return mixture
    learned = (mixture.residuals + changes[:, 1:]) / (1.0 + changes[0, 0])
    return replace(mixture, residuals=learned)


def fit_meaning(
    scores: Floats,
    meaning: Floats,
    log_sizes: Floats,
    correct: NDArray[np.bool_],
    candidates: Integers,
    *,
    by_size: bool = True,
) -> Floats | None:
    """Learn what the parts of meaning count beside scores that stay as they are.

    They are learned beside a multiple of the scores, by which the result is divided.

    Parameters
    ----------
    scores : ndarray of shape (n_documents, q), float64
        Of held-out documents with their candidates, by all that is no meaning.
    meaning : ndarray of shape (n_documents, q, 4), float64
        The parts.
    log_sizes : ndarray of shape (n_documents, q), float64
        ln n_c.
    correct, candidates, by_size
        As in `fit_mixture`.

    Returns
    -------
    ndarray of shape (5, 4), float64, or None
        None where there is too little to learn from.
    """
    lists = _LabelLists.of(correct, candidates)
    if lists is None:
        return None
    values = np.concatenate([scores[:, :, None], meaning], axis=2)
    used = np.ones((N_BY_SIZE, values.shape[2]), np.bool_)
    used[:, 1:] = meaning.any(axis=(0, 1))
    used[1:, 0] = False
    used[1:, -1] = False  # ln n_c of classes without documents is one number
    if not lists.can_bend:
        used[2:] = False
    if not by_size or log_sizes[np.unique(lists.rows)].std() < SMALLEST_SPREAD:
        used[1:] = False
    changes = lists.learn(scores, values, log_sizes, used)
    if changes is None or 1.0 + changes[0, 0] < SMALLEST_FACTOR:
        return None
    return np.asarray(changes[:, 1:] / (1.0 + changes[0, 0]))


@dataclass(frozen=True, eq=False)
class _LabelLists:
    """Labels of held-out documents, each with the negatives that it competes with.

    `rows` are documents, `columns` candidates, the label first; `weights` are what lists count.
    """

    rows: Integers
    columns: Integers
    weights: Floats

    @classmethod
    def of(cls, correct: NDArray[np.bool_], candidates: Integers) -> _LabelLists | None:
        """List the labels; None where they are too few to learn from."""
        rows, columns = _list_labels(correct)
        if len(rows) < MIN_MIXED or columns.shape[1] < 2:
            return None
        weights = _list_weights(candidates[rows, columns[:, 0]])
        return cls(np.ascontiguousarray(rows), columns, weights)

    @property
    def can_bend(self) -> bool:
        """Whether there are enough labels for more than a line in ln n_c."""
        return len(self.rows) >= MIN_BENT

    def vary_in_size(self, parts: PairParts) -> bool:
        """Return whether the classes of the listed documents are of different sizes."""
        return bool(parts.log_sizes[np.unique(self.rows)].std() >= SMALLEST_SPREAD)

    def learn(
        self, first: Floats, values: Floats, log_sizes: Floats, used: NDArray[np.bool_]
    ) -> Floats | None:
        """Learn what to add to `first`: the values times a weight that depends on the size.

        Returns the weights, of shape (5, n_values), 0 where not `used`; None where the candidates
        do not differ enough.
        """
        scales = values[np.unique(self.rows)].std(axis=(0, 1)) + 1e-9
        size_rows, part_ids = np.divmod(np.flatnonzero(used), values.shape[2])
        task = _Softmax(
            kernel_types.PairParts(
                first, np.ascontiguousarray(values), np.ascontiguousarray(log_sizes)
            ),
            Lists(self.rows, self.columns, self.weights),
            Coordinates(size_rows, part_ids, scales),
            PRIOR / len(self.rows),
        )
        changes = np.zeros(used.shape)
        try:
            changes[used] = minimise(task, np.zeros(len(part_ids)))
        except NotDefiniteError:
            _LOGGER.warning(
                "the candidates of the held-out documents do not differ enough to learn how much "
                "features and residuals count: they count as learned."
            )
            return None
        return np.asarray(changes / scales)


def _list_labels(correct: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the row of each label that is a candidate, and its list: label, then negatives.

    Each list has as many negatives as every document has. Of documents with very many labels
    half of the candidates are enough, and the others are passed over.
    """
    n_candidates = correct.shape[1]
    n_labels = correct.sum(axis=1)
    n_negatives = n_candidates - min(max(int(n_labels.max(initial=0)), 1), n_candidates // 2 + 1)
    rows, of_labels = np.nonzero(correct & (n_candidates - n_labels >= n_negatives)[:, None])
    negatives = np.argsort(correct[rows], axis=1, kind="stable")[:, :n_negatives]
    return rows, np.column_stack([of_labels, negatives])


def _list_weights(labels: Integers) -> Floats:
    """Return what each list counts: between one of all and one of its label's; sums to 1."""
    of_class = 1.0 / np.bincount(labels)[labels]
    weights = (1.0 - MACRO_SHARE) / len(labels) + MACRO_SHARE * of_class / of_class.sum()
    return np.asarray(weights)


@dataclass(frozen=True, eq=False)
class _Softmax:
    """The penalised loss of changes to the mixture, over lists.

    Changes are in units of the standard deviation of what they multiply: a part, times what its
    row depends on.
    """

    parts: kernel_types.PairParts
    lists: Lists
    coordinates: Coordinates
    decay: float

    def __call__(self, changes: Floats) -> Objective:
        """Return loss, gradient and Hessian."""
        n = len(changes)
        sums = SoftmaxSums(2.0 * self.decay * changes, 2.0 * self.decay * np.eye(n))
        loss = sum_mixture_losses(
            self.parts,
            self.lists,
            self.coordinates,
            changes,
            new_scratch(self.lists.columns.shape[1], n),
            sums,
        )
        penalty = self.decay * float((changes * changes).sum())
        return Objective(loss + penalty, sums.gradient, sums.hessian)
