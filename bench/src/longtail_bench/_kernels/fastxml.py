"""Trees of FastXML, grown node by node.

A tree is a table of nodes: `children[node]` are two node ids, or -1 and -1 for a leaf, and the
entries from `starts[node]` to `starts[node + 1] - 1` are (term, weight) of an inner node's
separator, term `n_terms` being the bias, or (class, share) of a leaf. A node comes after its
parent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from longtail_bench._kernels.jit import inner, kernel
from longtail_bench._kernels.random import uniform
from longtail_bench._kernels.separator import Columns, fit_separator
from longtail_bench._kernels.types import Array

_MIN_RISE = 1e-6  # of the mean nDCG, below which a partition does not change any more


class Tree(NamedTuple):
    """Nodes and their entries; see the module."""

    children: Array
    starts: Array
    ids: Array
    values: Array


class NodeScratch(NamedTuple):
    """Scratch arrays for a node's separator; `column_of` and `class_slots` are -1 between nodes."""

    columns: Columns
    terms: Array
    column_of: Array
    class_slots: Array
    present: Array
    dense: Array


@kernel
def rank_classes(gains, ranks):
    """Fill each class's rank by descending gain, ties by class: the order of the highest DCG."""
    order = np.argsort(-gains, kind="mergesort")
    for rank in range(len(order)):
        ranks[order[rank]] = rank


@inner
def discounted_gain(gains, ranks):
    """Return the DCG of both children: gains over log2(2 + rank)."""
    total = 0.0
    for child in range(2):
        for c in range(gains.shape[1]):
            total += gains[child, c] / math.log2(2.0 + ranks[child, c])
    return total


@kernel
def split_classes(gains, sides):
    """Move each class to the child that ranks it higher until the nDCG stops rising; returns it.

    `gains[child, c]` sums the gains of the documents of class c in a child, and is updated. A
    document has one class, so its nDCG is its gain times the discount of that class's rank: all
    documents of a class move together. `sides[c]` is the child, or -1 where both children rank the
    class alike and its documents stay where they are.
    """
    n_classes = gains.shape[1]
    ranks = np.empty((2, n_classes), np.int64)
    min_rise = _MIN_RISE * gains.sum()
    best = -1.0
    sides[:] = -1
    while True:
        for child in range(2):
            rank_classes(gains[child], ranks[child])
        reached = discounted_gain(gains, ranks)
        if best >= 0.0 and reached - best <= min_rise:
            return reached
        best = reached
        for c in range(n_classes):
            if ranks[0, c] != ranks[1, c]:
                child = 0 if ranks[0, c] < ranks[1, c] else 1
                gains[child, c] += gains[1 - child, c]
                gains[1 - child, c] = 0.0
                sides[c] = child


