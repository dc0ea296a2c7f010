"""RecallTree through Vowpal Wabbit."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail_bench.baselines.base import Baseline, Ranking
from longtail_bench.baselines.files import Conversion, size_of, weighted_lines, write_lines


class RecallTree(Baseline):
    """A tree that narrows the classes down to a few candidates, among which one is predicted.

    Daumé et al. (2017), Vowpal Wabbit's `--recall_tree`. It gives the best class alone, so that a
    ranking has one column, with score 0. Needs `pip install vowpalwabbit`.

    Parameters
    ----------
    bits : int, default=28
        Vowpal Wabbit keeps 2 to this power weights.
    rate : float, default=1.0
        Learning rate.
    loss : {"hinge", "logistic"}, default="hinge"
        Loss of the binary problems.
    passes : int, default=5
        Passes over the documents.
    random_state : int or None, default=None
        Seed of Vowpal Wabbit, which reads the documents in their order.
    """

    _dtype = np.float32

    def __init__(
        self,
        bits: int = 28,
        rate: float = 1.0,
        loss: str = "hinge",
        passes: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.bits = bits
        self.rate = rate
        self.loss = loss
        self.passes = passes
        self.random_state = random_state

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Train on a file, which passes after the first need."""
        package = import_module("vowpalwabbit")
        self.conversion_ = Conversion()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.txt"
            with self.conversion_.counted():
                lines = zip((class_ids + 1).tolist(), weighted_lines(X), strict=True)
                write_lines(path, (f"{class_id} | {line}" for class_id, line in lines))
            self.model_ = package.Workspace(
                arg_list=[
                    *("--recall_tree", str(len(self.classes_))),
                    *("--data", str(path)),
                    *("--cache_file", str(path.with_suffix(".cache"))),
                    *("--bit_precision", str(self.bits)),
                    *("--learning_rate", str(self.rate)),
                    *("--loss_function", self.loss),
                    *("--passes", str(self.passes)),
                    *("--random_seed", str(self.random_state or 0)),
                    "--holdout_off",
                    "--quiet",
                ]
            )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Return the one class that the tree gives."""
        self.conversion_ = Conversion()
        with self.conversion_.counted():
            lines = [f"| {line}" for line in weighted_lines(X)]
        class_ids = [self.model_.predict(line) for line in lines]
        ranked = np.array(class_ids, dtype=np.int64).reshape(-1, 1) - 1
        return ranked, np.zeros(ranked.shape)

    def model_bytes(self) -> int:
        """Return the size of the saved model."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.vw"
            self.model_.save(str(path))
            return size_of(path)
