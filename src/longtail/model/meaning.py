"""What embeddings say of a (document, class) pair, and which classes are near a document by them.

In: sums of embeddings by class and embeddings of class texts, in one table or in several. Out: the
parts of the score that come from meaning, and the classes of the nearest means, or of the nearest
names where a class has no document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import log
from longtail._kernels import ranking
from longtail._kernels.features import SMALLEST_SIZE
from longtail._kernels.types import Block, TopK
from longtail._parallel import parallel_for, uniform_work
from longtail.model.embeddings import Directions, Embeddings, find_signs, to_unit_vectors
from longtail.model.features import N_BY_SIZE, weigh_by_size
from longtail.model.names import ClassNames
from longtail.model.statistics import ClassStatistics
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import Floats, Integers

# The cosine with the class mean and whether there is one; the cosine with the name, and the same
# for a class that has no document.
MEANING_PARTS = ("mean", "has a mean", "name", "name alone")
N_NEAR = 20  # classes that are candidates because they are near
# Those whose signs differ least from the document's, of which the nearest are taken.
N_BY_SIGNS = 64

_ROW_BITS, _TABLE_BITS = 29, 3  # of a key, below the id of the class


def no_meaning() -> Floats:
    """Return weights of the parts under which nothing counts."""
    return np.zeros((N_BY_SIZE, len(MEANING_PARTS)))


@dataclass(frozen=True, eq=False)
class Meanings:
    """Directions of the classes of a table.

    Attributes
    ----------
    means, names : Directions
        Of the class means, and of the class texts; None where these have no embeddings.
    class_sizes : ndarray of shape (n_rows,)
        Documents of each class.
    """

    means: Directions
    names: Directions | None
    class_sizes: Integers

    @classmethod
    def of(cls, statistics: ClassStatistics, names: ClassNames | None) -> Meanings:
        """Return the directions of classes whose sums have embeddings."""
        assert statistics.embedding_sums is not None
        texts = None if names is None else names.embeddings
        return cls(
            Directions.of(to_unit_vectors(statistics.embedding_sums)),
            None if texts is None else Directions.of(texts),
            statistics.class_sizes,
        )

    @property
    def log_sizes(self) -> Floats:
        """Ln n_c, as the size feature has it."""
        return log(np.maximum(self.class_sizes, SMALLEST_SIZE))

    def split(
        self, embeddings: Embeddings, rows: NDArray[Any], n_jobs: int | None = None
    ) -> Floats:
        """Return the parts of documents with classes, shape (n_documents, n_columns, 4).

        Of no class, -1, and of a document without a vector all are 0.
        """
        parts = np.zeros((*rows.shape, len(MEANING_PARTS)))
        has_vector = embeddings.any(axis=1)[:, None] & (rows >= 0)
        parts[:, :, 0] = self.means.cosines(embeddings, rows, n_jobs)
        parts[:, :, 1] = self.means.there[rows] & has_vector
        if self.names is not None:
            parts[:, :, 2] = self.names.cosines(embeddings, rows, n_jobs)
            parts[:, :, 3] = np.where(self.class_sizes[rows] == 0, parts[:, :, 2], 0.0)
        return parts

    def score(
        self, embeddings: Embeddings, rows: NDArray[Any], weights: Floats, n_jobs: int | None = None
    ) -> Floats:
        """Return what meaning adds to the scores of documents with classes; 0 for no class."""
        return mix_meaning(self.split(embeddings, rows, n_jobs), weights, self.log_sizes[rows])


def mix_meaning(parts: Floats, weights: Floats, log_sizes: Floats) -> Floats:
    """Return the sum of the parts, each times its weight by the size of the class."""
    scores = np.zeros(parts.shape[:2])
    for part, column in zip(np.moveaxis(parts, 2, 0), weights.T, strict=True):
        if column.any():
            scores += part * weigh_by_size(column, log_sizes)
    return scores


class Table(NamedTuple):
    """Classes of a table among all classes: their ids, -1 for one that is not there."""

    meanings: Meanings
    class_ids: Integers


def find_near(
    tables: Sequence[Table],
    embeddings: Embeddings,
    passed_over: NDArray[Any],
    subsets: ClassSubsets | None = None,
    n_jobs: int | None = None,
) -> list[NDArray[Any]]:
    """Return the classes near each document that are not among some others.

    The nearest `N_NEAR` class means, and as many names of classes without documents.

    Parameters
    ----------
    tables : sequence of Table
        All classes.
    embeddings : ndarray of shape (n_documents, n_dimensions), int16
        The documents.
    passed_over : ndarray of shape (n_documents, n_columns)
        Class ids that are not wanted.
    subsets : ClassSubsets, optional
        The classes that may be found for each document.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    list of ndarray of shape (n_documents, n_found), int64
        For each table the rows of its classes; -1 for one of another table, or none.
    """
    queries = find_signs(embeddings)
    found = []
    for of_names in (False, True):
        group = []
        for meanings, class_ids in tables:
            directions = meanings.names if of_names else meanings.means
            if of_names:
                class_ids = np.where(meanings.class_sizes == 0, class_ids, -1)
            group.append((directions, class_ids))
        if any(d is not None and np.any(ids >= 0) for d, ids in group):
            found.append(_find_in_group(group, embeddings, queries, passed_over, subsets, n_jobs))
    keys = np.concatenate(found, axis=1)
    keys[~embeddings.any(axis=1)] = -1
    return [_rows_of(keys, table) for table in range(len(tables))]


def _find_in_group(
    group: Sequence[tuple[Directions | None, Integers]],
    embeddings: Embeddings,
    queries: NDArray[np.uint64],
    passed_over: NDArray[Any],
    subsets: ClassSubsets | None,
    n_jobs: int | None,
) -> NDArray[Any]:
    """Return keys of the nearest classes of one kind of directions."""
    keys: list[NDArray[Any]] = []
    scores: list[Floats] = []
    for table, (directions, class_ids) in enumerate(group):
        if directions is None:
            continue
        listed = directions.shortlist(queries, class_ids, passed_over, N_BY_SIGNS, n_jobs)
        keys.append(np.where(listed.classes < 0, -1, listed.classes | table << _ROW_BITS))
        scores.append(listed.scores)
    shortlist = keys[0]
    if len(keys) > 1:
        shortlist = _rank(np.concatenate(keys, axis=1), np.concatenate(scores, axis=1), N_BY_SIGNS)
    if subsets is not None:
        ids = np.where(shortlist < 0, -1, shortlist >> 32)
        shortlist = np.where((ids >= 0) & subsets.contain(ids), shortlist, -1)
    cosines = np.zeros(shortlist.shape)
    for table, (directions, _) in enumerate(group):
        if directions is not None:
            cosines += directions.cosines(embeddings, _rows_of(shortlist, table), n_jobs)
    return _rank(shortlist, cosines, N_NEAR)


def _rank(keys: NDArray[Any], scores: Floats, k: int) -> NDArray[Any]:
    """Return the k best keys of each row; ties go to the lower one."""
    top = TopK(np.empty((len(keys), k), np.int64), np.empty((len(keys), k)))
    keys = np.ascontiguousarray(keys)
    parallel_for(
        lambda first, last: ranking.rank_topk(keys, scores, Block(first, last), top),
        uniform_work(len(keys)),
        1,
    )
    return top.classes


def _rows_of(keys: NDArray[Any], table: int) -> NDArray[Any]:
    """Return the rows of a table that keys name; -1 for a key of another table, or none."""
    is_here = (keys >= 0) & ((keys >> _ROW_BITS & (1 << _TABLE_BITS) - 1) == table)
    return np.where(is_here, keys & (1 << _ROW_BITS) - 1, -1)
