"""The parents of classes as changes have them.

In: the hierarchy of a base, and what live entries say of parents. Out: the hierarchy of today. A
node is a class, by its persistent id, or a label; so a class that is renamed takes its place along,
and whichever entry is taken back, the others mean what they meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail._columns import as_labels, join_labels, show_label
from longtail._validation import check_same_kind, look_up
from longtail.model.overlay import Overlay, RefusedError
from longtail.sparse import Integers
from longtail.taxonomy.hierarchy import Hierarchy

ACTIONS = ("hierarchy", "move")


class CycleError(RefusedError):
    """Parents that make no hierarchy, of whichever entries they are."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ())


@dataclass(frozen=True, eq=False)
class Parents:
    """The parents of nodes in an entry."""

    labels: NDArray[Any]  # (n_nodes,): what the nodes were called then
    # (n_nodes,) int64: persistent id of the class that a node is; -1 where it was none.
    ids: Integers
    # (n_pairs,) int64: positions of nodes.
    children: Integers
    parents: Integers
    # Whether these are all nodes; otherwise the first one has other parents, and no more is said.
    is_whole: bool
    # Persistent ids that were used then: a class that came later can be one of the labels.
    n_ids: int

    @classmethod
    def whole(cls, hierarchy: Hierarchy | None, overlay: Overlay) -> Self:
        """Return the parents of all nodes; no node at all where there is no hierarchy."""
        none = np.zeros(0, np.int64)
        if hierarchy is None:
            return cls(overlay.base.classes[:0], none, none, none, True, overlay.n_ids)
        children = np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.indptr))
        ids = _find_ids(hierarchy.nodes, overlay)
        return cls(hierarchy.nodes, ids, children, hierarchy.parents, True, overlay.n_ids)

    @classmethod
    def of_base(cls, hierarchy: Hierarchy, overlay: Overlay) -> Self:
        """Return the parents that nodes have without any change."""
        children = np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.indptr))
        rows = look_up(overlay.base.classes, hierarchy.nodes)
        ids = np.append(overlay.row_ids, -1)[rows]
        return cls(hierarchy.nodes, ids, children, hierarchy.parents, True, 0)

    @classmethod
    def moved(cls, labels: NDArray[Any], overlay: Overlay) -> Self:
        """Return the parents of the first of some nodes: the others."""
        parents = np.arange(1, len(labels))
        ids = _find_ids(labels, overlay)
        return cls(labels, ids, np.zeros_like(parents), parents, False, overlay.n_ids)

    def labels_today(self, overlay: Overlay) -> NDArray[Any]:
        """Return what the nodes are called today."""
        ids = self.ids.copy()
        late = {label: i for i, label in reversed(overlay.labels.items()) if i >= self.n_ids}
        if late:
            plain = np.flatnonzero(ids < 0)
            ids[plain] = [late.get(label, -1) for label in self.labels[plain].tolist()]
        is_class = np.flatnonzero(ids >= 0)
        ranks = overlay.ranks[ids[is_class]]
        here, gone = is_class[ranks >= 0], is_class[ranks < 0]
        of_gone = [overlay.label_of(class_id) for class_id in ids[gone].tolist()]
        given = [self.labels, overlay.all_classes[ranks[ranks >= 0]], as_labels(of_gone)]
        which = np.arange(len(ids))
        which[np.append(here, gone)] = len(ids) + np.arange(len(is_class))
        return np.asarray(join_labels(given)[which]) if len(ids) else self.labels


def _find_ids(labels: NDArray[Any], overlay: Overlay) -> Integers:
    """Return the persistent id of each label; -1 where no class is called so, nor would be."""
    ids = np.append(overlay.ids, -1)[look_up(overlay.all_classes, labels)]
    if not overlay.visible.all():
        hidden = overlay.find_hidden()
        plain = np.flatnonzero(ids < 0)
        ids[plain] = [hidden.get(label, -1) for label in labels[plain].tolist()]
    return np.asarray(ids)


def find_hierarchy(
    first: Hierarchy | None, overlay: Overlay, edits: Mapping[int, Parents]
) -> Hierarchy | None:
    """Return the hierarchy of today, of that of the base and what live entries say, by number.

    The last whole hierarchy counts, and the last move of each node since; without a hierarchy a
    move says nothing. Nodes that are called the same are one, with the parents of both.

    Raises
    ------
    CycleError
        If a node would be an ancestor of itself, or there are too many levels.
    """
    if not edits and not any(of_class.of_kind("rename") for of_class in overlay.edits.values()):
        return first
    last = max((n for n, edit in edits.items() if edit.is_whole), default=0)
    start = edits.get(last)
    if start is None and first is not None:
        start = Parents.of_base(first, overlay)
    if start is None or not len(start.labels):
        return None
    moves = [edits[n] for n in sorted(edits) if n > last]
    try:
        return _join([start, *moves], overlay)
    except ValueError as error:
        raise CycleError(str(error)) from None


def _join(given: list[Parents], overlay: Overlay) -> Hierarchy:
    """Return a whole hierarchy with moves after it, as nodes are called today."""
    labels = join_labels([parents.labels_today(overlay) for parents in given])
    check_same_kind(labels, overlay.all_classes)
    # Nearly sorted already: the index makes numpy sort stably, which takes advantage of it.
    nodes, _, ids = np.unique(labels, return_index=True, return_inverse=True)
    begins = np.cumsum([0, *(len(parents.labels) for parents in given)]).tolist()
    moved = {
        int(ids[begin]): ids[begin + parents.parents]
        for parents, begin in zip(given[1:], begins[1:], strict=False)
    }
    start = given[0]
    children, above = ids[start.children], ids[start.parents]
    stays = ~np.isin(children, list(moved))
    children = np.concatenate(
        [children[stays], *(np.full(len(others), node) for node, others in moved.items())]
    )
    above = np.concatenate([above[stays], *moved.values()])
    differ = children != above  # two nodes that are called the same now may have been a pair
    return Hierarchy.of_ids(nodes, children[differ], above[differ])


def check_moved(hierarchy: Hierarchy | None, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse a move of what is no node, or below itself; its parents follow it in `labels`."""
    if hierarchy is None:
        raise ValueError("this model has no hierarchy; give it one with set_hierarchy.")
    check_same_kind(labels, hierarchy.nodes)
    first = labels[:1]
    if look_up(classes, first)[0] < 0 and hierarchy.find(first)[0] < 0:
        shown = show_label(first[0])
        raise ValueError(f"{shown} is neither a class nor a node of the hierarchy.")
    if np.any(labels[1:] == first):
        raise ValueError(f"{show_label(first[0])} cannot be its own parent.")
