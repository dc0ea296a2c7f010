"""Two models on the same documents: how far they are apart, and whether that is chance.

Both models see the same documents, so documents are compared one by one: what is hard for both says
nothing about the difference, and the interval is much narrower than those of the two models.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtr

from longtail.metrics.intervals import Z


@dataclass(frozen=True)
class PairedDifference:
    """The mean of one model less that of another, over the same documents or classes."""

    value: float  # mean of the first model
    other: float  # mean of the other one
    interval: tuple[float, float]  # the 95 % interval of their difference
    # Where the first model is better, and where it is worse.
    n_better: int
    n_worse: int
    # How likely a difference at least as large is if the models are equally good. Where every value
    # is 0 or 1 it is McNemar's exact test, else a test of the mean difference.
    p_value: float

    @property
    def difference(self) -> float:
        """The mean of the first model less that of the other."""
        return self.value - self.other

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the difference."""
        return asdict(self) | {"difference": self.difference}

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than chance would make it in 19 of 20 cases."""
        return self.p_value < 0.05


def paired_difference(values: ArrayLike, others: ArrayLike) -> PairedDifference:
    """Compare two models by their values for each document, or each class.

    Parameters
    ----------
    values, others : array-like of shape (n,)
        Of the first and of the other model, such as whether each document is correct (McNemar
        1947, doi:10.1007/BF02295996), or the F1 of each class.

    Raises
    ------
    ValueError
        If they do not have the same length, at least 1.

    Examples
    --------
    >>> found = paired_difference([1, 1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 1, 0])
    >>> found.difference, found.n_better, found.n_worse, found.p_value
    (0.75, 6, 0, 0.03125)
    """
    first, second = np.asarray(values, np.float64), np.asarray(others, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(
            "values and others must be lists of numbers of the same length, at least 1; got shapes "
            f"{first.shape} and {second.shape}."
        )
    difference = first - second
    n_better, n_worse = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    middle = float(difference.mean())
    error = float(difference.std(ddof=1)) / math.sqrt(len(first)) if len(first) > 1 else 1.0
    low, high = max(-1.0, middle - Z * error), min(1.0, middle + Z * error)
    p_value = 1.0
    if n_better + n_worse and np.isin([*first, *second], (0.0, 1.0)).all():
        p_value = min(1.0, 2.0 * float(bdtr(min(n_better, n_worse), n_better + n_worse, 0.5)))
    elif error > 0:
        p_value = 2.0 * float(ndtr(-abs(middle) / error))
    return PairedDifference(
        float(first.mean()), float(second.mean()), (low, high), n_better, n_worse, p_value
    )
