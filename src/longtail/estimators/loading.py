"""`longtail.load`: from a file back to an estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from longtail.estimators.double_sampling import DoubleSamplingClassifier
from longtail.estimators.long_tail import LongTailClassifier
from longtail.estimators.text import TextClassifier
from longtail.store.container import ModelFile, open_model
from longtail.store.state_io import unpack_state, validate_state

_OF_COUNTS = {kind.__name__: kind for kind in (DoubleSamplingClassifier, LongTailClassifier)}


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Open a model that `save` wrote; its arrays are memory-mapped.

    Parameters
    ----------
    path : path-like
        The file.
    verify : bool, default=True
        Check every array against its checksum and the model's own invariants. Skip this only for a
        file that was verified where it lies.

    Returns
    -------
    DoubleSamplingClassifier, LongTailClassifier or TextClassifier
        Whatever was saved, with bit-equal predictions.

    Raises
    ------
    longtail.exceptions.ModelFileError
        If anything is wrong with the file.
    """
    file = open_model(path, verify=verify)
    kinds = sorted([*_OF_COUNTS, TextClassifier.__name__])
    if file.kind not in kinds:
        raise file.error(f"holds a {file.kind!r}, which is none of {kinds}")
    try:
        if file.kind == TextClassifier.__name__:
            classifier = _open_counts(file, file.parameters["text"]["classifier"], verify)
            return TextClassifier._from_file(file, classifier, verify=verify)
        return _open_counts(file, file.kind, verify)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise file.error(f"is not a sound {file.kind}: {error}") from None


def _open_counts(file: ModelFile, kind: str, verify: bool) -> Any:
    """Return the classifier of counts that a file holds."""
    estimator = _OF_COUNTS[kind](**file.parameters["parameters"])
    estimator._state = unpack_state(kind, file)
    if verify:
        validate_state(estimator._state)
    estimator.n_features_in_ = estimator._state.statistics.n_terms
    if "feature_names.utf8" in file.arrays:
        estimator.feature_names_in_ = np.array(file.texts("feature_names"), dtype=object)
    return estimator
