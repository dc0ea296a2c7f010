"""`longtail.load`: from a file back to an estimator."""

from __future__ import annotations

import os

from longtail.estimators.long_tail import LongTailClassifier
from longtail.estimators.text import TextClassifier
from longtail.exceptions import ModelFileError
from longtail.model.state import LongTailState
from longtail.paper.estimator import DoubleSamplingClassifier
from longtail.store.state_io import load_state

_OF_COUNTS: dict[str, type[DoubleSamplingClassifier | LongTailClassifier]] = {
    kind.__name__: kind for kind in (DoubleSamplingClassifier, LongTailClassifier)
}


# Whatever a model file may hold.
AnyClassifier = DoubleSamplingClassifier | LongTailClassifier | TextClassifier


def load(path: str | os.PathLike[str], *, verify: bool = True) -> AnyClassifier:
    """Open a model file without its journal, which `longtail.load` takes in as well.

    Raises
    ------
    longtail.exceptions.ModelFileError
        If anything is wrong with the file.
    """
    saved = load_state(path, verify=verify)
    kind = _OF_COUNTS[saved.counts_kind]
    classifier = kind(**saved.parameters[saved.counts_kind])
    classifier._state = saved.state
    if isinstance(saved.state, LongTailState):
        # Every prediction needs them. The first kernel of a process takes a tenth of a second: here
        # rather than in the first answer.
        saved.state.document_weights  # noqa: B018
    classifier.n_features_in_ = saved.state.statistics.n_terms
    if saved.feature_names is not None:
        classifier.feature_names_in_ = saved.feature_names
    if saved.kind in _OF_COUNTS:
        return classifier
    try:
        return TextClassifier._from_saved(saved, classifier)
    except ValueError as error:
        raise ModelFileError(path, f"has a wrong vocabulary: {error}") from None
