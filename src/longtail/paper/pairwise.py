"""Pairs to scorer weights: the paper's transformation (Eq. 4) and its linear SVM.

In: (document, class) pairs, true class first, or their features. Out: a Scorer, one weight for each
feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import pairwise as pair_kernels
from longtail._kernels import paper as feature_kernels
from longtail._kernels.types import Block, Differences, DifferenceScratch, LossSums
from longtail._newton import Objective, minimise
from longtail._parallel import parallel_for
from longtail._validation import check_positive
from longtail.model.features import group_by_class
from longtail.model.statistics import ClassStatistics
from longtail.paper.features import FEATURES, as_paper_classes
from longtail.paper.sampling import PairSample
from longtail.sparse import CountMatrix, Floats, Integers

PAIR_CHUNK = 1 << 14  # pairs summed up by themselves; fixed, so that sums are the same bits


@dataclass(frozen=True)
class PairwiseScorer:
    """A linear score of the features, f in the paper: `score = features @ weights`."""

    # (n_features,) float64: apply to the features as they are, not to the scaled ones the learner
    # saw.
    weights: Floats
    # (n_features,) float64: the largest absolute difference of each feature over the sampled pairs;
    # 1 where it never differs.
    scales: Floats


def pair_with_all(true_classes: Integers, n_classes: int) -> Integers:
    """Return each true class and, after it, every other class in ascending order, (M, K)."""
    true = np.asarray(true_classes, np.int64)[:, None]
    others = np.arange(n_classes - 1)
    return np.concatenate([true, others + (others >= true)], axis=1)


def pair_labels(classes: NDArray[Any]) -> Integers:
    """Return the label of each pair of Eq. 4, (M, adversaries): -1 where k < y, else +1.

    The true class y is in column 0, its adversaries k in the others.
    """
    return np.where(classes[:, 1:] < classes[:, :1], -1, 1)


def pair_differences(features: NDArray[np.float64], classes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Apply the transformation of Eq. 4 to sampled pairs.

    A pair of the true class y and an adversary k becomes (φ(k), φ(y)) with label -1 where k < y,
    else (φ(y), φ(k)) with label +1. A linear f scores a pair by the difference of its two sides.

    Parameters
    ----------
    features : ndarray of shape (M, 1 + adversaries, n_features)
        True class in column 0.
    classes : ndarray of shape (M, 1 + adversaries)
        Class ids.

    Returns
    -------
    differences : ndarray of shape (M * adversaries, n_features)
        First side minus second side.
    labels : ndarray of shape (M * adversaries,)
        -1 or +1.
    """
    labels = pair_labels(classes).astype(np.float64)
    differences = features[:, :1, :] - features[:, 1:, :]
    differences *= labels[:, :, None]
    return differences.reshape(-1, features.shape[2]), labels.reshape(-1)


def adversary_differences(
    rows: CountMatrix, statistics: ClassStatistics, sample: PairSample, n_jobs: int | None = None
) -> NDArray[np.float32]:
    """Compute by how much the features of each true class exceed those of its adversaries.

    These are the differences of Eq. 4 times their labels, all that a linear scorer without
    intercept learns from. They are the largest array of a fit, hence 32 bits and no other array of
    this size.

    Parameters
    ----------
    rows : CountMatrix
        Counts of all documents.
    statistics : ClassStatistics
        Of the classes.
    sample : PairSample
        Drawn from these documents and classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (M * adversaries, n_features), float32
        In the order of `FEATURES`.
    """
    n_features, largest = len(FEATURES), int(np.diff(statistics.indptr).max())
    classes = as_paper_classes(statistics, statistics.corpus)
    outputs = Differences(
        np.empty(len(sample)),
        np.empty((len(sample), n_features)),
        np.empty((*sample.classes[:, 1:].shape, n_features), np.float32),
    )
    pairs = group_by_class(sample.classes, statistics.n_classes)

    def fill(are_true: bool) -> None:
        parallel_for(
            lambda first, last: feature_kernels.fill_differences(
                rows.arrays,
                sample.documents,
                pairs,
                are_true,
                classes,
                Block(first, last),
                DifferenceScratch(
                    np.zeros(statistics.n_terms, np.int32),
                    np.empty((largest, n_features)),
                    np.empty(n_features),
                ),
                outputs,
            ),
            pairs.starts,
            n_jobs,
        )

    fill(are_true=True)
    fill(are_true=False)
    differences: NDArray[np.float32] = outputs.differences
    return differences.reshape(-1, n_features)


def fit_pairwise_scorer(
    differences: NDArray[Any], labels: Floats | None, C: float, n_jobs: int | None = None
) -> PairwiseScorer:
    """Fit the paper's linear SVM on pair differences, without intercept.

    Each feature is divided by its largest absolute difference first. Without an intercept a swapped
    pair, difference and label negated, is the same constraint: the order inside a pair cannot
    matter. The problem is LIBLINEAR's with squared hinge loss: over scaled differences d with
    labels l, minimise |w|^2 / 2 + C sum max(0, 1 - l w @ d)^2. It is quadratic as long as no pair's
    margin crosses 1, so that Newton's method arrives after about a dozen steps, each of which reads
    the pairs once.

    Parameters
    ----------
    differences : ndarray of shape (n_pairs, n_features), float32 or float64
        As from `pair_differences`; at least one.
    labels : ndarray of shape (n_pairs,) or None
        -1 or +1. None stands for +1 throughout: each difference is that of the true class minus its
        adversary, as from `adversary_differences`. Labels cost a copy of the differences.
    C : float
        Weight of the squared hinge loss of each pair.
    n_jobs : int or None
        Number of threads; the weights are the same for any.
    """
    check_positive("C", C)
    if not len(differences):
        raise ValueError("no pair to learn from: the sample has no documents.")
    if labels is not None:
        differences = differences * labels[:, None]
    scales = np.maximum(differences.max(axis=0), -differences.min(axis=0)).astype(np.float64)
    if not np.isfinite(scales).all():
        raise ValueError("differences must be finite; there is a NaN or an infinity among them.")
    scales[scales < np.finfo(np.float64).tiny] = 1.0
    weights = minimise(
        lambda weights: svm_objective(weights, differences, scales, C, n_jobs),
        np.zeros(len(scales)),
    )
    return PairwiseScorer(weights=weights / scales, scales=scales)


def svm_objective(
    weights: Floats,
    differences: NDArray[Any],
    scales: Floats,
    C: float,
    n_jobs: int | None = None,
) -> Objective:
    """Return |w|^2 / 2 + C sum max(0, 1 - w @ d)^2 over scaled differences d, all labels +1.

    The loss has no second derivative where a pair's margin is exactly 1; there it counts as 0. Of
    the Hessian only the lower triangle is filled.
    """
    n_chunks, n_features = -(-len(differences) // PAIR_CHUNK), len(weights)
    sums = LossSums(
        np.empty(n_chunks),
        np.zeros((n_chunks, n_features)),
        np.zeros((n_chunks, n_features, n_features)),
    )
    parallel_for(
        lambda first, last: pair_kernels.sum_losses(
            differences, 1.0 / scales, weights, PAIR_CHUNK, Block(first, last), sums
        ),
        PAIR_CHUNK * np.arange(n_chunks + 1),
        n_jobs,
    )
    return Objective(
        value=float(0.5 * (weights * weights).sum() + C * sums.losses.sum()),
        gradient=weights + 2.0 * C * sums.gradients.sum(axis=0),
        hessian=np.eye(n_features) + 2.0 * C * sums.hessians.sum(axis=0),
    )
