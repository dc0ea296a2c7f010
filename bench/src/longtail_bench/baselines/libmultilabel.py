"""LibMultiLabel's linear tree through its own package."""

from __future__ import annotations

import contextlib
import io
import pickle
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from longtail_bench.baselines.base import LabelSetBaseline, Ranking

_BLOCK = 1000  # documents whose dense scores, one for each class, are held at once


class LibMultiLabelTree(LabelSetBaseline):
    """A tree of classes by k-means with LIBLINEAR at each node (after Bonsai).

    Needs the package `libmultilabel`; `longtail bench environments libmultilabel` makes an
    environment for it. The clusters have no seed of their own: numpy's is set.

    Parameters
    ----------
    degree : int, default=100
        Children of a node at most.
    max_depth : int, default=10
        Layers of the tree at most.
    beam : int, default=10
        Nodes that a prediction keeps in each layer.
    C : float, default=1.0
        Weight of the squared hinge loss.
    random_state : int or None, default=None
        Decides the clusters.
    n_jobs : int or None, default=None
        Number of threads of LIBLINEAR.
    """

    _dtype = np.float64

    def __init__(
        self,
        degree: int = 100,
        max_depth: int = 10,
        beam: int = 10,
        C: float = 1.0,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.max_depth = max_depth
        self.beam = beam
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Grow the tree and train its nodes; what the package prints is dropped."""
        linear = import_module("libmultilabel.linear")
        np.random.seed(self.random_state or 0)  # noqa: NPY002 - the only seed that it knows
        with contextlib.redirect_stdout(io.StringIO()):
            self.model_ = linear.train_tree(
                csr_matrix(labels, dtype=np.float64),
                csr_matrix(X),
                options=f"-s 1 -c {self.C} -m {self.n_jobs or 1}",
                K=self.degree,
                dmax=self.max_depth,
                verbose=False,
            )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Sort the scores of each document; ties in class order, -inf outside the beam."""
        rows = csr_matrix(X)
        ranked = np.zeros((rows.shape[0], k), np.int64)
        scores = np.full(ranked.shape, -np.inf)
        for first in range(0, rows.shape[0], _BLOCK):
            block = rows[first : first + _BLOCK]
            values = np.asarray(self.model_.predict_values(block, beam_width=self.beam))
            best = np.argsort(-values, axis=1, kind="stable")[:, :k]
            found = np.take_along_axis(values, best, axis=1)
            ranked[first : first + _BLOCK] = best
            # What the beam does not reach has a score of 0.
            scores[first : first + _BLOCK] = np.where(found == 0, -np.inf, found)
        return ranked, scores

    def model_bytes(self) -> int:
        """Return the size of the pickled model, as the package stores it."""
        return len(pickle.dumps(self.model_, protocol=5))
