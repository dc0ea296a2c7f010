"""FastXML: an ensemble of trees whose nodes rank the classes (Prabhu and Varma, KDD 2014).

In: weighted rows and class ids. Out: a Forest. A node deals its documents out to two children
so that each child can rank the classes of its documents well (nDCG), then learns a sparse separator
that tells the two apart; a leaf holds the distribution of its few documents over the classes. A
document's score for a class is its mean share over the leaves it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from longtail._parallel import parallel_for, uniform_work
from longtail.sparse import Floats, Integers, offsets_from_lengths
from longtail_bench._kernels.fastxml import Tree, grow_tree
from longtail_bench._kernels.forest import follow_tree, rank_leaves
from longtail_bench._kernels.separator import Stopping
from longtail_bench._kernels.types import Ranked, Rows
from longtail_bench.baselines.base import Baseline, Ranking

# The stopping rules of the authors' program for a separator.
STOPPING = Stopping(tolerance=0.01, max_steps=10, max_passes=10)


@dataclass(frozen=True)
class Forest:
    """Trees, one after the other in the same arrays."""

    roots: Integers  # (n_trees,) int64: the first node of each tree
    # (n_nodes, 2) int32: node numbers of the negative and the positive side; -1 for a leaf.
    children: NDArray[np.int32]
    starts: Integers  # (n_nodes + 1,) int64: where each node's entries begin
    # (n_entries,) int32: terms of a separator, `n_terms` for its constant; classes of a leaf.
    ids: NDArray[np.int32]
    # (n_entries,) float32: weights of a separator; shares of the classes of a leaf.
    values: NDArray[np.float32]

    @property
    def tree(self) -> Tree:
        """All trees as one for the kernels."""
        return Tree(self.children, self.starts, self.ids, self.values)

    def leaves(self, rows: Rows, first: int, last: int) -> NDArray[np.int32]:
        """Return the leaf that the documents `first` to `last - 1` reach, a row for each tree."""
        reached = np.empty((len(self.roots), last - first), np.int32)
        for root, leaves in zip(self.roots, reached, strict=True):
            follow_tree(rows, self.tree, root, first, last, leaves)
        return reached


def grow_forest(
    rows: Rows,
    class_ids: Integers,
    class_gains: Floats,
    *,
    C: float,
    max_leaf: int,
    seeds: Integers,
    n_jobs: int | None,
) -> Forest:
    """Grow a tree for each seed.

    Parameters
    ----------
    rows : Rows
        All documents.
    class_ids : ndarray of shape (n_documents,), int64
        Their classes.
    class_gains : ndarray of shape (n_classes,), float64
        What a document adds to the gain of its class: 1 in FastXML, the inverse propensity in
        PfastReXML.
    C : float
        Weight of the logistic loss of a separator against its l1 norm.
    max_leaf : int
        A node of at most this many documents is a leaf.
    seeds : ndarray of shape (n_trees,)
        All randomness of a tree follows from its seed.
    n_jobs : int or None
        Number of threads; the trees are the same for any.

    Returns
    -------
    Forest
    """
    trees: dict[int, Any] = {}

    def grow(first: int, last: int) -> None:
        for tree in range(first, last):
            trees[tree] = grow_tree(
                rows, class_ids, class_gains, max_leaf, C, STOPPING, int(seeds[tree])
            )

    parallel_for(grow, uniform_work(len(seeds)), n_jobs)
    children, starts, entries, values = zip(*(trees[tree] for tree in sorted(trees)), strict=True)
    roots = offsets_from_lengths(np.array([len(nodes) for nodes in children]))[:-1]
    return Forest(
        roots,
        np.concatenate(
            [
                np.where(nodes < 0, -1, nodes + root)
                for nodes, root in zip(children, roots, strict=True)
            ]
        ).astype(np.int32),
        offsets_from_lengths(np.concatenate([np.diff(start) for start in starts])),
        np.concatenate(entries),
        np.concatenate(values),
    )


class FastXML(Baseline):
    """FastXML's trees, for documents of one class each.

    The node objective of the paper alternates over three things: the child of each document, the
    ranking of the classes in each child, and the separator. As in the authors' program the
    separator is learned once, when children and rankings have settled; before that its logistic
    loss is the same on both sides, so that a document moves to the child that gives it the higher
    nDCG. With one class for each document, nDCG is the discount of the rank of that class: all
    documents of a class move together, and the ideal ranking of a child is the order of its counts.

    Parameters
    ----------
    n_trees : int, default=50
        Number of trees.
    C : float, default=1.0
        Weight of the logistic loss of a separator against its l1 norm; divided by the share of
        the documents that start on that side.
    max_leaf : int, default=10
        A node of at most this many documents is a leaf.
    random_state : int, RandomState instance or None, default=None
        Decides the trees.
    n_jobs : int or None, default=None
        Number of threads; the trees are the same for any.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    forest_ : Forest
        The trees.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail_bench.baselines.fastxml import FastXML
    >>> X = np.repeat(np.eye(3, dtype=int), 20, axis=0)
    >>> y = np.repeat(["bird", "fish", "mammal"], 20)
    >>> FastXML(n_trees=5, random_state=0).fit(X, y).predict(X[::20]).tolist()
    ['bird', 'fish', 'mammal']
    """

    def __init__(
        self,
        n_trees: int = 50,
        C: float = 1.0,
        max_leaf: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.C = C
        self.max_leaf = max_leaf
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Grow the trees; every document gains as much."""
        self.forest_ = self._grow(Rows.from_matrix(X), class_ids, np.ones(len(self.classes_)))

    def _grow(self, rows: Rows, class_ids: Integers, class_gains: Floats) -> Forest:
        """Check the parameters and grow the trees."""
        check_at_least("n_trees", self.n_trees, 1)
        check_at_least("max_leaf", self.max_leaf, 1)
        check_positive("C", self.C)
        generator = check_random_state(self.random_state)
        return grow_forest(
            rows,
            class_ids,
            class_gains,
            C=float(self.C),
            max_leaf=self.max_leaf,
            seeds=generator.randint(np.iinfo(np.int32).max, size=self.n_trees),
            n_jobs=self.n_jobs,
        )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank by the mean share over the trees."""
        rows, forest = Rows.from_matrix(X), self.forest_
        ranked = Ranked.empty(X.shape[0], k)

        def rank(first: int, last: int) -> None:
            leaves = forest.leaves(rows, first, last)
            rank_leaves(forest.tree, leaves, len(self.classes_), first, last, ranked)

        parallel_for(rank, rows.indptr, self.n_jobs)
        return ranked.classes, ranked.scores


def check_at_least(name: str, value: Any, lowest: int) -> None:
    """Refuse anything but an integer of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ValueError(f"{name} must be an integer of at least {lowest}; got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Refuse anything but a finite number above zero."""
    if not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
