"""The fitted parts of a `TextClassifier`, and the functions that make and change them.

In: a state, texts and labels. Out: another state; the one given stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from longtail._columns import TableFormat, align_labels, as_texts
from longtail._labels import (
    Labels,
    LabelSets,
    Multilabel,
    join_sets,
    read_label_sets,
    replicate,
)
from longtail._progress import OnStage, StageReporter
from longtail._validation import (
    PairWeights,
    check_known,
    check_same_kind,
    look_up,
    weigh_rows,
)
from longtail.estimators._added_documents import AddedDocuments, count_as_added
from longtail.sparse import Floats
from longtail.text import TextVectorizer, Vocabulary, extend_vocabulary
from longtail.training.name_rows import count_names


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
    added : AddedDocuments
        How documents were counted.
    columns : TableFormat or None
        What was said about the tables that documents come from.
    class_texts : dict of label to str
        Names, synonyms or descriptions of classes.
    """

    vocabulary: Vocabulary
    classifier: Any
    n_fitted: int
    added: AddedDocuments
    columns: TableFormat | None = None
    class_texts: dict[Any, str] = field(default_factory=dict)


def fit_state(
    vectorizer: TextVectorizer,
    classifier: Any,
    chunks: Iterable[tuple[Any, Any]],
    *,
    weights: PairWeights | None = None,
    remember_documents: bool = False,
    class_texts: Mapping[Any, str | None] | None = None,
) -> TextState:
    """Fit a vectorizer and a classifier of counts on chunks of (texts, labels)."""
    named = check_class_texts(class_texts)
    labels: list[Labels] = []
    multilabel: Multilabel = getattr(classifier, "multilabel", "auto")
    on_stage = StageReporter(classifier.verbose)
    on_stage("reading texts")
    X = vectorizer.fit_chunks(_check_chunks(chunks, labels, multilabel, on_stage))
    y = join_sets(labels)
    if named:
        on_stage("class texts", 0, 0)
        rows = count_names(vectorizer.vocabulary_, list(named.values()), classifier.n_jobs)
        classifier.fit(X, y, weights, class_texts=(list(named), rows))
    else:
        classifier.fit(X, y, weights)
    n_terms = vectorizer.vocabulary_.n_terms
    added = AddedDocuments.empty(complete=remember_documents)
    if remember_documents:  # else only documents with late terms, of which a fit has none
        X, flat, _ = weigh_rows(*replicate(X, y), None if weights is None else weights.values)
        added = added.add(X, np.searchsorted(classifier.classes_, flat), n_terms)
    return TextState(vectorizer.vocabulary_, classifier, n_terms, added, class_texts=named)


def check_class_texts(class_texts: Mapping[Any, str | None] | None) -> dict[Any, str]:
    """Return the texts of classes that have one: not None, not blank.

    Raises
    ------
    ValueError
        If it is no mapping, or a text is no string.
    """
    if class_texts is None:
        return {}
    if not isinstance(class_texts, Mapping):
        raise ValueError(
            f"class_texts must be a mapping of label to text; got {type(class_texts).__name__}."
        )
    for label, text in class_texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the text of class {label!r} must be a string or None; got {text!r}.")
    named = {as_plain(label): text for label, text in class_texts.items() if text}
    return {label: text for label, text in named.items() if text.strip()}


def as_plain(label: Any) -> Any:
    """Return a label as Python has it, not numpy."""
    return label.item() if isinstance(label, np.generic) else label


def set_class_text(state: TextState, label: Any, text: str | None, n_jobs: int | None) -> TextState:
    """Return the state with another text of a class; None or a blank one takes it away."""
    given, label = check_class_texts({label: text}), as_plain(label)
    rows = count_names(state.vocabulary, list(given.values()), n_jobs) if given else None
    changed = edit_classifier(state, lambda inner: inner.set_class_text(label, rows))
    texts = {key: value for key, value in state.class_texts.items() if key != label}
    return replace(changed, class_texts=texts | given)


def _follow_texts(
    texts: dict[Any, str],
    before: NDArray[Any],
    after: NDArray[Any],
    renamed: tuple[Any, Any] | None,
) -> dict[Any, str]:
    """Return the texts of the classes that are left; a renamed class takes its text along."""
    if not texts:
        return texts
    texts = dict(texts)
    if renamed is not None and renamed[1] not in before and renamed[0] in texts:
        texts[renamed[1]] = texts.pop(renamed[0])
    left = set(after.tolist())
    return {label: text for label, text in texts.items() if label in left}


def _check_chunks(
    chunks: Iterable[tuple[Any, Any]],
    labels: list[Labels],
    multilabel: Multilabel,
    on_stage: OnStage,
) -> Iterator[list[str]]:
    """Yield the texts of chunks, and append their labels to a list; then terms are chosen."""
    for i, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple | list) or len(chunk) != 2:
            raise ValueError(
                f"chunks must be pairs (texts, labels); chunk {i} is {type(chunk).__name__}."
            )
        texts, y = as_texts(chunk[0]), read_label_sets(chunk[1], multilabel)
        check_lengths(texts, y, f"chunk {i}")
        labels.append(y)
        yield texts
    on_stage("vocabulary", 0, 0)


