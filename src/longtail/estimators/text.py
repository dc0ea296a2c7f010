"""Raw text in: a vocabulary and a classifier of counts, behind one estimator."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from longtail._validation import check_among, check_known, check_same_kind
from longtail.estimators._added_documents import (
    AddedDocuments,
    count_as_added,
    count_by_class_terms,
)
from longtail.estimators._base import CountClassifier, StatefulEstimator
from longtail.estimators.long_tail import LongTailClassifier
from longtail.results import Explanation, Threshold, TopK
from longtail.statistics.classes import ClassStatistics
from longtail.store.journal import saving
from longtail.store.state_io import SavedModel, save_state
from longtail.text import TextVectorizer, Vocabulary, extend_vocabulary
from longtail.text.vectorizer import tokenizer_options


@dataclass(frozen=True)
class TextModel:
    """The fitted parts, replaced as a whole; the first `n_fitted` terms are those of the fit.

    `added` tells how documents were counted; a file of an earlier version may not have it.
    """

    vocabulary: Vocabulary
    classifier: CountClassifier
    n_fitted: int
    added: AddedDocuments | None


class TextClassifier(StatefulEstimator):
    """Classify texts into very many classes, most of them rare.

    Parameters
    ----------
    classifier : LongTailClassifier, DoubleSamplingClassifier or None, default=None
        Unfitted; gets the counts. None is a `LongTailClassifier` with the `random_state` and
        `n_jobs` given here.
    ngrams : int, default=2
        1: the words are the terms. 2: pairs of neighbours as well.
    char_ngrams : tuple of two int, or None, default=None
        Shortest and longest character n-gram inside words; None for none.
    min_df : int, default=1
        Words in fewer documents are left out by `fit`.
    ngram_min_df : int, default=2
        Pairs of words and character n-grams in fewer documents are left out by `fit`.
    ngram_weight : float, default=0.5
        What an occurrence of a pair or character n-gram counts, where a word counts 1.
    fold_accents : bool, default=True
        Whether é counts as e.
    stem : bool, default=False
        Whether English plural endings are cut.
    remember_documents : bool, default=False
        Keep a hash of every document (24 bytes each), so that `forget` and `refine` refuse one that
        was never added. Without, they notice only what does not fit the sums of its class.
    random_state : int, RandomState or None, default=None
        For the default classifier.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    classifier_ : LongTailClassifier or DoubleSamplingClassifier
        The fitted classifier of counts.
    vocabulary_ : Vocabulary
        The terms.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    weights_ : dict of str to float
        Weight of each feature.

    Examples
    --------
    >>> from longtail import TextClassifier
    >>> texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs"]
    >>> classifier = TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox"])
    >>> classifier.predict(["honey for the bear"]).tolist()
    ['bear']
    >>> classifier.partial_fit(["an owl hoots"], ["owl"]).predict(["it hoots"]).tolist()
    ['owl']
    """

    _state: TextModel

    def __init__(
        self,
        classifier: CountClassifier | None = None,
        ngrams: int = 2,
        char_ngrams: tuple[int, int] | None = None,
        min_df: int = 1,
        ngram_min_df: int = 2,
        ngram_weight: float = 0.5,
        fold_accents: bool = True,
        stem: bool = False,
        remember_documents: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.ngrams = ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.ngram_min_df = ngram_min_df
        self.ngram_weight = ngram_weight
        self.fold_accents = fold_accents
        self.stem = stem
        self.remember_documents = remember_documents
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        return self._fitted().classifier.classes_

    @property
    def classifier_(self) -> CountClassifier:
        """The fitted classifier of counts."""
        return self._fitted().classifier

    @property
    def vocabulary_(self) -> Vocabulary:
        """The terms."""
        return self._fitted().vocabulary

    @property
    def statistics_(self) -> ClassStatistics:
        """The sums of the documents of each class."""
        return self._fitted().classifier.statistics_

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature."""
        weights: dict[str, float] = _learner(self._fitted()).weights_
        return weights

    # ---- learning

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and labels.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : array-like of shape (n_documents,)
            Labels, strings or integers.

        Returns
        -------
        self
        """
        return self.fit_chunks([(texts, y)])

    def fit_chunks(self, chunks: Iterable[tuple[Any, ArrayLike]]) -> Self:
        """Learn from texts and labels that come in chunks; the same model as from one `fit`.

        Of each text only the numbers of its terms stay in memory.

        Parameters
        ----------
        chunks : iterable of (texts, labels)
            Gone through once.

        Returns
        -------
        self
        """
        classifier = self._new_classifier()
        labels: list[NDArray[Any]] = []

        def texts_of_chunks() -> Iterable[Any]:
            for texts, y in chunks:
                labels.append(np.asarray(y))
                yield texts

        vectorizer = self._new_vectorizer()
        X = vectorizer.fit_chunks(texts_of_chunks())
        vocabulary = vectorizer.vocabulary_
        y = np.concatenate(labels)
        classifier.fit(X, y)
        added = AddedDocuments.empty(complete=bool(self.remember_documents))
        added = added.add(X, np.searchsorted(classifier.classes_, y), vocabulary.n_terms)
        with self._lock:
            self._state = TextModel(vocabulary, classifier, vocabulary.n_terms, added)
        return self

    def partial_fit(self, texts: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Add documents of known or new classes, and their new terms; on an unfitted one, fit.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : array-like of shape (n_documents,)
            Labels.
        classes : array-like, optional
            Where given, every label must be among them.

        Returns
        -------
        self
        """
        if not self.__sklearn_is_fitted__():
            if classes is not None:
                check_among(y, classes)
            return self.fit(texts, y)
        with self._lock:
            model = self._fitted()
            vocabulary = extend_vocabulary(model.vocabulary, texts, self.n_jobs)
            classifier = copy.copy(model.classifier)
            if vocabulary.n_terms > model.vocabulary.n_terms:
                classifier._grow_terms(vocabulary.n_terms)
            X = vocabulary.count(texts, self.n_jobs)
            classifier.partial_fit(X, y, classes)
            added = model.added
            if added is not None:
                added = added.follow(model.classifier.classes_, classifier.classes_)
                class_ids = np.searchsorted(classifier.classes_, np.asarray(y))
                added = added.add(X, class_ids, model.n_fitted)
            self._state = replace(model, vocabulary=vocabulary, classifier=classifier, added=added)
        return self

    def forget(self, texts: Any, y: ArrayLike) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        A document is counted as it was when it was added: one of the fit with the terms of the
        fit, a later one with those that it brought as well. A document that was never added is
        noticed for certain with `remember_documents`; without, where a term, a count or the number
        of documents is more than its class has, which in a large class may not be so.

        Parameters
        ----------
        texts : sequence of str
            The same texts as when they were added.
        y : array-like of shape (n_documents,)
            The same labels as when they were added.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a document was never added, or none would be left; the model then stays as it is.
        """
        self._fitted()
        with self._lock:
            model = self._fitted()
            X, added = self._count_as_added(model, texts, y)
            classifier = copy.copy(model.classifier)
            classifier.forget(X, y)
            if added is not None:
                added = added.follow(model.classifier.classes_, classifier.classes_)
            self._state = replace(model, classifier=classifier, added=added)
        return self

    def refine(self, texts: Any, y: ArrayLike) -> Self:
        """Learn the weights of the classes touched since the last fit or refine anew.

        Parameters
        ----------
        texts : sequence of str
            Documents that the model has been taught: those of the touched classes, and as many
            others as there are.
        y : array-like of shape (n_documents,)
            Their labels.

        Returns
        -------
        self
        """
        return self._teach(
            lambda classifier, model: classifier.refine(self._count_as_added(model, texts, y)[0], y)
        )

    def rename_class(self, old: Any, new: Any) -> Self:
        """Give a class another label; see the classifier of counts."""
        return self._teach(lambda classifier, _: classifier.rename_class(old, new), (old, new))

    def merge_classes(self, source: Any, into: Any) -> Self:
        """Add the documents of one class to another; see the classifier of counts."""
        return self._teach(
            lambda classifier, _: classifier.merge_classes(source, into), (source, into)
        )

    def remove_class(self, label: Any) -> Self:
        """Remove a class with all its documents; see the classifier of counts."""
        return self._teach(lambda classifier, _: classifier.remove_class(label))

    # ---- predicting

    def predict(self, texts: Any) -> NDArray[Any]:
        """Return the best class of each text.

        Parameters
        ----------
        texts : sequence of str
            Documents.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels.
        """
        model = self._fitted()
        return model.classifier.predict(self._count(model, texts))

    def predict_topk(self, texts: Any, k: int = 5) -> TopK:
        """Return the k best classes of each text with their scores.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        k : int, default=5
            How many; where there are fewer candidates the scores of the rest are -inf.

        Returns
        -------
        TopK
        """
        model = self._fitted()
        return model.classifier.predict_topk(self._count(model, texts), k)

    def predict_proba_topk(self, texts: Any, k: int = 5) -> TopK:
        """Return the k best classes of each text with calibrated probabilities.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        k : int, default=5
            How many.

        Returns
        -------
        TopK
            `scores` holds probabilities; what a row lacks of 1 is the chance of any other class.
        """
        model = self._fitted()
        top: TopK = _learner(model).predict_proba_topk(self._count(model, texts), k)
        return top

    def threshold_for(self, precision: float) -> Threshold:
        """Return the top-1 probability from which on predictions reach a precision.

        Parameters
        ----------
        precision : float
            Between 0 and 1.

        Returns
        -------
        Threshold
        """
        threshold: Threshold = _learner(self._fitted()).threshold_for(precision)
        return threshold

    def explain(
        self, texts: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Take the score of one class for each text apart.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        classes : array-like of shape (n_documents,), optional
            The label to explain for each document; the predicted one when left out.
        top_terms : int, default=10
            How many terms to name; the others are summed up in `rest`.

        Returns
        -------
        list of Explanation
            With terms as in `Vocabulary.terms`.
        """
        model = self._fitted()
        explanations = model.classifier.explain(self._count(model, texts), classes, top_terms)
        return [
            replace(
                explanation,
                terms={
                    model.vocabulary.term(int(str(number))): part
                    for number, part in explanation.terms.items()
                },
            )
            for explanation in explanations
        ]

    # ---- files

    def save(self, path: str | os.PathLike[str], *, discard_changes: bool = False) -> None:
        """Write the fitted model to one file for `longtail.load`; nothing in it can run code.

        A model whose journal holds changes that `Teacher` made is not replaced, unless
        `discard_changes` says that they may be dropped.
        """
        model = self._fitted()
        _, parameters, state = model.classifier._saved()
        parts = {
            "vocabulary": model.vocabulary,
            "added": model.added,
            "text": {"n_fitted": model.n_fitted, "is_default": self.classifier is None},
        }
        outer = type(self).__name__
        parameters = {outer: self.get_params(deep=False), **parameters}
        with saving(path, discard_changes=discard_changes) as target:
            save_state(target, SavedModel(outer, parameters, state, parts))

    @classmethod
    def _from_saved(cls, saved: SavedModel, classifier: CountClassifier) -> Self:
        """Build the estimator around a classifier of counts that was read from the same file."""
        text, added = saved.parts["text"], saved.parts.get("added")
        parameters = saved.parameters[cls.__name__]
        estimator = cls(None if text["is_default"] else clone(classifier), **parameters)
        vocabulary = Vocabulary(
            **saved.parts["vocabulary"], options=tokenizer_options(estimator._new_vectorizer())
        )
        _ = vocabulary.tables  # refuses a term that is there twice
        if added is not None:
            documents: AddedDocuments | None = AddedDocuments(**added)
        else:  # a file of an earlier version
            is_grown = text["n_fitted"] < vocabulary.n_terms
            documents = None if is_grown else AddedDocuments.empty()
        estimator._state = TextModel(vocabulary, classifier, text["n_fitted"], documents)
        return estimator

    # ---- parts

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _facts(self) -> dict[str, str]:
        return self._fitted().classifier._facts()

    def _new_vectorizer(self) -> TextVectorizer:
        """Return the vectorizer to fit."""
        return TextVectorizer(
            ngram_range=(1, self.ngrams),
            char_ngram_range=self.char_ngrams,
            min_df=self.min_df,
            strip_accents="unicode" if self.fold_accents else None,
            ngram_min_df=self.ngram_min_df,
            ngram_weight=self.ngram_weight,
            stem=self.stem,
            n_jobs=self.n_jobs,
        )

    def _new_classifier(self) -> CountClassifier:
        """Return the classifier to fit."""
        if self.classifier is None:
            return LongTailClassifier(random_state=self.random_state, n_jobs=self.n_jobs)
        if not isinstance(self.classifier, CountClassifier):
            raise ValueError(
                "classifier must be a LongTailClassifier, a DoubleSamplingClassifier or None; got "
                f"{self.classifier!r}. For any other, put a TextVectorizer before it in a Pipeline."
            )
        fresh: CountClassifier = clone(self.classifier)
        return fresh

    def _teach(
        self,
        change: Callable[[Any, TextModel], Any],
        renamed: tuple[Any, Any] | None = None,
    ) -> Self:
        """Change a copy of the classifier, then put it in the place of the old one."""
        self._fitted()
        with self._lock:
            model = self._fitted()
            classifier = copy.copy(model.classifier)
            change(classifier, model)
            added = model.added
            if added is not None:
                added = added.follow(model.classifier.classes_, classifier.classes_, renamed)
            self._state = replace(model, classifier=classifier, added=added)
        return self

    def _count(self, model: TextModel, texts: Any) -> csr_array[Any]:
        """Return the counts of texts."""
        return model.vocabulary.count(texts, self.n_jobs)

    def _count_as_added(
        self, model: TextModel, texts: Any, y: ArrayLike
    ) -> tuple[csr_array[Any], AddedDocuments | None]:
        """Return the counts of texts as they were when these were added."""
        X, labels, classes = self._count(model, texts), np.asarray(y), model.classifier.classes_
        if labels.shape != (X.shape[0],):
            return X, model.added  # the classifier says what is wrong
        check_same_kind(labels, classes)
        check_known(labels, classes)
        class_ids = np.searchsorted(classes, labels)
        if model.added is not None:
            return count_as_added(X, class_ids, model.n_fitted, model.added)
        statistics = model.classifier.statistics_
        return count_by_class_terms(X, class_ids, model.n_fitted, statistics), None


def _learner(model: TextModel) -> Any:
    """Return the classifier of counts, whose kind decides what else it can do."""
    return model.classifier
