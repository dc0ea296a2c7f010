"""Every parameter check, once: what is refused, with which words, and how labels are looked up."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._columns import align_labels, as_labels, show_label
from longtail._constants import MAX_COLUMNS, WEIGHT_BITS
from longtail._labels import LabelForm, Labels, LabelSets
from longtail._words import count
from longtail.sparse import Floats, Integers

MAX_PADDED_K = 1_000  # k may be above the number of classes, but not without limit
MAX_WEIGHT = 1_000_000  # documents that one counts as
MAX_REPEATED = 1 << 28  # documents that weights may add up to


def cap_adversaries(adversaries: int, n_classes: int) -> int:
    """Return κ, at most n_classes - 1."""
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2 to have adversaries; got {n_classes}.")
    capped = f" It is capped at n_classes - 1 (here {n_classes - 1})."
    return min(check_integer("adversaries", adversaries, 1, capped), n_classes - 1)


def check_examples_per_class(examples_per_class: float) -> None:
    """Refuse anything but a positive number."""
    check_positive("examples_per_class", examples_per_class, " The paper uses 1 or 2.")


def cap_candidates(candidates: int, n_classes: int) -> int:
    """Return q, at most n_classes."""
    capped = f" It is capped at the number of classes (here {n_classes})."
    return min(check_integer("candidates", candidates, 1, capped), n_classes)


def check_integer(name: str, value: int, smallest: int, hint: str = "") -> int:
    """Return an integer of at least `smallest`."""
    if not isinstance(value, numbers.Integral) or value < smallest:
        raise ValueError(f"{name} must be an integer of at least {smallest}; got {value!r}.{hint}")
    return int(value)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_positive(name: str, value: float, hint: str = "") -> None:
    """Refuse a parameter that is not a positive finite number."""
    if not isinstance(value, numbers.Real) or not value > 0 or not np.isfinite(value):
        raise ValueError(f"{name} must be a positive number; got {value!r}.{hint}")


def check_memory(memory: int | str | None) -> None:
    """Refuse what is neither None, "auto" nor a number of documents."""
    if memory is None or (isinstance(memory, str) and memory == "auto"):
        return
    if (
        isinstance(memory, bool)
        or not isinstance(memory, numbers.Integral)
        or not 0 <= memory < 2**31
    ):
        raise ValueError(
            'memory must be None, "auto", or the number of documents that each class keeps, an '
            f"integer of at least 0; got {memory!r}."
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


def read_weights(sample_weight: Any, y: Any, labels: Labels) -> Floats | None:
    """Return as how many documents each (document, label) pair counts; None where all are 1.

    Parameters
    ----------
    sample_weight : array-like of shape (n_documents,), or in the form of label sets, or None
        A weight of each document; or one of each label, as a list of lists like `y`, or as a matrix
        like an indicator matrix.
    y : object
        Labels as they were given: weights of labels stand in their order.
    labels : ndarray or LabelSets
        The same, read.

    Returns
    -------
    ndarray of shape (n_pairs,), float64, or None
        Multiples of 2^-24, so that their sums are exact in any order; no weight above 0 becomes 0.

    Raises
    ------
    ValueError
        If there is not one weight for each, or one is negative, infinite or too large.
    """
    if sample_weight is None or isinstance(sample_weight, PairWeights):
        return None if sample_weight is None else sample_weight.values
    if isinstance(labels, LabelSets) and _is_nested(sample_weight):
        weights = _read_pair_weights(sample_weight, y, labels)
    else:
        weights = _as_numbers(sample_weight)
        if weights.ndim != 1 or len(weights) != len(labels):
            raise ValueError(
                f"sample_weight must have one weight for each of the {len(labels)} documents; its "
                f"shape is {weights.shape}."
            )
        if isinstance(labels, LabelSets):
            weights = np.repeat(weights, labels.sizes)
    if not np.all((weights >= 0) & (weights <= MAX_WEIGHT)):
        raise ValueError(
            "sample_weight must hold numbers from 0 to "
            f"{MAX_WEIGHT}: as how many documents each counts. Leave it out if all count once."
        )
    quanta = np.rint(weights * 2.0**WEIGHT_BITS)
    rounded = np.where(weights > 0, np.maximum(quanta, 1.0), 0.0) * 2.0**-WEIGHT_BITS
    if len(rounded) and not rounded.any():
        raise ValueError("sample_weight is zero for every document; at least one must count.")
    return None if np.all(rounded == 1.0) else rounded


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Weights that `read_weights` has read already, in the order of the pairs of `LabelSets`."""

    values: Floats | None


def _as_numbers(sample_weight: Any) -> Floats:
    """Return weights as an array of numbers."""
    try:
        return np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}.") from None


def _is_nested(sample_weight: Any) -> bool:
    """Return whether there is a weight for each label of a document."""
    if sp.issparse(sample_weight) or len(getattr(sample_weight, "shape", ())) == 2:
        return True
    is_list = isinstance(sample_weight, list | tuple)
    return is_list and any(isinstance(row, list | tuple | np.ndarray) for row in sample_weight)


