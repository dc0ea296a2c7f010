"""Texts -> bytes -> tokens, each a slice of the bytes.

Python does what its own string methods do in C: case, accents, UTF-8. The kernel does the rest.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from longtail._kernels import text as kernels
from longtail._kernels.fields import Slices, place_fields
from longtail._kernels.text import Tokens, WordBuffer
from longtail._kernels.vocabulary import remove_words
from longtail._records import Fields
from longtail.sparse import Integers, offsets_from_lengths
from longtail.text.fields import Parts, split_documents, word_prefix
from longtail.text.interning import Bytes, InternTable, with_capacity
from longtail.text.options import TokenizerOptions, compile_pattern, resolve_stop_words

# Marks over and under Latin, Greek and Cyrillic letters. Those of other scripts are mostly vowels.
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Planes 0 to 3 and 14; the others are unassigned or private, and no letters.
_ASSIGNED = (0, 0x40000), (0xE0000, 0xF0000)
# Scripts without spaces between words, by block: Thai and Lao, Burmese (twice), Khmer, Han with
# its iteration marks and numerals, Hiragana and Katakana (twice).
_UNSPACED = (
    *((0x0E00, 0x0F00), (0x1000, 0x10A0), (0xA9E0, 0xAA00), (0xAA60, 0xAA80), (0x1780, 0x1800)),
    *((0x3005, 0x3008), (0x3021, 0x302A), (0x3038, 0x303D), (0x3400, 0x4DC0), (0x4E00, 0xA000)),
    *((0xF900, 0xFB00), (0x20000, 0x40000), (0x3041, 0x3100), (0x31F0, 0x3200), (0x1AFF0, 0x1B170)),
)
_SPACES = re.compile("[\x00-\x20\x7f]")


class Tokenizer:
    """Turns texts into tokens as its options say."""

    def __init__(self, options: TokenizerOptions) -> None:
        self.options = options
        self._kinds = character_kinds(options.split_unspaced)
        self._split = _make_split(options)
        self._stop_words: InternTable | None = None
        stop_words = resolve_stop_words(options.stop_words)
        if stop_words:
            self._stop_words = self._intern_stop_words(sorted(stop_words))

    @property
    def n_parts(self) -> int:
        """How many documents of `tokenize` a text becomes: the parts of a record."""
        return 1 if self.options.fields is None else self.options.fields.n_parts

    def tokenize(self, texts: list[str]) -> Tokens:
        """Return the words and character n-grams of texts, and the terms of their fields."""
        fields = self.options.fields
        if fields is None:
            return self._tokenize(texts)
        parts = split_documents(texts, fields)
        tokens = self._tokenize(parts.texts)
        if fields.n_parts == 1 and not any(parts.terms):
            return tokens
        return _place_fields(tokens, parts, fields)

    def _tokenize(self, texts: list[str]) -> Tokens:
        """Return the words and character n-grams of plain texts."""
        word_buffer, n_bytes = self._tokenize_words(texts)
        if self._stop_words is not None:
            n_bytes = remove_words(word_buffer, self._stop_words.tables, self._stop_words.terms)
        n_tokens, sizes = int(word_buffer.indptr[-1]), (1, 0)
        if self.options.char_ngram_range is not None:
            sizes = self.options.char_ngram_range
            n_ngrams, n_more = kernels.measure_char_ngrams(word_buffer, self._kinds, sizes)
            n_tokens += n_ngrams
            word_buffer = word_buffer._replace(
                utf8=with_capacity(word_buffer.utf8[:n_bytes], n_bytes + n_more)
            )
        starts, ends = np.empty((2, n_tokens), np.int64)
        tokens = Tokens(word_buffer.utf8, starts, ends, np.empty(len(texts) + 1, np.int64))
        kernels.write_tokens(word_buffer, self._kinds, sizes, n_bytes, tokens)
        return tokens

    def _tokenize_words(self, texts: list[str]) -> tuple[WordBuffer, int]:
        """Return the words of texts, and how many bytes they have."""
        normal = (
            normalise(text, self.options.lowercase, self.options.strip_accents) for text in texts
        )
        if self._split is not None:
            return _join_words([list(self._split(text)) for text in normal])
        utf8, offsets = _encode([text.encode("utf-8", "surrogatepass") for text in normal])
        n_bytes = len(utf8) + len(texts) + 1
        if n_long := np.count_nonzero(utf8 >= 0xE0):  # perhaps unspaced: written twice
            n_bytes += int(n_long + np.count_nonzero(utf8 >= 0x80))
        word_buffer = WordBuffer(
            np.empty(n_bytes, np.uint8),
            np.empty((len(utf8) + len(texts)) // 2 + 1, np.int64),
            np.empty(len(texts) + 1, np.int64),
        )
        return word_buffer, kernels.tokenize_words(
            utf8, offsets, self._kinds, self.options.stem, word_buffer
        )

    def _intern_stop_words(self, stop_words: list[str]) -> InternTable:
        """Return the stop words as this tokenizer writes them."""
        word_buffer, _ = self._tokenize_words(stop_words)
        single = np.diff(word_buffer.indptr) == 1
        if not single.all():
            example = stop_words[int(np.argmin(single))]
            warnings.warn(
                f"stop_words has {np.count_nonzero(~single)} entries that are not one word to this "
                f"tokenizer and so match nothing, such as {example!r}; list the words instead.",
                UserWarning,
                stacklevel=2,
            )
        selected = word_buffer.indptr[:-1][single]
        table = InternTable()
        table.add(
            word_buffer.utf8, word_buffer.bounds[selected] + 1, word_buffer.bounds[selected + 1]
        )
        return table


def _make_split(options: TokenizerOptions) -> Callable[[str], Iterable[str]] | None:
    """Return what splits a text in place of the kernel, if anything does."""
    if options.token_pattern is not None:
        return compile_pattern(options.token_pattern).findall
    return options.tokenizer


def _join_words(documents: list[list[Any]]) -> tuple[WordBuffer, int]:
    """Return the words of a tokenizer of the user's, and how many bytes they have."""
    cleaned = [[_clean(word) for word in document if word] for document in documents]
    encoded = [word.encode("utf-8", "replace") for word in chain.from_iterable(cleaned)]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    text = b" ".join([b"", *encoded, b""]) if encoded else b" "
    word_buffer = WordBuffer(
        np.frombuffer(text, np.uint8).copy(),
        offsets_from_lengths(lengths + 1),
        offsets_from_lengths(np.fromiter(map(len, cleaned), np.int64, len(cleaned))),
    )
    return word_buffer, len(text)


