"""Is the default the best there is? It, its simpler selves and other settings on one data set.

In: a data set. Out: a row for each setting and split. Settings are compared on documents held out
from training; the one that does best there, and every simpler self, is then fitted on all training
documents and compared with the default on the test documents. Where the default falls behind, a
user would lose that much without noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from longtail import metrics
from longtail.datasets import CountDataset
from longtail.training.config import FitConfig
from longtail_bench.ablation import ConfiguredClassifier
from longtail_bench.measure import Progress
from longtail_bench.rows import HELD_OUT, TEST
from longtail_bench.splits import hold_out
from longtail_bench.stages import time_call

DEFAULT = "default"
SIMPLER: dict[str, dict[str, Any]] = {
    "default feature weights": {"features": "default"},
    "no term weights": {"term_weights": False},
    "no residuals": {"residuals": False},
    "no separators": {"separators": False},
    "nearest centroid": {
        "features": "cosine",
        "term_weights": False,
        "residuals": False,
        "separators": False,
    },
    "mixture without class size": {"by_size": False},
    "self-check off": {"self_check": False},
}
OTHERS: dict[str, dict[str, Any]] = {
    "50 candidates": {"candidates": 50},
    "C = 0.3": {"C": 0.3},
    "C = 3": {"C": 3.0},
}


@dataclass(frozen=True)
class HonestyRow:
    """Figures of one setting on one split; shares are from 0 to 1."""

    data: str
    setting: str
    split: str  # what was predicted
    seed: int  # decides every random draw
    accuracy: float
    macro_f1: float  # mean of the per-class F1
    candidate_recall: float  # share of documents whose class is among the candidates
    fit_cpu_seconds: float  # CPU time over all threads
    # Accuracy and macro F1 by number of training documents of a class.
    bands: list[metrics.FrequencyBand]

    @property
    def figure(self) -> float:
        """Figure by which settings are compared: the mean of accuracy and macro F1."""
        return (self.accuracy + self.macro_f1) / 2


@dataclass(frozen=True)
class Distance:
    """How far the default is behind the best other setting; negative where it is ahead.

    `best` is the best on held-out documents, or, of the simpler selves, on test documents.
    """

    data: str
    seed: int
    best: str
    accuracy: float
    macro_f1: float


def list_settings() -> dict[str, dict[str, Any]]:
    """Return every setting by name, with the fields of `FitConfig` that it changes.

    Examples
    --------
    >>> list_settings()["no residuals"]
    {'residuals': False}
    """
    known = {field.name for field in fields(FitConfig)}
    settings = {DEFAULT: {}, **SIMPLER, **OTHERS}
    return {name: changed for name, changed in settings.items() if set(changed) <= known}


def run_honesty(
    name: str,
    data: CountDataset,
    seeds: Sequence[int] = (0,),
    n_jobs: int | None = None,
    progress: Progress = lambda *_: None,
    on_row: Callable[[HonestyRow], None] = lambda _: None,
) -> list[HonestyRow]:
    """Measure every setting on held-out documents, then the ones that matter on test documents.

    Parameters
    ----------
    name : str
        Of the data set.
    data : CountDataset
        Counts and class ids.
    seeds : sequence of int, default=(0,)
        Each gives rows of its own.
    n_jobs : int or None
        Number of threads.
    progress : callable, optional
        Called with what is being fitted, how many fits are done, and how many there are.
    on_row : callable, optional
        Called with each row.

    Returns
    -------
    list of HonestyRow
        Of each seed: held-out rows first.
    """
    settings, held = list_settings(), hold_out(data)
    n_fits = len(seeds) * (2 * len(settings) - len(OTHERS) + 1)
    rows: list[HonestyRow] = []

    def measure(setting: str, split: str, seed: int) -> HonestyRow:
        progress(f"{name}, {split}: {setting}, seed {seed}", len(rows), n_fits)
        classifier = ConfiguredClassifier(settings[setting], seed, n_jobs)
        split_data = held if split == HELD_OUT else data
        row = _measure(name, setting, split, seed, classifier, split_data)
        rows.append(row)
        on_row(row)
        return row

    for seed in seeds:
        tried = [measure(setting, HELD_OUT, seed) for setting in settings]
        best = max(tried, key=lambda row: row.figure).setting  # the first of equals
        tested = [setting for setting in settings if setting not in OTHERS or setting == best]
        for setting in tested:
            measure(setting, TEST, seed)
    return rows


def _measure(
    name: str,
    setting: str,
    split: str,
    seed: int,
    classifier: ConfiguredClassifier,
    data: CountDataset,
) -> HonestyRow:
    """Fit and predict one setting."""
    _, cost = time_call(lambda: classifier.fit(data.X_train, data.y_train))
    top = classifier.predict_topk(
        data.X_test, min(classifier.config.candidates, data.n_train_classes)
    )
    ranking = np.where(np.isneginf(top.scores), -1, top.classes)
    sizes: dict[object, int] = dict(enumerate(np.bincount(data.y_train).tolist()))
    return HonestyRow(
        data=name,
        setting=setting,
        split=split,
        seed=seed,
        accuracy=metrics.accuracy(data.y_test, ranking[:, 0]),
        macro_f1=metrics.macro_f1(data.y_test, ranking[:, 0]),
        candidate_recall=metrics.top_k_accuracy(data.y_test, ranking),
        fit_cpu_seconds=cost.cpu,
        bands=metrics.frequency_report(data.y_test, ranking[:, 0], sizes),
    )


def find_distances(rows: Sequence[HonestyRow]) -> Iterator[tuple[str, Distance]]:
    """Yield how far the default is behind: (what it is compared with, distance) for each seed.

    The first is "best on held-out", the setting that did best there, compared on the test
    documents; the second "best simpler self", the best of these on the test documents.
    """
    for data, seed in dict.fromkeys((row.data, row.seed) for row in rows):
        mine = [row for row in rows if (row.data, row.seed) == (data, seed)]
        held = [row for row in mine if row.split == HELD_OUT]
        tested = {row.setting: row for row in mine if row.split == TEST}
        best = tested[max(held, key=lambda row: row.figure).setting]
        simpler = max(
            (row for row in tested.values() if row.setting in SIMPLER), key=lambda row: row.figure
        )
        for title, other in (("best on held-out", best), ("best simpler self", simpler)):
            default = tested[DEFAULT]
            yield (
                title,
                Distance(
                    data,
                    seed,
                    other.setting,
                    other.accuracy - default.accuracy,
                    other.macro_f1 - default.macro_f1,
                ),
            )
