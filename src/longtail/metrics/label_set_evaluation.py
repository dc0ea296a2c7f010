"""A fitted classifier on documents with label sets -> a LabelSetEvaluation.

Documents come in chunks and leave the ids of their labels and candidates, so the test set may be
larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail import metrics
from longtail._labels import LabelSets
from longtail.metrics.calibration import ReliabilityBin
from longtail.metrics.classes import ClassResult
from longtail.metrics.evaluation import PRECISIONS, OnPredicted
from longtail.metrics.label_sets import LabelBand, LabelCurve, SetScores
from longtail.metrics.mistakes import Mistake, MistakeCollector
from longtail.metrics.rankings import NO_CLASS, RankedSets, as_label_sets
from longtail.results import TopK
from longtail.sparse import Floats, Integers

DEPTHS = (1, 3, 5, 10, 20)  # of the ranking that are reported
BAND_DEPTH = 5
LEAST_PROBABILITY = 0.01  # below it a pair says nothing about calibration: nearly all are there

_CANDIDATES = 40  # ranked for each document; a label beyond them has hardly a probability


@dataclass(frozen=True)
class LabelThreshold:
    """What is left when labels below a threshold are held back.

    `wanted` is the precision asked for and `threshold` what the model has for it from training;
    `precision` over the kept labels (NaN if there are none), `recall` over all true labels and
    `coverage` over the documents that keep a label are what the evaluated documents showed.
    `threshold` is NaN where none is known for that precision.
    """

    wanted: float
    threshold: float
    precision: float
    recall: float
    coverage: float


@dataclass(frozen=True)
class LabelCertainty:
    """What the probabilities of labels are worth.

    `calibration_error` and `bins` are over the `n_pairs` pairs of a document and a label whose
    probability is above 0.01; `threshold` is None where the model knows none.
    """

    calibration_error: float
    n_pairs: int
    bins: list[ReliabilityBin]
    curve: LabelCurve
    threshold: LabelThreshold | None
    choices: list[LabelThreshold]  # for the precision asked for, 95, 98 and 99 %


@dataclass(frozen=True)
class LabelSetEvaluation:
    """Results of one classifier on documents with label sets; shares are from 0 to 1.

    Attributes
    ----------
    n_documents, n_labels, n_classes : int
        Of the evaluated set; labels are pairs of a document and a label.
    n_unknown : int
        Labels of classes that the model does not have: they are in the truth and never found.
    ranking : dict of str to dict of int to float
        ``P``, ``R``, ``F1`` (mean of the documents' F1), ``F1 of means``, ``nDCG``, ``PSP`` and
        ``PSnDCG`` of the first k classes.
    r_precision : float
        As in `longtail.metrics`.
    sets : SetScores
        Of the sets that `predict` gives.
    intervals : dict of str to (float, float)
        95 % intervals, as `longtail.metrics.label_set_intervals` names the measures.
    bands : list of LabelBand
        Results of the first five classes by how many documents of a class the model has seen.
    classes : list of ClassResult
        Every class that is a true or a predicted label, by the predicted sets.
    mistakes : list of Mistake
        Documents with the wrong labels that the model was surest of.
    certainty : LabelCertainty or None
        None for a classifier without probabilities.
    document_f1 : ndarray of shape (n_documents,), float64
        F1 of each document's predicted set.
    """

    n_documents: int
    n_labels: int
    n_classes: int
    n_unknown: int
    ranking: dict[str, dict[int, float]]
    r_precision: float
    sets: SetScores
    intervals: dict[str, tuple[float, float]]
    bands: list[LabelBand]
    classes: list[ClassResult]
    mistakes: list[Mistake]
    certainty: LabelCertainty | None
    document_f1: Floats


def evaluate_label_sets(
    classifier: Any,
    chunks: Iterable[tuple[Any, ...]],
    *,
    precision: float = 0.9,
    n_mistakes: int = 0,
    on_predicted: OnPredicted | None = None,
) -> LabelSetEvaluation:
    """Predict documents with label sets and say how well that went.

    Parameters
    ----------
    classifier : estimator
        Fitted, with `predict`, `predict_topk`, and `predict_proba_topk` if it knows probabilities.
    chunks : iterable of (documents, label sets) or (documents, label sets, references)
        What the classifier's methods take, the true labels as lists, and what mistakes say of where
        a document comes from.
    precision : float, default=0.9
        For which to look up the threshold below which to hold labels back.
    n_mistakes : int, default=0
        How many documents with wrong labels to keep and explain, the surest first.
    on_predicted : callable, optional
        Called with the labels, the ranking and the predicted sets of each chunk.

    Raises
    ------
    ValueError
        If there is no document.
    """
    calibrated = hasattr(classifier, "predict_proba_topk")
    rank = classifier.predict_proba_topk if calibrated else classifier.predict_topk
    class_sizes = classifier.statistics_.class_sizes
    # Labels that the model does not have get ids above those of its classes.
    ids = {label: class_id for class_id, label in enumerate(classifier.classes_.tolist())}
    n_known = len(ids)
    outcomes = []
    collector = MistakeCollector(n_mistakes)
    for documents, labels, *references in chunks:
        top = rank(documents, _CANDIDATES)
        predicted = as_label_sets(classifier.predict(documents)).to_lists()
        if on_predicted is not None:
            on_predicted(labels, top, predicted)
        if n_mistakes:
            true = as_label_sets(labels).to_lists()
            wrong, surest, scores = _find_wrong(true, predicted, top)
            collector.add(documents, true, surest, scores, wrong, *references)
        outcomes.append(
            _Outcome(_ids_of(labels, ids), _ids_of(predicted, ids), _rank_ids(top, ids), top)
        )
    if not outcomes:
        raise ValueError("there are no documents to evaluate.")
    truth = _join([labels for outcome in outcomes for labels in outcome.true], len(ids))
    predicted_sets = _join(
        [labels for outcome in outcomes for labels in outcome.predicted], len(ids)
    )
    ranked = RankedSets(truth, np.concatenate([outcome.ranking for outcome in outcomes]))
    sizes = np.zeros(len(ids), np.int64)
    sizes[: len(class_sizes)] = class_sizes
    known: dict[Any, int] = dict(enumerate(sizes.tolist()))
    probabilities = np.concatenate([outcome.top.scores for outcome in outcomes])
    labels_of = list(ids)
    return LabelSetEvaluation(
        n_documents=len(truth),
        n_labels=len(truth.class_ids),
        n_classes=int(np.count_nonzero(truth.class_sizes)),
        n_unknown=int(np.count_nonzero(truth.class_ids >= n_known)),
        ranking=_measure(ranked, sizes, classifier.statistics_.n_documents),
        r_precision=metrics.r_precision(ranked),
        sets=metrics.score_label_sets(truth, predicted_sets),
        intervals=metrics.label_set_intervals(truth, predicted_sets, ranked),
        bands=metrics.label_frequency_report(ranked, known, k=_at_most(ranked, BAND_DEPTH)),
        classes=[
            ClassResult(labels_of[class_id], int(sizes[class_id]), *counts)
            for class_id, *counts in _count_classes(truth, predicted_sets)
        ],
        mistakes=collector.explain(classifier),
        certainty=_judge(classifier, probabilities, ranked, precision) if calibrated else None,
        document_f1=metrics.document_f1(truth, predicted_sets),
    )


def _find_wrong(
    true: list[list[Any]], predicted: list[list[Any]], top: TopK
) -> tuple[Integers, list[Any], list[float]]:
    """Return the documents with a wrong label, and the surest such label with its score."""
    surest: list[Any] = [None] * len(true)
    scores = [0.0] * len(true)
    wrong = []
    for document, (labels, found) in enumerate(zip(true, predicted, strict=True)):
        ranked = dict(top[document])
        mistaken = [label for label in found if label not in labels and label in ranked]
        if mistaken:
            surest[document] = max(mistaken, key=ranked.__getitem__)
            scores[document] = ranked[surest[document]]
            wrong.append(document)
    return np.array(wrong, np.int64), surest, scores


def _count_classes(truth: LabelSets, predicted: LabelSets) -> Iterator[tuple[int, int, int, int]]:
    """Yield id, true, predicted and correct documents of every class that occurs."""
    n_classes = len(truth.classes)
    true_keys = truth.document_ids * n_classes + truth.class_ids
    found_keys = predicted.document_ids * n_classes + predicted.class_ids
    common = np.intersect1d(true_keys, found_keys, assume_unique=True) % n_classes
    counts = (
        truth.class_sizes,
        predicted.class_sizes,
        np.bincount(common, minlength=n_classes),
    )
    for class_id in np.flatnonzero((counts[0] > 0) | (counts[1] > 0)).tolist():
        n_true, n_predicted, n_correct = (int(column[class_id]) for column in counts)
        yield class_id, n_true, n_predicted, n_correct


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Results of a chunk: ids of true and predicted labels, and the ranking."""

    true: list[list[int]]
    predicted: list[list[int]]
    ranking: Integers
    top: TopK


def _ids_of(sets: Sequence[Any], ids: dict[Any, int]) -> list[list[int]]:
    """Return label sets as sorted ids; a label that is not there yet gets one."""
    lists = as_label_sets(sets).to_lists()
    return [sorted(ids.setdefault(label, len(ids)) for label in labels) for labels in lists]


def _rank_ids(top: TopK, ids: dict[Any, int]) -> Integers:
    """Return the ids of ranked labels, `NO_CLASS` where there was no candidate."""
    found = [
        [ids[label] if valid else NO_CLASS for label, valid in zip(row, mask, strict=True)]
        for row, mask in zip(top.classes.tolist(), top.valid.tolist(), strict=True)
    ]
    return np.array(found, np.int64).reshape(top.classes.shape)


def _join(sets: list[list[int]], n_classes: int) -> LabelSets:
    """Return lists of ids as label sets."""
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in sets])]).astype(np.int64)
    flat = np.array([label for labels in sets for label in labels], np.int64)
    return LabelSets(indptr, flat, np.arange(n_classes))


