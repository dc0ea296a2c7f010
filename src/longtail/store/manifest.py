"""Header and manifest of a model file: layout, names and dtypes, strict JSON, audit.

In: kind, parameters and arrays, or the bytes of a manifest. Out: the manifest as canonical JSON, or
its audited entries. Nothing that a file says is believed before it is checked.
``docs/model-format.md`` gives the layout byte by byte.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from longtail._parallel import parallel_for
from longtail.store.strict_json import FaultError, parse_json, shown, to_json

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Array: TypeAlias = npt.NDArray[Any]
FORMAT_NUMBER = 1

# The first twelve bytes are the same in every format: a magic (as PNG's, a transfer in text mode
# changes it) and the format number. Then follow a zero, the lengths of manifest and file and
# the SHA-256 of these 32 bytes and the manifest.
MAGIC = b"\x89LTM\r\n\x1a\n"
PREAMBLE = struct.Struct("<8sI")
HEADER = struct.Struct("<8sIIQQ32s")
CHECKSUM_OFFSET = HEADER.size - 32
_ALIGNMENT = 64  # bytes: a cache line, and more than any dtype needs
LARGEST_MANIFEST = 4 << 20  # bytes; parsing the worst JSON of this size takes some 110 MB
_SERIAL_BYTES = 1 << 20  # hashing less than this is faster without threads
_PLAIN_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_TEXT_DTYPE = re.compile(r"(<U|\|S)[1-9][0-9]{0,6}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,127}")
_VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_DTYPES_ACCEPTED = "bool, int8-64, uint8-64, float16-64, fixed-width str ('<U') or bytes ('|S')"
_NAME_ACCEPTED = "1 to 128 ASCII letters, digits and '_./-', beginning with a letter or '_'"


def is_allowed(dtype: object) -> bool:
    """Return whether a dtype string is one that files may hold."""
    return isinstance(dtype, str) and (dtype in _PLAIN_DTYPES or matches(_TEXT_DTYPE, dtype))


def matches(pattern: re.Pattern[str], value: object) -> bool:
    """Return whether a value is a string of the pattern."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def align(offset: int) -> int:
    """Return the first multiple of 64 at or after an offset."""
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def raw_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """Return a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def hash_buffers(buffers: list[npt.NDArray[np.uint8]]) -> list[str]:
    """Return the SHA-256 of each buffer; in threads if large, for hashing frees the interpreter."""
    digests = [""] * len(buffers)

    def hash_block(first: int, last: int) -> None:
        digests[first:last] = map(_sha256, buffers[first:last])

    work = np.cumsum([0, *(buffer.nbytes for buffer in buffers)])
    parallel_for(hash_block, work, -1 if work[-1] >= _SERIAL_BYTES else 1)
    return digests


def _sha256(buffer: npt.NDArray[np.uint8]) -> str:
    """Return the SHA-256 of one buffer in hexadecimal."""
    return hashlib.sha256(buffer.data).hexdigest()


def sorted_names(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names in the order of the file, which is not that of the caller's dict."""
    for name in arrays:
        _check_name("An array's name", name)
    return sorted(arrays)


def _check_name(what: str, name: object) -> None:
    """Refuse a name that a manifest cannot hold."""
    if not matches(NAME, name):
        raise ValueError(f"{what} must be {_NAME_ACCEPTED}; got {shown(name)}.")


def as_stored(name: str, array: Array) -> Array:
    """Return the array C-contiguous and little-endian, or say why it cannot be stored."""
    if type(array) not in (np.ndarray, np.memmap):
        raise TypeError(f"Array {name!r} must be a plain numpy array; got {type(array).__name__}.")
    if array.dtype.kind == "O":
        raise TypeError(
            f"Array {name!r} holds Python objects, which a model file never does. "
            "Convert it first: labels that are strings by pack_texts, numbers by astype."
        )
    little = array.dtype.str.replace(">", "<")
    if not is_allowed(little):
        raise TypeError(f"Array {name!r} must be {_DTYPES_ACCEPTED}; got {array.dtype}.")
    return np.asarray(array, dtype=little, order="C")


def build_manifest(
    kind: str,
    parameters: Mapping[str, JSON],
    names: list[str],
    stored: list[Array],
) -> bytes:
    """Return the manifest as canonical ASCII JSON."""
    _check_name("kind", kind)
    for key, value in parameters.items():
        _check_parameter(key, value)
    manifest = {
        "format_number": FORMAT_NUMBER,
        "library_version": _library_version(),
        "kind": kind,
        "parameters": dict(parameters),
        "arrays": describe_arrays(names, stored),
    }
    return _check_manifest_size(to_json(manifest))


