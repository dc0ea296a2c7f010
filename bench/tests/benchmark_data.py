"""Small folders of counts for the tests of benchmarks."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp


def write_counts(
    folder: Path, X, y, n_train: int, n_classes: int | None = None, **replaced
) -> Path:
    """Store counts the way the data folders hold them."""
    folder.mkdir(parents=True)
    n_classes = int(y.max()) + 1 if n_classes is None else n_classes
    arrays = {"shape": np.array([n_train, len(y) - n_train, n_classes, X.shape[1]])}
    for part, rows in (("train", slice(n_train)), ("test", slice(n_train, None))):
        counts = sp.csr_array(X[rows].astype(np.uint16))
        arrays[f"{part}_data"], arrays[f"{part}_indices"] = counts.data, counts.indices
        arrays[f"{part}_indptr"], arrays[f"{part}_y"] = counts.indptr, y[rows].astype(np.int32)
    arrays |= replaced
    np.savez(folder / "counts.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder
