"""fastText's supervised classifier through a maintained build of it."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail_bench.baselines.base import LabelSetBaseline, Ranking
from longtail_bench.baselines.cores import limit_cores
from longtail_bench.baselines.files import (
    Conversion,
    label_lists,
    rank_lists,
    size_of,
    token_lines,
    write_lines,
)

_LABEL = "__label__"
# With fewer than ten threads training often ends in "Encountered NaN"; with ten it never did. The
# first vectors seem to be drawn in ten blocks, one for each thread, whatever the number of threads.
# So it always gets ten, on no more cores than asked for.
_BLOCKS = 10


class FastText(LabelSetBaseline):
    """The mean of learned term vectors, classified by a hierarchical softmax.

    Works on counts: a document is its terms, each as often as it occurs, in any order. Needs
    `pip install fasttext-numpy2`. Its threads race: two fits differ.

    Parameters
    ----------
    dim : int, default=100
        Size of the vectors, a multiple of 10 (or some would begin with any value).
    epochs : int, default=25
        Passes over the documents.
    rate : float, default=0.5
        Learning rate at the start.
    loss : {"hs", "softmax", "ns", "ova"}, default="hs"
        Hierarchical softmax is the only one whose time does not grow with the classes.
    random_state : int or None, default=None
        Decides the first vectors.
    n_jobs : int or None, default=None
        Number of cores that its threads share.
    """

    _weighted = False
    _dtype = np.float32

    def __init__(
        self,
        dim: int = 100,
        epochs: int = 25,
        rate: float = 0.5,
        loss: str = "hs",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.epochs = epochs
        self.rate = rate
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Train on a file, the only input that the package has."""
        if self.dim < 1 or self.dim % _BLOCKS:
            raise ValueError(f"dim must be a multiple of {_BLOCKS} above 0; got {self.dim}.")
        package = import_module("fasttext")
        self.conversion_ = Conversion()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.txt"
            with self.conversion_.counted():
                marks = (
                    " ".join(f"{_LABEL}{class_id}" for class_id in row)
                    for row in label_lists(labels)
                )
                lines = zip(marks, token_lines(X), strict=True)
                write_lines(path, (f"{mark} {line}" for mark, line in lines))
            with limit_cores(self.n_jobs or 1):
                self.model_ = package.train_supervised(
                    str(path),
                    dim=self.dim,
                    epoch=self.epochs,
                    lr=self.rate,
                    loss=self.loss,
                    seed=self.random_state or 0,
                    thread=_BLOCKS,
                    verbose=0,
                )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank with probabilities."""
        self.conversion_ = Conversion()
        with self.conversion_.counted():
            lines = list(token_lines(X))
        labels, scores = self.model_.predict(lines, k=k)
        with self.conversion_.counted():
            start = len(_LABEL)
            class_ids = [[int(label[start:]) for label in row] for row in labels]
            return rank_lists(class_ids, scores, len(lines), k)

    def model_bytes(self) -> int:
        """Return the size of the saved model."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.bin"
            self.model_.save_model(str(path))
            return size_of(path)
