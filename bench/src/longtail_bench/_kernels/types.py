"""The named tuples that the kernels of several baselines take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(NamedTuple):
    """Documents, CSR."""

    indptr: Array
    indices: Array
    data: Array
    n_terms: int

    @classmethod
    def from_matrix(cls, X: Any, dtype: Any = np.float32) -> Rows:
        """Convert a CSR matrix to the types that the kernels are compiled for."""
        return cls(
            X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(dtype), X.shape[1]
        )


class Ranked(NamedTuple):
    """The best classes of each document and their scores, of shape (n_documents, k); filled."""

    classes: Array
    scores: Array

    @classmethod
    def empty(cls, n_documents: int, k: int) -> Ranked:
        """Return arrays to fill."""
        return cls(np.empty((n_documents, k), np.int64), np.empty((n_documents, k)))
