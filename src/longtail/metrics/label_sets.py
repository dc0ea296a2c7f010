"""Predicted label sets against true ones, and results by class frequency.

In: the true and the predicted labels of each document. Out: F1 over pairs, documents and classes,
and a `LabelBand` for each band of class size, with one for classes that training never saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._caching import cached_property
from longtail._constants import FREQUENCY_BANDS
from longtail._labels import LabelSets
from longtail._validation import check_same_kind
from longtail.metrics.intervals import mean_interval, ratio_interval, wilson_interval
from longtail.metrics.rankings import (
    NO_CLASS,
    RankedSets,
    as_label_sets,
    document_ndcg,
    document_r_precision,
)
from longtail.sparse import Floats, Integers

NEVER_SEEN = "never seen"


@dataclass(frozen=True)
class SetScores:
    """How good predicted label sets are; shares from 0 to 1."""

    # Over all (document, label) pairs.
    precision: float
    recall: float
    micro_f1: float
    # Mean of the per-class F1 over the classes that are true or predicted somewhere.
    macro_f1: float
    mean_f1: float  # mean of the documents' own F1; 1 for a document without labels that gets none
    mean_size: float  # labels predicted for a document on average
    exact: float  # share of documents whose predicted set is the true one


def score_label_sets(y_true: Any, y_pred: Any) -> SetScores:
    """Compare predicted label sets with true ones.

    Parameters
    ----------
    y_true, y_pred : list of lists, indicator matrix, or LabelSets
        True labels and what `predict` returns; both in the same form.

    Examples
    --------
    >>> scores = score_label_sets([["a", "b"], ["c"]], [["a"], ["c", "b"]])
    >>> round(scores.micro_f1, 4), round(scores.macro_f1, 4), round(scores.mean_f1, 4)
    (0.6667, 0.6667, 0.6667)
    """
    found = compare_sets(y_true, y_pred)
    n_true, n_predicted = len(found.true.class_ids), len(found.predicted.class_ids)
    n_common = int(found.n_common.sum())
    return SetScores(
        precision=n_common / n_predicted if n_predicted else 0.0,
        recall=n_common / n_true if n_true else 0.0,
        micro_f1=2.0 * n_common / (n_true + n_predicted) if n_true + n_predicted else 0.0,
        macro_f1=_mean(found.class_f1),
        mean_f1=float(np.mean(found.document_f1)),
        mean_size=n_predicted / len(found.true),
        exact=float(np.mean(found.is_exact)),
    )


def label_set_intervals(
    y_true: Any, y_pred: Any, ranked: RankedSets
) -> dict[str, tuple[float, float]]:
    """Return the 95 % intervals of the measures of label sets and their rankings.

    Parameters
    ----------
    y_true, y_pred : list of lists, indicator matrix, or LabelSets
        Those of `score_label_sets`.
    ranked : RankedSets
        The true labels and the ranking.

    Returns
    -------
    dict of str to (float, float)
        Of the fields of `SetScores` but `mean_size`, of ``r_precision``, and of ``P@k`` and
        ``nDCG@k`` for the k of 1, 3 and 5 that are ranked; without those that have no value.

    Examples
    --------
    >>> true, predicted = [["a", "b"], ["c"]], [["a"], ["c", "b"]]
    >>> ranked = RankedSets.compare(true, [["a", "z"], ["c", "b"]])
    >>> [round(bound, 2) for bound in label_set_intervals(true, predicted, ranked)["recall"]]
    [0.23, 1.0]
    """
    sets = compare_sets(y_true, y_pred)
    n_true, n_predicted = sets.true.sizes, sets.predicted.sizes
    ones, labelled = np.ones(len(sets.true)), (ranked.n_true > 0).astype(np.float64)
    pairs = {
        "mean_f1": (sets.document_f1, ones),
        "micro_f1": (2.0 * sets.n_common, n_true + n_predicted),
        "precision": (sets.n_common, n_predicted),
        "recall": (sets.n_common, n_true),
        "r_precision": (document_r_precision(ranked), labelled),
    }
    for k in (1, 3, 5):
        if k <= ranked.ranking.shape[1]:
            pairs |= {f"P@{k}": (ranked.at(k) / k, ones)}
            pairs |= {f"nDCG@{k}": (document_ndcg(ranked, k), labelled)}
    found = {name: ratio_interval(*pair) for name, pair in pairs.items() if pair[1].sum() > 0}
    found["exact"] = wilson_interval(float(np.mean(sets.is_exact)), len(sets.true))
    return found | ({"macro_f1": mean_interval(sets.class_f1)} if len(sets.class_f1) else {})


def document_f1(y_true: Any, y_pred: Any) -> Floats:
    """Return the F1 of each document's predicted set; 1 where both sets are empty.

    Examples
    --------
    >>> document_f1([["a", "b"], []], [["a"], []]).round(2).tolist()
    [0.67, 1.0]
    """
    return compare_sets(y_true, y_pred).document_f1


@dataclass(frozen=True, eq=False)
class SetComparison:
    """True and predicted label sets with the same classes.

    `is_found` says which pairs of `true` are predicted, `is_correct` which of `predicted` are true.
    """

    true: LabelSets
    predicted: LabelSets
    is_found: NDArray[np.bool_]
    is_correct: NDArray[np.bool_]

    @cached_property
    def n_common(self) -> Integers:
        """How many labels of each document are both."""
        return np.bincount(self.true.document_ids[self.is_found], minlength=len(self.true))

    @cached_property
    def n_correct(self) -> Integers:
        """How many documents of each class are found."""
        return np.bincount(
            self.true.class_ids[self.is_found], minlength=len(self.true.classes)
        ).astype(np.int64)

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """Whether each document's predicted set is the true one."""
        n_both = self.n_common
        return np.asarray((n_both == self.true.sizes) & (n_both == self.predicted.sizes))

    @property
    def document_f1(self) -> Floats:
        """F1 of each document; 1 without labels of either kind."""
        both = self.true.sizes + self.predicted.sizes
        return np.where(both > 0, 2.0 * self.n_common / np.maximum(both, 1), 1.0)

    @property
    def class_f1(self) -> Floats:
        """F1 of each class that is true or predicted somewhere."""
        occurs = self.true.class_sizes + self.predicted.class_sizes
        return 2.0 * self.n_correct[occurs > 0] / occurs[occurs > 0]


def compare_sets(y_true: Any, y_pred: Any) -> SetComparison:
    """Find the labels that true and predicted sets have in common."""
    true, predicted = _share_classes(as_label_sets(y_true), as_label_sets(y_pred))
    if len(true) != len(predicted) or not len(true):
        raise ValueError(
            "y_true and y_pred must have a label set for each document, at least one; got "
            f"{len(true)} and {len(predicted)}."
        )
    n_classes = np.int64(len(true.classes))
    keys = [sets.document_ids * n_classes + sets.class_ids for sets in (true, predicted)]
    return SetComparison(
        true,
        predicted,
        np.isin(keys[0], keys[1], assume_unique=True),
        np.isin(keys[1], keys[0], assume_unique=True),
    )


@dataclass(frozen=True)
class LabelBand:
    """Results for the classes whose number of training documents lies in one band.

    `n_classes` counts those among the true labels and `n_labels` how often they are one. `recall`
    is the share of these (document, label) pairs that are among the first k classes, `precision`
    the share that is true of the band's classes ranked there, `macro_f1` the mean of the per-class
    F1 of the first k. NaN where there is nothing to divide.
    """

    name: str
    n_classes: int
    n_labels: int
    recall: float
    precision: float
    macro_f1: float


def label_frequency_report(
    ranked: RankedSets, class_sizes: Mapping[Any, int], k: int = 5
) -> list[LabelBand]:
    """Report recall, precision and macro F1 at k by how many training documents a class had.

    Parameters
    ----------
    ranked : RankedSets
        What `RankedSets.compare` returns.
    class_sizes : mapping
        Label to number of training documents; a label that is missing was never seen.
    k : int, default=5
        How many of the ranked classes count.

    Returns
    -------
    list of LabelBand
        For 0 (never seen), 1, 2-5, 6-20, 21-100 and more training documents.

    Notes
    -----
    A ranked class that is no document's label counts for precision only where `truth.classes` has
    it; give the classes of the model with the truth to have them all.

    Examples
    --------
    >>> ranked = RankedSets.compare([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]])
    >>> bands = label_frequency_report(ranked, {"a": 1, "b": 3, "z": 9}, k=2)
    >>> [(band.name, band.recall) for band in bands if band.n_labels]
    [('never seen', 1.0), ('1', 0.0), ('2-5', 1.0)]
    """
    ranked.at(k)  # checks k
    truth = ranked.truth
    sizes = np.array([class_sizes.get(label, 0) for label in truth.classes.tolist()], np.int64)
    ids = ranked.ranking[:, :k]
    n_classes = len(truth.classes)
    predicted = np.bincount(ids[ids > NO_CLASS], minlength=n_classes)
    correct = np.bincount(ids[ranked.hits[:, :k]], minlength=n_classes)
    bands = ((NEVER_SEEN, 0, 0), *FREQUENCY_BANDS)
    return report_bands(bands, sizes, truth.class_sizes, predicted, correct)


