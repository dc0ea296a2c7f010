"""Accuracy, confusions, and bands of class frequency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._constants import FREQUENCY_BANDS
from longtail._labels import LabelSets, are_label_sets
from longtail.metrics.label_sets import compare_sets, report_bands
from longtail.paper.measures import as_array, check_labels, count_outcomes
from longtail.results import TopK
from longtail.sparse import Integers


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of documents whose predicted class is the true one.

    Examples
    --------
    >>> accuracy(["a", "b", "b"], ["a", "b", "c"])
    0.6666666666666666
    """
    true, predicted = check_labels(y_true, y_pred)
    return float(np.mean(true == predicted))


def top_k_accuracy(y_true: ArrayLike, top_classes: ArrayLike | TopK, k: int | None = None) -> float:
    """Return the share of documents whose true class is one of the k highest-ranked.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        True labels.
    top_classes : TopK or array-like of shape (n_documents, n_ranked)
        What `predict_topk` returns, whose entries without a candidate never count, or labels, best
        first.
    k : int, optional
        At most n_ranked; all of them when left out.

    Examples
    --------
    >>> top_k_accuracy(["a", "b"], [["b", "a"], ["c", "a"]], k=2)
    0.5
    """
    true = as_array(y_true)
    ranking = np.asarray(getattr(top_classes, "classes", top_classes))
    if ranking.ndim != 2 or len(ranking) != len(true) or not len(true):
        raise ValueError(
            "top_classes must have a row for each of the true labels, at least one; "
            f"got shapes {ranking.shape} and {true.shape}."
        )
    k = ranking.shape[1] if k is None else k
    if not 1 <= k <= ranking.shape[1]:
        raise ValueError(f"k must be from 1 to {ranking.shape[1]}, the ranked classes; got {k}.")
    hits = ranking[:, :k] == true[:, None]
    if isinstance(top_classes, TopK):
        hits &= top_classes.valid[:, :k]
    return float(np.mean(np.any(hits, axis=1)))


@dataclass(frozen=True)
class Confusion:
    """A class that is taken for another: in how many documents, and of how many it has."""

    true: object
    predicted: object
    n_documents: int
    n_true: int


def most_confused(y_true: ArrayLike, y_pred: ArrayLike, n: int = 10) -> list[Confusion]:
    """Return the n pairs of classes that are confused most often.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_documents,)
        Labels.
    n : int, default=10
        How many pairs at most.

    Returns
    -------
    list of Confusion
        Most documents first; ties in the order of the true label, then of the predicted one.

    Examples
    --------
    >>> most_confused(["a", "a", "a", "b"], ["b", "b", "c", "b"], n=1)
    [Confusion(true='a', predicted='b', n_documents=2, n_true=3)]
    """
    found = _pair_mistakes(y_true, y_pred)
    n_labels = len(found.labels)
    codes, counts = np.unique(found.missed * n_labels + found.wrong, return_counts=True)
    names, sizes, confusions = found.labels.tolist(), found.sizes.tolist(), []
    for i in np.argsort(-counts, kind="stable")[:n].tolist():
        true, predicted = divmod(int(codes[i]), n_labels)
        confusions.append(Confusion(names[true], names[predicted], int(counts[i]), sizes[true]))
    return confusions


@dataclass(frozen=True)
class ConfusedPair:
    """Two classes that are taken for each other, of which the first is so more often.

    `n_first` and `n_second` are how many documents they have.
    """

    first: object
    second: object
    n_first_as_second: int
    n_second_as_first: int
    n_first: int
    n_second: int

    @property
    def n_confused(self) -> int:
        """Documents of either that were taken for the other."""
        return self.n_first_as_second + self.n_second_as_first

    @property
    def may_be_one(self) -> bool:
        """Whether each is taken for the other in a quarter of its documents at least.

        Then the two may be one class, or the labels do not keep them apart. With fewer than three
        confused documents nothing can be said.
        """
        return (
            self.n_confused >= 3
            and 4 * self.n_first_as_second >= self.n_first
            and 4 * self.n_second_as_first >= self.n_second
            and self.n_second_as_first > 0
        )


def confused_pairs(y_true: Any, y_pred: Any, n: int = 10) -> list[ConfusedPair]:
    """Return the n pairs of classes that are most often taken for each other, either way.

    Of label sets, a label that was missed is taken for each one that was predicted wrongly for the
    same document.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_documents,), or label sets
        Labels, or lists of labels.
    n : int, default=10
        How many pairs at most.

    Returns
    -------
    list of ConfusedPair
        Most documents first; ties in the order of the labels.

    Examples
    --------
    >>> [pair] = confused_pairs(["a", "a", "a", "b", "b"], ["b", "b", "a", "b", "a"])
    >>> pair.first, pair.second, pair.n_confused, pair.may_be_one
    ('a', 'b', 3, True)
    >>> [pair] = confused_pairs([["a", "b"], ["b"]], [["b", "c"], ["b"]])
    >>> pair.first, pair.second
    ('a', 'c')
    """
    found = _pair_mistakes(y_true, y_pred)
    low, high = np.minimum(found.missed, found.wrong), np.maximum(found.missed, found.wrong)
    n_labels = len(found.labels)
    codes, of_code = np.unique(low * n_labels + high, return_inverse=True)
    upward = np.bincount(of_code, found.missed == low, len(codes)).astype(np.int64)
    counts = np.bincount(of_code, minlength=len(codes))
    names, sizes, pairs = found.labels.tolist(), found.sizes.tolist(), []
    for i in np.argsort(-counts, kind="stable")[:n].tolist():
        first, second = divmod(int(codes[i]), n_labels)
        there, back = int(upward[i]), int(counts[i] - upward[i])
        if back > there:
            first, second, there, back = second, first, back, there
        pair = ConfusedPair(names[first], names[second], there, back, sizes[first], sizes[second])
        pairs.append(pair)
    return pairs


