"""UTF-8 bytes -> words, pairs of words and character n-grams -> term numbers and counts.

Documents come one after the other in one array of bytes. A word is a slice of it, so no string is
ever built; a pair of neighbours is the two numbers of its words. Both are told apart by
open-addressing hash tables. Every hit is confirmed, byte by byte or number by number: two terms are
never confused, whatever they hash to.

A slot of the table of words holds ``tag << 32 | number + 1``, 0 if free. The tag is the word's
hash, which also says where its search begins, so a table can be rebuilt without reading a word. A
row of the table of pairs holds ``left << 32 | right``, -1 if free, and the pair's number.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, part
from longtail._kernels.sorting import sort_keys

SEPARATOR, LETTER, MARK = 0, 1, 2  # what a character does; a mark continues a word, starts none
SPACE = 32
GRAM = 126  # "~" opens a character n-gram; no word can hold it, so the two are never confused
SMALLEST_TABLE = 1024  # slots; a power of two, and so is every size it grows to

_HASH_START = np.uint64(14695981039346656037)  # FNV-1a, 64 bits
_HASH_FACTOR = np.uint64(1099511628211)
_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_FREE = np.uint64(0)

_C, _E, _H, _I, _S, _U, _X, _Y, _Z = 99, 101, 104, 105, 115, 117, 120, 121, 122
_SHORTEST_PLURAL = 4  # letters; gas and was are none


# ---- words


@part
def _decode(utf8, at):
    """Return the code point at a byte above 127, and how many bytes it takes."""
    lead = np.int64(utf8[at])
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (utf8[at + 1] & 0x3F), 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (utf8[at + 1] & 0x3F) << 6 | (utf8[at + 2] & 0x3F), 3
    high = (lead & 0x07) << 18 | (utf8[at + 1] & 0x3F) << 12
    return high | (utf8[at + 2] & 0x3F) << 6 | (utf8[at + 3] & 0x3F), 4


@kernel
def cut_words(utf8, offsets, kinds, stems, words, bounds, indptr):
    """Copy the words of each document, a space before each and one after the last.

    Parameters
    ----------
    utf8 : (n_bytes,) uint8
        Well-formed documents, one after the other (surrogates may stand alone).
    offsets : (n_documents + 1,) int64
        Where each begins.
    kinds : (0x110000,) uint8
        SEPARATOR, LETTER or MARK for each code point.
    stems : bool
        Whether to cut English plural endings.
    words : (n_bytes + n_documents + 1,) uint8, out
        The words with their spaces.
    bounds : ((n_bytes + n_documents) // 2 + 1,) int64, out
        Place of each space: word j is ``words[bounds[j] + 1 : bounds[j + 1]]``.
    indptr : (n_documents + 1,) int64, out
        Which words each document has.

    Returns
    -------
    int
        Number of bytes written to `words`.
    """
    words[0] = SPACE
    bounds[0] = 0
    start, end, n_words = np.int64(1), np.int64(1), 0  # else _cut_plural is compiled twice
    for document in range(len(offsets) - 1):
        indptr[document] = n_words
        at, stop = offsets[document], offsets[document + 1]
        while at < stop:
            byte = utf8[at]
            if byte < 128:
                kind, width = kinds[byte], 1
            else:
                code, width = _decode(utf8, at)
                kind = kinds[code]
            if kind == LETTER or (kind == MARK and end > start):
                for place in range(at, at + width):
                    words[end] = utf8[place]
                    end += 1
                at += width
                if at < stop:
                    continue
            else:
                at += width
            if end > start:
                if stems:
                    end = _cut_plural(words, start, end)
                words[end] = SPACE
                n_words += 1
                bounds[n_words] = end
                end += 1
                start = end
    indptr[len(offsets) - 1] = n_words
    return end


@part
def _cut_plural(words, start, end):
    """Return where an English word ends without its plural ending; ies becomes y."""
    if end - start < _SHORTEST_PLURAL or words[end - 1] != _S:
        return end
    before = words[end - 2]
    if before in (_S, _U, _I):  # grass, virus, basis
        return end
    if before == _E and end - start > _SHORTEST_PLURAL:
        third, fourth = words[end - 3], words[end - 4]
        if third == _I:
            words[end - 3] = _Y
            return end - 2
        hisses = third in (_X, _Z) or (third == _S and fourth == _S)
        if hisses or (third == _H and fourth in (_C, _S)):  # boxes, grasses, churches, bushes
            return end - 2
    return end - 1


# ---- units: words and character n-grams, as slices


@part
def _next_character(words, at):
    """Return where the character after this one begins."""
    at += 1
    while at < len(words) and words[at] & 0xC0 == 0x80:
        at += 1
    return at


@part
def _count_characters(words, start, end):
    """Return the number of characters in a stretch of bytes."""
    n_characters = 0
    for place in range(start, end):
        if words[place] & 0xC0 != 0x80:
            n_characters += 1
    return n_characters


@kernel
def measure_grams(words, bounds, n_words, shortest, longest):
    """Return how many character n-grams the words have, and how many bytes these take at most."""
    n_grams, n_bytes = 0, 0
    for word in range(n_words):
        start, end = bounds[word], bounds[word + 1] + 1
        length = _count_characters(words, start, end)
        for n in range(shortest, min(longest, length) + 1):
            n_grams += length - n + 1
            n_bytes += (length - n + 1) * (1 + min(4 * n, end - start))
    return n_grams, n_bytes


@kernel
def cut_units(words, bounds, indptr, shortest, longest, n_bytes, starts, ends, unit_indptr):
    """Write which slices of `words` are the words and character n-grams of each document.

    A word's character n-grams follow it; they are copied behind all words, each after a GRAM byte.
    A space in one is the edge of its word.

    Parameters
    ----------
    words, bounds, indptr
        As `cut_words` left them, `words` with the room that `measure_grams` asks for.
    shortest, longest : int
        Sizes of the character n-grams, in characters; none where `longest` is 0.
    n_bytes : int
        Number of bytes that the words take.
    starts, ends : (n_units,) int64, out
        The slices.
    unit_indptr : (n_documents + 1,) int64, out
        Which of them each document has.
    """
    n_units, place = 0, n_bytes
    for document in range(len(indptr) - 1):
        unit_indptr[document] = n_units
        for word in range(indptr[document], indptr[document + 1]):
            starts[n_units] = bounds[word] + 1
            ends[n_units] = bounds[word + 1]
            n_units += 1
            stop = bounds[word + 1] + 1
            for n in range(shortest, longest + 1):
                first, end, held = bounds[word], bounds[word], 0
                while True:
                    while end < stop and held < n:
                        end = min(_next_character(words, end), stop)
                        held += 1
                    if held < n:
                        break
                    starts[n_units] = place
                    words[place] = GRAM
                    place += 1
                    for byte in range(first, end):
                        words[place] = words[byte]
                        place += 1
                    ends[n_units] = place
                    n_units += 1
                    first = _next_character(words, first)
                    held -= 1
    unit_indptr[len(indptr) - 1] = n_units


# ---- the table of words


@part
def _hash(text, start, end):
    """Return 32 bits that depend on every byte of a word."""
    value = _HASH_START
    for place in range(start, end):
        value = (value ^ np.uint64(text[place])) * _HASH_FACTOR
    return (value ^ (value >> _HALF)) & _LOW


@part
def _equal(text, start, end, terms, first, last):
    """Tell whether two slices hold the same bytes."""
    if end - start != last - first:
        return False
    step = 0
    while start + step < end and text[start + step] == terms[first + step]:
        step += 1
    return start + step == end


@part
def _find_word(text, start, end, tag, slots, terms, firsts, lasts):
    """Return the slot that holds a word, or the free one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = tag & mask
    while slots[slot] != _FREE:
        if slots[slot] >> _HALF == tag:
            number = _number_in(slots[slot])
            if _equal(text, start, end, terms, firsts[number], lasts[number]):
                return slot
        slot = (slot + _ONE) & mask
    return slot


@part
def _number_in(slot):
    """Return the number that a slot of the table of words holds; -1 if it is free."""
    return np.int64(slot & _LOW) - 1


@kernel
def grow_words(old, slots):
    """Enter everything that the table `old` holds into the larger, empty table `slots`."""
    mask = np.uint64(len(slots) - 1)
    for entry in old:
        if entry != _FREE:
            slot = (entry >> _HALF) & mask
            while slots[slot] != _FREE:
                slot = (slot + _ONE) & mask
            slots[slot] = entry


# ---- the table of pairs


@part
def _find_pair(pair, pairs):
    """Return the row that holds a pair, or the free one where it belongs."""
    mask = np.int64(len(pairs) - 1)
    row = np.int64((np.uint64(pair) * _PAIR_FACTOR) >> _HALF) & mask
    while pairs[row, 0] != pair and pairs[row, 0] >= 0:
        row = (row + 1) & mask
    return row


@kernel
def grow_pairs(old, pairs):
    """Enter everything that the table `old` holds into the larger, empty table `pairs`."""
    for entry in range(len(old)):
        if old[entry, 0] >= 0:
            row = _find_pair(old[entry, 0], pairs)
            pairs[row, 0] = old[entry, 0]
            pairs[row, 1] = old[entry, 1]


# ---- numbering


@kernel
def number_terms(text, starts, ends, indptr, paired, numbers, out_indptr, lefts, rights, found):
    """Give the terms of some documents numbers, in the order in which they are first met.

    Parameters
    ----------
    text : (n_bytes,) uint8
        Holds the units.
    starts, ends : (n_units,) int64
        Their slices.
    indptr : (n_documents + 1,) int64
        Which of them each document has.
    paired : bool
        Whether neighbouring words make a term as well.
    numbers : (n_units or, if paired, 2 n_units) int32, out
        The number of every unit and every pair, a pair after its second word.
    out_indptr : (n_documents + 1,) int64, out
        Which of them each document has.
    lefts, rights : like numbers, int64, out
        For the unit of each number a slice of `text` that holds it; for a pair, the numbers of its
        words, the left one as -1 - number.
    found : like numbers, int64, out
        How many documents have the term of each number.

    Returns
    -------
    int
        Number of distinct terms.
    """
    n_terms, n_units, n_pairs, place = 0, 0, 0, 0
    slots = np.zeros(SMALLEST_TABLE, np.uint64)
    pairs = np.full((SMALLEST_TABLE, 2), -1)
    seen = np.empty(len(numbers), np.int64)  # the last document with the term
    for document in range(len(indptr) - 1):
        out_indptr[document] = place
        previous = np.int64(-1)
        for unit in range(indptr[document], indptr[document + 1]):
            start, end = starts[unit], ends[unit]
            tag = _hash(text, start, end)
            slot = _find_word(text, start, end, tag, slots, text, lefts, rights)
            number = _number_in(slots[slot])
            if number < 0:
                number = np.int64(n_terms)
                lefts[number], rights[number] = start, end
                found[number], seen[number] = 0, -1
                n_terms += 1
                n_units += 1
                slots[slot] = tag << _HALF | np.uint64(n_terms)
                if 2 * n_units > len(slots):
                    larger = np.zeros(4 * len(slots), np.uint64)
                    grow_words(slots, larger)
                    slots = larger
            numbers[place] = number
            place += 1
            if seen[number] != document:
                seen[number] = document
                found[number] += 1
            if not paired or text[start] == GRAM:
                continue
            if previous >= 0:
                pair = previous << 32 | number
                row = _find_pair(pair, pairs)
                if pairs[row, 0] < 0:
                    pairs[row, 0], pairs[row, 1] = pair, n_terms
                    lefts[n_terms], rights[n_terms] = -1 - previous, number
                    found[n_terms], seen[n_terms] = 0, -1
                    n_terms += 1
                    n_pairs += 1
                    if 2 * n_pairs > len(pairs):
                        wider = np.full((4 * len(pairs), 2), -1)
                        grow_pairs(pairs, wider)
                        pairs = wider
                        row = _find_pair(pair, pairs)
                both = pairs[row, 1]
                numbers[place] = both
                place += 1
                if seen[both] != document:
                    seen[both] = document
                    found[both] += 1
            previous = number
    out_indptr[len(indptr) - 1] = place
    return n_terms


@kernel
def add_terms(text, lefts, rights, slots, pairs, terms, firsts, lasts, n_bytes, n_terms, numbers):
    """Find terms in tables, or add them.

    Parameters
    ----------
    text, lefts, rights
        Terms as `number_terms` leaves them.
    slots, pairs
        The tables, with room for every term; in and out.
    terms : (n_bytes + room,) uint8, in and out
        The bytes of the units in the tables.
    firsts, lasts : (n_terms + room,) int64, in and out
        For each number what `lefts` and `rights` are for the terms of `text`.
    n_bytes, n_terms : int
        How many there are.
    numbers : (n_entries,) int64, out
        The number of each of the terms of `text`.

    Returns
    -------
    n_bytes, n_terms : int
        How many there are now.
    """
    for entry in range(len(lefts)):
        left, right = lefts[entry], rights[entry]
        if left < 0:
            pair = numbers[-1 - left] << 32 | numbers[right]
            row = _find_pair(pair, pairs)
            if pairs[row, 0] < 0:
                pairs[row, 0], pairs[row, 1] = pair, n_terms
                firsts[n_terms], lasts[n_terms] = -1 - numbers[-1 - left], numbers[right]
                n_terms += 1
            numbers[entry] = pairs[row, 1]
            continue
        tag = _hash(text, left, right)
        slot = _find_word(text, left, right, tag, slots, terms, firsts, lasts)
        if slots[slot] == _FREE:
            firsts[n_terms] = n_bytes
            for place in range(left, right):
                terms[n_bytes] = text[place]
                n_bytes += 1
            lasts[n_terms] = n_bytes
            n_terms += 1
            slots[slot] = tag << _HALF | np.uint64(n_terms)
        numbers[entry] = _number_in(slots[slot])
    return n_bytes, n_terms


@kernel
def write_terms(terms, firsts, lasts, chosen, offsets, utf8):
    """Write the chosen terms one after the other, a space between the words of a pair.

    `offsets` says where each begins; the other arrays are those of `add_terms`.
    """
    for entry in range(len(chosen)):
        place, number = offsets[entry], chosen[entry]
        second = np.int64(-1)
        if firsts[number] < 0:
            second = lasts[number]
            number = -1 - firsts[number]
        while True:
            for byte in range(firsts[number], lasts[number]):
                utf8[place] = terms[byte]
                place += 1
            if second < 0:
                break
            utf8[place] = SPACE
            place += 1
            number, second = second, np.int64(-1)


@part
def _find_space(terms, start, end):
    """Return where the space of a pair is; `end` in a word or a character n-gram."""
    if terms[start] == GRAM:
        return end
    place = start
    while place < end and terms[place] != SPACE:
        place += 1
    return place


@part
def _look_up_word(text, start, end, slots, terms, firsts, lasts):
    """Return the number of a word or character n-gram; -1 if the table lacks it."""
    tag = _hash(text, start, end)
    return _number_in(slots[_find_word(text, start, end, tag, slots, terms, firsts, lasts)])


@part
def _look_up_words(text, start, space, end, slots, terms, firsts, lasts):
    """Return the words of a pair as the table of pairs has them; -1 if one is no term."""
    left = _look_up_word(text, start, space, slots, terms, firsts, lasts)
    right = _look_up_word(text, space + 1, end, slots, terms, firsts, lasts)
    return left << 32 | right if left >= 0 and right >= 0 else np.int64(-1)


@kernel
def enter_terms(terms, offsets, n_entered, slots, pairs):
    """Enter the terms of a vocabulary from number `n_entered` on into its tables.

    Parameters
    ----------
    terms, offsets : (n_bytes,) uint8, (n_terms + 1,) int64
        The terms and where each begins.
    n_entered : int
        How many the tables hold already.
    slots, pairs
        The tables, with room for every term; in and out.

    Returns
    -------
    int
        The first term that was there already, or pair with a word that is no term, where the work
        ends; -1 if there is none.
    """
    firsts, lasts = offsets[:-1], offsets[1:]
    for number in range(n_entered, len(firsts)):
        start, end = firsts[number], lasts[number]
        if _find_space(terms, start, end) < end:
            continue
        tag = _hash(terms, start, end)
        slot = _find_word(terms, start, end, tag, slots, terms, firsts, lasts)
        if slots[slot] != _FREE:
            return number
        slots[slot] = tag << _HALF | np.uint64(number + 1)
    for number in range(n_entered, len(firsts)):
        start, end = firsts[number], lasts[number]
        space = _find_space(terms, start, end)
        if space == end:
            continue
        pair = _look_up_words(terms, start, space, end, slots, terms, firsts, lasts)
        if pair < 0:
            return number
        row = _find_pair(pair, pairs)
        if pairs[row, 0] >= 0:
            return number
        pairs[row, 0], pairs[row, 1] = pair, number
    return -1


@kernel
def find_new(text, starts, slots, pairs, terms, offsets, new):
    """Mark the terms of one vocabulary, `text` and `starts`, that another lacks."""
    firsts, lasts = offsets[:-1], offsets[1:]
    for entry in range(len(starts) - 1):
        start, end = starts[entry], starts[entry + 1]
        space = _find_space(text, start, end)
        if space == end:
            new[entry] = _look_up_word(text, start, end, slots, terms, firsts, lasts) < 0
        else:
            pair = _look_up_words(text, start, space, end, slots, terms, firsts, lasts)
            new[entry] = pair < 0 or pairs[_find_pair(pair, pairs), 0] < 0


@kernel
def find_terms(
    text, starts, ends, indptr, paired, slots, pairs, terms, offsets, numbers, out_indptr
):
    """Write the numbers of the terms of a vocabulary that documents have.

    Parameters
    ----------
    text, starts, ends, indptr, paired
        As for `number_terms`.
    slots, pairs, terms, offsets
        The vocabulary and its tables.
    numbers, out_indptr
        As for `number_terms`, out; terms that the vocabulary lacks are left out.
    """
    firsts, lasts = offsets[:-1], offsets[1:]
    place = 0
    for document in range(len(indptr) - 1):
        out_indptr[document] = place
        previous = np.int64(-1)
        for unit in range(indptr[document], indptr[document + 1]):
            start, end = starts[unit], ends[unit]
            tag = _hash(text, start, end)
            slot = _find_word(text, start, end, tag, slots, terms, firsts, lasts)
            number = _number_in(slots[slot])
            if number >= 0:
                numbers[place] = number
                place += 1
            if not paired or text[start] == GRAM:
                continue
            if previous >= 0 and number >= 0:
                pair = previous << 32 | number
                row = _find_pair(pair, pairs)
                if pairs[row, 0] == pair:
                    numbers[place] = pairs[row, 1]
                    place += 1
            previous = number
    out_indptr[len(indptr) - 1] = place


@kernel
def count_rows(numbers, indptr, out_indptr, indices, counts):
    """Turn the term numbers of each document into a row of ascending terms and their counts.

    Parameters
    ----------
    numbers : (n_entries,) int32
        Term numbers, -1 for what does not count; sorted in place.
    indptr : (n_documents + 1,) int64
        Which of them each document has.
    out_indptr : (n_documents + 1,) int64, out
        Row pointer.
    indices : (n_entries,) int32, out
    counts : (n_entries,) float64, out

    Returns
    -------
    int
        Number of entries written.
    """
    place = 0
    for document in range(len(indptr) - 1):
        out_indptr[document] = place
        row = numbers[indptr[document] : indptr[document + 1]]
        sort_keys(row, len(row))
        previous = -1
        for number in row:
            if number == previous:
                if number >= 0:
                    counts[place - 1] += 1.0
                continue
            previous = number
            indices[place] = number
            counts[place] = 1.0
            place += 1
    out_indptr[len(indptr) - 1] = place
    return place
