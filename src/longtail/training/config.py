"""`FitConfig`: the hyperparameters of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from longtail._constants import MAX_FACTOR, MIN_FACTOR

# Hard negatives that a class should meet in the mean when residuals of label sets are learned, for
# which a document has more than `MIN_FACTOR` times as many as one with one label, at most
# `MAX_NEGATIVES` times that. 30,000
# documents of tib-subjects (60 per class otherwise), 4,000 others predicted, with 1, 2, 3 and 4
# times as many: P@1 44.2, 44.7, 44.6 and 44.7, P@5 20.0, 20.1, 20.1 and 20.2, nDCG@5 42.6, 42.8,
# 42.9 and 43.0, at 1, 1.15, 1.2 and 1.4 times the CPU time. All 90,452 (103 per class): twice as
# many P@1 and nDCG@5 +0.2, P@5 +0.1, four times as many no more. yso-finna-en (930 per class): four
# times as many bring nothing, for three times the CPU time and 2.8 instead of 1.6 GB.
NEGATIVES_PER_CLASS = 200
MAX_NEGATIVES = 2


@dataclass(frozen=True)
class FitConfig:
    """Hyperparameters; fields after the ninth are ablation switches.

    Attributes
    ----------
    candidates : int
        Classes among which the residuals decide.
    C : float
        Weight of the loss of each hard negative when the residuals are learned.
    seed : int
        Decides which documents are sampled and held out.
    n_jobs : int or None
        Number of threads.
    multilabel : bool
        Whether documents have other than one label; set by the fit.
    mined : int or None
        Hard negatives per document that residuals are learned on; None is `candidates`. Set by the
        fit.
    calibrate : bool
        Whether documents are held out to calibrate probabilities.
    search : {"auto", "exact"}
        Whether held-out documents may decide that only classes with a searched term are found.
    time_budget : float or None
        Seconds; stages that are not expected to end by then are left out.
    features : {"learned", "default", "cosine"}
        Feature weights: learned, fixed, or one feature of which only the scale is learned.
    term_weights, residuals, separators, leave_one_out : bool
        Whether these ingredients are used.
    negatives : {"hard", "random"}
        Highest-scored wrong classes, or uniform ones as in the paper.
    n_sampled, n_listed, n_negatives : int
        Documents that the term weights and, of these, the feature weights are learned on; negatives
        of each.
    n_uniform : int
        Of the negatives of a document whose true class scores below all of them, how many are
        drawn from all classes instead.
    residual_cost : float
        Multiplies `C`: residuals are learned a little too large, and the mixture of scorer and
        residuals, learned on held-out documents, takes back what is too much.
    self_check : bool
        Whether the learned parts are compared with simpler variants on held-out documents.
    by_size : bool
        Whether the mixture of features and residuals depends on the size of the class.
    min_matching : int
        Number of classes from which on they may.
    max_checked : int
        Documents on which scorers and posting budgets are compared.
    min_listed : int
        With fewer documents the feature weights stay at their defaults.
    held_out_share, max_held_out : float, int
        Documents held out for calibration: a share of all, and at most so many.
    """

    candidates: int = 20
    C: float = 1.0
    seed: int = 0
    n_jobs: int | None = None
    multilabel: bool = False
    mined: int | None = None
    calibrate: bool = True
    search: Literal["auto", "exact"] = "auto"
    time_budget: float | None = None
    features: Literal["learned", "default", "cosine"] = "learned"
    term_weights: bool = True
    residuals: bool = True
    separators: bool = True
    leave_one_out: bool = True
    negatives: Literal["hard", "random"] = "hard"
    n_sampled: int = 40_000
    n_listed: int = 10_000
    n_negatives: int = 20
    n_uniform: int = 10
    residual_cost: float = 2.0
    self_check: bool = True
    by_size: bool = True
    min_matching: int = 100_000
    max_checked: int = 2_000
    min_listed: int = 10
    held_out_share: float = 0.15
    max_held_out: int = 15_000

    @property
    def n_mined(self) -> int:
        """Hard negatives of each document that residuals are learned on."""
        return self.candidates if self.mined is None else self.mined

    def for_labels(self, factor: int, n_documents: int, n_classes: int) -> FitConfig:
        """Return the hyperparameters for label sets, which have a factor above 1."""
        if factor == 1:
            return self
        least = MIN_FACTOR * self.candidates
        wanted = NEGATIVES_PER_CLASS * n_classes // max(n_documents, 1)
        return replace(
            self,
            candidates=factor * self.candidates,
            multilabel=True,
            mined=min(max(wanted, least), MAX_NEGATIVES * least),
        )

    def within_budget(self, elapsed: float, expected: float) -> FitConfig:
        """Return the same without the stages that the time budget has no room for.

        Parameters
        ----------
        elapsed : float
            Seconds since the fit began.
        expected : float
            Seconds that residuals are expected to take. Calibration learns them a second time.
        """
        if self.time_budget is None:
            return self
        left = self.time_budget - elapsed
        return replace(
            self,
            residuals=self.residuals and expected <= left,
            calibrate=self.calibrate and 2.0 * expected <= left,
        )


def candidate_factor(multilabel: bool, n_labels: int, n_documents: int) -> int:
    """Return how many times as many candidates a document has: a label set has more to find.

    EURLex-4K, 5.3 labels, 2,330 training documents held out: P@5 is 58.25, 58.49, 58.68, 58.85 and
    58.81 with 2, 3, 4, 5 and 6 times as many.
    """
    if not multilabel:
        return 1
    return min(max(MIN_FACTOR, n_labels // max(n_documents, 1)), MAX_FACTOR)
