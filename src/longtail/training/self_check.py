"""A fit that checks itself: what was learned against simpler variants, on held-out documents.

In: the labels of held-out documents, and what each self finds and predicts. Out: a `SelfCheck`:
which self is kept, how far the search goes, how much the residuals count, and the figures, which
stay in the model. The rules:

- A simpler scorer replaces the learned one if it puts more of the documents into the true class, by
  more than one standard error of the difference, at no lower macro F1. A document with several
  labels counts by its R-precision: of n labels, the share that is among the first n candidates.
- The search follows the fewest postings per class that lose at most one in a hundred of the classes
  that the whole query finds; with several labels, of those that the best budget finds. With very
  many classes it may follow less than one, and then finds only classes with one of these terms.
- Of the scorer alone, the scorer with its residuals, a learned mixture of features and residuals
  by the size of the class, the one with the highest sum of accuracy and macro F1 is kept, the
  simplest where they tie. A mixture with separators takes its place if it puts more documents
  into the true class, by more than one standard error of the difference. With several labels it
  takes its place unless it is behind by more than that.
- Classes that are known by name alone get the highest bonus that loses at most one in a hundred of
  the mean F1 of the first five ranks, at least the one that is learned with the mixture, which is
  what costs the others least; where all classes without documents take part, that loses at most
  two in a thousand. It is chosen on classes that were held out whole, and again where embeddings
  count. Else these share the
  labels that no class with documents has; where more classes than these have no document, each of
  them has a smaller part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from longtail._constants import (
    EXPECTED,
    FIGURES,
    FREQUENCY_BANDS,
    MEASURES,
    MIN_POSTINGS,
    RESIDUALS,
    SCORERS,
    WHOLE_QUERY,
)
from longtail._elementary import log
from longtail._kernels.sizes import N_BENDS
from longtail._labels import LabelSets
from longtail.model.embeddings import Embeddings
from longtail.model.meaning import no_meaning
from longtail.model.names import FIRST_NAME_WEIGHTS
from longtail.sparse import Floats, Integers
from longtail.training.config import FitConfig
from longtail.training.expectation import nothing_expected
from longtail.training.mixture import AS_LEARNED, N_FEATURES, N_PARTS, Mixture

BUDGETS = (1, 4, 16)  # postings per class, beside the whole query
# Where only classes with one of the terms that search are found; they are no dense rows then.
MATCHING_BUDGETS = (MIN_POSTINGS, 1 / 64, 1 / 32)
MAX_LOST_RECALL = 0.01  # as a share of what the whole query finds
BONUSES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # on top of the learned one
# On top of that where embeddings count. Fitted on 30,000 training documents of tib-subjects, it
# brings held-out labels of classes that were held out whole among the first ten from 20.0 to 26.3
# in 100, and leaves P@1 as it was.
BONUSES_BY_MEANING = tuple(step / 4 for step in range(13))
MAX_LOST_F1 = 0.01  # as a share, for classes that are known by name alone
# The same where all of these compete with each other. Fitted on 20,000 training documents of
# tib-subjects, their mean probability on 8,000 others is 2.3 % where 2.1 % are right; with 0.01 it
# is 3.0 and 1.8 %, and nDCG@5 39.5 instead of 39.7.
MAX_LOST_F1_OF_ALL = 0.002
FIRST_PLACES = 5
SEPARATED = RESIDUALS.index("mixture with separators")
SEPARATOR_LEAD = 1.0  # standard errors by which separators must be ahead
# With several labels: standard errors by which they may be behind. On new documents of tib-subjects
# they gain 0.3 to 0.6 points of R-precision, on 3,000 held-out ones 0.1 to 0.9; left out by chance,
# they cost 1.4 points of P@1.
SEPARATOR_LAG = 1.0


@dataclass(frozen=True, eq=False)
class Figures:
    """How one self fares on held-out documents: shares between 0 and 1, NaN where none count."""

    accuracy: float
    macro_f1: float
    recall: float
    by_band: tuple[float, ...]
    correct: Floats

    @property
    def row(self) -> tuple[float, ...]:
        """In the order of `FIGURES`; -1 stands for NaN, which no file holds."""
        figures = (self.accuracy, self.macro_f1, self.recall, *self.by_band)
        return tuple(-1.0 if np.isnan(figure) else figure for figure in figures)


def _no_figures() -> Floats:
    return np.zeros((0, len(FIGURES)))


@dataclass(frozen=True, eq=False)
class SelfCheck:
    """What the held-out documents showed; without rows where none were held out.

    Attributes
    ----------
    scorer_figures : ndarray of shape (4, 8) or (0, 8), float64
        Of each of `SCORERS` alone, in the order of `FIGURES`; -1 where no document counts.
    recalls : ndarray of shape (4,), (7,) or (0,), float64
        Share of true classes among the candidates, by each budget that was compared and by the
        whole query.
    residual_figures : ndarray of shape (4, 8) or (0, 8), float64
        Of each of `RESIDUALS`.
    mixture, mixture_slopes : ndarrays of shape (4,), float64
        How much weights and biases of residuals and separators count: for a class of one document,
        and what is added per unit of ln n_c.
    feature_shifts : ndarray of shape (2, 6), float64
        What the final ranking adds to the feature weights, in the same way.
    mixture_bends : ndarray of shape (3, 10), float64
        What is added to feature weights and residuals per unit of ln n_c beyond each bend.
    name_weights : ndarray of shape (3,), float64
        Weight of a name for a class of one document, what is added to it per unit of ln n_c, and
        the bonus of a class without documents.
    meaning : ndarray of shape (5, 4), float64
        What each of `MEANING_PARTS` counts, by the size of the class as `mixture` has it; zeros
        where embeddings do not count.
    meaning_figures : ndarray of shape (2, 8) or (0, 8), float64
        Without and with embeddings, in the order of `FIGURES`.
    meaning_centers : ndarray of shape (2, n_dimensions), int16, or None
        From where the embeddings of documents and of class texts are compared.
    expected : ndarray of shape (len(EXPECTED), 3), float64
        What to expect of new documents, in the order of `EXPECTED`: value and the bounds of its
        interval; -1 where nothing is known.
    scorer, residuals : int
        Rows of `SCORERS` and `RESIDUALS` that were kept.
    postings_per_class : float
        How far the search goes; below 1, only to classes that have a term of the pruned query.
    """

    scorer_figures: Floats = field(default_factory=_no_figures)
    recalls: Floats = field(default_factory=lambda: np.zeros(0))
    residual_figures: Floats = field(default_factory=_no_figures)
    mixture: Floats = field(default_factory=lambda: AS_LEARNED.copy())
    mixture_slopes: Floats = field(default_factory=lambda: np.zeros(len(AS_LEARNED)))
    feature_shifts: Floats = field(default_factory=lambda: Mixture().features[:2])
    mixture_bends: Floats = field(default_factory=lambda: np.zeros((N_BENDS, N_PARTS)))
    name_weights: Floats = field(default_factory=lambda: FIRST_NAME_WEIGHTS)
    meaning: Floats = field(default_factory=no_meaning)
    meaning_figures: Floats = field(default_factory=_no_figures)
    meaning_centers: Embeddings | None = None
    expected: Floats = field(default_factory=nothing_expected)
    scorer: int = len(SCORERS) - 1
    residuals: int = 1
    postings_per_class: float = WHOLE_QUERY

    @property
    def kept_mixture(self) -> Mixture:
        """How much features and residuals count."""
        bends = self.mixture_bends
        return Mixture(
            np.concatenate([self.feature_shifts, bends[:, :N_FEATURES]]),
            np.concatenate([[self.mixture, self.mixture_slopes], bends[:, N_FEATURES:]]),
        )

    def with_mixture(self, mixture: Mixture) -> SelfCheck:
        """Return the same check with another mixture kept."""
        return replace(
            self,
            mixture=mixture.residuals[0],
            mixture_slopes=mixture.residuals[1],
            feature_shifts=mixture.features[:2],
            mixture_bends=np.concatenate([mixture.features, mixture.residuals], axis=1)[2:],
            name_weights=mixture.name_weights(FIRST_NAME_WEIGHTS),
        )

    def scale_features(self, factor: float) -> SelfCheck:
        """Return the same check in which what the mixture adds to features counts more or less."""
        bends = self.mixture_bends.copy()
        bends[:, :N_FEATURES] *= factor
        return replace(self, feature_shifts=self.feature_shifts * factor, mixture_bends=bends)

    def summary(self) -> dict[str, float | str]:
        """Return what was kept, and how that fares on held-out documents."""
        is_whole = self.postings_per_class >= WHOLE_QUERY
        kept: dict[str, float | str] = {
            "scorer": SCORERS[self.scorer],
            "residuals": RESIDUALS[self.residuals],
            "postings per class": "all" if is_whole else float(self.postings_per_class),
        }
        values = self.expected[:, 0].tolist()
        return kept | {
            name: value for name, value in zip(EXPECTED, values, strict=True) if value >= 0
        }

    @property
    def term_weight_gains(self) -> Floats:
        """What learned term weights gain by class size; 0 where they are not used or compared."""
        figures = self.scorer_figures[:, -len(FREQUENCY_BANDS) :]
        learned, without = SCORERS.index("learned"), SCORERS.index("no term weights")
        if not len(figures) or self.scorer == without:
            return np.zeros(len(FREQUENCY_BANDS))
        known = (figures[learned] >= 0) & (figures[without] >= 0)
        return np.where(known, figures[learned] - figures[without], 0.0)

    def describe(self, calibration_error: float) -> str:
        """Return what to expect of new documents of known classes, in one sentence."""
        figures = self.summary()
        names = ("accuracy", "macro_f1", "top_20")
        if "mean_f1" in figures:
            names = ("mean_f1", "P@1", "P@5")
        shown = [f"{MEASURES[name]} {figures[name]:.1%}" for name in names if name in figures]
        if not shown:
            return "no documents were held out: what to expect is not known"
        calibrated = calibration_error == calibration_error
        error = f"{calibration_error:.3f}" if calibrated else "not known"
        return f"on held-out documents: {', '.join(shown)}, calibration error {error}"


def measure_self(labels: LabelSets, candidates: Integers, class_sizes: Integers) -> Figures:
    """Count which labels are found among ranked candidates, and which in the first places.

    Of a document with n labels the first n candidates are its predictions.
    """
    if not len(labels.class_ids):
        nothing = (np.nan,) * len(FREQUENCY_BANDS)
        return Figures(np.nan, np.nan, np.nan, nothing, np.zeros(0))
    ranks = _rank_labels(labels, candidates)
    correct = ranks < labels.sizes[labels.document_ids]
    sizes = class_sizes[labels.class_ids]
    bands = [(sizes >= low) & (sizes <= (high or np.inf)) for _, low, high in FREQUENCY_BANDS]
    with_labels = labels.sizes > 0
    n_correct = np.bincount(labels.document_ids[correct], minlength=labels.n_documents)
    by_document = n_correct[with_labels] / labels.sizes[with_labels]
    predicted = np.arange(candidates.shape[1]) < labels.sizes[:, None]
    return Figures(
        accuracy=float(by_document.mean()),
        macro_f1=_macro_f1(labels, correct, candidates[predicted & (candidates >= 0)]),
        recall=float((ranks < candidates.shape[1]).mean()),
        by_band=tuple(float(correct[band].mean()) if band.any() else np.nan for band in bands),
        correct=by_document,
    )


def _rank_labels(labels: LabelSets, candidates: Integers) -> Integers:
    """Return the column of each label among its document's candidates; their number if none."""
    hits = candidates[labels.document_ids] == labels.class_ids[:, None]
    return np.asarray(np.where(hits.any(axis=1), hits.argmax(axis=1), candidates.shape[1]))


