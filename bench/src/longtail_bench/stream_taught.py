"""`TextClassifier` on a stream: frozen, taught, refined or fitted again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail import LongTailClassifier, Teacher, TextClassifier
from longtail_bench.stream import Labels, Predicted

REFINE_EVERY = 250  # documents taught before what all classes share is brought up to date
NEW_CLASSES_WINDOW = 1000  # last documents in which classes that were new are counted


class TaughtModel:
    """`TextClassifier`: fitted at the start, then taught, fitted again, both or neither.

    Parameters
    ----------
    teach : bool
        Whether each batch is taught with `partial_fit`.
    refine_every : int or None
        Call `refine()`, without documents, after this many; each batch then also corrects the
        probabilities (`recalibrate`) before it is taught.
    memory : int
        Documents of each class that the model keeps; `refine()` then learns from them.
    given : int
        Last documents that `refine` is given instead.
    refit_every : int or None
        Fit again on everything after this many documents.
    refit_by_period : bool
        Fit again on everything when a period ends.
    batch : int
        Documents that will be predicted at once. A model that is refined is told after a fit how
        many of the last documents were of a class that was new in such a batch.
    """

    def __init__(
        self,
        *,
        teach: bool,
        refine_every: int | None = None,
        memory: int = 0,
        given: int = 0,
        refit_every: int | None = None,
        refit_by_period: bool = False,
        batch: int = REFINE_EVERY,
    ) -> None:
        self.teach = teach
        self.refine_every = refine_every
        self.memory = memory
        self.given = given
        self.refit_every = refit_every
        self.refit_by_period = refit_by_period
        self.batch = batch
        self._texts: list[str] = []
        self._labels: list[Any] = []
        self._n_since = self._n_taught = 0

    def start(self, texts: list[str], labels: Labels) -> None:
        """Fit on the documents before the first prediction."""
        self._texts, self._labels = list(texts), labels.tolist()
        self._fit()

    def predict(self, texts: list[str]) -> Predicted:
        """Return the most probable class and its probability."""
        return predict_first(self._model, texts)

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Teach the batch, or fit again on everything."""
        self._texts += texts
        self._labels += labels.tolist()
        self._n_since += len(texts)
        due = self.refit_every is not None and self._n_since >= self.refit_every
        if due or (self.refit_by_period and new_period):
            self._fit()
        elif self.teach:
            if self.refine_every is not None:
                self._model.recalibrate(texts, labels)
            self._model.partial_fit(texts, labels)
            self._n_taught += len(texts)
            if self.refine_every is not None and self._n_taught >= self.refine_every:
                self._refine()
                self._n_taught = 0

    def _refine(self) -> None:
        if self.given:
            last = slice(-self.given, None)
            self._model.refine(self._texts[last], np.array(self._labels[last]))
        else:
            self._model.refine()

    def _fit(self) -> None:
        self._n_since = self._n_taught = 0
        counts = LongTailClassifier(memory=self.memory, random_state=0, n_jobs=1)
        model = TextClassifier(counts, random_state=0, n_jobs=1)
        self._model = model.fit(self._texts, np.array(self._labels))
        share = share_of_new_classes(self._labels, self.batch)
        if self.refine_every is not None and np.isfinite(model.calibration_error_):
            model.expect_unknown(min(share, 0.99))


class TaughtTeacher:
    """`Teacher` with defaults: a saved model, taught; it refines itself when that is due.

    Each batch waits for a refinement under way, so that the next one meets the same model however
    long it takes.

    Parameters
    ----------
    memory : int, "auto" or None
        As for `LongTailClassifier`.
    """

    def __init__(self, memory: Any = None) -> None:
        self.memory = memory

    def start(self, texts: list[str], labels: Labels) -> None:
        """Fit and save a model on the documents before the first prediction."""
        self._folder = tempfile.TemporaryDirectory(prefix="longtail-stream-")
        path = Path(self._folder.name) / "model.longtail"
        counts = LongTailClassifier(memory=self.memory, random_state=0, n_jobs=1)
        TextClassifier(counts, random_state=0, n_jobs=1).fit(texts, labels).save(path)
        self._teacher = Teacher(path)

    def predict(self, texts: list[str]) -> Predicted:
        """Return the most probable class and its probability."""
        return predict_first(self._teacher.model, texts)

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Teach the batch."""
        self._teacher.teach(texts, labels)
        self._teacher.settle()

    def close(self) -> None:
        """Remove the files."""
        self._teacher.close()
        self._folder.cleanup()


def predict_first(model: Any, texts: list[str]) -> Predicted:
    """Return the most probable class of each text and its probability."""
    found = model.predict_proba_topk(texts, k=1)
    probabilities = np.where(found.valid, found.scores, 0.0)[:, 0]
    return found.classes[:, 0], np.clip(probabilities, 0.0, 1.0)


def share_of_new_classes(
    labels: Sequence[Any], batch: int, n_last: int = NEW_CLASSES_WINDOW
) -> float:
    """Return how many of the last documents were of a class that was new in their batch."""
    first: dict[Any, int] = {}
    for i, label in enumerate(labels):
        first.setdefault(label, i)
    n_documents = len(labels)
    rows = range(max(n_documents - n_last, 0), n_documents)
    # Batches are counted from the end, where the next one begins.
    begins = [n_documents - batch * (1 + (n_documents - 1 - i) // batch) for i in rows]
    new = [first[labels[i]] >= begin for i, begin in zip(rows, begins, strict=True)]
    return sum(new) / len(new)
