"""What both classifiers of counts share: validation, prediction, explanation, files.

Everything fitted is one frozen state that an edit replaces as a whole, so a prediction that runs at
the same time sees the state before or after, never a mix.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from longtail._columns import align_labels
from longtail._labels import Labels, LabelSets, as_sets, read_label_sets, weigh_documents
from longtail._progress import StageReporter
from longtail._validation import (
    check_enough_classes,
    check_k,
    check_not_texts,
    check_top_terms,
    find_labels,
    read_class_weights,
    read_weights,
)
from longtail.estimators._editing import EditingMixin
from longtail.estimators._stateful import StatefulEstimator
from longtail.exceptions import NoKnownTermWarning, level_outside
from longtail.explanation import ScoreParts, name_parts
from longtail.results import Explanation, TopK
from longtail.sparse import CountMatrix, Floats, Integers, check_sparse
from longtail.statistics.classes import ClassStatistics
from longtail.store.journal import saving
from longtail.store.state_io import SavedModel, save_state

DENSE_CLASSES = 1_000  # up to here probabilities and decisions are dense arrays
_PLAIN = (sp.csr_array, sp.csr_matrix, np.ndarray)  # counts of these kinds need no conversion


class CountInput(StatefulEstimator):
    """Checks of counts and labels, scikit-learn's and ours."""

    _takes_label_sets = False

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

    def _check_counts(self, X: Any) -> CountMatrix:
        """Return the documents to predict in the kernels' form."""
        if isinstance(X, CountMatrix):  # of a text classifier
            if X.n_documents and X.n_terms == self.n_features_in_:
                return X
            X = X.to_csr()
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

    def _read_class_texts(self, class_texts: Any, labels: LabelSets) -> Any:
        """Return the labels that have a text, sorted, and its counts; None where there is none."""
        if class_texts is not None:
            raise ValueError(
                f"{type(self).__name__} takes no class_texts; LongTailClassifier does."
            )


