"""What methods return: `TopK`, `Threshold`, `Health`, `Explanation`."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import Floats


@dataclass(frozen=True, eq=False)
class TopK:
    """The best classes of each document, best first; unpacks into classes and scores.

    Attributes
    ----------
    classes : ndarray of shape (n_documents, k)
        Labels; None, "", -1 or NaN, by their type, where there was no candidate.
    scores : ndarray of shape (n_documents, k), float64
        Their scores, -inf where there was no candidate; or probabilities, then 0.
    valid : ndarray of shape (n_documents, k), bool
        Whether there was a candidate.
    none : ndarray of shape (n_documents,), float64, or None
        Probability that no candidate is the class, whether the model has it or not; None where
        `scores` are not probabilities of which one at most is true.
    """

    classes: NDArray[Any]
    scores: Floats
    valid: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    none: Floats | None = None

    def __post_init__(self) -> None:
        """Take every score above -inf for a candidate where nothing else is said."""
        if self.valid.shape != self.scores.shape:
            object.__setattr__(self, "valid", self.scores > -np.inf)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Unpack into classes and scores."""
        return iter((self.classes, self.scores))


@dataclass(frozen=True)
class Threshold:
    """The probability from which on predictions reach a precision, learned on held-out documents.

    Attributes
    ----------
    threshold : float
        Abstain where the top-1 probability is lower; NaN where the precision cannot be reached.
    expected_precision : float
        What the held-out documents at or above the threshold reached; NaN likewise.
    coverage : float
        The share of held-out documents at or above it; 0 where it cannot be reached. With several
        labels per document, how many labels a document has at or above it.
    n_documents : int
        How many these are, documents or labels: the standard error of the precision is about
        sqrt(p (1 - p) / n_documents).
    """

    threshold: float
    expected_precision: float
    coverage: float
    n_documents: int

    def __float__(self) -> float:
        """Return the threshold."""
        return self.threshold

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Stand for the threshold where probabilities are compared with it."""
        return np.asarray(self.threshold, dtype)


@dataclass(frozen=True)
class Health:
    """How far a model has moved from what it was when it was fitted; prints as a table.

    Attributes
    ----------
    n_documents, n_classes : int
        Of the model as it is now.
    n_unrefined : int
        Documents by which what all classes share (number of documents, document frequencies,
        collection model) is behind the sums; `refine` brings it up to date.
    n_stale : int
        Classes whose documents changed since their residuals were learned.
    unseen_terms : float
        Share of the occurrences of terms in the model that are of terms without a learned weight.
    n_outcomes : int
        Documents behind the next three: held out by `fit`, or given to `recalibrate` since.
    accuracy : float
        How many of these were correct; NaN where there are none.
    calibration_error : float
        Of the probabilities of the best class, by cross-validation; NaN likewise.
    abstention : float
        Share of these below the threshold of 90 % precision; NaN likewise.
    n_kept : int
        Documents that the model keeps (`memory`).
    will_learn : bool
        Whether `refine()` would learn from these.
    advice : tuple of str
        What to do, most urgent first; empty where all is well.
    """

    n_documents: int
    n_classes: int
    n_unrefined: int
    n_stale: int
    unseen_terms: float
    n_outcomes: int
    accuracy: float
    calibration_error: float
    abstention: float
    n_kept: int
    will_learn: bool
    advice: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the table."""

        def share(value: float) -> str:
            return "-" if math.isnan(value) else f"{value:.1%}"

        of_outcomes = f"of the last {self.n_outcomes:,} outcomes"
        return [
            ("documents since the last refine", f"{self.n_unrefined:,} of {self.n_documents:,}"),
            ("stale classes", f"{self.n_stale:,} of {self.n_classes:,}"),
            ("occurrences of terms without a learned weight", share(self.unseen_terms)),
            (f"correct {of_outcomes}", share(self.accuracy)),
            (
                f"calibration error {of_outcomes}",
                "-" if math.isnan(self.calibration_error) else f"{self.calibration_error:.3f}",
            ),
            (f"below the threshold of 90 % precision {of_outcomes}", share(self.abstention)),
            ("documents kept to learn from", f"{self.n_kept:,}"),
            *(("advice", sentence) for sentence in self.advice),
        ]

    def __str__(self) -> str:
        rows = self.rows()
        n_columns = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{n_columns}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        return f"<table>{cells}</table>"


@dataclass(frozen=True)
class Explanation:
    """Why a document scores as it does for one class; prints as a table.

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
        The share of the class, that no term contributes. Terms + rest + constant add up to the
        score.
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

    def _rows(self) -> list[tuple[str, float]]:
        """Return the lines of the table."""
        rows = [(str(term), value) for term, value in self.terms.items()]
        return [*rows, ("(other terms)", self.rest), ("(class)", self.constant)]

    def __str__(self) -> str:
        rows = [*self._rows(), ("score", self.score)]
        n_columns = max(len(_printable(name)) for name, _ in rows)
        lines = [f"{_printable(name):<{n_columns}}  {value:+10.4f}" for name, value in rows]
        title = f"class {_printable(str(self.label))}"
        if self.features.get("name", 0.0) > 0.0:
            title += f", {self.features['name']:+.4f} because of its name"
        if self.runner_up is not None:
            title += f", before {_printable(str(self.runner_up))} ({self.runner_up_score:.4f})"
        return "\n".join([title, *lines])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{value:+.4f}</td></tr>"
            for name, value in [*self._rows(), ("score", self.score)]
        )
        return f"<table><caption>{html.escape(str(self.label))}</caption>{cells}</table>"


def _printable(text: str) -> str:
    """Return a text without characters that steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
