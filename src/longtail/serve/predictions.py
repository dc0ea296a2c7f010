"""What a model says about texts, as plain JSON.

In: a snapshot and texts. Out: for each text its candidates with probabilities, the probability that
none of them is the class, and the labels; fewer or none where a precision is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.results import Threshold
from longtail.serve.served_model import Snapshot
from longtail.training.calibration import choose_set_sizes
from longtail.training.config import count_candidates

MOST_CANDIDATES = 100


@dataclass(frozen=True)
class Prediction:
    """What a model says about one text.

    Attributes
    ----------
    snapshot : Snapshot
        Which model.
    labels : list
        Candidates, best first.
    values : list of float
        Their probabilities; scores where the model has none.
    n_predicted : int
        How many of them are the label set; 1 for one label per document.
    """

    snapshot: Snapshot
    labels: list[Any]
    values: list[float]
    n_predicted: int

    @property
    def predicted(self) -> list[Any]:
        """The label set: the first of the candidates."""
        return self.labels[: self.n_predicted]


def predict(snapshot: Snapshot, texts: list[str]) -> list[Prediction]:
    """Return all candidates of each text."""
    model = snapshot.model
    n_candidates = min(MOST_CANDIDATES, len(snapshot.classes))
    searched = getattr(model.classifier_, "candidates", n_candidates)
    n_candidates = min(n_candidates, count_candidates(searched, snapshot.is_multilabel))
    if snapshot.has_probabilities:
        top = model.predict_proba_topk(texts, n_candidates)
    else:
        top = model.predict_topk(texts, n_candidates)
    counts = np.count_nonzero(top.valid, axis=1)  # places without a candidate are last
    sizes = np.minimum(counts, 1)
    if snapshot.is_multilabel:
        sizes = np.minimum(counts, choose_set_sizes(top.scores, None))
    rows = zip(
        *(top.classes.tolist(), top.scores.tolist(), counts.tolist(), sizes.tolist()), strict=True
    )
    return [Prediction(snapshot, labels[:n], values[:n], size) for labels, values, n, size in rows]


def as_json(prediction: Prediction, k: int, threshold: Threshold | None) -> dict[str, Any]:
    """Return a prediction as it is sent.

    Parameters
    ----------
    prediction : Prediction
        With all candidates.
    k : int
        How many candidates are sent.
    threshold : Threshold or None
        Labels below it are left out.
    """
    snapshot, values = prediction.snapshot, prediction.values
    key = "probability" if snapshot.has_probabilities else "score"
    labels = prediction.predicted
    if threshold is not None:
        # Candidates fall in probability; none is sure where the threshold is NaN.
        n_sure = sum(value >= threshold.threshold for value in values)
        labels = prediction.labels[: n_sure if snapshot.is_multilabel else min(n_sure, 1)]
    return {
        "labels": labels,
        "abstained": threshold is not None and not labels,
        "classes": [
            {"label": label, key: value}
            for label, value in zip(prediction.labels[:k], values[:k], strict=True)
        ],
        "none": none_probability(prediction),
    }


def none_probability(prediction: Prediction) -> float | None:
    """Return the probability that no candidate is the class; None where that is not known.

    With one label per document the candidates exclude each other; the labels of a set are taken as
    independent.
    """
    if not prediction.snapshot.has_probabilities:
        return None
    if prediction.snapshot.is_multilabel:
        return math.prod(1.0 - min(value, 1.0) for value in prediction.values)
    return max(0.0, 1.0 - math.fsum(prediction.values))


def find_threshold(snapshot: Snapshot, precision: float | None) -> Threshold | None:
    """Return the threshold for a precision; None where none was asked for, or none is known."""
    if precision is None or not hasattr(snapshot.model, "threshold_for"):
        return None
    threshold: Threshold = snapshot.model.threshold_for(precision)
    return threshold


def threshold_as_json(threshold: Threshold | None) -> dict[str, Any] | None:
    """Return a threshold as it is sent; null stands for what cannot be reached."""
    if threshold is None:
        return None
    finite = math.isfinite(threshold.threshold)
    return {
        "threshold": threshold.threshold if finite else None,
        "expected_precision": threshold.expected_precision if finite else None,
        "coverage": threshold.coverage,
        "n_documents": threshold.n_documents,
    }
