"""Sparse text rows in bytes -> labels, term numbers and counts.

In: a block of complete lines, ``label,label term:count term:count ...``, and the limits that the
format sets. Out: flat arrays of labels, terms and counts, with their number per document, in one
pass over the bytes.

A line that cannot be read stops the loop. The kernel says which rule was broken and at which byte;
the caller words the message.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, part

# What ended the loop.
READ = 0
NOT_A_LABEL = 1
LABEL_OUT_OF_RANGE = 2
TOO_FEW_LABELS = 3
TOO_MANY_LABELS = 4
NOT_A_PAIR = 5
TERM_OUT_OF_RANGE = 6
NOT_A_COUNT = 7
NEGATIVE_COUNT = 8
COUNT_TOO_LARGE = 9
TOO_MANY_DOCUMENTS = 10

# Beyond 2**53 a double no longer holds every whole number, so sums of counts would not be exact. It
# also keeps the sum of repeated terms finite.
LARGEST_COUNT = 2**53

_NEWLINE, _SPACE, _TAB, _RETURN = 10, 32, 9, 13
_COMMA, _COLON, _HASH, _PLUS, _MINUS, _DOT = 44, 58, 35, 43, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E = 48, 57, 69, 101
_LETTER_Q, _LETTER_I, _LETTER_D = 113, 105, 100

# A whole number saturates here: above every limit in use and well inside 64 bits.
_HUGE = 10**18
_ROOM_FOR_A_DIGIT = 10**17
# 10**22 is the largest power of ten that a double holds exactly.
_LARGEST_EXACT_POWER = 22
_POWERS_OF_TEN = np.array([float(10**exponent) for exponent in range(_LARGEST_EXACT_POWER + 1)])


@part
def _is_digit(byte):
    """Say whether a byte is one of 0 to 9."""
    return _ZERO <= byte <= _NINE


@part
def _is_blank(byte):
    """Say whether a byte separates tokens; the return of a Windows line end does."""
    return byte in (_SPACE, _TAB, _RETURN)


@part
def _skip_blanks(block, at, end):
    """Return the first place from ``at`` on that holds no blank."""
    while at < end and _is_blank(block[at]):
        at += 1
    return at


@part
def _skip_digits(block, at, end):
    """Return the first place from ``at`` on that holds no digit."""
    while at < end and _is_digit(block[at]):
        at += 1
    return at


@part
def _find_byte(block, wanted, at, end):
    """Return the first place of a byte, ``end`` if there is none."""
    while at < end and block[at] != wanted:
        at += 1
    return at


@part
def _read_whole(block, at, end):
    """Return the whole number at ``at``, at most `_HUGE`, and the place after it."""
    number = np.int64(0)
    while at < end and _is_digit(block[at]):
        if number < _ROOM_FOR_A_DIGIT:
            number = number * 10 + (np.int64(block[at]) - _ZERO)
        else:
            number = np.int64(_HUGE)
        at += 1
    return number, at


@part
def _read_label(block, at, end):
    """Return the label at ``at`` and the place after it, which is ``at`` if there is none.

    A label is a whole number with an optional sign; ``3.0``, which some tools write, is 3.
    """
    place = at
    negative = place < end and block[place] == _MINUS
    if place < end and (block[place] == _MINUS or block[place] == _PLUS):
        place += 1
    number, after = _read_whole(block, place, end)
    if after == place:
        return number, at
    if after < end and block[after] == _DOT:
        after += 1
        while after < end and block[after] == _ZERO:
            after += 1
    if after < end and not (_is_blank(block[after]) or block[after] == _COMMA):
        return number, at
    return (-number if negative else number), after


@part
def _read_exponent(block, at, end):
    """Return the exponent at ``at`` (0 if none), the place after it, and whether it is sound."""
    if at >= end or (block[at] != _LOWER_E and block[at] != _UPPER_E):
        return np.int64(0), at, True
    at += 1
    negative = at < end and block[at] == _MINUS
    if at < end and (block[at] == _MINUS or block[at] == _PLUS):
        at += 1
    number, after = _read_whole(block, at, end)
    return (-number if negative else number), after, after > at


@part
def _read_count(block, at, end):
    """Return status, value and the place after the decimal number at ``at``.

    A mantissa of at most 2**53 and a power of ten of at most 10**22 are both exact, so one
    multiplication or division rounds once and correctly. For any other number the value is ``-1 -
    at``: where the caller finds it.
    """
    start = at
    negative = at < end and block[at] == _MINUS
    if at < end and (block[at] == _MINUS or block[at] == _PLUS):
        at += 1
    mantissa, after = _read_whole(block, at, end)
    n_digits = after - at
    power = np.int64(0)
    if after < end and block[after] == _DOT:
        first = after + 1
        after = _skip_digits(block, first, end)
        n_digits += after - first
        power = np.int64(first - after)
        for place in range(first, after):
            if mantissa < _ROOM_FOR_A_DIGIT:
                mantissa = mantissa * 10 + (np.int64(block[place]) - _ZERO)
            else:
                mantissa = np.int64(_HUGE)
    exponent, after, well_formed = _read_exponent(block, after, end)
    if n_digits == 0 or not well_formed or (after < end and not _is_blank(block[after])):
        return NOT_A_COUNT, 0.0, after
    power += exponent
    value = float(mantissa)
    if mantissa == 0:
        return READ, 0.0, after
    if negative:
        return NEGATIVE_COUNT, 0.0, after
    if mantissa > LARGEST_COUNT or abs(power) > _LARGEST_EXACT_POWER:
        return READ, -1.0 - start, after
    if power >= 0:
        value *= _POWERS_OF_TEN[power]
    else:
        value /= _POWERS_OF_TEN[-power]
    return (COUNT_TOO_LARGE if value > LARGEST_COUNT else READ), value, after


@part
def _read_labels(block, at, end, first_label, last_label, n_labels, labels):
    """Store the labels that open a line; return status, place reached, number of labels stored.

    A first token with a colon is already a pair: the line has no label.
    """
    n_before = n_labels
    while at < end or n_labels > n_before:
        place = at
        while place < end and not (
            _is_blank(block[place]) or block[place] == _COMMA or block[place] == _COLON
        ):
            place += 1
        if place < end and block[place] == _COLON and n_labels == n_before:
            break
        label, after = _read_label(block, at, end)
        if after == at:
            return NOT_A_LABEL, at, n_labels
        if not first_label <= label <= last_label:
            return LABEL_OUT_OF_RANGE, at, n_labels
        labels[n_labels] = label
        n_labels += 1
        at = _skip_blanks(block, after, end)
        if at == end or block[at] != _COMMA:
            break
        at = _skip_blanks(block, at + 1, end)
    return READ, at, n_labels


@part
def _skip_query(block, at, end):
    """Return the place after svmlight's ``qid:...`` token, if there is one at ``at``."""
    if (
        end - at >= 4
        and block[at] == _LETTER_Q
        and block[at + 1] == _LETTER_I
        and block[at + 2] == _LETTER_D
        and block[at + 3] == _COLON
    ):
        while at < end and not _is_blank(block[at]):
            at += 1
    return _skip_blanks(block, at, end)


