"""Pairs to scorer weights: the paper's transformation (Eq. 4) and its linear SVM.

In: features of (document, class) pairs, true class first. Out: a Scorer, one weight for each
feature.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from longtail._kernels import scoring as kernels
from longtail.scoring import Contributions
from longtail.statistics import CountRows, Floats, Integers


@dataclass(frozen=True)
class Scorer:
    """A linear score of the features, f in the paper: `score = features @ weights`.

    Attributes
    ----------
    weights : ndarray of shape (n_features,), float64
        Apply to the features as they are, not to the scaled ones the learner saw.
    scales : ndarray of shape (n_features,), float64
        The largest absolute difference of each feature over the sampled pairs; 1 where it never
        differs.
    """

    weights: Floats
    scales: Floats


def pair_differences(
    features: NDArray[np.float64], classes: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Apply the transformation of Eq. 4 to sampled pairs.

    A pair of the true class y and an adversary k becomes (φ(k), φ(y)) with label -1 where k < y,
    else (φ(y), φ(k)) with label +1. A linear f scores a pair by the difference of its two sides.

    Parameters
    ----------
    features : ndarray of shape (M, 1 + adversaries, n_features)
        True class in column 0.
    classes : ndarray of shape (M, 1 + adversaries)
        Class numbers.

    Returns
    -------
    differences : ndarray of shape (M * adversaries, n_features)
        First side minus second side.
    labels : ndarray of shape (M * adversaries,)
        -1 or +1.
    """
    labels = np.where(classes[:, 1:] < classes[:, :1], -1.0, 1.0)
    differences = features[:, :1, :] - features[:, 1:, :]
    differences *= labels[:, :, None]
    return differences.reshape(-1, features.shape[2]), labels.reshape(-1)


def learn_scorer(differences: Floats, labels: Floats, C: float) -> Scorer:
    """Fit the paper's linear SVM on pair differences, without intercept.

    Each feature is divided by its largest absolute difference first. Without an intercept a swapped
    pair, difference and label negated, is the same constraint: the order inside a pair cannot
    matter.

    Parameters
    ----------
    differences : ndarray of shape (n_pairs, n_features)
        As from `pair_differences`; at least one.
    labels : ndarray of shape (n_pairs,)
        -1 or +1.
    C : float
        Weight of the squared hinge loss of each pair.

    Returns
    -------
    Scorer
    """
    check_positive("C", C)
    if not len(differences):
        raise ValueError("no pair to learn from: the sample has no documents.")
    scales = np.abs(differences).max(axis=0)
    scales[scales == 0] = 1.0
    differences, labels = _have_both_labels(differences / scales, labels)
    svm = LinearSVC(C=C, loss="squared_hinge", dual=False, fit_intercept=False, max_iter=10_000)
    svm.fit(differences, labels)
    return Scorer(weights=svm.coef_[0] / scales, scales=scales)


def learn_listwise(
    features: NDArray[np.float32],
    decay: float = 1e-3,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> Floats:
    """Fit feature weights so that the first class of each row wins a softmax over its row.

    Minimises the mean of -ln softmax(features @ w)[0] plus `decay` * |w|^2, on features divided by
    their standard deviation, with L-BFGS.

    Parameters
    ----------
    features : ndarray of shape (M, width, n_features)
        True class in column 0.
    decay : float
        Weight of the penalty.
    bounds : sequence of (low, high), optional
        Of each weight.

    Returns
    -------
    ndarray of shape (n_features,), float64
        Weights of the features as they are.
    """
    scales = features.std(axis=(0, 1), dtype=np.float64) + 1e-9
    # A row's common part cannot matter; without it a feature that never differs is exactly 0.
    scaled = (features - features[:, :1]) / scales

    def loss(weights: Floats) -> tuple[float, Floats]:
        return listwise_loss(weights, scaled, decay)

    scaled_bounds = None if bounds is None else np.asarray(bounds) * scales[:, None]
    result = minimize(
        loss, np.zeros(len(scales)), jac=True, method="L-BFGS-B", bounds=scaled_bounds
    )
    return np.asarray(result.x / scales)


def listwise_loss(weights: Floats, features: Floats, decay: float) -> tuple[float, Floats]:
    """Return the penalised softmax loss of the first column of each row, and its gradient."""
    scores = features @ weights
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    totals = shares.sum(axis=1)
    value = float(np.mean(np.log(totals) - scores[:, 0]) + decay * weights @ weights)
    shares /= totals[:, None]
    shares[:, 0] -= 1.0
    gradient = np.einsum("nq,nqd->d", shares, features) / len(features) + 2.0 * decay * weights
    return value, gradient


def learn_term_weights(
    rows: CountRows,
    documents: Integers,
    contributions_of: Callable[[slice], Contributions],
    *,
    learning_rate: float = 0.1,
    decay: float = 1e-3,
    n_epochs: int = 3,
    block: int | None = None,
) -> Floats:
    """Learn a factor for each term so that the first class of each row wins a softmax over its row.

    The factors are exponentials, so they stay positive; a term that is never seen keeps 1.

    Parameters
    ----------
    rows : CountRows
        All documents.
    documents : ndarray of shape (M,)
        Row numbers, in the order of the gradient steps.
    contributions_of : callable
        Gives, for a slice of `documents`, what each term adds to each score at factor 1; true class
        in column 0. Where there is more than one slice it is asked again in every pass: all at once
        would be the largest array of a fit.
    learning_rate, decay, n_epochs : float, float, int
        Of the adaptive gradient method; the penalty pulls logarithms to 0 each time a term is seen.
    block : int, optional
        Documents in a slice; as many as have half a million terms when left out.

    Returns
    -------
    ndarray of shape (n_terms,), float64
    """
    log_weights, steps = np.zeros(rows.n_terms), np.full(rows.n_terms, 1e-2)
    block = block or _documents_in_block(rows, documents)
    parts = [slice(start, start + block) for start in range(0, len(documents), block)]
    contributions = contributions_of(parts[0]) if len(parts) == 1 else None
    for _ in range(n_epochs):
        for part in parts:
            terms = contributions_of(part) if contributions is None else contributions
            kernels.step_term_weights(
                rows.indptr,
                rows.indices,
                documents[part],
                terms.places,
                terms.values,
                terms.constants,
                learning_rate,
                decay,
                log_weights,
                steps,
            )
    return np.exp(log_weights)


def _documents_in_block(rows: CountRows, documents: Integers) -> int:
    """Return how many documents have about half a million terms: 42 MB with 20 rivals each."""
    n_entries = int(np.diff(rows.indptr)[documents].sum())
    return max(1, 500_000 * len(documents) // max(n_entries, 1))


def check_positive(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive finite number."""
    if not isinstance(value, numbers.Real) or not value > 0 or not np.isfinite(value):
        raise ValueError(f"{name} must be a positive number; got {value!r}.")


def _have_both_labels(differences: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Swap one pair where all labels agree: the same constraint; LIBLINEAR wants both labels."""
    if np.all(labels == labels[0]):
        differences, labels = differences.copy(), labels.copy()
        if len(labels) == 1:
            differences, labels = np.repeat(differences, 2, axis=0), np.repeat(labels, 2)
        differences[0] *= -1
        labels[0] *= -1
    return differences, labels
