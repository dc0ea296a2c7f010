"""The best classes of documents as records, with evidence, paths and documents that are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.candidates import Candidate, Candidates
from longtail.model.explanation import ScoreParts
from longtail.model.state import LongTailState
from longtail.results import TopK
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.taxonomy import Hierarchy

N_EVIDENCE = 5  # terms of the document that are named for each candidate
N_EXAMPLES = 2  # documents of each class
N_EXAMPLE_TERMS = 15  # of each of these documents, the weightiest first

Split = Callable[[LongTailState, CountMatrix, Integers], list[ScoreParts]]


def make_candidates(
    state: LongTailState,
    counts: CountMatrix,
    top: TopK,
    split: Split,
    term: Callable[[int], Hashable],
) -> list[Candidates]:
    """Return the candidates of each document.

    Parameters
    ----------
    state : LongTailState
        The model.
    counts : CountMatrix
        The documents.
    top : TopK
        Their ranking, with probabilities.
    split : callable
        Splits the score of each document for one class.
    term : callable
        Names a term by its id.
    """
    documents, columns = np.nonzero(top.valid)
    class_ids = np.searchsorted(state.all_classes, top.classes[documents, columns])
    parts = split(state, counts.gather(documents), class_ids) if len(documents) else []
    examples = _find_examples(state, np.unique(class_ids), term)
    found: list[list[Candidate]] = [[] for _ in range(counts.n_documents)]
    labels = state.all_classes[class_ids].tolist()
    values = top.scores[documents, columns].tolist()
    for document, class_id, label, value, of_pair in zip(
        documents.tolist(), class_ids.tolist(), labels, values, parts, strict=True
    ):
        path = _find_path(state.current_hierarchy, label)
        evidence = _find_evidence(of_pair, term)
        shown = Candidate(label, str(label), path, value, evidence, examples.get(class_id, ()))
        found[document].append(shown)
    none = [None] * len(found) if top.none is None else top.none.tolist()
    return [Candidates(tuple(some), rest) for some, rest in zip(found, none, strict=True)]


def _find_evidence(split: ScoreParts, term: Callable[[int], Hashable]) -> Mapping[Any, float]:
    """Return the terms that contribute most, without those that most classes share."""
    order = np.lexsort((split.terms, -split.contributions))
    speaking = order[(split.contributions[order] > 0.0) & ~split.common[order]][:N_EVIDENCE]
    return {term(int(split.terms[i])): float(split.contributions[i]) for i in speaking}


def _find_path(hierarchy: Hierarchy | None, label: Any) -> tuple[Any, ...]:
    if hierarchy is None or hierarchy.find(np.array([label]))[0] < 0:
        return (label,)
    return hierarchy.path(label)


def _find_examples(
    state: LongTailState, class_ids: Integers, term: Callable[[int], Hashable]
) -> dict[int, tuple[str, ...]]:
    """Return the last documents that the model keeps of each class, as their terms."""
    if state.memory is None:
        return {}
    memory = state.memory.settle(state.overlay, len(state.statistics.indices))
    memory = memory.gather(np.flatnonzero(np.isin(memory.class_ids, class_ids)))
    counts = memory.documents(len(state.term_weights))
    examples: dict[int, list[str]] = {}
    for row in range(memory.n_documents)[::-1]:
        shown = examples.setdefault(int(memory.class_ids[row]), [])
        if len(shown) < N_EXAMPLES:
            entries = slice(*counts.indptr[row : row + 2])
            terms, data = counts.indices[entries], counts.data[entries]
            shown.append(_name_terms(terms, data * state.document_weights[terms], term))
    return {class_id: tuple(shown) for class_id, shown in examples.items()}


def _name_terms(terms: NDArray[Any], weights: Floats, term: Callable[[int], Hashable]) -> str:
    order = np.lexsort((terms, -weights))[:N_EXAMPLE_TERMS]
    return " ".join(str(term(int(terms[i]))) for i in order)