def _macro_f1(labels: LabelSets, correct: NDArray[np.bool_], predicted: Integers) -> float:
    """Return the mean F1 of the classes that are labels or predicted."""
    n_classes = len(labels.classes)
    n_both = np.bincount(predicted, minlength=n_classes) + labels.class_sizes
    n_correct = np.bincount(labels.class_ids[correct], minlength=n_classes)
    occur = n_both > 0
    return float(np.mean(2.0 * n_correct[occur] / n_both[occur]))


def choose_scorer(figures: Sequence[Figures]) -> int:
    """Return the row of the scorer to keep; the learned one is the last."""
    kept, learned, best_lead = len(figures) - 1, figures[-1], 0.0
    for row, simpler in enumerate(figures[:-1]):
        gains = simpler.correct - learned.correct
        lead = float(gains.sum())
        is_ahead = lead > np.sqrt(np.sum(gains**2)) and simpler.macro_f1 >= learned.macro_f1
        if is_ahead and lead > best_lead:
            kept, best_lead = row, lead
    return kept


def list_budgets(n_classes: int, config: FitConfig) -> tuple[float, ...]:
    """Return the postings per class that are compared, fewest first."""
    is_exact = config.search == "exact" or n_classes < config.min_matching
    return BUDGETS if is_exact else MATCHING_BUDGETS + BUDGETS


def choose_budget(budgets: Sequence[float], recalls: Sequence[float], best_recall: float) -> float:
    """Return the fewest postings per class that find enough."""
    for budget, recall in zip(budgets, recalls, strict=True):
        if recall >= (1.0 - MAX_LOST_RECALL) * best_recall:
            return budget
    return WHOLE_QUERY


def choose_residuals(figures: Sequence[Figures], *, multilabel: bool = False) -> int:
    """Return the row of the mixture to keep; simpler ones come first.

    Separators take as long to learn as residuals, so they must show what they are worth: they are
    kept if they put more documents into the true class, by more than one standard error. With
    several labels they are left out if they put fewer there, by more than that. Macro F1 has no say
    in it: in wikitaxa-genus the order of the documents in a pass decided by 0.1 points of the sum
    whether 0.4 points of accuracy on new documents were lost.
    """
    sums = [entry.accuracy + entry.macro_f1 for entry in figures[:SEPARATED]]
    kept = int(np.argmax(sums))
    gains = figures[SEPARATED].correct - figures[kept].correct
    error = float(np.sqrt(np.sum(gains**2)))
    if multilabel:
        return SEPARATED if error and gains.sum() >= -SEPARATOR_LAG * error else kept
    return SEPARATED if float(gains.sum()) > SEPARATOR_LEAD * error else kept


