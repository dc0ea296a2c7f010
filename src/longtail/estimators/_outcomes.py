"""A model in use: outcomes of predictions, and how far it has moved from what was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from longtail._labels import LabelSets
from longtail._validation import check_same_kind, check_share, look_up
from longtail.estimators._base import has_known_term
from longtail.estimators._label_sets import LabelSetPrediction
from longtail.results import Health
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.config import FitConfig
from longtail.training.health import measure_health
from longtail.training.outcomes import expect_unknown, recalibrate


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

    def expect_unknown(self, share: float) -> Self:
        """Tell the model how many of the documents to come have a class that it does not have.

        Call it once, after `fit`: probabilities are those of such documents then, and what is left
        of a row is the probability of none of the candidates. How documents of unknown classes
        score is learned on held-out documents with their class taken away. `recalibrate` finds out
        by itself, but not before its first call.

        Parameters
        ----------
        share : float
            From 0 to below 1; such as that of the last documents of the fit that were the first of
            their class.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the share is out of range, the model was told before or has outcomes already,
            documents have several labels, or no documents of unknown classes could be learned from.
        """
        check_share("share", share)
        with self._lock:
            state = self._fitted()
            calibrator = state.calibrator
            if calibrator.n_outcomes or calibrator.unknown_share:
                raise ValueError(
                    "the model expects documents of unknown classes already: it was told, or "
                    "recalibrate showed them. Call expect_unknown once, after fit."
                )
            if state.several or not len(calibrator.unknown_log_odds):
                raise ValueError(
                    "this model does not know how documents of unknown classes score: it has label "
                    "sets, is not calibrated or has fewer than 3 candidates. Leave it out."
                )
            told = replace(expect_unknown(calibrator, share), unknown_share=float(share))
            self._state = replace(state, calibrator=told)
        return self

    def recalibrate(self, X: Any, y: Any) -> Self:
        """Correct the probabilities by documents that the model has not been taught yet.

        Call it before `partial_fit` with the same documents: what the model says of them then is an
        unbiased test. Their labels may be of classes that the model does not have; such a document
        shows how often, and where, the model should doubt. The last 1,000 outcomes count; those of
        the held-out documents of `fit` make room for them, and at the first call for as many of
        unknown classes. Only probabilities and thresholds
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
        with self._lock:
            state = self._fitted()
            if isinstance(labels, LabelSets) or state.several:
                raise ValueError("recalibrate is for models with one label for each document.")
            check_same_kind(labels, state.all_classes)
            counts = CountMatrix.from_matrix(X)
            predicted = np.flatnonzero(has_known_term(state, counts))  # the others get no answer
            if not len(predicted):
                return self
            counts, labels = counts.gather(predicted), labels[predicted]
            class_ids, scores = self._rank(state, counts, len(state.all_classes))
            truth = look_up(state.all_classes, labels)[:, None]
            correct = (class_ids == truth) & (truth >= 0)
            n_unknown = int(np.count_nonzero(truth < 0))
            lengths = np.diff(counts.indptr)
            calibrator = recalibrate(state.calibrator, scores, correct, n_unknown, lengths)
            self._state = replace(state, calibrator=calibrator)
        return self
