"""α and β of Theorem 2: what a sample with other class proportions costs.

In come the class sizes of S and the probabilities π with which documents are kept; out come α, β
and the factors of the two terms of the bound that pay for the class proportions being estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from longtail._validation import check_choice
from longtail.sparse import Floats

Form = Literal["theorem", "lemma", "retention"]


@dataclass(frozen=True)
class ShiftFactors:
    """Multipliers of the two terms that pay for estimated class proportions.

    The terms are ``slow`` sqrt(2 L / (m - 1)) and ``fast`` 7 L / (3 (m - 1)), with
    L = ln(4 ``n_events`` / δ): the empirical Bennett inequality (Lemma 2) at level δ / 2, for
    ``n_events`` quantities at once.
    """

    slow: float
    fast: float
    n_events: int


@dataclass(frozen=True)
class SamplingConstants:
    """α and β of Theorem 2 in one of three forms.

    Attributes
    ----------
    form : {"theorem", "lemma", "retention"}
        Which class distribution after sampling they assume, see ``sampling_constants``.
    n_classes : int
        K.
    alpha : float
        α, by how much a class can be under-represented in the sample.
    beta : float
        β, how strongly an error in the estimated proportions is magnified.
    printed : ShiftFactors
        sqrt(α / β), β and K events: Theorem 2 as printed.
    proved : ShiftFactors
        The factors that the proof gives.
    """

    form: Form
    n_classes: int
    alpha: float
    beta: float
    printed: ShiftFactors
    proved: ShiftFactors

    def shift_factors(self, corrected: bool) -> ShiftFactors:
        """Return ``proved`` if corrected, else ``printed``."""
        return self.proved if corrected else self.printed


def sampling_constants(
    class_sizes: npt.ArrayLike, retention: npt.ArrayLike, form: Form = "retention"
) -> SamplingConstants:
    """Compute α and β from the class sizes and the probabilities π_y.

    All forms compare the proportion η_y of a class in S with its proportion q_y after sampling.

    - ``"theorem"`` (Theorem 2): q_y = π_y; α = max η_y / π_y, β = max 1 / π_y. A distribution only
      if the π_y add up to 1; if not, α may even be below 1 and the bound fail.
    - ``"lemma"`` (Lemma 4): q_y = π_y / π with π = Σ π_y; α = max π η_y / π_y, β = max π / π_y.
      Right for a sampler that first draws a class with probability π_y / π and then a document of
      it.
    - ``"retention"`` (the default): each document of class y is kept with probability π_y, as
      Algorithm 1 and ``longtail.paper.sampling`` do, so q_y = η_y π_y / Z with
      Z = Σ η_z π_z. The proportions cancel in η_y / q_y: α = Z / min π_y. All that is estimated is
      Z, and its error is multiplied by β = max 1 / π_y. If π_y is the same for all classes, α is 1
      and the proved factors are 0.

    Parameters
    ----------
    class_sizes : array-like of shape (K,)
        Documents of each class in S; none may be 0.
    retention : array-like of shape (K,)
        π_y, in (0, 1].
    form : {"retention", "theorem", "lemma"}
        Which α and β.

    Raises
    ------
    ValueError
        If a class has no document, a probability is outside (0, 1], or the form is unknown.

    Examples
    --------
    >>> constants = sampling_constants([3, 1], [0.5, 1.0])
    >>> constants.alpha, constants.beta
    (1.25, 2.0)
    """
    check_choice("form", form, get_args(Form))
    sizes = _checked_sizes(class_sizes)
    pi = _checked_retention(retention, len(sizes))
    eta = sizes / sizes.sum()
    if form == "retention":
        return _retention_constants(eta, pi)
    if form == "lemma":
        return _proportion_constants(form, eta, pi / pi.sum())
    return _proportion_constants(form, eta, pi)


def _retention_constants(eta: Floats, pi: Floats) -> SamplingConstants:
    """α = Z / min π, β = 1 / min π; only Z = Σ η π is estimated."""
    smallest = float(pi.min())
    # Written from the smallest π up, so that equal π give exactly 1 and exactly 0.
    kept = smallest + float(eta @ (pi - smallest))
    alpha, beta = kept / smallest, 1.0 / smallest
    # Z is the mean over the documents of π, which lies in [min π, max π] and has this variance.
    spread = float(pi.max()) - smallest
    variance = float(eta @ (pi - kept) ** 2)
    proved = ShiftFactors(slow=beta * math.sqrt(variance), fast=beta * spread, n_events=1)
    return SamplingConstants(
        "retention", len(pi), alpha, beta, _printed(alpha, beta, len(pi)), proved
    )


def _proportion_constants(form: Form, eta: Floats, after: Floats) -> SamplingConstants:
    """α = max η / q, β = max 1 / q for a class distribution q that does not depend on η."""
    alpha, beta = float((eta / after).max()), float((1.0 / after).max())
    # Dividing η + sqrt(2 η L / (m-1)) + ... by q gives sqrt(η) / q, which is at most sqrt(α β),
    # not sqrt(α / β) as printed.
    slow = float((np.sqrt(eta) / after).max())
    proved = ShiftFactors(slow=slow, fast=beta, n_events=len(eta))
    return SamplingConstants(form, len(eta), alpha, beta, _printed(alpha, beta, len(eta)), proved)


def _printed(alpha: float, beta: float, n_classes: int) -> ShiftFactors:
    """Return the factors of Theorem 2 as printed."""
    return ShiftFactors(slow=math.sqrt(alpha / beta), fast=beta, n_events=n_classes)


def _checked_sizes(class_sizes: npt.ArrayLike) -> Floats:
    """Return the class sizes; every class must have a document, since η_y > 0."""
    sizes = np.asarray(class_sizes, dtype=np.float64)
    if sizes.ndim != 1 or len(sizes) < 2:
        raise ValueError(
            "class_sizes must be one-dimensional with at least 2 entries, one for each class; "
            f"got shape {sizes.shape}."
        )
    empty = np.flatnonzero(~(sizes > 0))
    if len(empty):
        raise ValueError(
            f"class_sizes must be positive for every class, as the theorem needs; class {empty[0]} "
            f"has {sizes[empty[0]]:g} documents. Leave classes without documents out."
        )
    return sizes


def _checked_retention(retention: npt.ArrayLike, n_classes: int) -> Floats:
    """Return π as probabilities, one for each class."""
    pi = np.asarray(retention, dtype=np.float64)
    if pi.shape != (n_classes,):
        raise ValueError(
            f"retention must have one probability for each class (here {n_classes}); "
            f"got shape {pi.shape}."
        )
    wrong = np.flatnonzero(~((pi > 0.0) & (pi <= 1.0)))
    if len(wrong):
        raise ValueError(
            f"retention must hold probabilities in (0, 1]; class {wrong[0]} has {pi[wrong[0]]:g}. "
            "A class that is never kept cannot be learned."
        )
    return pi
