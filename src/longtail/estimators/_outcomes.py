"""A model in use: outcomes of predictions, and how far it has moved from what was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from longtail._labels import LabelSets
from longtail._validation import check_same_kind, look_up
from longtail.estimators._label_sets import LabelSetPrediction
from longtail.results import Health
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.config import FitConfig
from longtail.training.health import measure_health
from longtail.training.outcomes import recalibrate


class OutcomeCalibration(LabelSetPrediction):
    """Probabilities that stay honest while classes are added, and a report."""

    _rank: Callable[..., tuple[Integers, Floats]]
    _config: Callable[[], FitConfig]

    def health(self) -> Health:
        """Return how far the model has moved from what was learned, and what to do about it.

        Returns
        -------
        Health
            Prints as a table.
        """
        return measure_health(self._fitted(), self._config())

    def recalibrate(self, X: Any, y: Any) -> Self:
        """Correct the probabilities by documents that the model has not been taught yet.

        Call it before `partial_fit` with the same documents: what the model says of them then is an
        unbiased test. Their labels may be of classes that the model does not have; such a document
        shows how often, and where, the model should doubt. The last 1,000 outcomes count; those of
        the held-out documents of `fit` make room for them. Only probabilities and thresholds
        change: neither sums nor ranking.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        y : array-like of shape (n_documents,)
            Their labels, known or not.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If documents have several labels.
        """
        self._fitted()
        X, labels = self._check_input(X, y, reset=False)
        counts = CountMatrix.from_matrix(X)
        with self._lock:
            state = self._fitted()
            if isinstance(labels, LabelSets) or state.several:
                raise ValueError("recalibrate is for models with one label for each document.")
            check_same_kind(labels, state.all_classes)
            class_ids, scores = self._rank(state, counts, len(state.all_classes))
            truth = look_up(state.all_classes, labels)[:, None]
            correct = (class_ids == truth) & (truth >= 0)
            n_unknown = int(np.count_nonzero(truth < 0))
            lengths = np.diff(counts.indptr)
            calibrator = recalibrate(state.calibrator, scores, correct, n_unknown, lengths)
            self._state = replace(state, calibrator=calibrator)
        return self
