"""The fitted parts of a `TextClassifier`, and the functions that make and change them.

In: a state, texts and labels. Out: another state; the one given stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from longtail._columns import as_labels, as_texts, join_labels
from longtail._validation import check_known, check_same_kind, repeat_by_weight
from longtail.estimators._added_documents import (
    AddedDocuments,
    count_as_added,
    count_by_class_terms,
)
from longtail.text import TextVectorizer, Vocabulary, extend_vocabulary


@dataclass(frozen=True, eq=False)
class TextState:
    """The fitted parts, replaced as a whole.

    Attributes
    ----------
    vocabulary : Vocabulary
        The terms; the first `n_fitted` are those of the fit.
    classifier : LongTailClassifier or DoubleSamplingClassifier
        Fitted on the counts.
    n_fitted : int
        Number of terms of the fit.
    added : AddedDocuments or None
        How documents were counted; a file of an earlier version may not have it.
    """

    vocabulary: Vocabulary
    classifier: Any
    n_fitted: int
    added: AddedDocuments | None


def fit_state(
    vectorizer: TextVectorizer,
    classifier: Any,
    chunks: Iterable[tuple[Any, Any]],
    *,
    sample_weight: ArrayLike | None = None,
    remember_documents: bool = False,
) -> TextState:
    """Fit a vectorizer and a classifier of counts on chunks of (texts, labels)."""
    labels: list[NDArray[Any]] = []
    X = vectorizer.fit_chunks(_check_chunks(chunks, labels))
    X, y = repeat_by_weight(X, join_labels(labels), sample_weight)
    classifier.fit(X, y)
    n_terms = vectorizer.vocabulary_.n_terms
    added = AddedDocuments.empty(complete=remember_documents)
    added = added.add(X, np.searchsorted(classifier.classes_, y), n_terms)
    return TextState(vectorizer.vocabulary_, classifier, n_terms, added)


def _check_chunks(
    chunks: Iterable[tuple[Any, Any]], labels: list[NDArray[Any]]
) -> Iterator[list[str]]:
    """Yield the texts of chunks, and append their labels to a list."""
    for i, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple | list) or len(chunk) != 2:
            raise ValueError(
                f"chunks must be pairs (texts, labels); chunk {i} is {type(chunk).__name__}."
            )
        texts, y = as_texts(chunk[0]), as_labels(chunk[1])
        check_lengths(texts, y, f"chunk {i}")
        labels.append(y)
        yield texts


def check_lengths(texts: list[str], y: NDArray[Any], name: str) -> None:
    """Refuse labels that are not one for each text."""
    if y.shape != (len(texts),):
        raise ValueError(
            f"{name} has inconsistent numbers of samples: {len(texts)} texts, but labels of shape "
            f"{y.shape}. Give one label for each text."
        )


def count_texts(state: TextState, texts: Any, n_jobs: int | None) -> csr_array[Any]:
    """Return the counts of texts by the terms of a state."""
    return state.vocabulary.count(texts, n_jobs)


def add_documents(
    state: TextState,
    texts: list[str],
    y: NDArray[Any],
    *,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> TextState:
    """Return the state with documents and their new terms added."""
    vocabulary = extend_vocabulary(state.vocabulary, texts, n_jobs)
    classifier = copy.copy(state.classifier)
    if vocabulary.n_terms > state.vocabulary.n_terms:
        classifier._grow_terms(vocabulary.n_terms)
    X, y = repeat_by_weight(vocabulary.count(texts, n_jobs), y, sample_weight)
    classifier.partial_fit(X, y, classes)
    added = state.added
    if added is not None:
        added = added.follow(state.classifier.classes_, classifier.classes_)
        added = added.add(X, np.searchsorted(classifier.classes_, y), state.n_fitted)
    return replace(state, vocabulary=vocabulary, classifier=classifier, added=added)


def forget_documents(
    state: TextState, texts: list[str], y: NDArray[Any], n_jobs: int | None
) -> TextState:
    """Return the state without documents that were added before."""
    X, added = count_again(state, texts, y, n_jobs)
    classifier = copy.copy(state.classifier)
    classifier.forget(X, y)
    if added is not None:
        added = added.follow(state.classifier.classes_, classifier.classes_)
    return replace(state, classifier=classifier, added=added)


def edit_classifier(
    state: TextState, edit: Callable[[Any], Any], renamed: tuple[Any, Any] | None = None
) -> TextState:
    """Return the state with a copy of its classifier that was edited.

    Parameters
    ----------
    state : TextState
        Stays as it is.
    edit : callable
        Called with the copy.
    renamed : tuple of two labels, optional
        A class whose documents are now those of another.
    """
    classifier = copy.copy(state.classifier)
    edit(classifier)
    added = state.added
    if added is not None:
        added = added.follow(state.classifier.classes_, classifier.classes_, renamed)
    return replace(state, classifier=classifier, added=added)


def count_again(
    state: TextState, texts: list[str], y: NDArray[Any], n_jobs: int | None
) -> tuple[csr_array[Any], AddedDocuments | None]:
    """Return counts as they were when the texts were added, and the register without them."""
    check_lengths(texts, y, "y")
    X, classes = count_texts(state, texts, n_jobs), state.classifier.classes_
    check_same_kind(y, classes)
    check_known(y, classes)
    class_ids = np.searchsorted(classes, y)
    if state.added is not None:
        return count_as_added(X, class_ids, state.n_fitted, state.added)
    return count_by_class_terms(X, class_ids, state.n_fitted, state.classifier.statistics_), None
