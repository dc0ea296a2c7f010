"""The ranking loss and the risks of the paper's theory (Eq. 1 to 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longtail.sparse import Floats


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
    return float(np.mean(true[:, None] - adversaries <= 0))


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
