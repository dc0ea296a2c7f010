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
from sklearn.utils.multiclass import check_classification_targets

from longtail._caching import cached_property
from longtail._columns import TableFormat, as_labels, as_plain
from longtail._labels import Labels, LabelSets, replicate
from longtail._records import write_documents
from longtail._validation import check_among, check_known, check_same_kind, look_up, weigh_rows
from longtail.estimators.added_documents import AddedDocuments, count_as_added
from longtail.estimators.base import CountClassifier
from longtail.estimators.class_texts import check_class_texts, read_class_text
from longtail.estimators.embedder import Embedder
from longtail.model.edits import Describe, Edit, EditParents, Forget, Refine, Teach
from longtail.model.embeddings import Embeddings, GivenDocuments
from longtail.model.entry import Changes, NewTerms
from longtail.model.overlay import Overlay, overlay_of
from longtail.sparse import CountMatrix, Floats
from longtail.text import Vocabulary, extend_vocabulary
from longtail.text.vocabulary import count_for_kernels
from longtail.training.name_rows import count_names


@dataclass(frozen=True, eq=False)
class TextState:
    """The fitted parts, replaced as a whole."""

    vocabulary: Vocabulary  # the terms; the first `n_fitted` are those of the fit
    model: Any  # the arrays that were fitted on the counts
    # Not fitted; its kind and parameters say how the model is used and changed.
    template: CountClassifier
    n_fitted: int  # number of terms of the fit
    added: AddedDocuments  # how documents were counted
    columns: TableFormat | None = None  # what was said about the tables that documents come from
    # Names, synonyms or descriptions of classes, before any change.
    base_texts: dict[Any, str] = field(default_factory=dict)
    embedder: Embedder | None = None  # the encoder of texts

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

    @property
    def needs_embeddings(self) -> bool:
        """Whether embeddings count in the ranking."""
        return bool(getattr(self.model, "needs_embeddings", False))

    def count(self, texts: Any, n_jobs: int | None) -> CountMatrix:
        """Return texts as counts, and with their embeddings where these count in the ranking."""
        if not self.needs_embeddings:
            return count_for_kernels(self.vocabulary, texts, n_jobs)
        checked = write_documents(texts, self.vocabulary.options.fields)
        counts = count_for_kernels(self.vocabulary, checked, n_jobs)
        return replace(counts, embeddings=self.embed(checked))

    def embed(self, texts: list[str]) -> Embeddings | None:
        """Return the embeddings of texts; None where documents have none."""
        n_dimensions = getattr(self.model, "n_dimensions", None)
        if n_dimensions is None:
            return None
        if self.embedder is None:
            raise ValueError(
                "the classifier of this model was fitted with embeddings, and there is no encoder "
                "of texts; fit TextClassifier(embedder=...)."
            )
        return self.embedder.embed(texts, self.vocabulary.options.fields)

    @property
    def overlay(self) -> Overlay:
        """The classes that changed since the fit, or since the model was opened."""
        return overlay_of(self.model)

    def apply(self, edit: Edit) -> TextState:
        """Return the state that an edit makes of this one."""
        if isinstance(edit, Refine):
            return self.over(edit.apply(self.template, self.model))
        if isinstance(edit, EditParents):
            return replace(self, model=edit.apply(self.template, self.model))
        return self.take_in(Changes.of(edit.entry(self.template, self.model, self.next_number)))

    @property
    def next_number(self) -> int:
        """Number of an entry that no log numbers."""
        return self.overlay.next_number

    def take_in(self, changes: Changes, vocabulary: Vocabulary | None = None) -> TextState:
        """Return the state after changes, whose new terms a vocabulary may have already."""
        entering = [e.new_terms for e in changes.declared if e.new_terms is not None]
        if vocabulary is None and entering:
            utf8, lengths = (np.concatenate(arrays) for arrays in zip(*entering, strict=True))
            frequencies = changes.count_new_terms(self.vocabulary.n_terms)
            vocabulary = self.vocabulary.extend(utf8, lengths, frequencies)
        return replace(
            self,
            vocabulary=vocabulary or self.vocabulary,
            model=self.template._take_in(self.model, changes),
            added=self.added.take_in(changes, self.n_fitted),
        )

    def remember(self, memory: str | None) -> TextState:
        """Return the state that keeps the documents that are taught, or none; see `Teacher`."""
        classifier = type(self.template).from_state(self.model, **self.template.get_params(False))
        classifier._remember(memory)
        template = type(classifier)(**classifier.get_params(False))
        return replace(self, template=template, model=classifier.state_)

    def over(self, model: Any) -> TextState:
        """Return the state with another base, which has what the overlay of this one had."""
        overlay = self.model.overlay
        return replace(
            self, model=model, added=self.added.settle(overlay), base_texts=self.class_texts
        )

    @cached_property
    def class_texts(self) -> dict[Any, str]:
        """Names, synonyms or descriptions of the classes that are there."""
        overlay = self.model.overlay
        if overlay is None:
            return self.base_texts
        texts: dict[Any, str] = {}
        labels = overlay.all_classes.tolist()
        named = list(self.base_texts)
        rows = look_up(overlay.base.classes, as_labels(named)) if named else np.zeros(0, np.int64)
        for row, text in zip(rows.tolist(), self.base_texts.values(), strict=True):
            outer_id = overlay.ranks[overlay.row_ids[row]]
            if outer_id >= 0:
                texts[labels[outer_id]] = text
        for class_id, edits in overlay.edits.items():
            outer_id = overlay.ranks[class_id]
            described = edits.last("describe")
            if described is None or outer_id < 0:
                continue
            if described.text:
                texts[labels[outer_id]] = described.text
            else:
                texts.pop(labels[outer_id], None)
        return texts


