"""k nearest training documents by cosine, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail_bench.baselines.base import Baseline, Ranking
from longtail_bench.baselines.postings import Postings


class NearestNeighbours(Baseline):
    """The class with the largest sum of cosines among the nearest training documents.

    Parameters
    ----------
    neighbours : int, default=10
        How many training documents vote.
    n_jobs : int or None, default=None
        Number of threads.

    Examples
    --------
    >>> NearestNeighbours(1).fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(self, neighbours: int = 10, n_jobs: int | None = None) -> None:
        self.neighbours = neighbours
        self.n_jobs = n_jobs

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Keep the documents, term by term."""
        if self.neighbours < 1:
            raise ValueError(f"neighbours must be at least 1; got {self.neighbours}.")
        self.postings_ = Postings.from_classes(X)
        self.class_ids_ = class_ids

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Let the nearest documents vote; one that shares no term has no vote."""
        n_neighbours = min(self.neighbours, len(self.class_ids_))
        nearest, cosines = self.postings_.rank(X, n_neighbours, self.n_jobs)
        return count_votes(self.class_ids_[nearest], cosines, min(k, n_neighbours))


def count_votes(classes: NDArray[np.int64], weights: NDArray[np.float64], k: int) -> Ranking:
    """Add up the weights of each class in each row and return the k heaviest classes.

    Parameters
    ----------
    classes : ndarray of shape (n_documents, n_votes), int64
        Class numbers, each any number of times.
    weights : ndarray of the same shape
        At or below 0: no vote.
    k : int
        At most n_votes.

    Returns
    -------
    ranked : ndarray of shape (n_documents, k), int64
        Ties in class order; 0 where there are fewer classes, with score -inf.
    scores : ndarray of shape (n_documents, k), float64
    """
    order = np.argsort(classes, axis=1, kind="stable")
    classes = np.take_along_axis(classes, order, axis=1)
    weights = np.where(weights > 0, weights, 0.0)
    weights = np.take_along_axis(weights, order, axis=1)
    begins = np.ones(classes.shape, dtype=bool)
    begins[:, 1:] = classes[:, 1:] != classes[:, :-1]
    sums = np.add.reduceat(weights.ravel(), np.flatnonzero(begins))
    totals = np.full(classes.shape, -np.inf)
    totals[begins] = np.where(sums > 0, sums, -np.inf)
    best = np.argsort(-totals, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(totals, best, axis=1)
    ranked = np.take_along_axis(classes, best, axis=1)
    return np.where(np.isneginf(scores), 0, ranked), scores
