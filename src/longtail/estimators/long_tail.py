"""`LongTailClassifier`: the estimator to use."""

from __future__ import annotations

import logging
import numbers
import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._columns import align_labels
from longtail._constants import LABEL_FORMS
from longtail._elementary import log
from longtail._labels import LabelForm, LabelSets, Multilabel, as_sets
from longtail._validation import (
    cap_candidates,
    check_class_weight,
    check_columns,
    check_integer,
    check_k,
    check_memory,
    check_positive,
    check_precision,
    check_share,
    look_up,
)
from longtail.candidates import Candidates
from longtail.estimators.base import CountClassifier, label_topk, no_label, scatter_rows
from longtail.estimators.class_texts import (
    ClassTexts,
    check_column,
    check_text_labels,
    read_class_text,
    read_class_texts,
)
from longtail.estimators.evidence import make_candidates
from longtail.estimators.hierarchies import TakesHierarchy
from longtail.estimators.kept_documents import find_nearest_terms
from longtail.estimators.within import read_subsets
from longtail.exceptions import UncalibratedWarning, level_outside
from longtail.model.edits import Describe, Recalibrate, Refine
from longtail.model.entry import Changes
from longtail.model.explanation import ScoreParts, split_linear_scores
from longtail.model.features import SCORE_FEATURE_NAMES
from longtail.model.state import LongTailState
from longtail.paper.sampling import draw_seed
from longtail.results import Explanation, Health, NodeAnswers, Predicted, Threshold, TopK
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers, are_integral
from longtail.taxonomy import Hierarchy, read_hierarchy
from longtail.training import changing, outcomes, relearning
from longtail.training.back_off import BackOff
from longtail.training.calibration import (
    MIN_DOCUMENTS,
    Calibrator,
    calibrate,
    calibrate_within,
    choose_set_sizes,
    estimate_calibration_error,
    probability_of_none,
)
from longtail.training.config import FitConfig
from longtail.training.health import measure_health
from longtail.training.in_use import find_told, observe
from longtail.training.memory import AS_MANY_AS_FIT, DocumentMemory
from longtail.training.observed import Observed
from longtail.training.pipeline import fit_long_tail
from longtail.training.ranking import rank_documents
from longtail.training.self_check import SelfCheck
from longtail.training.thresholds import find_threshold

_LOGGER = logging.getLogger("longtail")

RESIDUAL = "residual"  # the last feature of an explanation: what the class has learned

# Of the label sets of a model: it may have been loaded from a file that claims any number, and each
# column takes 8 bytes per document.
MAX_DENSE_COLUMNS = 1 << 16