def describe(state: TextState, label: Any, text: str | None, n_jobs: int | None) -> Describe:
    """Return the edit that gives a class another text; None or a blank one takes it away."""
    given, label = check_class_texts({label: text}), as_plain(label)
    if not given:
        return Describe(label, "")
    texts = list(given.values())
    counted = count_names(state.vocabulary, texts, n_jobs)
    counts = read_class_text(counted, label, state.vocabulary.n_terms)
    return Describe(label, given[label], replace(counts, embeddings=state.embed(texts)))


def check_lengths(texts: list[str], y: Labels, name: str) -> None:
    """Refuse labels that are not one, or one set, for each text."""
    shape = (y.n_documents,) if isinstance(y, LabelSets) else y.shape
    if shape != (len(texts),):
        raise ValueError(
            f"{name} has inconsistent numbers of samples: {len(texts)} texts, but labels of shape "
            f"{shape}. Give one label, or one set of labels, for each text."
        )


def teach(
    state: TextState,
    texts: list[str],
    y: Labels,
    *,
    classes: ArrayLike | None = None,
    weights: Floats | None = None,
    n_jobs: int | None = None,
) -> tuple[Teach | None, Vocabulary]:
    """Return the edit that adds documents, and the vocabulary with their terms.

    None where all of them are of no class.
    """
    state.classifier._check_takes(y)
    vocabulary = extend_vocabulary(state.vocabulary, texts, n_jobs)
    given = GivenDocuments(vocabulary.count(texts, n_jobs), state.embed(texts))
    X, labels, weights = weigh_rows(*replicate(given, y), weights)
    if not len(labels):
        return None, state.vocabulary
    if classes is not None:
        check_among(labels, classes)
    labels = _check_labels(labels)
    new_terms = None
    if vocabulary.n_terms > (n_before := state.vocabulary.n_terms):
        offsets = vocabulary.offsets[n_before:]
        new_terms = NewTerms(vocabulary.utf8[offsets[0] :], np.diff(offsets))
    return Teach(X.to_counts(), labels, weights, new_terms), vocabulary


def forget(
    state: TextState,
    texts: list[str],
    y: Labels,
    n_jobs: int | None = None,
    weights: Floats | None = None,
) -> Forget | None:
    """Return the edit that takes documents away; None where all of them are of no class."""
    X, labels = count_again(state, texts, y, n_jobs, weights)
    if not len(labels):
        return None
    pairs = np.arange(0 if weights is None else len(weights))
    fractions = weigh_rows(pairs, pairs, weights)[2]
    return Forget(X.to_counts(), labels, fractions)


def _check_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as scikit-learn accepts them for a classifier."""
    if labels.dtype.kind in "fc":
        check_classification_targets(labels)
    return labels


def count_again(
    state: TextState,
    texts: list[str],
    y: Labels,
    n_jobs: int | None,
    weights: Floats | None = None,
) -> tuple[GivenDocuments, NDArray[Any]]:
    """Return the counts of each (document, label) pair as they were when it was added.

    With the label of each pair; a pair of weight 2 is there twice.
    """
    state.classifier._check_takes(y)
    check_lengths(texts, y, "y")
    given = GivenDocuments(state.vocabulary.count(texts, n_jobs), state.embed(texts))
    rows, labels, _ = weigh_rows(*replicate(given, y), weights)
    if not len(labels):
        return rows, labels
    classes = state.model.all_classes
    check_same_kind(labels, classes)
    check_known(labels, classes)
    outer_ids = look_up(classes, labels)
    X = count_as_added(rows.X, outer_ids, state.n_fitted, state.added, state.overlay)
    return replace(rows, X=X), labels


def count_for_refining(
    state: TextState, texts: list[str], y: Labels, n_jobs: int | None
) -> GivenDocuments:
    """Return the counts of documents as they were when they were added to their first class."""
    given, _ = count_again(state, texts, y, n_jobs)
    if not isinstance(y, LabelSets) or not y.has_several:
        return given
    X = given.X
    documents = state.vocabulary.count(texts, n_jobs)
    rows = [
        X[first : first + 1] if first < last else documents[document : document + 1]
        for document, (first, last) in enumerate(pairwise(y.indptr.tolist()))
    ]
    return GivenDocuments(csr_array(vstack(rows)), state.embed(texts))
