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
from longtail._parallel import parallel_for, uniform_work
from longtail._validation import cap_adversaries, check_examples_per_class
from longtail.sparse import Floats, Integers, index_dtype
from longtail.statistics.classes import check_class_ids


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
    classes = np.empty((len(documents), 1 + n_adversaries), index_dtype(n_classes))
    parallel_for(
        lambda first, last: kernels.fill_adversaries(
            labels, documents, n_classes, seed, Block(first, last), classes
        ),
        uniform_work(len(documents)),
        n_jobs,
    )
    return PairSample(documents, classes)


def draw_uniform_negatives(
    y: Integers,
    document_ids: Integers,
    n_classes: int,
    n_drawn: int,
    seed: int,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Draw some classes for each document, uniformly, without replacement, never its own."""
    if not 0 <= n_drawn < n_classes:
        raise ValueError(f"n_drawn must be from 0 to {n_classes - 1}; got {n_drawn!r}.")
    labels = np.ascontiguousarray(y, np.int64)  # one type, so that the kernel is compiled once
    classes = np.empty((len(document_ids), 1 + n_drawn), index_dtype(n_classes))
    parallel_for(
        lambda first, last: kernels.fill_adversaries(
            labels, document_ids, n_classes, seed, Block(first, last), classes
        ),
        uniform_work(len(document_ids)),
        n_jobs,
    )
    return classes[:, 1:]


def hold_out(y: Integers, n_classes: int, most: int, seed: int) -> Integers:
    """Draw at most `most` documents to keep aside, uniformly; no class loses its last document."""
    keys = _document_keys(len(y), seed)
    order = np.lexsort((keys, y))
    last_of_class = np.flatnonzero(np.diff(y[order], append=n_classes))
    keys[order[last_of_class]] = np.inf
    return _lowest(keys, most)


def draw_documents(
    y: Integers, n_classes: int, most: int, seed: int, without: Integers | None = None
) -> Integers:
    """Draw at most `most` documents that are not alone in their class, in random order."""
    keys = _document_keys(len(y), seed)
    keys[np.bincount(y, minlength=n_classes)[y] < 2] = np.inf
    if without is not None:
        keys[without] = np.inf
    return _lowest(keys, most)


def _document_keys(n_documents: int, seed: int) -> Floats:
    """Return a random number for each document that depends on seed and document alone."""
    keys = np.empty(n_documents)
    kernels.fill_keys(seed, keys)
    return keys


def _lowest(keys: Floats, most: int) -> Integers:
    """Return the documents of the lowest finite keys, lowest first."""
    n_drawn = min(most, int(np.count_nonzero(np.isfinite(keys))))
    return np.argsort(keys, kind="stable")[:n_drawn].astype(np.int64)


def draw_seed(random_state: Any) -> int:
    """Turn scikit-learn's random_state into one 63-bit seed."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
