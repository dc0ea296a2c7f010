"""Distinct terms, told apart by hash tables that grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import text as kernels
from longtail.text.tokenizer import Bytes, Integers, offsets_from_lengths, with_room

WORD, GRAM, PAIR = 0, 1, 2


class TermTable:
    """Distinct terms, growing, with their hash tables.

    Word or character n-gram t is ``utf8[firsts[t] : lasts[t]]``; for a pair `firsts` holds -1 minus
    the number of its left word and `lasts` the number of its right one.
    """

    def __init__(self) -> None:
        self.utf8, self.n_bytes, self.n_terms = np.zeros(0, np.uint8), 0, 0
        self.firsts, self.lasts = np.zeros((2, 0), np.int64)
        self.slots, self.pairs = no_words(0), no_pairs(0)

    def add(self, text: Bytes, lefts: Integers, rights: Integers) -> Integers:
        """Add the terms that are new and return the number of every one."""
        most_terms = self.n_terms + len(lefts)
        is_unit = lefts >= 0
        most_bytes = self.n_bytes + int((rights - lefts)[is_unit].sum())
        self.utf8 = with_room(self.utf8, most_bytes)
        self.firsts, self.lasts = (
            with_room(self.firsts, most_terms),
            with_room(self.lasts, most_terms),
        )
        self.slots = with_word_room(self.slots, most_terms)
        self.pairs = with_pair_room(self.pairs, most_terms)
        numbers = np.empty(len(lefts), np.int64)
        self.n_bytes, self.n_terms = kernels.add_terms(
            text,
            lefts,
            rights,
            self.slots,
            self.pairs,
            self.utf8,
            self.firsts,
            self.lasts,
            self.n_bytes,
            self.n_terms,
            numbers,
        )
        return numbers

    def kinds(self) -> NDArray[np.int64]:
        """Return what each term is."""
        firsts = self.firsts[: self.n_terms]
        kinds = np.where(firsts < 0, PAIR, WORD)
        units = np.flatnonzero(firsts >= 0)
        kinds[units[self.utf8[firsts[units]] == kernels.GRAM]] = GRAM
        return kinds

    def in_order(self, kept: NDArray[np.bool_]) -> Integers:
        """Return the numbers of the terms kept, in the order of their bytes.

        A space is less than any byte of a word, so pairs go by their left words, then by their
        right ones. A pair is kept only with both its words.
        """
        firsts, lasts = self.firsts[: self.n_terms], self.lasts[: self.n_terms]
        units = np.flatnonzero(kept & (firsts >= 0))
        data = self.utf8.tobytes()
        names = [
            data[first:last]
            for first, last in zip(firsts[units].tolist(), lasts[units].tolist(), strict=True)
        ]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.zeros(self.n_terms, np.int64)
        rank[units[order]] = np.arange(1, len(units) + 1)
        pairs = np.flatnonzero(kept & (firsts < 0))
        left, right = rank[-1 - firsts[pairs]], rank[lasts[pairs]]
        whole = (left > 0) & (right > 0)
        chosen = np.concatenate([units, pairs[whole]])
        keys = np.concatenate([rank[units] << 32, (left << 32 | right)[whole]])
        return np.asarray(chosen[np.argsort(keys)])

    def write(self, chosen: Integers) -> tuple[Bytes, Integers]:
        """Return the bytes of some terms, and where each begins."""
        firsts, lasts = self.firsts[: self.n_terms], self.lasts[: self.n_terms]
        lengths = lasts - firsts
        pairs = np.flatnonzero(firsts < 0)
        lengths[pairs] = lengths[-1 - firsts[pairs]] + 1 + lengths[lasts[pairs]]
        offsets = offsets_from_lengths(lengths[chosen])
        utf8 = np.empty(offsets[-1], np.uint8)
        kernels.write_terms(self.utf8, firsts, lasts, chosen, offsets, utf8)
        return utf8, offsets


def _n_slots(n_terms: int) -> int:
    """Return the size of a hash table that is at most half full with so many terms."""
    return max(kernels.SMALLEST_TABLE, 1 << (2 * n_terms - 1).bit_length())


def no_words(n_terms: int) -> NDArray[np.uint64]:
    """Return an empty table of words."""
    return np.zeros(_n_slots(n_terms), np.uint64)


def no_pairs(n_terms: int) -> Integers:
    """Return an empty table of pairs."""
    return np.full((_n_slots(n_terms), 2), -1)


def with_word_room(slots: NDArray[np.uint64], n_terms: int) -> NDArray[np.uint64]:
    """Return a table of words with room for so many terms."""
    if len(slots) >= _n_slots(n_terms):
        return slots
    larger = no_words(n_terms)
    kernels.grow_words(slots, larger)
    return larger


def with_pair_room(pairs: Integers, n_terms: int) -> Integers:
    """Return a table of pairs with room for so many terms."""
    if len(pairs) >= _n_slots(n_terms):
        return pairs
    larger = no_pairs(n_terms)
    kernels.grow_pairs(pairs, larger)
    return larger
