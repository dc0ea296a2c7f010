"""What changes a fitted model, once for counts and for texts.

Each function returns a `Change`: called with a classifier of counts, whose parameters and kind
count, and with the arrays of a fitted model, it returns those of the changed model. An estimator
swaps them in (`Classifier._edit`); whatever raises leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._columns import align_labels, as_labels, show_label
from longtail._labels import Labels, LabelSets, find_sets, flat_labels, weigh_documents
from longtail._validation import (
    check_known,
    check_same_kind,
    check_share,
    look_up,
    read_class_weights,
)
from longtail.estimators.class_texts import check_column
from longtail.sparse import CountMatrix, Floats
from longtail.taxonomy import read_hierarchy
from longtail.training import outcomes, relearning
from longtail.training.editing import ClassEdit, rename_class
from longtail.training.long_tail import LongTailState
from longtail.training.name_editing import set_name

Change = Callable[[Any, Any], Any]


def edit_classes(edit: Callable[..., ClassEdit], *labels: Any) -> Change:
    """Rename, merge or remove classes: `edit` is called with labels and sums of all classes."""

    def change(classifier: Any, model: Any) -> Any:
        merged = classifier._merged(model)
        return classifier._apply_edit(merged, edit(merged.classes, merged.statistics, *labels))

    return change


def rename(old: Any, new: Any) -> Change:
    """Give a class another label, in the hierarchy as well."""
    edit = edit_classes(rename_class, old, new)

    def change(classifier: Any, model: Any) -> Any:
        renamed = edit(classifier, model)
        hierarchy = getattr(renamed, "hierarchy", None)
        if hierarchy is None:
            return renamed
        return replace(renamed, hierarchy=hierarchy.rename(old, new))

    return change


def set_hierarchy(given: Any) -> Change:
    """Give the classes other parents; None takes the hierarchy away."""

    def change(_: Any, model: LongTailState) -> LongTailState:
        if given is None:
            return replace(model, hierarchy=None)
        return replace(model, hierarchy=read_hierarchy(given, model.all_classes))

    return change


def move_class(label: Any, parents: Any) -> Change:
    """Give one class or inner node other parents."""
    wanted = list(parents) if isinstance(parents, list | tuple | set | frozenset) else [parents]
    wanted = [parent for parent in wanted if parent is not None]

    def change(_: Any, model: LongTailState) -> LongTailState:
        hierarchy = model.hierarchy
        if hierarchy is None:
            raise ValueError("this model has no hierarchy; give it one with set_hierarchy.")
        [known] = look_up(model.all_classes, as_labels([label])) >= 0
        if not known and hierarchy.find(as_labels([label]))[0] < 0:
            raise ValueError(f"{show_label(label)} is neither a class nor a node of the hierarchy.")
        return replace(model, hierarchy=hierarchy.move(label, wanted))

    return change


def change_documents(
    X: Any, y: NDArray[Any], direction: int, weights: Floats | None = None
) -> Change:
    """Add documents, or subtract them where the direction is -1."""

    def change(classifier: Any, model: Any) -> Any:
        if not len(y):  # documents of no class
            return model
        counts = CountMatrix.from_matrix(X)
        check_same_kind(y, model.all_classes)
        aligned = align_labels(y, model.all_classes)
        return classifier._with_documents(model, counts, aligned, direction, weights)

    return change


def grow_terms(n_terms: int) -> Change:
    """Add terms that no document has had yet."""
    return lambda classifier, model: classifier._with_terms(model, n_terms)


def refine(X: Any = None, y: Labels | None = None, weights: Floats | None = None) -> Change:
    """Bring what all classes share up to date; with documents, learn residuals anew as well."""

    def change(classifier: Any, model: LongTailState) -> LongTailState:
        if y is None:
            return relearning.refine_from_memory(model, classifier._config())
        flat = flat_labels(y)
        if len(flat):
            check_same_kind(flat, model.all_classes)
            check_known(flat, model.all_classes)
        rows, labels = weigh_documents(X, find_sets(y, model.all_classes), weights)
        counts = CountMatrix.from_matrix(rows)
        factors = read_class_weights(classifier.class_weight, labels)
        labels = labels if factors is None else labels.with_class_weights(factors)
        return relearning.refine(model, counts, labels, classifier._config())

    return change


def expect_unknown(share: float) -> Change:
    """Tell the model how many of the documents to come have a class that it does not have."""
    check_share("share", share)

    def change(_: Any, model: LongTailState) -> LongTailState:
        calibrator = model.calibrator
        if calibrator.n_outcomes or calibrator.unknown_share:
            raise ValueError(
                "the model expects documents of unknown classes already: it was told, or "
                "recalibrate showed them. Call expect_unknown once, after fit."
            )
        if model.several or not len(calibrator.unknown_log_odds):
            raise ValueError(
                "this model does not know how documents of unknown classes score: it has label "
                "sets, is not calibrated or has fewer than 3 candidates. Leave it out."
            )
        told = outcomes.expect_unknown(calibrator, share)
        return replace(model, calibrator=replace(told, unknown_share=float(share)))

    return change


def recalibrate(X: Any, y: Labels) -> Change:
    """Correct the probabilities by documents that the model has not been taught yet."""

    def change(classifier: Any, model: LongTailState) -> LongTailState:
        if isinstance(y, LabelSets) or model.several:
            raise ValueError("recalibrate is for models with one label for each document.")
        classes = model.all_classes
        check_same_kind(y, classes)
        counts = CountMatrix.from_matrix(X)
        predicted = np.flatnonzero(counts.have_any(model.known_terms))  # the others get no answer
        if not len(predicted):
            return model
        counts, labels = counts.gather(predicted), y[predicted]
        class_ids, scores = classifier._rank(model, counts, len(classes))
        truth = look_up(classes, labels)[:, None]
        correct = (class_ids == truth) & (truth >= 0)
        n_unknown = int(np.count_nonzero(truth < 0))
        calibrator = outcomes.recalibrate(
            model.calibrator, scores, correct, n_unknown, np.diff(counts.indptr)
        )
        return replace(model, calibrator=calibrator)

    return change


def set_class_text(label: Any, rows: CountMatrix | None) -> Change:
    """Give a class another text, as counts of its terms; None takes it away."""

    def change(classifier: Any, model: LongTailState) -> LongTailState:
        if rows is None and label not in model.all_classes:
            raise ValueError(f"there is no class {label!r} whose text could be removed.")
        check_column(model.label_form, np.asarray(as_labels([label])))
        return set_name(model, label, rows, classifier.n_jobs)

    return change
