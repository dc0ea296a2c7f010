"""A fitted classifier on labelled documents -> an Evaluation: all that there is to say about it.

Documents come in chunks and leave four numbers each, so the test set may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import metrics
from longtail.metrics.calibration import PrecisionCurve, ReliabilityBin
from longtail.metrics.classes import Confusion, FrequencyBand
from longtail.sparse import Floats

TOP = (1, 3, 5, 10, 20)  # depths of the ranking that are reported


@dataclass(frozen=True)
class Abstention:
    """What is left when predictions below a threshold are held back.

    `wanted` is the precision asked for and `threshold` what the model has for it from training;
    `precision` and `coverage` are what the evaluated documents showed. `precision` is NaN where
    nothing was kept.
    """

    wanted: float
    threshold: float
    precision: float
    coverage: float


@dataclass(frozen=True)
class Certainty:
    """What the probabilities of the predicted classes are worth."""

    calibration_error: float
    bins: list[ReliabilityBin]
    curve: PrecisionCurve
    abstention: Abstention | None  # None where the model knows no threshold


@dataclass(frozen=True)
class Evaluation:
    """Results of one classifier on one set of documents; shares are from 0 to 1.

    Attributes
    ----------
    n_documents, n_classes : int
        Of the evaluated set.
    n_unknown : int
        Documents whose class the model does not have; they can only be wrong.
    accuracy, macro_f1, macro_f1_of_means : float
        As in `longtail.metrics`.
    top : dict of int to float
        Share of documents whose class is among the first k.
    bands : list of FrequencyBand
        Results by how many documents of the class the model has seen.
    confusions : list of Confusion
        The classes that are confused most often.
    certainty : Certainty or None
        None for a classifier without probabilities.
    """

    n_documents: int
    n_classes: int
    n_unknown: int
    accuracy: float
    macro_f1: float
    macro_f1_of_means: float
    top: dict[int, float]
    bands: list[FrequencyBand]
    confusions: list[Confusion]
    certainty: Certainty | None


def evaluate(
    classifier: Any,
    chunks: Iterable[tuple[Any, Sequence[Any]]],
    *,
    precision: float = 0.9,
    n_confusions: int = 10,
) -> Evaluation:
    """Predict labelled documents and say how well that went.

    Parameters
    ----------
    classifier : estimator
        Fitted, with `predict_topk`, and `predict_proba_topk` if it knows probabilities.
    chunks : iterable of (documents, labels)
        What the classifier's methods take, and the true labels.
    precision : float, default=0.9
        For which to look up the threshold below which to hold predictions back.
    n_confusions : int, default=10
        How many pairs of confused classes to list.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If there is no document.
    """
    probable = knows_probabilities(classifier)
    rank = classifier.predict_proba_topk if probable else classifier.predict_topk
    lowest = 0.0 if probable else -np.inf
    seen: list[_Outcome] = []
    for documents, labels in chunks:
        top = rank(documents, max(TOP))
        # A short ranking is padded with the first class, at -inf or as a probability of 0.
        padding = (top.classes == classifier.classes_[0]) & (top.scores == lowest)
        seen.append(_compare(top.classes, top.scores, np.asarray(labels), padding))
    if not seen:
        raise ValueError("there are no documents to evaluate.")
    true = np.concatenate([part.true for part in seen])
    predicted = np.concatenate([part.predicted for part in seen])
    places = np.concatenate([part.places for part in seen])
    chances = np.concatenate([part.chances for part in seen])
    sizes = dict(
        zip(classifier.classes_.tolist(), classifier.statistics_.class_sizes.tolist(), strict=True)
    )
    return Evaluation(
        n_documents=len(true),
        n_classes=len(np.unique(true)),
        n_unknown=sum(label not in sizes for label in true.tolist()),
        accuracy=metrics.accuracy(true, predicted),
        macro_f1=metrics.macro_f1(true, predicted),
        macro_f1_of_means=metrics.macro_f1_of_means(true, predicted),
        top={k: float(np.mean(places < k)) for k in TOP},
        bands=metrics.frequency_report(true, predicted, sizes),
        confusions=metrics.most_confused(true, predicted, n_confusions),
        certainty=_judge(classifier, chances, places == 0, precision) if probable else None,
    )


def knows_probabilities(classifier: Any) -> bool:
    """Tell whether a classifier, or the one inside a classifier of texts, knows probabilities."""
    return hasattr(getattr(classifier, "classifier_", classifier), "predict_proba_topk")


@dataclass(frozen=True)
class _Outcome:
    """What is kept of a chunk; `places` are those of the true classes in the rankings."""

    true: NDArray[Any]
    predicted: NDArray[Any]
    places: NDArray[np.int64]
    chances: Floats


def _compare(
    classes: NDArray[Any], scores: Floats, labels: NDArray[Any], padding: NDArray[np.bool_]
) -> _Outcome:
    """Find the true classes in the rankings; padding is never right."""
    hits = (classes == labels[:, None]) & ~padding
    places = np.where(hits.any(axis=1), hits.argmax(axis=1), classes.shape[1])
    return _Outcome(labels, classes[:, 0].copy(), places, scores[:, 0].astype(np.float64))


def _judge(
    classifier: Any, chances: Floats, right: NDArray[np.bool_], precision: float
) -> Certainty:
    """Say what the probabilities are worth."""
    try:
        threshold = float(classifier.threshold_for(precision))
    except ValueError:
        abstention = None
    else:
        kept = chances >= threshold
        reached = float(right[kept].mean()) if kept.any() else float("nan")
        abstention = Abstention(precision, threshold, reached, float(kept.mean()))
    return Certainty(
        calibration_error=metrics.expected_calibration_error(chances, right),
        bins=metrics.reliability(chances, right),
        curve=metrics.precision_curve(chances, right),
        abstention=abstention,
    )