def _check_parameter(key: object, value: object) -> None:
    """Refuse a parameter that a reader would not get back equal."""
    if not isinstance(key, str):
        raise TypeError(f"The name of a parameter must be a string; got {shown(key)}.")
    try:
        # Two levels deeper than alone: inside "parameters", inside the manifest.
        returned = parse_json(b"[[" + to_json(value) + b"]]")[0][0]
    except (FaultError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"Parameter {key!r} is not plain JSON: {shown(value)} ({error})."
        ) from None
    if returned != value:
        raise ValueError(
            f"Parameter {key!r} would come back changed: {shown(value)} as {shown(returned)}. "
            "Use None, bool, int, float, str, and lists and dicts (with string keys) of them."
        )


def _check_manifest_size(manifest: bytes) -> bytes:
    """Refuse a manifest that no reader would accept."""
    if len(manifest) > LARGEST_MANIFEST:
        raise ValueError(
            f"The manifest would take {len(manifest):,} bytes; {LARGEST_MANIFEST:,} are accepted. "
            "Put large parameters into arrays."
        )
    return manifest


def _library_version() -> str:
    """Return the installed version; a source tree that is merely on the path has none."""
    try:
        return metadata.version("longtail")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def file_blocks(manifest: bytes, stored: list[Array]) -> Iterator[bytes | memoryview]:
    """Yield the file's bytes in order: header, manifest, then each array after its padding."""
    end = HEADER.size + len(manifest)
    yield _header(manifest, _file_length(end, stored))
    yield manifest
    for array in stored:
        yield bytes(align(end) - end)
        yield raw_bytes(array).data
        end = align(end) + array.nbytes


def _file_length(manifest_end: int, stored: list[Array]) -> int:
    """Return where the last array ends; without any, the manifest."""
    end = manifest_end
    for array in stored:
        end = align(end) + array.nbytes
    return end


def _header(manifest: bytes, file_length: int) -> bytes:
    """Return the header, with the checksum of itself and the manifest."""
    header = HEADER.pack(MAGIC, FORMAT_NUMBER, 0, len(manifest), file_length, bytes(32))
    return header[:CHECKSUM_OFFSET] + hashlib.sha256(header[:CHECKSUM_OFFSET] + manifest).digest()


@dataclass(frozen=True)
class ArrayEntry:
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


def describe_arrays(names: list[str], stored: list[Array]) -> list[dict[str, Any]]:
    """Return one manifest entry per array; offsets count from the first array."""
    digests = hash_buffers([raw_bytes(array) for array in stored])
    entries, end = [], 0
    for name, array, digest in zip(names, stored, digests, strict=True):
        start = align(end)
        end = start + array.nbytes
        entries.append(
            {
                "name": name,
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "offset": start,
                "nbytes": array.nbytes,
                "sha256": digest,
            }
        )
    return entries


def audit_manifest(manifest: Any) -> dict[str, Any]:
    """Check the manifest's own fields; those of the arrays come after."""
    _audit_fields("manifest", manifest, _MANIFEST_FIELDS)
    if manifest["format_number"] != FORMAT_NUMBER:
        raise FaultError(f"has a wrong format_number in its manifest: not {FORMAT_NUMBER}")
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
    """Return whether a JSON value can be a size in bytes or elements."""
    return type(value) is int and 0 <= value < 2**63


def _is_shape(value: object) -> bool:
    """Return whether a JSON value can be a shape."""
    return isinstance(value, list) and len(value) <= 32 and all(map(_is_size, value))


_MANIFEST_FIELDS: dict[str, Callable[[Any], bool]] = {
    "format_number": lambda value: type(value) is int,
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


def audit_entries(items: list[Any], manifest_end: int, length: int) -> list[ArrayEntry]:
    """Check the arrays' entries: sorted by name, back to back, from the manifest to the end."""
    entries: list[ArrayEntry] = []
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


def _audit_entry(item: Any, first: int) -> ArrayEntry:
    """Check one array's entry by itself; offsets count from the first array's place."""
    _audit_fields("array entry", item, _ENTRY_FIELDS)
    dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
    entry = ArrayEntry(
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
