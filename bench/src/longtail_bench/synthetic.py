"""Long-tailed sets of any number of classes, for growth curves.

In: how many classes, documents for each and a seed. Out: a CountDataset with Zipf's law twice: few
classes have most documents, few terms most occurrences. A document's terms come from three sources:
the background, a topic that some fifty classes share, and its class alone; so classes can be told
apart, near ones with more effort. Documents are drawn in chunks, and which terms a topic or a class
prefers is a hash of its number: nothing of size classes x terms is ever built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from longtail.datasets import CountDataset

TERMS_FACTOR, TERMS_EXPONENT = 130, 0.6  # terms = 130 K^0.6, about what the real sets have
MEAN_LENGTH = 30  # term occurrences of a document, and at least SHORTEST
SHORTEST = 5
BACKGROUND_SHARE, TOPIC_SHARE = 0.6, 0.2  # of the occurrences; the rest are the class's own
CLASSES_PER_TOPIC = 50
TOPIC_TERMS, OWN_TERMS = 200, 20  # terms that a topic or a class prefers
CHUNK = 50_000  # documents drawn at once

_TOPIC, _CLASS_SHARE, _MEMBERSHIP = 1, 2, 3  # what a hash is for


def draw_counts(
    n_classes: int, documents_per_class: float = 5.0, n_test: int = 2000, seed: int = 0
) -> CountDataset:
    """Draw a long-tailed set.

    Parameters
    ----------
    n_classes : int
        K, at least 2.
    documents_per_class : float, default=5.0
        Mean number of training documents of a class, at least 1. Every class has one; the rest are
        spread by Zipf's law.
    n_test : int, default=2000
        Test documents; their classes are as frequent as in training.
    seed : int, default=0
        The same seed gives the same set.

    Returns
    -------
    CountDataset
        Counts are float32, as the estimators want them, so that no copy is made.

    Examples
    --------
    >>> data = draw_counts(200, documents_per_class=3.0, n_test=50)
    >>> data.X_train.shape, data.X_test.shape
    ((600, 3123), (50, 3123))
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be an integer of at least 2; got {n_classes!r}.")
    if not documents_per_class >= 1:
        raise ValueError(
            f"documents_per_class must be at least 1, as every class has one; "
            f"got {documents_per_class!r}."
        )
    rng = np.random.default_rng([seed, n_classes])
    n_terms = round(TERMS_FACTOR * n_classes**TERMS_EXPONENT)
    sizes = draw_class_sizes(n_classes, round(n_classes * documents_per_class), rng)
    y_train = rng.permutation(np.repeat(np.arange(n_classes), sizes))
    y_test = y_train[rng.integers(0, len(y_train), n_test)]
    return CountDataset(
        X_train=draw_documents(y_train, n_classes, n_terms, rng),
        y_train=y_train,
        X_test=draw_documents(y_test, n_classes, n_terms, rng),
        y_test=y_test,
        classes=np.arange(n_classes),
        terms=np.arange(n_terms),
    )


def draw_class_sizes(
    n_classes: int, n_documents: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw how many documents each class has: one, and a part of the rest by Zipf's law."""
    shares = 1.0 / rng.permutation(np.arange(1.0, n_classes + 1.0))
    sizes: NDArray[np.int64] = 1 + rng.multinomial(n_documents - n_classes, shares / shares.sum())
    return sizes


def draw_documents(
    y: NDArray[np.int64], n_classes: int, n_terms: int, rng: np.random.Generator
) -> csr_array[Any]:
    """Draw a document for each class id, in chunks."""
    lengths = np.maximum(SHORTEST, rng.poisson(MEAN_LENGTH, len(y)))
    indptr = np.zeros(len(y) + 1, np.int64)
    # Room for documents without repeated terms; what is never written takes no memory.
    indices, data = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum(), np.float32)
    for start in range(0, len(y), CHUNK):
        split = slice(start, start + CHUNK)
        counts = _draw_chunk(y[split], lengths[split], n_classes, n_terms, rng)
        first, last = indptr[start], indptr[start] + counts.nnz
        indices[first:last], data[first:last] = counts.indices, counts.data
        indptr[start + 1 : start + CHUNK + 1] = first + counts.indptr[1:]
    n_entries = indptr[-1]
    if n_entries <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # scipy wants both arrays of one type
    return csr_array((data[:n_entries], indices[:n_entries], indptr), shape=(len(y), n_terms))


def _draw_chunk(
    y: NDArray[np.int64],
    lengths: NDArray[np.int64],
    n_classes: int,
    n_terms: int,
    rng: np.random.Generator,
) -> csr_array[Any]:
    """Draw the terms of some documents."""
    documents = np.repeat(np.arange(len(y)), lengths)
    classes = y[documents]
    source, start = rng.random(len(documents)), rng.random(len(documents))
    topics = (_hash(_MEMBERSHIP, classes, 0) * -(-n_classes // CLASSES_PER_TOPIC)).astype(np.int64)
    topic_terms = _preferred_terms(_TOPIC, topics, zipf(start, TOPIC_TERMS), n_terms)
    own_terms = _preferred_terms(_CLASS_SHARE, classes, zipf(start, OWN_TERMS), n_terms)
    terms = np.where(
        source < BACKGROUND_SHARE,
        zipf(start, n_terms),
        np.where(source < BACKGROUND_SHARE + TOPIC_SHARE, topic_terms, own_terms),
    )
    shape = (len(y), n_terms)
    counts = csr_array(coo_array((np.ones(len(terms)), (documents, terms)), shape=shape))
    counts.sum_duplicates()
    return counts


def zipf(uniform: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Turn uniform numbers below 1 into ranks below n, rank r as often as 1 / (r + 1)."""
    return np.minimum(((n + 1.0) ** uniform).astype(np.int64) - 1, n - 1)


def _preferred_terms(
    purpose: int, draws: NDArray[np.int64], ranks: NDArray[np.int64], n_terms: int
) -> NDArray[np.int64]:
    """Return the term of each rank that a topic or class prefers; rarer ones more often."""
    return (_hash(purpose, draws, ranks) ** 2 * n_terms).astype(np.int64)


def _hash(purpose: int, draws: Any, ranks: Any) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that depend on the arguments alone (the finish of splitmix64)."""
    start = np.asarray(ranks, np.uint64) + np.uint64(purpose << 8)  # ranks are below 256
    mixed = (np.asarray(draws, np.uint64) << np.uint64(16)) + start
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
