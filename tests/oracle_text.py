"""What text becomes, in plain Python: slow, obvious, and nothing of ours imported."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise


def normal_form(text: str, fold_accents: bool = True) -> str:
    """Lower case, compatibility characters replaced, accents gone."""
    parts = unicodedata.normalize("NFKD", text)
    if fold_accents:
        parts = "".join(c for c in parts if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", "".join(c.casefold() for c in parts))


def words(text: str, fold_accents: bool = True, stem: bool = False) -> list[str]:
    """Runs of letters and numbers; a mark continues a word but starts none."""
    found = [""]
    for character in normal_form(text, fold_accents):
        kind = unicodedata.category(character)[0]
        if kind in "LN" or (kind == "M" and found[-1]):
            found[-1] += character
        elif found[-1]:
            found.append("")
    return [singular(word) if stem else word for word in found if word]


def singular(word: str) -> str:
    """Cut an English plural ending; lengths are those of the UTF-8 bytes."""
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
    ngrams: int = 2,
    char_ngrams: tuple[int, int] | None = None,
    ngram_weight: float = 0.5,
    fold_accents: bool = True,
    stem: bool = False,
) -> dict[str, float]:
    """Count words, pairs of neighbours and character n-grams of words with their edges."""
    found = words(text, fold_accents, stem)
    counts: Counter[str] = Counter()
    if ngrams == 2:
        counts.update(f"{left} {right}" for left, right in pairwise(found))
    if char_ngrams is not None:
        for word in found:
            edged = f" {word} "
            for n in range(char_ngrams[0], char_ngrams[1] + 1):
                counts.update("~" + edged[i : i + n] for i in range(len(edged) - n + 1))
    weighed = {term: ngram_weight * count for term, count in counts.items()}
    return weighed | Counter(found)


def document_frequencies(documents: list[dict[str, float]]) -> Counter[str]:
    """In how many documents each term is."""
    return Counter(term for document in documents for term in document)
