"""The best classes of documents as records, with evidence, paths and documents that are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.candidates import Candidate, Candidates
from longtail.estimators.kept_documents import KeptDocuments
from longtail.model.explanation import ScoreParts
from longtail.model.state import LongTailState
from longtail.results import TopK
from longtail.sparse import CountMatrix, Integers
from longtail.taxonomy import Hierarchy

N_EVIDENCE = 5  # terms of the document that are named for each candidate

Split = Callable[[LongTailState, CountMatrix, Integers], list[ScoreParts]]


def make_candidates(
    state: LongTailState,
    counts: CountMatrix,
    top: TopK,
    split: Split,
    term: Callable[[int], Hashable],
) -> list[Candidates]:
    """Return the candidates of each document, whose ranking has probabilities.

    `split` splits the score of each document for one class; `term` names a term by its id.
    """
    documents, columns = np.nonzero(top.valid)
    class_ids = np.searchsorted(state.all_classes, top.classes[documents, columns])
    parts = split(state, counts.gather(documents), class_ids) if len(documents) else []
    kept = KeptDocuments.of(state, np.unique(class_ids))
    embeddings = counts.embeddings if state.needs_embeddings else None
    found: list[list[Candidate]] = [[] for _ in range(counts.n_documents)]
    labels = state.all_classes[class_ids].tolist()
    values = top.scores[documents, columns].tolist()
    for document, class_id, label, value, of_pair in zip(
        documents.tolist(), class_ids.tolist(), labels, values, parts, strict=True
    ):
        path = _find_path(state.current_hierarchy, label)
        evidence = _find_evidence(of_pair, term)
        embedding = None if embeddings is None else embeddings[document]
        examples = _find_examples(kept, class_id, embedding, term)
        shown = Candidate(label, str(label), path, value, evidence, examples)
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
    kept: KeptDocuments | None,
    class_id: int,
    embedding: NDArray[Any] | None,
    term: Callable[[int], Hashable],
) -> tuple[str, ...]:
    """Return documents of a class as their terms: the nearest by meaning, or else the last."""
    if kept is None:
        return ()
    nearest = [] if embedding is None else kept.find_nearest(class_id, embedding)
    rows = [row for row, _ in nearest] or kept.find_last(class_id)
    return tuple(" ".join(str(term(i)) for i in kept.list_terms(row)) for row in rows)
