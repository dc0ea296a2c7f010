"""Predictions of texts as plain JSON.

In: a snapshot and texts. Out: for each text its candidates with probabilities, the probability that
none of them is the class, and the labels; fewer or none where a precision is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.answers import find_path, rank, read_limits
from longtail.results import Threshold, TopK
from longtail.serve.served_model import Snapshot
from longtail.training.calibration import count_predicted

MAX_CANDIDATES = 100
LONGEST_TEXT = 200  # characters of the text of a class in a list


@dataclass(frozen=True)
class Prediction:
    """The prediction of one text."""

    snapshot: Snapshot  # which model
    labels: list[Any]  # candidates, best first
    values: list[float]  # their probabilities; scores where the model has none
    n_predicted: int  # how many of them are the label set; 1 for one label per document
    none: float | None  # probability that no candidate is the class; None where that is not known

    @property
    def predicted(self) -> list[Any]:
        """The label set: the first of the candidates."""
        return self.labels[: self.n_predicted]

    def sure_labels(self, threshold: Threshold) -> list[Any]:
        """Return the labels that a threshold keeps."""
        none = None if self.snapshot.is_multilabel else np.array([self.none])
        top = TopK(np.array([self.labels], object), np.array([self.values]), none=none)
        n_sure = int(np.count_nonzero(threshold.keeps(top)))  # candidates fall in probability
        return self.labels[:n_sure]

    def as_dict(self, k: int, threshold: Threshold | None) -> dict[str, Any]:
        """Return the prediction as it is sent.

        Sent are `k` candidates, and the labels that the threshold keeps.
        """
        key = "probability" if self.snapshot.has_probabilities else "score"
        labels = self.predicted if threshold is None else self.sure_labels(threshold)
        return {
            "labels": labels,
            "abstained": not labels and (threshold is not None or not self.values),
            "classes": [
                describe_label(self.snapshot, label) | {key: value}
                for label, value in zip(self.labels[:k], self.values[:k], strict=True)
            ],
            "none": self.none,
        }


def predict(snapshot: Snapshot, texts: list[str], **limits: Any) -> list[Prediction]:
    """Return all candidates of each text; `limits` are `within`, `exclude` and `branch`."""
    model = snapshot.model
    top = rank(model, texts, snapshot.n_candidates, **read_limits(model, **limits))
    counts = np.count_nonzero(top.valid, axis=1)  # places without a candidate are last
    sizes = count_predicted(top, snapshot.is_multilabel)
    columns = (top.classes, top.scores, counts, sizes, _none_probabilities(snapshot, top))
    return [
        Prediction(snapshot, labels[:n], values[:n], size, none)
        for labels, values, n, size, none in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _none_probabilities(snapshot: Snapshot, top: TopK) -> NDArray[Any]:
    """Return for each text the probability that no candidate is its class.

    The labels of a set are taken as independent.
    """
    if top.none is not None:
        return top.none
    if snapshot.is_multilabel and snapshot.has_probabilities:
        none: NDArray[Any] = np.prod(1.0 - np.minimum(top.scores, 1.0), axis=1)
        return none
    return np.full(len(top.scores), None)


def describe_label(snapshot: Snapshot, label: Any) -> dict[str, Any]:
    """Return a label, with the text of the class and its path where it has them."""
    text, path = snapshot.texts.get(label), find_path(snapshot.model, label)
    described = {"label": label} if text is None else {"label": label, "text": text[:LONGEST_TEXT]}
    return described | ({"path": path} if path else {})


def find_nodes(
    snapshot: Snapshot, texts: list[str], precision: float, limits: dict[str, Any]
) -> list[dict[str, Any] | None]:
    """Return the deepest sure node of each text."""
    model = snapshot.model
    found = model.predict_nodes(texts, precision, **read_limits(model, **limits))
    return [
        {
            "label": label,
            "path": find_path(snapshot.model, label) or [label],
            "probability": probability,
        }
        if valid
        else None
        for label, probability, valid in zip(
            found.labels.tolist(), found.probabilities.tolist(), found.valid.tolist(), strict=True
        )
    ]


def find_threshold(
    snapshot: Snapshot, precision: float | None, each: bool = False
) -> Threshold | None:
    """Return the threshold for a precision; None where none was asked for, or none is known."""
    if precision is None or not hasattr(snapshot.model, "threshold_for"):
        return None
    threshold: Threshold = snapshot.model.threshold_for(precision, each=each)
    return threshold
