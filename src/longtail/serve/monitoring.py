"""Monitoring of predictions over time: how certain they are, and how many words are unknown.

In: predictions as they are made. Out: counters for Prometheus, and the hours of the last week for
the page, kept in memory.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longtail.serve.counters import Metrics
from longtail.serve.highlights import count_words
from longtail.serve.predictions import Prediction
from longtail.serve.served_model import Snapshot

N_HOURS = 7 * 24
# Looking for unknown words takes as long as a prediction, so it is done for one document in these.
WORDS_EVERY = 16


@dataclass
class Hour:
    """Counts of the predictions from `start`, in seconds since 1970, until the next hour.

    `n_abstained` counts documents without a label at 90 % precision, whatever callers asked for;
    `n_words` those of a sample of the documents.
    """

    start: int
    n_documents: int = 0
    n_abstained: int = 0
    n_without_words: int = 0
    sum_probability: float = 0.0
    n_words: int = 0
    n_unknown_words: int = 0

    def describe(self) -> dict[str, Any]:
        """Return shares and means; None where nothing was counted."""

        def share(amount: float, whole: int) -> float | None:
            return amount / whole if whole else None

        return {
            "start": self.start,
            "n_documents": self.n_documents,
            "abstained": share(self.n_abstained, self.n_documents),
            "mean_probability": share(
                self.sum_probability, self.n_documents - self.n_without_words
            ),
            "without_known_word": share(self.n_without_words, self.n_documents),
            "unknown_words": share(self.n_unknown_words, self.n_words),
        }


class Monitor:
    """Counts predictions."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.time) -> None:
        self._metrics, self._clock = metrics, clock
        self._hours: deque[Hour] = deque(maxlen=N_HOURS)
        self._n_seen = 0
        self._lock = threading.Lock()

    def observe(self, snapshot: Snapshot, texts: list[str], predictions: list[Prediction]) -> None:
        """Count predictions of some texts."""
        if not snapshot.has_probabilities:
            return
        with self._lock:
            sampled = texts[-self._n_seen % WORDS_EVERY :: WORDS_EVERY]
            self._n_seen += len(texts)
        n_words, n_unknown_words = count_words(snapshot.model.vocabulary_, sampled)
        best = [prediction.values[0] for prediction in predictions if prediction.values]
        threshold = snapshot.threshold
        n_sure = sum(bool(prediction.sure_labels(threshold)) for prediction in predictions)
        counted = {
            "n_documents": len(texts),
            "n_abstained": len(texts) - n_sure,
            "n_without_words": len(texts) - len(best),
            "n_words": n_words,
            "n_unknown_words": n_unknown_words,
        }
        start = int(self._clock()) // 3600 * 3600
        with self._lock:
            if not self._hours or self._hours[-1].start < start:
                self._hours.append(Hour(start))
            hour = self._hours[-1]
            hour.sum_probability += sum(best)
            for name, n in counted.items():
                setattr(hour, name, getattr(hour, name) + n)
                self._metrics.predicted[name].inc(n)
        for probability in best:
            self._metrics.probabilities.observe(probability)

    def describe(self) -> list[dict[str, Any]]:
        """Return the hours in which something was predicted, oldest first."""
        with self._lock:
            return [hour.describe() for hour in self._hours]
