"""Random draws of a fit: uniform negatives, held-out documents, (document, label) pairs.

In: class ids or label sets, and a seed. Out: ids. A draw depends on the seed and the document
alone, so blocks, threads and workers agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import sampling as kernels
from longtail._labels import LabelSets
from longtail.paper.sampling import draw_adversaries
from longtail.paper.sampling import draw_pairs as draw_pairs  # a public path
from longtail.sparse import Floats, Integers


def draw_uniform_negatives(
    true_classes: Integers,
    pair_ids: Integers,
    n_classes: int,
    n_drawn: int,
    seed: int,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Draw some classes for each pair, uniformly, without replacement, never its own."""
    if not 0 <= n_drawn < n_classes:
        raise ValueError(f"n_drawn must be from 0 to {n_classes - 1}; got {n_drawn!r}.")
    return draw_adversaries(true_classes, pair_ids, n_classes, n_drawn, seed, n_jobs)[:, 1:]


def hold_out(
    labels: LabelSets, most: int, seed: int, named: NDArray[np.bool_] | None = None
) -> Integers:
    """Draw at most `most` documents to keep aside, uniformly; no class loses its last document.

    Classes that are `named` may lose it: they stand for those that are known by name alone.
    """
    keys = random_keys(np.arange(labels.n_documents + 1), seed)
    documents, class_ids = labels.document_ids, labels.class_ids
    order = np.lexsort((keys[documents], class_ids))
    last_of_class = order[np.flatnonzero(np.diff(class_ids[order], append=len(labels.classes)))]
    if named is not None:
        last_of_class = last_of_class[~named[class_ids[last_of_class]]]
    keys[documents[last_of_class]] = np.inf
    return lowest_keys(keys, most)


def draw_labels(
    labels: LabelSets, most: int, seed: int, without: Integers | None = None
) -> Integers:
    """Draw at most `most` (document, label) pairs whose class has another, in random order.

    None is of the documents `without`.
    """
    keys = random_keys(labels.indptr, seed)
    keys[labels.class_sizes[labels.class_ids] < 2] = np.inf
    if without is not None:
        keys[np.isin(labels.document_ids, without)] = np.inf
    return lowest_keys(keys, most)


def random_keys(indptr: Integers, seed: int) -> Floats:
    """Return a random number for each pair that depends on seed, document and place alone."""
    documents = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    positions = np.arange(indptr[-1] - indptr[0]) - (indptr[documents] - indptr[0])
    bits = _mix(np.array([seed], np.uint64) + kernels.GOLDEN)  # an array: its sums wrap around
    for counter in (documents, positions):
        bits = _mix(bits + counter.astype(np.uint64) * kernels.GOLDEN + kernels.GOLDEN)
    keys: Floats = (bits >> np.uint64(11)).astype(np.float64) * kernels.TO_UNIT
    return keys


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits, as the kernel of this name does; here of all pairs at a time."""
    value = (value ^ (value >> np.uint64(30))) * kernels.MIX_1
    value = (value ^ (value >> np.uint64(27))) * kernels.MIX_2
    return value ^ (value >> np.uint64(31))


def lowest_keys(keys: Floats, most: int) -> Integers:
    """Return the rows of the lowest finite keys, lowest first."""
    n_drawn = min(most, int(np.count_nonzero(np.isfinite(keys))))
    return np.argsort(keys, kind="stable")[:n_drawn].astype(np.int64)
