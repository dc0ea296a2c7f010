"""Tokens of the parts of records -> tokens of fields.

In: tokens, where a record stands as several documents, its parts; the terms of fields that are no
words. Out: tokens in which the words of each part but the first begin with its field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from longtail._kernels.jit import kernel
from longtail._kernels.text import CHAR_NGRAM


class Slices(NamedTuple):
    """Strings one after the other: string j is ``utf8[offsets[j] : offsets[j + 1]]``."""

    utf8: Any  # (n_bytes,) uint8
    offsets: Any  # (n_strings + 1,) int64


@kernel
def place_fields(tokens, prefixes, terms, term_indptr, out):
    """Write words with the prefix of their part, and behind the last part the terms of the record.

    Character n-grams stay in the first part alone.

    Parameters
    ----------
    tokens : Tokens
        Of all parts of all records.
    prefixes : Slices
        One for each part of a record; that of the first is empty.
    terms : Slices
        Terms of all records that are no words.
    term_indptr : (n_records + 1,) int64
        Where those of each record begin.
    out : Tokens, out
        With capacity for every token with its prefix and every term.

    Returns
    -------
    int
        Number of tokens written.
    """
    utf8, starts, ends, indptr = tokens
    n_parts = len(prefixes.offsets) - 1
    n_tokens, n_bytes = 0, 0
    for row in range(len(indptr) - 1):
        out.indptr[row] = n_tokens
        record, field = row // n_parts, row % n_parts
        for token in range(indptr[row], indptr[row + 1]):
            if field > 0 and utf8[starts[token]] == CHAR_NGRAM:
                continue
            out.starts[n_tokens] = n_bytes
            for byte in range(prefixes.offsets[field], prefixes.offsets[field + 1]):
                out.utf8[n_bytes] = prefixes.utf8[byte]
                n_bytes += 1
            for byte in range(starts[token], ends[token]):
                out.utf8[n_bytes] = utf8[byte]
                n_bytes += 1
            out.ends[n_tokens] = n_bytes
            n_tokens += 1
        if field == n_parts - 1:
            for term in range(term_indptr[record], term_indptr[record + 1]):
                out.starts[n_tokens] = n_bytes
                for byte in range(terms.offsets[term], terms.offsets[term + 1]):
                    out.utf8[n_bytes] = terms.utf8[byte]
                    n_bytes += 1
                out.ends[n_tokens] = n_bytes
                n_tokens += 1
    out.indptr[len(indptr) - 1] = n_tokens
    return n_tokens