@dataclass(frozen=True, eq=False)
class _PairedMistakes:
    """Ids of labels that were missed, each with one that was predicted wrongly in its place.

    `sizes` are how many documents each of the `labels` has.
    """

    labels: NDArray[np.generic]
    sizes: Integers
    missed: Integers
    wrong: Integers


def _pair_mistakes(y_true: Any, y_pred: Any) -> _PairedMistakes:
    """Pair each missed label with every wrong one of the same document."""
    if not are_label_sets(y_true):
        plain = check_labels(y_true, y_pred)
        labels, ids = np.unique(np.concatenate(plain), return_inverse=True)
        y_true, y_pred = (LabelSets.single(half, labels) for half in np.split(ids, 2))
    sets = compare_sets(y_true, y_pred)
    true, predicted = sets.true, sets.predicted
    missed, documents = true.class_ids[~sets.is_found], true.document_ids[~sets.is_found]
    wrong = predicted.class_ids[~sets.is_correct]
    n_wrong = np.bincount(predicted.document_ids[~sets.is_correct], minlength=len(true))
    n_beside = n_wrong[documents]  # wrong labels beside each missed one
    # The first of them in `wrong`, less the number of pairs before: what arange adds to.
    shifts = (np.cumsum(n_wrong) - n_wrong)[documents] - (np.cumsum(n_beside) - n_beside)
    beside = np.repeat(shifts, n_beside) + np.arange(n_beside.sum())
    return _PairedMistakes(
        true.classes, true.class_sizes, np.repeat(missed, n_beside), wrong[beside]
    )


@dataclass(frozen=True)
class ClassResult:
    """How one class fared.

    `n_true` documents have it, `n_predicted` were put into it, `n_correct` are both; `n_seen` is
    how many documents of it the model was trained on. `precision` is NaN where it was never
    predicted, `recall` where no document has it.
    """

    label: object
    n_seen: int
    n_true: int
    n_predicted: int
    n_correct: int

    @property
    def precision(self) -> float:
        """Share of the documents put into the class that belong there."""
        return self.n_correct / self.n_predicted if self.n_predicted else float("nan")

    @property
    def recall(self) -> float:
        """Share of its documents that were found."""
        return self.n_correct / self.n_true if self.n_true else float("nan")

    @property
    def f1(self) -> float:
        """Harmonic mean of both; 0 where nothing is correct."""
        return 2.0 * self.n_correct / (self.n_true + self.n_predicted)


def class_report(
    y_true: ArrayLike, y_pred: ArrayLike, class_sizes: Mapping[object, int]
) -> list[ClassResult]:
    """Report on every class that is a true or a predicted one.

    Parameters are those of `frequency_report`. The mean of `f1` is `macro_f1`.

    Examples
    --------
    >>> a, b = class_report(["a", "b", "b"], ["a", "b", "a"], {"a": 1, "b": 7})
    >>> a.precision, a.recall, b.n_seen
    (0.5, 1.0, 7)
    """
    counts = count_outcomes(y_true, y_pred)
    columns = (counts.labels, counts.true, counts.predicted, counts.correct)
    return [
        ClassResult(label, class_sizes.get(label, 0), *figures)
        for label, *figures in zip(*(column.tolist() for column in columns), strict=True)
    ]


@dataclass(frozen=True)
class FrequencyBand:
    """Results for the classes whose number of training documents lies in one band.

    `n_classes` counts the classes of the band that occur among the true labels; `macro_f1` is the
    mean of their per-class F1; `accuracy` is over their `n_documents` documents. Both are NaN for
    an empty band.
    """

    name: str
    n_classes: int
    n_documents: int
    accuracy: float
    macro_f1: float


def frequency_report(
    y_true: ArrayLike, y_pred: ArrayLike, class_sizes: Mapping[object, int]
) -> list[FrequencyBand]:
    """Report accuracy and macro F1 by how many training documents a class had.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_documents,)
        Labels.
    class_sizes : mapping
        Label to number of training documents; a label that is missing had none and is in no band.

    Returns
    -------
    list of FrequencyBand
        For 1, 2-5, 6-20, 21-100 and more training documents.

    Examples
    --------
    >>> report = frequency_report(["a", "b", "b"], ["a", "b", "a"], {"a": 1, "b": 7})
    >>> [(band.name, band.accuracy) for band in report if band.n_documents]
    [('1', 1.0), ('6-20', 0.5)]
    """
    counts = count_outcomes(y_true, y_pred)
    sizes = np.array([class_sizes.get(label, 0) for label in counts.labels.tolist()])
    bands = report_bands(FREQUENCY_BANDS, sizes, counts.true, counts.predicted, counts.correct)
    return [
        FrequencyBand(band.name, band.n_classes, band.n_labels, band.recall, band.macro_f1)
        for band in bands
    ]
