"""How far a measured number may lie from the true one: confidence intervals.

Shares of documents get Wilson's interval, means over classes or documents and ratios of sums the
normal one. They say how the number would vary over other documents, or classes, of the same kind.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

Z = 1.959963984540054  # 97.5 % of a normal distribution lie below: 95 % within both bounds


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of n documents (Wilson, 1927).

    Unlike the share plus or minus two standard errors it never leaves 0 to 1, and has a width
    where all or none of the documents count.

    Parameters
    ----------
    share : float
        From 0 to 1.
    n : int
        Number of documents, 0 or more; (0, 1) where there are none.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson_interval(0.5, 100)]
    [0.404, 0.596]
    >>> [round(bound, 3) for bound in wilson_interval(1.0, 10)]
    [0.722, 1.0]
    """
    if n < 0 or not (n == 0 or 0 <= share <= 1):
        raise ValueError(
            f"share must be from 0 to 1 and n 0 or more; got share={share!r} and n={n!r}."
        )
    if n == 0:
        return 0.0, 1.0
    shrunk = 1.0 + Z**2 / n
    middle = (share + Z**2 / (2 * n)) / shrunk
    half = Z / shrunk * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of a mean, from the standard error of its values.

    For macro F1, the mean of the per-class F1, the values are those of the classes: the interval
    says how it would vary over other classes of this kind. Where all values are 0, or all 1, it is
    Wilson's, which has a width.

    Examples
    --------
    >>> [round(bound, 3) for bound in mean_interval([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])]
    [0.253, 1.0]
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"values must be a list of numbers; got shape {sample.shape}.")
    if len(sample) == 1:
        return 0.0, 1.0
    middle = float(sample.mean())
    if middle in (0.0, 1.0):  # all alike, which says nothing of how much they vary
        return wilson_interval(middle, len(sample))
    half = Z * float(sample.std(ddof=1)) / math.sqrt(len(sample))
    return max(0.0, middle - half), min(1.0, middle + half)


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of sum(numerators) / sum(denominators), one of each per document.

    For precision, recall and micro F1 of label sets: labels of one document are found or missed
    together, so documents count, not labels (the ratio estimator of survey sampling).

    Examples
    --------
    >>> [round(bound, 3) for bound in ratio_interval([1, 0, 2, 1], [2, 1, 2, 1])]
    [0.269, 1.0]
    """
    above, below = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if above.ndim != 1 or above.shape != below.shape or not below.sum() > 0:
        raise ValueError(
            "numerators and denominators must be lists of the same length, the latter with a sum "
            f"above 0; got shapes {above.shape} and {below.shape}."
        )
    if len(above) == 1:
        return 0.0, 1.0
    ratio = float(above.sum() / below.sum())
    if ratio in (0.0, 1.0):
        return wilson_interval(ratio, len(above))
    errors = (above - ratio * below) / below.mean()
    half = Z * float(errors.std(ddof=1)) / math.sqrt(len(above))
    return max(0.0, ratio - half), min(1.0, ratio + half)
