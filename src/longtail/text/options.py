"""`TokenizerOptions`: how a text becomes terms, checked once."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._constants import LARGEST_NGRAM
from longtail._records import read_fields

Tokenizer = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class TokenizerOptions:
    """How a text becomes terms; `TextVectorizer` describes each option."""

    ngram_range: tuple[int, int] = (1, 2)
    char_ngram_range: tuple[int, int] | None = None
    # N-grams repeat what their words say, and would outweigh them in the length of a document.
    ngram_weight: float = 0.5
    lowercase: bool = True
    strip_accents: str | None = "unicode"
    stop_words: str | Collection[str] | None = None
    token_pattern: str | None = None
    tokenizer: Tokenizer | None = None
    stem: bool = False
    split_unspaced: bool = True
    fields: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", read_fields(self.fields))
        for name in ("lowercase", "stem", "split_unspaced"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        weight = self.ngram_weight
        if not isinstance(weight, numbers.Real) or not 0 < weight < float("inf"):
            raise ValueError(f"ngram_weight must be a positive number; got {weight!r}.")
        if self.strip_accents not in ("unicode", None):
            raise ValueError(
                f"strip_accents must be 'unicode' or None; got {self.strip_accents!r}."
            )
        object.__setattr__(self, "ngram_range", _check_ngram_range(self.ngram_range))
        object.__setattr__(self, "char_ngram_range", _check_char_range(self.char_ngram_range))
        object.__setattr__(self, "stop_words", _check_stop_words(self.stop_words))
        self._check_tokenizer()

    def _check_tokenizer(self) -> None:
        """Refuse a tokenizer or a pattern that cannot be used."""
        if self.tokenizer is None and self.token_pattern is None:
            return
        if self.tokenizer is not None and self.token_pattern is not None:
            raise ValueError("give either token_pattern or tokenizer; got both.")
        if self.stem:
            raise ValueError(
                "stem=True needs the default tokenizer; remove endings in the tokenizer, or leave "
                "token_pattern and tokenizer at None."
            )
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise ValueError(
                "tokenizer must be a callable from a text to a list of words, or None; "
                f"got {self.tokenizer!r}."
            )
        if self.token_pattern is not None:
            compile_pattern(self.token_pattern)

    @property
    def largest_ngram(self) -> int:
        """Largest n-gram of words, in words."""
        return self.ngram_range[1]


def compile_pattern(pattern: Any) -> re.Pattern[str]:
    """Return the regular expression of a token pattern, or say what is wrong with it."""
    if not isinstance(pattern, str):
        raise ValueError(f"token_pattern must be a regular expression or None; got {pattern!r}.")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"token_pattern must be a regular expression; got {pattern!r}: {error}."
        ) from None
    if compiled.groups > 1:
        raise ValueError(
            f"token_pattern must have at most one group; {pattern!r} has {compiled.groups}. "
            "Write (?:...) for groups that are not the token."
        )
    return compiled


def _check_range(name: str, sizes: Any, smallest: int, hint: str) -> tuple[int, int]:
    """Return two ascending sizes as plain integers."""
    if (
        not isinstance(sizes, Sequence)
        or len(sizes) != 2
        or not all(isinstance(size, numbers.Integral) for size in sizes)
        or not smallest <= sizes[0] <= sizes[1]
    ):
        raise ValueError(f"{name} must be {hint}; got {sizes!r}.")
    return int(sizes[0]), int(sizes[1])


def _check_ngram_range(sizes: Any) -> tuple[int, int]:
    """Return the sizes of n-grams of words."""
    hint = "two integers (1, n) with n >= 1, such as (1, 2) for words and bigrams"
    checked = _check_range("ngram_range", sizes, 1, hint)
    if checked[1] > LARGEST_NGRAM:
        raise ValueError(f"ngram_range must end at {LARGEST_NGRAM} or before; got {sizes!r}.")
    if checked[0] != 1:
        raise ValueError(
            f"ngram_range must begin at 1, since n-grams are stored by their words; got {sizes!r}. "
            f"Use (1, {checked[1]})."
        )
    return checked


def _check_char_range(sizes: Any) -> tuple[int, int] | None:
    """Return the sizes of character n-grams."""
    if sizes is None:
        return None
    hint = "None or two integers (shortest, longest) with 2 <= shortest <= longest, such as (4, 5)"
    return _check_range("char_ngram_range", sizes, 2, hint)


def _check_stop_words(stop_words: Any) -> str | tuple[str, ...] | None:
    """Return stop words in an order of their own, so that equal options compare equal."""
    if stop_words is None or (isinstance(stop_words, str) and stop_words == "english"):
        return stop_words
    if isinstance(stop_words, str) or not isinstance(stop_words, Collection):
        raise ValueError(
            f"stop_words must be None, 'english' or a collection of words; got {stop_words!r}."
        )
    if not all(isinstance(word, str) for word in stop_words):
        raise ValueError(f"stop_words must hold strings; got {stop_words!r}.")
    return tuple(sorted(set(stop_words)))


def resolve_stop_words(stop_words: str | Collection[str] | None) -> Collection[str]:
    """Return the words to leave out."""
    if stop_words == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        english: Collection[str] = ENGLISH_STOP_WORDS
        return english
    return stop_words or ()
