"""PfastReXML: FastXML for rare classes (Jain, Prabhu and Varma, KDD 2016).

In: weighted rows and class ids. Out: a Forest and centroids. Two things are added to FastXML.
A document counts as much as its class is likely to be missed: its gain is the inverse propensity of
the class, in the nodes and in the leaves. And the classes that the leaves propose are ranked anew
by how near their centroids are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._parallel import parallel_for
from longtail.sparse import Floats, Integers
from longtail_bench._kernels.forest import Centroids, rerank_leaves
from longtail_bench._kernels.types import Ranked, Rows
from longtail_bench.baselines.base import Ranking
from longtail_bench.baselines.fastxml import FastXML, check_positive


def propensities(class_sizes: Integers, A: float = 0.55, B: float = 1.5) -> Floats:
    """Return how likely a relevant class is to be recorded, by its number of documents.

    p = 1 / (1 + c (n + B)^-A) with c = (ln N - 1) (B + 1)^A (Jain et al. 2016, section 4).

    Parameters
    ----------
    class_sizes : ndarray of shape (n_classes,)
        Documents of each class, n; N is their sum.
    A, B : float
        Constants of the data set; those given are the authors' for sets that they did not study.

    Returns
    -------
    ndarray of shape (n_classes,), float64
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> propensities(np.array([1, 10, 1000])).round(3).tolist()
    [0.145, 0.281, 0.82]
    """
    n_documents = class_sizes.sum()
    # Below e documents the paper's c is negative; zero is the limit where nothing is missed.
    c = max(0.0, np.log(n_documents) - 1.0) * (B + 1.0) ** A
    return np.asarray(1.0 / (1.0 + c * (class_sizes + B) ** -A))


class PfastReXML(FastXML):
    """FastXML with propensities and with centroids that rank the leaves' classes anew.

    The score of a class is `alpha log(share) + (1 - alpha) log(likelihood)`, where `share` is its
    mean share over the trees and `likelihood = 1 / (1 + exp(gamma / 2 |x - centroid|^2))`.
    Classes that no leaf holds have score -inf.

    Parameters
    ----------
    n_trees : int, default=50
        Number of trees.
    C : float, default=1.0
        Weight of the logistic loss of a separator against its l1 norm.
    max_leaf : int, default=10
        A node of at most this many documents is a leaf.
    alpha : float, default=0.8
        Weight of the trees against the centroids; 1 is PfastXML, without them.
    gamma : float, default=30.0
        How fast the likelihood falls with the distance from the centroid.
    A, B : float, default=0.55 and 1.5
        Constants of the propensities.
    random_state : int, RandomState instance or None, default=None
        Decides the trees.
    n_jobs : int or None, default=None
        Number of threads; the model is the same for any.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    forest_ : Forest
        The trees.
    propensities_ : ndarray of shape (n_classes,)
        Of each class.
    centroids_ : csr_array of shape (n_classes, n_terms)
        Mean of the weighted documents of each class.
    """

    def __init__(
        self,
        n_trees: int = 50,
        C: float = 1.0,
        max_leaf: int = 10,
        alpha: float = 0.8,
        gamma: float = 30.0,
        A: float = 0.55,
        B: float = 1.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_trees, C, max_leaf, random_state, n_jobs)
        self.alpha = alpha
        self.gamma = gamma
        self.A = A
        self.B = B

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Grow the trees on inverse propensities and sum up the documents of each class."""
        for name in ("gamma", "A", "B"):
            check_positive(name, getattr(self, name))
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must be between 0 and 1; got {self.alpha!r}.")
        rows = Rows.from_matrix(X)
        sizes = np.bincount(class_ids, minlength=len(self.classes_))
        self.propensities_ = propensities(sizes, self.A, self.B)
        self.forest_ = self._grow(rows, class_ids, 1.0 / self.propensities_)
        members = csr_array(
            (1.0 / sizes[class_ids], (class_ids, np.arange(len(class_ids)))),
            shape=(len(self.classes_), len(class_ids)),
        )
        self.centroids_ = (members @ X).astype(np.float32)

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank the classes of the leaves by trees and centroids."""
        rows, forest = Rows.from_matrix(X), self.forest_
        squares = np.asarray(self.centroids_.multiply(self.centroids_).sum(axis=1), np.float64)
        means = Rows.from_matrix(self.centroids_)
        centroids = Centroids(
            means.indptr,
            means.indices,
            means.data,
            squares,
            float(self.alpha),
            float(self.gamma),
        )
        ranked = Ranked.empty(X.shape[0], k)

        def rank(first: int, last: int) -> None:
            leaves = forest.leaves(rows, first, last)
            rerank_leaves(rows, forest.tree, leaves, centroids, first, last, ranked)

        parallel_for(rank, rows.indptr, self.n_jobs)
        return ranked.classes, ranked.scores
