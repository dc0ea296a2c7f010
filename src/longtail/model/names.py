"""Names of classes: their terms, which say something of a class beside its documents.

In: for each class that has a text (name, synonyms, description) a row of weights of terms. Out: a
linear scorer of names, which is added to that of the documents. The sums of documents never contain
a name, so a name can be replaced, and leaving one document out stays exact.

    score of the name = (w_0 + w_1 ln n_c) * sum_t x_t r_ct + w_2 [n_c = 0]

r_c is the row of the class, weighted by idf and of length 1, n_c its number of documents. The three
weights are learned on held-out documents, some of them of classes without any other document
(`training.held_out`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import log
from longtail._kernels.features import SMALLEST_SIZE
from longtail.model.corpus import Corpus
from longtail.model.scorer import LinearScorer, add_scorers
from longtail.sparse import CountMatrix, Floats, Integers, RowTable

# Before anything is learned; but for the bonus, about what they are on tib-subjects. A query is
# pruned to a few terms when candidates are sought, a bonus is not: beyond this one classes without
# documents crowd out the others (2.7 instead of 1.5: a fourth of all candidates, and twice the time
# to find them). What is learned beyond it counts once candidates are found.
FIRST_NAME_WEIGHTS: Floats = np.array([17.0, -2.0, 1.5])
SEARCH_BONUS = 1.5

SMALLEST_SQUARE = 1e-12  # of a row whose terms no document has


@dataclass(frozen=True, eq=False)
class ClassNames(RowTable):
    """The terms of the names of classes, in CSR form."""

    ENTRIES = ("indices", "weights")
    ROWS = ("named", "embeddings")

    indptr: Integers  # (n_classes + 1,) int64: where the terms of each class begin
    indices: NDArray[Any]  # (n_names,) int32: terms, ascending within a class
    weights: NDArray[np.float32]  # (n_names,) float32: each row has length 1, or no entry
    # (n_classes,) bool: which classes have a text; such a class exists without any document.
    named: NDArray[np.bool_]
    # (n_classes, n_dimensions): unit vectors of the texts in fixed point; zeros for none.
    embeddings: NDArray[np.int16] | None = None

    @classmethod
    def none(cls, n_classes: int) -> ClassNames:
        """Return classes without any name."""
        return cls(
            np.zeros(n_classes + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            np.zeros(n_classes, np.bool_),
        )

    @classmethod
    def of(cls, rows: CountMatrix, corpus: Corpus) -> ClassNames:
        """Weigh the terms of one text per class by idf, and bring each row to length 1.

        Terms that no document has had count nothing.
        """
        idf = np.where(corpus.document_frequencies > 0, corpus.idf, 0.0)
        weights = _scale_to_length_one(rows.indptr, rows.data * idf[rows.indices])
        named = np.ones(rows.n_documents, np.bool_)
        indices = rows.indices.astype(np.int32, copy=False)
        return cls(rows.indptr, indices, weights, named, rows.embeddings)

    def select_terms(self, keep: NDArray[np.bool_]) -> ClassNames:
        """Return the same names; terms that are not kept count nothing."""
        kept = self.weights.astype(np.float64) * keep[self.indices]
        return replace(self, weights=_scale_to_length_one(self.indptr, kept))

    def select_classes(self, keep: NDArray[np.bool_]) -> ClassNames:
        """Return the same classes; those that are not kept lose their names."""
        return self.gather(np.where(keep, np.arange(len(keep)), -1))

    @property
    def matches(self) -> LinearScorer:
        """The overlap of a document with each name: a scorer without learned weights."""
        return LinearScorer.without_bias(self.indptr, self.indices, self.weights)

    def as_scorer(self, class_sizes: Integers, name_weights: Floats) -> LinearScorer:
        """Return the scorer of the names of classes that have so many documents.

        Its bonus is that by which candidates are found.
        """
        weight, slope, bonus = name_weights.tolist()
        factors = weight + slope * log(np.maximum(class_sizes, SMALLEST_SIZE))
        of_entries = np.repeat(factors.astype(np.float32), np.diff(self.indptr))
        return LinearScorer(
            self.indptr,
            self.indices,
            self.weights * of_entries,
            np.zeros(len(class_sizes)),
            np.where(self.named & (class_sizes == 0), min(bonus, SEARCH_BONUS), 0.0),
        )

    def late_bonus(self, class_sizes: Integers, name_weights: Floats) -> Floats:
        """Return what is left of the bonus of each class once candidates are found."""
        left = max(float(name_weights[2]) - SEARCH_BONUS, 0.0)
        return np.where(self.named & (class_sizes == 0), left, 0.0)


def _scale_to_length_one(indptr: Integers, weights: Floats) -> NDArray[np.float32]:
    """Bring each row to length 1."""
    owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    squares = np.bincount(owners, weights**2, minlength=len(indptr) - 1)
    scaled = weights / np.sqrt(np.maximum(squares, SMALLEST_SQUARE))[owners]
    return np.asarray(scaled, np.float32)


def add_names(
    scorer: LinearScorer, names: ClassNames | None, class_sizes: Integers, name_weights: Floats
) -> LinearScorer:
    """Return the scorer of documents and names; the one given where there are no names."""
    if names is None:
        return scorer
    return add_scorers(scorer, names.as_scorer(class_sizes, name_weights))
