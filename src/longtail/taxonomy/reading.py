"""Hierarchies as they are given: mappings, pairs, two columns, labels that are paths."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._columns import is_missing, show_label
from longtail._validation import check_same_kind
from longtail._words import count
from longtail.exceptions import HierarchyWarning, level_outside
from longtail.taxonomy.hierarchy import MAX_DEPTH, Hierarchy

_MANY = (list, tuple, set, frozenset)


def read_hierarchy(given: Any, classes: NDArray[Any]) -> Hierarchy:
    """Return the hierarchy of a model's classes, or say what is wrong with it.

    Parameters
    ----------
    given : mapping, sequence of pairs, table of two columns, str or Hierarchy
        A parent, or a list of parents, by child; pairs of a child and a parent; a data frame with
        a column of each; or what separates the levels where the labels are paths, such as "/". A
        missing parent makes no pair.
    classes : ndarray of shape (n_classes,)
        Labels of the model, sorted.

    Warns
    -----
    HierarchyWarning
        If classes are no nodes, which makes each a root by itself, or nodes without children are
        no classes.

    Raises
    ------
    ValueError
        If no class is a node, or there is a cycle.

    Examples
    --------
    >>> classes = np.array(["beech", "elm", "oak"])
    >>> hierarchy = read_hierarchy({"oak": "tree", "elm": ["tree"], "beech": "tree"}, classes)
    >>> hierarchy.nodes.tolist(), hierarchy.path("elm")
    (['beech', 'elm', 'oak', 'tree'], ('tree', 'elm'))
    """
    hierarchy = _read(given, classes)
    _check_classes(hierarchy, classes)
    return hierarchy


def _read(given: Any, classes: NDArray[Any]) -> Hierarchy:
    if isinstance(given, Hierarchy):
        return given
    if isinstance(given, str):
        return read_paths(classes, given)
    children: list[Any] = []
    parents: list[Any] = []
    for child, parent in _pairs(given):
        for one in parent if isinstance(parent, _MANY) else (parent,):
            if not (is_missing(one) or one == ""):
                children.append(child)
                parents.append(one)
    if not children:
        raise ValueError("the hierarchy has no pair of a child and a parent. Give one at least.")
    return Hierarchy.of(children, parents)


def _pairs(given: Any) -> Iterable[tuple[Any, Any]]:
    """Return what is given as pairs of a child and its parent or parents."""
    if isinstance(given, Mapping):
        return given.items()
    columns = getattr(given, "columns", None)
    if columns is not None:
        names = getattr(given, "column_names", None) or list(columns)
        if len(names) != 2:
            raise ValueError(
                "hierarchy must be a table of two columns, child and parent; this one has "
                f"{count(len(names), 'column')}."
            )
        values = [given[name] for name in names]
        lists = [v.to_pylist() if hasattr(v, "to_pylist") else list(v) for v in values]
        return zip(*lists, strict=True)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Iterable):
        raise ValueError(_wrong(given))
    pairs = list(given)
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(_wrong(pair))
    return pairs


def _wrong(given: Any) -> str:
    return (
        "hierarchy must be a mapping of child to parent or parents, pairs of child and parent, a "
        "table of two columns, or what separates the levels of labels that are paths; got "
        f"{show_label(given) if isinstance(given, str) else repr(given)[:80]}."
    )


def read_paths(labels: NDArray[Any], separator: str) -> Hierarchy:
    """Return the hierarchy of labels that are paths; a parent is what is before the last part.

    Parameters
    ----------
    labels : ndarray of str
        Such as "drm/amd/display".
    separator : str
        Such as "/". Empty parts are no level.

    Raises
    ------
    ValueError
        If no label has a parent, or one has more than 1,000 levels.

    Examples
    --------
    >>> read_paths(np.array(["drm/amd/display", "net"]), "/").path("drm/amd/display")
    ('drm', 'drm/amd', 'drm/amd/display')
    """
    if not separator or labels.dtype.kind not in "UO":
        raise ValueError(
            "only labels that are strings can be paths, and their levels are separated by one "
            f"character at least; got {separator!r} for labels such as {show_label(labels[0])}."
        )
    parents: dict[str, str] = {}
    for label in labels.tolist():
        if label.count(separator) >= MAX_DEPTH:
            raise ValueError(
                f"the label {label[:60]!r}... has {label.count(separator) + 1:,} levels; there may "
                f"be {MAX_DEPTH:,}. Is {separator!r} what separates levels?"
            )
        child = label
        while child not in parents:
            parent = child.rpartition(separator)[0]
            while parent.endswith(separator):
                parent = parent.removesuffix(separator)
            if not parent.strip():
                break
            parents[child] = child = parent
    if not parents:
        raise ValueError(f"no label has {separator!r} in it, so none is a path.")
    return Hierarchy.of(list(parents), list(parents.values()))


def _check_classes(hierarchy: Hierarchy, classes: NDArray[Any]) -> None:
    """Compare the nodes with the classes."""
    check_same_kind(hierarchy.nodes, classes)
    is_node = hierarchy.find(classes) >= 0
    if not is_node.any():
        raise ValueError(
            f"none of the {count(len(classes), 'class')} is in the hierarchy, whose nodes are such "
            f"as {show_label(hierarchy.nodes[0])}; a class is such as {show_label(classes[0])}."
        )
    found = []
    if not is_node.all():
        n_missing = int(np.count_nonzero(~is_node))
        first = show_label(classes[~is_node][0])
        found.append(
            f"{n_missing:,} of {count(len(classes), 'class')} are not in the hierarchy, such as "
            f"{first}: each is a root by itself."
        )
    leaves = hierarchy.nodes[np.diff(hierarchy.children[0]) == 0]
    strange = np.setdiff1d(leaves, classes)
    if len(strange):
        found.append(
            f"{count(len(strange), 'node')} without children, such as {show_label(strange[0])}, "
            "are no classes of the model."
        )
    if found:
        warnings.warn(" ".join(found), HierarchyWarning, stacklevel=level_outside())
