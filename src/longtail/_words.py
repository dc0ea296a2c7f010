"""Words for people: numbers with their nouns."""

from __future__ import annotations


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "class"), count(2_000, "class"), count(0, "document")
    ('1 class', '2,000 classes', '0 documents')
    """
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"
