"""One fit and one prediction of a classifier on a data set, with what they cost.

In: an estimator and a CountDataset. Out: a Measurement. Wall time and CPU time are both kept:
on a shared machine only the second compares.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail import metrics
from longtail.datasets import CountDataset
from longtail_bench.label_set_data import LabelSetDataset

BLOCK = 2000  # documents predicted between two steps of progress
TOP = 20  # classes ranked for each document

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Measurement:
    """Figures and cost of one system. Shares are from 0 to 1, times in seconds.

    `macro_f1` is the mean of the per-class F1, `macro_f1_of_means` the paper's harmonic mean of
    macro precision and macro recall. `peak_megabytes` is the process's largest memory so far, data
    included.
    """

    system: str
    accuracy: float
    macro_f1: float
    macro_f1_of_means: float
    top_5: float
    top_20: float
    fit_seconds: float
    fit_cpu_seconds: float
    predict_seconds: float
    predict_cpu_seconds: float
    n_test: int
    peak_megabytes: float
    bands: list[metrics.FrequencyBand]


def measure(
    system: str, classifier: Any, data: CountDataset, progress: Progress = lambda *_: None
) -> Measurement:
    """Fit on the training part, predict the test part, and say how well and at what cost.

    Parameters
    ----------
    system : str
        Name for the table.
    classifier : estimator
        Unfitted, with `fit` and `predict_topk`.
    data : CountDataset
        Counts and class ids.
    progress : callable, optional
        Called with what is being done, how many documents are done, and how many there are.

    Returns
    -------
    Measurement
    """
    n_train, n_test = data.X_train.shape[0], data.X_test.shape[0]
    progress(f"{system}: fitting", 0, n_train)
    wall, processor = time.perf_counter(), time.process_time()
    classifier.fit(data.X_train, data.y_train)
    fit_seconds, fit_cpu = time.perf_counter() - wall, time.process_time() - processor
    progress(f"{system}: predicting", 0, n_test)
    wall, processor = time.perf_counter(), time.process_time()
    blocks = []
    for start in range(0, n_test, BLOCK):
        blocks.append(classifier.predict_topk(data.X_test[start : start + BLOCK], TOP))
        progress(f"{system}: predicting", min(start + BLOCK, n_test), n_test)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - processor
    ranking = np.concatenate([block.classes for block in blocks])
    # A class id that no label has, so that the padding of a short ranking is never right.
    ranking[np.isneginf(np.concatenate([block.scores for block in blocks]))] = -1
    return Measurement(
        system=system,
        accuracy=metrics.accuracy(data.y_test, ranking[:, 0]),
        macro_f1=metrics.macro_f1(data.y_test, ranking[:, 0]),
        macro_f1_of_means=metrics.macro_f1_of_means(data.y_test, ranking[:, 0]),
        top_5=metrics.top_k_accuracy(data.y_test, ranking, k=5),
        top_20=metrics.top_k_accuracy(data.y_test, ranking),
        fit_seconds=fit_seconds,
        fit_cpu_seconds=fit_cpu,
        predict_seconds=seconds,
        predict_cpu_seconds=cpu_seconds,
        n_test=n_test,
        peak_megabytes=peak_megabytes(),
        bands=metrics.frequency_report(
            data.y_test, ranking[:, 0], dict(enumerate(np.bincount(data.y_train).tolist()))
        ),
    )


@dataclass(frozen=True)
class KeptPredictions:
    """The part of the test documents that `threshold_for(asked, each=each)` keeps.

    `promised` is the precision to expect and `precision` the one reached, NaN where nothing is
    kept; `coverage` is the share of documents, or labels per document; `lowest` is the lowest
    probability that was kept.
    """

    asked: float
    each: bool
    threshold: float
    promised: float
    precision: float
    coverage: float
    n_kept: int
    lowest: float


@dataclass(frozen=True)
class Reliability:
    """Calibration of a classifier on the test documents of known classes.

    `accuracy` and the expected `calibration_error` are those of the first class, which for label
    sets is correct where it is one of the labels.
    """

    accuracy: float
    calibration_error: float
    kept: list[KeptPredictions]


def measure_reliability(
    classifier: Any,
    data: CountDataset | LabelSetDataset,
    precisions: Sequence[float] = (0.8, 0.9, 0.95, 0.98, 0.99),
) -> Reliability:
    """Fit on the training part and see how far its probabilities hold on the test part."""
    if isinstance(data, LabelSetDataset):
        classifier.fit(data.X_train, data.train.to_lists())
        top = classifier.predict_proba_topk(data.X_test, min(TOP, data.n_train_classes))
        documents = np.repeat(np.arange(len(data.test)), np.diff(data.test.indptr))
        true = documents * len(data.test.classes) + data.test.class_ids
        rows = np.arange(len(data.test))[:, None]
        correct = np.isin(rows * len(data.test.classes) + top.classes, true) & top.valid
    else:
        classifier.fit(data.X_train, data.y_train)
        known = data.y_test < data.n_train_classes
        top = classifier.predict_proba_topk(data.X_test[known], 1)
        correct = (top.classes == data.y_test[known][:, None]) & top.valid
    kept = []
    for asked in precisions:
        for each in (False, True):
            threshold = classifier.threshold_for(asked, each=each)
            kept_answers = threshold.keeps(top)
            n_kept = int(np.count_nonzero(kept_answers))
            kept.append(
                KeptPredictions(
                    asked=asked,
                    each=each,
                    threshold=threshold.threshold,
                    promised=threshold.expected_precision,
                    precision=float(correct[kept_answers].mean()) if n_kept else float("nan"),
                    coverage=n_kept / len(kept_answers),
                    n_kept=n_kept,
                    lowest=float(top.scores[kept_answers].min()) if n_kept else float("nan"),
                )
            )
    return Reliability(
        accuracy=float(correct[:, 0].mean()),
        calibration_error=metrics.expected_calibration_error(top.scores[:, 0], correct[:, 0]),
        kept=kept,
    )


def peak_megabytes() -> float:
    """Return the largest memory this process has had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
