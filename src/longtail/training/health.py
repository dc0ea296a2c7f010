"""How far a taught model has moved from what was learned, and what to do about it.

In: a `LongTailState`. Out: a `Health`. Nothing is computed that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from longtail.model.state import LongTailState
from longtail.results import Health
from longtail.training.calibration import estimate_calibration_error
from longtail.training.changing import merge_learned
from longtail.training.config import FitConfig
from longtail.training.relearning import needs_learning, needs_residuals
from longtail.training.thresholds import find_threshold

PRECISION = 0.9  # of the threshold that decides what is an abstention
# From here on advice is given. On cve-stream `refine` after every 250 documents, 1 to 5 in a
# hundred of the model, gains one point in a hundred over never.
SHARE_UNREFINED = 0.02
SHARE_STALE = 0.2
LARGEST_ERROR = 0.05
MIN_OUTCOMES = 200  # an error of 0.05 is hardly told from chance by fewer


class OutcomeFigures(NamedTuple):
    """How the last outcomes turned out; NaN where there are none.

    Attributes
    ----------
    n_outcomes : int
        Documents: held out by `fit`, told to `recalibrate`, or taught since; the last ones count.
    accuracy, calibration_error, abstention : float
        See `Health`.
    """

    n_outcomes: int
    accuracy: float
    calibration_error: float
    abstention: float


def measure_outcomes(state: LongTailState) -> OutcomeFigures:
    """Return how the last outcomes turned out."""
    calibrator = state.calibrator_in_use
    correct = calibrator.held_out_correct
    if not len(correct):
        return OutcomeFigures(0, np.nan, estimate_calibration_error(calibrator), np.nan)
    abstention = np.nan
    if not state.several:
        abstention = 1.0 - min(find_threshold(calibrator, PRECISION).coverage, 1.0)
    error = estimate_calibration_error(calibrator)
    return OutcomeFigures(len(correct), float(correct.mean()), error, abstention)


def measure_health(state: LongTailState, config: FitConfig) -> Health:
    """Return the health of a model."""
    state = merge_learned(state)
    n_labels = round(state.statistics.n_documents)
    memory = state.memory
    health = Health(
        n_documents=state.n_fitted_documents if state.label_form.is_multilabel else n_labels,
        n_labels=n_labels,
        n_classes=len(state.classes),
        n_unrefined=abs(n_labels - round(state.corpus.n_documents)),
        n_stale=int(state.stale.sum()),
        unseen_terms=_share_unseen(state),
        **measure_outcomes(state)._asdict(),
        n_kept=0 if memory is None else memory.n_documents,
        will_learn=needs_learning(state, config) or needs_residuals(state, config),
    )
    found = list(_advise(health, state.several))
    return replace(
        health,
        advice=tuple(python for python, _ in found),
        commands=tuple(command for _, command in found),
    )


def _share_unseen(state: LongTailState) -> float:
    """Return the share of all occurrences that are of terms whose weight was never learned."""
    counts = state.statistics.counts
    total = float(counts.sum())
    # A term that entered after the weights were learned has the weight 1; so has, rarely, one that
    # was learned to have it.
    unseen = state.term_weights[state.statistics.indices] == 1.0
    return float(counts[unseen].sum()) / total if total else 0.0


def _advise(health: Health, several: bool) -> Iterator[tuple[str, str]]:
    """Give what to do, most urgent first: in Python, and on the command line."""
    if health.will_learn:
        why = "it learns from the documents kept"
        yield f"call refine(): {why}", f"run longtail refine: {why}"
    elif health.n_unrefined > SHARE_UNREFINED * health.n_labels:
        why = "what all classes share is behind the documents taught"
        yield f"call refine(): {why}", f"run longtail refine: {why}"
    if health.n_stale > SHARE_STALE * health.n_classes and not health.will_learn:
        why = "many classes compete on sums alone"
        yield (
            f"call refine(X, y) with documents, or fit again: {why}",
            f"fit again, with the documents taught: {why}",
        )
    if health.calibration_error > LARGEST_ERROR and health.n_outcomes >= MIN_OUTCOMES:
        yield (
            "call recalibrate(X, y) with documents before they are taught",
            "fit again, with the documents taught: probabilities are off by "
            f"{health.calibration_error:.0%} on average",
        )
    elif health.n_outcomes < MIN_OUTCOMES and not several:
        yield (
            "probabilities rest on few outcomes: call recalibrate(X, y) before teaching",
            "fit again once there are more documents: probabilities rest on few outcomes",
        )