class LongTailClassifier(TakesHierarchy, CountClassifier):
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
    search : {"auto", "exact"}, default="auto"
        "exact" looks at all classes; "auto", from 100,000 classes on, only at those that have one
        of a document's rarest terms. It does so if held-out documents lose at most one true
        candidate in a hundred by it.
    memory : int, "auto" or None, default=None
        Documents of each class that the model keeps from the fit on, the last ones; with them
        `refine` needs no documents to learn from. They are counts of terms, which whoever has the
        model can read. "auto": as many as take a tenth of the model's size, the same number of each
        class. None: none of the fit, but a `Teacher` keeps as many of those that it is taught. 0:
        none ever.
    adapt : bool, default=True
        Whether `partial_fit` learns from what the model would have said of each document before.
        Taking these for a sample of those to come, it learns probabilities, the weights of terms,
        and how much residuals and features by class size count. It keeps the documents until it
        brings up to date what all classes share, after every 5 % more. Turn it off where the model
        is taught mainly what it gets wrong.
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
    _takes_embeddings = True
    _feature_names = (*SCORE_FEATURE_NAMES, RESIDUAL)

    def __init__(
        self,
        candidates: int = 20,
        C: float = 1.0,
        multilabel: Multilabel = "auto",
        calibrate: bool = True,
        time_budget: float | None = None,
        search: Literal["auto", "exact"] = "auto",
        memory: int | Literal["auto"] | None = None,
        adapt: bool = True,
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
        self.search = search
        self.memory = memory
        self.adapt = adapt
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

    @property
    def self_check_(self) -> SelfCheck:
        """Figures of the model and of its simpler variants on held-out documents."""
        check: SelfCheck = self._fitted().check
        return check

    @property
    def calibration_error_(self) -> float:
        """Calibration error to expect, estimated on held-out documents; NaN if not calibrated."""
        return estimate_calibration_error(self._fitted().calibrator)

    def predict(
        self,
        X: Any,
        threshold: float | Threshold | None = None,
        max_labels: int | None = None,
        *,
        within: Any = None,
        exclude: Any = None,
        back_off: float | None = None,
        embeddings: Any = None,
    ) -> Predicted:
        """Return the best class of each document, or its label set.

        Parameters
        ----------
        X, within, exclude, embeddings
            As in `predict_topk`.
        threshold : float or Threshold, optional
            For label sets: take the labels of at least this probability, such as what
            `threshold_for` gives; a set may be empty. When left out, the set of highest expected
            F1, which has a label at least, unless the document has no known term.
        max_labels : int, optional
            For label sets: the most labels of a document.
        back_off : float, optional
            With a hierarchy: a precision. A class of which the model is not that sure gives way to
            the deepest node above it of which it is, and where there is none to no label at all:
            None, "", -1 or NaN, by the type of the labels. See `predict_nodes`.

        Returns
        -------
        ndarray of shape (n_documents,), or list of lists, or indicator matrix
            Labels. Label sets come in the form that `fit` was given: as lists, most probable label
            first, or as a sparse or dense matrix of 0 and 1, sparse beyond 65,536 columns. A
            document without a known term has the largest class that it may have, with a
            `NoKnownTermWarning`.
        """
        state = self._fitted()
        if back_off is not None:
            return self.predict_nodes(
                X, back_off, within=within, exclude=exclude, embeddings=embeddings
            ).labels
        if not state.label_form.is_multilabel:
            if threshold is not None or max_labels is not None:
                raise ValueError(
                    "threshold and max_labels are for models that were fitted with label sets; "
                    "this one has one label for each document. Use predict_proba_topk to abstain."
                )
            return super().predict(X, within=within, exclude=exclude, embeddings=embeddings)
        _check_max_labels(max_labels)
        counts = self.count(X, embeddings)
        subsets = read_subsets(within, exclude, state.all_classes, counts.n_documents)
        class_ids, probabilities = self._rank_calibrated(state, counts, subsets)
        if threshold is None:
            sizes = choose_set_sizes(probabilities, max_labels)
        else:
            sizes = np.count_nonzero(probabilities[:, :max_labels] >= float(threshold), axis=1)
        sizes = np.minimum(sizes, np.count_nonzero(class_ids >= 0, axis=1))
        sizes[~state.have_evidence(counts)] = 0
        return form_sets(state.all_classes, class_ids, sizes, state.label_form)

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, embeddings: Any = None
    ) -> float:
        """Return the accuracy; for label sets, the mean F1 of the documents' sets.

        A document without labels for which none is predicted counts as 1.

        Parameters
        ----------
        X, embeddings
            As in `predict_topk`.
        y : array-like of shape (n_documents,), list of lists or indicator matrix
            True labels.
        sample_weight : array-like of shape (n_documents,), optional
            What each document counts.
        """
        if not self.multilabel_:
            X = X if embeddings is None else self.count(X, embeddings)
            accuracy: float = super().score(X, y, sample_weight)
            return accuracy
        true, predicted = as_sets(y), as_sets(self.predict(X, embeddings=embeddings))
        if true.n_documents != predicted.n_documents:
            raise ValueError(
                f"y has {true.n_documents} label sets for {predicted.n_documents} documents."
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        return float(np.average(_document_f1(true, predicted), weights=weights))

    def predict_nodes(
        self,
        X: Any,
        precision: float = 0.9,
        *,
        within: Any = None,
        exclude: Any = None,
        embeddings: Any = None,
    ) -> NodeAnswers:
        """Return the deepest node of the hierarchy that each document is surely at or below.

        The probabilities of a document's candidates are summed up over their ancestors. From which
        share of the sum on nodes reach the precision, on average, is learned on documents that
        `fit` held out.

        Parameters
        ----------
        X, within, exclude, embeddings
            As in `predict_topk`.
        precision : float, default=0.9
            How many of the answers shall be right: the true class is the node or below it.

        Returns
        -------
        NodeAnswers
            A document without a known term, or without a sure node, has none.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        back_off = self._back_off(state)
        check_precision(precision)
        subsets = read_subsets(within, exclude, state.all_classes, counts.n_documents)
        ranking = self._rank_calibrated(state, counts, subsets)
        answers = back_off.answer(*ranking, precision, state.count_terms(counts), self.n_jobs)
        known = state.have_evidence(counts)
        nodes = np.where(known, answers.nodes, -1)
        return NodeAnswers(
            back_off.labels(nodes, no_label(state.all_classes)),
            np.where(known, answers.probabilities, 0.0),
            np.where(known, answers.depths, 0),
            nodes >= 0,
        )

    def _back_off(self, state: LongTailState) -> BackOff:
        """Return what answers by nodes, or say why nothing does."""
        if state.back_off is None:
            raise ValueError(
                "this model has no hierarchy; give it one with set_hierarchy or fit(hierarchy=...)."
            )
        if state.several:
            raise ValueError(
                "back-off and levels are for models with one label for each document: the "
                "probabilities of the labels of a set do not add up."
            )
        return state.back_off

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        within: Any = None,
        exclude: Any = None,
        level: int | None = None,
        embeddings: Any = None,
    ) -> TopK:
        """Return the k best classes of each document with their scores.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many; where there are fewer candidates the rest is not `valid`. A document without
            a known term has none.
        within, exclude : labels, mask, or a list of them for each document, optional
            The classes to choose from, and those to leave out: labels, or an array of bool of shape
            (n_classes,). A list of lists of labels (None: no limit), or an array of bool of shape
            (n_documents, n_classes), limits each document by itself. The search passes over all
            other classes, so there are as many candidates as without a limit.
        level : int, optional
            With a hierarchy: rank the nodes at this depth, each by its best candidate. A class that
            is not as deep stands for itself.
        embeddings : array-like of shape (n_documents, n_dimensions), optional
            Those of the documents, for a model that was fitted with embeddings.

        Returns
        -------
        TopK
            `classes` and `scores`, each of shape (n_documents, k), best first; ties in class order.
        """
        if level is None:
            return super().predict_topk(X, k, within=within, exclude=exclude, embeddings=embeddings)
        state, counts = self._fitted(), self.count(X, embeddings)
        back_off, level = self._back_off(state), check_integer("level", level, 1)
        k = check_k(k, len(state.all_classes))
        subsets = read_subsets(within, exclude, state.all_classes, counts.n_documents)
        ranking = self._rank(state, counts, len(state.all_classes), subsets)
        nodes, scores = back_off.score_level(*ranking, level, k)
        return self._label_nodes(state, counts, nodes, scores, -np.inf)

    def _label_nodes(
        self,
        state: LongTailState,
        counts: CountMatrix,
        nodes: Integers,
        scores: Floats,
        missing: float,
    ) -> TopK:
        """Return nodes as labels; documents without a known term have none."""
        nodes[~state.have_evidence(counts)] = -1
        labels = self._back_off(state).labels(nodes, no_label(state.all_classes))
        return TopK(labels, np.where(nodes >= 0, scores, missing), nodes >= 0)

    def predict_proba_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        within: Any = None,
        exclude: Any = None,
        level: int | None = None,
        embeddings: Any = None,
    ) -> TopK:
        """Return the k best classes of each document with calibrated probabilities.

        Parameters
        ----------
        X, k, within, exclude, level, embeddings
            As in `predict_topk`. Classes that are not within are part of `none`: where it is known
            that the class is, divide a row by ``1 - none``. With several labels probabilities are
            as without a limit. The probability of a node is that the class is at or below it.

        Returns
        -------
        TopK
            `scores` holds probabilities, a row sums to at most 1; `none` that no candidate is the
            class. With several labels they are marginal: each is that of one label.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        classes = state.all_classes
        k = check_k(k, len(classes))
        subsets = read_subsets(within, exclude, classes, counts.n_documents)
        class_ids, probabilities = self._rank_calibrated(state, counts, subsets)
        known = state.have_evidence(counts)
        if level is not None:
            back_off, level = self._back_off(state), check_integer("level", level, 1)
            lengths = state.count_terms(counts)
            nodes, values = back_off.rank_level(
                class_ids, probabilities, level, k, lengths, self.n_jobs
            )
            none = np.where(known, probability_of_none(values), 1.0)
            ranked = self._label_nodes(state, counts, nodes[:, :k], values[:, :k], 0.0)
            return replace(ranked, none=none)
        top = label_topk(classes, class_ids[:, :k], probabilities[:, :k], k, known, missing=0.0)
        if state.several:
            return top
        return replace(top, none=np.where(known, probability_of_none(probabilities), 1.0))

    def list_candidates(
        self,
        X: Any,
        k: int = 20,
        *,
        within: Any = None,
        exclude: Any = None,
        embeddings: Any = None,
    ) -> list[Candidates]:
        """Return the k best classes of each document as records, for a person or a language model.

        `TextClassifier.candidates` is the same for texts; here that name is a parameter.

        Parameters
        ----------
        X, k, within, exclude, embeddings
            As in `predict_topk`.

        Returns
        -------
        list of Candidates
            With probabilities, paths in the hierarchy, evidence, and documents that are kept
            (`memory`), as their terms.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        top = self.predict_proba_topk(counts, k, within=within, exclude=exclude)
        names = getattr(self, "feature_names_in_", None)
        return make_candidates(
            state,
            counts,
            top,
            self._split_scores,
            lambda term: term if names is None else names[term],
        )

    def predict_proba(self, X: Any, *, embeddings: Any = None) -> Any:
        """Return the calibrated probabilities of each document's candidates.

        Parameters
        ----------
        X, embeddings
            As in `predict_topk`.

        Returns
        -------
        ndarray or csr_array of shape (n_documents, n_classes)
            Dense up to 1,000 classes, sparse above, with an entry for each candidate. Where
            every class is a candidate a row sums to 1, otherwise to at most 1; with several labels
            probabilities are marginal. A document without a known term has no candidates; in
            their place stand the largest classes with their shares of the documents, or 0 with
            several labels.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        n_classes = len(state.all_classes)
        class_ids, probabilities = self._rank_calibrated(state, counts)
        unknown = ~state.have_evidence(counts)
        if unknown.any():
            class_ids[unknown], shares = self._largest_classes(state, class_ids.shape[1])
            probabilities[unknown] = 0.0 if state.several else shares
        # With every class a candidate there is no other that could have the rest.
        if class_ids.shape[1] == n_classes and not state.several:
            probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        return scatter_rows(class_ids, probabilities, n_classes, missing=0.0)

    def decision_function(self, X: Any, *, embeddings: Any = None) -> Any:
        """Return the scores of each document's candidates.

        Parameters
        ----------
        X, embeddings
            As in `predict_topk`.

        Returns
        -------
        ndarray or csr_array of shape (n_documents, n_classes)
            Dense up to 1,000 classes, with -inf for classes that are no candidates; sparse above,
            where these have no entry. With two classes, of shape (n_documents,): the score of the
            second less that of the first. A document without a known term has no candidates; in
            their place stand the largest classes with the logarithms of their shares.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        n_classes = len(state.all_classes)
        class_ids, scores = self._rank(state, counts, n_classes)
        unknown = ~state.have_evidence(counts)
        if unknown.any():
            class_ids[unknown], shares = self._largest_classes(state, class_ids.shape[1])
            scores[unknown] = log(shares)  # a class without documents has -inf
        decisions = scatter_rows(class_ids, scores, n_classes, missing=-np.inf)
        return decisions[:, 1] - decisions[:, 0] if n_classes == 2 else decisions

    def threshold_for(
        self,
        precision: float,
        unknown: float = 0.0,
        *,
        each: bool = False,
        level: int | None = None,
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
            held-out documents with their true class taken away. With `level` the nodes above that
            class are right.
        each : bool, default=False
            Whether each kept prediction must be that probable. By default all kept predictions
            reach the precision on average, and each has at least half the probability asked for.
        level : int, optional
            With a hierarchy: for nodes at this depth, as `predict_proba_topk` with this level gives
            them.

        Returns
        -------
        Threshold
            With the precision and coverage to expect; NaN where the precision cannot be reached.
        """
        if level is not None:
            check_share("unknown", unknown)
            back_off, level = self._back_off(self._fitted()), check_integer("level", level, 1)
            return back_off.find_level_threshold(level, precision, unknown, each=each)
        return find_threshold(self._calibrator(self._fitted()), precision, unknown, each=each)

    def health(self) -> Health:
        """Return how far the model has moved from what was learned, and what to do about it.

        Returns
        -------
        Health
            Prints as a table.
        """
        return measure_health(self._fitted(), self._config())

    def refine(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, embeddings: Any = None
    ) -> Self:
        """Bring what all classes share up to date; with documents, relearn residuals as well.

        Document frequencies and collection model follow from the sums, so no document is needed:
        call this after every few hundred documents taught. With documents, the residuals of the
        classes that are stale since the last fit or refine are learned, and what their documents
        teach about the weights of terms.

        Parameters
        ----------
        X, y, sample_weight, embeddings
            As in `partial_fit`: documents that the model has been taught, those of the stale
            classes and as many others as there are, for these are what the stale classes must be
            told from.

        Raises
        ------
        ValueError
            If the sums of the model cannot contain a document; the model then stays as it is.
        """
        self._fitted()
        if X is None and y is None:
            return self._apply(Refine())
        X, labels, weights = self._read(X, y, sample_weight, embeddings)
        return self._apply(Refine(X.to_counts(), labels, weights))

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

        Raises
        ------
        ValueError
            If the share is out of range, the model was told before or has outcomes already,
            documents have several labels, or no documents of unknown classes could be learned from.
        """
        check_share("share", share)
        return self._swap(lambda state: expect_unknown(state, share))

    def recalibrate(self, X: Any, y: Any, *, embeddings: Any = None) -> Self:
        """Correct the probabilities by documents that the model has not been taught yet.

        Call it before `partial_fit` with the same documents: what the model says of them then is an
        unbiased test. Their labels may be of classes that the model does not have; such a document
        shows how often, and where, the model should doubt. The last 1,000 outcomes count; those of
        the held-out documents of `fit` make room for them, and at the first call for as many of
        unknown classes. Only probabilities and thresholds change: neither sums nor ranking.

        Parameters
        ----------
        X, y, embeddings
            As in `partial_fit`.

        Raises
        ------
        ValueError
            If documents have several labels.
        """
        self._fitted()
        X, labels = self._check_input(X, y, reset=False)
        return self._apply(Recalibrate(self.count(X, embeddings), labels))

    def set_class_text(self, label: Any, text: Any) -> Self:
        """Give a class another name, synonyms or description; its documents stay as they are.

        What a name counts stays as it was learned by `fit`; where that had none, it is a default.

        Parameters
        ----------
        label : label
            A label that is no class becomes one that is known by its text alone.
        text : array-like or sparse row of shape (n_terms,), or None
            Counts of the terms of the text. None takes the text away; a class that has no document
            either then disappears.

        Raises
        ------
        ValueError
            If the row does not fit, or the label is of another kind than the classes; the model
            then stays as it is.
        """
        self._fitted()
        rows = None if text is None else read_class_text(text, label, self.n_features_in_)
        return self._apply(Describe(label, "", rows))

    def _read_hierarchy(self, hierarchy: Any, classes: NDArray[Any]) -> Hierarchy | None:
        return None if hierarchy is None else read_hierarchy(hierarchy, classes)

    def _check_parameters(self) -> None:
        cap_candidates(self.candidates, 2)
        check_positive("C", self.C)
        if self.time_budget is not None:
            check_positive("time_budget", self.time_budget)
        if self.search not in ("auto", "exact"):
            raise ValueError(f'search must be "auto" or "exact"; got {self.search!r}.')
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
            search=self.search,
        )

    def _fit_state(
        self, counts: CountMatrix, labels: LabelSets, on_stage: Any, class_texts: Any = None
    ) -> LongTailState:
        if self._n_kept and labels.has_several:
            raise ValueError(
                "memory is for models with one label for each document; leave it out, and give "
                "refine the documents."
            )
        self._check_memory_takes(labels.weights)
        state = fit_long_tail(counts, labels, self._config(), on_stage, class_texts)
        if counts.embeddings is not None and not state.needs_embeddings:
            compared = len(state.check.meaning_figures) > 0
            reason = "fare no better with them" if compared else "are too few to learn from"
            _LOGGER.warning("embeddings are summed up, but not used: held-out documents %s", reason)
        keeps_all = labels.weights is None or are_integral(labels.weights)
        if not self._n_kept and not (self.memory == "auto" and keeps_all and _can_keep(state)):
            return state
        n_pairs = len(state.statistics.indices)
        per_class = self._n_kept or AS_MANY_AS_FIT
        memory = DocumentMemory.of(counts, labels.class_ids, per_class, n_pairs)
        return replace(state, memory=memory)

    @property
    def _n_kept(self) -> int:
        """Documents of each class that are kept from the fit on; 0 where no number was given."""
        return self.memory if isinstance(self.memory, numbers.Integral) else 0

    def _remember(self, memory: str | None) -> Self:
        if memory == "never":
            self.memory = 0
        return self._swap(lambda state: self._keep(state, memory))

    def _keep(self, state: LongTailState, memory: str | None) -> LongTailState:
        """Return the state with a memory for documents to come, or without any."""
        if memory == "never":
            return replace(state, memory=None)
        if memory is None or state.memory is not None or self.memory == 0 or not _can_keep(state):
            return state
        return replace(state, memory=DocumentMemory.empty())

    def _rank(
        self,
        state: LongTailState,
        counts: CountMatrix,
        k: int,
        subsets: ClassSubsets | None = None,
    ) -> tuple[Integers, Floats]:
        return rank_documents(state, counts, self.candidates, k, self.n_jobs, subsets)

    def _rank_calibrated(
        self, state: LongTailState, counts: CountMatrix, subsets: ClassSubsets | None = None
    ) -> tuple[Integers, Floats]:
        """Return all candidates of each document with their probabilities."""
        n_classes, lengths = len(state.all_classes), state.count_terms(counts)
        calibrator = self._calibrator(state)
        if subsets is None:
            class_ids, scores = self._rank(state, counts, n_classes)
            return class_ids, calibrate(scores, calibrator, lengths)
        class_ids, scores = rank_documents(
            state, counts, self.candidates, n_classes, self.n_jobs, subsets, also_whole=True
        )
        k = class_ids.shape[1] // 2
        whole = class_ids[:, k:]
        within = subsets.contain(whole)
        probabilities = calibrate_within(
            scores[:, :k],
            scores[:, k:],
            within,
            subsets.share_of_rest(whole, within),
            calibrator,
            lengths,
        )
        return class_ids[:, :k], probabilities

    def _split_scores(
        self, state: LongTailState, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        documents = state.weigh(counts, self.n_jobs)
        return split_linear_scores(documents, class_ids, state, self.n_jobs)

    def _add_nearest(
        self, found: list[Explanation], state: Any, counts: CountMatrix, class_ids: Integers
    ) -> list[Explanation]:
        names = getattr(self, "feature_names_in_", None)
        nearest = find_nearest_terms(state, counts, class_ids, names)
        return [replace(one, nearest=near) for one, near in zip(found, nearest, strict=True)]

    def _read_class_texts(self, class_texts: Any, labels: Any) -> ClassTexts | None:
        """Return the labels that have a text, and its counts."""
        if class_texts is None:
            return None
        texts = read_class_texts(class_texts, self.n_features_in_)
        if texts is None:
            return None
        check_text_labels(texts[0], labels.classes, labels.form)
        return texts

    def _merged(self, state: LongTailState) -> LongTailState:
        merged = changing.merge(state, self.n_jobs)
        memory = merged.memory
        # What a `Teacher` began and taught nothing leaves no trace in a file.
        begun = self.memory is None and memory is not None and not memory.n_documents
        return replace(merged, memory=None) if begun else merged

    def _take_in(self, state: LongTailState, changes: Changes) -> LongTailState:
        return changing.take_in(state, changes, self.n_jobs)

    def _observe(
        self, state: LongTailState, counts: CountMatrix, labels: NDArray[Any]
    ) -> Observed | None:
        """Return what the model says of documents before they are taught."""
        if not self.adapt:
            return None
        class_ids = look_up(state.all_classes, align_labels(labels, state.all_classes))
        is_told = find_told(state, counts, labels)
        return observe(state, counts, class_ids, self.candidates, self.n_jobs, is_told)

    def _refresh(self, state: LongTailState) -> LongTailState:
        """Bring what all classes share up to date where enough was taught since."""
        is_due = self.adapt and relearning.is_due(state)
        return relearning.refresh(state, self._config()) if is_due else state

    def _check_taught(
        self,
        state: LongTailState,
        labels: NDArray[Any],
        weights: Floats | None,
        *,
        is_text: bool = False,
    ) -> None:
        (check_column if is_text else check_columns)(state.label_form, labels)
        self._check_memory_takes(weights)

    def _check_memory_takes(self, weights: Floats | None) -> None:
        """Refuse fractions where documents are kept: they are taken out as whole ones to learn."""
        if self._n_kept and weights is not None and not are_integral(weights):
            raise ValueError(
                "sample_weight has fractions, which memory cannot keep: use whole weights, or "
                "memory=0."
            )

    def _calibrator(self, state: LongTailState) -> Calibrator:
        """Return the calibrator; warn where there was too little to fit one."""
        if self.calibrate and not state.calibrator.is_calibrated:
            warnings.warn(
                f"probabilities are not calibrated: fewer than {MIN_DOCUMENTS} documents could "
                "be held out (a class of one document has none to spare), or time_budget was too "
                "short. They order predictions, but are no frequencies. Fit with more documents or "
                "time, or without calibration.",
                UncalibratedWarning,
                stacklevel=level_outside(),
            )
        return state.calibrator_in_use if self.calibrate else state.calibrator

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


def _can_keep(state: LongTailState) -> bool:
    """Return whether documents of a model can be kept: with one label each, and counts alone."""
    return not state.several and state.n_dimensions is None


def form_sets(
    classes: NDArray[Any], class_ids: NDArray[Any], sizes: Integers, form: LabelForm
) -> Predicted:
    """Return the first classes of each row, as many as its size, in the form of the labels."""
    kept = np.arange(class_ids.shape[1]) < sizes[:, None]
    labels = classes[class_ids[kept]]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    if not form.is_indicator:
        flat, bounds = labels.tolist(), indptr.tolist()
        return [flat[first:last] for first, last in pairwise(bounds)]
    n_columns = max(form.n_columns, int(classes.max()) + 1)  # classes may be added
    matrix = sp.csr_array(
        (np.ones(len(labels), np.int64), labels, indptr), shape=(len(sizes), n_columns)
    )
    matrix.sort_indices()
    is_dense = LABEL_FORMS[form.form] == "dense indicator" and n_columns <= MAX_DENSE_COLUMNS
    return matrix.toarray() if is_dense else matrix


def expect_unknown(state: LongTailState, share: float) -> LongTailState:
    """Tell a model how many of the documents to come have a class that it does not have."""
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
    told = outcomes.expect_unknown(calibrator, share)
    return replace(state, calibrator=replace(told, unknown_share=float(share)), calibrations=None)


def _document_f1(true: LabelSets, predicted: LabelSets) -> Floats:
    """Return the F1 of each document's predicted set."""
    found = look_up(true.classes, predicted.labels)
    keys = true.document_ids * (len(true.classes) + 1) + true.class_ids
    wanted = predicted.document_ids * (len(true.classes) + 1) + found
    hits = np.isin(wanted, keys) & (found >= 0)
    n_correct = np.bincount(predicted.document_ids[hits], minlength=true.n_documents)
    n_both = true.sizes + predicted.sizes
    return np.where(n_both > 0, 2.0 * n_correct / np.maximum(n_both, 1), 1.0)


def _check_max_labels(max_labels: int | None) -> None:
    """Refuse anything but a whole number of labels."""
    if max_labels is None:
        return
    if not isinstance(max_labels, numbers.Integral) or max_labels < 1:
        raise ValueError(
            f"max_labels must be an integer of at least 1, or None; got {max_labels!r}."
        )
