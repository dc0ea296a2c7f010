"""Distinct terms, found by hash tables that grow."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import interning as kernels
from longtail._kernels.interning import HashTables, Terms
from longtail._kernels.text import CHAR_NGRAM
from longtail.sparse import Integers, offsets_from_lengths
from longtail.text.fields import MARK

Bytes = NDArray[np.uint8]


class InternTable:
    """Distinct terms, growing, with their hash tables; `terms` are described in the kernels."""

    def __init__(self) -> None:
        self.n_bytes, self.n_terms = 0, 0
        self.terms = Terms(np.zeros(0, np.uint8), *np.zeros((2, 0), np.int64))
        self.tables = new_tables(0)

    def add(self, utf8: Bytes, lefts: Integers, rights: Integers) -> Integers:
        """Intern terms and return the id of each."""
        n_terms = self.n_terms + len(lefts)
        n_bytes = self.n_bytes + int((rights - lefts)[lefts >= 0].sum())
        self.terms = Terms(
            with_capacity(self.terms.utf8, n_bytes),
            with_capacity(self.terms.lefts, n_terms),
            with_capacity(self.terms.rights, n_terms),
        )
        self.tables = grow_tables(self.tables, n_terms)
        ids = np.empty(len(lefts), np.int64)
        self.n_bytes, self.n_terms = kernels.intern_terms(
            Terms(utf8, lefts, rights), self.tables, self.terms, self.n_bytes, self.n_terms, ids
        )
        return ids

    def mark_words(self) -> NDArray[np.bool_]:
        """Return whether each term is a word or a value of a field, not an n-gram of any kind."""
        is_word: NDArray[np.bool_] = self.terms.lefts[: self.n_terms] >= 0
        tokens = np.flatnonzero(is_word)
        utf8, starts = self.terms.utf8, self.terms.lefts[tokens]
        second = utf8[np.minimum(starts + 1, len(utf8) - 1)]
        is_word[tokens] = (utf8[starts] != CHAR_NGRAM) | (second == ord(MARK))
        return is_word

    def sort(self, kept: NDArray[np.bool_], largest: int) -> Integers:
        """Return the ids of the terms kept, in the order of their bytes.

        A space is less than any byte of a word, so n-grams go by what they extend, then by their
        last words. An n-gram is kept only with all its words and the n-grams it begins with.

        Parameters
        ----------
        kept : ndarray of shape (n_terms,), bool
            Terms to keep.
        largest : int
            Largest n-gram, in words.
        """
        lefts, rights = self.terms.lefts[: self.n_terms], self.terms.rights[: self.n_terms]
        ordered = np.flatnonzero(kept & (lefts >= 0))
        data = self.terms.utf8.tobytes()
        names = [
            data[start:end]
            for start, end in zip(lefts[ordered].tolist(), rights[ordered].tolist(), strict=True)
        ]
        ordered = ordered[sorted(range(len(names)), key=names.__getitem__)]
        ranks = np.full(self.n_terms, -1)
        ranks[ordered] = np.arange(len(ordered))
        word_ranks = ranks
        extensions = np.flatnonzero(kept & (lefts < 0))
        for _ in range(largest - 1):
            # Those whose beginning got its rank in the last round; the others wait, or go.
            new = ranks[extensions] < 0
            new &= (ranks[-1 - lefts[extensions]] >= 0) & (word_ranks[rights[extensions]] >= 0)
            ngrams = extensions[new]
            beginning, last_word = ranks[-1 - lefts[ngrams]], word_ranks[rights[ngrams]]
            keys = np.concatenate([ranks[ordered] << 32, beginning << 32 | last_word + 1])
            ordered = np.concatenate([ordered, ngrams])[np.argsort(keys)]
            ranks = np.full(self.n_terms, -1)
            ranks[ordered] = np.arange(len(ordered))
        return np.asarray(ordered)

    def write(self, selected: Integers, largest: int) -> tuple[Bytes, Integers]:
        """Return the bytes of some terms, and where each begins."""
        lefts, rights = self.terms.lefts[: self.n_terms], self.terms.rights[: self.n_terms]
        lengths = rights - lefts
        ngrams = np.flatnonzero(lefts < 0)
        for _ in range(largest - 1):  # n-grams of 2 words are then right, then those of 3, ...
            lengths[ngrams] = lengths[-1 - lefts[ngrams]] + 1 + lengths[rights[ngrams]]
        offsets = offsets_from_lengths(lengths[selected])
        utf8 = np.empty(offsets[-1], np.uint8)
        kernels.write_terms(self.terms, selected, offsets, utf8)
        return utf8, offsets


def _n_slots(n_terms: int) -> int:
    """Return the size of a hash table that is at most half full with so many terms."""
    return max(kernels.SMALLEST_TABLE, 1 << (2 * n_terms - 1).bit_length())


def new_seed() -> np.uint64:
    """Return an unpredictable seed: colliding words cannot be constructed.

    Results do not depend on it, since ids follow the order of the terms.
    """
    return np.uint64(secrets.randbits(64))


def new_tables(n_terms: int) -> HashTables:
    """Return empty hash tables with capacity for so many terms."""
    size = _n_slots(n_terms)
    return HashTables(np.zeros(size, np.uint64), np.full((size, 2), -1), new_seed())


def grow_tables(tables: HashTables, n_terms: int) -> HashTables:
    """Return hash tables with capacity for so many terms: these, or larger ones."""
    if len(tables.slots) >= _n_slots(n_terms):
        return tables
    larger = new_tables(n_terms)._replace(seed=tables.seed)
    kernels.grow_words(tables.slots, larger.slots)
    kernels.grow_ngrams(tables.ngrams, larger.ngrams, tables.seed)
    return larger


def has_capacity(tables: HashTables, n_terms: int) -> bool:
    """Return whether tables take terms that come one by one, up to so many.

    They may become three quarters full: copying those of 500,000 terms for one that is taught takes
    0.1 s.
    """
    return 3 * len(tables.slots) >= 4 * n_terms


def copy_tables(tables: HashTables, n_kept: int, n_terms: int) -> HashTables:
    """Return tables with the first terms of these, and capacity for so many."""
    slots, ngrams, seed = tables
    copied = new_tables(n_terms)._replace(seed=seed)
    kernels.grow_words(slots[(slots & np.uint64(0xFFFFFFFF)) <= np.uint64(n_kept)], copied.slots)
    kernels.grow_ngrams(ngrams[ngrams[:, 1] < n_kept], copied.ngrams, seed)
    return copied


def with_capacity(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """Return the array, or a longer copy with zeros behind it, with at least a capacity."""
    if len(array) >= capacity:
        return array
    longer = np.zeros(max(capacity, len(array) * 3 // 2), array.dtype)
    longer[: len(array)] = array
    return longer