def _at_most(ranked: RankedSets, k: int) -> int:
    """Return k, or how many classes are ranked where those are fewer."""
    return min(k, int(ranked.ranking.shape[1]))


def _measure(
    ranked: RankedSets, class_sizes: Integers, n_documents: int
) -> dict[str, dict[int, float]]:
    """Return every measure of the ranking at every depth."""
    propensity = metrics.propensities(class_sizes, max(n_documents, 1))
    plain = {
        "P": metrics.precision_at_k,
        "R": metrics.recall_at_k,
        "F1": metrics.f1_at_k,
        "F1 of means": metrics.f1_at_k_of_means,
        "nDCG": metrics.ndcg_at_k,
    }
    depths = [k for k in DEPTHS if k <= ranked.ranking.shape[1]]
    found = {name: {k: measure(ranked, k=k) for k in depths} for name, measure in plain.items()}
    for name, weighted in (("PSP", metrics.psp_at_k), ("PSnDCG", metrics.psndcg_at_k)):
        found[name] = {k: weighted(ranked, propensity=propensity, k=k) for k in depths}
    return found


def _judge(
    classifier: Any, probabilities: Floats, ranked: RankedSets, precision: float
) -> LabelCertainty:
    """Say what the probabilities are worth."""
    values = np.where(ranked.ranking == NO_CLASS, 0.0, probabilities)
    n_true = len(ranked.truth.class_ids)
    pairs = values > LEAST_PROBABILITY
    flat, correct = values[pairs], ranked.hits[pairs]
    some = len(flat) > 0
    choices = {
        asked: _hold_back(classifier, values, ranked, asked)
        for asked in sorted({precision, *PRECISIONS})
    }
    threshold = choices[precision]
    return LabelCertainty(
        calibration_error=metrics.expected_calibration_error(flat, correct)
        if some
        else float("nan"),
        n_pairs=len(flat),
        bins=metrics.reliability(flat, correct) if some else [],
        curve=metrics.label_curve(values, ranked.hits, n_true),
        threshold=None if np.isnan(threshold.threshold) else threshold,
        choices=list(choices.values()),
    )


def _hold_back(
    classifier: Any, values: Floats, ranked: RankedSets, precision: float
) -> LabelThreshold:
    """Return what the model's threshold for a precision reaches here."""
    threshold = float(classifier.threshold_for(precision))
    kept = (values >= threshold) & (values > 0)
    n_right = int(np.count_nonzero(kept & ranked.hits))
    n_kept = int(np.count_nonzero(kept))
    return LabelThreshold(
        wanted=precision,
        threshold=threshold,
        precision=n_right / n_kept if n_kept else float("nan"),
        recall=n_right / max(len(ranked.truth.class_ids), 1),
        coverage=float(np.mean(kept.any(axis=1))),
    )
