"""UTF-8 bytes -> tokens: words and character n-grams, each a slice of one array of bytes.

Documents come one after the other in one array of bytes, and so do their words, with a space
between them; no string is ever built. What a character does is looked up by its code point.

In: normalised documents, a table of what each code point does. Out: tokens for `interning`, which
tells them apart, and for `vocabulary`, which looks them up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longtail._kernels.jit import inlined, kernel

# What a character does. A mark continues a word and starts none. Characters of scripts without
# spaces between words make bigrams.
SEPARATOR, LETTER, MARK, UNSPACED = 0, 1, 2, 3
SPACE = 32
CHAR_NGRAM = 126  # "~" opens a character n-gram; no word begins with it, so they never mix
# Characters of the n-grams of a document, whatever their sizes: sizes of 2 to 10 take 63 for each
# character of a long word, all sizes together 16,384 for a word of 45.
FREE_CHAR_NGRAMS, CHAR_NGRAMS_PER_BYTE, MAX_CHAR_NGRAMS = 1 << 14, 64, 1 << 24

_C, _E, _H, _I, _S, _U, _X, _Y, _Z = 99, 101, 104, 105, 115, 117, 120, 121, 122
_SHORTEST_PLURAL = 4  # letters; gas and was are none


class WordBuffer(NamedTuple):
    """The words of documents: a space before each and one after the last.

    Word j is ``utf8[bounds[j] + 1 : bounds[j + 1]]``; document i has those from ``indptr[i]`` on.
    """

    utf8: Any  # (capacity,) uint8
    bounds: Any  # (capacity,) int64: where each space is
    indptr: Any  # (n_documents + 1,) int64


class Tokens(NamedTuple):
    """The words and character n-grams of documents: token j is ``utf8[starts[j] : ends[j]]``."""

    utf8: Any  # (n_bytes,) uint8
    starts: Any  # (n_tokens,) int64
    ends: Any  # (n_tokens,) int64
    indptr: Any  # (n_documents + 1,) int64


@inlined
def _decode(utf8, at):
    """Return the code point at a byte above 127, and how many bytes it has."""
    lead, second = np.int64(utf8[at]), np.int64(utf8[at + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(utf8[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    fourth = np.int64(utf8[at + 3]) & 0x3F
    return (lead & 0x07) << 18 | second << 12 | third << 6 | fourth, 4


@inlined
def _copy(source, start, stop, target, end):
    """Copy bytes to the end of others, and return where these end now."""
    for byte in range(start, stop):
        target[end] = source[byte]
        end += 1
    return end


@kernel
def tokenize_words(utf8, offsets, kinds, stem, word_buffer):
    """Copy the words of each document.

    A run of unspaced characters becomes overlapping bigrams of characters, each with its marks; a
    single one is a word.

    Parameters
    ----------
    utf8 : (n_bytes,) uint8
        Well-formed documents, one after the other (surrogates may stand alone).
    offsets : (n_documents + 1,) int64
        Where each begins.
    kinds : (0x110000,) uint8
        SEPARATOR, LETTER, MARK or UNSPACED for each code point.
    stem : bool
        Whether to remove English plural endings.
    word_buffer : WordBuffer, out
        With capacity for `n_bytes + n_documents + 1` bytes, and for a second copy of the unspaced
        characters with a space for each; `(n_bytes + n_documents) // 2 + 1` bounds.

    Returns
    -------
    int
        Number of bytes written.
    """
    text, bounds, indptr = word_buffer
    text[0] = SPACE
    bounds[0] = 0
    start, end = np.int64(1), np.int64(1)
    last, n_unspaced, n_words = np.int64(1), 0, 0  # the last unspaced character of the open word
    for document in range(len(offsets) - 1):
        indptr[document] = n_words
        at, stop = offsets[document], offsets[document + 1]
        while at < stop:
            byte = utf8[at]
            if byte < 128:
                kind, size = kinds[byte], 1
            else:
                code, size = _decode(utf8, at)
                kind = kinds[code]
            if (kind == LETTER and n_unspaced == 0) or (kind == MARK and end > start):
                text[end] = byte
                end += 1
                for step in range(1, size):
                    text[end] = utf8[at + step]
                    end += 1
                at += size
                if at < stop:
                    continue
            elif kind == UNSPACED and (end == start or n_unspaced == 1):
                last = end
                end = _copy(utf8, at, at + size, text, end)
                n_unspaced += 1
                at += size
                if at < stop:
                    continue
            elif kind in (SEPARATOR, MARK):
                at += size
            # Else the character stays for the next word.
            if end > start:
                if stem:
                    end = _remove_plural(text, start, end)
                closed = end
                text[end] = SPACE
                n_words += 1
                bounds[n_words] = end
                end += 1
                start = end
                if kind == UNSPACED and at < stop and n_unspaced == 2:
                    end = _copy(text, last, closed, text, end)
                    last = start
                    n_unspaced = 1
                else:
                    n_unspaced = 0
    indptr[len(offsets) - 1] = n_words
    return end


@inlined
def _remove_plural(utf8, start, end):
    """Return where an English word ends without its plural ending; ies becomes y."""
    if end - start < _SHORTEST_PLURAL or utf8[end - 1] != _S:
        return end
    before = utf8[end - 2]
    if before in (_S, _U, _I):  # grass, virus, basis
        return end
    if before == _E and end - start > _SHORTEST_PLURAL:
        third, fourth = utf8[end - 3], utf8[end - 4]
        if third == _I:
            utf8[end - 3] = _Y
            return end - 2
        hisses = third in (_X, _Z) or (third == _S and fourth == _S)
        if hisses or (third == _H and fourth in (_C, _S)):  # boxes, grasses, churches, bushes
            return end - 2
    return end - 1


# ---- character n-grams


@inlined
def _next_character(utf8, at):
    """Return where the character after this one begins."""
    at += 1
    while at < len(utf8) and utf8[at] & 0xC0 == 0x80:
        at += 1
    return at


@inlined
def _is_unspaced(utf8, start, kinds):
    """Tell whether a word is of a script without spaces, and so a character n-gram already."""
    return utf8[start] >= 0xE0 and kinds[_decode(utf8, start)[0]] == UNSPACED


@inlined
def _char_ngrams_left(word_buffer, document):
    """Return how many characters the n-grams of a document may have."""
    bounds, indptr = word_buffer.bounds, word_buffer.indptr
    n_bytes = bounds[indptr[document + 1]] - bounds[indptr[document]]
    return min(FREE_CHAR_NGRAMS + CHAR_NGRAMS_PER_BYTE * n_bytes, MAX_CHAR_NGRAMS)


@inlined
def _longest_that_fits(word_buffer, word, sizes, kinds, left):
    """Return the largest size of a word's n-grams, its length, and how many characters are left.

    Sizes are taken from the smallest on, each for the whole word or not at all; 0 if none fits.
    """
    utf8, start, end = word_buffer.utf8, word_buffer.bounds[word], word_buffer.bounds[word + 1] + 1
    if sizes[1] == 0 or _is_unspaced(utf8, start + 1, kinds):
        return 0, 0, left
    length = 0
    for byte in range(start, end):
        if utf8[byte] & 0xC0 != 0x80:
            length += 1
    largest = 0
    for n in range(sizes[0], min(sizes[1], length) + 1):
        n_characters = (length - n + 1) * (n + 1)
        if n_characters > left:
            break
        left -= n_characters
        largest = n
    return largest, length, left


@kernel
def measure_char_ngrams(word_buffer, kinds, sizes):
    """Return how many character n-grams the words have, and how many bytes at most."""
    bounds, indptr = word_buffer.bounds, word_buffer.indptr
    n_ngrams, n_bytes = 0, 0
    for document in range(len(indptr) - 1):
        left = _char_ngrams_left(word_buffer, document)
        for word in range(indptr[document], indptr[document + 1]):
            largest, length, left = _longest_that_fits(word_buffer, word, sizes, kinds, left)
            size = bounds[word + 1] + 1 - bounds[word]
            for n in range(sizes[0], largest + 1):
                n_ngrams += length - n + 1
                n_bytes += (length - n + 1) * (1 + min(4 * n, size))
    return n_ngrams, n_bytes


@kernel
def write_tokens(word_buffer, kinds, sizes, n_bytes, tokens):
    """Write which slices are the words and character n-grams of each document.

    A word's character n-grams follow it. They are copied behind all words, each after a CHAR_NGRAM
    byte; a space in one is the edge of its word.

    Parameters
    ----------
    word_buffer : WordBuffer
        With the capacity that `measure_char_ngrams` asks for.
    kinds
        As for `tokenize_words`.
    sizes : (int, int)
        Smallest and largest size of the character n-grams, in characters; none where the largest
        is 0, and fewer in a document that would have too many (`MAX_CHAR_NGRAMS`).
    n_bytes : int
        Number of bytes of the words.
    tokens : Tokens, out
        `utf8` is that of the words.
    """
    utf8, bounds, indptr = word_buffer
    starts, ends, token_indptr = tokens.starts, tokens.ends, tokens.indptr
    n_tokens = 0
    for document in range(len(indptr) - 1):
        token_indptr[document] = n_tokens
        left = _char_ngrams_left(word_buffer, document)
        for word in range(indptr[document], indptr[document + 1]):
            starts[n_tokens] = bounds[word] + 1
            ends[n_tokens] = bounds[word + 1]
            n_tokens += 1
            largest, _, left = _longest_that_fits(word_buffer, word, sizes, kinds, left)
            stop = bounds[word + 1] + 1
            for n in range(sizes[0], largest + 1):
                first, end, length = bounds[word], bounds[word], 0
                while True:
                    while end < stop and length < n:
                        end = min(_next_character(utf8, end), stop)
                        length += 1
                    if length < n:
                        break
                    starts[n_tokens] = n_bytes
                    utf8[n_bytes] = CHAR_NGRAM
                    n_bytes = _copy(utf8, first, end, utf8, n_bytes + 1)
                    ends[n_tokens] = n_bytes
                    n_tokens += 1
                    first = _next_character(utf8, first)
                    length -= 1
    token_indptr[len(indptr) - 1] = n_tokens
