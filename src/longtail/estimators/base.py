"""The base of all estimators, and that of the classifiers of counts.

Everything fitted is one frozen state that an edit replaces as a whole, so a prediction that runs at
the same time sees the state before or after, never a mix. What the user gives becomes counts in
`count`; everything behind it is the same for counts and for texts.
"""

from __future__ import annotations

import copy
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from longtail._columns import align_labels
from longtail._labels import (
    Labels,
    LabelSets,
    as_sets,
    flat_labels,
    read_label_sets,
    replicate,
    weigh_documents,
)
from longtail._progress import StageReporter
from longtail._validation import (
    check_among,
    check_enough_classes,
    check_integer,
    check_k,
    check_not_texts,
    find_labels,
    read_class_weights,
    read_weights,
    weigh_rows,
)
from longtail.estimators.within import read_subsets
from longtail.exceptions import NoKnownTermWarning, level_outside
from longtail.model.edits import Edit, Forget, Merge, Remove, Rename, Teach
from longtail.model.embeddings import GivenDocuments, read_embeddings
from longtail.model.entry import Changes
from longtail.model.explanation import ScoreParts, name_parts
from longtail.model.overlay import Overlay
from longtail.model.statistics import ClassStatistics
from longtail.results import Explanation, TopK, html_table
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers, check_sparse
from longtail.store.forking import Turn
from longtail.store.journal import saving
from longtail.store.state_io import SavedModel, save_state

DENSE_CLASSES = 1_000  # up to here probabilities and decisions are dense arrays
_PLAIN = (sp.csr_array, sp.csr_matrix, np.ndarray)  # counts of these kinds need no conversion


Method = TypeVar("Method")


def if_classifier_has(name: str) -> Callable[[Method], Method]:
    """Return a decorator: the method exists where the classifier of counts has one of the name."""

    def check(estimator: Any) -> bool:
        getattr(type(estimator._classifier_of_counts()), name)  # AttributeError if it has not
        return True

    decorate: Callable[[Method], Method] = available_if(check)
    return decorate


