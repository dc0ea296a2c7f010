"""Texts -> bytes -> terms, each a slice of the bytes.

Python does what its own string methods do in C: case, accents, UTF-8. The kernel does the rest.
"""

from __future__ import annotations

import numbers
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import text as kernels

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

# Marks over and under Latin, Greek and Cyrillic letters. Those of other scripts are mostly vowels.
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Planes 0 to 3 and 14; the others are unassigned or private, and no letters.
_ASSIGNED = (0, 0x40000), (0xE0000, 0xF0000)


@dataclass(frozen=True)
class TokenizerOptions:
    """How a text is cut into terms.

    Attributes
    ----------
    ngrams : int
        1: the words are the terms. 2: pairs of neighbours as well.
    char_ngrams : tuple of two int, or None
        Shortest and longest character n-gram; a word's edges count as characters.
    ngram_weight : float
        What an occurrence of a pair or character n-gram counts, where a word counts 1. They repeat
        what their words say, and would outweigh them in the length of a document.
    fold_accents : bool
        Whether é counts as e.
    stem : bool
        Whether English plural endings are cut.
    """

    ngrams: int = 2
    char_ngrams: tuple[int, int] | None = None
    ngram_weight: float = 0.5
    fold_accents: bool = True
    stem: bool = False

    def __post_init__(self) -> None:
        if self.ngrams not in (1, 2):
            raise ValueError(
                f"ngrams must be 1 (words) or 2 (pairs of neighbours as well); got {self.ngrams!r}."
            )
        for name in ("fold_accents", "stem"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        weight = self.ngram_weight
        if not isinstance(weight, numbers.Real) or not 0 < weight < float("inf"):
            raise ValueError(f"ngram_weight must be a positive number; got {weight!r}.")
        if self.char_ngrams is None:
            return
        sizes = self.char_ngrams
        if (
            not isinstance(sizes, Sequence)
            or len(sizes) != 2
            or not all(isinstance(size, numbers.Integral) for size in sizes)
            or not 2 <= sizes[0] <= sizes[1]
        ):
            raise ValueError(
                "char_ngrams must be None or two integers (shortest, longest) with "
                f"2 <= shortest <= longest, such as (4, 5); got {sizes!r}."
            )
        object.__setattr__(self, "char_ngrams", (int(sizes[0]), int(sizes[1])))


class Units(NamedTuple):
    """The words and character n-grams of some documents as slices of one array of bytes."""

    text: Bytes
    starts: Integers
    ends: Integers
    indptr: Integers


def tokenize_texts(texts: list[str], rules: TokenizerOptions) -> Units:
    """Cut texts into words and character n-grams."""
    utf8, offsets = _encode(texts, rules.fold_accents)
    n_documents = len(texts)
    words = np.empty(len(utf8) + n_documents + 1, np.uint8)
    bounds = np.empty((len(utf8) + n_documents) // 2 + 1, np.int64)
    word_indptr, indptr = np.empty((2, n_documents + 1), np.int64)
    n_bytes = kernels.cut_words(
        utf8, offsets, character_kinds(), rules.stem, words, bounds, word_indptr
    )
    n_units, sizes = int(word_indptr[-1]), (1, 0)
    if rules.char_ngrams is not None:
        sizes = rules.char_ngrams
        n_grams, n_gram_bytes = kernels.measure_grams(words, bounds, n_units, *sizes)
        n_units += n_grams
        words = with_room(words[:n_bytes], n_bytes + n_gram_bytes)
    starts, ends = np.empty((2, n_units), np.int64)
    kernels.cut_units(words, bounds, word_indptr, *sizes, n_bytes, starts, ends, indptr)
    return Units(words, starts, ends, indptr)


# ---- from texts to bytes


def check_texts(texts: Any) -> list[str]:
    """Return texts as a list of strings, or say what they are instead.

    Raises
    ------
    ValueError
        If they are one string, a table, or one of them is missing or no string.
    """
    if isinstance(texts, str | bytes):
        raise ValueError(
            f"texts must be a list of strings; got one {type(texts).__name__}. "
            "Put it into a list: [text]."
        )
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(
            f"texts must have one dimension, one string for each document; got {texts.ndim}. "
            "Choose the column that holds the texts."
        )
    try:
        checked = list(texts)
    except TypeError:
        raise ValueError(f"texts must be a list of strings; got {type(texts).__name__}.") from None
    for place, text in enumerate(checked):
        if not isinstance(text, str):
            missing = text is None or text != text
            problem = "is missing" if missing else f"is of type {type(text).__name__}"
            raise ValueError(
                f"texts must be strings; document {place} {problem} ({text!r}). "
                "Leave it out, or give it an empty string."
            )
    return checked


def check_count(name: str, value: Any) -> None:
    """Refuse what is not an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")


def normalise(text: str, fold_accents: bool = True) -> str:
    """Return a text in lower case, with compatibility characters and, if asked, accents replaced.

    Parameters
    ----------
    text : str
        Any text.
    fold_accents : bool, default=True
        Whether marks on Latin, Greek and Cyrillic letters go.

    Returns
    -------
    str

    Examples
    --------
    >>> normalise("Ångström, ﬁne, Straße, 5 km²")
    'angstrom, fine, strasse, 5 km2'
    """
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text)
    if fold_accents:
        parts = _ACCENTS.sub("", parts)
    # Case folding, unlike lower case, does not depend on the letters around (the final sigma).
    return unicodedata.normalize("NFC", parts.casefold())


@cache
def character_kinds() -> Bytes:
    """Return what each code point does in a text: part words, make them, or continue them."""
    kinds = np.full(0x110000, kernels.SEPARATOR, np.uint8)
    of_category = {"L": kernels.LETTER, "N": kernels.LETTER, "M": kernels.MARK}
    for start, stop in _ASSIGNED:
        categories = map(unicodedata.category, map(chr, range(start, stop)))
        kinds[start:stop] = [of_category.get(name[0], kernels.SEPARATOR) for name in categories]
    return kinds


def _encode(texts: list[str], fold_accents: bool) -> tuple[Bytes, Integers]:
    """Return normalised texts as UTF-8, and where each begins; lone surrogates pass."""
    encoded = [normalise(text, fold_accents).encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return np.frombuffer(b"".join(encoded), np.uint8), offsets_from_lengths(lengths)


# ---- arrays


def offsets_from_lengths(lengths: Integers) -> Integers:
    """Return where each of several stretches begins, and where the last one ends."""
    total = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=total[1:])
    return total


def with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the array, or a longer copy with zeros behind it, so that it has at least a size."""
    if len(array) >= size:
        return array
    longer = np.zeros(max(size, len(array) * 3 // 2), array.dtype)
    longer[: len(array)] = array
    return longer
