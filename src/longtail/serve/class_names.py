"""Search among the names of classes: by prefix, and by what the letters have in common.

In: labels. Out: an inverted index from n-grams of characters to names. The grams of a name are all
runs of three characters, with a space before the first, and the first letter of every word; a query
finds the names that share most of its grams, so a slip of the hand does not hide a class. At 29,268
names of some 20 characters a search takes about 1 ms.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import Integers
from longtail.text.tokenizer import normalise

LONGEST_NAME = 1_000  # characters of a name or a query that are looked at
MOST_ADDED = 500  # names beside the index before all are indexed anew
_FEWEST_SHARED = 0.25  # of a query's grams; two letters swapped in a short word leave no more
_COMPARED = 3  # times as many names as asked for are compared letter by letter, 30 µs each
_NEWLINE, _SPACE = 10, 32
_BITS = 21  # of a code point; three make a gram


@dataclass(frozen=True, eq=False)
class _GramIndex:
    """Names as they are compared, and which of them have each gram.

    Attributes
    ----------
    names : list of str
        Normalised.
    grams : ndarray of int64
        Distinct, ascending.
    indptr, name_ids : ndarrays of int64
        Names that have each gram.
    lengths : ndarray of int64
        Characters of each name.
    in_order : list of tuple of str and int
        Names with their ids, sorted.
    """

    names: list[str]
    grams: Integers
    indptr: Integers
    name_ids: Integers
    lengths: Integers
    in_order: list[tuple[str, int]]

    @classmethod
    def build(cls, labels: list[Any]) -> _GramIndex:
        names = [fold(label) for label in labels]
        grams, owners = _list_grams(names)
        order = np.lexsort((owners, grams))
        grams, owners = grams[order], owners[order]
        is_new = np.ones(len(grams), np.bool_)
        is_new[1:] = (grams[1:] != grams[:-1]) | (owners[1:] != owners[:-1])
        distinct, starts = np.unique(grams[is_new], return_index=True)
        indptr = np.append(starts, np.count_nonzero(is_new))
        in_order = sorted((name, i) for i, name in enumerate(names))
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        return cls(names, distinct, indptr, owners[is_new], lengths, in_order)

    def count_shared(self, query: str) -> NDArray[np.float64]:
        """Return which share of a query's grams each name has."""
        wanted = np.unique(_list_grams([query])[0])
        rows = np.searchsorted(self.grams, wanted)
        rows = rows[(rows < len(self.grams))]
        rows = rows[np.isin(self.grams[rows], wanted)] if len(rows) else rows
        found = [self.name_ids[self.indptr[row] : self.indptr[row + 1]] for row in rows.tolist()]
        ids = np.concatenate([np.zeros(0, np.int64), *found])
        return np.bincount(ids, minlength=len(self.names)) / max(len(wanted), 1)

    def find_prefix(self, query: str, limit: int) -> list[int]:
        """Return names that begin with a query, in alphabetical order."""
        found: list[int] = []
        for name, i in self.in_order[bisect_left(self.in_order, (query, -1)) :]:
            if not name.startswith(query) or len(found) == limit:
                break
            found.append(i)
        return found


@dataclass(frozen=True, eq=False)
class ClassNames:
    """The classes of one moment: an index of most of them, and the few that came since.

    Attributes
    ----------
    classes : ndarray
        Labels, sorted.
    """

    classes: NDArray[Any]
    _indexed: NDArray[Any]
    _main: _GramIndex
    _added: NDArray[Any]
    _delta: _GramIndex
    _gone: NDArray[np.bool_]

    @classmethod
    def index(cls, classes: NDArray[Any], before: ClassNames | None = None) -> ClassNames:
        """Index the names of classes; what an earlier index has is used again."""
        if before is not None:
            if before.classes is classes or np.array_equal(before.classes, classes):
                return before
            added = np.setdiff1d(classes, before._indexed, assume_unique=True)
            gone = ~np.isin(before._indexed, classes, assume_unique=True)
            if len(added) + np.count_nonzero(gone) <= MOST_ADDED:
                delta = _GramIndex.build(added.tolist())
                return cls(classes, before._indexed, before._main, added, delta, gone)
        main, nothing = _GramIndex.build(classes.tolist()), classes[:0]
        gone = np.zeros(len(classes), np.bool_)
        return cls(classes, classes, main, nothing, _GramIndex.build([]), gone)

    def search(self, query: str, limit: int) -> list[tuple[Any, str]]:
        """Return labels, best first, each with how it was found: "prefix" or "fuzzy".

        Parameters
        ----------
        query : str
            A part of a name, or one like it.
        limit : int
            How many at most.
        """
        folded = fold(query)
        if not folded:
            return []
        ranked = [
            *self._search_segment(self._main, self._indexed, folded, limit, self._gone),
            *self._search_segment(self._delta, self._added, folded, limit, None),
        ]
        ranked.sort(key=lambda entry: entry[0])
        return [(label, how) for _, label, how in ranked[:limit]]

    def _search_segment(
        self,
        segment: _GramIndex,
        labels: NDArray[Any],
        query: str,
        limit: int,
        gone: NDArray[np.bool_] | None,
    ) -> list[tuple[tuple[Any, ...], Any, str]]:
        """Return sort keys, labels and how they were found."""
        n_gone = 0 if gone is None else int(np.count_nonzero(gone))
        shares = segment.count_shared(query)
        if gone is not None:
            shares[gone] = 0.0
        near = np.flatnonzero(shares >= _FEWEST_SHARED)
        order = np.lexsort((near, segment.lengths[near], -shares[near]))
        near = near[order[: _COMPARED * limit]]
        prefixed = [
            i
            for i in segment.find_prefix(query, limit + n_gone)
            if gone is None or not gone[i]
        ]  # fmt: skip
        entries = []
        for i in dict.fromkeys([*prefixed, *near.tolist()]):
            name = segment.names[i]
            is_prefix = name.startswith(query)
            likeness = float(shares[i]) + (0.0 if is_prefix else _compare(query, name))
            key = (name != query, not is_prefix, -likeness, len(name), name)
            entries.append((key, labels[i : i + 1].tolist()[0], "prefix" if is_prefix else "fuzzy"))
        return entries


def _compare(query: str, name: str) -> float:
    """Return how alike a query and the beginning of a name are, from 0 to 1."""
    return SequenceMatcher(None, query, name[: len(query) + 2]).ratio()


def fold(label: Any) -> str:
    """Return a name as it is compared: one case, no accents, single spaces."""
    return " ".join(normalise(str(label)[:LONGEST_NAME]).split())


def _list_grams(names: list[str]) -> tuple[Integers, Integers]:
    """Return the grams of names and which name each comes from, repeated as they are."""
    text = "\n".join([*(f" {name}" for name in names), ""])
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32).astype(np.int64)
    owners = np.cumsum(codes == _NEWLINE)
    first, second, third = codes[:-2], codes[1:-1], codes[2:]
    triples = ((first << _BITS) | second) << _BITS | third
    inside = (second != _NEWLINE) & (third != _NEWLINE) & (first != _NEWLINE)
    initials = (codes[:-1] == _SPACE) & (codes[1:] != _NEWLINE)
    pairs = (codes[:-1] << _BITS) | codes[1:]
    return (
        np.concatenate([triples[inside], pairs[initials]]),
        np.concatenate([owners[:-2][inside], owners[:-1][initials]]),
    )
