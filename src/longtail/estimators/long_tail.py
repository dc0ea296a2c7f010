"""`LongTailClassifier`: the estimator to use."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import log
from longtail._labels import LabelSets, Multilabel, find_sets, flat_labels, weigh_documents
from longtail._validation import (
    cap_candidates,
    check_class_weight,
    check_columns,
    check_k,
    check_known,
    check_memory,
    check_positive,
    check_same_kind,
    read_class_weights,
    read_weights,
)
from longtail.estimators._base import has_known_term, label_topk, scatter_rows
from longtail.estimators._class_texts import ClassTextEditing
from longtail.exceptions import UncalibratedWarning, level_outside
from longtail.explanation import ScoreParts, split_linear_scores
from longtail.paper.sampling import draw_seed
from longtail.results import Threshold, TopK
from longtail.scoring.features import SCORE_FEATURE_NAMES
from longtail.sparse import CountMatrix, Floats, Integers, are_integral
from longtail.statistics.classes import ClassStatistics
from longtail.training import long_tail_editing
from longtail.training.calibration import (
    FEWEST_DOCUMENTS,
    Calibrator,
    calibrate,
    estimate_calibration_error,
    probability_of_none,
)
from longtail.training.config import FitConfig
from longtail.training.editing import ClassEdit
from longtail.training.long_tail import LongTailState, fit_long_tail
from longtail.training.memory import DocumentMemory
from longtail.training.ranking import rank_documents
from longtail.training.relearning import refine, refine_from_memory
from longtail.training.segments import merged_class_sizes, merged_statistics
from longtail.training.self_check import SelfCheck
from longtail.training.thresholds import find_threshold

RESIDUAL = "residual"  # the last feature of an explanation: what the class has learned


class _LongTailEdits(ClassTextEditing):
    """How the classes of a `LongTailState` are edited."""

    memory: int

    def _all_classes(self, state: LongTailState) -> NDArray[Any]:
        return state.all_classes

    def _class_sizes(self, state: LongTailState) -> Integers:
        return merged_class_sizes(state)

    def _merged_statistics(self, state: LongTailState) -> ClassStatistics:
        return merged_statistics(state)[0]

    def _merged(self, state: LongTailState) -> LongTailState:
        return long_tail_editing.merge_segments(state, self.n_jobs)

    def _apply_edit(self, state: LongTailState, edit: ClassEdit) -> LongTailState:
        check_columns(state.label_form, edit.classes)
        return long_tail_editing.apply_edit(state, edit, self.n_jobs)

    def _check_memory_takes(self, weights: Floats | None) -> None:
        """Refuse fractions where documents are kept: they are taken out as whole ones to learn."""
        if self.memory and weights is not None and not are_integral(weights):
            raise ValueError(
                "sample_weight has fractions, which memory cannot keep: use whole weights, or "
                "memory=0."
            )

    def _with_documents(
        self,
        state: LongTailState,
        counts: CountMatrix,
        y: NDArray[Any],
        direction: int,
        weights: Floats | None = None,
    ) -> LongTailState:
        if direction > 0:
            self._check_memory_takes(weights)
        check_columns(state.label_form, y)
        return long_tail_editing.change_documents(state, counts, y, direction, self.n_jobs, weights)

    def _with_terms(self, state: LongTailState, n_terms: int) -> LongTailState:
        return long_tail_editing.grow_terms(state, n_terms)


class _LongTailChecks(_LongTailEdits):
    """What held-out documents showed: figures, thresholds, what to expect."""

    calibrate: bool

    @property
    def self_check_(self) -> SelfCheck:
        """What held-out documents showed: figures of the model and of simpler variants."""
        check: SelfCheck = self._fitted().check
        return check

    @property
    def calibration_error_(self) -> float:
        """Calibration error to expect, estimated on held-out documents; NaN if not calibrated."""
        return estimate_calibration_error(self._fitted().calibrator)

    def threshold_for(
        self, precision: float, unknown: float = 0.0, *, each: bool = False
    ) -> Threshold:
        """Return the top-1 probability from which on predictions reach a precision.

        Learned on documents that `fit` held out for it. `Threshold.keeps` tells which predictions
        of `predict_proba_topk` to keep; abstain from the others. With several labels it is the
        probability from which on all labels together reach the precision:
        ``predict(X, threshold=classifier.threshold_for(0.9))``.

        Parameters
        ----------
        precision : float
            Between 0 and 1.
        unknown : float, default=0.0
            Share of the documents to come whose class the model does not have. Every prediction for
            them is wrong, so the threshold must keep them out: how they score is learned on
            held-out documents with their true class taken away.
        each : bool, default=False
            Whether each kept prediction must be that probable. By default all kept predictions
            reach the precision on average, and each has at least half the probability asked for.

        Returns
        -------
        Threshold
            With the precision and coverage to expect; NaN where the precision cannot be reached.
        """
        return find_threshold(self._calibrator(self._fitted()), precision, unknown, each=each)

    def _calibrator(self, state: LongTailState) -> Calibrator:
        """Return the calibrator; warn where there was too little to fit one."""
        if self.calibrate and not state.calibrator.is_calibrated:
            warnings.warn(
                f"probabilities are not calibrated: fewer than {FEWEST_DOCUMENTS} documents could "
                "be held out (a class of one document has none to spare), or time_budget was too "
                "short. They order predictions, but are no frequencies. Fit with more documents or "
                "time, or without calibration.",
                UncalibratedWarning,
                stacklevel=level_outside(),
            )
        return state.calibrator

    def _facts(self) -> dict[str, str]:
        figures = self._fitted().check.summary()
        shown = {
            name: value if isinstance(value, str) else f"{value:.3g}"
            for name, value in figures.items()
            if name != "calibration_error"  # that of today
        }
        shown["calibration error"] = f"{estimate_calibration_error(self._fitted().calibrator):.3f}"
        return super()._facts() | {f"held-out {name}": value for name, value in shown.items()}

    def _expectation(self, state: LongTailState) -> str:
        return state.check.describe(estimate_calibration_error(state.calibrator))


class LongTailClassifier(_LongTailChecks):
    """Classify documents into very many classes, most of them rare.

    Every class is the sum of its documents, so documents and classes can be added and forgotten at
    any time. One linear scorer for all classes, with a learned weight for every term, ranks them; a
    sparse residual for each class, learned on its hard negatives, sharpens the ranking. The
    defaults suit most data: what depends on the data is learned from it.

    Parameters
    ----------
    candidates : int, default=20
        Classes among which the residuals decide; capped at the number of classes.
    C : float, default=1.0
        Weight of the loss of each hard negative when the residuals are learned.
    multilabel : bool or "auto", default="auto"
        Whether documents have label sets; "auto" decides by the shape of y: a list of lists or an
        indicator matrix holds sets. With several labels there are 2 to 10 times as many
        candidates: as many times as a document has labels in the mean.
    calibrate : bool, default=True
        Whether documents are held out to calibrate probabilities, which takes about a third of
        `fit`. Without it probabilities are the softmax of the scores, and no threshold is known.
    time_budget : float or None, default=None
        Seconds that `fit` may take. Stages that are not expected to end by then are left out:
        calibration first, then the residuals. What is left out depends on the speed of the machine,
        so the same `random_state` may give different models; sums and shared weights are always
        learned, however long they take.
    memory : int, default=0
        Documents of each class that the model keeps, the last ones; with them `refine` needs no
        documents to learn from. They are counts of terms, which whoever has the model can read.
    class_weight : dict of label to float, "balanced" or None, default=None
        What the losses of the documents of each class count where something is learned: the weights
        of terms and features, and residuals. "balanced" is n_documents / (n_classes * documents of
        the class). The sums of documents, and so what `partial_fit` and `forget` do, stay as they
        are; `sample_weight` changes these.
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
    n_documents_ : int
        Documents; of a model of label sets those of the last fit, each counted once.
    weights_ : dict of str to float
        Weight of each feature of the shared scorer, for a class of one document;
        `self_check_` says what is added with the size of the class.
    term_weights_ : ndarray of shape (n_terms,)
        Learned factor of each term.
    self_check_ : SelfCheck
        How the model and simpler variants fared on held-out documents, and what was kept.
    calibration_error_ : float
        Calibration error to expect on new documents of known classes.

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
    _takes_label_sets = True
    _feature_names = (*SCORE_FEATURE_NAMES, RESIDUAL)

    def __init__(
        self,
        candidates: int = 20,
        C: float = 1.0,
        multilabel: Multilabel = "auto",
        calibrate: bool = True,
        time_budget: float | None = None,
        memory: int = 0,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.C = C
        self.multilabel = multilabel
        self.calibrate = calibrate
        self.time_budget = time_budget
        self.memory = memory
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature for a class of one document; its residual counts as it is."""
        weights = [*self._fitted().ranking_weights[0].tolist(), 1.0]
        return dict(zip(self._feature_names, weights, strict=True))

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
            How many; with fewer candidates the rest is not `valid`. A document without a known
            term has none.

        Returns
        -------
        TopK
            `scores` holds probabilities, a row sums to at most 1; `none` that no candidate is the
            class. With several labels they are marginal: each is that of one label.
        """
        state, counts = self._fitted(), self._check_counts(X)
        classes = self._all_classes(state)
        k = check_k(k, len(classes))
        class_ids, probabilities = self._rank_calibrated(state, counts)
        known = has_known_term(state, counts)
        top = label_topk(classes, class_ids[:, :k], probabilities[:, :k], k, known, missing=0.0)
        if state.several:
            return top
        return replace(top, none=np.where(known, probability_of_none(probabilities), 1.0))

    def predict_proba(self, X: Any) -> Any:
        """Return the calibrated probabilities of each document's candidates.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray or csr_array of shape (n_documents, n_classes)
            Dense up to 1,000 classes, sparse above, with an entry for each candidate. Where
            every class is a candidate a row sums to 1, otherwise to at most 1; with several labels
            probabilities are marginal. A document without a known term has no candidates; in
            their place stand the largest classes with their shares of the documents, or 0 with
            several labels.
        """
        state, counts = self._fitted(), self._check_counts(X)
        n_classes = len(self._all_classes(state))
        class_ids, probabilities = self._rank_calibrated(state, counts)
        unknown = ~has_known_term(state, counts)
        if unknown.any():
            class_ids[unknown], shares = self._largest_classes(state, class_ids.shape[1])
            probabilities[unknown] = 0.0 if state.several else shares
        # With every class a candidate there is no other that could have the rest.
        if class_ids.shape[1] == n_classes and not state.several:
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
            second less that of the first. A document without a known term has no candidates; in
            their place stand the largest classes with the logarithms of their shares.
        """
        state, counts = self._fitted(), self._check_counts(X)
        n_classes = len(self._all_classes(state))
        class_ids, scores = self._rank(state, counts, n_classes)
        unknown = ~has_known_term(state, counts)
        if unknown.any():
            class_ids[unknown], shares = self._largest_classes(state, class_ids.shape[1])
            scores[unknown] = log(shares)  # a class without documents has -inf
        decisions = scatter_rows(class_ids, scores, n_classes, missing=-np.inf)
        return decisions[:, 1] - decisions[:, 0] if n_classes == 2 else decisions

    def refine(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Bring what all classes share up to date; with documents, learn residuals anew as well.

        Document frequencies and collection model follow from the sums, so no document is needed:
        call this after every few hundred documents taught. With documents, the residuals of the
        classes that are stale since the last fit or refine are learned, and what their documents
        teach about the weights of terms.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms), optional
            Documents that the model has been taught: those of the stale classes, and as many others
            as there are, for these are what the stale classes must be told from.
        y : array-like of shape (n_documents,), or label sets, optional
            Their labels.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents they counted when they were added; see `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the sums of the model cannot contain a document; the model then stays as it is.
        """
        self._fitted()
        if X is None and y is None:
            with self._lock:
                self._state = refine_from_memory(self._fitted(), self._config())
            return self
        given = y
        X, y = self._check_input(X, y, reset=False)
        weights = read_weights(sample_weight, given, y)
        flat = flat_labels(y)
        with self._lock:
            state: LongTailState = self._fitted()
            if len(flat):
                check_same_kind(flat, state.all_classes)
                check_known(flat, state.all_classes)
            X, labels = weigh_documents(X, find_sets(y, state.all_classes), weights)
            counts = CountMatrix.from_matrix(X)
            factors = read_class_weights(self.class_weight, labels)
            labels = labels if factors is None else labels.with_class_weights(factors)
            self._state = refine(state, counts, labels, self._config())
        return self

    def _check_parameters(self) -> None:
        cap_candidates(self.candidates, 2)
        check_positive("C", self.C)
        if self.time_budget is not None:
            check_positive("time_budget", self.time_budget)
        check_memory(self.memory)
        check_class_weight(self.class_weight)

    def _config(self) -> FitConfig:
        """Return what a fit is told."""
        return FitConfig(
            candidates=self.candidates,
            C=self.C,
            seed=draw_seed(self.random_state),
            n_jobs=self.n_jobs,
            calibrate=bool(self.calibrate),
            time_budget=self.time_budget,
        )

    def _fit_state(
        self, counts: CountMatrix, labels: LabelSets, on_stage: Any, class_texts: Any = None
    ) -> LongTailState:
        if self.memory and labels.has_several:
            raise ValueError(
                "memory is for models with one label for each document; leave it at 0, and give "
                "refine the documents."
            )
        self._check_memory_takes(labels.weights)
        state = fit_long_tail(counts, labels, self._config(), on_stage, class_texts)
        if not self.memory:
            return state
        return replace(state, memory=DocumentMemory.of(counts, labels.class_ids, self.memory))

    def _rank(self, state: LongTailState, counts: CountMatrix, k: int) -> tuple[Integers, Floats]:
        return rank_documents(state, counts, self.candidates, k, self.n_jobs)

    def _rank_calibrated(
        self, state: LongTailState, counts: CountMatrix
    ) -> tuple[Integers, Floats]:
        """Return all candidates of each document with their probabilities."""
        class_ids, scores = self._rank(state, counts, len(state.all_classes))
        return class_ids, calibrate(scores, self._calibrator(state), np.diff(counts.indptr))

    def _split_scores(
        self, state: LongTailState, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        documents = state.weigh(counts, self.n_jobs)
        return split_linear_scores(documents, class_ids, state, self.n_jobs)
