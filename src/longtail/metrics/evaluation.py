"""A fitted classifier on labelled documents -> an Evaluation: all of its measures.

One label is a set of one, and no candidate is the label None: both kinds of documents go the same
way, and `Evaluation.multilabel` says which measures are of interest. Documents come in chunks and
leave the ids of their labels and candidates, so their texts may be larger than memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from longtail import metrics
from longtail._constants import MEASURES
from longtail._labels import LabelSets, are_label_sets
from longtail.answers import knows_probabilities, rank
from longtail.metrics.classes import ClassResult, ConfusedPair, FrequencyBand
from longtail.metrics.hierarchical import HierarchicalScores
from longtail.metrics.label_sets import LabelBand, LabelCurve, SetScores, compare_sets
from longtail.metrics.mistakes import Mistake, MistakeCollector
from longtail.metrics.probabilities import PrecisionCurve, ReliabilityBin
from longtail.metrics.rankings import NO_CLASS, RankedSets, as_label_sets
from longtail.paper.measures import f1_of_means
from longtail.results import TopK
from longtail.sparse import Floats, Integers

TOP = (1, 3, 5, 10, 20)  # depths of the ranking that are reported
BAND_DEPTH = 5  # of the ranking, for the results of label sets by class frequency
MIN_PROBABILITY = 0.01  # below it a pair says nothing about calibration: nearly all are there
PRECISIONS = (0.95, 0.98, 0.99)  # listed beside the one that was asked for

_SET_CANDIDATES = 40  # ranked for label sets; a label beyond them has hardly a probability
# Fifteen bins of seventy documents each: below, the error of a bin alone is about 0.06.
_MIN_JUDGED = 1000
_LARGEST_ERROR = 0.05  # of probabilities that can be used as such

# Measures that `as_dict` gives of one kind of documents only.
_OF_ONE_LABEL = ("accuracy", "accuracy_known", "macro_f1", "macro_f1_of_means", "top")
_OF_LABEL_SETS = ("n_labels", "ranking", "r_precision", "sets", "intervals")

# Hears the labels, the ranking and, of label sets, the predicted sets of each chunk.
OnPredicted = Callable[[Sequence[Any], TopK, Any], None]


@dataclass(frozen=True)
class Abstention:
    """Precision and coverage of the predictions above a threshold.

    `wanted` is the precision asked for and `threshold` what the model has for it from training;
    the others are what the evaluated documents showed: `precision` over the kept labels, `coverage`
    over the documents that keep one, `recall` over all true labels. `precision` is NaN where
    nothing was kept, and `threshold` where none is known for that precision.
    """

    wanted: float
    threshold: float
    precision: float
    coverage: float
    recall: float


@dataclass(frozen=True)
class Certainty:
    """Calibration of the predicted classes, and the precisions to choose from.

    All but the thresholds is over `n_pairs` pairs of a document and a class: of one label the
    predicted class, of label sets every class with a probability above 0.01.
    `calibration_interval` says where the calibration error lies if other documents of this kind
    were evaluated (90 %, bootstrap); `remarks` what a reader must know before using them.
    """

    calibration_error: float
    calibration_interval: tuple[float, float]
    n_pairs: int
    remarks: list[str]
    bins: list[ReliabilityBin]
    curve: PrecisionCurve | LabelCurve
    abstention: Abstention | None  # None where the model knows no threshold
    choices: list[Abstention]  # for the precision asked for, 95, 98 and 99 %


@dataclass(frozen=True)
class Evaluation:
    """Results of one classifier on one set of documents; shares are from 0 to 1.

    Attributes
    ----------
    multilabel : bool
        Whether documents have label sets; without, each has one label.
    n_documents, n_labels, n_classes : int
        Of the evaluated set; labels are pairs of a document and a label.
    n_unknown : int
        Labels of classes that the model does not have; they are never found.
    accuracy : float
        Share of documents whose labels are exactly those predicted.
    accuracy_known : float
        The same over the documents whose classes the model has; NaN if there are none.
    macro_f1, macro_f1_of_means : float
        As in `longtail.metrics`.
    top : dict of int to float
        Share of documents with a true class among the k highest-ranked.
    measures : dict of str to float
        What a fit promises, by the names of its promises; of one label each over the documents
        whose classes the model has.
    ranking : dict of str to dict of int to float
        ``P``, ``R``, ``F1`` (mean of the documents' F1), ``F1 of means``, ``nDCG``, ``PSP`` and
        ``PSnDCG`` of the first k classes.
    r_precision : float
        As in `longtail.metrics`.
    sets : SetScores
        Of the predicted sets: the highest-ranked class, or what `predict` gives for label sets.
    intervals : dict of str to (float, float)
        95 % intervals, as `longtail.metrics.label_set_intervals` names the measures.
    bands : list of FrequencyBand or of LabelBand
        Results by how many documents of a class the model has seen; of label sets those of the
        first five classes.
    confusions : list of ConfusedPair
        The classes that are taken for each other most often.
    classes : list of ClassResult
        Every class that is a true or a predicted one, in the order of the model's classes; those
        that it does not have come last.
    mistakes : list of Mistake
        Documents with the wrong predictions that the model was surest of.
    certainty : Certainty or None
        None for a classifier without probabilities.
    document_f1 : ndarray of shape (n_documents,), float64
        F1 of each document's predicted set; of one label 1 where it is correct, else 0.
    hierarchical : HierarchicalScores or None
        The same by the hierarchy of the model, where it has one.
    """

    multilabel: bool
    n_documents: int
    n_labels: int
    n_classes: int
    n_unknown: int
    accuracy: float
    accuracy_known: float
    macro_f1: float
    macro_f1_of_means: float
    top: dict[int, float]
    measures: dict[str, float]
    ranking: dict[str, dict[int, float]]
    r_precision: float
    sets: SetScores
    intervals: dict[str, tuple[float, float]]
    bands: list[FrequencyBand] | list[LabelBand]
    confusions: list[ConfusedPair]
    classes: list[ClassResult]
    mistakes: list[Mistake]
    certainty: Certainty | None
    document_f1: Floats
    hierarchical: HierarchicalScores | None = None

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether each document's labels are exactly those predicted."""
        return np.asarray(self.document_f1 == 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the measures of interest, without the long lists and the curve's every point."""
        value = asdict(replace(self, classes=[], mistakes=[]))
        left_out = _OF_ONE_LABEL if self.multilabel else _OF_LABEL_SETS
        for name in ("multilabel", "classes", "mistakes", "document_f1", *left_out):
            del value[name]
        if value["hierarchical"] is None:
            del value["hierarchical"]
        if value["certainty"] is not None:
            del value["certainty"]["curve"]
        return value


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
    """Predict labelled documents and measure the predictions.

    Parameters
    ----------
    classifier : estimator
        Fitted, with `predict_topk`, and `predict_proba_topk` if it knows probabilities. `predict`
        gives its label sets.
    chunks : iterable of (documents, labels) or (documents, labels, references)
        What the classifier's methods take, the true labels, and what mistakes say of where a
        document comes from, such as its id. Documents have label sets if those of the first chunk
        have, or if the classifier gives label sets.
    precision : float, default=0.9
        For which to look up the threshold below which to hold predictions back.
    unknown : float, default=0.0
        Share of documents of unknown classes for which that threshold is meant.
    n_confusions : int, default=10
        How many pairs of confused classes to list.
    n_mistakes : int, default=0
        How many documents with wrong predictions to keep and explain, the surest first.
    on_predicted : callable, optional
        Called with the labels, the ranking and, of label sets, the predicted sets of each chunk.

    Raises
    ------
    ValueError
        If there is no document.
    """
    remaining = iter(chunks)
    first = next(remaining, None)
    if first is None:
        raise ValueError("there are no documents to evaluate.")
    multilabel = gives_label_sets(classifier) or are_label_sets(first[1])
    calibrated = knows_probabilities(classifier)
    collector = MistakeCollector(n_mistakes)
    outcome, labels_of = _predict(
        classifier, chain([first], remaining), multilabel, collector, on_predicted
    )
    n_labels, n_known = len(labels_of), len(classifier.classes_)
    truth = _make_sets(outcome.true, outcome.n_true, n_labels)
    predicted_sets = _make_sets(outcome.predicted, outcome.n_predicted, n_labels)
    ranked = RankedSets(truth, outcome.ranking)
    class_sizes = classifier.statistics_.class_sizes
    sizes = np.concatenate([class_sizes, np.zeros(n_labels - n_known, class_sizes.dtype)])
    sets = compare_sets(truth, predicted_sets)
    scores = metrics.score_label_sets(truth, predicted_sets)
    counts = np.stack([truth.class_sizes, predicted_sets.class_sizes, sets.n_correct], axis=1)
    classes = [
        ClassResult(labels_of[i], sizes[i].item(), *counts[i].tolist())
        for i in np.flatnonzero(counts.any(axis=1)).tolist()
        if labels_of[i] is not None
    ]
    known = np.bincount(truth.document_ids, truth.class_ids >= n_known, len(truth)) == 0
    n_unknown = int(np.count_nonzero(truth.class_ids >= n_known))
    seen: dict[Any, int] = dict(enumerate(sizes.tolist()))
    certainty = None
    if calibrated:
        wanted = (precision, unknown)
        certainty = _judge(classifier, outcome, ranked, multilabel, wanted, n_unknown)
    ranking = _measure(ranked, sizes)
    r_precision = metrics.r_precision(ranked)
    measures = (
        _measure_sets(scores, ranking, r_precision, certainty)
        if multilabel
        else _measure_known(outcome, ranked.hits, known, calibrated)
    )
    return Evaluation(
        multilabel=multilabel,
        n_documents=len(truth),
        n_labels=len(truth.class_ids),
        n_classes=int(np.count_nonzero(truth.class_sizes)),
        n_unknown=n_unknown,
        accuracy=scores.exact,
        accuracy_known=float(np.mean(sets.is_exact[known])) if known.any() else float("nan"),
        macro_f1=scores.macro_f1,
        macro_f1_of_means=f1_of_means(*counts[counts.any(axis=1)].T),
        top=_measure_top(ranked.hits),
        measures=measures,
        ranking=ranking,
        r_precision=r_precision,
        sets=scores,
        intervals=metrics.label_set_intervals(truth, predicted_sets, ranked),
        bands=metrics.label_frequency_report(
            ranked, seen, k=min(BAND_DEPTH, ranked.ranking.shape[1])
        )
        if multilabel
        else metrics.frequency_report(outcome.true, outcome.predicted, seen),
        confusions=[
            replace(
                confused,
                first=labels_of[cast(int, confused.first)],
                second=labels_of[cast(int, confused.second)],
            )
            for confused in metrics.confused_pairs(truth, predicted_sets, n_confusions)
        ],
        classes=classes,
        mistakes=collector.explain(classifier),
        certainty=certainty,
        document_f1=sets.document_f1,
        hierarchical=_measure_hierarchy(classifier, truth, predicted_sets, labels_of),
    )


def _predict(
    classifier: Any,
    chunks: Iterable[tuple[Any, ...]],
    multilabel: bool,
    collector: MistakeCollector,
    on_predicted: OnPredicted | None,
) -> tuple[_Outcome, list[Any]]:
    """Return what is predicted of all documents, and the label of each class id.

    Labels of unknown classes get ids above those of the model: a long label is kept once.
    """
    ids = {label: class_id for class_id, label in enumerate(classifier.classes_.tolist())}
    outcomes = []
    for documents, labels, *references in chunks:
        top = rank(classifier, documents, _SET_CANDIDATES if multilabel else max(TOP))
        true, predicted = _as_lists(labels, multilabel), _best_classes(top)
        if multilabel:
            predicted = _rank_sets(_as_lists(classifier.predict(documents), multilabel), top)
        if on_predicted is not None:
            on_predicted(labels, top, predicted if multilabel else None)
        if collector.n_mistakes:
            shown = true if multilabel else [label for [label] in true]
            collector.add(documents, shown, *_find_wrong(true, predicted, top), *references)
        outcomes.append(_compare(true, predicted, top, ids, multilabel))
    return _join(outcomes), list(ids)


def _measure_hierarchy(
    classifier: Any, true: LabelSets, predicted: LabelSets, labels: list[Any]
) -> HierarchicalScores | None:
    """Compare label sets by the hierarchy of the classifier, where it has one."""
    hierarchy = getattr(classifier, "hierarchy_", None)
    if hierarchy is None:
        return None
    lists = (
        [[labels[i] for i in ids if labels[i] is not None] for ids in sets.to_lists()]
        for sets in (true, predicted)
    )
    return metrics.hierarchical_scores(hierarchy, *lists)


def gives_label_sets(classifier: Any) -> bool:
    """Return whether a classifier predicts label sets; the others predict one class each."""
    return bool(getattr(getattr(classifier, "classifier_", classifier), "multilabel_", False))


def _as_lists(labels: Any, multilabel: bool) -> list[list[Any]]:
    """Return the labels of each document as a list."""
    if multilabel:
        return as_label_sets(labels).to_lists()
    return [[label] for label in (labels.tolist() if isinstance(labels, np.ndarray) else labels)]


def _best_classes(top: TopK) -> list[list[Any]]:
    """Return the highest-ranked class of each document; None where there is no candidate."""
    best = zip(top.classes[:, 0].tolist(), top.valid[:, 0].tolist(), strict=True)
    return [[label if valid else None] for label, valid in best]


def _rank_sets(sets: list[list[Any]], top: TopK) -> list[list[Any]]:
    """Return label sets with their labels in the order of the ranking."""
    ordered = []
    for document, labels in enumerate(sets):
        ranks = {label: rank for rank, (label, _) in enumerate(top[document])}
        ordered.append(sorted(labels, key=lambda label: ranks.get(label, len(ranks))))
    return ordered


def _find_wrong(
    true: list[list[Any]], predicted: list[list[Any]], top: TopK
) -> tuple[list[Any], list[float], Integers]:
    """Return each document's surest wrong label and its score, and which documents have one."""
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
    return surest, scores, np.array(wrong, np.int64)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Documents with class ids: true and predicted, one document after the other, and ranked.

    `scores` are those of the ranking, of one label each those of the first rank alone.
    `has_answer` says where there is a candidate that is not less likely than "none of these".
    """

    true: Integers
    n_true: Integers
    predicted: Integers
    n_predicted: Integers
    ranking: Integers
    scores: Floats
    has_answer: NDArray[np.bool_]


def _compare(
    true: list[list[Any]],
    predicted: list[list[Any]],
    top: TopK,
    ids: dict[Any, int],
    multilabel: bool,
) -> _Outcome:
    """Return class ids in place of labels; a label that is not there yet gets an id."""

    def as_ids(sets: list[list[Any]]) -> tuple[Integers, Integers]:
        numbered = [sorted(ids.setdefault(y, len(ids)) for y in labels) for labels in sets]
        sizes = np.array([len(labels) for labels in numbered], np.int64)
        return np.array([*chain.from_iterable(numbered)], np.int64), sizes

    ranking = [
        [ids[label] if valid else NO_CLASS for label, valid in zip(row, mask, strict=True)]
        for row, mask in zip(top.classes.tolist(), top.valid.tolist(), strict=True)
    ]
    scores = top.scores.astype(np.float64)
    return _Outcome(
        *as_ids(true),
        *as_ids(predicted),
        ranking=np.array(ranking, np.int64).reshape(top.classes.shape),
        scores=scores if multilabel else scores[:, :1].copy(),
        has_answer=top.valid[:, 0] & (True if top.none is None else scores[:, 0] >= top.none),
    )


def _join(outcomes: list[_Outcome]) -> _Outcome:
    """Return the outcomes of all chunks as one."""
    names = [field.name for field in fields(_Outcome)]
    return _Outcome(*(np.concatenate([getattr(one, name) for one in outcomes]) for name in names))


def _make_sets(class_ids: Integers, sizes: Integers, n_classes: int) -> LabelSets:
    """Return class ids, so many for each document, as label sets."""
    return LabelSets(np.append(0, np.cumsum(sizes)), class_ids, np.arange(n_classes))


def _measure(ranked: RankedSets, class_sizes: Integers) -> dict[str, dict[int, float]]:
    """Return every measure of the ranking at every depth."""
    propensity = metrics.propensities(class_sizes, max(class_sizes.sum(), 1))
    plain = {
        "P": metrics.precision_at_k,
        "R": metrics.recall_at_k,
        "F1": metrics.f1_at_k,
        "F1 of means": metrics.f1_at_k_of_means,
        "nDCG": metrics.ndcg_at_k,
    }
    depths = [k for k in TOP if k <= ranked.ranking.shape[1]]
    found = {name: {k: measure(ranked, k=k) for k in depths} for name, measure in plain.items()}
    for name, weighted in (("PSP", metrics.psp_at_k), ("PSnDCG", metrics.psndcg_at_k)):
        found[name] = {k: weighted(ranked, propensity=propensity, k=k) for k in depths}
    return found


def _measure_top(hits: NDArray[np.bool_]) -> dict[int, float]:
    """Return the share of documents with a true class in the first k places."""
    return {k: float(np.mean(hits[:, :k].any(axis=1))) for k in TOP}


def _measure_known(
    outcome: _Outcome, hits: NDArray[np.bool_], known: NDArray[np.bool_], calibrated: bool
) -> dict[str, float]:
    """Measure documents of one label each whose classes the model has."""
    if not known.any():
        return {}
    hits, best = hits[known], outcome.ranking[known, 0]
    tops = _measure_top(hits)
    measures = {
        "accuracy": tops.pop(1),
        "macro_f1": metrics.macro_f1(outcome.true[known], best),
        **{f"top_{k}": found for k, found in tops.items()},
    }
    if calibrated:
        values = np.where(best == NO_CLASS, 0.0, outcome.scores[known, 0])
        measures["calibration_error"] = metrics.expected_calibration_error(values, hits[:, 0])
    return measures


def _measure_sets(
    scores: SetScores,
    ranking: dict[str, dict[int, float]],
    r_precision: float,
    certainty: Certainty | None,
) -> dict[str, float]:
    """Return the measures of label sets that a fit promises."""
    found = {
        **vars(scores),
        "r_precision": r_precision,
        **{f"{name}@{k}": value for name in ("P", "nDCG") for k, value in ranking[name].items()},
        "label_calibration_error": math.nan if certainty is None else certainty.calibration_error,
    }
    return {name: found[name] for name in MEASURES if not math.isnan(found.get(name, math.nan))}


def _judge(
    classifier: Any,
    outcome: _Outcome,
    ranked: RankedSets,
    multilabel: bool,
    wanted: tuple[float, float],
    n_unknown: int,
) -> Certainty:
    """Measure the probabilities; `wanted` is a precision and a share of unknowns."""
    precision, unknown = wanted
    depth = outcome.scores.shape[1]
    values = np.where(outcome.ranking[:, :depth] == NO_CLASS, 0.0, outcome.scores)
    hits = ranked.hits[:, :depth]
    judged = values > MIN_PROBABILITY if multilabel else np.ones(values.shape, np.bool_)
    answers = values > 0 if multilabel else outcome.has_answer[:, None]
    n_labels = len(outcome.true)

    def hold_back(asked: float) -> Abstention:
        # Called with one argument where that is all it needs: other classifiers may know no more.
        threshold = float(classifier.threshold_for(*((asked, unknown) if unknown else (asked,))))
        kept = answers & (values >= threshold)
        n_kept, n_correct = int(np.count_nonzero(kept)), int(np.count_nonzero(kept & hits))
        return Abstention(
            wanted=asked,
            threshold=threshold,
            precision=n_correct / n_kept if n_kept else float("nan"),
            coverage=float(np.mean(kept.any(axis=1))),
            recall=n_correct / max(n_labels, 1),
        )

    choices = {asked: hold_back(asked) for asked in sorted({precision, *PRECISIONS})}
    abstention = None if np.isnan(choices[precision].threshold) else choices[precision]
    flat, correct = values[judged], hits[judged]
    error, interval = float("nan"), (float("nan"), float("nan"))
    if len(flat):
        error = metrics.expected_calibration_error(flat, correct)
        # Labels of one document are right or wrong together.
        documents = np.nonzero(judged)[0] if multilabel else None
        interval = metrics.calibration_interval(flat, correct, documents=documents)
    return Certainty(
        calibration_error=error,
        calibration_interval=interval,
        n_pairs=len(flat),
        remarks=[]
        if multilabel
        else list(_remarks(interval, abstention, len(flat), n_unknown, unknown)),
        bins=metrics.reliability(flat, correct) if len(flat) else [],
        curve=metrics.label_curve(values, hits, n_labels)
        if multilabel
        else metrics.precision_curve(flat, correct),
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
    if n_documents < _MIN_JUDGED:
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
        share = n_unknown / n_documents
        yield (
            f"{share:.1%} of the documents have classes that the model does not "
            "know. Probabilities are learned where every class is known, and the threshold expects "
            + (f"{unknown:.1%}" if unknown else "none")
            + " of them."
            + ("" if unknown else f" --unknown {share:.2g} makes it expect as many.")
        )
    if abstention is None:
        yield "The model has no threshold for the precision asked for."
