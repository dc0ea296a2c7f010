"""The generalisation bounds: Theorem 1 and both inequalities of Theorem 2.

In come risks, a complexity and the sizes m, M, κ, K; out comes a ``Bound``, term by term. Nothing
here looks at a model or at documents: ``longtail.paper.theory.risks`` does.

``corrected=False`` gives Theorem 2 as it is printed. ``corrected=True`` gives what its proof shows;
the two differ in the terms that pay for the class proportions being estimated, and in the last term
of Theorem 2(b). ``docs/theory.md`` has the algebra.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from longtail._validation import check_integer
from longtail.paper.theory.constants import SamplingConstants


@dataclass(frozen=True)
class Bound:
    """An upper bound on R(h), taken apart.

    Attributes
    ----------
    theorem : str
        ``"1"``, ``"2a"`` or ``"2b"``.
    delta : float
        The bound holds with probability at least 1 - delta.
    terms : mapping of str to float
        The terms in the order in which they are printed in the paper.
    """

    theorem: str
    delta: float
    terms: Mapping[str, float]

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def is_vacuous(self) -> bool:
        """Whether the total says nothing: no risk is above 1."""
        return self.total >= 1.0


@dataclass(frozen=True)
class SampleSizes:
    """The sizes that the bounds of Theorem 2 depend on.

    Attributes
    ----------
    n_documents : int
        m, size of S; at least 2.
    n_sampled : int
        M, size of S_π.
    adversaries : int
        κ, pairs of each sampled document.
    n_classes : int
        K.
    """

    n_documents: int
    n_sampled: int
    adversaries: int
    n_classes: int

    def __post_init__(self) -> None:
        check_integer("n_documents", self.n_documents, 2)
        check_integer("n_sampled", self.n_sampled, 1)
        check_integer("n_classes", self.n_classes, 2)
        if self.n_sampled > self.n_documents:
            raise ValueError(
                f"n_sampled must be at most n_documents (here {self.n_documents}), because the "
                f"sample is a subset of the documents; got {self.n_sampled}."
            )
        check_integer("adversaries", self.adversaries, 1)
        if self.adversaries > self.n_classes - 1:
            raise ValueError(
                f"adversaries must be at most n_classes - 1 (here {self.n_classes - 1}); "
                f"got {self.adversaries}. A document has no more classes to lose against."
            )


def theorem_1(
    empirical_risk: float, complexity: float, variance: float, n_documents: int, delta: float
) -> Bound:
    """Theorem 1: R(h) bounded by the risk on all pairs, without sampling.

    R̃ + ℜ + 5/2 (sqrt(ℜ) + sqrt(r/2)) sqrt(ln(1/δ) / m) + 25/48 ln(1/δ) / m.

    Parameters
    ----------
    empirical_risk : float
        R̃_T(S)(h), Eq. 6.
    complexity : float
        ℜ_T(S)(ℓ∘H_r), or an upper bound on it.
    variance : float
        r, in [0, 1/4].
    n_documents : int
        m.
    delta : float
        δ, in (0, 1).

    Returns
    -------
    Bound
        Terms ``empirical``, ``complexity``, ``variance`` and ``remainder``.

    Examples
    --------
    >>> bound = theorem_1(0.1, 0.04, 0.08, n_documents=100, delta=np.exp(-1))
    >>> {name: round(value, 6) for name, value in bound.terms.items()}
    {'empirical': 0.1, 'complexity': 0.04, 'variance': 0.1, 'remainder': 0.005208}
    """
    _check_inputs(empirical_risk, complexity, delta)
    _check_variance(variance)
    check_integer("n_documents", n_documents, 1)
    per_document = math.log(1.0 / delta) / n_documents
    terms = {
        "empirical": empirical_risk,
        "complexity": complexity,
        "variance": _variance_term(complexity, variance, per_document),
        "remainder": 25.0 / 48.0 * per_document,
    }
    return Bound("1", delta, MappingProxyType(terms))


def theorem_2a(
    empirical_risk: float,
    complexity: float,
    sampling: SamplingConstants,
    sizes: SampleSizes,
    delta: float,
    *,
    corrected: bool = True,
    chromatic_number: float | None = None,
) -> Bound:
    """Theorem 2, first inequality: R(h) bounded by the risk on the doubly sampled pairs.

    α R̃ + α ℜ + α sqrt((K-1) ln(2/δ) / (2Mκ)) + sqrt(2α ln(4K/δ) / (β(m-1))) + 7β ln(4K/δ) /
    (3(m-1)) as printed; the last two terms with the proved ``ShiftFactors`` if corrected.

    Parameters
    ----------
    empirical_risk : float
        R̃_{T_κ(S_π)}(h), Eq. 7.
    complexity : float
        ℜ_{T_κ(S_π)}(ℓ∘H), or an upper bound on it.
    sampling : SamplingConstants
        α and β.
    sizes : SampleSizes
        m, M, κ and K.
    delta : float
        δ, in (0, 1).
    corrected : bool, default True
        The proved instead of the printed shift terms.
    chromatic_number : float, optional
        χ* of the sampled pairs; K - 1 as in the paper when left out. κ is its exact value.

    Returns
    -------
    Bound
        Terms ``empirical``, ``complexity``, ``deviation``, ``shift_slow`` and ``shift_fast``.
    """
    _check_inputs(empirical_risk, complexity, delta)
    per_pair = _per_independent_pair(sizes, delta, chromatic_number)
    alpha = sampling.alpha
    terms = {
        "empirical": alpha * empirical_risk,
        "complexity": alpha * complexity,
        "deviation": alpha * math.sqrt(per_pair / 2.0),
        **_shift_terms(sampling, sizes, delta, corrected),
    }
    return Bound("2a", delta, MappingProxyType(terms))


def theorem_2b(
    empirical_risk: float,
    complexity: float,
    variance: float,
    sampling: SamplingConstants,
    sizes: SampleSizes,
    delta: float,
    *,
    corrected: bool = True,
    chromatic_number: float | None = None,
) -> Bound:
    """Theorem 2, second inequality: the same for the scorers of variance at most r.

    As printed, α R̃ + α ℜ + sqrt(2α ln(4K/δ) / (β(m-1))) + 7β ln(4K/δ) / (3(m-1)) + 5α/2 (sqrt(ℜ) +
    sqrt(r/2)) sqrt((K-1) ln(2/δ) / (Mκ)) + 25α/48 ln(2/δ) / M. If corrected, the shift terms are
    the proved ones and the last term has the factor (K-1)/κ that Eq. 14, in its proof, has.

    Parameters
    ----------
    empirical_risk, complexity, sampling, sizes, delta, corrected, chromatic_number
        As for ``theorem_2a``, for H_r.
    variance : float
        r, in [0, 1/4].

    Returns
    -------
    Bound
        Terms ``empirical``, ``complexity``, ``shift_slow``, ``shift_fast``, ``variance`` and
        ``remainder``.
    """
    _check_inputs(empirical_risk, complexity, delta)
    _check_variance(variance)
    per_pair = _per_independent_pair(sizes, delta, chromatic_number)
    remainder = per_pair if corrected else math.log(2.0 / delta) / sizes.n_sampled
    alpha = sampling.alpha
    terms = {
        "empirical": alpha * empirical_risk,
        "complexity": alpha * complexity,
        **_shift_terms(sampling, sizes, delta, corrected),
        "variance": alpha * _variance_term(complexity, variance, per_pair),
        "remainder": alpha * 25.0 / 48.0 * remainder,
    }
    return Bound("2b", delta, MappingProxyType(terms))


def check_delta(delta: float) -> None:
    """Refuse a δ outside (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(
            f"delta must lie strictly between 0 and 1; got {delta!r}. "
            "The bound holds with probability 1 - delta; 0.05 is usual."
        )


def _shift_terms(
    sampling: SamplingConstants, sizes: SampleSizes, delta: float, corrected: bool
) -> dict[str, float]:
    """Price the estimated class proportions: the last two terms of Lemma 4 at level δ / 2."""
    if sampling.n_classes != sizes.n_classes:
        raise ValueError(
            f"sampling and sizes must be of the same classes; got {sampling.n_classes} and "
            f"{sizes.n_classes} classes."
        )
    factors = sampling.shift_factors(corrected)
    log_term = math.log(4.0 * factors.n_events / delta)
    degrees = sizes.n_documents - 1
    return {
        "shift_slow": factors.slow * math.sqrt(2.0 * log_term / degrees),
        "shift_fast": factors.fast * 7.0 * log_term / (3.0 * degrees),
    }


def _per_independent_pair(
    sizes: SampleSizes, delta: float, chromatic_number: float | None
) -> float:
    """χ ln(2/δ) / (M κ): Mκ dependent pairs count as Mκ / χ independent ones."""
    chi = sizes.n_classes - 1 if chromatic_number is None else chromatic_number
    if not sizes.adversaries <= chi <= sizes.n_classes - 1:
        raise ValueError(
            f"chromatic_number must be between adversaries and n_classes - 1 (here "
            f"{sizes.adversaries} and {sizes.n_classes - 1}); got {chromatic_number!r}. "
            "The pairs of a document form a clique of that size."
        )
    return chi * math.log(2.0 / delta) / (sizes.n_sampled * sizes.adversaries)


def _variance_term(complexity: float, variance: float, per_pair: float) -> float:
    """5/2 (sqrt(ℜ) + sqrt(r/2)) sqrt(per_pair)."""
    return 2.5 * (math.sqrt(complexity) + math.sqrt(variance / 2.0)) * math.sqrt(per_pair)


def _check_inputs(empirical_risk: float, complexity: float, delta: float) -> None:
    """Refuse a risk outside [0, 1], a negative complexity or a bad δ."""
    check_delta(delta)
    if not 0.0 <= empirical_risk <= 1.0:
        raise ValueError(f"empirical_risk must be between 0 and 1; got {empirical_risk!r}.")
    if not (np.isfinite(complexity) and complexity >= 0.0):
        raise ValueError(f"complexity must be a finite number of at least 0; got {complexity!r}.")


def _check_variance(variance: float) -> None:
    """Refuse an r that no loss in [0, 1] can have."""
    if not 0.0 <= variance <= 0.25:
        raise ValueError(
            f"variance must be between 0 and 0.25, the largest variance of a loss in [0, 1]; "
            f"got {variance!r}."
        )
