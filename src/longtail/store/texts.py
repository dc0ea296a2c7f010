"""Texts of any length as two arrays: where each begins, and the UTF-8 bytes of all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from longtail.store.manifest import Array
from longtail.store.strict_json import shown


def pack_texts(name: str, texts: Iterable[str]) -> dict[str, Array]:
    """Pack texts of any length into two arrays: where each begins, and their UTF-8 bytes.

    A fixed-width string array takes four bytes for every character of its longest text, for each
    text; this takes what the texts need, and eight bytes each.

    Parameters
    ----------
    name : str
        What to call them; `ModelFile.texts` finds them by it.
    texts : iterable of str
        Labels, terms.

    Returns
    -------
    arrays : dict of str to ndarray
        ``name.offsets`` (n_texts + 1,) int64 and ``name.utf8`` (n_bytes,) uint8, for `write_model`.

    Raises
    ------
    TypeError
        An element is not a str.

    Examples
    --------
    >>> pack_texts("terms", ["bear", "ours"])["terms.offsets"]
    array([0, 4, 8])
    """
    encoded = [_encode_text(name, i, text) for i, text in enumerate(texts)]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    utf8 = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return {f"{name}.offsets": offsets, f"{name}.utf8": utf8}


def unpack_texts(name: str, offsets: Array, utf8: Array) -> list[str]:
    """Return the texts that `pack_texts` packed.

    Raises
    ------
    ValueError
        The arrays do not fit each other, or are not UTF-8.
    """
    if not _are_offsets(offsets, utf8.size):
        raise ValueError(f"array '{name}.offsets' does not cut '{name}.utf8' into texts")
    joined = utf8.tobytes()
    try:
        return [
            joined[start:stop].decode("utf-8", "surrogatepass")
            for start, stop in pairwise(offsets.tolist())
        ]
    except UnicodeDecodeError as error:
        raise ValueError(f"array '{name}.utf8' is not UTF-8: {error.reason}") from None


def _encode_text(name: str, i: int, text: str) -> bytes:
    """Return one text as UTF-8; lone surrogates, which Python strings may hold, pass."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be strings; element {i} is {shown(text)}.")
    return text.encode("utf-8", "surrogatepass")


def _are_offsets(offsets: Array, n_bytes: int) -> bool:
    """Return whether offsets go from 0 to n_bytes without a fall."""
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != n_bytes:
        return False
    return bool(np.all(offsets[1:] >= offsets[:-1]))
