"""(π,κ)-double sampling: which documents, and for each of them which adversarial classes.

In: class ids. Out: a PairSample. Algorithm 1 of the paper up to its call of φ; Eq. 4's order
inside a pair belongs to the learner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from longtail._kernels import sampling as kernels
from longtail._kernels.types import Block
from longtail._labels import LabelSets
from longtail._parallel import parallel_for, uniform_work
from longtail._validation import cap_adversaries, check_examples_per_class
from longtail.sparse import Floats, Integers, index_dtype
from longtail.statistics.checks import check_class_ids


@dataclass(frozen=True)
class PairSample:
    """The documents that were kept, each with its true class and its adversaries.

    Attributes
    ----------
    documents : ndarray of shape (M,), int64
        Document ids, ascending.
    classes : ndarray of shape (M, 1 + adversaries), int32 (int64 beyond 2^31 classes)
        Class ids; the true class in column 0.
    """

    documents: Integers
    classes: NDArray[Any]

    def __len__(self) -> int:
        """M, the number of documents kept."""
        return len(self.documents)


def retention_probabilities(class_sizes: ArrayLike, examples_per_class: float) -> Floats:
    """Return π_k = min(1, examples_per_class / n_k), the probability that a document is kept.

    Parameters
    ----------
    class_sizes : array-like of shape (n_classes,)
        n_k, the number of documents of each class.
    examples_per_class : float
        How many documents of a class are kept on average, where it has that many.

    Returns
    -------
    ndarray of shape (n_classes,), float64
        1 for a class without documents.

    Examples
    --------
    >>> retention_probabilities([1, 2, 8], examples_per_class=2)
    array([1.  , 1.  , 0.25])
    """
    check_examples_per_class(examples_per_class)
    sizes = np.asarray(class_sizes, dtype=np.float64)
    return np.asarray(np.minimum(1.0, examples_per_class / np.maximum(sizes, 1.0)))


def draw_pairs(
    y: ArrayLike,
    n_classes: int,
    examples_per_class: float,
    adversaries: int,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PairSample:
    """Draw documents with π and, for each, κ other classes uniformly without replacement.

    Parameters
    ----------
    y : array-like of shape (n_documents,), int
        Class ids, 0 to n_classes - 1.
    n_classes : int
        K, at least 2.
    examples_per_class : float
        Documents kept of each class on average; each document is drawn independently.
    adversaries : int
        κ; capped at n_classes - 1.
    random_state : int, RandomState or None
        The same state gives the same sample, for any number of threads.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    PairSample

    Examples
    --------
    >>> sample = draw_pairs([0, 1, 2, 1], 3, examples_per_class=1, adversaries=2, random_state=0)
    >>> sample.classes.shape[1]
    3
    """
    n_adversaries = cap_adversaries(adversaries, n_classes)
    labels = check_class_ids(y, n_classes, len(np.asarray(y)))
    seed = draw_seed(random_state)
    probabilities = retention_probabilities(
        np.bincount(labels, minlength=n_classes), examples_per_class
    )
    keep = np.zeros(len(labels), np.bool_)
    kernels.keep_documents(labels, probabilities, seed, keep)
    documents = np.flatnonzero(keep).astype(np.int64)
    classes = _draw_classes(labels[documents], documents, n_classes, n_adversaries, seed, n_jobs)
    return PairSample(documents, classes)


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
    return _draw_classes(true_classes, pair_ids, n_classes, n_drawn, seed, n_jobs)[:, 1:]


def _draw_classes(
    true_classes: Integers,
    document_ids: Integers,
    n_classes: int,
    n_drawn: int,
    seed: int,
    n_jobs: int | None,
) -> NDArray[Any]:
    """Return each document's true class and some others; which ones its id and the seed decide."""
    # One type, so that the kernel is compiled once.
    avoided = np.ascontiguousarray(true_classes, np.int64)
    classes = np.empty((len(document_ids), 1 + n_drawn), index_dtype(n_classes))
    parallel_for(
        lambda first, last: kernels.fill_adversaries(
            avoided, document_ids, n_classes, seed, Block(first, last), classes
        ),
        uniform_work(len(document_ids)),
        n_jobs,
    )
    return classes


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


def draw_seed(random_state: Any) -> int:
    """Turn scikit-learn's random_state into one 63-bit seed."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
