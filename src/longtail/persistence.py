"""Model files: named arrays and a manifest, in one file that is safe to open.

In: a kind, parameters (plain JSON) and named arrays. Out: one file, written beside its target and
renamed into place; or the same things back, the arrays as private views of the mapped file. This
room knows no estimator. ``docs/model-format.md`` gives the layout byte by byte.

Reading is: read, audit, only then construct. Nothing that a file says is believed before it is
checked, no code is loaded from it, and whatever is wrong with it is a `ModelFileError`. Below, the
public names come first, then writing, then reading, each from the whole to its parts.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import reprlib
import secrets
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from longtail.threads import run_blocks

__all__ = [
    "FORMAT_NUMBER",
    "ModelFile",
    "ModelFileError",
    "open_model",
    "pack_texts",
    "write_model",
]

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Array: TypeAlias = npt.NDArray[Any]

FORMAT_NUMBER = 1

# The first twelve bytes are the same in every format: a magic (as PNG's, a transfer in text mode
# changes it) and the format number. In format 1 follow a zero, the lengths of manifest and file and
# the SHA-256 of these 32 bytes and the manifest.
_MAGIC = b"\x89LTM\r\n\x1a\n"
_PREAMBLE = struct.Struct("<8sI")
_HEADER = struct.Struct("<8sIIQQ32s")
_SIGNED = _HEADER.size - 32
_ALIGNMENT = 64  # bytes: a cache line, and more than any dtype needs
_LARGEST_MANIFEST = 4 << 20  # bytes; parsing the worst JSON of this size takes some 110 MB
_DEEPEST_JSON = 32
_LONGEST_NUMBER = 40  # characters; the time int() takes grows with the square of the digits
_SERIAL_BYTES = 1 << 20  # hashing less than this is faster without threads

_PLAIN_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_TEXT_DTYPE = re.compile(r"(<U|\|S)[1-9][0-9]{0,6}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,127}")
_VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Possessive, and the closing quote may be missing: linear also where a string never ends.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)

_SHORT = reprlib.Repr()  # a few elements, a few levels, whatever the value
_SHORT.maxstring = _SHORT.maxother = 80

_DTYPES_ACCEPTED = "bool, int8-64, uint8-64, float16-64, fixed-width str ('<U') or bytes ('|S')"
_NAME_ACCEPTED = "1 to 128 ASCII letters, digits and '_./-', beginning with a letter or '_'"


class ModelFileError(ValueError):
    """A file is not a sound model file.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        What is wrong with it.

    Examples
    --------
    >>> print(ModelFileError("genus.longtail", "is cut short"))
    genus.longtail: is cut short
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(os.fspath(path), problem)
        self.path = os.fspath(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class _FaultError(Exception):
    """What is wrong with a file whose name is not known here; `open_model` adds the name."""


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
            raise self.error(f"has no array {name!r}; it has {_shown(list(self.arrays))}")
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/a.longtail", "centroids", {"C": 1.0}, {"weights": np.ones(3)})
    ...     open_model(f"{folder}/a.longtail").arrays["weights"]
    array([1., 1., 1.])
    """
    if format_number != FORMAT_NUMBER:
        raise ValueError(f"format_number must be {FORMAT_NUMBER}; got {_shown(format_number)}.")
    target = Path(os.path.realpath(path))
    mode = _check_target(target)
    stored = [_storable(name, arrays[name]) for name in _sorted_names(arrays)]
    manifest = _build_manifest(kind, parameters, _sorted_names(arrays), stored)
    _replace_file(target, _pieces(manifest, stored), mode)


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
    except _FaultError as fault:
        raise ModelFileError(path, str(fault)) from None


def _sorted_names(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names in the order of the file, which is not that of the caller's dict."""
    for name in arrays:
        _check_name("An array's name", name)
    return sorted(arrays)


def _check_name(what: str, name: object) -> None:
    """Refuse a name that a manifest cannot hold."""
    if not _matches(_NAME, name):
        raise ValueError(f"{what} must be {_NAME_ACCEPTED}; got {_shown(name)}.")


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
    if not _is_allowed(little):
        raise TypeError(f"Array {name!r} must be {_DTYPES_ACCEPTED}; got {array.dtype}.")
    return np.asarray(array, dtype=little, order="C")


def _is_allowed(dtype: object) -> bool:
    """Tell whether a dtype string is one that files may hold."""
    return isinstance(dtype, str) and (dtype in _PLAIN_DTYPES or _matches(_TEXT_DTYPE, dtype))


def _raw_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """Return a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def _encode_text(name: str, number: int, text: str) -> bytes:
    """Return one text as UTF-8; lone surrogates, which Python strings may hold, pass."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be strings; element {number} is {_shown(text)}.")
    return text.encode("utf-8", "surrogatepass")


