"""The wrong predictions that a model was surest of, and the terms that misled it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.results import Explanation
from longtail.sparse import Integers

_ALL_TERMS = 100_000  # of a document: what a term adds to one class is compared with the other
_LONGEST_TEXT = 400  # characters of a document that are kept


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction."""

    document_id: int  # which of the evaluated documents, from 0
    text: str | None  # how the document begins; None for a document of counts
    # Labels; of a document with several labels `true` is the list of them, and `predicted` the
    # surest label that is none of these.
    true: Any
    predicted: Any
    # Probability of the predicted class, or its score for a classifier without probabilities.
    certainty: float
    known: bool  # whether the model has the true class, or one of them, at all
    # The terms that speak most for the predicted class and against the true one: what they add to
    # the score of the one, less what they add to that of the other. Of several true labels the one
    # with the highest score.
    misleading: Mapping[Any, float]
    # Where the document comes from, as the caller said; None without.
    reference: Any = None


@dataclass(frozen=True)
class _Wrong:
    """A wrong prediction, before it is explained."""

    document_id: int
    document: Any
    true: Any
    predicted: Any
    certainty: float
    reference: Any


class MistakeCollector:
    """Keeps only the surest wrong predictions of chunks of documents.

    Parameters
    ----------
    n_mistakes : int
        How many to keep.
    """

    def __init__(self, n_mistakes: int) -> None:
        self.n_mistakes = n_mistakes
        self._n_documents = 0
        self._kept: list[_Wrong] = []

    def add(
        self,
        documents: Any,
        labels: Sequence[Any],
        predicted: Sequence[Any],
        certainty: Sequence[float],
        wrong: Integers,
        references: Sequence[Any] | None = None,
    ) -> None:
        """Add a chunk; `wrong` are the documents with a wrong prediction."""
        order = wrong[np.argsort(-np.asarray(certainty)[wrong], kind="stable")]
        found = [
            _Wrong(
                self._n_documents + i,
                documents[i : i + 1],
                labels[i],
                predicted[i],
                float(certainty[i]),
                None if references is None else references[i],
            )
            for i in order[: self.n_mistakes].tolist()
        ]
        both = sorted([*self._kept, *found], key=lambda mistake: -mistake.certainty)
        self._kept = both[: self.n_mistakes]
        self._n_documents += len(labels)

    def explain(self, classifier: Any, n_terms: int = 5) -> list[Mistake]:
        """Return the mistakes, the surest first, with the terms that misled the classifier."""
        known = set(classifier.classes_.tolist())
        return [_explain(mistake, classifier, known, n_terms) for mistake in self._kept]


def _explain(wrong: _Wrong, classifier: Any, known: set[Any], n_terms: int) -> Mistake:
    """Compare what each term adds to both classes."""
    terms = _terms(classifier, wrong.document, wrong.predicted)
    labels = wrong.true if isinstance(wrong.true, list) else [wrong.true]
    has_class = [label for label in labels if label in known]
    if has_class:
        explained = [_explained(classifier, wrong.document, label) for label in has_class]
        other = max(explained, key=lambda found: found.score).terms
        terms = {term: terms.get(term, 0.0) - other.get(term, 0.0) for term in {**terms, **other}}
    ranked = sorted(terms.items(), key=lambda item: (-item[1], str(item[0])))
    [document] = list(wrong.document) if not hasattr(wrong.document, "shape") else [None]
    return Mistake(
        document_id=wrong.document_id,
        text=_shorten(document) if isinstance(document, str) else None,
        true=wrong.true,
        predicted=wrong.predicted,
        certainty=wrong.certainty,
        known=bool(has_class),
        misleading={term: value for term, value in ranked[:n_terms] if value > 0},
        reference=wrong.reference,
    )


def _terms(classifier: Any, document: Any, label: Any) -> dict[Any, float]:
    """Return what each term of a document adds to the score of a class."""
    return dict(_explained(classifier, document, label).terms)


def _explained(classifier: Any, document: Any, label: Any) -> Explanation:
    """Return the score of a class for a document, term by term."""
    found: list[Explanation] = classifier.explain(document, classes=[label], top_terms=_ALL_TERMS)
    return found[0]


def _shorten(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
