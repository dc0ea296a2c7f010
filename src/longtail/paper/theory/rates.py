"""Results of the consistency experiment: its runs, and the rates of Theorem 2 beside them.

In come the runs of `theory.experiment`; out come means along a sweep and slopes on log-log axes, as
measured and as the theorem states them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longtail.paper.features import FEATURE_NAMES
from longtail.sparse import Floats


@dataclass(frozen=True)
class ConsistencyRun:
    """One run: sizes, constants, the two risks and the terms of Theorem 2.

    Attributes
    ----------
    sweep : str
        ``"documents"``, ``"adversaries"``, ``"examples"`` or ``"balanced"``.
    repeat : int
        Number of the repetition.
    n_documents, n_sampled, adversaries, n_classes : int
        m, M, κ and K.
    examples_per_class : float
        Documents kept of a class on average.
    alpha, beta : float
        In the retention form.
    true_risk : float
        R(h).
    sampled_risk : float
        R̃_{T_κ(S_π)}(h).
    empirical, complexity, deviation, shift_slow, shift_fast, variance, remainder : float
        The terms of Theorem 2; the first five make up 2(a), all but ``deviation`` 2(b).
    total_2a, total_2b : float
        The bounds.
    """

    sweep: str
    repeat: int
    n_documents: int
    n_sampled: int
    adversaries: int
    n_classes: int
    examples_per_class: float
    alpha: float
    beta: float
    true_risk: float
    sampled_risk: float
    empirical: float
    complexity: float
    deviation: float
    shift_slow: float
    shift_fast: float
    variance: float
    remainder: float
    total_2a: float
    total_2b: float

    @property
    def gap(self) -> float:
        """|R(h) - R̃_{T_κ(S_π)}(h)|."""
        return abs(self.true_risk - self.sampled_risk)

    @property
    def holds(self) -> bool:
        """Whether R(h) is at most both bounds."""
        return self.true_risk <= min(self.total_2a, self.total_2b)


@dataclass(frozen=True)
class Rate:
    """The slope of a quantity on log-log axes, as measured and as the theorem states it."""

    sweep: str
    quantity: str
    against: str
    stated: float
    measured: float


@dataclass(frozen=True)
class ConsistencyResult:
    """All runs of the experiment and the settings they share."""

    runs: tuple[ConsistencyRun, ...]
    delta: float
    random_state: int

    def rows(self) -> list[dict[str, Any]]:
        """Return the runs as flat dictionaries, for a table or a JSON file."""
        return [asdict(run) | {"gap": run.gap, "holds": run.holds} for run in self.runs]

    def sweep(self, name: str) -> list[list[ConsistencyRun]]:
        """Return the runs of one sweep, those with equal settings together, in ascending order."""
        groups: dict[tuple[int, int, float], list[ConsistencyRun]] = {}
        for run in self.runs:
            if run.sweep == name:
                key = (run.n_documents, run.adversaries, run.examples_per_class)
                groups.setdefault(key, []).append(run)
        return [groups[key] for key in sorted(groups)]

    def means(self, name: str, quantity: str) -> Floats:
        """Return the mean of a quantity at each setting of a sweep."""
        return np.array(
            [np.mean([getattr(run, quantity) for run in group]) for group in self.sweep(name)]
        )


# What Theorem 2 states: (sweep, quantity, what grows, exponent). Growing m means growing the sample
# in proportion: with a fixed number of examples a class, M stays and nothing can shrink.
STATED_RATES: tuple[tuple[str, str, str, float], ...] = (
    ("documents", "complexity", "n_documents", -0.5),
    ("documents", "deviation", "n_documents", -0.5),
    ("documents", "shift_slow", "n_documents", -0.5),
    ("documents", "shift_fast", "n_documents", -1.0),
    ("documents", "remainder", "n_documents", -1.0),
    ("adversaries", "deviation", "adversaries", -0.5),
    ("adversaries", "variance", "adversaries", -0.5),
    ("adversaries", "remainder", "adversaries", -1.0),
    ("examples", "complexity", "examples_per_class", -0.5),
    ("examples", "deviation", "examples_per_class", -0.5),
    ("examples", "remainder", "examples_per_class", -1.0),
    ("balanced", "gap", "n_sampled", -0.5),
)


def measured_rates(result: ConsistencyResult) -> list[Rate]:
    """Fit the slope of every quantity whose rate the theorem states.

    M, α and β come from the sampler, not from the formula; that they follow m and the examples a
    class is part of what is measured. It holds as long as most classes have more documents than are
    sampled of them. Sweeps of fewer than two settings are left out.

    Parameters
    ----------
    result : ConsistencyResult
        As returned by ``run_consistency_experiment``.
    """
    rates = []
    for sweep, quantity, against, stated in STATED_RATES:
        if len(result.sweep(sweep)) < 2:
            continue
        values = shrinking_values(result, sweep, quantity)
        sizes = result.means(sweep, against)
        slope = float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
        rates.append(Rate(sweep, quantity, against, stated, slope))
    return rates


def shrinking_values(result: ConsistencyResult, sweep: str, quantity: str) -> Floats:
    """Return the means of a quantity that is to shrink as a power.

    The complexity carries a factor sqrt(ln(e M / p)) beside the power, which is divided out.

    Parameters
    ----------
    result : ConsistencyResult
        As returned by ``run_consistency_experiment``.
    sweep, quantity : str
        Names of ``STATED_RATES``.

    Returns
    -------
    ndarray of shape (number of settings,), float64
    """
    values = result.means(sweep, quantity)
    if quantity == "complexity":
        n_sampled = result.means(sweep, "n_sampled")
        return np.asarray(values / np.sqrt(np.log(math.e * n_sampled / len(FEATURE_NAMES))))
    return values
