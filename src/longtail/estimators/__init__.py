"""The estimators: validate, call the stages in order, keep the fitted state.

================= =================================================================
`base`            `Classifier`, the base of all; `CountClassifier`, that of counts
`long_tail`       `LongTailClassifier`, what a user should use
`text`            `TextClassifier`, texts in
`text_state`      its state: a vocabulary beside the arrays of a model of counts
`added_documents` how texts were counted when they were added
`embedder`        the encoder of texts
`class_texts`     checks of class texts
`hierarchies`     methods of classifiers whose classes may have parents
`within`          `within` and `exclude` of the predicting methods
`evidence`        candidates of documents, with evidence
`loading`         `load`, from a file back to an estimator
`fit_elsewhere`   what a fit over partitions asks of an estimator
================= =================================================================

`DoubleSamplingClassifier`, the paper to the letter, is in `longtail.paper.estimator`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.estimators.loading import load
    from longtail.estimators.long_tail import LongTailClassifier
    from longtail.estimators.text import TextClassifier
    from longtail.paper.estimator import DoubleSamplingClassifier
    from longtail.results import TopK

__all__ = ["DoubleSamplingClassifier", "LongTailClassifier", "TextClassifier", "TopK", "load"]

_MODULES = {
    "DoubleSamplingClassifier": "longtail.paper.estimator",
    "LongTailClassifier": "longtail.estimators.long_tail",
    "TextClassifier": "longtail.estimators.text",
    "TopK": "longtail.results",
    "load": "longtail.estimators.loading",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for: `longtail.paper.estimator` needs `base` before."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'longtail.estimators' has no attribute {name!r}")