def report_bands(
    bands: Iterable[tuple[str, int, int | None]],
    sizes: Integers,
    true: Integers,
    predicted: Integers,
    correct: Integers,
) -> list[LabelBand]:
    """Sum up classes by their size in training; how often each is true, predicted and both."""
    found = []
    for name, smallest, largest in bands:
        inside = (sizes >= smallest) & (sizes <= (np.inf if largest is None else largest))
        counts = [int(values[inside].sum()) for values in (true, predicted, correct)]
        n_labels, n_predicted, n_correct = counts
        occur = inside & (true > 0)
        found.append(
            LabelBand(
                name=name,
                n_classes=int(np.count_nonzero(occur)),
                n_labels=n_labels,
                recall=n_correct / n_labels if n_labels else float("nan"),
                precision=n_correct / n_predicted if n_predicted else float("nan"),
                macro_f1=_mean(2.0 * correct[occur] / (true[occur] + predicted[occur])),
            )
        )
    return found


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """Precision, recall and coverage of the labels at or above each threshold, highest first."""

    thresholds: Floats  # (n_thresholds,): probabilities that occur, falling
    precision: Floats  # (n_thresholds,): share of the kept labels that are true
    recall: Floats  # (n_thresholds,): share of all true labels that are kept
    coverage: Floats  # (n_thresholds,): share of the documents that keep a label


def label_curve(probabilities: ArrayLike, correct: ArrayLike, n_true: int) -> LabelCurve:
    """Return precision against recall and coverage for every threshold on the probability.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, k)
        Of the ranked labels; 0 where there was no candidate, which is never kept.
    correct : array-like of shape (n_documents, k), bool
        Whether each label is true.
    n_true : int
        True labels of all documents, ranked or not.

    Examples
    --------
    >>> curve = label_curve([[0.9, 0.5], [0.4, 0.0]], [[True, False], [True, False]], n_true=4)
    >>> curve.precision.round(2).tolist(), curve.recall.tolist(), curve.coverage.tolist()
    ([1.0, 0.5, 0.67], [0.25, 0.25, 0.5], [0.5, 0.5, 1.0])
    """
    values, hits = np.asarray(probabilities, np.float64), np.asarray(correct, np.bool_)
    if values.ndim != 2 or values.shape != hits.shape or not len(values):
        raise ValueError(
            "probabilities and correct must have the same two dimensions and at least one "
            f"document; got shapes {values.shape} and {hits.shape}."
        )
    best = np.sort(values.max(axis=1, initial=0.0))
    kept = values > 0
    flat, correct_labels = values[kept], hits[kept]
    order = np.argsort(-flat, kind="stable")
    # Labels with the same probability are kept or left out together.
    last = np.flatnonzero(np.diff(flat[order], append=-1.0) != 0)
    thresholds, n_right = flat[order][last], np.cumsum(correct_labels[order])[last]
    n_documents = len(best) - np.searchsorted(best, thresholds, side="left")
    return LabelCurve(
        thresholds, n_right / (last + 1), n_right / max(n_true, 1), n_documents / len(best)
    )


def _mean(values: Floats) -> float:
    """Return the mean, NaN of nothing."""
    return float(np.mean(values)) if len(values) else float("nan")


def _share_classes(one: LabelSets, other: LabelSets) -> tuple[LabelSets, LabelSets]:
    """Return both with ids of the classes that either has."""
    if not len(one.classes) or not len(other.classes):
        classes = one.classes if len(one.classes) else other.classes
        return (
            LabelSets(one.indptr, one.class_ids, classes, one.form),
            LabelSets(other.indptr, other.class_ids, classes, other.form),
        )
    check_same_kind(other.classes, one.classes)
    classes, ids = np.unique(np.concatenate([one.classes, other.classes]), return_inverse=True)
    first, second = ids[: len(one.classes)], ids[len(one.classes) :]
    return (
        LabelSets(one.indptr, first[one.class_ids], classes, one.form),
        LabelSets(other.indptr, second[other.class_ids], classes, other.form),
    )
