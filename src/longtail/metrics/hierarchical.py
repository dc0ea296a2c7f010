"""Hierarchical measures: how far a wrong answer is from the right one.

In: a hierarchy, the true labels and the predicted ones, each a class or an inner node. Out:
precision, recall and F1 of Kiritchenko et al. (2006), F1 and distance over lowest common ancestors
(Kosmopoulos et al. 2015), accuracy by depth.

The top, above which there is nothing, is no node: it is the only root, or stands above several. A
label that is no node is a root by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from longtail.taxonomy.hierarchy import Hierarchy

_TOP: tuple[str] = ("top",)  # no label: labels are strings or numbers


@dataclass(frozen=True)
class HierarchicalScores:
    """How good answers are by a hierarchy; shares are from 0 to 1."""

    # Nodes that are at or above both a true and a predicted label of a document, by those at or
    # above the predicted, and the true ones; sums over all documents (Kiritchenko). The top does
    # not count.
    precision: float
    recall: float
    f1: float
    # Mean F1 of the nodes between each label and the lowest ancestor of both, that one counted; NaN
    # for label sets.
    lca_f1: float
    # Mean number of edges between the true and the predicted label; NaN for label sets.
    distance: float
    # By depth, the share of the documents with a true node there whose answer has the same node
    # there, and how many these are.
    levels: dict[int, tuple[float, int]]


def hierarchical_scores(
    hierarchy: Hierarchy, true: Sequence[Any], predicted: Sequence[Any]
) -> HierarchicalScores:
    """Compare answers with true labels by a hierarchy.

    Parameters
    ----------
    hierarchy : Hierarchy
        The parents of labels.
    true, predicted : sequence of label or of list of labels
        Of each document one label, or a list of them. A predicted None, or an empty list, is no
        answer, which is the top.

    Examples
    --------
    >>> from longtail.taxonomy import Hierarchy
    >>> birds = Hierarchy.of(["owl", "duck", "bird", "cat"], ["bird", "bird", "animal", "animal"])
    >>> found = hierarchical_scores(birds, ["owl", "owl"], ["duck", "owl"])
    >>> found.precision, found.lca_f1, found.distance, found.levels[1]
    (0.75, 0.75, 1.0, (1.0, 2))
    """
    if len(true) != len(predicted):
        raise ValueError(
            f"there are {len(true):,} true and {len(predicted):,} predicted labels; they must be "
            "as many."
        )
    if not len(true):
        raise ValueError("there are no documents to evaluate.")
    above = _Ancestors(hierarchy)
    n_common = n_predicted = n_true = 0
    lca_f1, distances = [], []
    hits: dict[int, int] = {}
    totals: dict[int, int] = {}
    for true_labels, given in zip(map(_as_list, true), map(_as_list, predicted), strict=True):
        wanted, found = above.of_all(tuple(true_labels)), above.of_all(tuple(given))
        n_common += len(wanted & found)
        n_true, n_predicted = n_true + len(wanted), n_predicted + len(found)
        common_depths = {above.depth(node) for node in wanted & found}
        for depth in {above.depth(node) for node in wanted}:
            totals[depth] = totals.get(depth, 0) + 1
            hits[depth] = hits.get(depth, 0) + (depth in common_depths)
        if len(true_labels) == 1 and len(given) <= 1:
            first, second = above.meet(true_labels[0], given[0] if given else _TOP)
            distances.append(first + second)
            lca_f1.append(2.0 / (first + second + 2))
    is_single = len(distances) == len(true)
    return HierarchicalScores(
        precision=n_common / n_predicted if n_predicted else 0.0,
        recall=n_common / n_true if n_true else 0.0,
        f1=2.0 * n_common / (n_true + n_predicted) if n_true + n_predicted else 0.0,
        lca_f1=float(np.mean(lca_f1)) if is_single else float("nan"),
        distance=float(np.mean(distances)) if is_single else float("nan"),
        levels={depth: (hits[depth] / totals[depth], totals[depth]) for depth in sorted(totals)},
    )


def _as_list(labels: Any) -> list[Any]:
    if labels is None:
        return []
    return list(labels) if isinstance(labels, list | tuple | set | frozenset) else [labels]


class _Ancestors:
    """Distances from labels up to their ancestors, worked out once for each label."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._ids = {label: node for node, label in enumerate(hierarchy.nodes.tolist())}
        roots = hierarchy.roots.tolist()
        self._single_root = roots[0] if len(roots) == 1 else None
        self.distances = cache(self._measure)
        self.of_all = cache(self._join)

    def _measure(self, label: Any) -> dict[Hashable, int]:
        """Return the length of the shortest way to each node above a label, and to the top."""
        if label == _TOP:
            return {_TOP: 0}
        node = self._ids.get(label)
        if node is None:
            return {("no node", label): 0, _TOP: 1}
        if node == self._single_root:
            return {_TOP: 0}
        found: dict[Hashable, int] = {node: 0}
        reached, length = [node], 0
        while reached:
            length += 1
            parents = [p for child in reached for p in self._parents(child)]
            reached = []
            for parent in parents:
                if parent not in found:
                    found[parent] = length
                    if parent != _TOP:
                        reached.append(parent)
        return found

    def _parents(self, node: int) -> list[Any]:
        indptr = self._hierarchy.indptr
        parents = self._hierarchy.parents[indptr[node] : indptr[node + 1]].tolist()
        return [_TOP if parent == self._single_root else parent for parent in parents] or [_TOP]

    def _join(self, labels: tuple[Any, ...]) -> frozenset[Hashable]:
        """Return the nodes at or above any of the labels, without the top."""
        return frozenset({n for label in labels for n in self.distances(label)} - {_TOP})

    def depth(self, node: Any) -> int:
        """Return how far a node is from the top; 1 for a label that is no node."""
        return int(self._hierarchy.depths[node]) if isinstance(node, int) else 1

    def meet(self, first: Any, second: Any) -> tuple[int, int]:
        """Return how far two labels are from their nearest common ancestor."""
        ups, others = self.distances(first), self.distances(second)
        common = ups.keys() & others.keys()
        return min(((ups[n], others[n]) for n in common), key=lambda pair: (sum(pair), pair))
