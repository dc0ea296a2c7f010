"""A vocabulary's bytes -> hash tables; tokens -> the ids of a vocabulary's terms -> counts.

In: terms as bytes, tokens of documents. Out: hash tables, ids, rows of a count matrix.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.interning import find_ngram, find_word, hash_word, id_in, slot_of
from longtail._kernels.jit import allocating_kernel, kernel, subroutine
from longtail._kernels.sorting import sort_keys
from longtail._kernels.text import CHAR_NGRAM, SPACE


@subroutine
def _last_space(utf8, start, end):
    """Return where the last word of an n-gram follows; `start - 1` in any other term."""
    if utf8[start] == CHAR_NGRAM:
        return start - 1
    at = end - 1
    while at >= start and utf8[at] != SPACE:
        at -= 1
    return at


@subroutine
def _look_up_word(utf8, start, end, tables, terms):
    """Return the id of a word or character n-gram; -1 if the vocabulary lacks it."""
    tag = hash_word(utf8, start, end, tables.seed)
    term = id_in(tables.slots[find_word(utf8, start, end, tag, tables.slots, terms)])
    # The free slot may have been filled just now by a vocabulary that grew out of this one.
    return term if term < len(terms.lefts) else np.int64(-1)


@subroutine
def _look_up_ngram(left, word, ngrams, seed, n_terms):
    """Return the id of an n-gram of words; -1 if the vocabulary lacks it."""
    term = ngrams[find_ngram(left << 32 | word, ngrams, seed), 1]  # -1 in a free row
    return term if term < n_terms else np.int64(-1)


@subroutine
def _look_up(utf8, start, end, tables, terms):
    """Return the id of a term; -1 if the tables lack it."""
    if utf8[start] == CHAR_NGRAM:
        return _look_up_word(utf8, start, end, tables, terms)
    term, first = np.int64(-1), start
    for at in range(start, end + 1):
        if at < end and utf8[at] != SPACE:
            continue
        word = _look_up_word(utf8, first, at, tables, terms)
        if word < 0 or first == start:
            term = word
        else:
            term = _look_up_ngram(term, word, tables.ngrams, tables.seed, len(terms.lefts))
        if term < 0:
            return term
        first = at + 1
    return term


@kernel
def look_up_terms(utf8, offsets, tables, terms, ids):
    """Write the id of each of some terms, -1 for those that a vocabulary lacks.

    Parameters
    ----------
    utf8, offsets : (n_bytes,) uint8, (n_wanted + 1,) int64
        The terms wanted, and where each begins.
    tables, terms : HashTables, Terms
        The vocabulary.
    ids : (n_wanted,) int64, out
    """
    for entry in range(len(ids)):
        ids[entry] = _look_up(utf8, offsets[entry], offsets[entry + 1], tables, terms)


@kernel
def intern_vocabulary(terms, n_interned, tables):
    """Intern the terms of a vocabulary from the id `n_interned` on.

    Parameters
    ----------
    terms : Terms
        All of them as bytes; an n-gram comes after those it begins with.
    n_interned : int
        How many the tables hold already.
    tables : HashTables, in and out
        With capacity for every term.

    Returns
    -------
    int
        The first term that is there twice, or n-gram with a word that is no term, where the work
        ends; -1 if there is none.
    """
    utf8, starts, ends = terms
    slots, ngrams, seed = tables
    for term in range(n_interned, len(starts)):
        start, end = starts[term], ends[term]
        if _last_space(utf8, start, end) >= start:
            continue
        tag = hash_word(utf8, start, end, seed)
        slot = find_word(utf8, start, end, tag, slots, terms)
        if id_in(slots[slot]) >= 0:
            return term
        slots[slot] = slot_of(tag, term)
    for term in range(n_interned, len(starts)):
        start, end = starts[term], ends[term]
        space = _last_space(utf8, start, end)
        if space < start:
            continue
        left = _look_up(utf8, start, space, tables, terms)
        last_word = _look_up_word(utf8, space + 1, end, tables, terms)
        if left < 0 or last_word < 0:
            return term
        row = find_ngram(left << 32 | last_word, ngrams, seed)
        if ngrams[row, 0] >= 0:
            return term
        ngrams[row, 0], ngrams[row, 1] = left << 32 | last_word, term
    return -1


@kernel
def remove_words(word_buffer, tables, terms):
    """Remove every word that is a term from documents, in place; return how many bytes are left."""
    utf8, bounds, indptr = word_buffer
    n_words, end = 0, np.int64(1)
    first = indptr[0]
    for document in range(len(indptr) - 1):
        last = indptr[document + 1]
        for word in range(first, last):
            start, stop = bounds[word] + 1, bounds[word + 1]
            # Bounds behind those read are written: a word moves towards the beginning, if at all.
            if _look_up_word(utf8, start, stop, tables, terms) >= 0:
                continue
            for byte in range(start, stop + 1):
                utf8[end] = utf8[byte]
                end += 1
            n_words += 1
            bounds[n_words] = end - 1
        first = last
        indptr[document + 1] = n_words
    return end


@allocating_kernel
def find_terms(tokens, largest, tables, terms, term_ids):
    """Write the ids of the terms of a vocabulary that documents have.

    Parameters
    ----------
    tokens : Tokens
        Of the documents.
    largest : int
        Largest n-gram of words, in words; 1 for none.
    tables, terms : HashTables, Terms
        The vocabulary.
    term_ids : TermIds, out
        With capacity for `largest * n_tokens`; what the vocabulary lacks is left out.
    """
    utf8, starts, ends, indptr = tokens
    ngrams, seed = tables.ngrams, tables.seed
    ids, n_ids = term_ids.ids, 0
    open_ngrams = np.empty(largest, np.int64)  # those of 1, 2, ... words that end here; -1 if none
    for document in range(len(indptr) - 1):
        term_ids.indptr[document] = n_ids
        open_ngrams[:] = -1
        for token in range(indptr[document], indptr[document + 1]):
            start, end = starts[token], ends[token]
            word = _look_up_word(utf8, start, end, tables, terms)
            if word >= 0:
                ids[n_ids] = word
                n_ids += 1
            if largest == 1 or utf8[start] == CHAR_NGRAM:
                continue
            for n in range(largest - 1, 0, -1):
                left, ngram = open_ngrams[n - 1], np.int64(-1)
                if left >= 0 and word >= 0:
                    ngram = _look_up_ngram(left, word, ngrams, seed, len(terms.lefts))
                    if ngram >= 0:
                        ids[n_ids] = ngram
                        n_ids += 1
                open_ngrams[n] = ngram
            open_ngrams[0] = word
    term_ids.indptr[len(indptr) - 1] = n_ids


@kernel
def count_rows(term_ids, row_indptr, indices, counts):
    """Turn the term ids of each document into a row of ascending terms and their counts.

    Parameters
    ----------
    term_ids : TermIds
        -1 for what does not count; sorted in place.
    row_indptr : (n_documents + 1,) int64, out
    indices : (n_ids,) int32, out
    counts : (n_ids,) float64, out

    Returns
    -------
    int
        Number of entries written.
    """
    ids, indptr = term_ids
    n_entries = 0
    for document in range(len(indptr) - 1):
        row_indptr[document] = n_entries
        sort_keys(ids, indptr[document], indptr[document + 1])
        previous = -1
        for j in range(indptr[document], indptr[document + 1]):
            term = ids[j]
            if term == previous:
                if term >= 0:
                    counts[n_entries - 1] += 1.0
                continue
            previous = term
            indices[n_entries] = term
            counts[n_entries] = 1.0
            n_entries += 1
    row_indptr[len(indptr) - 1] = n_entries
    return n_entries