class Classifier(ClassifierMixin, BaseEstimator):
    """An estimator whose fitted parts are one frozen state, swapped under a lock."""

    takes_texts: ClassVar[bool]  # otherwise counts
    n_jobs: int | None
    verbose: int
    _state: Any

    @abstractmethod
    def count(self, documents: Any) -> CountMatrix:
        """Return documents, as `predict` takes them, as counts of the model's terms."""

    @property
    @abstractmethod
    def classifier_(self) -> CountClassifier:
        """The fitted classifier of counts."""

    @abstractmethod
    def _classifier_of_counts(self) -> CountClassifier:
        """Return the classifier of counts, fitted or not, whose kind decides what there is."""

    def set_threads(self, n_jobs: int | None) -> Self:
        """Set the number of threads that predicting and changing the fitted model take.

        Parameters
        ----------
        n_jobs : int or None
            None is one, -1 is every core.
        """
        self.n_jobs = n_jobs
        return self

    @property
    @abstractmethod
    def _arrays(self) -> Any:
        """The arrays that were fitted on counts."""

    @abstractmethod
    def _take_changes(self, changes: Changes, vocabulary: Any = None) -> Self:
        """Swap in the model after changes, whose new terms a vocabulary may have already."""

    @abstractmethod
    def _change_arrays(self, change: Callable[[Any], Any]) -> Self:
        """Swap in the arrays that a function makes of the present ones."""

    def _over(self, row_ids: Integers, n_ids: int, hidden: dict[int, Any]) -> Self:
        """Let the classes of a model without an overlay have other persistent ids."""
        return self._change_arrays(
            lambda base: replace(base, overlay=Overlay.over(base.base, row_ids, n_ids, hidden))
        )

    def _remember(self, memory: str | None) -> Self:
        """Keep the documents that are taught ("auto"), or none at all ("never"), where it can."""
        return self

    @property
    def _needs_encoder(self) -> bool:
        """Whether an encoder of texts is to be given that is not there."""
        return not self.takes_texts

    def _use_embedder(self, encode: Any) -> None:
        """Take the encoder of a model that was opened without it."""
        raise ValueError("this model takes counts: give it embeddings=, not an embedder.")

    @abstractmethod
    def _apply(self, edit: Edit) -> Self:
        """Swap in the model that an edit makes of the present one."""

    @property
    def multilabel_(self) -> bool:
        """Whether a document may have several labels: `predict` then gives label sets."""
        form = getattr(self._arrays, "label_form", None)
        return form is not None and form.is_multilabel

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        classes: NDArray[Any] = self._arrays.all_classes
        return classes

    @property
    def statistics_(self) -> ClassStatistics:
        """The sums of the documents of each class."""
        statistics: ClassStatistics = self._arrays.all_statistics
        limited = statistics.limited_frequencies
        is_same = limited is statistics.document_frequencies
        return statistics if is_same else replace(statistics, document_frequencies=limited)

    @property
    def n_documents_(self) -> int:
        """Documents; of a model of label sets those of the last fit, each counted once.

        Where documents have weights, what these add up to, rounded.
        """
        if self.multilabel_:  # the statistics count a document once for each of its labels
            return int(self._arrays.n_fitted_documents)
        return round(self.statistics_.n_documents)

    @property
    def _lock(self) -> Any:
        """The lock around edits; a copy, a pickle or a forked process gets a new one."""
        return self.__dict__.setdefault("_turn", Turn()).lock

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of copies and pickles."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_turn"}

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a state."""
        return hasattr(self, "_state")

    def _fitted(self) -> Any:
        """Return the state as it is, or say that there is none yet."""
        if not self.__sklearn_is_fitted__():  # scikit-learn's own check takes 0.1 ms
            check_is_fitted(self)
        return self._state

    @property
    def state_(self) -> Any:
        """Everything that is fitted, a frozen dataclass of arrays; not to be changed."""
        return self._fitted()

    @classmethod
    def from_state(cls, state: Any, **parameters: Any) -> Self:
        """Return an estimator with these parameters and a state that was fitted elsewhere."""
        estimator = cls(**parameters)
        estimator._adopt(state)
        return estimator

    def _adopt(self, state: Any) -> None:
        """Take a state that was fitted elsewhere, in place of what was fitted before."""
        with self._lock:
            self._state = state

    def _swap(self, change: Callable[[Any], Any]) -> Self:
        """Swap in the state that a function makes of the present one."""
        self._fitted()
        with self._lock:
            self._state = change(self._fitted())
        return self

    def rename_class(self, old: Any, new: Any) -> Self:
        """Give a class another label; everything it knows stays.

        Parameters
        ----------
        old, new : label
            `new` must not be the label of another class; see `merge_classes`.
        """
        return self._apply(Rename(old, new))

    def merge_classes(self, source: Any, into: Any) -> Self:
        """Add the documents of one class to another; the first then no longer exists.

        Parameters
        ----------
        source, into : label
            Two different classes of the model. What `into` has learned stays until the next
            `refine`.
        """
        return self._apply(Merge(source, into))

    def remove_class(self, label: Any) -> Self:
        """Remove a class with all its documents.

        The class's sums do not tell how many of its documents had a term, so the document
        frequencies stay (at most as many as there are documents); `forget` with the documents is
        exact.

        Parameters
        ----------
        label : label
            A class of the model.
        """
        return self._apply(Remove(label))

    def save(self, path: str | os.PathLike[str], *, discard_changes: bool = False) -> None:
        """Write the fitted model to one file for `longtail.load`; nothing in it can run code.

        Parameters
        ----------
        path : path-like
            The file. It is replaced at once or not at all.
        discard_changes : bool, default=False
            A model whose journal holds changes that `Teacher` made is not replaced, unless this
            says that they may be dropped.
        """
        saved = self._saved()
        with saving(path, discard_changes=discard_changes) as target:
            save_state(target, saved)

    @abstractmethod
    def _saved(self) -> SavedModel:
        """Return the model without an overlay, as a file holds it."""

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Put every attribute back where a fit fails or is interrupted."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's picture with the sizes of the model below it."""
        picture: str = super()._repr_html_inner()
        if not self.__sklearn_is_fitted__():
            return picture
        return picture + html_table(self._facts().items())

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what a notebook shows of the model: names and values without markup."""


class CountClassifier(Classifier):
    """Validation, prediction, explanation and files of a classifier of counts."""

    takes_texts = False
    _takes_label_sets = False
    _takes_embeddings = False
    _sublinear = False
    _feature_names: tuple[str, ...]

    @abstractmethod
    def _fit_state(
        self, counts: CountMatrix, labels: LabelSets, on_stage: Any, class_texts: Any = None
    ) -> Any:
        """Run the stages of a fit."""

    @abstractmethod
    def _rank(
        self, state: Any, counts: CountMatrix, k: int, subsets: ClassSubsets | None = None
    ) -> tuple[Integers, Floats]:
        """Return at most k class ids and scores for each document, best first.

        Where a document's subset has fewer classes, -1 with a score of -inf.
        """

    @abstractmethod
    def _merged(self, state: Any) -> Any:
        """Return a state without an overlay."""

    @abstractmethod
    def _take_in(self, state: Any, changes: Changes) -> Any:
        """Return the state after changes."""

    def _observe(self, state: Any, counts: CountMatrix, labels: NDArray[Any]) -> Any:
        """Return what the model says of documents before they are taught; None for nothing."""
        return None

    def _refresh(self, state: Any) -> Any:
        """Bring what all classes share up to date where enough was taught since."""
        return state

    def _check_taught(
        self, state: Any, labels: NDArray[Any], weights: Floats | None, *, is_text: bool = False
    ) -> None:
        """Refuse labels and weights that a model of this kind cannot have."""

    @abstractmethod
    def _split_scores(
        self, state: Any, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        """Split the score of each document for one class."""

    @abstractmethod
    def _add_nearest(
        self, found: list[Explanation], state: Any, counts: CountMatrix, class_ids: Integers
    ) -> list[Explanation]:
        """Return explanations with the nearest documents of their classes, if any are kept."""
        return found

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used with any data."""

    def _expectation(self, state: Any) -> str:
        """Return what to expect of a fitted state, in one sentence; empty if unknown."""
        return ""

    @property
    def classifier_(self) -> Self:
        """The fitted classifier of counts: this one."""
        self._fitted()
        return self

    def _classifier_of_counts(self) -> Self:
        return self

    def _adopt(self, state: Any) -> None:
        with self._lock:
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self.n_features_in_ = state.statistics.n_terms
            self._state = state

    @property
    def _arrays(self) -> Any:
        return self._fitted()

    def _take_changes(self, changes: Changes, vocabulary: Any = None) -> Self:
        return self._swap(lambda state: self._take_in(state, changes))

    def _without_names(self) -> Self:
        """Return a copy without the names of columns, with which counts were compared before."""
        copied = copy.copy(self)
        copied.__dict__.pop("feature_names_in_", None)
        return copied

    def _apply(self, edit: Edit) -> Self:
        return self._swap(lambda state: edit.apply(self, state))

    def _change_arrays(self, change: Callable[[Any], Any]) -> Self:
        return self._swap(change)

    def _swap(self, change: Callable[[Any], Any]) -> Self:
        with self._lock:
            super()._swap(change)
            self.n_features_in_ = self._fitted().statistics.n_terms
        return self

    def count(self, documents: Any, embeddings: Any = None) -> CountMatrix:
        """Return documents as counts of the model's terms, with their embeddings.

        Parameters
        ----------
        documents : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        embeddings : array-like of shape (n_documents, n_dimensions), optional
            Those of the documents, for a model that was fitted with embeddings.
        """
        X = documents
        if isinstance(X, CountMatrix):  # of a text classifier
            if X.n_documents and X.n_terms == self.n_features_in_:
                return X
            X = X.to_csr()
        counts = self._count(X)
        given = self._read_embeddings(embeddings, counts.n_documents)
        return counts if given is None else replace(counts, embeddings=given)

    def _count(self, X: Any) -> CountMatrix:
        """Return a matrix as counts, after scikit-learn's checks where it needs any."""
        needs_no_check = (  # scikit-learn's checks take 0.2 ms
            isinstance(X, _PLAIN)
            and X.ndim == 2
            and X.dtype.kind in "iuf"
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )
        if not needs_no_check:
            check_not_texts(X)
            check_sparse(X)
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric")
        return CountMatrix.from_matrix(X)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        class_texts: Any = None,
        hierarchy: Any = None,
        embeddings: Any = None,
    ) -> Self:
        """Learn from counts and labels.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Labels, strings or integers. `LongTailClassifier` takes label sets as well: a list of
            lists, or a sparse or dense indicator matrix. A document with an empty set belongs to
            no class, and is a negative for all.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents each counts, such as 0.5 or 2; 0 leaves it out. For label sets
            also a weight of each label, as a list of lists or a matrix like `y`.
        class_texts : mapping of label to row, or pair (labels, matrix), optional
            For `LongTailClassifier`: counts of the terms of each class's name, synonyms or
            description, one row of n_terms each; None for a class that has none. A class with a
            text and no document can be predicted, and how much a name counts is learned on held-out
            documents.
        hierarchy : mapping, pairs, table of two columns or str, optional
            For `LongTailClassifier`: the parents of classes and inner nodes; see `set_hierarchy`.
            It changes no score.
        embeddings : array-like of shape (n_documents, n_dimensions), optional
            For `LongTailClassifier`: a vector of meaning for each document, as a sentence encoder
            gives it; only its direction counts. They are kept where held-out documents fare better
            with them; a row of zeros is a document without a vector.
        """
        self._check_parameters()
        with self._unchanged_on_failure():
            X, y, weights = self._read(X, y, sample_weight, embeddings, reset=True)
            texts = None
            if class_texts is not None:  # label sets of every document are made for these alone
                texts = self._read_class_texts(class_texts, as_sets(y))
            X, labels = _number_labels(X, y, weights, None if texts is None else texts[0])
            factors = read_class_weights(getattr(self, "class_weight", None), labels)
            labels = labels if factors is None else labels.with_class_weights(factors)
            counts = X.to_counts()
            with StageReporter(self.verbose).listening() as reporter:
                if labels.form.is_multilabel:
                    n_labels = len(labels.class_ids) / labels.n_documents
                    reporter.tell(f"label sets: {n_labels:.2f} labels per document")
                nodes = self._read_hierarchy(hierarchy, labels.classes)
                state = self._fit_state(counts, labels, reporter, texts)
                if nodes is not None:
                    state = replace(state, hierarchy=nodes)
                reporter.finish(self._expectation(state))
            with self._lock:
                self._state = state
        return self

    def predict(
        self, X: Any, *, within: Any = None, exclude: Any = None, embeddings: Any = None
    ) -> NDArray[Any]:
        """Return the best class of each document.

        A document without a known term has the largest class that it may have, with a
        `NoKnownTermWarning`; `predict_topk` has no class there. Parameters are those of
        `LongTailClassifier.predict_topk`.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        subsets = read_subsets(within, exclude, state.all_classes, counts.n_documents)
        class_ids = self._rank(state, counts, 1, subsets)[0][:, 0]
        known = state.have_evidence(counts)
        if not known.all():
            _warn_of_unknown(counts.n_documents - int(np.count_nonzero(known)), len(known))
            if subsets is None:
                class_ids[~known] = self._largest_classes(state, 1)[0]
            else:
                largest, _ = self._largest_classes(state, len(state.all_classes))
                class_ids[~known] = subsets.gather(np.flatnonzero(~known)).first_of(largest)
        return np.asarray(state.all_classes[class_ids])

    def _largest_classes(self, state: Any, n: int) -> tuple[Integers, Floats]:
        """Return the n largest classes and their shares of the documents; ties in class order."""
        sizes = state.class_sizes
        largest = np.argsort(-sizes, kind="stable")[:n]
        return largest, sizes[largest] / sizes.sum()

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        within: Any = None,
        exclude: Any = None,
        embeddings: Any = None,
    ) -> TopK:
        """Return the k best classes of each document with their scores.

        Parameters and result are those of `LongTailClassifier.predict_topk`.
        """
        state, counts = self._fitted(), self.count(X, embeddings)
        classes = state.all_classes
        k = check_k(k, len(classes))
        subsets = read_subsets(within, exclude, classes, counts.n_documents)
        class_ids, scores = self._rank(state, counts, k, subsets)
        known = state.have_evidence(counts)
        return label_topk(classes, class_ids, scores, k, known, missing=-np.inf)

    def explain(
        self,
        X: Any,
        classes: ArrayLike | None = None,
        top_terms: int = 10,
        *,
        embeddings: Any = None,
    ) -> list[Explanation]:
        """Split the score of one class for each document into terms and features.

        Parameters
        ----------
        X, embeddings
            As in `LongTailClassifier.predict_topk`.
        classes : array-like of shape (n_documents,), optional
            The label to explain for each document; the predicted one when left out.
        top_terms : int, default=10
            How many terms to name, those first whose contribution differs most from that to the
            runner-up; the others are summed up in `rest`.

        Returns
        -------
        list of Explanation
            Terms are named by column id, or by column name where `fit` was given names.
        """
        check_integer("top_terms", top_terms, 0)
        state, counts = self._fitted(), self.count(X, embeddings)
        labels = state.all_classes
        ranked, scores = self._rank(state, counts, 2)
        if classes is not None:
            explained = find_labels(labels, classes, counts.n_documents)
        else:
            largest = self._largest_classes(state, 1)[0]
            explained = np.where(state.have_evidence(counts), ranked[:, 0], largest)
        others = (ranked != explained[:, None]) & (scores > -np.inf)
        first = others.argmax(axis=1)[:, None]  # the best that is another class
        best = np.take_along_axis(ranked, first, axis=1)[:, 0]
        runners_up = np.where(others.any(axis=1), best, -1)
        compared = np.flatnonzero(runners_up >= 0)
        split = self._split_scores(state, counts.gather(compared), runners_up[compared])
        against = dict(zip(compared.tolist(), split, strict=True))
        mine = self._split_scores(state, counts, explained)
        found = name_parts(
            [(parts, against.get(document)) for document, parts in enumerate(mine)],
            labels,
            explained,
            runners_up,
            top_terms,
            getattr(self, "feature_names_in_", None),
            self._feature_names,
        )
        return self._add_nearest(found, state, counts, explained)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
        *,
        embeddings: Any = None,
    ) -> Self:
        """Add documents of known or new classes to the statistics; on an unfitted estimator, fit.

        The learned parts stay as they are; the classes changed are kept in an overlay, so it costs
        little.

        Parameters
        ----------
        X, y, sample_weight, embeddings
            As in `fit`.
        classes : array-like, optional
            Where given, every label must be among them. Classes without documents are not kept.
        """
        if classes is not None:
            check_among(flat_labels(read_label_sets(y)), classes)
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, embeddings=embeddings)
        X, y, weights = self._read(X, y, sample_weight, embeddings)
        X, labels, weights = weigh_rows(*replicate(X, y), weights)
        if not len(labels):  # documents of no class
            return self
        edit = Teach(X.to_counts(), labels, weights)
        return self._swap(lambda state: self._refresh(edit.apply(self, state)))

    def forget(self, X: Any, y: Any, sample_weight: Any = None, *, embeddings: Any = None) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        The model keeps sums, not documents: it notices a document whose terms, counts or class its
        sums cannot contain, and accepts any other.

        Parameters
        ----------
        X, embeddings
            The same as when they were added.
        y : array-like of shape (n_documents,), or label sets
            The same labels as when they were added; of a label set, those to forget: the document
            stays in its other classes.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents they counted when they were added. Of a document of weight 2 one
            may be forgotten, too; a fraction is forgotten as it was added.

        Raises
        ------
        ValueError
            If the sums cannot contain the documents, or none would be left; the model then stays
            as it is.
        """
        self._fitted()
        X, y, weights = self._read(X, y, sample_weight, embeddings)
        X, labels, weights = weigh_rows(*replicate(X, y), weights)
        if not len(labels):  # documents of no class
            return self
        return self._apply(Forget(X.to_counts(), labels, weights))

    def _saved(self) -> SavedModel:
        kind = type(self).__name__
        names = getattr(self, "feature_names_in_", None)
        state = self._merged(self._fitted())
        return SavedModel(kind, {kind: self.get_params(deep=False)}, state, {}, names)

    def _read(
        self, X: Any, y: Any, sample_weight: Any, embeddings: Any = None, *, reset: bool = False
    ) -> tuple[GivenDocuments, Labels, Floats | None]:
        """Return documents, labels and weights after scikit-learn's checks and ours."""
        X, labels = self._check_input(X, y, reset=reset)
        weights = read_weights(sample_weight, y, labels)
        given = self._read_embeddings(embeddings, X.shape[0], reset=reset)
        if given is None and not reset and self._n_dimensions is not None:
            raise ValueError(
                "this model sums up the embeddings of its documents: give those of these documents "
                "as embeddings=."
            )
        return GivenDocuments(X, given), labels, weights

    @property
    def _n_dimensions(self) -> int | None:
        """Dimensions of the embeddings that the model was fitted with."""
        n_dimensions: int | None = getattr(self._fitted(), "n_dimensions", None)
        return n_dimensions

    def _check_takes_embeddings(self) -> None:
        """Refuse embeddings where the classifier knows none."""
        if not self._takes_embeddings:
            raise ValueError(f"{type(self).__name__} takes no embeddings; LongTailClassifier does.")

    def _read_embeddings(
        self, embeddings: Any, n_documents: int, *, reset: bool = False
    ) -> NDArray[np.int16] | None:
        """Return the embeddings of documents in fixed point; None where none were given."""
        if embeddings is None:
            return None
        self._check_takes_embeddings()
        if reset:
            return read_embeddings(embeddings, n_documents)
        if self._n_dimensions is None:
            raise ValueError(
                "this model was fitted without embeddings: leave them out, or fit a new one with "
                "them."
            )
        return read_embeddings(embeddings, n_documents, self._n_dimensions)

    def _check_input(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Labels]:
        """Return counts and labels after scikit-learn's checks and ours."""
        y = read_label_sets(y, getattr(self, "multilabel", "auto"))
        check_not_texts(X)
        check_sparse(X)  # before anything converts it
        if isinstance(y, LabelSets):
            return self._check_sets(X, y, reset=reset), y
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype="numeric")
        y = np.asarray(y)
        if y.dtype.kind in "fc":  # for others it only warns that there are many classes
            check_classification_targets(y)
        return X, y

    def _check_sets(self, X: Any, labels: LabelSets, *, reset: bool) -> Any:
        """Return the counts of documents with label sets, or say why they cannot have any."""
        if not reset or not self._takes_label_sets:
            self._check_takes(labels)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric")
        if X.shape[0] != labels.n_documents:
            raise ValueError(
                "X and y have inconsistent numbers of samples: "
                f"{X.shape[0]} documents, {labels.n_documents} label sets."
            )
        return X

    def _check_takes(self, y: Labels) -> None:
        """Refuse label sets where a document has one label."""
        if not isinstance(y, LabelSets):
            return
        if not self._takes_label_sets:
            raise ValueError(
                f"{type(self).__name__} takes one label for each document; y has label sets. "
                "Replicate each row, as the paper does: once for each of its labels."
            )
        if not self._fitted().label_form.is_multilabel and y.has_several:
            raise ValueError(
                "y has label sets, but this model was fitted with one label for each document. "
                "Fit a new one with label sets, or with multilabel=True."
            )

    def _read_class_texts(self, class_texts: Any, labels: LabelSets) -> Any:
        """Return the labels that have a text, sorted, and its counts; None where there is none."""
        if class_texts is not None:
            raise ValueError(
                f"{type(self).__name__} takes no class_texts; LongTailClassifier does."
            )

    def _read_hierarchy(self, hierarchy: Any, classes: NDArray[Any]) -> Any:
        """Return the hierarchy of classes, or None where none was given."""
        if hierarchy is not None:
            raise ValueError(f"{type(self).__name__} takes no hierarchy; LongTailClassifier does.")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's check wants 83 % on dense blobs in the plane, where every "document" has
        # every "term"; a direction (cosine, shared terms) cannot tell such clusters apart.
        tags.classifier_tags.poor_score = True
        return tags

    def _facts(self) -> dict[str, str]:
        """Return the sizes of the model."""
        statistics = self.statistics_
        return {
            "classes": f"{statistics.n_classes:,}",
            "documents": f"{self.n_documents_:,}",
            "terms": f"{statistics.n_terms:,}",
        }


