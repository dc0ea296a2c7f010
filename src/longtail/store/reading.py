"""Reading: read, audit, only then construct. Nothing that a file says is believed unchecked."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from longtail.exceptions import ModelFileError
from longtail.store.layout import (
    FORMAT_NUMBER,
    HEADER,
    LARGEST_MANIFEST,
    MAGIC,
    NAME,
    PREAMBLE,
    SIGNED,
    Array,
    FaultError,
    align,
    hash_buffers,
    is_allowed,
    matches,
    raw_bytes,
    shown,
)
from longtail.store.model_file import ModelFile
from longtail.store.strict_json import parse_json

_VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def open_model(path: str | os.PathLike[str], *, verify: bool = True) -> ModelFile:
    """Open a model file: check it, then memory-map its arrays.

    The checksum of the manifest comes first, then the audit of all that the manifest says, then,
    with `verify`, the contents of the arrays. Without it the time does not depend on their size.

    Parameters
    ----------
    path : path-like
        The file; a symbolic link is followed.
    verify : bool, default=True
        Compare every array with its SHA-256. Without it a damaged array goes unnoticed.

    Returns
    -------
    model : ModelFile
        Kind, parameters and arrays.

    Raises
    ------
    ModelFileError
        The file is not a model file, is damaged or inconsistent, or has a newer format.
    OSError
        The system could not reach the file: FileNotFoundError, PermissionError.
    """
    try:
        with _open_regular(path) as file:
            read = _choose_reader(file)
            return read(Path(path), file, verify)
    except FaultError as fault:
        raise ModelFileError(path, str(fault)) from None


def read_checksum(path: str | os.PathLike[str]) -> str:
    """Return the checksum that tells this model file from any other.

    It is the SHA-256 of header and manifest, which hold the SHA-256 of every array. Only the header
    is read, and nothing is verified: `open_model` does that.

    Parameters
    ----------
    path : path-like
        The file; a symbolic link is followed.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    ModelFileError
        The file is not a model file, or has a newer format.
    OSError
        The system could not reach the file: FileNotFoundError, PermissionError.
    """
    try:
        with _open_regular(path) as file:
            _choose_reader(file)  # refuses what is no model file
            file.seek(SIGNED)
            checksum = file.read(HEADER.size - SIGNED)
    except FaultError as fault:
        raise ModelFileError(path, str(fault)) from None
    return checksum.hex()


@contextmanager
def _open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file; a pipe or device would block or never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FaultError("is not a regular file; a model is one file")
    with open(path, "rb", buffering=0) as file:
        yield file


def _choose_reader(file: BinaryIO) -> Callable[[Path, BinaryIO, bool], ModelFile]:
    """Return the reader for the file's format number."""
    start = file.read(PREAMBLE.size)
    if len(start) < PREAMBLE.size or not start.startswith(MAGIC):
        raise FaultError(f"is not a longtail model file (it begins with {start[:8]!r})")
    number: int = PREAMBLE.unpack(start)[1]
    if number > FORMAT_NUMBER:
        raise FaultError(
            f"has format {number}; this version of longtail reads up to {FORMAT_NUMBER}. "
            "Upgrade longtail to open it, or the file is damaged"
        )
    if number not in _READERS:
        raise FaultError(f"has format {number}, which never existed")
    return _READERS[number]


def _read_format_1(path: Path, file: BinaryIO, verify: bool) -> ModelFile:
    """Read a file of format 1: header, manifest, audit, map, contents."""
    length = os.fstat(file.fileno()).st_size
    text = _read_manifest(file, length)
    manifest = _audit_manifest(parse_json(text))
    entries = _audit_entries(manifest["arrays"], HEADER.size + len(text), length)
    mapping = _map(file, length)
    arrays = {entry.name: entry.view(mapping) for entry in entries}
    if verify:
        _verify_padding(mapping, entries, HEADER.size + len(text))
        _verify_arrays(entries, arrays)
    return ModelFile(path=path, **{**manifest, "arrays": arrays})


# By format number. A reader stays here for as long as files of its format may exist.
_READERS: dict[int, Callable[[Path, BinaryIO, bool], ModelFile]] = {1: _read_format_1}


def _read_manifest(file: BinaryIO, length: int) -> bytes:
    """Return the manifest's bytes, once lengths and checksum agree with the header."""
    file.seek(0)
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        raise FaultError(f"is cut short: {length} bytes, less than the header")
    _, _, zero, manifest_length, file_length, digest = HEADER.unpack(header)
    if file_length != length:
        change = "is cut short" if length < file_length else "has been extended"
        raise FaultError(f"{change}: it has {length} bytes, its header says {file_length}")
    if zero != 0 or manifest_length > min(LARGEST_MANIFEST, length - HEADER.size):
        raise FaultError(f"has a damaged header: it announces {manifest_length} bytes of manifest")
    manifest = file.read(manifest_length)
    if hashlib.sha256(header[:SIGNED] + manifest).digest() != digest:
        raise FaultError("has a damaged header or manifest: its SHA-256 is not the recorded one")
    return manifest


