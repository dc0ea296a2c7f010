"""What methods return: `TopK`, `Explanation`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from longtail.sparse import Floats


@dataclass(frozen=True)
class Explanation:
    """Why a document scores as it does for one class.

    Attributes
    ----------
    label : object
        The class explained.
    score : float
        Its score for the document.
    features : mapping of str to float
        What each feature contributes; they add up to the score.
    terms : mapping of term to float
        What the most important terms contribute, largest absolute contribution first.
    rest : float
        What all other terms contribute together.
    constant : float
        The class's own part, that no term contributes. Terms + rest + constant add up to the score.
    runner_up : object or None
        The best other candidate.
    runner_up_score : float
        Its score; -inf where there is none.
    """

    label: Any
    score: float
    features: Mapping[str, float]
    terms: Mapping[Hashable, float]
    rest: float
    constant: float
    runner_up: Any
    runner_up_score: float


class TopK(NamedTuple):
    """The best classes of each document.

    Attributes
    ----------
    classes : ndarray of shape (n_documents, k)
        Labels, best first.
    scores : ndarray of shape (n_documents, k), float64
        Their scores; -inf where there were fewer than k candidates, and the label there means
        nothing.
    """

    classes: NDArray[Any]
    scores: Floats
