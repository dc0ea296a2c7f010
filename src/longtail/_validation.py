"""Every parameter check, once: what is refused, with which words, and how labels are looked up."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._columns import align_labels, as_labels, show_label
from longtail._constants import MAX_COLUMNS
from longtail._labels import LabelForm, Labels, LabelSets
from longtail._words import count
from longtail.sparse import Integers

MAX_PADDED_K = 1_000  # k may be above the number of classes, but not without limit
MAX_WEIGHT = 1_000_000  # times that one document counts
MAX_REPEATED = 1 << 28  # documents that weights may add up to


def cap_adversaries(adversaries: int, n_classes: int) -> int:
    """Return κ, at most n_classes - 1."""
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2 to have adversaries; got {n_classes}.")
    if not isinstance(adversaries, numbers.Integral) or adversaries < 1:
        raise ValueError(
            f"adversaries must be an integer of at least 1; got {adversaries!r}. "
            f"It is capped at n_classes - 1 (here {n_classes - 1})."
        )
    return min(int(adversaries), n_classes - 1)


def check_examples_per_class(examples_per_class: float) -> None:
    """Refuse anything but a positive number."""
    is_number = isinstance(examples_per_class, numbers.Real)
    if not is_number or not examples_per_class > 0 or not np.isfinite(examples_per_class):
        raise ValueError(
            f"examples_per_class must be a positive number; got {examples_per_class!r}. "
            "The paper uses 1 or 2."
        )


def cap_candidates(candidates: int, n_classes: int) -> int:
    """Return q, at most n_classes."""
    if not isinstance(candidates, numbers.Integral) or candidates < 1:
        raise ValueError(
            f"candidates must be an integer of at least 1; got {candidates!r}. "
            f"It is capped at the number of classes (here {n_classes})."
        )
    return min(int(candidates), n_classes)


def check_positive(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive finite number."""
    if not isinstance(value, numbers.Real) or not value > 0 or not np.isfinite(value):
        raise ValueError(f"{name} must be a positive number; got {value!r}.")


def check_memory(memory: int) -> None:
    """Refuse what is no number of documents."""
    if (
        isinstance(memory, bool)
        or not isinstance(memory, numbers.Integral)
        or not 0 <= memory < 2**31
    ):
        raise ValueError(
            "memory must be the number of documents that each class keeps, an integer of at least "
            f"0; got {memory!r}."
        )