def _number_labels(
    X: Any, y: Labels, weights: Floats | None = None, named: NDArray[Any] | None = None
) -> tuple[Any, LabelSets]:
    """Return labels as ids of sorted classes, of which there are two at least, and their rows.

    A document all of whose labels have the weight 0 is left out.
    """
    if isinstance(y, LabelSets):
        labels = y
    else:
        classes, class_ids = np.unique(y, return_inverse=True)
        labels = LabelSets.single(class_ids, classes)
    X, labels = weigh_documents(X, labels, weights)
    labels = labels.drop_unused_classes()
    if named is not None:
        labels = labels.with_classes(
            np.union1d(labels.classes, align_labels(named, labels.classes))
        )
    check_enough_classes(labels.classes)
    return X, labels


def label_topk(
    classes: NDArray[Any],
    class_ids: NDArray[Any],
    scores: Floats,
    k: int,
    known: NDArray[np.bool_],
    missing: float,
) -> TopK:
    """Return class ids as labels, filled up to k columns; rows that are not `known` have none.

    -1 is no class.
    """
    n_found = class_ids.shape[1]
    is_full = n_found == 0 or class_ids[:, -1].min(initial=0) >= 0
    if n_found == k and is_full and known.all():  # the rule; padding takes 10 µs all the same
        return TopK(classes[class_ids], np.ascontiguousarray(scores), scores > -np.inf)
    shape = len(class_ids), k
    labels, filled = np.full(shape, no_label(classes), classes.dtype), np.full(shape, missing)
    valid = np.zeros(shape, np.bool_)
    labels[:, :n_found], filled[:, :n_found] = classes[class_ids], scores
    valid[:, :n_found] = class_ids >= 0
    labels[~valid], filled[~valid] = no_label(classes), missing
    labels[~known], filled[~known], valid[~known] = no_label(classes), missing, False
    return TopK(labels, filled, valid)


