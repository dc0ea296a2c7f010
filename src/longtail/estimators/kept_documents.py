"""Documents that a model keeps, to be shown: the last of a class, or the nearest by meaning.

In: a `LongTailState` with a memory. Out: rows of these documents and their weightiest terms.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.model.embeddings import ONE
from longtail.model.state import LongTailState
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.memory import DocumentMemory

N_SHOWN = 2  # documents of each class
N_SHOWN_TERMS = 15  # of each of these documents, the weightiest first


@dataclass(frozen=True, eq=False)
class KeptDocuments:
    """Documents of some classes."""

    memory: DocumentMemory
    counts: CountMatrix  # the terms of the documents
    rows_by_class: dict[int, list[int]]  # by class id, in the order in which they were added
    document_weights: Floats

    @classmethod
    def of(cls, state: LongTailState, class_ids: Integers) -> KeptDocuments | None:
        """Find the documents of classes; None where the model keeps none."""
        if state.memory is None:
            return None
        memory = state.memory.settle(state.overlay, len(state.statistics.indices))
        memory = memory.gather(np.flatnonzero(np.isin(memory.class_ids, class_ids)))
        rows_by_class: dict[int, list[int]] = {}
        for row, class_id in enumerate(memory.class_ids.tolist()):
            rows_by_class.setdefault(class_id, []).append(row)
        counts = memory.documents(len(state.term_weights))
        return cls(memory, counts, rows_by_class, state.document_weights)

    def find_last(self, class_id: int) -> list[int]:
        """Return the rows of the last documents of a class, the latest first."""
        return self.rows_by_class.get(class_id, [])[: -N_SHOWN - 1 : -1]

    def find_nearest(self, class_id: int, embedding: NDArray[Any]) -> list[tuple[int, float]]:
        """Return the rows of the documents of a class nearest to an embedding, and the cosines."""
        rows = self.rows_by_class.get(class_id, [])
        if not rows or self.memory.embeddings is None or not embedding.any():
            return []
        products = self.memory.embeddings[rows].astype(np.int64) * embedding
        cosines = products.sum(axis=1) / ONE**2
        order = np.lexsort((rows, -cosines))[:N_SHOWN]
        return [(rows[i], float(cosines[i])) for i in order.tolist()]

    def list_terms(self, row: int) -> tuple[int, ...]:
        """Return the terms of a document that weigh most, these first."""
        entries = slice(*self.counts.indptr[row : row + 2])
        terms = self.counts.indices[entries]
        weights = self.counts.data[entries] * self.document_weights[terms]
        return tuple(terms[np.lexsort((terms, -weights))[:N_SHOWN_TERMS]].tolist())


def find_nearest_terms(
    state: LongTailState, counts: CountMatrix, class_ids: Integers, names: NDArray[Any] | None
) -> list[tuple[tuple[tuple[Hashable, ...], float], ...]]:
    """Return the nearest documents of a class for each document, as terms, and the cosines."""
    kept = KeptDocuments.of(state, np.unique(class_ids)) if state.needs_embeddings else None
    if kept is None or counts.embeddings is None:
        return [()] * len(class_ids)

    def shown(row: int) -> tuple[Hashable, ...]:
        terms = kept.list_terms(row)
        return terms if names is None else tuple(names[list(terms)].tolist())

    return [
        tuple((shown(row), cosine) for row, cosine in kept.find_nearest(int(class_id), embedding))
        for class_id, embedding in zip(class_ids.tolist(), counts.embeddings, strict=True)
    ]
