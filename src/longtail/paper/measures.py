"""Measures of the paper: the ranking loss and its risks (Eq. 1, 3, 6, 7), and MaF1.

In: scores or labels. Out: one number, or one loss per document. The paper calls MaF1 the harmonic
mean of macro precision and macro recall (`macro_f1_of_means`); most tools report the mean of the
per-class F1 (`macro_f1`). Tables say which one they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail.sparse import Floats, Integers


def instantaneous_loss(true_scores: ArrayLike, other_scores: ArrayLike) -> Floats:
    """Return the ranking loss of Eq. 1 for each document.

    The share of the other classes that score at least as high as the true class:
    e(g, x^y) = 1 / (K - 1) * sum over y' != y of 1[g(x^y) <= g(x^y')].

    Parameters
    ----------
    true_scores : array-like of shape (n_documents,)
        g(x^y).
    other_scores : array-like of shape (n_documents, K - 1)
        g(x^y') for every other class, in any order. For large K, call this on blocks of documents.

    Returns
    -------
    ndarray of shape (n_documents,), float64

    Examples
    --------
    >>> instantaneous_loss([2.0], [[1.0, 2.0, 3.0, 0.0]])
    array([0.5])
    """
    true, other = _check_scores(true_scores, other_scores, "other_scores")
    return np.asarray(np.mean(true[:, None] <= other, axis=1))


def empirical_risk(true_scores: ArrayLike, other_scores: ArrayLike) -> float:
    """Return the empirical risk of Eq. 3: the mean ranking loss of the documents.

    Parameters are those of `instantaneous_loss`.

    Examples
    --------
    >>> empirical_risk([2.0, 1.0], [[1.0, 3.0], [0.0, 0.5]])
    0.25
    """
    return float(np.mean(instantaneous_loss(true_scores, other_scores)))


def transformed_risk(pair_scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the risk of Eq. 6 over transformed pairs: how many have label * h(z) <= 0.

    Parameters
    ----------
    pair_scores : array-like of shape (n_pairs,)
        h(z), the score of the first side of each pair minus that of the second.
    labels : array-like of shape (n_pairs,)
        -1 or +1, as Eq. 4 gives them.

    Examples
    --------
    >>> transformed_risk([1.0, -2.0, 0.0, 3.0], [1, -1, 1, -1])
    0.5
    """
    margins = np.asarray(pair_scores, dtype=np.float64) * np.asarray(labels, dtype=np.float64)
    if margins.ndim != 1 or not len(margins):
        raise ValueError(f"pair_scores must be a list of at least one pair; got {margins.shape}.")
    return float(np.mean(margins <= 0))


def sampled_risk(true_scores: ArrayLike, adversary_scores: ArrayLike) -> float:
    """Return the risk of Eq. 7 over (π,κ)-sampled pairs.

    1 / (κ M) * sum over the documents kept and their κ adversaries of 1[g(x^y) - g(x^y') <= 0].

    Parameters
    ----------
    true_scores : array-like of shape (M,)
        Scores of the true classes of the documents kept.
    adversary_scores : array-like of shape (M, κ)
        Scores of their adversaries.

    Examples
    --------
    >>> sampled_risk([2.0, 1.0], [[1.0, 3.0], [0.0, 0.5]])
    0.25
    """
    true, adversaries = _check_scores(true_scores, adversary_scores, "adversary_scores")
    return float(np.mean(true[:, None] <= adversaries))


def macro_f1(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the mean of the per-class F1, over the classes that occur in either array.

    The macro F1 of most tools. A class that is never predicted correctly counts as 0.

    Examples
    --------
    >>> macro_f1(["a", "b", "b"], ["a", "b", "a"])
    0.6666666666666666
    """
    counts = count_outcomes(y_true, y_pred)
    return float(np.mean(2.0 * counts.correct / (counts.predicted + counts.true)))


def macro_f1_of_means(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the harmonic mean of macro precision and macro recall, the paper's text for MaF1.

    Both means run over the classes that occur in either array; an undefined precision or recall
    counts as 0.

    Examples
    --------
    >>> round(macro_f1_of_means(["a", "b", "b"], ["a", "b", "a"]), 4)
    0.75
    """
    counts = count_outcomes(y_true, y_pred)
    return f1_of_means(counts.true, counts.predicted, counts.correct)


def f1_of_means(true: Integers, predicted: Integers, correct: Integers) -> float:
    """Return the harmonic mean of macro precision and recall from the counts of each class."""
    if not len(true):
        return 0.0
    precision = float(np.mean(correct / np.maximum(predicted, 1)))
    recall = float(np.mean(correct / np.maximum(true, 1)))
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True)
class Outcomes:
    """For each class that occurs: how often it is true, predicted, and both."""

    labels: NDArray[np.generic]
    true: Integers
    predicted: Integers
    correct: Integers


def count_outcomes(y_true: ArrayLike, y_pred: ArrayLike) -> Outcomes:
    """Count true, predicted and correct documents of each class that occurs."""
    true, predicted = check_labels(y_true, y_pred)
    labels, class_ids = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    of_true, of_predicted = class_ids[: len(true)], class_ids[len(true) :]
    correct = of_true[of_true == of_predicted]
    return Outcomes(
        labels,
        np.bincount(of_true, minlength=len(labels)),
        np.bincount(of_predicted, minlength=len(labels)),
        np.bincount(correct, minlength=len(labels)),
    )


def check_labels(
    y_true: ArrayLike, y_pred: ArrayLike
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return both as arrays, after checking that they match."""
    true, predicted = as_array(y_true), as_array(y_pred)
    if true.ndim != 1 or true.shape != predicted.shape or not len(true):
        raise ValueError(
            "y_true and y_pred must be lists of labels of the same length, at least 1; "
            f"got shapes {true.shape} and {predicted.shape}."
        )
    return true, predicted


def as_array(labels: ArrayLike) -> NDArray[Any]:
    """Return labels as an array; strings one by one, not all as long as the longest."""
    if isinstance(labels, list | tuple) and any(isinstance(label, str) for label in labels):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    return np.asarray(labels)


def _check_scores(
    true_scores: ArrayLike, other_scores: ArrayLike, name: str
) -> tuple[Floats, Floats]:
    """Return both as float arrays, after checking that they match."""
    true = np.asarray(true_scores, dtype=np.float64)
    other = np.asarray(other_scores, dtype=np.float64)
    if true.ndim != 1 or other.ndim != 2 or len(true) != len(other) or not other.size:
        raise ValueError(
            f"true_scores must have shape (n,) and {name} (n, at least 1), n at least 1; "
            f"got {true.shape} and {other.shape}."
        )
    return true, other
