"""A hierarchy of classes: a tree, or a graph without cycles where nodes have several parents.

In: labels of nodes and the parents of each. Out: depths, paths, branches. Everything is done over
arrays, node by node: no recursion, and memory that grows with nodes and parents alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._columns import as_labels, join_labels, show_label
from longtail._kernels import hierarchy as kernels
from longtail._kernels.types import Tree
from longtail._validation import check_same_kind, look_up
from longtail.sparse import Integers, gather_rows, offsets_from_lengths

# Far more than any taxonomy has (WordNet 19, all living things 40): what is deeper is a mistake,
# and every candidate would be summed up over as many nodes.
MAX_DEPTH = 1_000
_MAX_SHOWN = 5  # nodes of a cycle that an error names


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The parents of classes and of inner nodes.

    Examples
    --------
    >>> hierarchy = Hierarchy.of(["oak", "elm", "tree"], ["tree", "tree", "plant"])
    >>> hierarchy.path("oak"), hierarchy.depth("oak")
    (('plant', 'tree', 'oak'), 2)
    """

    # (n_nodes,): labels, sorted; of the same kind as the classes. A class may be an inner node.
    nodes: NDArray[Any]
    indptr: Integers  # (n_nodes + 1,) int64: where the parents of each node begin
    parents: Integers  # (n_edges,) int64: node ids, ascending within a node

    @classmethod
    def of(cls, children: Any, parents: Any) -> Self:
        """Return the hierarchy of pairs of a child and a parent.

        Parameters
        ----------
        children, parents : sequence of labels
            Of the same length. A child may have several parents; a pair may be there twice.

        Raises
        ------
        ValueError
            If labels are missing or of different kinds, a node is an ancestor of itself, or there
            are more than 1,000 levels.
        """
        try:
            labels = join_labels([as_labels(children), as_labels(parents)])
        except ValueError as error:
            raise ValueError(f"the labels of the hierarchy: {error}") from None
        n_pairs = len(labels) // 2
        nodes, ids = np.unique(labels, return_inverse=True)
        return cls.of_ids(nodes, ids[:n_pairs], ids[n_pairs:])

    @classmethod
    def of_ids(cls, nodes: NDArray[Any], children: Integers, parents: Integers) -> Self:
        """Return the hierarchy of pairs of node ids; checked."""
        keys = np.unique(children * np.int64(len(nodes)) + parents)
        children, parents = np.divmod(keys, len(nodes))
        counts = np.bincount(children, minlength=len(nodes))
        hierarchy = cls(nodes, offsets_from_lengths(counts), parents)
        hierarchy.check()
        return hierarchy

    def check(self) -> None:
        """Refuse cycles and chains that are too long."""
        held_back = np.ones(len(self.nodes), np.bool_)
        held_back[self._order] = False
        if held_back.any():
            cycle = self._find_cycle(held_back)
            named = [show_label(label) for label in self.nodes[cycle[:_MAX_SHOWN]].tolist()]
            shown = " -> ".join([*named, "..." if len(cycle) > _MAX_SHOWN else named[0]])
            raise ValueError(
                f"the hierarchy has a cycle, of {len(cycle):,} nodes: {shown}. Remove one of these "
                "parents."
            )
        if self.n_levels > MAX_DEPTH:
            raise ValueError(
                f"the hierarchy has a chain of {self.n_levels:,} nodes; there may be {MAX_DEPTH:,} "
                f"levels. The last is {show_label(self.nodes[self._depths.argmax()])}."
            )

    def _find_cycle(self, held_back: NDArray[np.bool_]) -> Integers:
        """Return the nodes of a cycle, child first: every node held back has such a parent."""
        owners = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        edges = np.flatnonzero(held_back[owners] & held_back[self.parents])
        found, first = np.unique(owners[edges], return_index=True)
        above = dict(zip(found.tolist(), self.parents[edges[first]].tolist(), strict=True))
        node = int(found[0])
        seen: dict[int, int] = {}
        while node not in seen:
            seen[node] = len(seen)
            node = above[node]
        return np.array(list(seen)[seen[node] :])

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def n_levels(self) -> int:
        """Number of nodes on the longest way from a root."""
        return int(self._depths.max(initial=-1)) + 1

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers]:
        """The nodes, parents first, without those that a cycle holds back; and their depths."""
        order, depths = np.empty(self.n_nodes, np.int64), np.zeros(self.n_nodes, np.int64)
        child_indptr, children = self.children
        n_sorted = kernels.sort_topologically(
            child_indptr, children, np.diff(self.indptr), order, depths
        )
        return order[:n_sorted], depths

    @property
    def _order(self) -> Integers:
        return self._sorted[0]

    @property
    def _depths(self) -> Integers:
        return self._sorted[1]

    @cached_property
    def children(self) -> tuple[Integers, Integers]:
        """Where the children of each node begin, and their ids, ascending within a node."""
        order = np.argsort(self.parents, kind="stable")
        owners = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        counts = np.bincount(self.parents, minlength=self.n_nodes)
        return offsets_from_lengths(counts), owners[order]

    @cached_property
    def roots(self) -> Integers:
        """Ids of the nodes without a parent."""
        return np.flatnonzero(np.diff(self.indptr) == 0)

    @cached_property
    def depths(self) -> Integers:
        """How far each node is from the top, on the longest way.

        A single root is the top itself, which says nothing: 0. Several roots have a depth of 1.
        """
        return self._depths + (len(self.roots) != 1)

    @cached_property
    def tree(self) -> Tree:
        """The arrays as kernels take them."""
        return Tree(self.indptr, self.parents, self.depths)

    def find(self, labels: NDArray[Any]) -> Integers:
        """Return the id of each label; -1 where it is no node."""
        return look_up(self.nodes, labels)

    def find_one(self, label: Any) -> int:
        """Return the id of a node, or say that there is none."""
        wanted = as_labels([label])
        check_same_kind(wanted, self.nodes)
        [found] = self.find(wanted).tolist()
        if found < 0:
            raise ValueError(f"there is no node {show_label(label)} in the hierarchy.")
        return int(found)

    def depth(self, label: Any) -> int:
        """Return how far a node is from the top."""
        return int(self.depths[self.find_one(label)])

    def parents_of(self, label: Any) -> list[Any]:
        """Return the labels of the parents of a node."""
        node = self.find_one(label)
        labels: list[Any] = self.nodes[self.parents[slice(*self.indptr[node : node + 2])]].tolist()
        return labels

    def child_ids(self, node: int) -> Integers:
        """Return the ids of the children of a node."""
        indptr, children = self.children
        return children[indptr[node] : indptr[node + 1]]

    def path(self, label: Any) -> tuple[Any, ...]:
        """Return the nodes from a root to a node; where there are several ways, the longest.

        Of several that are as long, the one over the first parents in the order of labels.
        """
        node = self.find_one(label)
        way = [node]
        while self.indptr[node] < self.indptr[node + 1]:
            parents = self.parents[self.indptr[node] : self.indptr[node + 1]]
            node = int(parents[self._depths[parents].argmax()])
            way.append(node)
        return tuple(self.nodes[way[::-1]].tolist())

    def branch(self, label: Any) -> NDArray[Any]:
        """Return the labels of a node and all that are below it, sorted."""
        reached = np.array([self.find_one(label)])
        is_below = np.zeros(self.n_nodes, np.bool_)
        indptr, children = self.children
        while len(reached):
            is_below[reached] = True
            found = np.unique(children[gather_rows(indptr, reached)[1]])
            reached = found[~is_below[found]]
        return np.asarray(self.nodes[is_below])
