"""What text becomes, in plain Python: slow, obvious, and nothing of ours imported."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise
from typing import Any

# Blocks of scripts without spaces between words: first and last code point.
UNSPACED = [
    ("ก", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\ua9e0", "\ua9ff"),
    ("\uaa60", "\uaa7f"),
    ("\u1780", "\u17ff"),  # Khmer
    ("々", "〇"),  # Han
    ("〡", "〩"),
    ("〸", "〼"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
    ("\u3041", "\u30ff"),  # Hiragana, Katakana
    ("\u31f0", "\u31ff"),
    ("\U0001aff0", "\U0001b16f"),
]


def normal_form(text: str, lowercase: bool = True, strip_accents: str | None = "unicode") -> str:
    """One case, compatibility characters replaced, accents gone."""
    parts = unicodedata.normalize("NFKD", text)
    if strip_accents:
        parts = "".join(c for c in parts if not "\u0300" <= c <= "\u036f")
    if lowercase:
        parts = "".join(c.casefold() for c in parts)
    return unicodedata.normalize("NFC", parts)


def is_unspaced(character: str) -> bool:
    """Tell whether a character is of a script without spaces between words."""
    return unicodedata.category(character) in ("Lo", "Lm", "Nl") and any(
        first <= character <= last for first, last in UNSPACED
    )


def words(
    text: str,
    lowercase: bool = True,
    strip_accents: str | None = "unicode",
    stem: bool = False,
    split_unspaced: bool = True,
) -> list[str]:
    """Runs of letters and numbers; a mark continues a word but starts none.

    Runs of unspaced characters, each with its marks, become bigrams of them.
    """
    runs: list[list[str]] = [[]]  # of characters with their marks
    for character in normal_form(text, lowercase, strip_accents):
        kind = unicodedata.category(character)[0]
        if kind == "M" and runs[-1]:
            runs[-1][-1] += character
        elif kind in "LN":
            unspaced = split_unspaced and is_unspaced(character)
            if runs[-1] and unspaced != (split_unspaced and is_unspaced(runs[-1][-1][0])):
                runs.append([])
            runs[-1].append(character)
        elif runs[-1]:
            runs.append([])
    found = []
    for run in filter(None, runs):
        if split_unspaced and is_unspaced(run[0][0]):
            found += [a + b for a, b in pairwise(run)] or run
        else:
            word = "".join(run)
            found.append(singular(word) if stem else word)
    return found


def singular(word: str) -> str:
    """Remove an English plural ending; lengths are those of the UTF-8 bytes."""
    length = len(word.encode())
    if length < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if length > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if length > 4 and word.endswith(("xes", "zes", "sses", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def terms(
    text: str,
    ngram_range: tuple[int, int] = (1, 2),
    char_ngram_range: tuple[int, int] | None = None,
    ngram_weight: float = 0.5,
    stop_words: tuple[str, ...] = (),
    **options: Any,
) -> dict[str, float]:
    """Count words, n-grams of words and character n-grams of words with their edges."""
    left_out = {word for name in stop_words for word in words(name, **options)}
    found = [word for word in words(text, **options) if word not in left_out]
    counts: Counter[str] = Counter()
    for n in range(2, ngram_range[1] + 1):
        counts.update(" ".join(found[i : i + n]) for i in range(len(found) - n + 1))
    if char_ngram_range is not None:
        for word in found:
            if options.get("split_unspaced", True) and is_unspaced(word[0]):
                continue  # a character n-gram already
            edged = f" {word} "
            for n in range(char_ngram_range[0], char_ngram_range[1] + 1):
                counts.update("~" + edged[i : i + n] for i in range(len(edged) - n + 1))
    weighed = {term: ngram_weight * count for term, count in counts.items()}
    return weighed | Counter(found)


def document_frequencies(documents: list[dict[str, float]]) -> Counter[str]:
    """In how many documents each term is."""
    return Counter(term for document in documents for term in document)
