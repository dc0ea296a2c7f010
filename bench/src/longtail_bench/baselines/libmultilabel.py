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
from longtail_bench.baselines.cores import limit_cores
from longtail_bench.baselines.files import Conversion, rank_lists

_BLOCK = 256  # documents whose dense scores are held at once, as many as in the package's program


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
        Number of cores that its threads share: it starts one for each core of the machine, whatever
        it is asked for.
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
        with contextlib.redirect_stdout(io.StringIO()), limit_cores(self.n_jobs or 1):
            self.model_ = linear.train_tree(
                csr_matrix(labels, dtype=np.float64),
                csr_matrix(X),
                options=f"-s 1 -c {self.C}",
                K=self.degree,
                dmax=self.max_depth,
                verbose=False,
            )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank what the beam reaches; the package gives all other classes a score of 0."""
        rows = csr_matrix(X)
        labels: list[Any] = []
        scores: list[Any] = []
        self.conversion_ = Conversion()
        for first in range(0, rows.shape[0], _BLOCK):
            block = rows[first : first + _BLOCK]
            values = np.asarray(self.model_.predict_values(block, beam_width=self.beam))
            with self.conversion_.counted():
                for row in values:
                    reached = np.flatnonzero(row)
                    best = reached[np.lexsort((reached, -row[reached]))[:k]]
                    labels.append(best)
                    scores.append(row[best])
        with self.conversion_.counted():
            return rank_lists(labels, scores, rows.shape[0], k)

    def model_bytes(self) -> int:
        """Return the size of the pickled model, as the package stores it."""
        return len(pickle.dumps(self.model_, protocol=5))
