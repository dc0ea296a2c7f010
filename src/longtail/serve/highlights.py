"""Where the terms of an explanation are in a text, and which words a model does not know.

In: a vocabulary and a text as it was written. Out: for each term the places where it stands, as
offsets of characters (code points); and the words that no document had. A term is what the
tokenizer makes of a word (case, accents, stem), so each word of the text is tokenized by itself and
compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from longtail._records import plain_text, read_record
from longtail.text import Vocabulary
from longtail.text.options import compile_pattern

_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_NGRAM = "~"  # begins a term that is an n-gram of characters


class _Word(NamedTuple):
    start: int
    end: int
    tokens: list[str]


def find_terms(
    vocabulary: Vocabulary, text: str, terms: Iterable[str]
) -> dict[str, list[tuple[int, int]]]:
    """Return where each term stands in a text: beginning and end of its words.

    Parameters
    ----------
    vocabulary : Vocabulary
        Whose tokenizer reads the text.
    text : str
        As it was written; the words of a record are those of its texts, joined by a blank.
    terms : iterable of str
        Terms of the vocabulary: a word, words with spaces between them, or ``~`` and characters;
        of one field as ``body:refund``.

    Returns
    -------
    dict of str to list of tuple of int
        Ascending; empty where a term comes from more than whole words, or from no text.
    """
    fields, wanted = vocabulary.options.fields, list(terms)
    found = _find_in(vocabulary, plain_text(text, fields), wanted)
    record = {} if fields is None else read_record(text, fields) or {}
    start = 0
    for name in () if fields is None else fields.texts:
        if name not in record:
            continue
        prefix = f"{name}:"
        of_field = [term for term in wanted if term.startswith(prefix)]
        spans = _find_in(vocabulary, record[name], [term.removeprefix(prefix) for term in of_field])
        for term in of_field:
            found[term] = [(start + a, start + b) for a, b in spans[term.removeprefix(prefix)]]
        start += len(record[name]) + 1
    return found


def _find_in(
    vocabulary: Vocabulary, text: str, terms: list[str]
) -> dict[str, list[tuple[int, int]]]:
    """Return where each term stands in a plain text."""
    tokenized = _tokenize_words(vocabulary, text)
    positions: dict[str, list[int]] = {}
    for i, word in enumerate(tokenized):
        for token in dict.fromkeys(word.tokens):
            positions.setdefault(token, []).append(i)
    return {
        term: [
            (tokenized[i].start, tokenized[j].end) for i, j in _locate(term, tokenized, positions)
        ]
        for term in terms
    }


def count_words(vocabulary: Vocabulary, texts: list[str]) -> tuple[int, int]:
    """Return the number of distinct words of each text, all together, and of those unknown."""
    pattern = _pattern(vocabulary)
    texts = [plain_text(text, vocabulary.options.fields) for text in texts]
    n_words = sum(len({match.group() for match in pattern.finditer(text)}) for text in texts)
    return n_words, sum(map(len, new_words(vocabulary, texts)))


def new_words(vocabulary: Vocabulary, texts: list[str]) -> list[list[str]]:
    """Return the distinct words of each text that the vocabulary does not have."""
    pattern = _pattern(vocabulary)
    texts = [plain_text(text, vocabulary.options.fields) for text in texts]
    found = [list(dict.fromkeys(match.group() for match in pattern.finditer(t))) for t in texts]
    distinct = list(dict.fromkeys(word for some in found for word in some))
    X = vocabulary.count(distinct) if distinct else np.zeros((0, 0))
    unknown = {word for word, n in zip(distinct, np.diff(getattr(X, "indptr", [0])), strict=True)
               if n == 0}  # fmt: skip
    return [[word for word in some if word in unknown] for some in found]


def _locate(
    term: str, tokenized: list[_Word], positions: dict[str, list[int]]
) -> list[tuple[int, int]]:
    """Return the first and last word of each place of a term."""
    if " " not in term or term.startswith(_NGRAM):
        return [(i, i) for i in positions.get(term, ())]
    tokens = term.split(" ")
    found = []
    for i in positions.get(tokens[0], ()):
        following = tokenized[i : i + len(tokens)]
        if len(following) == len(tokens) and all(
            token in word.tokens for token, word in zip(tokens, following, strict=True)
        ):
            found.append((i, i + len(tokens) - 1))
    return found


def _tokenize_words(vocabulary: Vocabulary, text: str) -> list[_Word]:
    """Return the words of a text with their tokens; those without any, such as stop words, not."""
    matches = list(_pattern(vocabulary).finditer(text))
    distinct = list(dict.fromkeys(match.group() for match in matches))
    if not distinct:
        return []
    tokens = vocabulary.tokenizer.tokenize(distinct)
    utf8 = tokens.utf8.tobytes()
    spelled = [
        utf8[start:end].decode("utf-8", "replace")
        for start, end in zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)
    ]
    bounds = tokens.indptr[:: vocabulary.tokenizer.n_parts].tolist()
    of_word = {word: spelled[bounds[i] : bounds[i + 1]] for i, word in enumerate(distinct)}
    return [
        _Word(match.start(), match.end(), of_word[match.group()])
        for match in matches
        if of_word[match.group()]
    ]


def _pattern(vocabulary: Vocabulary) -> re.Pattern[str]:
    pattern = vocabulary.options.token_pattern
    return _WORD if pattern is None else compile_pattern(pattern)
