"""`LongTailClassifier`: the estimator to use."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._validation import (
    cap_candidates,
    check_k,
    check_known,
    check_positive,
    check_same_kind,
)
from longtail.estimators._base import CountClassifier, label_topk
from longtail.explanation import ScoreParts, split_linear_scores
from longtail.results import Threshold, TopK
from longtail.retrieval.delta import search_segments
from longtail.scoring.features import SCORE_FEATURE_NAMES
from longtail.scoring.weighting import weight_documents
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.training import long_tail_editing
from longtail.training.calibration import calibrate, find_threshold
from longtail.training.config import FitConfig
from longtail.training.editing import ClassEdit
from longtail.training.long_tail import LongTailState, fit_long_tail
from longtail.training.sampling import draw_seed
from longtail.training.self_check import SelfCheck

RESIDUAL = "residual"  # the last feature of an explanation: what the class has learned
DENSE_CLASSES = 1_000  # up to here probabilities and decisions are dense arrays


class _LongTailEdits(CountClassifier):
    """How the classes of a `LongTailState` are edited."""

    def _all_classes(self, state: LongTailState) -> NDArray[Any]:
        return state.all_classes

    def _merged_statistics(self, state: LongTailState) -> ClassStatistics:
        return long_tail_editing.merged_statistics(state)[0]

    def _merged(self, state: LongTailState) -> LongTailState:
        return long_tail_editing.merge_segments(state, self.n_jobs)

    def _apply_edit(self, state: LongTailState, edit: ClassEdit) -> LongTailState:
        return long_tail_editing.apply_edit(state, edit, self.n_jobs)

    def _with_documents(
        self, state: LongTailState, counts: CountMatrix, y: NDArray[Any], direction: int
    ) -> LongTailState:
        return long_tail_editing.change_documents(state, counts, y, direction, self.n_jobs)

    def _with_terms(self, state: LongTailState, n_terms: int) -> LongTailState:
        return long_tail_editing.grow_terms(state, n_terms)

    def _facts(self) -> dict[str, str]:
        figures = self._fitted().check.summary()
        shown = {
            name: value if isinstance(value, str) else f"{value:.3g}"
            for name, value in figures.items()
        }
        return super()._facts() | {f"held-out {name}": value for name, value in shown.items()}


class LongTailClassifier(_LongTailEdits):
    """Classify documents into very many classes, most of them rare.

    Every class is the sum of its documents, so documents and classes can be added and forgotten at
    any time. One linear scorer for all classes, with a learned weight for every term, ranks them; a
    sparse residual for each class, learned on its hard negatives, sharpens the ranking. Nothing
    needs setting: what adapts, adapts to the data.

    Parameters
    ----------
    candidates : int, default=20
        Classes among which the residuals decide; capped at the number of classes.
    C : float, default=1.0
        Weight of the loss of each hard negative when the residuals are learned.
    calibrate : bool, default=True
        Whether documents are held out to calibrate probabilities, which takes about a third of
        `fit`. Without it probabilities are the softmax of the scores, and no threshold is known.
    random_state : int, RandomState or None, default=None
        Decides which documents are sampled and held out; the same state gives the same model for
        any `n_jobs`.
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
    weights_ : dict of str to float
        Weight of each feature of the shared scorer.
    term_weights_ : ndarray of shape (n_terms,)
        Learned factor of each term.
    self_check_ : SelfCheck
        How the model and its simpler selves fared on held-out documents, and what was kept.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongTailClassifier
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> classifier = LongTailClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['a', 'b']
    """

    _sublinear = True
    _feature_names = (*SCORE_FEATURE_NAMES, RESIDUAL)

    def __init__(
        self,
        candidates: int = 20,
        C: float = 1.0,
        calibrate: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.C = C
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature; the class's residual counts as it is."""
        weights = [*self._fitted().feature_weights.tolist(), 1.0]
        return dict(zip(self._feature_names, weights, strict=True))

    @property
    def self_check_(self) -> SelfCheck:
        """What held-out documents showed: figures of the model and of its simpler selves."""
        check: SelfCheck = self._fitted().check
        return check

    @property
    def term_weights_(self) -> Floats:
        """Learned factor of each term."""
        weights: Floats = self._fitted().term_weights
        return weights

    def predict_proba_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with calibrated probabilities.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many; where there are fewer candidates the rest is not `valid`.

        Returns
        -------
        TopK
            `scores` holds probabilities. A row sums to at most 1; the rest is the probability of
            all other classes together.
        """
        state = self._fitted()
        classes = self._all_classes(state)
        k = check_k(k, len(classes))
        class_ids, probabilities = self._rank_calibrated(state, X)
        return label_topk(classes, class_ids[:, :k], probabilities[:, :k], k, missing=0.0)

    def predict_proba(self, X: Any) -> Any:
        """Return the calibrated probabilities of each document's candidates.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray or csr_array of shape (n_documents, n_classes)
            Dense up to 1,000 classes, sparse above, with at most `candidates` entries a row. Where
            every class is a candidate a row sums to 1, otherwise to at most 1.
        """
        state = self._fitted()
        n_classes = len(self._all_classes(state))
        class_ids, probabilities = self._rank_calibrated(state, X)
        if class_ids.shape[1] == n_classes:  # there is no other class that could have the rest
            probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        return scatter_rows(class_ids, probabilities, n_classes, missing=0.0)

    def decision_function(self, X: Any) -> Any:
        """Return the scores of each document's candidates.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray or csr_array of shape (n_documents, n_classes)
            Dense up to 1,000 classes, with -inf for classes that are no candidates; sparse above,
            where these have no entry. With two classes, of shape (n_documents,): the score of the
            second less that of the first.
        """
        state = self._fitted()
        n_classes = len(self._all_classes(state))
        class_ids, scores = self._rank(state, self._check_counts(X), n_classes)
        decisions = scatter_rows(class_ids, scores, n_classes, missing=-np.inf)
        return decisions[:, 1] - decisions[:, 0] if n_classes == 2 else decisions

    def threshold_for(self, precision: float) -> Threshold:
        """Return the top-1 probability from which on predictions reach a precision.

        Learned on documents that `fit` held out for it. Abstain where `predict_proba_topk` gives
        less.

        Parameters
        ----------
        precision : float
            Between 0 and 1.

        Returns
        -------
        Threshold
            With the precision and coverage to expect; NaN where the precision cannot be reached.
        """
        return find_threshold(self._fitted().calibrator, precision)

    def refine(self, X: Any, y: ArrayLike) -> Self:
        """Learn the residuals of the classes that are stale since the last fit or refine.

        The global quantities (number of documents, document frequencies) are brought up to date for
        all classes.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Documents that the model has been taught: those of the stale classes, and as many others
            as there are, for these are what the stale classes must be told from.
        y : array-like of shape (n_documents,)
            Their labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the sums of the model cannot contain a document; the model then stays as it is.
        """
        self._fitted()
        X, y = self._check_input(X, y, reset=False)
        counts = CountMatrix.from_matrix(X)
        with self._lock:
            state: LongTailState = self._fitted()
            check_same_kind(y, state.all_classes)
            check_known(y, state.all_classes)
            self._state = long_tail_editing.refine(state, counts, y, self._config())
        return self

    def _check_parameters(self) -> None:
        cap_candidates(self.candidates, 2)
        check_positive("C", self.C)

    def _config(self) -> FitConfig:
        """Return what a fit is told."""
        return FitConfig(
            candidates=self.candidates,
            C=self.C,
            seed=draw_seed(self.random_state),
            n_jobs=self.n_jobs,
            calibrate=bool(self.calibrate),
        )

    def _fit_state(
        self, counts: CountMatrix, class_ids: Integers, classes: NDArray[Any], on_stage: Any
    ) -> LongTailState:
        return fit_long_tail(counts, class_ids, classes, self._config(), on_stage)

    def _rank(self, state: LongTailState, counts: CountMatrix, k: int) -> tuple[Integers, Floats]:
        n_candidates = cap_candidates(self.candidates, len(state.all_classes))
        documents = weight_documents(counts, state.document_weights, self.n_jobs)
        pruned = state.pruning.prune(documents, np.arange(counts.n_documents), self.n_jobs)
        return search_segments(
            documents,
            pruned,
            (state.scorer, state.residuals, state.index),
            state.delta,
            n_candidates,
            min(k, n_candidates),
            self.n_jobs,
        )

    def _rank_calibrated(self, state: LongTailState, X: Any) -> tuple[Integers, Floats]:
        """Return all candidates of each document with their probabilities."""
        class_ids, scores = self._rank(state, self._check_counts(X), len(state.all_classes))
        return class_ids, calibrate(scores, state.calibrator)

    def _split_scores(
        self, state: LongTailState, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        documents = weight_documents(counts, state.document_weights, self.n_jobs)
        return split_linear_scores(documents, class_ids, state, self.n_jobs)


def scatter_rows(class_ids: Integers, values: Floats, n_classes: int, missing: float) -> Any:
    """Return values of some classes in each row as a matrix of all classes."""
    n_documents, n_columns = class_ids.shape
    if n_classes <= DENSE_CLASSES:
        dense = np.full((n_documents, n_classes), missing)
        np.put_along_axis(dense, class_ids.astype(np.int64), values, axis=1)
        return dense
    indptr = n_columns * np.arange(n_documents + 1)
    matrix = sp.csr_array(
        (values.ravel(), class_ids.ravel(), indptr), shape=(n_documents, n_classes)
    )
    matrix.sort_indices()
    return matrix
