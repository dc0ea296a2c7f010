"""Model files: named arrays and a manifest, in one file that is safe to open.

In: a kind, parameters (plain JSON) and named arrays. Out: one file, written beside its target and
renamed into place; or the same things back, the arrays as private views of the mapped file. This
module knows no estimator. ``docs/model-format.md`` gives the layout byte by byte.

Reading is: read, audit, only then construct. No code is loaded from a file, and whatever is wrong
with it is a `ModelFileError`.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from longtail.exceptions import ModelFileError
from longtail.store.files import open_regular, replace_file
from longtail.store.manifest import (
    CHECKSUM_OFFSET,
    FORMAT_NUMBER,
    HEADER,
    JSON,
    LARGEST_MANIFEST,
    MAGIC,
    PREAMBLE,
    Array,
    ArrayEntry,
    as_stored,
    audit_entries,
    audit_manifest,
    build_manifest,
    file_blocks,
    hash_buffers,
    raw_bytes,
    sorted_names,
)
from longtail.store.strict_json import FaultError, parse_json, shown
from longtail.store.texts import unpack_texts


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
        """Return one array, a view of the map.

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
        """Return the texts that `pack_texts` packed under a name, in their order.

        Raises
        ------
        ModelFileError
            The two arrays are missing or do not fit each other, or are not UTF-8.
        """
        offsets = self.array(f"{name}.offsets", dtype=np.int64, ndim=1)
        utf8 = self.array(f"{name}.utf8", dtype=np.uint8, ndim=1)
        try:
            return unpack_texts(name, offsets, utf8)
        except ValueError as error:
            raise self.error(str(error)) from None


# ---- reading


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
        with open_regular(path) as file:
            _check_format_number(file)
            return _read(Path(path), file, verify)
    except FaultError as fault:
        raise ModelFileError(path, str(fault)) from None


def read_checksum(path: str | os.PathLike[str]) -> str:
    """Return the checksum that tells this model file from any other.

    It is the SHA-256 of header and manifest, which hold the SHA-256 of every array, in hexadecimal
    digits. Only the header is read, and nothing is verified: `open_model` does that, and raises the
    same errors.
    """
    try:
        with open_regular(path) as file:
            _check_format_number(file)
            file.seek(CHECKSUM_OFFSET)
            checksum = file.read(HEADER.size - CHECKSUM_OFFSET)
    except FaultError as fault:
        raise ModelFileError(path, str(fault)) from None
    return checksum.hex()


def _check_format_number(file: BinaryIO) -> None:
    """Refuse what is no model file, or one of another format."""
    start = file.read(PREAMBLE.size)
    if len(start) < PREAMBLE.size or not start.startswith(MAGIC):
        raise FaultError(f"is not a longtail model file (it begins with {start[:8]!r})")
    format_number: int = PREAMBLE.unpack(start)[1]
    if format_number > FORMAT_NUMBER:
        raise FaultError(
            f"has format {format_number}; this version of longtail reads up to {FORMAT_NUMBER}. "
            "Upgrade longtail to open it, or the file is damaged"
        )
    if format_number != FORMAT_NUMBER:
        raise FaultError(f"has format {format_number}, which never existed")


def _read(path: Path, file: BinaryIO, verify: bool) -> ModelFile:
    """Read a file: header, manifest, audit, map, contents."""
    length = os.fstat(file.fileno()).st_size
    text = _read_manifest(file, length)
    manifest = audit_manifest(parse_json(text))
    entries = audit_entries(manifest["arrays"], HEADER.size + len(text), length)
    mapping = _map(file, length)
    arrays = {entry.name: entry.view(mapping) for entry in entries}
    if verify:
        _verify_padding(mapping, entries, HEADER.size + len(text))
        _verify_arrays(entries, arrays)
    return ModelFile(path=path, **{**manifest, "arrays": arrays})


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
    if hashlib.sha256(header[:CHECKSUM_OFFSET] + manifest).digest() != digest:
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


def _verify_padding(mapping: mmap.mmap, entries: list[ArrayEntry], manifest_end: int) -> None:
    """Check that the bytes between the parts are zero: nothing hides in a model file."""
    end = manifest_end
    for entry in entries:
        if any(mapping[end : entry.start]):
            raise FaultError(f"is damaged: the padding before array {entry.name!r} is not zero")
        end = entry.start + entry.nbytes


def _verify_arrays(entries: list[ArrayEntry], arrays: dict[str, Array]) -> None:
    """Compare every array with its recorded SHA-256, and its values with what its dtype allows."""
    digests = hash_buffers([raw_bytes(array) for array in arrays.values()])
    for entry, digest in zip(entries, digests, strict=True):
        if digest != entry.sha256:
            raise FaultError(f"is damaged: array {entry.name!r} is not what its SHA-256 says")
        if not _holds_valid_values(arrays[entry.name]):
            raise FaultError(f"has values in array {entry.name!r} that {entry.dtype} forbids")


def _holds_valid_values(array: Array) -> bool:
    """Return whether booleans are 0 or 1 and characters are Unicode; any bits are a number."""
    if array.dtype.kind == "b":
        return bool(array.view(np.uint8).max(initial=0) <= 1)
    if array.dtype.kind == "U":
        return bool(array.reshape(-1).view("<u4").max(initial=0) <= 0x10FFFF)
    return True


# ---- writing


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    parameters: Mapping[str, JSON],
    arrays: Mapping[str, Array],
) -> None:
    """Write a model file, or replace one, at once or not at all.

    The same input gives the same bytes. The file is written under a temporary name in the same
    folder, made durable and renamed: a reader of `path` sees the old model or the new one. After
    a failure the old one is there. So it is after a kill or a power cut, which can leave a file
    ``.longtail-*.tmp`` behind until the next save in the folder.

    Parameters
    ----------
    path : path-like
        The file. A symbolic link is followed. What is there already must be a model file or empty.
    kind : str
        What the arrays are, for the reader to choose by.
    parameters : mapping of str to JSON
        None, booleans, 64-bit integers, finite floats, strings, lists and dicts of them.
    arrays : mapping of str to ndarray
        Booleans, integers, floats up to 64 bit, fixed-width strings and bytes. They must not change
        meanwhile.

    Raises
    ------
    ValueError, TypeError
        An argument cannot be stored; nothing was written.
    ModelFileError
        `path` is something other than a model file, and is left as it is.
    OSError
        The system could not write it; what was there is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from longtail.store.container import open_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/a.longtail", "centroids", {"C": 1.0}, {"weights": np.ones(3)})
    ...     open_model(f"{folder}/a.longtail").arrays["weights"]
    array([1., 1., 1.])
    """
    target = Path(os.path.realpath(path))
    mode = _check_target(target)
    stored = [as_stored(name, arrays[name]) for name in sorted_names(arrays)]
    manifest = build_manifest(kind, parameters, sorted_names(arrays), stored)
    replace_file(target, file_blocks(manifest, stored), mode)


def _check_target(target: Path) -> int | None:
    """Refuse to replace what is not a model; return the permissions of what will be replaced."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it, then save again.")
    if not target.exists():
        return None
    try:
        with open_regular(target) as file:
            start = file.read(len(MAGIC))
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FaultError:
        raise ModelFileError(
            target, "is not a regular file, so no model is saved over it"
        ) from None
    if start not in (b"", MAGIC):
        raise ModelFileError(
            target, "exists and is not a model file; it is left as it is. Save under another name"
        )
    return mode
