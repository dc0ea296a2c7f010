"""Text classification into ten thousand to a million classes, most of them rare."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.estimators.long_tail import LongTailClassifier
    from longtail.estimators.text import TextClassifier
    from longtail.exceptions import ModelFileError
    from longtail.paper.estimator import DoubleSamplingClassifier
    from longtail.results import TopK
    from longtail.teaching import Teacher, load
    from longtail.text import TextVectorizer

__version__ = "0.2.0"
__all__ = [
    "DoubleSamplingClassifier",
    "LongTailClassifier",
    "ModelFileError",
    "Teacher",
    "TextClassifier",
    "TextVectorizer",
    "TopK",
    "__version__",
    "load",
]

# Public name -> module; loaded on first use, so that `import longtail` costs next to nothing.
_MODULES = {
    "DoubleSamplingClassifier": "longtail.paper.estimator",
    "LongTailClassifier": "longtail.estimators.long_tail",
    "ModelFileError": "longtail.store",
    "Teacher": "longtail.teaching",
    "TextClassifier": "longtail.estimators.text",
    "TextVectorizer": "longtail.text",
    "TopK": "longtail.results",
    "load": "longtail.teaching",
}


def __getattr__(name: str) -> Any:
    """Load a public name, or a module, when it is first asked for."""
    if name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
    try:
        return import_module(f"longtail.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"longtail.{name}":
            raise
        raise AttributeError(f"module 'longtail' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """List the public names although they are not loaded yet."""
    return sorted(__all__)
