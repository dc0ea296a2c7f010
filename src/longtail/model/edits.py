"""Edits of a fitted model: one frozen object for each kind of change.

In: an edit with plain fields, a classifier of counts (whose parameters and kind count) and the
arrays of a fitted model. Out: the edit as numbers (`entry`), or the changed model (`apply`).
Estimators, teachers, commands and routes only construct edits; whatever raises leaves the model as
it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail._columns import align_labels, as_labels, as_plain
from longtail._labels import Labels, LabelSets, find_sets, flat_labels, weigh_documents
from longtail._validation import (
    check_known,
    check_same_kind,
    find_label,
    look_up,
    read_class_weights,
)
from longtail.model.embeddings import GivenDocuments
from longtail.model.entry import NO_ROWS, Changes, Entry, NewTerms
from longtail.model.overlay import overlay_of
from longtail.model.parents import Parents, check_moved
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.taxonomy import read_hierarchy
from longtail.training import relearning
from longtail.training.outcomes import Outcomes, document_keys


@dataclass(frozen=True, eq=False)
class Edit:
    """A change of a model."""

    action: ClassVar[str]  # its name in the log

    @property
    def shown(self) -> dict[str, Any]:
        """What the log shows of it beside its numbers."""
        return dict(vars(self))

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        raise NotImplementedError

    def apply(self, classifier: Any, state: Any) -> Any:
        """Return the changed model."""
        change_number = overlay_of(state).next_number
        return classifier._take_in(state, Changes.of(self.entry(classifier, state, change_number)))


@dataclass(frozen=True, eq=False)
class Teach(Edit):
    """Add documents of known or new classes, and the terms that they bring."""

    action: ClassVar[str] = "teach"
    counts: CountMatrix
    labels: NDArray[Any]
    weights: Floats | None = None
    new_terms: NewTerms | None = None

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        check_same_kind(self.labels, state.all_classes)
        classifier._check_taught(state, self.labels, self.weights)
        class_ids, new = _find_or_begin(state, self.labels)
        return Entry(
            change_number,
            self.action,
            class_ids,
            self.counts,
            self.weights,
            new_classes=new,
            new_terms=self.new_terms,
            learned=classifier._observe(state, self.counts, self.labels),
        )


@dataclass(frozen=True, eq=False)
class Forget(Edit):
    """Take documents away that were added before."""

    action: ClassVar[str] = "forget"
    counts: CountMatrix
    labels: NDArray[Any]
    weights: Floats | None = None

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        check_same_kind(self.labels, state.all_classes)
        check_known(self.labels, state.all_classes)
        outer_ids = look_up(state.all_classes, self.labels)
        return Entry(
            change_number, self.action, overlay_of(state).ids[outer_ids], self.counts, self.weights
        )


@dataclass(frozen=True, eq=False)
class Rename(Edit):
    """Give a class another label; everything it knows stays."""

    action: ClassVar[str] = "rename"
    old: Any
    new: Any

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        class_id = find_class(state, self.old)
        renamed = align_labels(np.asarray(as_labels([self.new])), state.all_classes)
        check_same_kind(renamed, state.all_classes)
        classifier._check_taught(state, renamed, None)
        if np.any(state.all_classes == self.new):
            raise ValueError(
                f"there is a class {self.new!r} already. To add the documents of {self.old!r} to "
                "it, merge them instead of renaming."
            )
        return Entry(change_number, self.action, np.array([class_id]), label=as_plain(self.new))


@dataclass(frozen=True, eq=False)
class Merge(Edit):
    """Let the documents of one class count for another; the first then no longer exists."""

    action: ClassVar[str] = "merge"
    source: Any
    into: Any

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        source, into = find_class(state, self.source), find_class(state, self.into)
        if source == into:
            raise ValueError(f"cannot merge class {self.source!r} into itself.")
        return Entry(change_number, self.action, np.array([source]), into=into)


@dataclass(frozen=True, eq=False)
class Remove(Edit):
    """Remove a class with all its documents."""

    action: ClassVar[str] = "remove"
    label: Any

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        class_id = find_class(state, self.label)
        if len(state.all_classes) == 1:
            raise ValueError("cannot remove the last class of a model; fit a new one instead.")
        return Entry(change_number, self.action, np.array([class_id]))


@dataclass(frozen=True, eq=False)
class Describe(Edit):
    """Give a class another text, with the counts of its terms; None takes it away."""

    action: ClassVar[str] = "describe"
    label: Any
    text: str
    counts: CountMatrix | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """Label and text."""
        return {"label": self.label, "text": self.text}

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        label = np.asarray(as_labels([self.label]))
        if self.counts is None and self.label not in state.all_classes:
            raise ValueError(f"there is no class {self.label!r} whose text could be removed.")
        classifier._check_taught(state, label, None, is_text=True)
        check_same_kind(label, state.all_classes)
        class_ids, new = _find_or_begin(state, label)
        counts = NO_ROWS if self.counts is None else self.counts
        # A blank marks a text of which only the counts are known.
        text = "" if self.counts is None else self.text or " "
        return Entry(change_number, self.action, class_ids, counts, new_classes=new, text=text)


@dataclass(frozen=True, eq=False)
class EditParents(Edit):
    """A change of the hierarchy."""

    def find(self, state: Any) -> Parents:
        """Return what it says of parents."""
        raise NotImplementedError

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        given = self.find(state)
        return Entry(change_number, self.action, given.ids[given.ids >= 0], learned=given)

    def apply(self, classifier: Any, state: Any) -> Any:
        """Return the changed model; one without other changes has another base."""
        changed = super().apply(classifier, state)
        if state.overlay is not None:
            return changed
        return replace(state, hierarchy=changed.current_hierarchy)


@dataclass(frozen=True, eq=False)
class SetHierarchy(EditParents):
    """Give the classes parents; None takes them away."""

    action: ClassVar[str] = "hierarchy"
    hierarchy: Any

    @property
    def shown(self) -> dict[str, Any]:
        """Nothing: the log has the nodes."""
        return {}

    def find(self, state: Any) -> Parents:
        """Return what it says of parents."""
        given = self.hierarchy
        hierarchy = None if given is None else read_hierarchy(given, state.all_classes)
        return Parents.whole(hierarchy, overlay_of(state))


@dataclass(frozen=True, eq=False)
class Move(EditParents):
    """Give a class, or an inner node, other parents."""

    action: ClassVar[str] = "move"
    label: Any
    parents: list[Any]

    def find(self, state: Any) -> Parents:
        """Return what it says of parents."""
        labels = as_labels([self.label, *self.parents])
        check_moved(state.current_hierarchy, labels, state.all_classes)
        return Parents.moved(labels, overlay_of(state))


@dataclass(frozen=True, eq=False)
class Recalibrate(Edit):
    """Correct the probabilities by documents that the model has not been taught yet."""

    action: ClassVar[str] = "recalibrate"
    counts: CountMatrix
    labels: Labels

    def entry(self, classifier: Any, state: Any, change_number: int) -> Entry:
        """Return the change as numbers."""
        if isinstance(self.labels, LabelSets) or state.several:
            raise ValueError("recalibrate is for models with one label for each document.")
        classes = state.all_classes
        check_same_kind(self.labels, classes)
        answered = np.flatnonzero(state.have_evidence(self.counts))
        counts, labels = self.counts.gather(answered), self.labels[answered]
        scores, positions = np.zeros((0, 1)), np.zeros(0, np.int64)
        truth = look_up(classes, labels)
        if len(answered):
            class_ids, scores = classifier._rank(state, counts, len(classes))
            found = (class_ids == truth[:, None]) & (truth >= 0)[:, None]
            positions = np.where(found.any(axis=1), found.argmax(axis=1), -1)
        keys = document_keys(counts, labels)
        seen = Outcomes(scores, positions, truth < 0, state.count_terms(counts), keys)
        return Entry(change_number, self.action, learned=seen)


@dataclass(frozen=True, eq=False)
class Refine(Edit):
    """Bring what all classes share up to date; with documents, relearn residuals as well."""

    action: ClassVar[str] = "refine"
    counts: CountMatrix | None = None
    labels: Labels | None = None
    weights: Floats | None = None

    def apply(self, classifier: Any, state: Any) -> Any:
        """Return the changed model: a new base."""
        config = classifier._config()
        if self.labels is None or self.counts is None:
            return relearning.refine_from_memory(state, config, classifier.class_weight)
        flat = flat_labels(self.labels)
        if len(flat):
            check_same_kind(flat, state.all_classes)
            check_known(flat, state.all_classes)
        sets = find_sets(self.labels, state.all_classes)
        given = GivenDocuments(self.counts.to_csr(), self.counts.embeddings)
        rows, labels = weigh_documents(given, sets, self.weights)
        factors = read_class_weights(classifier.class_weight, labels)
        labels = labels if factors is None else labels.with_class_weights(factors)
        return relearning.refine(state, rows.to_counts(), labels, config)


def find_class(state: Any, label: Any) -> int:
    """Return the persistent id of a class."""
    return int(overlay_of(state).ids[find_label(state.all_classes, label)])


def _find_or_begin(state: Any, labels: NDArray[Any]) -> tuple[Integers, dict[int, Any]]:
    """Return the persistent id of each label, and the labels of the ids that are new.

    A class that has lost its documents has its label still, and gets them under the same id.
    """
    overlay = overlay_of(state)
    distinct, which = np.unique(align_labels(labels, state.all_classes), return_inverse=True)
    outer_ids = look_up(state.all_classes, distinct)
    ids = np.full(len(distinct), -1)
    ids[outer_ids >= 0] = overlay.ids[outer_ids[outer_ids >= 0]]
    new: dict[int, Any] = {}
    hidden = overlay.find_hidden() if np.any(ids < 0) else {}
    for i in np.flatnonzero(ids < 0).tolist():
        label = as_plain(distinct[i])
        ids[i] = hidden.get(label, -1)
        if ids[i] < 0:
            ids[i] = overlay.n_ids + len(new)
            new[int(ids[i])] = label
    return ids[which], new


def as_list(parents: Any) -> list[Any]:
    """Return the parents of a node as they may be given: one, several, or None."""
    given = list(parents) if isinstance(parents, list | tuple | set | frozenset) else [parents]
    return [parent for parent in given if parent is not None]
