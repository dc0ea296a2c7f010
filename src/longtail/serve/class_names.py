"""Search among the names of classes: by prefix, and by what the letters have in common.

In: labels, and the texts of classes where a model has them: a class whose label is an id is found
by what it is called. Out: an inverted index from n-grams of characters to names. The grams of a
name are all runs of three characters, with a space before the first, and the first letter of every
word; a query finds the names that share most of its grams, so a slip of the hand does not hide a
class. At 29,268 names of some 20 characters a search takes about 1 ms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
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
    def build(cls, names: list[str]) -> _GramIndex:
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
        start = bisect_left(self.in_order, (query, -1))
        following = self.in_order[start : start + limit]
        return [i for name, i in following if name.startswith(query)]


@dataclass(frozen=True, eq=False)
class _Segment:
    """Names of some classes: their labels, and their texts where they have any.

    Attributes
    ----------
    labels : list
        The class that each name stands for.
    texts : mapping of label to str
        The texts that were indexed.
    grams : _GramIndex
        The names.
    """

    labels: list[Any]
    texts: Mapping[Any, str]
    grams: _GramIndex

    @classmethod
    def build(cls, labels: list[Any], texts: Mapping[Any, str]) -> _Segment:
        described = [label for label in labels if texts.get(label)]
        names = [*map(fold, labels), *(fold(texts[label]) for label in described)]
        return cls([*labels, *described], texts, _GramIndex.build(names))


@dataclass(frozen=True, eq=False)
class ClassNames:
    """The classes of one moment: an index of most of them, and the few that changed since.

    Attributes
    ----------
    classes : ndarray
        Labels, sorted.
    texts : mapping of label to str
        Names or descriptions of the classes that have any.
    """

    classes: NDArray[Any]
    texts: Mapping[Any, str]
    _main: _Segment
    _delta: _Segment
    _gone: NDArray[np.bool_]

    @classmethod
    def index(
        cls,
        classes: NDArray[Any],
        texts: Mapping[Any, str] | None = None,
        before: ClassNames | None = None,
    ) -> ClassNames:
        """Index the names of classes; what an earlier index has is used again."""
        texts = texts or {}
        if before is not None:
            is_same = before.classes is classes or np.array_equal(before.classes, classes)
            if is_same and before.texts == texts:
                return before
            main, labels = before._main, classes.tolist()
            # Sets of Python's: numpy would sort all names several times.
            redescribed = {label for label, _ in main.texts.items() ^ texts.items()}
            unchanged = (set(main.labels) & set(labels)) - redescribed
            added = [label for label in labels if label not in unchanged]
            gone = np.array([label not in unchanged for label in main.labels], np.bool_)
            if len(added) + np.count_nonzero(gone) <= MOST_ADDED:
                return cls(classes, texts, main, _Segment.build(added, texts), gone)
        main, nothing = _Segment.build(classes.tolist(), texts), _Segment.build([], {})
        return cls(classes, texts, main, nothing, np.zeros(len(main.labels), np.bool_))

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
            *_search_segment(self._main, folded, limit, self._gone),
            *_search_segment(self._delta, folded, limit, None),
        ]
        ranked.sort(key=lambda entry: entry[0])
        found: dict[Any, str] = {}  # a class by the best of its names
        for _, label, how in ranked:
            found.setdefault(label, how)
        return list(found.items())[:limit]


def _search_segment(
    segment: _Segment, query: str, limit: int, gone: NDArray[np.bool_] | None
) -> Iterable[tuple[tuple[Any, ...], Any, str]]:
    """Yield sort keys, labels and how they were found."""
    index = segment.grams
    shares = index.count_shared(query)
    n_gone = 0
    if gone is not None:
        n_gone = int(np.count_nonzero(gone))
        shares[gone] = 0.0
    near = np.flatnonzero(shares >= _FEWEST_SHARED)
    order = np.lexsort((near, index.lengths[near], -shares[near]))
    near = near[order[: _COMPARED * limit]]
    prefixed = index.find_prefix(query, limit + n_gone)
    for i in dict.fromkeys([*prefixed, *near.tolist()]):
        if gone is not None and gone[i]:
            continue
        name = index.names[i]
        is_prefix = name.startswith(query)
        likeness = float(shares[i]) + (0.0 if is_prefix else _compare(query, name))
        is_inside = f" {query}" in name  # at the beginning of a later word
        key = (name != query, not is_prefix, not is_inside, -likeness, len(name), name)
        yield key, segment.labels[i], "prefix" if is_prefix else "fuzzy"


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
