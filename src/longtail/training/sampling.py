"""Random draws of a fit: uniform negatives, held-out documents, (document, label) pairs.

In: class ids or label sets, and a seed. Out: ids. A draw depends on the seed and the document
alone, so blocks, threads and workers agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import sampling as kernels
from longtail._labels import LabelSets
from longtail.paper.sampling import draw_adversaries
from longtail.paper.sampling import draw_pairs as draw_pairs  # a public path
from longtail.sparse import Floats, Integers
from longtail.training.config import FitConfig, candidate_factor

# Classes that held-out documents have emptied: with fewer, what a class without documents is worth
# beside others of its kind is not learned.
MIN_EMPTIED = 20


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws that are made before anything is learned."""

    held_out: Integers  # (n_held_out,): ids of the documents that are kept aside
    # (n_sampled,): ids of the (document, label) pairs that the shared weights are learned on, in
    # their order.
    sample: Integers
    # (n_sampled,): document and label of each of these pairs.
    document_ids: Integers
    class_ids: Integers
    # (n_classes,) bool: which classes' texts count for held-out documents.
    texts_count: NDArray[np.bool_]
    # Documents and (document, label) pairs to learn from.
    n_documents: int
    n_labels: int
    # How many times as many candidates a document has as the estimator asks for.
    candidate_factor: int
    # (n_sampled,): theirs, as in `LabelSets`.
    weights: Floats | None = None
    costs: Floats | None = None


def draw_documents(
    labels: LabelSets, have_text: NDArray[np.bool_] | None, config: FitConfig
) -> Draws:
    """Draw the documents to hold out, and the pairs that the shared weights are learned on.

    Classes that `have_text` may lose their last document. With several labels any class may: a new
    document may have a label that the model does not have, beside others that it has.
    """
    n_documents, n_labels, sizes = labels.n_documents, len(labels.class_ids), labels.class_sizes
    may_be_empty = np.ones(len(sizes), np.bool_) if labels.has_several else have_text
    n_held_out = min(int(config.held_out_share * n_documents), config.max_held_out)
    held_out = hold_out(labels, n_held_out * config.calibrate, config.seed, may_be_empty)
    sample = draw_labels(labels, config.n_sampled, config.seed, without=held_out)
    return Draws(
        held_out,
        sample,
        labels.document_ids[sample],
        labels.class_ids[sample],
        (sizes > 0) | _learns_from_empty(labels, held_out, have_text),
        n_documents,
        n_labels,
        candidate_factor(labels.has_several, n_labels, n_documents),
        None if labels.weights is None else labels.weights[sample],
        None if labels.costs is None else labels.costs[sample],
    )


def _learns_from_empty(
    labels: LabelSets, held_out: Integers, have_text: NDArray[np.bool_] | None
) -> bool:
    """Return whether held-out documents show how seldom classes without documents are labels.

    To documents with several labels, which are drawn uniformly, a class that they have emptied is
    no other than one that never had a document. With one label the texts of these are left out.
    """
    if have_text is None or not labels.has_several:
        return False
    sizes = labels.class_sizes
    emptied = (sizes > 0) & (sizes == labels.gather(held_out).class_sizes) & have_text
    return int(np.count_nonzero(emptied)) >= MIN_EMPTIED


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
    labels: LabelSets, most: int, seed: int, may_be_empty: NDArray[np.bool_] | None = None
) -> Integers:
    """Draw at most `most` documents to keep aside, uniformly; no class loses its last document.

    But those that `may_be_empty`.
    """
    keys = random_keys(np.arange(labels.n_documents + 1), seed)
    documents, class_ids = labels.document_ids, labels.class_ids
    order = np.lexsort((keys[documents], class_ids))
    last_of_class = order[np.flatnonzero(np.diff(class_ids[order], append=len(labels.classes)))]
    if may_be_empty is not None:
        last_of_class = last_of_class[~may_be_empty[class_ids[last_of_class]]]
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
