"""Writing: check what is given, describe it in a manifest, replace the file at once."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from longtail.exceptions import ModelFileError
from longtail.store.layout import (
    FORMAT_NUMBER,
    HEADER,
    JSON,
    LARGEST_MANIFEST,
    MAGIC,
    NAME,
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
from longtail.store.strict_json import parse_json, to_json

_DTYPES_ACCEPTED = "bool, int8-64, uint8-64, float16-64, fixed-width str ('<U') or bytes ('|S')"
_NAME_ACCEPTED = "1 to 128 ASCII letters, digits and '_./-', beginning with a letter or '_'"


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    parameters: Mapping[str, JSON],
    arrays: Mapping[str, Array],
    *,
    format_number: int = FORMAT_NUMBER,
) -> None:
    """Write a model file, or replace one, at once or not at all.

    The same input gives the same bytes. The file is written under a temporary name in the same
    folder, made durable and renamed: whoever opens `path` sees the old model or the new one. After
    a failure the old one is there. So it is after a kill or a power cut, which can leave a file
    ``.longtail-*.tmp`` behind that may be deleted.

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
    format_number : int, default=1
        The format to write.

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
    >>> from longtail.store import open_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/a.longtail", "centroids", {"C": 1.0}, {"weights": np.ones(3)})
    ...     open_model(f"{folder}/a.longtail").arrays["weights"]
    array([1., 1., 1.])
    """
    if format_number != FORMAT_NUMBER:
        raise ValueError(f"format_number must be {FORMAT_NUMBER}; got {shown(format_number)}.")
    target = Path(os.path.realpath(path))
    mode = _check_target(target)
    stored = [_storable(name, arrays[name]) for name in _sorted_names(arrays)]
    manifest = _build_manifest(kind, parameters, _sorted_names(arrays), stored)
    _replace_file(target, _pieces(manifest, stored), mode)


def _sorted_names(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names in the order of the file, which is not that of the caller's dict."""
    for name in arrays:
        _check_name("An array's name", name)
    return sorted(arrays)


def _check_name(what: str, name: object) -> None:
    """Refuse a name that a manifest cannot hold."""
    if not matches(NAME, name):
        raise ValueError(f"{what} must be {_NAME_ACCEPTED}; got {shown(name)}.")


def _storable(name: str, array: Array) -> Array:
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


def _build_manifest(
    kind: str, parameters: Mapping[str, JSON], names: list[str], stored: list[Array]
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
        "arrays": _describe(names, stored),
    }
    return _check_manifest_size(to_json(manifest))


def _describe(names: list[str], stored: list[Array]) -> list[dict[str, Any]]:
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


def _pieces(manifest: bytes, stored: list[Array]) -> Iterator[bytes | memoryview]:
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
    """Return the header, which signs itself and the manifest."""
    header = HEADER.pack(MAGIC, FORMAT_NUMBER, 0, len(manifest), file_length, bytes(32))
    return header[:SIGNED] + hashlib.sha256(header[:SIGNED] + manifest).digest()


def _check_target(target: Path) -> int | None:
    """Refuse to replace what is not a model; return the permissions of what will be replaced."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it, then save again.")
    if not target.exists():
        return None
    if not target.is_file():
        raise ModelFileError(target, "is not a regular file, so no model is saved over it")
    with target.open("rb") as file:
        start = file.read(len(MAGIC))
    if start not in (b"", MAGIC):
        raise ModelFileError(
            target, "exists and is not a model file; it is left as it is. Save under another name"
        )
    return stat.S_IMODE(target.stat().st_mode)


def _replace_file(target: Path, pieces: Iterable[bytes | memoryview], mode: int | None) -> None:
    """Write the pieces beside the target, make them durable and rename them into place."""
    beside = target.parent / f".longtail-{os.getpid()}-{secrets.token_hex(8)}.tmp"
    try:
        _write_durably(beside, pieces, mode)
        os.replace(beside, target)
    except BaseException as error:  # also an interrupt: the temporary file must not stay
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise _unwritten(target, error) from error
        raise
    sync_folder(target.parent)


def _write_durably(path: Path, pieces: Iterable[bytes | memoryview], mode: int | None) -> None:
    """Write a new file and wait until the disk has it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666 if mode is None else mode)
    with open(handle, "wb") as file:
        if mode is not None:
            os.chmod(path, mode)  # what the umask took away
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(handle)


def _unwritten(target: Path, error: OSError) -> OSError:
    """Return the system's error, of the same class and number, in terms of the model."""
    message = f"{error.strerror or error}. The model was not saved; what was there is unchanged"
    return OSError(error.errno, message, str(target))


def sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