def _map(file: BinaryIO, length: int) -> mmap.mmap:
    """Memory-map the whole file for reading."""
    try:
        # Copy on write, not read-only: pages are shared all the same, and numba compiles every
        # kernel a second time for arrays it may not write to.
        return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
    except (OSError, ValueError, OverflowError) as error:
        raise FaultError(f"cannot be memory-mapped ({length} bytes): {error}") from None


def _audit_manifest(manifest: Any) -> dict[str, Any]:
    """Check the manifest's own fields; those of the arrays come after."""
    _audit_fields("manifest", manifest, _MANIFEST_FIELDS)
    return cast(dict[str, Any], manifest)


def _audit_fields(what: str, value: Any, fields: Mapping[str, Callable[[Any], bool]]) -> None:
    """Check that a value is an object with exactly these fields, each acceptable."""
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise FaultError(
            f"has a wrong {what}: {shown(value)} instead of the fields {', '.join(fields)}"
        )
    for field, accepts in fields.items():
        if not accepts(value[field]):
            raise FaultError(f"has a wrong {field} in its {what}: {shown(value[field])}")


def _is_size(value: object) -> bool:
    """Tell whether a JSON value can be a size in bytes or elements."""
    return type(value) is int and 0 <= value < 2**63


def _is_shape(value: object) -> bool:
    """Tell whether a JSON value can be a shape."""
    return isinstance(value, list) and len(value) <= 32 and all(map(_is_size, value))


_MANIFEST_FIELDS: dict[str, Callable[[Any], bool]] = {
    "format_number": lambda value: type(value) is int and value == 1,
    "library_version": lambda value: matches(_VERSION, value),
    "kind": lambda value: matches(NAME, value),
    "parameters": lambda value: isinstance(value, dict),
    "arrays": lambda value: isinstance(value, list),
}

_ENTRY_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: matches(NAME, value),
    "dtype": is_allowed,
    "shape": _is_shape,
    "offset": _is_size,
    "nbytes": _is_size,
    "sha256": lambda value: matches(_SHA256, value),
}


@dataclass(frozen=True)
class _Entry:
    """One array of the manifest, audited by itself, and where in the file it begins."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int
    sha256: str
    start: int

    def view(self, mapping: mmap.mmap) -> Array:
        """Return the view of the array; it keeps the mapping alive."""
        return np.ndarray(self.shape, self.dtype, buffer=mapping, offset=self.start)


def _audit_entries(items: list[Any], manifest_end: int, length: int) -> list[_Entry]:
    """Check the arrays' entries: sorted by name, back to back, from the manifest to the end."""
    entries: list[_Entry] = []
    name, end = "", manifest_end
    for item in items:
        entry = _audit_entry(item, align(manifest_end))
        if entry.name <= name:
            raise FaultError(f"has array {entry.name!r} twice or out of order")
        if entry.start != align(end):
            raise FaultError(f"has array {entry.name!r} at {entry.start} instead of {align(end)}")
        entries.append(entry)
        name, end = entry.name, entry.start + entry.nbytes
    if end != length:
        raise FaultError(f"has {length} bytes, but its arrays end at {end}")
    return entries


def _audit_entry(item: Any, first: int) -> _Entry:
    """Check one array's entry by itself; offsets count from the first array's place."""
    _audit_fields("array entry", item, _ENTRY_FIELDS)
    dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
    entry = _Entry(
        item["name"], dtype, shape, item["nbytes"], item["sha256"], first + item["offset"]
    )
    # numpy counts bytes in 63 bits, and takes an empty dimension for one while it does.
    countable = math.prod(max(size, 1) for size in shape) * dtype.itemsize < 2**63
    if entry.nbytes != math.prod(shape) * dtype.itemsize or not countable:
        raise FaultError(
            f"has array {entry.name!r} of shape {shown(shape)} and dtype {dtype.str} "
            f"in {entry.nbytes} bytes, which cannot be"
        )
    return entry


def _verify_padding(mapping: mmap.mmap, entries: list[_Entry], manifest_end: int) -> None:
    """Check that the bytes between the parts are zero: nothing hides in a model file."""
    end = manifest_end
    for entry in entries:
        if any(mapping[end : entry.start]):
            raise FaultError(f"is damaged: the padding before array {entry.name!r} is not zero")
        end = entry.start + entry.nbytes


def _verify_arrays(entries: list[_Entry], arrays: dict[str, Array]) -> None:
    """Compare every array with its recorded SHA-256, and its values with what its dtype allows."""
    digests = hash_buffers([raw_bytes(array) for array in arrays.values()])
    for entry, digest in zip(entries, digests, strict=True):
        if digest != entry.sha256:
            raise FaultError(f"is damaged: array {entry.name!r} is not what its SHA-256 says")
        if not _holds_valid_values(arrays[entry.name]):
            raise FaultError(f"has values in array {entry.name!r} that {entry.dtype} forbids")


def _holds_valid_values(array: Array) -> bool:
    """Tell whether booleans are 0 or 1 and characters are Unicode; any bits are a number."""
    if array.dtype.kind == "b":
        return bool(array.view(np.uint8).max(initial=0) <= 1)
    if array.dtype.kind == "U":
        return bool(array.reshape(-1).view("<u4").max(initial=0) <= 0x10FFFF)
    return True
