"""`DoubleSamplingClassifier`: the paper's method as an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longtail._labels import LabelSets
from longtail._validation import (
    cap_adversaries,
    cap_candidates,
    check_examples_per_class,
    check_positive,
)
from longtail.estimators.base import CountClassifier
from longtail.model.entry import Changes
from longtail.model.explanation import ScoreParts
from longtail.paper.double_sampling import (
    DoubleSamplingConfig,
    DoubleSamplingState,
    fit_double_sampling,
    rank_by_paper,
    take_in,
)
from longtail.paper.features import FEATURE_NAMES
from longtail.paper.sampling import PairSample
from longtail.paper.score_parts import split_paper_scores
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers


class DoubleSamplingClassifier(CountClassifier):
    """The paper's (π,κ)-double sampling classifier, to the letter.

    Documents of each class and adversarial classes for each document are sampled (Algorithm 1), the
    ten features of Table 1 of the resulting pairs train one linear SVM for all classes, and a
    document gets the class of highest score among its q nearest centroids (Algorithm 2).

    Parameters
    ----------
    examples_per_class : float, default=2
        Documents kept of each class on average: π_k = min(1, examples_per_class / n_k).
    adversaries : int, default=30
        κ, other classes drawn for each document kept; capped at the number of other classes.
    candidates : int, default=10
        q, nearest centroids among which prediction chooses; capped at the number of classes.
    C : float, default=0.01
        Weight of the SVM's loss for each pair.
    random_state : int, RandomState or None, default=None
        Decides the sample; the same state gives the same model for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.
    verbose : int, default=0
        Above 0, the stages of `fit` go to standard error; the `longtail` logger always has them.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    n_documents_ : int
        Documents; of a model of label sets those of the last fit, each counted once.
    weights_ : dict of str to float
        Weight of each feature; a score is the sum of weight x feature.
    feature_scales_ : ndarray of shape (10,)
        Largest absolute difference of each feature over the sampled pairs, by which the learner
        divided.
    sample_ : PairSample
        The documents and adversaries drawn; None after `longtail.load`.
    adversaries_ : int
        κ after capping.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import DoubleSamplingClassifier
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> classifier = DoubleSamplingClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['a', 'b']

    References
    ----------
    Joshi, Amini, Partalas, Iutzeler and Maximov, "Aggressive Sampling for Multi-class to Binary
    Reduction with Applications to Text Classification", NIPS 2017.
    """

    _feature_names = FEATURE_NAMES

    def __init__(
        self,
        examples_per_class: float = 2,
        adversaries: int = 30,
        candidates: int = 10,
        C: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.examples_per_class = examples_per_class
        self.adversaries = adversaries
        self.candidates = candidates
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature."""
        return dict(zip(FEATURE_NAMES, self._fitted().pairwise.weights.tolist(), strict=True))

    @property
    def feature_scales_(self) -> Floats:
        """Divisor of each feature in the learner."""
        scales: Floats = self._fitted().pairwise.scales
        return scales

    @property
    def sample_(self) -> PairSample | None:
        """The documents and adversaries drawn by the last fit."""
        sample: PairSample | None = self._fitted().sample
        return sample

    @property
    def adversaries_(self) -> int:
        """κ after capping."""
        return cap_adversaries(self.adversaries, len(self.classes_))

    def _check_parameters(self) -> None:
        cap_adversaries(self.adversaries, 2)
        cap_candidates(self.candidates, 2)
        check_examples_per_class(self.examples_per_class)
        check_positive("C", self.C)

    def _fit_state(
        self, counts: CountMatrix, labels: LabelSets, on_stage: Any, class_texts: Any = None
    ) -> DoubleSamplingState:
        return fit_double_sampling(counts, labels, self._config(), on_stage)

    def _config(self) -> DoubleSamplingConfig:
        """Return what a fit is told."""
        return DoubleSamplingConfig(
            self.examples_per_class, self.adversaries, self.C, self.random_state, self.n_jobs
        )

    def _merged(self, state: DoubleSamplingState) -> DoubleSamplingState:
        return replace(state, overlay=None)

    def _take_in(self, state: DoubleSamplingState, changes: Changes) -> DoubleSamplingState:
        return take_in(state, changes, self.n_jobs)

    def _rank(
        self,
        state: DoubleSamplingState,
        counts: CountMatrix,
        k: int,
        subsets: ClassSubsets | None = None,
    ) -> tuple[Integers, Floats]:
        n_candidates = cap_candidates(self.candidates, len(state.classes))
        k = min(k, n_candidates)
        return rank_by_paper(state, counts, n_candidates, k, self.n_jobs, subsets)

    def _split_scores(
        self, state: DoubleSamplingState, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        return split_paper_scores(state, counts, class_ids, self.n_jobs)