def gains_by_meaning(without: Figures, with_meaning: Figures) -> bool:
    """Return whether embeddings are kept: documents and classes together fare better with them."""
    return without.accuracy + without.macro_f1 < with_meaning.accuracy + with_meaning.macro_f1


def first_f1(labels: LabelSets, candidates: Integers) -> float:
    """Return the mean over documents of the F1 of the first five candidates."""
    first = candidates[:, :FIRST_PLACES]
    n_correct = labels.contain(first).sum(axis=1)
    return float(np.mean(2.0 * n_correct / (first.shape[1] + labels.sizes)))


def choose_bonus(
    figures: Sequence[float], bonuses: Sequence[float] = BONUSES, *, all_compete: bool = False
) -> float:
    """Return the highest bonus that costs little, given `first_f1` with each of them."""
    most_lost = MAX_LOST_F1_OF_ALL if all_compete else MAX_LOST_F1
    kept = np.flatnonzero(np.array(figures) >= (1.0 - most_lost) * max(figures))
    return bonuses[int(kept[-1])]


def share_bonus(n_held_out: int, n_empty: int) -> float:
    """Return what is added to the bonus that classes held out whole have learned.

    A bonus is a logarithm of odds. About as many of the labels to come belong to classes never seen
    as did when some were held out (Good and Turing); more such classes share them.

    Parameters
    ----------
    n_held_out : int
        Classes that lost all their documents to the held-out ones, at least 1.
    n_empty : int
        Classes without documents in the fitted model.
    """
    return -float(log(max(1.0, n_empty / n_held_out)))
