"""Whether probabilities are frequencies, and what precision costs in coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail.sparse import Floats


def expected_calibration_error(
    probabilities: ArrayLike, correct: ArrayLike, n_bins: int = 15
) -> float:
    """Return how far probabilities are from frequencies, on average over equal-width bins.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents,)
        Of the predicted classes, from 0 to 1.
    correct : array-like of shape (n_documents,), bool
        Whether each prediction was correct.
    n_bins : int, default=15
        Number of bins between 0 and 1; each counts by its number of documents.

    Examples
    --------
    >>> round(expected_calibration_error([0.9, 0.9, 0.1, 0.1], [True, False, False, False]), 3)
    0.25
    """
    values, hits = _check_probabilities(probabilities, correct)
    return _calibration_error(values, hits, n_bins)


def calibration_interval(
    probabilities: ArrayLike,
    correct: ArrayLike,
    n_bins: int = 15,
    n_resamples: int = 200,
    documents: ArrayLike | None = None,
) -> tuple[float, float]:
    """Return where 90 % of the calibration errors of resampled documents lie (bootstrap).

    Few documents give a wide interval, and a calibration error above 0 even for probabilities that
    are exact. Resampling adds noise of its own, so errors of resampled documents may all lie above
    that of the documents themselves; the interval reaches down to it. Parameters are those of
    `expected_calibration_error`, how often to resample, and the document of each probability, from
    0, where a document has several: they are drawn together. The draws are always the same.

    Examples
    --------
    >>> low, high = calibration_interval([0.9, 0.9, 0.1, 0.1], [True, False, False, False])
    >>> 0 <= low <= high <= 1
    True
    """
    values, hits = _check_probabilities(probabilities, correct)
    rng = np.random.default_rng(0)
    errors = []
    of_pair = None if documents is None else np.unique(documents, return_inverse=True)[1]
    n_documents = len(values) if of_pair is None else int(of_pair.max()) + 1
    for _ in range(n_resamples):
        drawn = rng.integers(0, n_documents, n_documents)
        if of_pair is not None:
            drawn = np.repeat(
                np.arange(len(values)), np.bincount(drawn, minlength=n_documents)[of_pair]
            )
        errors.append(_calibration_error(values[drawn], hits[drawn], n_bins))
    low, high = np.quantile(errors, [0.05, 0.95]).tolist()
    return min(low, _calibration_error(values, hits, n_bins)), high


def _calibration_error(values: Floats, hits: NDArray[np.bool_], n_bins: int) -> float:
    """Return the mean distance of probabilities from frequencies, bin by bin."""
    bins = np.minimum((values * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, values - hits)).sum() / len(values))


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions whose probability lies in one bin: how sure they were and how often correct.

    `mean_probability` and `accuracy` are NaN for an empty bin.
    """

    lowest: float
    highest: float
    n_documents: int
    mean_probability: float
    accuracy: float


def reliability(
    probabilities: ArrayLike, correct: ArrayLike, n_bins: int = 10
) -> list[ReliabilityBin]:
    """Compare probabilities with frequencies, bin by bin.

    Parameters are those of `expected_calibration_error`.

    Returns
    -------
    list of ReliabilityBin
        Of equal width, from 0 to 1.

    Examples
    --------
    >>> low, high = reliability([0.9, 0.7, 0.1], [True, False, False], n_bins=2)
    >>> high.n_documents, round(high.mean_probability, 2), high.accuracy
    (2, 0.8, 0.5)
    """
    values, hits = _check_probabilities(probabilities, correct)
    bins = np.minimum((values * n_bins).astype(int), n_bins - 1)
    sizes = np.bincount(bins, minlength=n_bins)
    filled = np.where(sizes, sizes, np.nan)
    means = np.bincount(bins, values, n_bins) / filled
    shares = np.bincount(bins, hits, n_bins) / filled
    return [
        ReliabilityBin(
            i / n_bins, (i + 1) / n_bins, int(sizes[i]), float(means[i]), float(shares[i])
        )
        for i in range(n_bins)
    ]


@dataclass(frozen=True)
class PrecisionCurve:
    """Precision and coverage of the predictions at or above each threshold, highest first.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Every probability that occurs, falling.
    coverage : ndarray of shape (n_thresholds,)
        Share of the documents that are kept.
    precision : ndarray of shape (n_thresholds,)
        Share of these that are correct.
    """

    thresholds: Floats
    coverage: Floats
    precision: Floats


def precision_curve(probabilities: ArrayLike, correct: ArrayLike) -> PrecisionCurve:
    """Return precision against coverage for every threshold on the probability.

    Parameters are those of `expected_calibration_error`.

    Examples
    --------
    >>> curve = precision_curve([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    >>> curve.coverage.tolist(), curve.precision.round(2).tolist()
    ([0.25, 0.75, 1.0], [1.0, 0.67, 0.5])
    """
    values, hits = _check_probabilities(probabilities, correct)
    order = np.argsort(-values, kind="stable")
    # Documents with the same probability are kept or left out together.
    last = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    n_kept = last + 1
    return PrecisionCurve(
        values[order][last], n_kept / len(values), np.cumsum(hits[order])[last] / n_kept
    )


def _check_probabilities(
    probabilities: ArrayLike, correct: ArrayLike
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return both as arrays, after checking that they match."""
    values, hits = np.asarray(probabilities, dtype=np.float64), np.asarray(correct, dtype=bool)
    if values.ndim != 1 or values.shape != hits.shape or not len(values):
        raise ValueError(
            "probabilities and correct must be lists of the same length, at least 1; "
            f"got shapes {values.shape} and {hits.shape}."
        )
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("probabilities must be from 0 to 1.")
    return values, hits
