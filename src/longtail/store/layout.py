"""What writing and reading share: the layout of a file, names and dtypes, checksums."""

from __future__ import annotations

import hashlib
import re
import reprlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail._parallel import parallel_for

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Array: TypeAlias = npt.NDArray[Any]
FORMAT_NUMBER = 1

# The first twelve bytes are the same in every format: a magic (as PNG's, a transfer in text mode
# changes it) and the format number. In format 1 follow a zero, the lengths of manifest and file and
# the SHA-256 of these 32 bytes and the manifest.
MAGIC = b"\x89LTM\r\n\x1a\n"
PREAMBLE = struct.Struct("<8sI")
HEADER = struct.Struct("<8sIIQQ32s")
SIGNED = HEADER.size - 32
_ALIGNMENT = 64  # bytes: a cache line, and more than any dtype needs
LARGEST_MANIFEST = 4 << 20  # bytes; parsing the worst JSON of this size takes some 110 MB
_SERIAL_BYTES = 1 << 20  # hashing less than this is faster without threads
_PLAIN_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_TEXT_DTYPE = re.compile(r"(<U|\|S)[1-9][0-9]{0,6}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,127}")
_SHORT = reprlib.Repr()  # a few elements, a few levels, whatever the value
_SHORT.maxstring = _SHORT.maxother = 80


class FaultError(Exception):
    """What is wrong with a file whose name is not known here; `open_model` adds the name."""


def is_allowed(dtype: object) -> bool:
    """Tell whether a dtype string is one that files may hold."""
    return isinstance(dtype, str) and (dtype in _PLAIN_DTYPES or matches(_TEXT_DTYPE, dtype))


def matches(pattern: re.Pattern[str], value: object) -> bool:
    """Tell whether a value is a string of the pattern."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def align(place: int) -> int:
    """Return the first multiple of 64 at or after a place."""
    return -(-place // _ALIGNMENT) * _ALIGNMENT


def raw_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """Return a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def hash_buffers(buffers: list[npt.NDArray[np.uint8]]) -> list[str]:
    """Return the SHA-256 of each buffer; in threads if large, for hashing frees the interpreter."""
    digests = [""] * len(buffers)

    def hash_some(first: int, last: int) -> None:
        digests[first:last] = map(_sha256, buffers[first:last])

    work = np.cumsum([0, *(buffer.nbytes for buffer in buffers)])
    parallel_for(hash_some, work, -1 if work[-1] >= _SERIAL_BYTES else 1)
    return digests


def _sha256(buffer: npt.NDArray[np.uint8]) -> str:
    """Return the SHA-256 of one buffer in hexadecimal."""
    return hashlib.sha256(buffer.data).hexdigest()


def shown(value: object) -> str:
    """Return a value's repr, cut to what a message can show."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python agrees to print
        return f"a {type(value).__name__}"
