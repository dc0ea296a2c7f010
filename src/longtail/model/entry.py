"""A change as numbers: what the log keeps of it, and all that a model needs.

Sums do not depend on the order of changes, so a model is its base and the set of entries that are
live. An entry refers to classes by persistent ids, which stay while the base does: those of the
base are its rows, and each entry says which ids of new classes it begins. The same holds for terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import CountMatrix, Floats, Integers, narrow_counts, stack_rows

_NONE = np.zeros(0, np.int64)
NO_ROWS = CountMatrix(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)


class NewTerms(NamedTuple):
    """Terms that enter the vocabulary at its end, in this order."""

    # Their bytes, and how many each has.
    utf8: NDArray[np.uint8]
    lengths: Integers


@dataclass(frozen=True, eq=False)
class Entry:
    """A change as numbers."""

    number: int  # of the change; later ones are higher
    # Teach, forget, rename, merge, remove, describe, hierarchy, move, recalibrate or refine.
    action: str
    # int64: of each document; of an edit of a class, that class.
    class_ids: Integers = field(default_factory=_NONE.copy)
    counts: CountMatrix = NO_ROWS  # the documents, or the terms of a class's text
    # float64, or None: as how many each document counts; None where all count as one.
    weights: Floats | None = None
    new_classes: dict[int, Any] = field(default_factory=dict)  # ids that begin with this entry
    new_terms: NewTerms | None = None  # terms that enter with it
    label: Any = None  # what a class is called from now on
    into: int = -1  # the class that another becomes a part of
    text: str | None = None  # name or description of a class; empty where it is taken away
    learned: Any = None  # what `recalibrate` saw or `refine` learned; what is said of parents

    @property
    def has_documents(self) -> bool:
        """Whether sums change by the documents of the entry."""
        return self.action in ("teach", "forget")

    @property
    def direction(self) -> int:
        """1 where documents are added, -1 where they are taken away."""
        return -1 if self.action == "forget" else 1


class Changes(NamedTuple):
    """Entries that a model takes in together."""

    # Entries whose new classes and terms get their ids, live or not; in the order of numbers.
    declared: Sequence[Entry] = ()
    # Those that take effect, and those whose effect ends.
    plus: Sequence[Entry] = ()
    minus: Sequence[Entry] = ()

    @classmethod
    def of(cls, entry: Entry) -> Changes:
        """Return an entry that is new."""
        return cls((entry,), (entry,))

    @property
    def n_new_terms(self) -> int:
        """How many terms enter."""
        entering = (entry.new_terms for entry in self.declared)
        return sum(len(terms.lengths) for terms in entering if terms is not None)

    def count_new_terms(self, n_before: int) -> Integers:
        """Return how many documents each new term has in the entry that it comes with."""
        entering = [entry for entry in self.declared if entry.new_terms is not None]
        n_new = [len(entry.new_terms.lengths) for entry in entering if entry.new_terms is not None]
        firsts = n_before + np.cumsum([0, *n_new])
        terms = np.concatenate([entry.counts.indices for entry in entering])
        sizes = [len(entry.counts.indices) for entry in entering]
        come = terms[terms >= np.repeat(firsts[:-1], sizes)] - n_before
        return np.maximum(np.bincount(come, minlength=int(firsts[-1] - n_before)), 1)

    def documents(self, n_terms: int) -> list[Documents]:
        """Return the documents that come and those that go, each together."""
        found = []
        for direction in (1, -1):
            of_direction = [e for e in self.plus if e.has_documents and e.direction == direction]
            of_direction += [e for e in self.minus if e.has_documents and -e.direction == direction]
            if of_direction:
                found.append(Documents.join(of_direction, direction, n_terms))
        return found


class Documents(NamedTuple):
    """Documents that come (direction 1) or go (-1), with the persistent id of each one's class."""

    class_ids: Integers
    counts: CountMatrix
    weights: Floats | None
    direction: int

    @classmethod
    def join(cls, entries: Sequence[Entry], direction: int, n_terms: int) -> Documents:
        """Return the documents of some entries."""
        tables = [entry.counts for entry in entries]
        counts = tables[0] if len(tables) == 1 else stack_rows(tables)
        counts = replace(counts, data=narrow_counts(counts.data), n_terms=n_terms)
        weights = None
        if any(entry.weights is not None for entry in entries):
            given = [np.ones(len(e.class_ids)) if e.weights is None else e.weights for e in entries]
            weights = np.concatenate(given)
        class_ids = np.concatenate([entry.class_ids for entry in entries])
        return cls(class_ids, counts, weights, direction)