@kernel
def grow(array, size):
    """Return the array with a capacity of `size` entries, at least doubled where it must grow."""
    if size <= len(array):
        return array
    grown = np.empty(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


@kernel
def gather_columns(rows, documents, column_of, columns, terms):
    """Fill the columns of a node's documents, the bias last; returns how many they are.

    `column_of` is -1 everywhere before and after.
    """
    indptr, indices, starts = rows.indptr, rows.indices, columns.starts
    n_columns = 0
    for document in documents:
        for j in range(indptr[document], indptr[document + 1]):
            term = indices[j]
            if column_of[term] < 0:
                column_of[term] = n_columns
                terms[n_columns] = term
                starts[n_columns + 1] = 0
                n_columns += 1
            starts[column_of[term] + 1] += 1
    starts[0] = 0
    for column in range(n_columns):
        starts[column + 1] += starts[column]
    for row in range(len(documents)):
        document = documents[row]
        for j in range(indptr[document], indptr[document + 1]):
            column = column_of[indices[j]]
            columns.rows[starts[column]] = row
            columns.values[starts[column]] = rows.data[j]
            starts[column] += 1
    for column in range(n_columns, 0, -1):  # each start has run on to the next column's
        starts[column] = starts[column - 1]
    starts[0] = 0
    for column in range(n_columns):
        column_of[terms[column]] = -1
    end = starts[n_columns]
    for row in range(len(documents)):
        columns.rows[end + row] = row
        columns.values[end + row] = 1.0
    terms[n_columns] = rows.n_terms
    starts[n_columns + 1] = end + len(documents)
    return n_columns + 1


@inner
def draw_sides(documents, classes, class_gains, slots, seed, sides, present):
    """Toss a coin for each document and let the classes move; False where one side is empty.

    `slots` is -1 everywhere before and after.
    """
    n_present = 0
    for document in documents:
        c = classes[document]
        if slots[c] < 0:
            slots[c] = n_present
            present[n_present] = c
            n_present += 1
    gains = np.zeros((2, n_present))
    for row in range(len(documents)):
        document = documents[row]
        c = classes[document]
        sides[row] = np.int8(uniform(seed, document, len(documents)) < 0.5)
        gains[sides[row], slots[c]] += class_gains[c]
    moved = np.empty(n_present, np.int8)
    split_classes(gains, moved)
    n_right = 0
    for row in range(len(documents)):
        side = moved[slots[classes[documents[row]]]]
        if side >= 0:
            sides[row] = side
        n_right += sides[row]
    for k in range(n_present):
        slots[present[k]] = -1
    return 0 < n_right < len(documents)


@inner
def split_documents(rows, weights, documents, sides):
    """Send each document to the side of its score; returns how many go to side 1 (score >= 0).

    `weights` are dense over the terms, the bias last.
    """
    n_ones = 0
    for row in range(len(documents)):
        document = documents[row]
        score = weights[-1]
        for j in range(rows.indptr[document], rows.indptr[document + 1]):
            score += rows.data[j] * weights[rows.indices[j]]
        sides[row] = 1 if score >= 0.0 else 0
        n_ones += sides[row]
    return n_ones


@inner
def sort_documents(sides, documents):
    """Put the documents of side 0 first, otherwise in their order; returns how many they are."""
    ones = np.empty(len(documents), documents.dtype)
    n_zeros, n_ones = 0, 0
    for row in range(len(documents)):
        if sides[row] == 0:
            documents[n_zeros] = documents[row]
            n_zeros += 1
        else:
            ones[n_ones] = documents[row]
            n_ones += 1
    documents[n_zeros:] = ones[:n_ones]
    return n_zeros


@inner
def fill_leaf(documents, classes, class_gains, slots, ids, values):
    """Fill the classes of a leaf and their mean gains; returns how many.

    `slots` is -1 everywhere before and after.
    """
    n_present = 0
    for document in documents:
        c = classes[document]
        if slots[c] < 0:
            slots[c] = n_present
            ids[n_present], values[n_present] = c, 0.0
            n_present += 1
        values[slots[c]] += class_gains[c] / len(documents)
    for k in range(n_present):
        slots[ids[k]] = -1
    return n_present


@inner
def learn_separator(rows, documents, sides, cost, seed_and_node, stopping, scratch):
    """Learn what tells the sides apart and split the documents by it.

    Returns the weights of the columns in `scratch.terms` and how many documents go to side 1.
    """
    n_columns = gather_columns(rows, documents, scratch.column_of, scratch.columns, scratch.terms)
    n_ones = 0
    for row in range(len(documents)):
        n_ones += sides[row]
    costs = np.empty(2)
    costs[0] = cost * len(documents) / (len(documents) - n_ones)
    costs[1] = cost * len(documents) / n_ones
    weights = np.zeros(n_columns)
    columns = Columns(
        scratch.columns.starts[: n_columns + 1], scratch.columns.rows, scratch.columns.values
    )
    seed, node = seed_and_node
    fit_separator(columns, sides, costs, seed, node, stopping, weights)
    for column in range(n_columns):
        scratch.dense[scratch.terms[column]] = weights[column]
    n_ones = split_documents(rows, scratch.dense, documents, sides)
    for column in range(n_columns):
        scratch.dense[scratch.terms[column]] = 0.0
    return weights, n_ones


@inner
def make_scratch(rows, n_documents, n_classes):
    """Return what the nodes of a tree share."""
    n_terms, n_entries = rows.n_terms, rows.indptr[-1] + n_documents
    return NodeScratch(
        Columns(
            np.empty(n_terms + 2, np.int64),
            np.empty(n_entries, np.int32),
            np.empty(n_entries, np.float32),
        ),
        np.empty(n_terms + 1, np.int32),
        np.full(n_terms, -1, np.int32),
        np.full(n_classes, -1, np.int32),
        np.empty(n_classes, np.int32),
        np.zeros(n_terms + 1, np.float32),
    )


@kernel
def grow_tree(rows, classes, class_gains, max_leaf, cost, stopping, seed):
    """Grow one tree; returns children, starts, ids and values of a `Tree`."""
    n_documents = len(classes)
    scratch = make_scratch(rows, n_documents, len(class_gains))
    order = np.arange(n_documents).astype(np.int32)
    bounds = np.empty((2 * n_documents, 2), np.int64)
    children = np.full((2 * n_documents, 2), -1, np.int32)
    starts = np.zeros(2 * n_documents + 1, np.int64)
    ids, values = np.empty(1024, np.int32), np.empty(1024, np.float32)
    all_sides = np.empty(n_documents, np.int8)
    weights = np.empty(0)
    bounds[0, 0], bounds[0, 1] = 0, n_documents
    n_nodes, node, size = 1, 0, 0
    while node < n_nodes:
        documents = order[bounds[node, 0] : bounds[node, 1]]
        sides = all_sides[: len(documents)]
        n_ones = 0
        if len(documents) > max_leaf and draw_sides(
            documents, classes, class_gains, scratch.class_slots, seed, sides, scratch.present
        ):
            weights, n_ones = learn_separator(
                rows, documents, sides, cost, (seed, node), stopping, scratch
            )
        if 0 < n_ones < len(documents):
            ids, values = grow(ids, size + len(weights)), grow(values, size + len(weights))
            for column in range(len(weights)):
                if np.float32(weights[column]) != 0.0:
                    ids[size], values[size] = scratch.terms[column], weights[column]
                    size += 1
            middle = bounds[node, 0] + sort_documents(sides, documents)
            for child in range(2):
                children[node, child] = n_nodes
                bounds[n_nodes, 0] = bounds[node, 0] if child == 0 else middle
                bounds[n_nodes, 1] = middle if child == 0 else bounds[node, 1]
                n_nodes += 1
        else:
            ids, values = grow(ids, size + len(documents)), grow(values, size + len(documents))
            size += fill_leaf(
                documents, classes, class_gains, scratch.class_slots, ids[size:], values[size:]
            )
        node += 1
        starts[node] = size
    return (
        children[:n_nodes].copy(),
        starts[: n_nodes + 1].copy(),
        ids[:size].copy(),
        values[:size].copy(),
    )
