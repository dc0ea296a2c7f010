"""PECOS XR-Linear through its own package."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from longtail_bench.baselines.base import LabelSetBaseline, Ranking
from longtail_bench.baselines.files import size_of


class Pecos(LabelSetBaseline):
    """XR-Linear: a tree of classes by hierarchical k-means, a linear ranker at each node.

    Label features are PIFA. Needs the package `libpecos`, which wants numpy below 2: `longtail
    bench environments pecos` makes an environment for it.

    Parameters
    ----------
    splits : int, default=16
        Children of a node.
    max_leaf_size : int, default=100
        Classes below a node of the last layer but one.
    beam : int, default=10
        Nodes that a prediction keeps in each layer.
    C : float, default=1.0
        Weight of the loss; LIBLINEAR's `Cp` and `Cn` alike.
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
        splits: int = 16,
        max_leaf_size: int = 100,
        beam: int = 10,
        C: float = 1.0,
        threshold: float = 0.1,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.splits = splits
        self.max_leaf_size = max_leaf_size
        self.beam = beam
        self.C = C
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Cluster the classes and train the rankers."""
        xmc, xlinear = import_module("pecos.xmc"), import_module("pecos.xmc.xlinear")
        threads = self.n_jobs or 1
        rows = csr_matrix(X, dtype=np.float32)
        wanted = csc_matrix(labels, dtype=np.float32)
        features = xmc.LabelEmbeddingFactory.create(wanted, rows, method="pifa", threads=threads)
        clusters = xmc.Indexer.gen(
            features,
            nr_splits=self.splits,
            max_leaf_size=self.max_leaf_size,
            seed=self.random_state or 0,
            threads=threads,
        )
        model = xlinear.XLinearModel.train(
            rows,
            wanted,
            C=clusters,
            Cp=self.C,
            Cn=self.C,
            threshold=self.threshold,
            threads=threads,
        )
        # A model fresh from training predicts layer by layer, in six times the CPU time and
        # 270 MB more at 12,582 classes. The fast predictor is only to be had from a saved model.
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder)
            self.n_bytes_ = size_of(Path(folder))
            self.model_ = xlinear.XLinearModel.load(folder, is_predict_only=True)

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Sort the scores of each document; ties in class order."""
        rows = csr_matrix(X, dtype=np.float32)
        found = csr_matrix(
            self.model_.predict(rows, beam_size=self.beam, only_topk=k, threads=self.n_jobs or 1)
        )
        lengths = np.diff(found.indptr)
        documents = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((found.indices, -found.data, documents))
        ranks = np.arange(len(documents)) - np.repeat(found.indptr[:-1], lengths)
        ranked = np.zeros((len(lengths), k), dtype=np.int64)
        scores = np.full(ranked.shape, -np.inf)
        kept = ranks < k
        ranked[documents[kept], ranks[kept]] = found.indices[order][kept]
        scores[documents[kept], ranks[kept]] = found.data[order][kept]
        return ranked, scores

    def model_bytes(self) -> int:
        """Return the size of the saved model."""
        return int(self.n_bytes_)
