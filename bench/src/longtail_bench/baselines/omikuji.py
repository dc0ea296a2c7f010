"""Parabel and Bonsai through the package omikuji."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail_bench.baselines.base import LabelSetBaseline, Ranking
from longtail_bench.baselines.files import (
    Conversion,
    label_lists,
    rank_lists,
    size_of,
    weighted_lines,
    write_lines,
)


class Omikuji(LabelSetBaseline):
    """An ensemble of trees of classes with a linear classifier at each node.

    The defaults are Parabel (balanced binary trees); Bonsai is `clusters=100, balanced=False,
    max_depth=3`. Needs `pip install omikuji`. The package has no seed: two fits differ.

    Parameters
    ----------
    trees : int, default=3
        Trees of the ensemble.
    clusters : int, default=2
        Children of a node.
    balanced : bool, default=True
        Whether the children of a node have about the same number of classes.
    max_depth : int, default=20
        Layers of a tree at most.
    beam : int, default=10
        Nodes that a prediction keeps in each layer.
    C : float, default=1.0
        Weight of the loss.
    threshold : float, default=0.1
        Weights below it in absolute value are dropped.
    dense_above : float, default=0.05
        Weights of a node that has more than this share of its terms are stored dense, which gives
        the same ranking in less time and more memory; the value that the package's guide has.
    n_jobs : int or None, default=None
        Number of threads.
    """

    _dtype = np.float32

    def __init__(
        self,
        trees: int = 3,
        clusters: int = 2,
        balanced: bool = True,
        max_depth: int = 20,
        beam: int = 10,
        C: float = 1.0,
        threshold: float = 0.1,
        dense_above: float = 0.05,
        n_jobs: int | None = None,
    ) -> None:
        self.trees = trees
        self.clusters = clusters
        self.balanced = balanced
        self.max_depth = max_depth
        self.beam = beam
        self.C = C
        self.threshold = threshold
        self.dense_above = dense_above
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Train on a file, the only input that the package has."""
        package, threads = import_module("omikuji"), self.n_jobs or 1
        settings = package.Model.default_hyper_param()
        settings.n_trees = self.trees
        settings.cluster_k = self.clusters
        settings.cluster_balanced = self.balanced
        settings.max_depth = self.max_depth
        settings.linear_c = self.C
        settings.linear_weight_threshold = self.threshold
        self.conversion_ = Conversion()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.txt"
            with self.conversion_.counted():
                write_lines(path, self._lines(X, labels))
            self.model_ = package.Model.train_on_data(str(path), settings, n_threads=threads)
        self.model_.densify_weights(self.dense_above)
        self.model_.init_prediction_thread_pool(threads)

    def _lines(self, X: csr_array[Any], labels: csr_array[Any]) -> Iterator[str]:
        """Yield the Extreme Classification format: sizes, then classes and weights of each row."""
        yield f"{X.shape[0]} {X.shape[1]} {len(self.classes_)}"
        for classes, line in zip(label_lists(labels), weighted_lines(X), strict=True):
            yield f"{','.join(map(str, classes))} {line}"

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank one document a call, as the package does."""
        self.conversion_ = Conversion()
        with self.conversion_.counted():
            pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
            rows = [pairs[begin:end] for begin, end in pairwise(X.indptr.tolist())]
        answers = [self.model_.predict(row, beam_size=self.beam, top_k=k) for row in rows]
        with self.conversion_.counted():
            labels = [[label for label, _ in answer] for answer in answers]
            scores = [[score for _, score in answer] for answer in answers]
            return rank_lists(labels, scores, len(rows), k)

    def model_bytes(self) -> int:
        """Return the size of the saved model."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self.model_.save(str(path))
            return size_of(path)
