"""(π,κ)-double sampling: which documents, and for each of them which adversarial classes.

In: class ids. Out: a PairSample. Algorithm 1 of the paper up to its call of φ; Eq. 4's order
inside a pair is `longtail.paper.pairwise`.
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
from longtail.model.statistics import check_class_ids
from longtail.sparse import Floats, Integers, index_dtype


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
    classes = draw_adversaries(labels[documents], documents, n_classes, n_adversaries, seed, n_jobs)
    return PairSample(documents, classes)


def draw_adversaries(
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


def draw_seed(random_state: Any) -> int:
    """Turn scikit-learn's random_state into one 63-bit seed."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