def _cuts_fit(offsets: npt.NDArray[np.int64], n_bytes: int) -> bool:
    """Tell whether offsets go from 0 to n_bytes without a step back."""
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != n_bytes:
        return False
    return bool(np.all(offsets[1:] >= offsets[:-1]))


def _cut_texts(utf8: bytes, offsets: list[int]) -> list[str]:
    """Return the texts between successive offsets."""
    return [utf8[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(offsets)]


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
    return _check_manifest_size(_to_json(manifest))


def _describe(names: list[str], stored: list[Array]) -> list[dict[str, Any]]:
    """Return one manifest entry per array; offsets count from the first array."""
    digests = _digests([_raw_bytes(array) for array in stored])
    entries, end = [], 0
    for name, array, digest in zip(names, stored, digests, strict=True):
        start = _align(end)
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
        raise TypeError(f"The name of a parameter must be a string; got {_shown(key)}.")
    try:
        # Two levels deeper than alone: inside "parameters", inside the manifest.
        returned = _parse_json(b"[[" + _to_json(value) + b"]]")[0][0]
    except (_FaultError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"Parameter {key!r} is not plain JSON: {_shown(value)} ({error})."
        ) from None
    if returned != value:
        raise ValueError(
            f"Parameter {key!r} would come back changed: {_shown(value)} as {_shown(returned)}. "
            "Use None, bool, int, float, str, and lists and dicts (with string keys) of them."
        )


def _check_manifest_size(manifest: bytes) -> bytes:
    """Refuse a manifest that no reader would accept."""
    if len(manifest) > _LARGEST_MANIFEST:
        raise ValueError(
            f"The manifest would take {len(manifest):,} bytes; {_LARGEST_MANIFEST:,} are accepted. "
            "Put large parameters into arrays."
        )
    return manifest


def _to_json(value: object) -> bytes:
    """Return the one JSON text of a value: keys sorted, ASCII, no spaces."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return text.encode("ascii")


def _library_version() -> str:
    """Return the installed version; a source tree that is merely on the path has none."""
    try:
        return metadata.version("longtail")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def _pieces(manifest: bytes, stored: list[Array]) -> Iterator[bytes | memoryview]:
    """Yield the file's bytes in order: header, manifest, then each array after its padding."""
    end = _HEADER.size + len(manifest)
    yield _header(manifest, _file_length(end, stored))
    yield manifest
    for array in stored:
        yield bytes(_align(end) - end)
        yield _raw_bytes(array).data
        end = _align(end) + array.nbytes


def _file_length(manifest_end: int, stored: list[Array]) -> int:
    """Return where the last array ends; without any, the manifest."""
    end = manifest_end
    for array in stored:
        end = _align(end) + array.nbytes
    return end


def _header(manifest: bytes, file_length: int) -> bytes:
    """Return the header, which signs itself and the manifest."""
    header = _HEADER.pack(_MAGIC, FORMAT_NUMBER, 0, len(manifest), file_length, bytes(32))
    return header[:_SIGNED] + hashlib.sha256(header[:_SIGNED] + manifest).digest()


def _align(place: int) -> int:
    """Return the first multiple of 64 at or after a place."""
    return -(-place // _ALIGNMENT) * _ALIGNMENT


def _check_target(target: Path) -> int | None:
    """Refuse to replace what is not a model; return the permissions of what will be replaced."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it, then save again.")
    if not target.exists():
        return None
    if not target.is_file():
        raise ModelFileError(target, "is not a regular file, so no model is saved over it")
    with target.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start not in (b"", _MAGIC):
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
    _sync_folder(target.parent)


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


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file; a pipe or device would block or never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _FaultError("is not a regular file; a model is one file")
    with open(path, "rb", buffering=0) as file:
        yield file


def _choose_reader(file: BinaryIO) -> Callable[[Path, BinaryIO, bool], ModelFile]:
    """Return the reader for the file's format number."""
    start = file.read(_PREAMBLE.size)
    if len(start) < _PREAMBLE.size or not start.startswith(_MAGIC):
        raise _FaultError(f"is not a longtail model file (it begins with {start[:8]!r})")
    number: int = _PREAMBLE.unpack(start)[1]
    if number > FORMAT_NUMBER:
        raise _FaultError(
            f"has format {number}; this version of longtail reads up to {FORMAT_NUMBER}. "
            "Upgrade longtail to open it, or the file is damaged"
        )
    if number not in _READERS:
        raise _FaultError(f"has format {number}, which never existed")
    return _READERS[number]


def _read_format_1(path: Path, file: BinaryIO, verify: bool) -> ModelFile:
    """Read a file of format 1: header, manifest, audit, map, contents."""
    length = os.fstat(file.fileno()).st_size
    text = _read_manifest(file, length)
    manifest = _audit_manifest(_parse_json(text))
    entries = _audit_entries(manifest["arrays"], _HEADER.size + len(text), length)
    mapping = _map(file, length)
    arrays = {entry.name: entry.view(mapping) for entry in entries}
    if verify:
        _verify_padding(mapping, entries, _HEADER.size + len(text))
        _verify_arrays(entries, arrays)
    return ModelFile(path=path, **{**manifest, "arrays": arrays})


# By format number. A reader stays here for as long as files of its format may exist.
_READERS: dict[int, Callable[[Path, BinaryIO, bool], ModelFile]] = {1: _read_format_1}


def _read_manifest(file: BinaryIO, length: int) -> bytes:
    """Return the manifest's bytes, once lengths and checksum agree with the header."""
    file.seek(0)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise _FaultError(f"is cut short: {length} bytes, less than the header")
    _, _, zero, manifest_length, file_length, digest = _HEADER.unpack(header)
    if file_length != length:
        change = "is cut short" if length < file_length else "has been extended"
        raise _FaultError(f"{change}: it has {length} bytes, its header says {file_length}")
    if zero != 0 or manifest_length > min(_LARGEST_MANIFEST, length - _HEADER.size):
        raise _FaultError(f"has a damaged header: it announces {manifest_length} bytes of manifest")
    manifest = file.read(manifest_length)
    if hashlib.sha256(header[:_SIGNED] + manifest).digest() != digest:
        raise _FaultError("has a damaged header or manifest: its SHA-256 is not the recorded one")
    return manifest


def _map(file: BinaryIO, length: int) -> mmap.mmap:
    """Memory-map the whole file for reading."""
    try:
        # Copy on write, not read-only: pages are shared all the same, and numba compiles every
        # kernel a second time for arrays it may not write to.
        return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
    except (OSError, ValueError, OverflowError) as error:
        raise _FaultError(f"cannot be memory-mapped ({length} bytes): {error}") from None


def _parse_json(text: bytes) -> Any:
    """Parse JSON of bounded depth with bounded numbers, finite floats and no key twice."""
    _audit_depth(text)
    try:
        return json.loads(
            text.decode("utf-8"),
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_parse_object,
        )
    except ValueError as error:
        raise _FaultError(f"has a manifest that is not JSON: {error}") from None


def _audit_depth(text: bytes) -> None:
    """Refuse nested lists and objects that would exhaust the parser's stack."""
    symbols = np.frombuffer(_JSON_STRING.sub(b"", text), dtype=np.uint8)
    opening = (symbols == ord("[")) | (symbols == ord("{"))
    closing = (symbols == ord("]")) | (symbols == ord("}"))
    depth = np.cumsum(opening.view(np.int8) - closing.view(np.int8), dtype=np.int32)
    if depth.max(initial=0) > _DEEPEST_JSON:
        raise _FaultError(f"has JSON nested deeper than {_DEEPEST_JSON} levels")


def _parse_integer(digits: str) -> int:
    """Return an integer that fits into 64 bits, signed or unsigned."""
    if len(digits) <= _LONGEST_NUMBER and -(2**63) <= (number := int(digits)) < 2**64:
        return number
    raise _FaultError(f"has an integer beyond 64 bits: {_shown(digits)}")


def _parse_float(digits: str) -> float:
    """Return a finite float."""
    if len(digits) <= _LONGEST_NUMBER and math.isfinite(number := float(digits)):
        return number
    raise _FaultError(f"has a number that is not a finite float: {_shown(digits)}")


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise _FaultError(f"has {name} where JSON wants a finite number")


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's items, each key once."""
    items = dict(pairs)
    if len(items) != len(pairs):
        raise _FaultError("has a JSON object with the same key twice")
    return items


def _audit_manifest(manifest: Any) -> dict[str, Any]:
    """Check the manifest's own fields; those of the arrays come after."""
    _audit_fields("manifest", manifest, _MANIFEST_FIELDS)
    return cast(dict[str, Any], manifest)


def _audit_fields(what: str, value: Any, fields: Mapping[str, Callable[[Any], bool]]) -> None:
    """Check that a value is an object with exactly these fields, each acceptable."""
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise _FaultError(
            f"has a wrong {what}: {_shown(value)} instead of the fields {', '.join(fields)}"
        )
    for field, accepts in fields.items():
        if not accepts(value[field]):
            raise _FaultError(f"has a wrong {field} in its {what}: {_shown(value[field])}")


def _is_size(value: object) -> bool:
    """Tell whether a JSON value can be a size in bytes or elements."""
    return type(value) is int and 0 <= value < 2**63


def _is_shape(value: object) -> bool:
    """Tell whether a JSON value can be a shape."""
    return isinstance(value, list) and len(value) <= 32 and all(map(_is_size, value))


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    """Tell whether a value is a string of the pattern."""
    return isinstance(value, str) and pattern.fullmatch(value) is not None


_MANIFEST_FIELDS: dict[str, Callable[[Any], bool]] = {
    "format_number": lambda value: type(value) is int and value == 1,
    "library_version": lambda value: _matches(_VERSION, value),
    "kind": lambda value: _matches(_NAME, value),
    "parameters": lambda value: isinstance(value, dict),
    "arrays": lambda value: isinstance(value, list),
}
_ENTRY_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: _matches(_NAME, value),
    "dtype": _is_allowed,
    "shape": _is_shape,
    "offset": _is_size,
    "nbytes": _is_size,
    "sha256": lambda value: _matches(_SHA256, value),
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
        entry = _audit_entry(item, _align(manifest_end))
        if entry.name <= name:
            raise _FaultError(f"has array {entry.name!r} twice or out of order")
        if entry.start != _align(end):
            raise _FaultError(f"has array {entry.name!r} at {entry.start} instead of {_align(end)}")
        entries.append(entry)
        name, end = entry.name, entry.start + entry.nbytes
    if end != length:
        raise _FaultError(f"has {length} bytes, but its arrays end at {end}")
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
        raise _FaultError(
            f"has array {entry.name!r} of shape {_shown(shape)} and dtype {dtype.str} "
            f"in {entry.nbytes} bytes, which cannot be"
        )
    return entry


def _verify_padding(mapping: mmap.mmap, entries: list[_Entry], manifest_end: int) -> None:
    """Check that the bytes between the parts are zero: nothing hides in a model file."""
    end = manifest_end
    for entry in entries:
        if any(mapping[end : entry.start]):
            raise _FaultError(f"is damaged: the padding before array {entry.name!r} is not zero")
        end = entry.start + entry.nbytes


def _verify_arrays(entries: list[_Entry], arrays: dict[str, Array]) -> None:
    """Compare every array with its recorded SHA-256, and its values with what its dtype allows."""
    digests = _digests([_raw_bytes(array) for array in arrays.values()])
    for entry, digest in zip(entries, digests, strict=True):
        if digest != entry.sha256:
            raise _FaultError(f"is damaged: array {entry.name!r} is not what its SHA-256 says")
        if not _holds_valid_values(arrays[entry.name]):
            raise _FaultError(f"has values in array {entry.name!r} that {entry.dtype} forbids")


def _holds_valid_values(array: Array) -> bool:
    """Tell whether booleans are 0 or 1 and characters are Unicode; any bits are a number."""
    if array.dtype.kind == "b":
        return bool(array.view(np.uint8).max(initial=0) <= 1)
    if array.dtype.kind == "U":
        return bool(array.reshape(-1).view("<u4").max(initial=0) <= 0x10FFFF)
    return True


def _digests(buffers: list[npt.NDArray[np.uint8]]) -> list[str]:
    """Return the SHA-256 of each buffer; in threads if large, for hashing frees the interpreter."""
    digests = [""] * len(buffers)

    def hash_buffers(first: int, last: int) -> None:
        digests[first:last] = map(_sha256, buffers[first:last])

    work = np.cumsum([0, *(buffer.nbytes for buffer in buffers)])
    run_blocks(hash_buffers, work, -1 if work[-1] >= _SERIAL_BYTES else 1)
    return digests


def _sha256(buffer: npt.NDArray[np.uint8]) -> str:
    """Return the SHA-256 of one buffer in hexadecimal."""
    return hashlib.sha256(buffer.data).hexdigest()


def _shown(value: object) -> str:
    """Return a value's repr, cut to what a message can show."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python agrees to print
        return f"a {type(value).__name__}"
