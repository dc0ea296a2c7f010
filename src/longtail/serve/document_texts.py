"""Documents as requests have them -> texts, made of columns exactly as `fit` read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.datasets.columns import read_text
from longtail.serve.problems import Problem
from longtail.serve.schemas import MAX_CHARACTERS
from longtail.serve.served_model import Snapshot


def as_texts(snapshot: Snapshot, documents: Sequence[str | Mapping[str, Any]]) -> list[str]:
    """Return the text of each document.

    A record that has none of the model's columns may have its text as ``text``.

    Raises
    ------
    Problem
        422 where a record lacks a column, or a text is too long.
    """
    return [_as_text(snapshot, document, i) for i, document in enumerate(documents)]


def _as_text(snapshot: Snapshot, document: str | Mapping[str, Any], i: int) -> str:
    if isinstance(document, str):
        return document
    columns, fields = snapshot.text_columns, snapshot.fields
    try:
        text = read_text(document, columns, fields)
        text.encode("utf-8")
    except ValueError as error:
        is_record = fields is not None and any(name in document for name in columns)
        if is_record and not isinstance(error, UnicodeError):
            raise Problem(422, f"document {i}: {error}.", document=i) from None
        expected = " and ".join(map(repr, columns))
        raise Problem(
            422,
            f"document {i} must be a text, or an object with {expected}, strings or numbers.",
            document=i,
        ) from None
    if len(text) > MAX_CHARACTERS:
        raise Problem(
            422, f"document {i} is longer than {MAX_CHARACTERS:,} characters.", document=i
        )
    return text
