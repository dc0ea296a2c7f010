"""Systems that cannot learn one document more: fitted again on everything when a period ends."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from longtail_bench.processes import Limits
from longtail_bench.rows import Row
from longtail_bench.runner import FittedWorker, Runner
from longtail_bench.splits import write_parts
from longtail_bench.stream import Labels, Predicted
from longtail_bench.systems import SYSTEMS


class RefittedBaseline:
    """A system of `bench run` in a process of its own, one thread; words and bigrams.

    Parameters
    ----------
    system : str
        A key of `SYSTEMS`.
    """

    def __init__(self, system: str) -> None:
        self._row = Row(system, "stream", 0, settings=dict(SYSTEMS[system].settings))
        self._folder = tempfile.TemporaryDirectory(prefix="longtail-stream-")
        self._texts: list[str] = []
        self._labels: list[Any] = []
        self._worker: FittedWorker | None = None
        self._worker_seconds = 0.0

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of this process, and of fitting and predicting in the other."""
        return time.process_time() + self._worker_seconds

    def start(self, texts: list[str], labels: Labels) -> None:
        """Fit on the documents before the first prediction."""
        self.learn(texts, labels, new_period=True)

    def predict(self, texts: list[str]) -> Predicted:
        """Return the first class of each text; it has no probability."""
        assert self._worker is not None
        path = Path(self._folder.name) / "batch.npz"
        write_parts(path, {"test": self._vectorizer.transform(texts)}, {})
        ranking, seconds = self._worker.predict(path)
        self._worker_seconds += seconds
        # Where nothing was found it is -1, the last entry.
        return np.array([*self._classes, None], object)[ranking[:, 0]], None

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Keep the documents; fit on all of them when a period ends."""
        self._texts += texts
        self._labels += labels.tolist()
        if new_period:
            self._fit()

    def close(self) -> None:
        """End the other process and remove its files."""
        if self._worker is not None:
            self._worker.end()
        self._folder.cleanup()

    def _fit(self) -> None:
        if self._worker is not None:
            self._worker.end()
        self._vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2, dtype=np.float64)
        X = self._vectorizer.fit_transform(self._texts)
        self._classes, class_ids = np.unique(np.array(self._labels), return_inverse=True)
        folder = Path(self._folder.name)
        write_parts(folder / "all.npz", {"train": X}, {"train_y": class_ids})
        runner = Runner(1, Limits(), None, folder)
        self._worker = FittedWorker(
            runner, self._row, folder / "all.npz", folder / "fitted.json", top=1
        )
        self._worker_seconds += self._worker.fit_cpu_seconds
