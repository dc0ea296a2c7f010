"""Labels: what is refused, and how they are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail.counts import Integers


def check_no_missing_label(y: ArrayLike) -> None:
    """Refuse None and NaN among labels of any type, with the place of the first."""
    if y is None:
        return  # scikit-learn's own check says it better
    labels = np.asarray(y)
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels.ravel()], bool)
    elif labels.dtype.kind in "fc":
        missing = np.isnan(labels.ravel())
    else:
        return
    if missing.any():
        raise ValueError(
            f"y contains NaN or None: the label of document {int(np.argmax(missing))} is missing. "
            "Leave such documents out, or give them a label of their own."
        )


def check_same_kind(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse to mix numbers and strings, which would turn every label into a string."""
    numeric = "iufb"
    if (y.dtype.kind in numeric) != (classes.dtype.kind in numeric):
        raise ValueError(
            f"y has labels such as {y[0]!r}, but the model's classes are such as {classes[0]!r}; "
            "use labels of the same type."
        )


def check_among(y: ArrayLike, classes: ArrayLike) -> None:
    """Refuse labels that are not among the classes."""
    unknown = np.setdiff1d(np.asarray(y), np.asarray(classes))
    if len(unknown):
        raise ValueError(
            f"y has {len(unknown)} label(s) that are not among the classes, such as {unknown[0]!r}."
        )


def look_up(classes: NDArray[Any], labels: NDArray[Any]) -> Integers:
    """Return the number of each label among sorted classes, or -1."""
    if not len(classes):
        return np.full(len(labels), -1)
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[places] == labels, places, -1)


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that are not among the sorted classes of a model."""
    unknown = y[look_up(classes, y) < 0]
    if len(unknown):
        check_among(unknown, classes)


def find_labels(classes: NDArray[Any], wanted: ArrayLike, n_documents: int) -> Integers:
    """Return the number of the wanted class of each document."""
    labels = np.asarray(wanted)
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
        raise ValueError(f"there is no class {wanted!r} in this model.")
    return int(found[0])
