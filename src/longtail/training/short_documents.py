"""Documents much shorter than usual: how much less certain their best candidate is.

In: held-out documents truncated to a few of their terms, and the probabilities that a map of whole
documents gives them. Out: the number of terms below which a document is short, and how much its log
odds of being correct fall with the logarithm of its length. A query of three words has scores like
those of a long document, and without this it would have their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longtail._constants import LARGEST_SLOPE
from longtail._elementary import exp, log
from longtail.sparse import CountMatrix, Floats, Integers, offsets_from_lengths
from longtail.training.sampling import random_keys

MAX_TRUNCATED = 500  # documents that are truncated: one number is learned from them
SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16)  # of the terms of a document that are left
# Of the held-out documents are short. What these are worth the map of all of them knows already:
# the fewer, the less it is changed.
SHORT_SHARE = 0.1
LARGEST_PROBABILITY = 0.999  # of a short document; a map that ends at 1 would leave no doubt
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class TruncatedDocuments:
    """Copies of documents with some of their terms.

    Attributes
    ----------
    document_ids : ndarray of shape (n_copies,), int64
        Which document each is a copy of.
    counts : CountMatrix
        The copies.
    """

    document_ids: Integers
    counts: CountMatrix


def truncate_documents(counts: CountMatrix, seed: int) -> TruncatedDocuments:
    """Return the first documents with each of `SHARES` of their terms, drawn at random.

    Which terms are left depends on the seed and the row of the document alone; the terms of a
    shorter copy are among those of a longer one.
    """
    rows = np.arange(min(counts.n_documents, MAX_TRUNCATED))
    whole = counts.gather(rows)
    lengths = np.diff(whole.indptr)
    document_ids = np.repeat(rows, lengths)
    order = np.lexsort((random_keys(whole.indptr, seed), document_ids))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - whole.indptr[document_ids]
    n_left = [np.ceil(share * lengths).astype(np.int64) for share in SHARES]
    kept = np.concatenate([np.flatnonzero(ranks < n[document_ids]) for n in n_left])
    indptr = offsets_from_lengths(np.concatenate(n_left))
    truncated = CountMatrix(indptr, whole.indices[kept], whole.data[kept], whole.n_terms)
    copies = np.tile(rows, len(SHARES))
    if whole.embeddings is not None:
        truncated = replace(truncated, embeddings=whole.embeddings[copies])
    return TruncatedDocuments(copies, truncated)


def find_short_length(lengths: Integers) -> float:
    """Return the number of terms below which a document is short; at least 1."""
    return float(max(np.sort(lengths)[int(SHORT_SHARE * (len(lengths) - 1))], 1))


def doubt_short(
    probabilities: Floats, lengths: Integers, short_length: float, slope: float
) -> Floats:
    """Return the probabilities of short documents as they are worth; those of others stay.

    Log odds fall by the slope for each time that a document is e times shorter than `short_length`.

    Parameters
    ----------
    probabilities : ndarray of shape (n_documents,) or (n_documents, q), float64
        Read off the maps of whole documents.
    lengths : ndarray of shape (n_documents,)
        Distinct terms of each document.
    short_length, slope : float
        As `find_short_length` and `fit_slope` return them.
    """
    shortness = _measure_shortness(lengths, short_length)
    is_short = slope * shortness > 0.0
    if not is_short.any():
        return probabilities
    doubted = probabilities.copy()
    odds = exp(-slope * shortness[is_short]).reshape(-1, *[1] * (probabilities.ndim - 1))
    capped = np.minimum(probabilities[is_short], LARGEST_PROBABILITY)
    doubted[is_short] = odds * capped / (odds * capped + 1.0 - capped)
    return doubted


def fit_slope(
    probabilities: Floats, correct: NDArray[np.bool_], lengths: Integers, short_length: float
) -> float:
    """Return the slope of highest likelihood, from 0 to `LARGEST_SLOPE`.

    Parameters
    ----------
    probabilities : ndarray of shape (n_copies,), float64
        Of the best candidates of truncated documents.
    correct : ndarray of shape (n_copies,), bool
        Whether they are labels.
    lengths : ndarray of shape (n_copies,)
        Distinct terms that are left.
    short_length : float
        Below which a document is short.
    """
    shortness = _measure_shortness(lengths, short_length)

    def is_too_steep(slope: float) -> bool:
        doubted = doubt_short(probabilities, lengths, short_length, slope)
        return float((shortness * (correct - doubted)).sum()) >= 0.0

    # The likelihood has one maximum: where so many are correct as are expected, each counted by how
    # short it is.
    low, high = 0.0, LARGEST_SLOPE
    if is_too_steep(np.nextafter(low, high)):
        return low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_too_steep(middle) else (middle, high)
    return low


def _measure_shortness(lengths: Integers, short_length: float) -> Floats:
    """Return the logarithm of how many times shorter than `short_length` documents are, if any."""
    return np.asarray(np.maximum(0.0, log(short_length / np.maximum(lengths, 1))))
