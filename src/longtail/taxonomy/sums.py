"""Sums over the ancestors of candidates: the best node at each depth, and the ranking of a level.

In: the nodes of each document's candidates, best first (-1: none), and the share of each. A node
has the shares of the candidates at or below it, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import hierarchy as kernels
from longtail._kernels.types import Block, TopK, Tree, TreeScratch
from longtail._parallel import parallel_for, uniform_work
from longtail.sparse import Floats, Integers


def _run(
    kernel: Callable[..., None],
    inputs: tuple[Any, ...],
    tree: Tree,
    outputs: Any,
    n_jobs: int | None,
) -> None:
    """Run a kernel over blocks of documents; the first of its inputs has a row for each."""
    n_nodes = len(tree.depths)

    def run_block(first: int, last: int) -> None:
        scratch = TreeScratch(  # zeros, which take memory only where they are written to
            marks=np.zeros(1, np.int64),
            reached=np.empty(n_nodes, np.int64),
            seen=np.zeros(n_nodes, np.int64),
            sums=np.empty(n_nodes),
            are_reached=np.zeros(n_nodes, np.bool_),
            stack=np.empty(n_nodes, np.int64),
        )
        kernel(*inputs, Block(first, last), scratch, outputs)

    parallel_for(run_block, uniform_work(len(inputs[0])), n_jobs)


def find_best_by_depth(
    nodes: Integers, shares: Floats, tree: Tree, n_levels: int, n_jobs: int | None = None
) -> tuple[Integers, Floats]:
    """Return the node of the highest sum at each depth, -1 for none, and that sum.

    Both of shape (n_documents, n_levels).
    """
    best = TopK(np.empty((len(nodes), n_levels), np.int64), np.empty((len(nodes), n_levels)))
    _run(kernels.find_best_by_depth, (nodes, shares, tree), tree, best, n_jobs)
    return best.classes, best.scores


def rank_level(
    nodes: Integers, shares: Floats, tree: Tree, level: int, k: int, n_jobs: int | None = None
) -> tuple[Integers, Floats]:
    """Return the k nodes of the highest sums at a depth, best first; -1 for none.

    A candidate that is not as deep counts as itself.
    """
    top = TopK(np.empty((len(nodes), k), np.int64), np.empty((len(nodes), k)))
    _run(kernels.rank_level, (nodes, shares, tree, level), tree, top, n_jobs)
    return top.classes, top.scores


def contain_ancestors(
    starts: Integers, nodes: Integers, tree: Tree, n_jobs: int | None = None
) -> NDArray[np.bool_]:
    """Return which nodes of each row are the first node of the row or one of its ancestors."""
    found: NDArray[Any] = np.empty(nodes.shape, np.bool_)
    _run(kernels.contain_ancestors, (starts, nodes, tree), tree, found, n_jobs)
    return found
