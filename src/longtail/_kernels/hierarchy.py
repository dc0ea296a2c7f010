"""Hierarchies: topological order, and sums over the ancestors of a document's candidates.

Nothing recurses. Every visit of the ancestors of a node marks what it has seen, so a node that is
reached on several ways counts once; the marks are taken back afterwards, and no document costs a
pass over all nodes.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import inlined, kernel, subroutine
from longtail._kernels.ranking import fill_rest, keep_best


@kernel
def sort_topologically(child_indptr, children, n_parents, order, depths):
    """Fill the nodes, parents first, and the length of the longest way to each from a root.

    `n_parents` is counted down. Returns how many nodes there are that no cycle holds back.
    """
    n_sorted = np.int64(0)
    for node in range(len(n_parents)):
        if n_parents[node] == 0:
            order[n_sorted] = node
            n_sorted += 1
    first = np.int64(0)
    while first < n_sorted:
        node = order[first]
        first += 1
        for p in range(child_indptr[node], child_indptr[node + 1]):
            child = children[p]
            depths[child] = max(depths[child], depths[node] + 1)
            n_parents[child] -= 1
            if n_parents[child] == 0:
                order[n_sorted] = child
                n_sorted += 1
    return n_sorted


@subroutine
def visit(start, tree, mark, seen, stack):
    """Mark a node and its ancestors that do not have this mark, and put them on the stack.

    Returns how many; the first is the node itself.
    """
    n_found = np.int64(0)
    if seen[start] != mark:
        seen[start] = mark
        stack[0] = start
        n_found = np.int64(1)
    first = np.int64(0)
    while first < n_found:
        node = stack[first]
        first += 1
        for p in range(tree.indptr[node], tree.indptr[node + 1]):
            parent = tree.parents[p]
            if seen[parent] != mark:
                seen[parent] = mark
                stack[n_found] = parent
                n_found += 1
    return n_found


@inlined
def add_share(node, share, scratch, n_reached):
    """Add a share to the sum of a node; returns how many nodes have been reached."""
    if not scratch.are_reached[node]:
        scratch.are_reached[node] = True
        scratch.sums[node] = 0.0
        scratch.reached[n_reached] = node
        n_reached += 1
    scratch.sums[node] += share
    return n_reached


@subroutine
def sum_up(nodes, shares, tree, scratch):
    """Add the share of each candidate to its node and their ancestors; returns how many these are.

    They are listed in `scratch.reached`; -1 is no candidate.
    """
    n_reached = np.int64(0)
    for column in range(len(nodes)):
        node = nodes[column]
        if node < 0:
            continue
        first = tree.indptr[node]
        while tree.indptr[node + 1] == first + 1:  # one way up, on which no node is met twice
            n_reached = add_share(node, shares[column], scratch, n_reached)
            node = tree.parents[first]
            first = tree.indptr[node]
        scratch.marks[0] += 1
        n = visit(node, tree, scratch.marks[0], scratch.seen, scratch.stack)
        for i in range(n):
            n_reached = add_share(scratch.stack[i], shares[column], scratch, n_reached)
    return n_reached


@kernel
def find_best_by_depth(nodes, shares, tree, block, scratch, best):
    """Fill the node of the highest sum at each depth of each document; ties go to the lower id.

    A depth that no candidate reaches has the node -1 with a sum of 0.
    """
    for i in range(block.first, block.last):
        for depth in range(best.classes.shape[1]):
            best.classes[i, depth] = -1
            best.scores[i, depth] = 0.0
        n_reached = sum_up(nodes[i], shares[i], tree, scratch)
        for r in range(n_reached):
            node = scratch.reached[r]
            scratch.are_reached[node] = False
            depth, total = tree.depths[node], scratch.sums[node]
            kept = best.classes[i, depth]
            if (
                kept < 0
                or total > best.scores[i, depth]
                or (total == best.scores[i, depth] and node < kept)
            ):
                best.classes[i, depth] = node
                best.scores[i, depth] = total


@kernel
def rank_level(nodes, shares, tree, level, block, scratch, top):
    """Fill the nodes of the highest sums at a depth, best first.

    A candidate that is not as deep counts as itself.
    """
    for i in range(block.first, block.last):
        size = np.int64(0)
        n_reached = sum_up(nodes[i], shares[i], tree, scratch)
        for r in range(n_reached):
            node = scratch.reached[r]
            scratch.are_reached[node] = False
            if tree.depths[node] == level:
                size = keep_best(scratch.sums[node], node, size, top.scores[i], top.classes[i])
        for column in range(nodes.shape[1]):
            node = nodes[i, column]
            if node >= 0 and tree.depths[node] < level:
                size = keep_best(shares[i, column], node, size, top.scores[i], top.classes[i])
        fill_rest(size, top.scores[i], top.classes[i])


@kernel
def contain_ancestors(starts, nodes, tree, block, scratch, found):
    """Fill which nodes of each row are the row's first node or its ancestors; -1 is none."""
    for i in range(block.first, block.last):
        scratch.marks[0] += 1
        mark = scratch.marks[0]
        if starts[i] >= 0:
            visit(starts[i], tree, mark, scratch.seen, scratch.stack)
        for column in range(nodes.shape[1]):
            node = nodes[i, column]
            found[i, column] = node >= 0 and scratch.seen[node] == mark