def _warn_of_unknown(n_unknown: int, n_documents: int) -> None:
    """Say how many documents got the largest class because no term of theirs is known."""
    warnings.warn(
        f"{n_unknown:,} of {n_documents:,} documents have no known term; predict gives them the "
        "largest class. predict_topk leaves them without a class.",
        NoKnownTermWarning,
        stacklevel=level_outside(),
    )


def scatter_rows(class_ids: Integers, values: Floats, n_classes: int, missing: float) -> Any:
    """Return values of some classes in each row as a matrix of all classes; -1 is no class."""
    n_documents = len(class_ids)
    if n_classes <= DENSE_CLASSES:
        dense = np.full((n_documents, n_classes + 1), missing)  # -1 is the last column
        np.put_along_axis(dense, class_ids.astype(np.int64), values, axis=1)
        return np.ascontiguousarray(dense[:, :n_classes])
    is_there = class_ids >= 0
    indptr = np.append(0, np.cumsum(np.count_nonzero(is_there, axis=1)))
    matrix = sp.csr_array(
        (values[is_there], class_ids[is_there], indptr), shape=(n_documents, n_classes)
    )
    matrix.sort_indices()
    return matrix


def no_label(classes: NDArray[Any]) -> Any:
    """Return what stands where there is no class."""
    return {"O": None, "U": "", "f": np.nan, "b": False, "u": 0}.get(classes.dtype.kind, -1)
