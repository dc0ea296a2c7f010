"""Tokens -> term ids by open-addressing hash tables, and terms -> bytes.

A word or character n-gram is told apart by its bytes; an n-gram of words by two ids, those of the
n-gram without its last word and of that word. Every hit is confirmed, byte by byte or id by id: two
terms are never confused, whatever they hash to. The hash starts from a secret seed, so that words
cannot be chosen to collide; ids do not depend on it.

A slot of the table of words holds ``tag << 32 | id + 1``, 0 if free. The tag is the word's hash,
which also says where its search begins, so a table grows without reading a word. A row of the table
of n-grams holds ``left << 32 | right``, -1 if free, and the n-gram's id.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longtail._kernels.jit import allocating_kernel, kernel, subroutine
from longtail._kernels.sampling import mix
from longtail._kernels.text import CHAR_NGRAM, SPACE

SMALLEST_TABLE = 1024  # slots; a power of two, and so is every size it grows to

_FNV_FACTOR = np.uint64(1099511628211)  # FNV-1a, 64 bits
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_FREE = np.uint64(0)


class HashTables(NamedTuple):
    """Where terms are found: words and character n-grams in `slots`, n-grams of words in rows."""

    slots: Any  # (power of two,) uint64
    ngrams: Any  # (power of two, 2) int64
    seed: Any  # uint64


class Terms(NamedTuple):
    """Distinct terms by id.

    A word or character n-gram is ``utf8[lefts[t] : rights[t]]``. For an n-gram of words `lefts`
    holds -1 minus the id of the n-gram without its last word, and `rights` the id of that word.
    """

    utf8: Any  # (n_bytes,) uint8
    lefts: Any  # (n_terms,) int64
    rights: Any  # (n_terms,) int64


class TermIds(NamedTuple):
    """The term of every occurrence; document i has those from ``indptr[i]`` on."""

    ids: Any  # (capacity,) int32
    indptr: Any  # (n_documents + 1,) int64


# ---- the two tables


@subroutine
def hash_word(utf8, start, end, seed):
    """Return 32 bits that depend on every byte of a word and on the seed.

    The low bits of FNV-1a depend on the low bits of the seed alone, so that words which collide
    under one seed would do so under one in a hundred others; `mix` lets all bits count.
    """
    value = seed
    for byte in range(start, end):
        value = (value ^ np.uint64(utf8[byte])) * _FNV_FACTOR
    return mix(value) & _LOW


@subroutine
def find_word(utf8, start, end, tag, slots, terms):
    """Return the slot that holds a word, or the free one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = tag & mask
    while slots[slot] != _FREE:
        term = id_in(slots[slot])
        # A table may hold terms of a vocabulary that grew out of this one.
        if slots[slot] >> _HALF == tag and term < len(terms.lefts):
            first = terms.lefts[term]
            if end - start == terms.rights[term] - first:
                step = 0
                while start + step < end and utf8[start + step] == terms.utf8[first + step]:
                    step += 1
                if start + step == end:
                    return slot
        slot = (slot + _ONE) & mask
    return slot


@subroutine
def id_in(slot):
    """Return the id that a slot of the table of words holds; -1 if it is free."""
    return np.int64(slot & _LOW) - 1


@subroutine
def slot_of(tag, term):
    """Return a slot that holds a word."""
    return tag << _HALF | np.uint64(term + 1)


@subroutine
def find_ngram(key, ngrams, seed):
    """Return the row that holds an n-gram, or the free one where it belongs."""
    mask = np.int64(len(ngrams) - 1)
    row = np.int64(mix(np.uint64(key) ^ seed) >> _HALF) & mask
    while ngrams[row, 0] != key and ngrams[row, 0] >= 0:
        row = (row + 1) & mask
    return row


@kernel
def grow_words(old, slots):
    """Intern everything that the table `old` holds in the larger, empty table `slots`."""
    mask = np.uint64(len(slots) - 1)
    for entry in old:
        if entry != _FREE:
            slot = (entry >> _HALF) & mask
            while slots[slot] != _FREE:
                slot = (slot + _ONE) & mask
            slots[slot] = entry


@kernel
def grow_ngrams(old, ngrams, seed):
    """Intern everything that the table `old` holds in the larger, empty table `ngrams`."""
    for entry in range(len(old)):
        if old[entry, 0] >= 0:
            row = find_ngram(old[entry, 0], ngrams, seed)
            ngrams[row, 0] = old[entry, 0]
            ngrams[row, 1] = old[entry, 1]


# ---- the terms of a block of documents


