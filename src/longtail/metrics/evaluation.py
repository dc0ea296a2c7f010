"""A fitted classifier on labelled documents -> an Evaluation: all that there is to say about it.

Documents come in chunks and leave four numbers each, so the test set may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from longtail import metrics
from longtail.metrics.calibration import PrecisionCurve, ReliabilityBin
from longtail.metrics.classes import ClassResult, ConfusedPair, FrequencyBand
from longtail.metrics.mistakes import Mistake, MistakeCollector
from longtail.results import TopK
from longtail.sparse import Floats, Integers

TOP = (1, 3, 5, 10, 20)  # depths of the ranking that are reported

# Fifteen bins of seventy documents each: below, the error of a bin alone is about 0.06.
_FEWEST_JUDGED = 1000
_LARGEST_ERROR = 0.05  # of probabilities that can be used as such


@dataclass(frozen=True)
class Abstention:
    """What is left when predictions below a threshold are held back.

    `wanted` is the precision asked for and `threshold` what the model has for it from training;
    `precision` and `coverage` are what the evaluated documents showed. `precision` is NaN where
    nothing was kept, and `threshold` where none is known for that precision.
    """

    wanted: float
    threshold: float
    precision: float
    coverage: float


# Precisions that people ask for; what each costs is listed beside the one that was asked for.
PRECISIONS = (0.95, 0.98, 0.99)

# Hears the labels, the ranking and, of a model of label sets, the predicted sets of each chunk.
OnPredicted = Callable[[Sequence[Any], TopK, Any], None]


@dataclass(frozen=True)
class Certainty:
    """What the probabilities of the predicted classes are worth.

    `calibration_interval` says where the calibration error lies if other documents of this kind
    were evaluated (90 %, bootstrap); `remarks` what a reader must know before using them.
    """

    calibration_error: float
    calibration_interval: tuple[float, float]
    remarks: list[str]
    bins: list[ReliabilityBin]
    curve: PrecisionCurve
    abstention: Abstention | None  # None where the model knows no threshold
    choices: list[Abstention]  # for the precision asked for, 95, 98 and 99 %


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
        As in `longtail.metrics`, over all documents.
    accuracy_known : float
        Accuracy over the documents whose class the model has; NaN if there are none.
    top : dict of int to float
        Share of documents whose true class is one of the k highest-ranked.
    bands : list of FrequencyBand
        Results by how many documents of the class the model has seen.
    confusions : list of ConfusedPair
        The classes that are taken for each other most often.
    classes : list of ClassResult
        Every class that is a true or a predicted one, in the order of the model's classes; those
        that it does not have come last.
    mistakes : list of Mistake
        The wrong predictions that the model was surest of.
    certainty : Certainty or None
        None for a classifier without probabilities.
    correct : ndarray of shape (n_documents,), bool
        Whether each prediction was correct.
    """

    n_documents: int
    n_classes: int
    n_unknown: int
    accuracy: float
    accuracy_known: float
    macro_f1: float
    macro_f1_of_means: float
    top: dict[int, float]
    bands: list[FrequencyBand]
    confusions: list[ConfusedPair]
    classes: list[ClassResult]
    mistakes: list[Mistake]
    certainty: Certainty | None
    correct: NDArray[np.bool_]


def evaluate(
    classifier: Any,
    chunks: Iterable[tuple[Any, ...]],
    *,
    precision: float = 0.9,
    unknown: float = 0.0,
    n_confusions: int = 10,
    n_mistakes: int = 0,
    on_predicted: OnPredicted | None = None,
) -> Evaluation:
    """Predict labelled documents and say how well that went.

    Parameters
    ----------
    classifier : estimator
        Fitted, with `predict_topk`, and `predict_proba_topk` if it knows probabilities.
    chunks : iterable of (documents, labels) or (documents, labels, references)
        What the classifier's methods take, the true labels, and what mistakes say of where a
        document comes from, such as its id.
    precision : float, default=0.9
        For which to look up the threshold below which to hold predictions back.
    unknown : float, default=0.0
        Share of documents of unknown classes for which that threshold is meant.
    n_confusions : int, default=10
        How many pairs of confused classes to list.
    n_mistakes : int, default=0
        How many wrong predictions to keep and explain, the surest first.
    on_predicted : callable, optional
        Called with the labels and the ranking of each chunk.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If there is no document.
    """
    calibrated = knows_probabilities(classifier)
    rank = classifier.predict_proba_topk if calibrated else classifier.predict_topk
    names = classifier.classes_.tolist()
    # Labels of unknown classes get ids above those of the model: a long label is kept once.
    class_ids = {label: class_id for class_id, label in enumerate(names)}
    collector = MistakeCollector(n_mistakes)
    seen = []
    for documents, labels, *references in chunks:
        top = rank(documents, max(TOP))
        if on_predicted is not None:
            on_predicted(labels, top, None)
        seen.append(_compare(top, labels, class_ids))
        if n_mistakes:
            wrong = np.flatnonzero((seen[-1].ranks > 0) & top.valid[:, 0])
            best = top.classes[:, 0].tolist()
            collector.add(documents, labels, best, top.scores[:, 0].tolist(), wrong, *references)
    if not seen:
        raise ValueError("there are no documents to evaluate.")
    true = np.concatenate([outcome.true for outcome in seen])
    predicted = np.concatenate([outcome.predicted for outcome in seen])
    ranks = np.concatenate([outcome.ranks for outcome in seen])
    scores = np.concatenate([outcome.scores for outcome in seen])
    kept = np.concatenate([outcome.has_answer for outcome in seen])
    sizes: dict[object, int] = dict(enumerate(classifier.statistics_.class_sizes.tolist()))
    known = true < len(names)
    n_unknown = int(np.count_nonzero(~known))
    labels_of = [*class_ids, None]  # None: there was no candidate
    return Evaluation(
        n_documents=len(true),
        n_classes=len(np.unique(true)),
        n_unknown=n_unknown,
        accuracy=float(np.mean(ranks == 0)),
        accuracy_known=float(np.mean(ranks[known] == 0)) if known.any() else float("nan"),
        macro_f1=metrics.macro_f1(true, predicted),
        macro_f1_of_means=metrics.macro_f1_of_means(true, predicted),
        top={k: float(np.mean(ranks < k)) for k in TOP},
        bands=metrics.frequency_report(true, predicted, sizes),
        confusions=[
            replace(
                pair,
                first=labels_of[cast(int, pair.first)],
                second=labels_of[cast(int, pair.second)],
            )
            for pair in metrics.confused_pairs(true, predicted, n_confusions)
        ],
        classes=[
            replace(result, label=labels_of[cast(int, result.label)])
            for result in metrics.class_report(true, predicted, sizes)
            if result.label != -1
        ],
        mistakes=collector.explain(classifier),
        certainty=_judge(classifier, scores, ranks == 0, kept, (precision, unknown), n_unknown)
        if calibrated
        else None,
        correct=ranks == 0,
    )