@part
def _read_pairs(block, at, end, first_term, last_term, n_entries, indices, data):
    """Store the term:count pairs of a line; return status, place reached, number stored."""
    while at < end:
        term, after = _read_whole(block, at, end)
        if after in (at, end) or block[after] != _COLON:
            return NOT_A_PAIR, at, n_entries
        if not first_term <= term <= last_term:
            return TERM_OUT_OF_RANGE, at, n_entries
        status, value, after = _read_count(block, after + 1, end)
        if status != READ:
            return status, at, n_entries
        indices[n_entries] = term
        data[n_entries] = value
        n_entries += 1
        at = _skip_blanks(block, after, end)
    return READ, at, n_entries


@kernel
def parse_block(
    block,
    svmlight,
    first_term,
    last_term,
    first_label,
    last_label,
    fewest_labels,
    most_labels,
    n_expected,
    labels,
    label_counts,
    indices,
    data,
    term_counts,
):
    """Read the lines of a block until its end or the first line that breaks a rule.

    Parameters
    ----------
    block : uint8 array
        Complete lines; the last one may lack its newline.
    svmlight : bool
        Whether ``#`` opens a comment and a ``qid:`` token is passed over.
    first_term, last_term, first_label, last_label : int
        The numbers allowed, as written in the file.
    fewest_labels, most_labels : int
        How many labels a line may have.
    n_expected : int
        How many documents there are still to come; a blank line is then a document without labels
        and terms.
        -1 if the format does not say: blank lines are passed over.
    labels : int64 array, out
        Labels, document after document; room for one per line and one per comma.
    label_counts, term_counts : int64 arrays, out
        Number of labels and pairs of each document; room for one per line.
    indices : int32 array, out
    data : float64 array, out
        Terms and counts as written; room for one per colon. A negative entry ``-1 - place`` stands
        for a number that the kernel cannot round correctly and the caller has to read at that
        place.

    Returns
    -------
    status, place, n_documents, n_labels, n_entries : int
        ``place`` is the byte at which a rule was broken. The sizes count whole documents only.
    """
    n_documents = 0
    # Typed, because a literal 0 would have numba compile the functions below twice.
    n_labels = np.int64(0)
    n_entries = np.int64(0)
    at = np.int64(0)
    while at < block.size:
        line_end = _find_byte(block, _NEWLINE, at, block.size)
        end = _find_byte(block, _HASH, at, line_end) if svmlight else line_end
        at = _skip_blanks(block, at, end)
        if at == end and n_documents >= n_expected:
            at = line_end + 1
            continue
        if n_documents == n_expected:
            return TOO_MANY_DOCUMENTS, at, n_documents, n_labels, n_entries
        start = at
        status, at, labels_read = _read_labels(
            block, at, end, first_label, last_label, n_labels, labels
        )
        if status == READ and labels_read - n_labels < fewest_labels:
            status, at = TOO_FEW_LABELS, start
        elif status == READ and labels_read - n_labels > most_labels:
            status, at = TOO_MANY_LABELS, start
        if status != READ:
            return status, at, n_documents, n_labels, n_entries
        if svmlight:
            at = _skip_query(block, at, end)
        status, at, entries_read = _read_pairs(
            block, at, end, first_term, last_term, n_entries, indices, data
        )
        if status != READ:
            return status, at, n_documents, n_labels, n_entries
        label_counts[n_documents] = labels_read - n_labels
        term_counts[n_documents] = entries_read - n_entries
        n_documents += 1
        n_labels = labels_read
        n_entries = entries_read
        at = line_end + 1
    return READ, block.size, n_documents, n_labels, n_entries


@kernel
def merge_terms(term_counts, indices, data):
    """Add up the counts of repeated terms and drop zero counts, in place.

    Parameters
    ----------
    term_counts : int64 array, in and out
        Number of entries of each row.
    indices, data : arrays, in and out
        Entries, row after row, terms in order within a row; what is left moves to the front.

    Returns
    -------
    n_entries : int
        How many entries are left.
    """
    start = 0
    kept = 0
    for row in range(term_counts.size):
        end = start + term_counts[row]
        first = kept
        for entry in range(start, end):
            if data[entry] == 0.0:
                continue
            if kept > first and indices[kept - 1] == indices[entry]:
                data[kept - 1] += data[entry]
            else:
                indices[kept] = indices[entry]
                data[kept] = data[entry]
                kept += 1
        term_counts[row] = kept - first
        start = end
    return kept
