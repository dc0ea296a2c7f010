"""`within` and `exclude` of the predicting methods: which classes a document may be given.

In: labels, masks, or one of these for each document. Out: `ClassSubsets`, checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._columns import as_labels, show_label
from longtail._validation import check_among, check_same_kind, look_up
from longtail._words import count
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import Integers

_LISTS = (list, tuple, set, frozenset, np.ndarray)


def read_subsets(
    within: Any, exclude: Any, classes: NDArray[Any], n_documents: int
) -> ClassSubsets | None:
    """Return the classes that each document may be given, or None where there is no limit.

    Parameters
    ----------
    within, exclude : labels, mask, one of them for each document, or None
        The classes allowed, and those left out. A mask is an array of bool of shape (n_classes,);
        of shape (n_documents, n_classes), dense or sparse, it holds one for each document. A list
        of lists holds the labels for each document, with None where there is no limit.
    classes : ndarray of shape (n_classes,)
        Labels of the model, sorted.
    n_documents : int
        How many documents there are.

    Raises
    ------
    ValueError
        If a label is no class, a mask has another shape, or a document is left without a class.

    Examples
    --------
    >>> classes = np.array(["ant", "bee", "cat"])
    >>> read_subsets(["bee", "cat"], None, classes, 2).mask(0).tolist()
    [False, True, True]
    >>> read_subsets([["ant"], None], ["cat"], classes, 2).mask(0).tolist()
    [True, True, False]
    """
    if within is None and exclude is None:
        return None
    allowed = _read("within", within, classes, n_documents)
    excluded = _read("exclude", exclude, classes, n_documents)
    list_ids = np.stack([allowed[0], excluded[0]])
    pairs, subset_ids = np.unique(list_ids, axis=1, return_inverse=True)
    masks = []
    for first, second in pairs.T.tolist():
        mask = np.ones(len(classes), np.bool_)
        if first >= 0:
            mask = _to_mask(allowed[1][first], len(classes))
        if second >= 0:
            mask &= ~_to_mask(excluded[1][second], len(classes))
        masks.append(mask)
    subsets = ClassSubsets.of_masks(np.ravel(subset_ids).astype(np.int64), masks)
    empty = np.flatnonzero(subsets.n_allowed[subsets.subset_ids] == 0)
    if len(empty):
        raise ValueError(
            f"within and exclude leave document {empty[0]} no class of the "
            f"{count(len(classes), 'class')} to choose from. Allow one at least."
        )
    return subsets


def _to_mask(ids: Integers, n_classes: int) -> NDArray[np.bool_]:
    mask = np.zeros(n_classes, np.bool_)
    mask[ids] = True
    return mask


def _read(
    name: str, given: Any, classes: NDArray[Any], n_documents: int
) -> tuple[Integers, list[Integers]]:
    """Return the list of each document, -1 where it has none, and the class ids of each list."""
    if given is None:
        return np.full(n_documents, -1), []
    if isinstance(given, str | bytes) or (
        np.isscalar(given) or getattr(given, "shape", None) == ()
    ):
        raise ValueError(
            f"{name} must be a list of labels, such as [{given!r}], a mask over the classes, or "
            f"one of these for each document; got {given!r}."
        )
    if sp.issparse(given) or (isinstance(given, np.ndarray) and given.ndim == 2):
        return _read_masks(name, given, len(classes), n_documents)
    values = given.tolist() if getattr(given, "dtype", None) == np.dtype(object) else given
    if _is_mask(values, classes):
        if len(values) != len(classes):
            raise ValueError(
                f"{name} is a mask of {len(values)} values; it needs one for each of the "
                f"{count(len(classes), 'class')} of the model, in the order of classes_."
            )
        return np.zeros(n_documents, np.int64), [np.flatnonzero(values)]
    if isinstance(values, list | tuple) and any(
        value is None or isinstance(value, _LISTS) for value in values
    ):
        return _read_lists(name, values, classes, n_documents)
    return np.zeros(n_documents, np.int64), [_find(name, values, classes)]


def _is_mask(values: Any, classes: NDArray[Any]) -> bool:
    """Return whether values of True and False are meant as a mask, not as labels."""
    if classes.dtype.kind == "b":
        return False
    if isinstance(values, np.ndarray):
        return bool(values.dtype.kind == "b")
    if not isinstance(values, list | tuple) or not values:
        return False
    return all(isinstance(value, bool | np.bool_) for value in values)


def _read_masks(
    name: str, given: Any, n_classes: int, n_documents: int
) -> tuple[Integers, list[Integers]]:
    if given.shape != (n_documents, n_classes) or given.dtype.kind != "b":
        raise ValueError(
            f"{name} has two dimensions, so it must be a mask of type bool and of shape "
            f"(n_documents, n_classes) = {(n_documents, n_classes)}; it is {given.dtype} of shape "
            f"{given.shape}."
        )
    rows = sp.csr_array(given)
    rows.eliminate_zeros()
    return np.arange(n_documents), np.split(rows.indices.astype(np.int64), rows.indptr[1:-1])


def _read_lists(
    name: str, values: Any, classes: NDArray[Any], n_documents: int
) -> tuple[Integers, list[Integers]]:
    if len(values) != n_documents:
        raise ValueError(
            f"{name} has a list for each of {count(len(values), 'document')}, but there are "
            f"{n_documents:,}. Give one for each document, None where there is no limit."
        )
    list_ids = np.full(n_documents, -1)
    lists: list[Integers] = []
    known: dict[tuple[Any, ...], int] = {}
    for document, value in enumerate(values):
        if value is None:
            continue
        if not isinstance(value, _LISTS):
            raise ValueError(
                f"{name} has lists of labels, but document {document} has {show_label(value)}. "
                "Give every document a list, or None where there is no limit."
            )
        if _is_mask(value, classes):
            list_ids[document] = len(lists)
            lists.append(_read(name, value, classes, 1)[1][0])
            continue
        labels = list(value)
        key = tuple(labels)
        if key not in known:
            known[key] = len(lists)
            lists.append(_find(name, labels, classes))
        list_ids[document] = known[key]
    return list_ids, lists


def _find(name: str, values: Any, classes: NDArray[Any]) -> Integers:
    """Return the ids of labels, which must be classes."""
    if isinstance(values, set | frozenset):
        values = list(values)
    if not len(values):
        return np.zeros(0, np.int64)
    labels = as_labels(values)
    check_same_kind(labels, classes)
    ids = look_up(classes, labels)
    if np.any(ids < 0):
        try:
            check_among(labels[ids < 0], classes)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return np.asarray(ids)
