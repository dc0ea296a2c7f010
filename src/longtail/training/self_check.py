"""A fit that checks itself: what was learned against its simpler selves, on held-out documents.

In: the classes of held-out documents, and what each self finds and predicts. Out: a `SelfCheck`:
which self is kept, how far the search goes, how much the residuals count, and the figures, which
stay in the model. The rules:

- A simpler scorer replaces the learned one if it puts more of the documents into the true class, by
  more than one standard error of the difference, at no lower macro F1.
- The search follows the fewest postings per class that lose at most one in a hundred of the classes
  that the whole query finds.
- Of the scorer alone, the scorer with its residuals, and a learned mixture of both, the one with
  the highest sum of accuracy and macro F1 is kept, the simplest where they tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from longtail.metrics.classes import FREQUENCY_BANDS, macro_f1
from longtail.retrieval.pruning import WHOLE_QUERY
from longtail.scoring.linear import ClassResiduals
from longtail.sparse import Floats, Integers
from longtail.training.listwise import fit_feature_weights

SCORERS = ("nearest centroid", "default feature weights", "no term weights", "learned")
RESIDUALS = ("none", "as learned", "mixture")
FIGURES = ("accuracy", "macro_f1", "recall", *(name for name, _, _ in FREQUENCY_BANDS))
BUDGETS = (1, 4, 16)  # postings per class, beside the whole query
MAX_LOST_RECALL = 0.01  # as a share of what the whole query finds
MIN_MIXED = 200  # with fewer documents the mixture is not learned
MIXTURE_DECAY = 1e-4  # two numbers from thousands of documents hardly need a penalty


@dataclass(frozen=True, eq=False)
class Figures:
    """How one self fares on held-out documents: shares between 0 and 1, NaN where none count."""

    accuracy: float
    macro_f1: float
    recall: float
    by_band: tuple[float, ...]
    correct: NDArray[np.bool_]

    @property
    def row(self) -> tuple[float, ...]:
        """In the order of `FIGURES`; -1 stands for NaN, which no file holds."""
        figures = (self.accuracy, self.macro_f1, self.recall, *self.by_band)
        return tuple(-1.0 if np.isnan(figure) else figure for figure in figures)


@dataclass(frozen=True)
class Mixture:
    """How much the weights and the biases of the residuals count."""

    weights: float = 1.0
    biases: float = 1.0

    def mix(self, parts: Floats) -> Floats:
        """Return scores of pairs from score, residual and its bias, shape (..., 3)."""
        return np.asarray(parts @ np.array([1.0, self.weights, self.biases]))

    def scale(self, residuals: ClassResiduals) -> ClassResiduals:
        """Return residuals as they count."""
        if self.weights == self.biases == 0.0:
            return ClassResiduals.none(len(residuals.biases))
        return replace(
            residuals,
            weights=residuals.weights * np.float32(self.weights),
            biases=residuals.biases * self.biases,
        )


def _no_figures() -> Floats:
    return np.zeros((0, len(FIGURES)))


@dataclass(frozen=True, eq=False)
class SelfCheck:
    """What the held-out documents showed; without rows where none were held out.

    Attributes
    ----------
    scorer_figures : ndarray of shape (4, 8) or (0, 8), float64
        Of each of `SCORERS` alone, in the order of `FIGURES`; -1 where no document counts.
    recalls : ndarray of shape (4,) or (0,), float64
        Share of true classes among the candidates, by each of `BUDGETS` and by the whole query.
    residual_figures : ndarray of shape (3, 8) or (0, 8), float64
        Of each of `RESIDUALS`.
    mixture : ndarray of shape (2,), float64
        How much weights and biases of the residuals count.
    scorer, residuals : int
        Rows of `SCORERS` and `RESIDUALS` that were kept.
    postings_per_class : int
        How far the search goes.
    """

    scorer_figures: Floats = field(default_factory=_no_figures)
    recalls: Floats = field(default_factory=lambda: np.zeros(0))
    residual_figures: Floats = field(default_factory=_no_figures)
    mixture: Floats = field(default_factory=lambda: np.ones(2))
    scorer: int = len(SCORERS) - 1
    residuals: int = 1
    postings_per_class: int = WHOLE_QUERY

    @property
    def kept_mixture(self) -> Mixture:
        """How much the residuals count."""
        return Mixture(*self.mixture.tolist())

    def summary(self) -> dict[str, float | str]:
        """Return what was kept, and how that fares on held-out documents."""
        is_whole = self.postings_per_class >= WHOLE_QUERY
        kept: dict[str, float | str] = {
            "scorer": SCORERS[self.scorer],
            "residuals": RESIDUALS[self.residuals],
            "postings per class": "all" if is_whole else float(self.postings_per_class),
        }
        if self.residuals < len(self.residual_figures):
            figures = np.where(self.residual_figures >= 0, self.residual_figures, np.nan)
            kept |= dict(zip(FIGURES, figures[self.residuals].tolist(), strict=True))
        return kept


def measure_self(true_classes: Integers, candidates: Integers, class_sizes: Integers) -> Figures:
    """Count what is found among ranked candidates, and what is correct in their first column."""
    if not len(true_classes):
        nothing = (np.nan,) * len(FREQUENCY_BANDS)
        return Figures(np.nan, np.nan, np.nan, nothing, np.zeros(0, np.bool_))
    correct = candidates[:, 0] == true_classes
    found = (candidates == true_classes[:, None]).any(axis=1)
    sizes = class_sizes[true_classes]
    bands = [(sizes >= low) & (sizes <= (high or np.inf)) for _, low, high in FREQUENCY_BANDS]
    return Figures(
        accuracy=float(correct.mean()),
        macro_f1=macro_f1(true_classes, candidates[:, 0]),
        recall=float(found.mean()),
        by_band=tuple(float(correct[band].mean()) if band.any() else np.nan for band in bands),
        correct=correct,
    )


def choose_scorer(figures: Sequence[Figures]) -> int:
    """Return the row of the scorer to keep; the learned one is the last."""
    kept, learned, best_lead = len(figures) - 1, figures[-1], 0.0
    for row, simpler in enumerate(figures[:-1]):
        gains = simpler.correct.astype(np.float64) - learned.correct
        lead = float(gains.sum())
        is_ahead = lead > np.sqrt(np.sum(gains**2)) and simpler.macro_f1 >= learned.macro_f1
        if is_ahead and lead > best_lead:
            kept, best_lead = row, lead
    return kept


def choose_budget(recalls: Sequence[float], whole_query_recall: float) -> int:
    """Return the fewest postings per class that find enough."""
    for budget, recall in zip(BUDGETS, recalls, strict=True):
        if recall >= (1.0 - MAX_LOST_RECALL) * whole_query_recall:
            return budget
    return WHOLE_QUERY


def choose_residuals(figures: Sequence[Figures]) -> int:
    """Return the row of the mixture to keep; simpler ones come first."""
    return int(np.argmax([entry.accuracy + entry.macro_f1 for entry in figures]))


def fit_mixture(parts: Floats, correct: NDArray[np.bool_]) -> Mixture:
    """Learn the mixture under which the true class wins a softmax over the candidates.

    Parameters
    ----------
    parts : ndarray of shape (n_documents, q, 3)
        Score, residual without its bias, and bias of each candidate.
    correct : ndarray of shape (n_documents, q), bool
        Which candidate is the true class.

    Returns
    -------
    Mixture
        In units of the score; the plain one where there is too little to learn from.
    """
    found = np.flatnonzero(correct.any(axis=1))
    if len(found) < MIN_MIXED or parts.shape[1] < 2:
        return Mixture()
    true_first = np.argsort(~correct[found], axis=1, kind="stable")
    lists = np.take_along_axis(parts[found], true_first[:, :, None], axis=1)
    score, residual, bias = fit_feature_weights(
        lists.astype(np.float32), MIXTURE_DECAY, [(0.0, np.inf)] * 3
    ).tolist()
    if not score > 0.0:
        return Mixture()
    return Mixture(residual / score, bias / score)