def _read_pair_weights(sample_weight: Any, y: Any, labels: LabelSets) -> Floats:
    """Return the weight of each pair, in the order of the label sets."""
    if sp.issparse(sample_weight) or hasattr(sample_weight, "shape"):
        matrix = sp.csr_array(sample_weight)
        if matrix.shape != (labels.n_documents, len(labels.classes)):
            raise ValueError(
                "sample_weight must have the shape of the indicator matrix, "
                f"{(labels.n_documents, len(labels.classes))}; it is {matrix.shape}."
            )
        return np.asarray(matrix[labels.document_ids, labels.class_ids], np.float64).ravel()
    rows = list(sample_weight)
    sets = [list(row) for row in y] if not sp.issparse(y) and not hasattr(y, "indptr") else []
    if len(rows) != labels.n_documents or [len(row) for row in rows] != labels.sizes.tolist():
        raise ValueError(
            "sample_weight must have a weight for each label of each document, in the form of y."
        )
    if not sets or [len(row) for row in sets] != labels.sizes.tolist():
        raise ValueError(
            "sample_weight is a list of lists, so y must be one, too; for an indicator matrix give "
            "a matrix of weights."
        )
    flat = _as_numbers([weight for row in rows for weight in row])
    given = as_labels([label for row in sets for label in row])
    # Within a document the labels of a set are ascending.
    order = np.lexsort((np.searchsorted(labels.classes, given), labels.document_ids))
    return flat[order]


def read_class_weights(class_weight: Any, labels: LabelSets) -> Floats | None:
    """Return what the losses of the documents of each class count; None where all count 1.

    Parameters
    ----------
    class_weight : mapping of label to float, "balanced" or None
        Of classes that are left out the losses count 1. "balanced" is n_documents / (n_classes *
        documents of the class), as scikit-learn has it.
    labels : LabelSets
        Of the documents.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        sizes = np.maximum(labels.class_sizes, 1)
        return len(labels.class_ids) / (len(labels.classes) * sizes)
    factors = np.ones(len(labels.classes))
    given = as_labels(list(class_weight))
    check_same_kind(given, labels.classes)
    check_known(given, labels.classes)
    factors[look_up(labels.classes, given)] = list(class_weight.values())
    return factors


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither "balanced" nor a mapping of label to positive number."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f'class_weight must be "balanced", a dict of label to number, or None; got '
            f"{class_weight!r}."
        )
    for label, weight in class_weight.items():
        check_positive(f"class_weight[{label!r}]", weight)


def weigh_rows(
    X: Any, y: NDArray[Any], weights: Floats | None
) -> tuple[Any, NDArray[Any], Floats | None]:
    """Return each labelled row as many times as it counts, and the weight of a fraction.

    A row of weight 2.5 is that row twice, and once with weight 0.5; the model can then forget them
    one by one. The weights are None where all are 1.

    Raises
    ------
    ValueError
        If so many rows would be needed that they may not fit into memory.
    """
    if weights is None:
        return X, y, None
    if weights.sum() > MAX_REPEATED:
        raise ValueError(
            f"sample_weight adds up to {weights.sum():.0f} documents; at most {MAX_REPEATED} can "
            "be counted. Divide the weights by a common factor."
        )
    times = np.ceil(weights).astype(np.int64)
    rows = np.repeat(np.arange(len(y)), times)
    of_rows = np.ones(len(rows))
    ends = np.cumsum(times)[times > 0] - 1
    of_rows[ends] = (weights - (times - 1))[times > 0]
    return X[rows], y[rows], None if np.all(of_rows == 1.0) else of_rows


def check_same_kind(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that would change, or run together, in one array with the model's classes."""
    if not len(y) or not len(classes):
        return
    numeric = "iufb"
    kinds = {y.dtype.kind, classes.dtype.kind}
    one_is_numeric = (y.dtype.kind in numeric) != (classes.dtype.kind in numeric)
    if one_is_numeric or ("b" in kinds and len(kinds) > 1):
        raise ValueError(
            f"labels are such as {show_label(y[0])}, but the model's classes are such as "
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


def check_enough_classes(classes: NDArray[Any]) -> None:
    """Refuse labels of fewer than two classes."""
    if len(classes) < 2:
        found = "".join(f", {label!r}" for label in classes.tolist())
        raise ValueError(
            f"there is only {len(classes)} class{found}; at least 2 classes are needed. "
            "Add documents of another class."
        )


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that are not among the sorted classes of a model."""
    unknown = y[look_up(classes, y) < 0]
    if len(unknown):
        check_among(unknown, classes)


def find_labels(
    classes: NDArray[Any], wanted: ArrayLike, n_documents: int, name: str = "classes"
) -> Integers:
    """Return the id of the wanted class of each document; `name` is the parameter that has it."""
    labels = as_labels(wanted)
    if labels.shape != (n_documents,):
        raise ValueError(
            f"{name} must have one label for each of the {n_documents} documents; "
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
