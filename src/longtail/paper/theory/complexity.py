"""How rich the class of scorers is: fractional Rademacher complexity.

In come the differences z of the pairs and a cover of their dependency graph; out comes ℜ of the
linear class {h(z) = <w, z> : ||w|| <= B}, by its closed upper bounds and by Monte Carlo over the
signs, ℜ of the 0/1 loss of that class by counting, and r, the variance that defines the class H_r.

The paper defines ℜ = (2/N) E_ξ Σ_k ω_k E sup_h Σ_{α ∈ C_k} ξ_α h(z_α), an expectation over the
sample as well. Bounds that use only sizes and norms hold for that expectation; those that use the
differences of one sample estimate it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from longtail._validation import check_integer
from longtail.paper.theory.graph import FractionalCover
from longtail.sparse import Floats


@dataclass(frozen=True)
class ComplexityEstimate:
    """A Monte Carlo mean and its standard error."""

    value: float
    standard_error: float


def linear_complexity_bound(
    weight_norm: float, feature_norm: float, n_pairs: int, chromatic_number: float
) -> float:
    """Return 2 B R sqrt(χ / N), the closed upper bound on ℜ of the linear class.

    The supremum over ||w|| <= B of a set's signed sum is B ||Σ ξ z||. By Jensen its expectation is
    at most B sqrt(Σ ||z||²); by Cauchy and Schwarz the weighted sum of those over the cover is at
    most B sqrt(χ Σ_α ||z_α||²), because the cover is exact; and every ||z|| is at most R.

    Parameters
    ----------
    weight_norm : float
        B, the largest Euclidean norm of the weights.
    feature_norm : float
        R, the largest Euclidean norm of a difference φ(x^y) - φ(x^y').
    n_pairs : int
        N, the number of pairs.
    chromatic_number : float
        χ, the weight of the cover: K - 1 for T(S), κ for T_κ(S_π).

    Examples
    --------
    >>> linear_complexity_bound(1.0, 2.0, n_pairs=400, chromatic_number=4)
    0.4
    """
    _check_not_negative("weight_norm", weight_norm)
    _check_not_negative("feature_norm", feature_norm)
    check_integer("n_pairs", n_pairs, 1)
    if not 1.0 <= chromatic_number <= n_pairs:
        raise ValueError(
            f"chromatic_number must be between 1 and n_pairs (here {n_pairs}); "
            f"got {chromatic_number!r}."
        )
    return 2.0 * weight_norm * feature_norm * math.sqrt(chromatic_number / n_pairs)


def linear_complexity_from_data(
    differences: npt.ArrayLike, cover: FractionalCover, weight_norm: float
) -> float:
    """Return (2B/N) Σ_k ω_k sqrt(Σ_{α ∈ C_k} ||z_α||²), the bound before norms are replaced by R.

    Parameters
    ----------
    differences : array-like of shape (N, p)
        z, the differences of the pairs.
    cover : FractionalCover
        An exact proper fractional cover of their dependency graph.
    weight_norm : float
        B.

    Returns
    -------
    float
        At least the Monte Carlo value, at most ``linear_complexity_bound`` with the largest norm.
    """
    z = _checked_differences(differences, cover)
    _check_not_negative("weight_norm", weight_norm)
    squares = np.einsum("ij,ij->i", z, z)
    total = sum(
        weight * math.sqrt(squares[members].sum())
        for members, weight in zip(cover.sets, cover.weights, strict=True)
    )
    return 2.0 * weight_norm * float(total) / len(z)


def linear_complexity_monte_carlo(
    differences: npt.ArrayLike,
    cover: FractionalCover,
    weight_norm: float,
    n_draws: int = 200,
    random_state: Any = None,
) -> ComplexityEstimate:
    """Estimate ℜ of the linear class by drawing the Rademacher signs.

    For each draw the supremum is known: (2B/N) Σ_k ω_k ||Σ_{α ∈ C_k} ξ_α z_α||.

    Parameters
    ----------
    differences : array-like of shape (N, p)
        z, the differences of the pairs.
    cover : FractionalCover
        An exact proper fractional cover of their dependency graph.
    weight_norm : float
        B.
    n_draws : int, default 200
        Number of sign vectors, at least 2.
    random_state : int, RandomState or None
        Seeds the signs.
    """
    z = _checked_differences(differences, cover)
    _check_not_negative("weight_norm", weight_norm)
    check_integer("n_draws", n_draws, 2)
    rng = check_random_state(random_state)
    draws = np.empty(n_draws)
    for d in range(n_draws):
        symmetrised = z * rng.choice([-1.0, 1.0], size=(len(z), 1))
        draws[d] = sum(
            weight * np.linalg.norm(symmetrised[members].sum(axis=0))
            for members, weight in zip(cover.sets, cover.weights, strict=True)
        )
    draws *= 2.0 * weight_norm / len(z)
    return ComplexityEstimate(
        value=float(draws.mean()), standard_error=float(draws.std(ddof=1) / math.sqrt(n_draws))
    )


def zero_one_complexity_bound(n_features: int, set_size: int) -> float:
    """Return sqrt(2 p ln(e n / p) / n), an upper bound on ℜ of the 0/1 loss of a linear class.

    The 0/1 loss is not Lipschitz, so no contraction leads from h to it; counting does. On the n
    pairs of one set, losses of linear scorers without intercept in p features form at most (e n /
    p)^p different vectors (Sauer), 2^n if n < p. Shifted by 1/2, which signs do not see, each has
    norm sqrt(n) / 2; Massart's lemma bounds the expected supremum by sqrt(n)/2 sqrt(2 ln(number)).
    All sets of the cover have n pairs and N = n Σ_k ω_k, so the number of sets cancels.

    Parameters
    ----------
    n_features : int
        p, ten for Table 1.
    set_size : int
        n, pairs in each independent set: the number of documents, m for T(S) and M for T_κ(S_π).

    Examples
    --------
    >>> round(zero_one_complexity_bound(10, 10_000), 4)
    0.1258
    """
    check_integer("n_features", n_features, 1)
    check_integer("set_size", set_size, 1)
    if set_size < n_features:
        log_vectors = set_size * math.log(2.0)
    else:
        log_vectors = n_features * math.log(math.e * set_size / n_features)
    return math.sqrt(2.0 * log_vectors / set_size)


def ramp_loss(margins: npt.ArrayLike, margin: float = 1.0) -> Floats:
    """Return min(1, max(0, 1 - v / ρ)) of each ỹ h(z) = v.

    It lies above the 0/1 loss and is Lipschitz with constant 1/ρ, so (Talagrand's contraction) ℜ of
    it is at most ℜ of the linear class divided by ρ.

    Parameters
    ----------
    margins : array-like of shape (N,)
        ỹ h(z) of each pair.
    margin : float, default 1.0
        ρ; 1 is what the SVM asks for.

    Returns
    -------
    ndarray of shape (N,), float64

    Examples
    --------
    >>> ramp_loss([-1.0, 0.0, 0.25, 2.0]).tolist()
    [1.0, 1.0, 0.75, 0.0]
    """
    check_margin(margin)
    return np.clip(1.0 - np.asarray(margins, dtype=np.float64) / margin, 0.0, 1.0)


def loss_variance(losses: npt.ArrayLike) -> float:
    """Return the sample variance of the losses, which estimates the smallest r with h in H_r.

    For 0/1 losses of mean R it is R (1 - R) N / (N - 1). The theorem wants r fixed before the data
    are seen; the choice that needs no data is 1/4, the largest variance of any loss in [0, 1].

    Parameters
    ----------
    losses : array-like of shape (N,)
        Loss of each pair, in [0, 1].

    Returns
    -------
    float
        At most 1/4.

    Examples
    --------
    >>> round(loss_variance([1, 0, 0, 0, 0]), 6)
    0.2
    """
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or values.min() < 0 or values.max() > 1:
        raise ValueError(
            "losses must be a one-dimensional array of at least 2 values in [0, 1]; "
            f"got shape {values.shape}."
        )
    return min(0.25, float(values.var(ddof=1)))


def check_margin(margin: float) -> None:
    """Refuse a margin that is not a positive number."""
    if not (np.isfinite(margin) and margin > 0):
        raise ValueError(
            f"margin must be a positive number; got {margin!r}. 1 is the margin of the SVM."
        )


def _checked_differences(differences: npt.ArrayLike, cover: FractionalCover) -> Floats:
    """Return the differences as (N, p); the cover may only hold their row numbers."""
    z = np.asarray(differences, dtype=np.float64)
    if z.ndim != 2 or len(z) == 0:
        raise ValueError(f"differences must have shape (n_pairs, p); got shape {z.shape}.")
    largest = max((int(members.max()) for members in cover.sets if len(members)), default=-1)
    if largest >= len(z):
        raise ValueError(
            f"cover must hold row numbers of differences, 0 to {len(z) - 1}; it holds {largest}."
        )
    return z


def _check_not_negative(name: str, value: float) -> None:
    """Refuse a norm that is negative, infinite or not a number."""
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