class CountClassifier(EditingMixin, CountInput):
    """Validation, prediction, explanation and files of a classifier of counts."""

    n_jobs: int | None
    verbose: int
    _sublinear = False
    _feature_names: tuple[str, ...]

    @abstractmethod
    def _fit_state(
        self, counts: CountMatrix, labels: LabelSets, on_stage: Any, class_texts: Any = None
    ) -> Any:
        """Run the stages of a fit."""

    @abstractmethod
    def _rank(self, state: Any, counts: CountMatrix, k: int) -> tuple[Integers, Floats]:
        """Return at most k class ids and scores for each document, best first."""

    @abstractmethod
    def _class_sizes(self, state: Any) -> Integers:
        """Return the number of documents of each class."""

    @abstractmethod
    def _split_scores(
        self, state: Any, counts: CountMatrix, class_ids: Integers
    ) -> list[ScoreParts]:
        """Split the score of each document for one class."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used with any data."""

    def _expectation(self, state: Any) -> str:
        """Return what to expect of a fitted state, in one sentence; empty if unknown."""
        return ""

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        return self._all_classes(self._fitted())

    @property
    def statistics_(self) -> ClassStatistics:
        """The sums of the documents of each class."""
        return self._merged_statistics(self._fitted())

    @property
    def n_documents_(self) -> int:
        """Documents of all classes; where they have weights, what these add up to, rounded."""
        return round(self.statistics_.n_documents)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        class_texts: Any = None,
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

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._unchanged_on_failure():
            given = y
            X, y = self._check_input(X, y, reset=True)
            weights = read_weights(sample_weight, given, y)
            texts = self._read_class_texts(class_texts, as_sets(y))
            X, labels = _number_labels(X, y, weights, None if texts is None else texts[0])
            factors = read_class_weights(getattr(self, "class_weight", None), labels)
            labels = labels if factors is None else labels.with_class_weights(factors)
            counts = CountMatrix.from_matrix(X)
            with StageReporter(self.verbose).listening() as reporter:
                if labels.form.is_multilabel:
                    n_labels = len(labels.class_ids) / labels.n_documents
                    reporter.tell(f"label sets: {n_labels:.2f} labels per document")
                state = self._fit_state(counts, labels, reporter, texts)
                reporter.finish(self._expectation(state))
            with self._lock:
                self._state = state
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best class of each document.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels. A document without a known term has the largest class, with a
            `NoKnownTermWarning`; `predict_topk` has no class there.
        """
        state, counts = self._fitted(), self._check_counts(X)
        class_ids = self._rank(state, counts, 1)[0][:, 0]
        known = has_known_term(state, counts)
        if not known.all():
            _warn_of_unknown(counts.n_documents - int(np.count_nonzero(known)), len(known))
            class_ids[~known] = self._largest_classes(state, 1)[0]
        return np.asarray(self._all_classes(state)[class_ids])

    def _largest_classes(self, state: Any, n: int) -> tuple[Integers, Floats]:
        """Return the n largest classes and their shares of the documents; ties in class order."""
        sizes = self._class_sizes(state)
        largest = np.argsort(-sizes, kind="stable")[:n]
        return largest, sizes[largest] / sizes.sum()

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with their scores.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many; where there are fewer candidates the rest is not `valid`. A document without
            a known term has none.

        Returns
        -------
        TopK
            `classes` and `scores`, each of shape (n_documents, k), best first; ties in class order.
        """
        state, counts = self._fitted(), self._check_counts(X)
        classes = self._all_classes(state)
        k = check_k(k, len(classes))
        class_ids, scores = self._rank(state, counts, k)
        known = has_known_term(state, counts)
        return label_topk(classes, class_ids, scores, k, known, missing=-np.inf)

    def explain(
        self, X: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Split the score of one class for each document into terms and features.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
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
        check_top_terms(top_terms)
        state, counts = self._fitted(), self._check_counts(X)
        labels = self._all_classes(state)
        ranked, scores = self._rank(state, counts, 2)
        if classes is not None:
            explained = find_labels(labels, classes, counts.n_documents)
        else:
            largest = self._largest_classes(state, 1)[0]
            explained = np.where(has_known_term(state, counts), ranked[:, 0], largest)
        others = (ranked != explained[:, None]) & (scores > -np.inf)
        first = others.argmax(axis=1)[:, None]  # the best that is another class
        best = np.take_along_axis(ranked, first, axis=1)[:, 0]
        runners_up = np.where(others.any(axis=1), best, -1)
        compared = np.flatnonzero(runners_up >= 0)
        split = self._split_scores(state, counts.gather(compared), runners_up[compared])
        against = dict(zip(compared.tolist(), split, strict=True))
        mine = self._split_scores(state, counts, explained)
        return name_parts(
            [(parts, against.get(document)) for document, parts in enumerate(mine)],
            labels,
            explained,
            runners_up,
            top_terms,
            getattr(self, "feature_names_in_", None),
            self._feature_names,
        )

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
        names = getattr(self, "feature_names_in_", None)
        with saving(path, discard_changes=discard_changes) as target:
            save_state(target, SavedModel(*self._saved(), {}, names))

    def _saved(self) -> tuple[str, dict[str, dict[str, Any]], Any]:
        """Return name, parameters and state as a file holds them."""
        kind = type(self).__name__
        return kind, {kind: self.get_params(deep=False)}, self._merged(self._fitted())

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
    """Return class ids as labels, filled up to k columns; rows that are not `known` have none."""
    n_found = class_ids.shape[1]
    if n_found == k and known.all():  # the rule; padding takes 10 µs all the same
        return TopK(classes[class_ids], np.ascontiguousarray(scores), scores > -np.inf)
    shape = len(class_ids), k
    labels, filled = np.full(shape, _no_label(classes), classes.dtype), np.full(shape, missing)
    valid = np.zeros(shape, np.bool_)
    labels[:, :n_found], filled[:, :n_found] = classes[class_ids], scores
    valid[:, :n_found] = True
    labels[~known], filled[~known], valid[~known] = _no_label(classes), missing, False
    return TopK(labels, filled, valid)


def has_known_term(state: Any, counts: CountMatrix) -> NDArray[np.bool_]:
    """Return which documents have a term that is evidence for at least one class."""
    is_known = np.append(False, np.cumsum(state.known_terms[counts.indices]))
    return is_known[counts.indptr[1:]] > is_known[counts.indptr[:-1]]


def _warn_of_unknown(n_unknown: int, n_documents: int) -> None:
    """Say how many documents got the largest class because no term of theirs is known."""
    warnings.warn(
        f"{n_unknown:,} of {n_documents:,} documents have no known term; predict gives them the "
        "largest class. predict_topk leaves them without a class.",
        NoKnownTermWarning,
        stacklevel=level_outside(),
    )


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


def _no_label(classes: NDArray[Any]) -> Any:
    """Return what stands where there is no class."""
    return {"O": None, "U": "", "f": np.nan, "b": False, "u": 0}.get(classes.dtype.kind, -1)
