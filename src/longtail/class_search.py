"""Search among the names of classes: by prefix, and by what the letters have in common.

In: labels, and the texts of classes where a model has them: a class whose label is an id is found
by what it is called. Out: an inverted index from n-grams of characters to names. The grams of a
name are all runs of three characters, with a space before the first, and the first letter of every
word; a query finds the names that share most of its grams, so a slip of the hand does not hide a
class. The names that share most are compared letter by letter, all at once, by the longest common
subsequence of their beginnings. The work of a search is bounded whatever is asked for: a search
among 100,000 names of some 20 characters takes about 2 ms, the worst query 20 ms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import Integers
from longtail.text.tokenizer import normalise

LONGEST_NAME = 1_000  # characters of a name or a query that are looked at
MAX_ADDED = 500  # names beside the index before all are indexed again
_MIN_SHARED = 0.25  # of a query's grams; two letters swapped in a short word leave no more
_LETTERS = 64  # of a query that are compared, a bit each of a machine word
_MAX_COMPARED = 4_096  # names, letter by letter; 1 ms
_MAX_RANKED = 3  # times as many names as asked for
_NEWLINE, _SPACE = 10, 32
_BITS = 21  # of a code point; three make a gram


@dataclass(frozen=True, eq=False)
class _GramIndex:
    """Names as they are compared, and which of them have each gram."""

    names: list[str]  # normalised
    grams: Integers  # int64: distinct, ascending
    # int64 and of int32: names that have each gram.
    indptr: Integers
    name_ids: NDArray[np.int32]
    lengths: Integers  # int64: characters of each name
    in_order: list[tuple[str, int]]  # names with their ids, sorted

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
        name_ids = owners[is_new].astype(np.int32)
        return cls(names, distinct, indptr, name_ids, lengths, in_order)

    def count_shared(self, query: str) -> NDArray[np.float64]:
        """Return which share of a query's grams each name has."""
        wanted = np.unique(_list_grams([query[:_LETTERS]])[0])
        rows = np.searchsorted(self.grams, wanted)
        counts = np.zeros(len(self.names))
        for row, gram in zip(rows.tolist(), wanted.tolist(), strict=True):
            if row < len(self.grams) and self.grams[row] == gram:
                counts[self.name_ids[self.indptr[row] : self.indptr[row + 1]]] += 1.0
        return counts / max(len(wanted), 1)

    def find_prefix(self, query: str, limit: int) -> list[int]:
        """Return names that begin with a query, in alphabetical order."""
        start = bisect_left(self.in_order, (query, -1))
        following = self.in_order[start : start + limit]
        return [i for name, i in following if name.startswith(query)]


@dataclass(frozen=True, eq=False)
class _Segment:
    """Names of some classes: their labels, and their texts where they have any."""

    labels: list[Any]  # the class that each name stands for
    texts: Mapping[Any, str]  # the texts that were indexed
    grams: _GramIndex  # the names

    @classmethod
    def build(cls, labels: list[Any], texts: Mapping[Any, str]) -> _Segment:
        described = [label for label in labels if texts.get(label)]
        names = [*map(fold, labels), *(fold(texts[label]) for label in described)]
        return cls([*labels, *described], texts, _GramIndex.build(names))


@dataclass(frozen=True, eq=False)
class ClassSearch:
    """The classes of one moment: an index of most of them, and the few that changed since."""

    classes: NDArray[Any]  # labels, sorted
    texts: Mapping[Any, str]  # names or descriptions of the classes that have any
    _main: _Segment
    _delta: _Segment
    _gone: NDArray[np.bool_]

    @classmethod
    def index(
        cls,
        classes: NDArray[Any],
        texts: Mapping[Any, str] | None = None,
        before: ClassSearch | None = None,
    ) -> ClassSearch:
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
            if len(added) + np.count_nonzero(gone) <= MAX_ADDED:
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


def add_scored(
    named: list[tuple[Any, str]], scored: Iterable[Any], limit: int
) -> list[tuple[Any, str]]:
    """Return classes found by name, then others that a model ranks for the query, as "score".

    Half of the list is for these, where the names alone would fill it.
    """
    known = {label for label, _ in named}
    others = [(label, "score") for label in scored if label not in known]
    others = others[: max(limit - len(named), limit // 2)]
    return [*named[: limit - len(others)], *others]


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
    near = np.flatnonzero(shares >= _MIN_SHARED)
    near = near[np.lexsort((near, index.lengths[near], -shares[near]))[:_MAX_COMPARED]]
    alike = shares[near] + compare(query, [index.names[i] for i in near.tolist()])
    most_alike = near[np.argsort(-alike, kind="stable")[:limit]]
    likeness = dict(zip(near.tolist(), alike.tolist(), strict=True))
    prefixed = index.find_prefix(query, limit + n_gone)
    ranked = [*prefixed, *near[: _MAX_RANKED * limit].tolist(), *most_alike.tolist()]
    for i in dict.fromkeys(ranked):
        if gone is not None and gone[i]:
            continue
        name = index.names[i]
        is_prefix = name.startswith(query)
        alikeness = float(shares[i]) if is_prefix else likeness[i]
        is_inside = f" {query}" in name  # at the beginning of a later word
        label = segment.labels[i]
        is_text = fold(label) != name  # of two classes of one name, the one that is called so
        key = (name != query, not is_prefix, not is_inside, -alikeness, len(name), name, is_text)
        yield (*key, label), label, "prefix" if is_prefix else "fuzzy"


def compare(query: str, names: list[str]) -> NDArray[np.float64]:
    """Return how alike a query and the beginning of each name are, from 0 to 1.

    Twice the length of their longest common subsequence over the sum of their lengths, by the
    bit-parallel algorithm of Hyyrö (2004) on all names together: one machine word for each name,
    one step for each letter.
    """
    query = query[:_LETTERS]
    n_letters = len(query) + 2
    lengths = np.fromiter((min(len(name), n_letters) for name in names), np.int64, len(names))
    letters = np.array([name[:n_letters] for name in names], f"<U{n_letters}")
    codes = letters.view(np.uint32).reshape(len(names), n_letters)
    known, letter_ids = np.unique(np.array([query]).view(np.uint32), return_inverse=True)
    masks = np.zeros(len(known), np.uint64)
    bits = np.uint64(1) << np.arange(len(query), dtype=np.uint64)
    np.bitwise_or.at(masks, letter_ids, bits)
    rows = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    # Names end in zeros, which are no letters.
    matches = np.where((known[rows] == codes) & (codes != 0), masks[rows], np.uint64(0))
    state = np.full(len(names), ~np.uint64(0))
    for column in matches.T:
        common = state & column
        state = (state + common) | (state - common)
    common_bits = ~state & np.bitwise_or.reduce(bits)
    n_common = np.unpackbits(common_bits.view(np.uint8)).reshape(len(names), 64).sum(axis=1)
    likeness: NDArray[np.float64] = 2.0 * n_common / (len(query) + lengths)
    return likeness


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