def _clean(word: Any) -> str:
    """Return a word without what tells other terms from words: spaces, marks, a tilde in front."""
    if not isinstance(word, str):
        raise ValueError(
            f"tokenizer must return strings; got {word!r} of type {type(word).__name__}."
        )
    if word[0] == "~":
        word = "∼" + word[1:]
    return _SPACES.sub("_", word)


def normalise(text: str, lowercase: bool = True, strip_accents: str | None = "unicode") -> str:
    """Return a text in one case, with compatibility characters and accents replaced.

    Parameters
    ----------
    text : str
        Any text.
    lowercase : bool, default=True
        Whether case is folded.
    strip_accents : "unicode" or None, default="unicode"
        Whether marks on Latin, Greek and Cyrillic letters go.

    Examples
    --------
    >>> normalise("Ångström, ﬁne, Straße, 5 km²")
    'angstrom, fine, strasse, 5 km2'
    """
    if text.isascii():
        return text.lower() if lowercase else text
    decomposed = unicodedata.normalize("NFKD", text)
    if strip_accents is not None:
        decomposed = _ACCENTS.sub("", decomposed)
    # Case folding, unlike lower case, does not depend on the letters around (the final sigma).
    return unicodedata.normalize("NFC", decomposed.casefold() if lowercase else decomposed)


@cache
def character_kinds(split_unspaced: bool = True) -> Bytes:
    """Return what each code point does in a text: separate words, make them, or continue them."""
    kinds = np.full(0x110000, kernels.SEPARATOR, np.uint8)
    of_category = {"L": kernels.LETTER, "N": kernels.LETTER, "M": kernels.MARK}
    for start, stop in _ASSIGNED:
        categories = map(unicodedata.category, map(chr, range(start, stop)))
        kinds[start:stop] = [of_category.get(name[0], kernels.SEPARATOR) for name in categories]
    for start, stop in _UNSPACED if split_unspaced else ():
        for code in range(start, stop):
            if unicodedata.category(chr(code)) in ("Lo", "Lm", "Nl"):
                kinds[code] = kernels.UNSPACED
    return kinds


def _place_fields(tokens: Tokens, parts: Parts, fields: Fields) -> Tokens:
    """Return the tokens of records: words of each field begin with it, its other terms follow."""
    prefixes = [b"", *(word_prefix(name).encode() for name in fields.texts)][: fields.n_parts]
    terms = [term for record in parts.terms for term in record]
    placed = Slices(*_encode(terms))
    lengths = np.fromiter(map(len, parts.terms), np.int64, len(parts.terms))
    n_tokens = len(tokens.starts)
    n_bytes = int((tokens.ends - tokens.starts).sum()) + max(map(len, prefixes)) * n_tokens
    n_bytes += len(placed.utf8)
    starts, ends = np.empty((2, n_tokens + len(terms)), np.int64)
    out = Tokens(np.empty(n_bytes, np.uint8), starts, ends, np.empty_like(tokens.indptr))
    n_placed = place_fields(
        tokens, Slices(*_encode(prefixes)), placed, offsets_from_lengths(lengths), out
    )
    return out._replace(starts=starts[:n_placed], ends=ends[:n_placed])


def _encode(texts: list[bytes]) -> tuple[Bytes, Integers]:
    """Return encoded texts as one array, and where each begins."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.frombuffer(b"".join(texts), np.uint8), offsets_from_lengths(lengths)