@allocating_kernel
def intern_block(tokens, largest, seed, term_ids, terms, frequencies):
    """Give the terms of some documents ids, in the order in which they are first met.

    Parameters
    ----------
    tokens : Tokens
        Of the documents.
    largest : int
        Largest n-gram of words, in words; 1 for none.
    seed : uint64
        Of the hash.
    term_ids : TermIds, out
        With capacity for `largest * n_tokens`.
    terms : Terms, out
        Slices of the tokens' bytes, with capacity as the ids have.
    frequencies : (capacity,) int64, out
        How many documents have each term.

    Returns
    -------
    int
        Number of distinct terms.
    """
    utf8, starts, ends, indptr = tokens
    ids, lefts, rights = term_ids.ids, terms.lefts, terms.rights
    n_terms, n_words, n_ngrams, n_ids = 0, 0, 0, 0
    slots = np.zeros(SMALLEST_TABLE, np.uint64)
    ngrams = np.full((SMALLEST_TABLE, 2), -1)
    seen = np.empty(len(ids), np.int64)  # the last document with the term
    open_ngrams = np.empty(largest, np.int64)  # those of 1, 2, ... words that end here; -1 if none
    for document in range(len(indptr) - 1):
        term_ids.indptr[document] = n_ids
        open_ngrams[:] = -1
        for token in range(indptr[document], indptr[document + 1]):
            start, end = starts[token], ends[token]
            tag = hash_word(utf8, start, end, seed)
            slot = find_word(utf8, start, end, tag, slots, terms)
            word = id_in(slots[slot])
            if word < 0:
                word = np.int64(n_terms)
                lefts[word], rights[word] = start, end
                frequencies[word], seen[word] = 0, -1
                slots[slot] = slot_of(tag, word)
                n_terms += 1
                n_words += 1
                if 2 * n_words > len(slots):
                    larger = np.zeros(4 * len(slots), np.uint64)
                    grow_words(slots, larger)
                    slots = larger
            ids[n_ids] = word
            n_ids += 1
            if seen[word] != document:
                seen[word] = document
                frequencies[word] += 1
            if largest == 1 or utf8[start] == CHAR_NGRAM:
                continue
            for n in range(largest - 1, 0, -1):
                left = open_ngrams[n - 1]
                if left < 0:
                    continue
                key = left << 32 | word
                row = find_ngram(key, ngrams, seed)
                if ngrams[row, 0] < 0:
                    ngrams[row, 0], ngrams[row, 1] = key, n_terms
                    lefts[n_terms], rights[n_terms] = -1 - left, word
                    frequencies[n_terms], seen[n_terms] = 0, -1
                    n_terms += 1
                    n_ngrams += 1
                    if 2 * n_ngrams > len(ngrams):
                        longer = np.full((4 * len(ngrams), 2), -1)
                        grow_ngrams(ngrams, longer, seed)
                        ngrams = longer
                        row = find_ngram(key, ngrams, seed)
                ngram = ngrams[row, 1]
                open_ngrams[n] = ngram
                ids[n_ids] = ngram
                n_ids += 1
                if seen[ngram] != document:
                    seen[ngram] = document
                    frequencies[ngram] += 1
            open_ngrams[0] = word
    term_ids.indptr[len(indptr) - 1] = n_ids
    return n_terms


# ---- the terms of all blocks


@kernel
def intern_terms(block, tables, terms, n_bytes, n_terms, ids):
    """Find the terms of a block among those of all blocks, or add them.

    Parameters
    ----------
    block : Terms
        As `intern_block` leaves them.
    tables : HashTables, in and out
        With capacity for every term.
    terms : Terms, in and out
        Those known, with capacity for every term of the block and its bytes.
    n_bytes, n_terms : int
        How many there are.
    ids : (n_block_terms,) int64, out
        The id of each term of the block.

    Returns
    -------
    n_bytes, n_terms : int
        How many there are now.
    """
    slots, ngrams, seed = tables
    for entry in range(len(block.lefts)):
        left, end = block.lefts[entry], block.rights[entry]
        if left < 0:
            key = ids[-1 - left] << 32 | ids[end]
            row = find_ngram(key, ngrams, seed)
            if ngrams[row, 0] < 0:
                ngrams[row, 0], ngrams[row, 1] = key, n_terms
                terms.lefts[n_terms], terms.rights[n_terms] = -1 - ids[-1 - left], ids[end]
                n_terms += 1
            ids[entry] = ngrams[row, 1]
            continue
        tag = hash_word(block.utf8, left, end, seed)
        slot = find_word(block.utf8, left, end, tag, slots, terms)
        if slots[slot] == _FREE:
            terms.lefts[n_terms] = n_bytes
            for byte in range(left, end):
                terms.utf8[n_bytes] = block.utf8[byte]
                n_bytes += 1
            terms.rights[n_terms] = n_bytes
            slots[slot] = slot_of(tag, n_terms)
            n_terms += 1
        ids[entry] = id_in(slots[slot])
    return n_bytes, n_terms


@kernel
def write_terms(terms, selected, offsets, utf8):
    """Write the selected terms one after the other, a space between the words of an n-gram.

    `offsets` says where each begins. An n-gram is written from its last word to its first.
    """
    lefts, rights = terms.lefts, terms.rights
    for entry in range(len(selected)):
        end, term = offsets[entry + 1], selected[entry]
        while True:
            word = rights[term] if lefts[term] < 0 else term
            end -= rights[word] - lefts[word]
            for step in range(rights[word] - lefts[word]):
                utf8[end + step] = terms.utf8[lefts[word] + step]
            if word == term:
                break
            end -= 1
            utf8[end] = SPACE
            term = -1 - lefts[term]
