"""Probabilistic label trees and hierarchical softmax through the package napkinXC."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from longtail_bench.baselines.base import LabelSetBaseline, Ranking
from longtail_bench.baselines.files import Conversion, label_lists, rank_lists, size_of


class NapkinXC(LabelSetBaseline):
    """A tree of classes by hierarchical k-means with a linear classifier at each node.

    Needs `pip install napkinxc`. The model lives in a temporary folder as long as the estimator.

    Parameters
    ----------
    model : {"PLT", "HSM"}, default="PLT"
        Probabilistic label tree, or hierarchical softmax.
    arity : int, default=2
        Children of a node.
    max_leaves : int, default=100
        Classes below a node of the last layer but one.
    loss : {"log", "l2"}, default="log"
        Logistic loss, or squared hinge loss.
    C : float, default=10.0
        Weight of the loss.
    threshold : float, default=0.1
        Weights below it in absolute value are dropped.
    random_state : int or None, default=None
        Decides the clusters.
    n_jobs : int or None, default=None
        Number of threads.
    """

    _dtype = np.float32

    def __init__(
        self,
        model: str = "PLT",
        arity: int = 2,
        max_leaves: int = 100,
        loss: str = "log",
        C: float = 10.0,
        threshold: float = 0.1,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.arity = arity
        self.max_leaves = max_leaves
        self.loss = loss
        self.C = C
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Grow the tree and train its nodes."""
        if self.model not in ("PLT", "HSM"):
            raise ValueError(f"model must be 'PLT' or 'HSM'; got {self.model!r}.")
        several = np.any(np.diff(labels.indptr) != 1)
        if several and self.model == "HSM":
            raise ValueError("hierarchical softmax takes one label for each document; use PLT.")
        models = import_module("napkinxc.models")
        self.folder_ = tempfile.TemporaryDirectory()
        self.model_ = getattr(models, self.model)(
            self.folder_.name,
            arity=self.arity,
            max_leaves=self.max_leaves,
            loss=self.loss,
            liblinear_c=self.C,
            weights_threshold=self.threshold,
            seed=self.random_state,
            threads=self.n_jobs or 1,
        )
        self.model_.fit(csr_matrix(X), label_lists(labels) if several else labels.indices.tolist())
        self.model_.load()

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank with probabilities."""
        answers = self.model_.predict_proba(csr_matrix(X), top_k=k)
        self.conversion_ = Conversion()
        with self.conversion_.counted():
            labels = [[label for label, _ in answer] for answer in answers]
            scores = [[score for _, score in answer] for answer in answers]
            return rank_lists(labels, scores, X.shape[0], k)

    def model_bytes(self) -> int:
        """Return the size of the saved model."""
        return size_of(Path(self.folder_.name))
