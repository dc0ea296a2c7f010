"""The fitted parts of a `TextClassifier`: a vocabulary beside the arrays of a model of counts.

In: a state, texts and labels. Out: another state; the one given stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from longtail._caching import cached_property
from longtail._columns import TableFormat, align_labels
from longtail._labels import Labels, LabelSets, replicate
from longtail._validation import check_among, check_known, check_same_kind, look_up, weigh_rows
from longtail.estimators import editing
from longtail.estimators.added_documents import AddedDocuments, count_as_added
from longtail.estimators.base import CountClassifier
from longtail.estimators.class_texts import as_plain, check_class_texts, read_class_text
from longtail.sparse import Floats
from longtail.text import Vocabulary, extend_vocabulary
from longtail.training.name_rows import count_names


@dataclass(frozen=True, eq=False)
class TextState:
    """The fitted parts, replaced as a whole.

    Attributes
    ----------
    vocabulary : Vocabulary
        The terms; the first `n_fitted` are those of the fit.
    model : LongTailState or DoubleSamplingState
        The arrays that were fitted on the counts.
    template : LongTailClassifier or DoubleSamplingClassifier
        Not fitted; its kind and parameters say how the model is used and changed.
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
    model: Any
    template: CountClassifier
    n_fitted: int
    added: AddedDocuments
    columns: TableFormat | None = None
    class_texts: dict[Any, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, classifier: CountClassifier, added: AddedDocuments, **more: Any
    ) -> Self:
        """Return the state of a vocabulary and a classifier that was fitted on its counts."""
        template = type(classifier)(**classifier.get_params(deep=False))
        more = {"n_fitted": vocabulary.n_terms} | more
        return cls(vocabulary, classifier.state_, template, added=added, **more)

    @cached_property
    def classifier(self) -> CountClassifier:
        """The classifier of counts, with the model."""
        return type(self.template).from_state(self.model, **self.template.get_params(deep=False))

    def edit(self, change: editing.Change, moved: tuple[Any, Any] | None = None) -> TextState:
        """Return the state with a changed model; see `Classifier._edit`."""
        model = change(self.template, self.model)
        before, after = self.model.all_classes, model.all_classes
        added = self.added.follow(before, after, moved)
        texts = _follow_texts(self.class_texts, before, after, moved)
        return replace(self, model=model, added=added, class_texts=texts)


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


def set_class_text(state: TextState, label: Any, text: str | None, n_jobs: int | None) -> TextState:
    """Return the state with another text of a class; None or a blank one takes it away."""
    given, label = check_class_texts({label: text}), as_plain(label)
    rows = None
    if given:
        counted = count_names(state.vocabulary, list(given.values()), n_jobs)
        rows = read_class_text(counted, label, state.vocabulary.n_terms)
    changed = state.edit(editing.set_class_text(label, rows))
    texts = {key: value for key, value in state.class_texts.items() if key != label}
    return replace(changed, class_texts=texts | given)


def check_lengths(texts: list[str], y: Labels, name: str) -> None:
    """Refuse labels that are not one, or one set, for each text."""
    shape = (y.n_documents,) if isinstance(y, LabelSets) else y.shape
    if shape != (len(texts),):
        raise ValueError(
            f"{name} has inconsistent numbers of samples: {len(texts)} texts, but labels of shape "
            f"{shape}. Give one label, or one set of labels, for each text."
        )


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
    if classes is not None:
        check_among(y, classes)
    grown = grow_vocabulary(state, vocabulary)
    pairs = X, y
    if y.dtype.kind not in "iuU":  # the counts are our own, and such labels need no check either
        pairs = replicate(*grown.classifier._check_input(X, y, reset=False))
    model = editing.change_documents(*pairs, 1, weights)(state.template, grown.model)
    before, after = state.model.all_classes, model.all_classes
    labels = align_labels(np.unique(y), before)
    new = labels[look_up(before, labels) < 0]
    added = state.added.follow_new(before, new)
    added = added.add(X, np.searchsorted(after, y), state.n_fitted)
    return replace(grown, model=model, added=added)


def grow_vocabulary(state: TextState, vocabulary: Vocabulary) -> TextState:
    """Return the state with a vocabulary that has more terms, which no document has had yet."""
    model = state.model
    if vocabulary.n_terms > state.vocabulary.n_terms:
        model = editing.grow_terms(vocabulary.n_terms)(state.template, model)
    return replace(state, vocabulary=vocabulary, model=model)


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
    pairs = np.arange(0 if weights is None else len(weights))
    fractions = weigh_rows(pairs, pairs, weights)[2]
    return replace(state, added=added).edit(editing.change_documents(X, labels, -1, fractions))


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
    X, labels, _ = weigh_rows(*replicate(state.vocabulary.count(texts, n_jobs), y), weights)
    if not len(labels):
        return X, labels, state.added
    classes = state.model.all_classes
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
    documents = state.vocabulary.count(texts, n_jobs)
    rows = [
        X[first : first + 1] if first < last else documents[document : document + 1]
        for document, (first, last) in enumerate(pairwise(y.indptr.tolist()))
    ]
    return csr_array(vstack(rows))
