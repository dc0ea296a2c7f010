"""Words for people: numbers with their nouns, and names that are missing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MAX_NAMES = 40  # that an error lists


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "class"), count(2_000, "class"), count(0, "document")
    ('1 class', '2,000 classes', '0 documents')
    """
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def describe_missing(noun: str, name: str, names: Iterable[object]) -> str:
    """Say that there is no column, or field, of a name, and which there are.

    Examples
    --------
    >>> describe_missing("column", "boby", ["id", "body"])
    "there is no column 'boby'; there are 'id', 'body'; did you mean 'body'?"
    """
    known = list(names)
    shown = ", ".join(map(repr, known[:_MAX_NAMES])) or "none"
    more = f" and {len(known) - _MAX_NAMES} more" if len(known) > _MAX_NAMES else ""
    close = difflib.get_close_matches(name, list(map(str, known)), 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no {noun} {name!r}; there are {shown}{more}{hint}"
