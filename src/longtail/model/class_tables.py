"""Rows of classes, as base and overlay hold them, and what is derived from them.

In: sums, residuals, scorer and names of some classes. Out: the scorer and the residuals that rank
them, names and all. A base is such a table, and so is each tier of the overlay over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail.model.embeddings import Embeddings
from longtail.model.meaning import Meanings
from longtail.model.names import ClassNames
from longtail.model.scorer import ClassResiduals, LinearScorer, add_scorers
from longtail.model.statistics import ClassStatistics, with_count_bits
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.sparse import Floats, Integers, are_integral, splice_rows

Flags = NDArray[np.bool_]


class ScoredClasses:
    """Classes with what ranks them; those of the paper's model have sums alone."""

    statistics: ClassStatistics
    residuals: Any  # ClassResiduals
    scorer: Any  # LinearScorer of the documents, without names
    names: ClassNames | None

    @property
    def name_weights(self) -> Floats | None:
        """The weights of names."""
        raise NotImplementedError

    @property
    def centers(self) -> Embeddings | None:
        """From where documents and class texts are compared; None without any."""
        raise NotImplementedError

    @cached_property
    def meanings(self) -> Meanings:
        """Directions of the classes."""
        return Meanings.of(self.statistics, self.names, self.centers)

    @cached_property
    def name_scorer(self) -> LinearScorer | None:
        """The scorer of names; None where no class has one."""
        if self.names is None or self.name_weights is None or not self.names.named.any():
            return None
        return self.names.as_scorer(self.statistics.class_sizes, self.name_weights)

    @cached_property
    def ranking_scorer(self) -> LinearScorer:
        """The scorer of documents and names, which an index has term by term."""
        scorer: LinearScorer = self.scorer
        names = self.name_scorer
        return scorer if names is None else add_scorers(scorer, names)

    @cached_property
    def ranking_residuals(self) -> ClassResiduals:
        """Residuals, and what is left of the bonus of classes without documents."""
        residuals: ClassResiduals = self.residuals
        if self.names is None or self.name_weights is None or not self.names.named.any():
            return residuals
        bonus = self.names.late_bonus(self.statistics.class_sizes, self.name_weights)
        return residuals.raise_biases(bonus)


@dataclass(frozen=True, eq=False)
class Rows(ScoredClasses):
    """The classes of a tier."""

    ids: Integers  # (n_rows,) int64: persistent ids, ascending
    statistics: ClassStatistics  # sums, without document frequencies
    # Of a model that has any; the scorer is without names.
    residuals: ClassResiduals | None = None
    scorer: LinearScorer | None = None
    names: ClassNames | None = None
    name_weights: Floats | None = None  # what names count
    centers: Embeddings | None = None  # of embeddings

    @property
    def named(self) -> Flags:
        """Which classes have a text."""
        return np.zeros(len(self.ids), np.bool_) if self.names is None else self.names.named

    def find(self, ids: Integers) -> Integers:
        """Return the row of each persistent id; -1 where it has none here."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[rows] == ids, rows, -1)

    def gather(self, rows: Integers) -> Rows:
        """Return some rows, ascending."""
        return replace(
            self,
            ids=self.ids[rows],
            statistics=self.statistics.gather(rows),
            residuals=None if self.residuals is None else self.residuals.gather(rows),
            scorer=None if self.scorer is None else self.scorer.gather(rows),
            names=None if self.names is None else self.names.gather(rows),
        )

    def put_over(self, others: Rows) -> Rows:
        """Return these rows, and of the others those that are not here."""
        ids = np.union1d(self.ids, others.ids)
        sources = others.find(ids), self.find(ids)
        statistics = splice_sums([others.statistics, self.statistics], *sources)
        if self.residuals is None:
            return replace(self, ids=ids, statistics=statistics)
        first: Any = others
        second: Any = self
        return replace(
            self,
            ids=ids,
            statistics=statistics,
            residuals=splice_rows([first.residuals, second.residuals], *sources),
            scorer=splice_rows([first.scorer, second.scorer], *sources, indices=statistics.indices),
            names=splice_rows([first.names, second.names], *sources),
        )

    @property
    def has_index(self) -> bool:
        """Whether the index was built."""
        return "_index" in self.__dict__

    def index(self, n_terms: int, n_of_all: int, *, dense_share: float) -> InvertedIndex:
        """Return the scorer term by term; built once, and given room for terms that entered."""
        index: InvertedIndex | None = self.__dict__.get("_index")
        if index is None:
            index = build_index(
                self.ranking_scorer, n_terms, n_of_all=n_of_all, dense_share=dense_share
            )
        elif len(index.dense_row_ids) < n_terms:
            index = index.grow_terms(n_terms)
        self.__dict__["_index"] = index
        return index


def splice_sums(tables: Sequence[ClassStatistics], *sources: Integers) -> ClassStatistics:
    """Return sums of classes from several tables, in one unit and without document frequencies."""
    bits = max(table.count_bits for table in tables)
    kind = np.result_type(*(table.class_sizes for table in tables))
    tables = [
        replace(table.without_frequencies(), class_sizes=table.class_sizes.astype(kind, copy=False))
        for table in tables
    ]
    if any(table.count_bits != bits for table in tables):  # in the finer unit once they are few
        tables = [
            with_count_bits(table.gather(rows), bits)
            for table, rows in zip(tables, sources, strict=True)
        ]
        outer_ids = np.arange(len(sources[0]))
        sources = tuple(np.where(rows < 0, -1, outer_ids) for rows in sources)
    spliced = splice_rows(tables, *sources)
    if kind == np.int64 or not are_integral(spliced.class_sizes):
        return spliced
    return replace(spliced, class_sizes=spliced.class_sizes.astype(np.int64))