def knows_probabilities(classifier: Any) -> bool:
    """Tell whether a classifier knows probabilities."""
    return hasattr(classifier, "predict_proba_topk")


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Results of a chunk: class ids, the rank of the true class, and the best score.

    `has_answer` says where there is a candidate that is not less likely than "none of these".
    """

    true: Integers
    predicted: Integers
    ranks: Integers
    scores: Floats
    has_answer: NDArray[np.bool_]


def _compare(top: TopK, labels: Sequence[Any], class_ids: dict[Any, int]) -> _Outcome:
    """Find the true classes in the rankings; an entry without a candidate is never correct."""
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    true = np.array([class_ids.setdefault(label, len(class_ids)) for label in labels], np.int64)
    classes = [
        [class_ids[label] if valid else -1 for label, valid in zip(row, mask, strict=True)]
        for row, mask in zip(top.classes.tolist(), top.valid.tolist(), strict=True)
    ]
    ranking: Integers = np.array(classes, dtype=np.int64).reshape(top.classes.shape)
    hits = ranking == true[:, None]
    ranks: Integers = np.where(hits.any(axis=1), hits.argmax(axis=1), top.classes.shape[1])
    scores = top.scores[:, 0].astype(np.float64)
    has_answer = top.valid[:, 0] & (True if top.none is None else scores >= top.none)
    return _Outcome(true, ranking[:, 0].copy(), ranks, scores, has_answer)


def _judge(
    classifier: Any,
    probabilities: Floats,
    correct: NDArray[np.bool_],
    has_answer: NDArray[np.bool_],
    wanted: tuple[float, float],
    n_unknown: int,
) -> Certainty:
    """Say what the probabilities are worth; `wanted` is a precision and a share of unknowns."""
    precision, unknown = wanted

    def hold_back(asked: float) -> Abstention:
        # Called with one argument where that is all it needs: other classifiers may know no more.
        threshold = float(classifier.threshold_for(*((asked, unknown) if unknown else (asked,))))
        kept = has_answer & (probabilities >= threshold)
        reached = float(correct[kept].mean()) if kept.any() else float("nan")
        return Abstention(asked, threshold, reached, float(kept.mean()))

    choices = {asked: hold_back(asked) for asked in sorted({precision, *PRECISIONS})}
    abstention = None if np.isnan(choices[precision].threshold) else choices[precision]
    interval = metrics.calibration_interval(probabilities, correct)
    return Certainty(
        calibration_error=metrics.expected_calibration_error(probabilities, correct),
        calibration_interval=interval,
        remarks=list(_remarks(interval, abstention, len(correct), n_unknown, unknown)),
        bins=metrics.reliability(probabilities, correct),
        curve=metrics.precision_curve(probabilities, correct),
        abstention=abstention,
        choices=list(choices.values()),
    )


def _remarks(
    interval: tuple[float, float],
    abstention: Abstention | None,
    n_documents: int,
    n_unknown: int,
    unknown: float,
) -> Iterator[str]:
    """Yield what must be known before the probabilities are used."""
    if n_documents < _FEWEST_JUDGED:
        yield (
            f"{n_documents:,} documents are too few to judge probabilities: the calibration error "
            f"lies between {interval[0]:.3f} and {interval[1]:.3f}, and chance alone adds to it."
        )
    elif interval[0] > _LARGEST_ERROR:
        yield (
            f"The probabilities are not calibrated on these documents: they are off by "
            f"{interval[0]:.3f} to {interval[1]:.3f} on average."
        )
    if n_unknown:
        yield (
            f"{n_unknown / n_documents:.1%} of the documents have classes that the model does not "
            "know. Probabilities are learned where every class is known, and the threshold expects "
            f"{f'{unknown:.1%}' if unknown else 'none'} of them. Give their share as --unknown, or "
            "to threshold_for as its second argument."
        )
    if abstention is None:
        yield "The model has no threshold for the precision asked for."
