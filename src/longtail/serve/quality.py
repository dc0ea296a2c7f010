"""Quality of a model on the documents that its fit held out, as the page draws it.

In: the self-check and the calibrator of a model. Out: the measures of `evaluate` with intervals, by
class frequency too, the calibration of the best candidates, and precision against coverage, as
plain JSON. With several labels per document the last is of (document, label) pairs, and coverage
counts labels per document. Beside it, how far the model has moved since.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._constants import EXPECTED, FREQUENCY_BANDS, MEASURES
from longtail.answers import read_expected
from longtail.metrics.probabilities import precision_curve, reliability
from longtail.serve.schemas import HealthBody
from longtail.serve.served_model import Snapshot
from longtail.sparse import Floats
from longtail.training.calibration import (
    Calibrator,
    cross_validated_probabilities,
    held_out_probabilities,
)

N_POINTS = 200  # of the curve of precision against coverage
MIN_KEPT = 20  # predictions from which on it is drawn: of fewer, one mistake makes it 0


def measure_quality(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is known of a model's quality; null where nothing was held out."""
    classifier = snapshot.model.classifier_
    check = getattr(classifier, "self_check_", None)
    calibrator = None if check is None else classifier.state_.calibrator
    if check is None or calibrator is None or not len(calibrator.held_out_correct):
        nothing: dict[str, Any] = {
            "n_held_out": 0,
            "figures": [],
            "by_frequency": [],
            "curve": [],
            "bins": [],
        }
        return nothing | {"health": _describe_health(snapshot)}
    n_held_out = len(calibrator.held_out_correct)
    found = read_expected(check.expected, classifier.calibration_error_)
    known = {name: row for name, row in found.items() if math.isfinite(row[0])}
    measured = {
        name: dict(zip(("value", "low", "high"), known.get(name, [None] * 3), strict=True))
        for name in EXPECTED
    }
    return {
        "n_held_out": n_held_out,
        "figures": [
            {"measure": key, "name": name} | measured[key]
            for key, name in MEASURES.items()
            if measured[key]["value"] is not None
        ],
        "by_frequency": [
            {"band": name, "smallest": smallest, "largest": largest} | measured[name]
            for name, smallest, largest in FREQUENCY_BANDS
        ],
        "curve": _draw_curve(*_held_out_predictions(calibrator), n_held_out),
        "bins": [
            {
                "promised": entry.mean_probability,
                "measured": entry.accuracy,
                "n_documents": entry.n_documents,
            }
            for entry in reliability(
                cross_validated_probabilities(calibrator), calibrator.held_out_correct
            )
            if entry.n_documents
        ],
        "health": _describe_health(snapshot),
    }


def _describe_health(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return how far the model has moved since."""
    health = snapshot.health
    if health is None:
        return None
    found = health.as_dict() | {"advice": health.commands}
    return {name: found[name] for name in HealthBody.model_fields}


def _held_out_predictions(calibrator: Calibrator) -> tuple[Floats, NDArray[np.bool_]]:
    """Return probability and correctness of each prediction of held-out documents."""
    if calibrator.marginal:
        return calibrator.pair_probabilities, calibrator.pair_correct
    return held_out_probabilities(calibrator), calibrator.held_out_correct


def _draw_curve(
    probabilities: Floats, correct: NDArray[np.bool_], n_documents: int
) -> list[dict[str, float]]:
    """Return some points of precision against coverage, the most certain predictions first."""
    curve = precision_curve(probabilities, correct)
    n_kept = np.round(curve.coverage * len(probabilities))
    first = min(int(np.searchsorted(n_kept, MIN_KEPT)), len(n_kept) - 1)
    rows = np.unique(np.linspace(first, len(n_kept) - 1, N_POINTS).astype(np.int64))
    per_document = len(probabilities) / n_documents  # 1 with one label per document
    columns = (curve.thresholds, curve.precision, curve.coverage * per_document)
    names = ("threshold", "precision", "coverage")
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*(column[rows].tolist() for column in columns), strict=True)
    ]
