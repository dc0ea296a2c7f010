"""What held-out documents showed when the model was fitted: stored with it, drawn by the page.

In: the self-check and the calibrator of a model. Out: accuracy by class frequency, a calibration
curve, and precision against coverage, as plain JSON.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail._constants import FIGURES, FREQUENCY_BANDS
from longtail.serve.served_model import Snapshot
from longtail.training.calibration import _apply_map

N_BINS = 10
N_POINTS = 200  # of the curve of precision against coverage


def measure_quality(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is known of a model's quality; null where nothing was held out."""
    state = getattr(snapshot.model.classifier_, "_state", None)
    check, calibrator = getattr(state, "check", None), getattr(state, "calibrator", None)
    if check is None or calibrator is None or not len(calibrator.held_out_correct):
        return {"n_held_out": 0, "figures": None, "by_frequency": [], "curve": [], "bins": []}
    correct = calibrator.held_out_correct
    probabilities = _apply_map(
        calibrator.held_out_log_odds, calibrator.top_log_odds, calibrator.top_probabilities
    )
    summary = check.summary()
    figures = {name: _as_float(summary.get(name)) for name in FIGURES[:3]}
    return {
        "n_held_out": len(correct),
        "figures": figures,
        "by_frequency": [
            {"band": name, "low": low, "high": high, "accuracy": _as_float(summary.get(name))}
            for name, low, high in FREQUENCY_BANDS
        ],
        "curve": _precision_curve(probabilities, correct),
        "bins": _calibration_bins(probabilities, correct),
    }


def _precision_curve(probabilities: Any, correct: Any) -> list[dict[str, float]]:
    """Return precision and coverage by threshold; documents come most certain first."""
    n_documents = len(correct)
    precision = np.cumsum(correct) / np.arange(1, n_documents + 1)
    rows = np.unique(np.linspace(0, n_documents - 1, N_POINTS).astype(np.int64))
    return [
        {
            "threshold": float(probabilities[row]),
            "precision": float(precision[row]),
            "coverage": (row + 1) / n_documents,
        }
        for row in rows.tolist()
    ]


def _calibration_bins(probabilities: Any, correct: Any) -> list[dict[str, float]]:
    """Return promised and measured precision in bins of the promised one."""
    bins = np.minimum((probabilities * N_BINS).astype(np.int64), N_BINS - 1)
    return [
        {
            "promised": float(probabilities[bins == i].mean()),
            "measured": float(correct[bins == i].mean()),
            "n_documents": int(np.count_nonzero(bins == i)),
        }
        for i in range(N_BINS)
        if np.any(bins == i)
    ]


def _as_float(value: Any) -> float | None:
    return float(value) if isinstance(value, float) and np.isfinite(value) else None