def check_k(k: int, n_classes: int) -> int:
    """Return k, or say what it must be."""
    if not isinstance(k, numbers.Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k must be an integer of at least 1; got {k!r}.")
    largest = max(n_classes, MAX_PADDED_K)
    if k > largest:
        raise ValueError(
            f"k must be at most {largest}; the model has {n_classes} classes, got {k!r}."
        )
    return int(k)


def check_top_terms(top_terms: int) -> None:
    """Refuse anything but a whole number of terms."""
    if not isinstance(top_terms, numbers.Integral) or top_terms < 0:
        raise ValueError(f"top_terms must be an integer of at least 0; got {top_terms!r}.")


def check_precision(precision: float) -> None:
    """Refuse anything but a number between 0 and 1."""
    is_number = isinstance(precision, numbers.Real) and not isinstance(precision, bool)
    if not is_number or not 0.0 < precision < 1.0:
        raise ValueError(f"precision must be between 0 and 1, such as 0.9; got {precision!r}.")


def check_share(name: str, value: float) -> None:
    """Refuse anything but a share of at least 0 and below 1."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be a share from 0 to below 1, such as 0.2; got {value!r}.")


def check_not_texts(X: Any) -> None:
    """Refuse texts where counts are expected, and say which estimator takes them."""
    first = X[0] if isinstance(X, list | tuple) and X else None
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "UOT" and len(X):
        first = X[0]
    if isinstance(first, str):
        raise ValueError(
            "X must be a matrix of counts, but it holds texts. TextClassifier takes texts; or put "
            "a TextVectorizer before this classifier in a Pipeline."
        )


def check_documents_left(n_documents: int) -> None:
    """Refuse to forget everything."""
    if n_documents == 0:
        raise ValueError("cannot forget the last document of a model; fit a new one instead.")


def repeat_by_weight(X: Any, y: Labels, sample_weight: ArrayLike | None) -> tuple[Any, Labels]:
    """Return each document as many times as it counts.

    A model is made of sums of documents, so a document of weight 2 is that document twice.
    """
    if sample_weight is None:
        return X, y
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold whole numbers: {error}.") from None
    if weights.ndim != 1 or len(weights) != len(y):
        raise ValueError(
            f"sample_weight must have one weight for each of the {len(y)} documents; its shape is "
            f"{weights.shape}."
        )
    if not np.all((weights >= 0) & (weights == np.rint(weights)) & (weights <= MAX_WEIGHT)):
        raise ValueError(
            "sample_weight must hold whole numbers: how many times each document counts, from 0 to "
            f"{MAX_WEIGHT}. Multiply fractions until they are whole, or leave it out."
        )
    if np.all(weights == 1):
        return X, y
    if weights.sum() > MAX_REPEATED:
        raise ValueError(
            f"sample_weight adds up to {weights.sum():.0f} documents; at most {MAX_REPEATED} can "
            "be counted. Divide the weights by a common factor."
        )
    rows = np.repeat(np.arange(len(y)), weights.astype(np.int64))
    if not len(rows):
        raise ValueError("sample_weight is zero for every document; at least one must count.")
    return X[rows], y.gather(rows) if isinstance(y, LabelSets) else y[rows]


def check_same_kind(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that would change, or run together, in one array with the model's classes."""
    if not len(y) or not len(classes):
        return
    numeric = "iufb"
    kinds = {y.dtype.kind, classes.dtype.kind}
    one_is_numeric = (y.dtype.kind in numeric) != (classes.dtype.kind in numeric)
    if one_is_numeric or ("b" in kinds and len(kinds) > 1):
        raise ValueError(
            f"y has labels such as {show_label(y[0])}, but the model's classes are such as "
            f"{show_label(classes[0])}; use labels of the same type."
        )
    if not kinds <= set("iuf") or np.result_type(y, classes).kind != "f":
        return
    for labels in (y, classes):
        if labels.dtype.kind in "iu" and len(labels):
            largest = max(abs(int(labels.min())), abs(int(labels.max())))
            if largest > 2**53:
                raise ValueError(
                    f"y has labels of type {y.dtype}, the model's classes are {classes.dtype}; "
                    f"{largest} is not exact in a type for both. Use labels of one type."
                )


def check_columns(form: LabelForm, labels: NDArray[Any]) -> None:
    """Refuse labels that are no columns of an indicator matrix; scipy would not notice."""
    if not form.is_indicator or not len(labels):
        return
    found = f"labels of type {labels.dtype}"
    if labels.dtype.kind in "iu":
        wrong = labels[(labels < 0) | (labels >= MAX_COLUMNS)]
        found = show_label(wrong[0]) if len(wrong) else ""
    if found:
        raise ValueError(
            "the classes of this model are the columns of an indicator matrix, integers from 0 "
            f"to {MAX_COLUMNS - 1}; got {found}."
        )


def check_among(y: ArrayLike, classes: ArrayLike) -> None:
    """Refuse labels that are not among the classes."""
    known = as_labels(classes)
    unknown = np.setdiff1d(align_labels(as_labels(y), known), known)
    if len(unknown):
        raise ValueError(
            f"{count(len(unknown), 'label')} {'is' if len(unknown) == 1 else 'are'} not among the "
            f"classes{':' if len(unknown) == 1 else ', such as'} {show_label(unknown[0])}."
        )


def look_up(classes: NDArray[Any], labels: NDArray[Any]) -> Integers:
    """Return the number of each label among sorted classes, or -1."""
    if not len(classes):
        return np.full(len(labels), -1)
    labels = align_labels(labels, classes)
    positions = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[positions] == labels, positions, -1)


def shift_ids(class_ids: Integers, positions: Integers) -> Integers:
    """Return class ids after classes were inserted before those at some positions, ascending.

    -1, which is no class, stays.
    """
    return class_ids + np.searchsorted(positions, class_ids, side="right")


def check_enough_classes(classes: NDArray[Any]) -> None:
    """Refuse labels of fewer than two classes."""
    if len(classes) < 2:
        found = "".join(f", {label!r}" for label in classes.tolist())
        raise ValueError(
            f"y has only {len(classes)} class{found}; at least 2 classes are needed. "
            "Add documents of another class."
        )


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that are not among the sorted classes of a model."""
    unknown = y[look_up(classes, y) < 0]
    if len(unknown):
        check_among(unknown, classes)


def find_labels(classes: NDArray[Any], wanted: ArrayLike, n_documents: int) -> Integers:
    """Return the number of the wanted class of each document."""
    labels = as_labels(wanted)
    if labels.shape != (n_documents,):
        raise ValueError(
            f"classes must have one label for each of the {n_documents} documents; "
            f"its shape is {labels.shape}."
        )
    check_known(labels, classes)
    return look_up(classes, labels)


def find_label(classes: NDArray[Any], wanted: Any) -> int:
    """Return the number of a class."""
    found = np.flatnonzero(classes == wanted)
    if not len(found):
        raise ValueError(f"there is no class {show_label(wanted)} in this model.")
    return int(found[0])