def check_lengths(texts: list[str], y: Labels, name: str) -> None:
    """Refuse labels that are not one, or one set, for each text."""
    shape = (y.n_documents,) if isinstance(y, LabelSets) else y.shape
    if shape != (len(texts),):
        raise ValueError(
            f"{name} has inconsistent numbers of samples: {len(texts)} texts, but labels of shape "
            f"{shape}. Give one label, or one set of labels, for each text."
        )


def count_texts(state: TextState, texts: Any, n_jobs: int | None) -> csr_array[Any]:
    """Return the counts of texts by the terms of a state."""
    return state.vocabulary.count(texts, n_jobs)


def add_documents(
    state: TextState,
    texts: list[str],
    y: Labels,
    *,
    classes: ArrayLike | None,
    weights: Floats | None,
    n_jobs: int | None,
) -> TextState:
    """Return the state with documents and their new terms added."""
    state.classifier._check_takes(y)
    vocabulary = extend_vocabulary(state.vocabulary, texts, n_jobs)
    rows = replicate(vocabulary.count(texts, n_jobs), y)
    X, labels, weights = weigh_rows(*rows, weights)
    if not len(labels):  # documents of no class
        return state
    return add_counts(state, vocabulary, X, labels, classes, weights)


def add_counts(
    state: TextState,
    vocabulary: Vocabulary,
    X: csr_array[Any],
    y: NDArray[Any],
    classes: ArrayLike | None = None,
    weights: Floats | None = None,
) -> TextState:
    """Return the state with a vocabulary that has more terms, and documents counted by it."""
    classifier = copy.copy(state.classifier)
    if vocabulary.n_terms > state.vocabulary.n_terms:
        classifier._grow_terms(vocabulary.n_terms)
    if classes is None and y.dtype.kind in "iuU":
        # The counts are our own; scikit-learn's checks take a tenth of the time of one text.
        classifier._change_documents(X, y, 1, weights)
    else:
        classifier.partial_fit(X, y, classes, weights)
    before, after = state.classifier.classes_, classifier.classes_
    labels = align_labels(np.unique(y), before)
    new = labels[look_up(before, labels) < 0]
    if len(after) == len(before) + len(new):
        added = state.added.follow_new(before, new)
    else:  # `classes` named others
        added = state.added.follow(before, after)
    added = added.add(X, np.searchsorted(after, y), state.n_fitted)
    return replace(state, vocabulary=vocabulary, classifier=classifier, added=added)


def forget_documents(
    state: TextState,
    texts: list[str],
    y: Labels,
    n_jobs: int | None,
    weights: Floats | None = None,
) -> TextState:
    """Return the state without documents that were added before."""
    X, labels, added = count_again(state, texts, y, n_jobs, weights)
    if not len(labels):  # documents of no class
        return state
    classifier = copy.copy(state.classifier)
    pairs = np.arange(0 if weights is None else len(weights))
    classifier.forget(X, labels, weigh_rows(pairs, pairs, weights)[2])
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
    before, after = state.classifier.classes_, classifier.classes_
    added = state.added.follow(before, after, renamed)
    texts = _follow_texts(state.class_texts, before, after, renamed)
    return replace(state, classifier=classifier, added=added, class_texts=texts)


def count_again(
    state: TextState,
    texts: list[str],
    y: Labels,
    n_jobs: int | None,
    weights: Floats | None = None,
) -> tuple[csr_array[Any], NDArray[Any], AddedDocuments]:
    """Return the counts of each (document, label) pair as they were when it was added.

    With the label of each pair, and the register without them; a pair of weight 2 is there twice.
    """
    state.classifier._check_takes(y)
    check_lengths(texts, y, "y")
    X, labels, _ = weigh_rows(*replicate(count_texts(state, texts, n_jobs), y), weights)
    if not len(labels):
        return X, labels, state.added
    classes = state.classifier.classes_
    check_same_kind(labels, classes)
    check_known(labels, classes)
    class_ids = np.searchsorted(classes, labels)
    X, added = count_as_added(X, class_ids, state.n_fitted, state.added)
    return X, labels, added


def count_for_refining(
    state: TextState, texts: list[str], y: Labels, n_jobs: int | None
) -> csr_array[Any]:
    """Return the counts of documents as they were when they were added to their first class."""
    X, _, _ = count_again(state, texts, y, n_jobs)
    if not isinstance(y, LabelSets) or not y.has_several:
        return X
    documents = count_texts(state, texts, n_jobs)
    rows = [
        X[first : first + 1] if first < last else documents[document : document + 1]
        for document, (first, last) in enumerate(pairwise(y.indptr.tolist()))
    ]
    return csr_array(vstack(rows))
