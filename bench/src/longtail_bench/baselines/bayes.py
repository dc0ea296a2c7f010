"""Naive Bayes, multinomial and complement, without a dense classes x terms array.

The score of a class is a constant for the document's length plus a sum over the terms that the
class has; terms that it lacks all count alike, so they need no postings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail_bench.baselines.base import Baseline, Ranking
from longtail_bench.baselines.postings import Postings, sum_classes


class _NaiveBayes(Baseline):
    """Parameters and ranking that both share."""

    _weighted = False
    postings_: Postings

    def __init__(self, alpha: float = 1.0, n_jobs: int | None = None) -> None:
        self.alpha = alpha
        self.n_jobs = n_jobs

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank all classes by log probability, up to what is the same for all of them."""
        return self.postings_.rank(X, k, self.n_jobs)


class MultinomialBayes(_NaiveBayes):
    """The class with the highest `P(class) * product of P(term | class)`.

    The scores are scikit-learn's joint log-likelihoods.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count.
    n_jobs : int or None, default=None
        Number of threads.

    Examples
    --------
    >>> MultinomialBayes().fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Count terms by class."""
        counts = sum_classes(X, class_ids, len(self.classes_))
        lengths = np.asarray(counts.sum(axis=1))
        # ln((count + α) / (length + α V)): what a count of 0 gives, then what the count adds to it
        missing = np.log(self.alpha) - np.log(lengths + self.alpha * X.shape[1])
        counts.data = np.log1p(counts.data / self.alpha)
        priors = np.log(np.bincount(class_ids) / len(class_ids))
        self.postings_ = Postings.from_classes(counts, priors, missing)


class ComplementBayes(_NaiveBayes):
    """The class whose complement, all other classes together, explains the document worst.

    Rennie et al. (2003), made for classes of uneven size; weights not normalised. The scores are
    those of scikit-learn's `ComplementNB` without the part that is the same for all classes.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count.
    n_jobs : int or None, default=None
        Number of threads.

    Examples
    --------
    >>> ComplementBayes().fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Count terms outside each class."""
        counts = sum_classes(X, class_ids, len(self.classes_))
        totals = np.bincount(counts.indices, counts.data, minlength=X.shape[1]) + self.alpha
        outside = totals.sum() - np.asarray(counts.sum(axis=1))
        # -ln((total - count) / outside), of which -ln(total) is the same for all classes
        counts.data = -np.log1p(-counts.data / totals[counts.indices])
        self.postings_ = Postings.from_classes(counts, None, np.log(outside))
