"""`ModelFile`, an opened file; `ModelFileError`, what is wrong with one; texts in arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.exceptions import ModelFileError
from longtail.store.layout import Array, shown


@dataclass(frozen=True)
class ModelFile:
    """An opened model file.

    The arrays are views of one private memory map, which lives as long as any of them: what is
    written to one stays in this process and never reaches the file. Replacing the file by
    `write_model` does not disturb them.

    Attributes
    ----------
    path : Path
        The file, as it was asked for.
    kind : str
        What the arrays are; the caller's word.
    parameters : dict
        Plain JSON values.
    arrays : dict of str to ndarray
        C-contiguous, little-endian, aligned to 64 bytes; ordered by name.
    format_number : int
        The format of the file.
    library_version : str
        The version of longtail that wrote it.
    """

    path: Path
    kind: str
    parameters: dict[str, Any]
    arrays: dict[str, Array]
    format_number: int
    library_version: str

    def error(self, problem: str) -> ModelFileError:
        """Return the error that says what is wrong with this file, for the caller's own audit."""
        return ModelFileError(self.path, problem)

    def array(
        self, name: str, *, dtype: npt.DTypeLike | None = None, ndim: int | None = None
    ) -> Array:
        """Return one array, or say that it is missing or not as expected.

        Parameters
        ----------
        name : str
            Name of the array.
        dtype : dtype, optional
            The dtype it must have.
        ndim : int, optional
            The number of dimensions it must have.

        Returns
        -------
        array : ndarray
            The memory-mapped view.

        Raises
        ------
        ModelFileError
            The array is missing, or has another dtype or number of dimensions.
        """
        array = self.arrays.get(name)
        if array is None:
            raise self.error(f"has no array {name!r}; it has {shown(list(self.arrays))}")
        if dtype is not None and array.dtype != np.dtype(dtype):
            raise self.error(f"array {name!r} must be {np.dtype(dtype)}; it is {array.dtype}")
        if ndim is not None and array.ndim != ndim:
            raise self.error(f"array {name!r} must have {ndim} dimension(s); it has {array.ndim}")
        return array

    def texts(self, name: str) -> list[str]:
        """Return the texts that `pack_texts` packed under a name.

        Parameters
        ----------
        name : str
            The name given to `pack_texts`.

        Returns
        -------
        texts : list of str
            In the order in which they were packed.

        Raises
        ------
        ModelFileError
            The two arrays are missing or do not fit each other, or are not UTF-8.
        """
        offsets = self.array(f"{name}.offsets", dtype=np.int64, ndim=1)
        utf8 = self.array(f"{name}.utf8", dtype=np.uint8, ndim=1)
        if not _cuts_fit(offsets, utf8.size):
            raise self.error(f"array '{name}.offsets' does not cut '{name}.utf8' into texts")
        try:
            return _cut_texts(utf8.tobytes(), offsets.tolist())
        except UnicodeDecodeError as error:
            raise self.error(f"array '{name}.utf8' is not UTF-8: {error.reason}") from None


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
    encoded = [_encode_text(name, number, text) for number, text in enumerate(texts)]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    utf8 = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return {f"{name}.offsets": offsets, f"{name}.utf8": utf8}


def _encode_text(name: str, number: int, text: str) -> bytes:
    """Return one text as UTF-8; lone surrogates, which Python strings may hold, pass."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be strings; element {number} is {shown(text)}.")
    return text.encode("utf-8", "surrogatepass")


def _cuts_fit(offsets: npt.NDArray[np.int64], n_bytes: int) -> bool:
    """Tell whether offsets go from 0 to n_bytes without a step back."""
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != n_bytes:
        return False
    return bool(np.all(offsets[1:] >= offsets[:-1]))


def _cut_texts(utf8: bytes, offsets: list[int]) -> list[str]:
    """Return the texts between successive offsets."""
    return [utf8[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(offsets)]
