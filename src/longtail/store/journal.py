"""The change log of a model: an append-only file of what was taught since the model was saved.

In: changes (an action, its content, who). Out: the same changes back, in order, or what is wrong
with the file. This room knows no estimator: it writes, reads and checks records. What they do to a
model is the business of `longtail.teaching`. ``docs/model-format.md`` gives the layout.

The log of ``genus.longtail`` is ``genus.longtail.changes``. Each line is a SHA-256, a space, a
record in JSON and a line feed. The SHA-256 covers the record and that of the line before, and the
first line names the model file by its checksum: a record that was changed, removed, swapped or
repeated is noticed. A record counts from the moment when the disk has it; a last line without its
line feed was never acknowledged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail.exceptions import ModelFileError
from longtail.store.files import sync_folder

__all__ = [
    "LOG_FORMAT_NUMBER",
    "Change",
    "ChangeLog",
    "End",
    "LogContents",
    "lock_log",
    "log_path",
    "mark_undone",
    "pack_counts",
    "read_log",
    "unpack_counts",
]

LOG_FORMAT_NUMBER = 1
LARGEST_RECORD = 16 << 20  # bytes; parsing the worst JSON of this size takes some 400 MB

_LONGEST_HEADER = 512  # bytes
_TORN_HEADER = re.compile(rb"[0-9a-f]{0,64}|[0-9a-f]{64} [^\n]*|\0+")  # what a crash can leave
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENVELOPE = {"number", "time", "by", "action"}
_COUNTS = {"n_documents", "n_terms", "indptr", "indices", "data"}


@dataclass(frozen=True)
class Change:
    """One record of a log.

    Attributes
    ----------
    number : int
        Counts from 1 and goes on after `compact`.
    time : str
        When it was recorded: UTC, ISO 8601.
    by : str or None
        Who made it, if that was said.
    action : str
        teach, forget, rename, merge, remove, undo or compact.
    content : dict
        The action's own fields, plain JSON.
    in_effect : bool
        False where a later undo takes it back.
    """

    number: int
    time: str
    by: str | None
    action: str
    content: dict[str, Any]
    in_effect: bool = True


@dataclass(frozen=True)
class End:
    """Where the sound part of a log ends.

    `last` is where its last line begins, `length` where that ends, `checksum` its checksum, and
    `number` what the next record is called.
    """

    last: int
    length: int
    checksum: str
    number: int


@dataclass(frozen=True)
class LogContents:
    """What a log says: the checksum of its model, the records that were read, and its end."""

    model: str
    changes: list[Change]
    end: End


def log_path(model: str | os.PathLike[str]) -> Path:
    """Return where the log of a model file is; a link has that of the file it leads to."""
    return Path(os.path.realpath(model) + ".changes")


def mark_undone(changes: Sequence[Change]) -> list[Change]:
    """Say of each change whether it is in effect; an undo that is undone takes nothing back.

    Parameters
    ----------
    changes : sequence of Change
        A whole log.

    Returns
    -------
    list of Change
    """
    undone: set[int] = set()
    for change in reversed(changes):  # only later records decide about a record
        if change.action == "undo" and change.number not in undone:
            undone.update(change.content["changes"])
    return [replace(change, in_effect=change.number not in undone) for change in changes]


def pack_counts(X: csr_array[Any]) -> dict[str, Any]:
    """Return the rows of a count matrix as plain JSON: sizes, and arrays in base64.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        Counts.

    Returns
    -------
    dict
        For `unpack_counts`, which gives the same bits back.
    """
    return {
        "n_documents": int(X.shape[0]),
        "n_terms": int(X.shape[1]),
        "indptr": _to_base64(X.indptr, "<i8"),
        "indices": _to_base64(X.indices, "<i8"),
        "data": _to_base64(X.data, "<f8"),
    }


def unpack_counts(packed: dict[str, Any]) -> csr_array[Any]:
    """Return the count matrix that `pack_counts` packed.

    Raises
    ------
    ValueError
        If it is not a sound count matrix.
    """
    shape = (packed["n_documents"], packed["n_terms"])
    if not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise ValueError(f"a matrix of shape {shape} cannot be")
    parts = (
        _from_base64(packed["data"], "<f8"),
        _from_base64(packed["indices"], "<i8"),
        _from_base64(packed["indptr"], "<i8"),
    )
    if len(parts[2]) != shape[0] + 1:
        raise ValueError(f"{len(parts[2])} row starts do not fit {shape[0]} documents")
    X = csr_array(parts, shape=shape)
    X.check_format(full_check=True)
    return X


def read_log(path: Path) -> LogContents | None:
    """Read a whole log and check it.

    Parameters
    ----------
    path : Path
        The log, from `log_path`.

    Returns
    -------
    LogContents or None
        None where there is no log, or one that holds nothing yet.

    Raises
    ------
    ModelFileError
        If a record is damaged, missing, repeated or out of place.

    Warns
    -----
    RuntimeWarning
        If a crash left the last record unfinished. It was never acknowledged and is left out.
    """
    try:
        with open(path, "rb") as file:
            _lock(file, exclusive=False)
            return ChangeLog(path, file).read()
    except FileNotFoundError:
        return None


@contextmanager
def lock_log(path: Path) -> Iterator[ChangeLog]:
    """Open a log for one change, alone among all processes; it is created where there is none.

    Parameters
    ----------
    path : Path
        The log, from `log_path`.

    Yields
    ------
    ChangeLog

    Raises
    ------
    OSError
        If the log cannot be written, or the system has no file locks.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        with open(handle, "r+b") as file:
            _lock(file, exclusive=True)
            if not _is_at(file, path):
                continue  # deleted while we waited
            try:
                yield ChangeLog(path, file)
            finally:
                if os.fstat(handle).st_size == 0:  # nothing came of it
                    path.unlink(missing_ok=True)
            return


class ChangeLog:
    """A log that is open and locked, for as long as one change takes.

    Parameters
    ----------
    path : Path
        Its name, for messages.
    file : binary file
        Open for reading, and for writing if records are to be appended.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file

    def read(self) -> LogContents | None:
        """Read and check the whole log; None where it holds nothing yet."""
        header = self._read_header()
        return None if header is None else self._read_records(*header)

    def read_after(self, model: str, end: End) -> LogContents:
        """Read the records after what was the end of the log of a model file.

        Raises
        ------
        ModelFileError
            If it is not the same log any more, or a new record is damaged.
        """
        self._file.seek(end.last)
        if self._file.read(64) != end.checksum.encode() or self._size() < end.length:
            raise self._error("was replaced or cut short while the model was open")
        return self._read_records(model, end)

    def _read_records(self, model: str, end: End) -> LogContents:
        """Read what follows a place."""
        changes: list[Change] = []
        self._file.seek(end.length)
        while line := self._read_line(end):
            change, end = self._read_record(line, end)
            changes.append(change)
        return LogContents(model, changes, end)

    def start(self, model: str, first: int = 1) -> End:
        """Begin the log anew for a model file; whatever it held is given up.

        Parameters
        ----------
        model : str
            Checksum of the model file.
        first : int, default=1
            Number of the first record.

        Returns
        -------
        End
        """
        header = {"format_number": LOG_FORMAT_NUMBER, "model": model, "first": first}
        line, checksum = _sign(header, "")
        os.ftruncate(self._file.fileno(), 0)
        self._write(line, 0)
        sync_folder(self.path.parent)
        return End(0, len(line), checksum, first)

    def append(self, end: End, action: str, content: dict[str, Any], by: str | None) -> End:
        """Write one record and wait until the disk has it.

        Parameters
        ----------
        end : End
            Where the sound part ends; what a crash left behind it is cut off.
        action : str
            What was done.
        content : dict
            To what; plain JSON.
        by : str or None
            By whom.

        Returns
        -------
        End
            The new end.

        Raises
        ------
        ValueError
            If the record is too large; nothing was written.
        OSError
            If it could not be written; the log is as it was.
        """
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"number": end.number, "time": time, "by": by, "action": action, **content}
        line, checksum = _sign(record, end.checksum)
        if len(line) > LARGEST_RECORD:
            raise ValueError(
                f"the change would take {len(line):,} bytes in the log; a record has at most "
                f"{LARGEST_RECORD:,}. Give fewer documents at once."
            )
        if self._size() > end.length:
            os.ftruncate(self._file.fileno(), end.length)
        self._write(line, end.length)
        return End(end.length, end.length + len(line), checksum, end.number + 1)

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _write(self, line: bytes, place: int) -> None:
        """Write at the end of the log, durably, or leave the log as it was."""
        handle = self._file.fileno()
        try:
            os.lseek(handle, place, os.SEEK_SET)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        except BaseException as error:  # an interrupt, too, must not leave half a record
            state = "the log is as it was"
            try:
                os.ftruncate(handle, place)
                os.fsync(handle)
            except OSError:
                state = "the log may hold a part of it"
            if isinstance(error, OSError):
                message = f"{error.strerror}. The change was not recorded; {state}"
                raise OSError(error.errno, message, str(self.path)) from error
            raise

    def _read_header(self) -> tuple[str, End] | None:
        """Return the model's checksum and the end of the first line."""
        self._file.seek(0)
        line = self._file.readline(_LONGEST_HEADER)
        if not line:
            return None
        if _TORN_HEADER.fullmatch(line):
            self._refuse_wrong_end(line, "the header", "")
            self._warn_torn(len(line))
            return None
        header, checksum = self._parse(line, "the header", "")
        number, first = header.get("format_number"), header.get("first")
        if _is_number(number) and number > LOG_FORMAT_NUMBER:
            raise self._error(
                f"has format {number}; this version of longtail reads up to {LOG_FORMAT_NUMBER}. "
                "Upgrade longtail to open it"
            )
        fields = {"format_number", "model", "first"}
        if header.keys() != fields or number != 1 or not _is_number(first):
            raise self._error("the header is not that of a change log")
        if not _is_sha256(header["model"]):
            raise self._error("the header names no model")
        return header["model"], End(0, len(line), checksum, first)

    def _read_line(self, end: End) -> bytes:
        """Return the next line, or nothing at the end; a torn line is left out."""
        line = self._file.readline(LARGEST_RECORD + 1)
        if len(line) > LARGEST_RECORD:
            raise self._error(f"record {end.number} is longer than {LARGEST_RECORD:,} bytes")
        if not line or line.endswith(b"\n"):
            return line
        self._refuse_wrong_end(line, f"record {end.number}", end.checksum)
        self._warn_torn(len(line))
        return b""

    def _refuse_wrong_end(self, line: bytes, what: str, previous: str) -> None:
        """Refuse a whole record with something else in place of its line feed: no write does so."""
        if _split(line[:-1] + b"\n", previous) is not None:
            raise self._error(f"{what} is damaged: it does not end with a line feed")

    def _read_record(self, line: bytes, end: End) -> tuple[Change, End]:
        """Return the change that a line holds, and where it ends."""
        what = f"record {end.number}"
        record, checksum = self._parse(line, what, end.checksum)
        if not record.keys() >= _ENVELOPE or record["number"] != end.number:
            raise self._error(f"{what} lacks its number, time, author or action")
        content = {name: record[name] for name in record.keys() - _ENVELOPE}
        if not isinstance(record["time"], str) or not isinstance(record["by"], str | None):
            raise self._error(f"{what} has a wrong time or author")
        accepts = _ACTIONS.get(str(record["action"]))
        if accepts is None or not accepts(content, end.number):
            raise self._error(f"{what} has an unknown action, or what it needs is missing")
        change = Change(end.number, record["time"], record["by"], record["action"], content)
        length = end.length + len(line)
        return change, End(end.length, length, checksum, end.number + 1)

    def _parse(self, line: bytes, what: str, previous: str) -> tuple[dict[str, Any], str]:
        """Return what a line holds and its checksum, once that is right."""
        parts = _split(line, previous)
        if parts is None:
            raise self._error(
                f"{what} is damaged, or not the one that was written there: "
                "its SHA-256 is not the recorded one"
            )
        try:
            value = json.loads(parts[1], parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise self._error(f"{what} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise self._error(f"{what} is not a JSON object")
        return value, parts[0]

    def _error(self, problem: str) -> ModelFileError:
        return ModelFileError(self.path, problem)

    def _warn_torn(self, n_bytes: int) -> None:
        warnings.warn(
            f"{self.path}: the last {n_bytes} bytes are an unfinished record: whoever wrote it was "
            "stopped before it was acknowledged. It is left out.",
            RuntimeWarning,
            stacklevel=2,
        )


def _sign(record: dict[str, Any], previous: str) -> tuple[bytes, str]:
    """Return the line of a record, and its checksum, which covers the line before."""
    text = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")
    checksum = _chain(previous, text)
    return checksum.encode() + b" " + text + b"\n", checksum


def _split(line: bytes, previous: str) -> tuple[str, bytes] | None:
    """Return the checksum and the JSON of a line, or nothing where they do not belong together."""
    checksum, text = line[:64], line[65:-1]
    if line[64:65] != b" " or line[-1:] != b"\n" or _chain(previous, text).encode() != checksum:
        return None
    return checksum.decode(), text


def _chain(previous: str, text: bytes) -> str:
    """Return the checksum of a record and, through that of the line before, of all before it."""
    return hashlib.sha256(previous.encode() + text).hexdigest()


def _is_number(value: object) -> TypeGuard[int]:
    """Tell whether a JSON value can be the number of a record."""
    return type(value) is int and 1 <= value < 2**53


def _is_sha256(value: object) -> bool:
    """Tell whether a JSON value can be a checksum."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_label(value: object) -> bool:
    """Tell whether a JSON value can be a label."""
    return isinstance(value, str | int | float)  # a bool is an int


def _holds_documents(content: dict[str, Any], number: int) -> bool:
    """Tell whether these are texts or counts with a label each."""
    if content.keys() != {"documents", "labels"}:
        return False
    documents, labels = content["documents"], content["labels"]
    if not isinstance(labels, list) or not all(map(_is_label, labels)):
        return False
    if isinstance(documents, dict):
        return documents.keys() == _COUNTS and documents["n_documents"] == len(labels)
    if not isinstance(documents, list) or len(documents) != len(labels):
        return False
    return all(isinstance(text, str) for text in documents)


def _holds_labels(*names: str) -> Callable[[dict[str, Any], int], bool]:
    """Return the check for actions on classes."""
    return lambda content, number: (
        content.keys() == set(names) and all(map(_is_label, content.values()))
    )


def _holds_earlier_changes(content: dict[str, Any], number: int) -> bool:
    """Tell whether these are numbers of records before this one."""
    changes = content.get("changes")
    if len(content) != 1 or not isinstance(changes, list):
        return False
    return all(_is_number(change) and change < number for change in changes)


# What each action's record must hold beside number, time and author.
_ACTIONS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "teach": _holds_documents,
    "forget": _holds_documents,
    "rename": _holds_labels("old", "new"),
    "merge": _holds_labels("source", "into"),
    "remove": _holds_labels("label"),
    "undo": _holds_earlier_changes,
    "compact": lambda content, number: content.keys() == {"into"} and _is_sha256(content["into"]),
}


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(f"{name} is not a finite number")


def _to_base64(array: NDArray[Any], dtype: str) -> str:
    """Return an array's bytes as text."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode("ascii")


def _from_base64(text: object, dtype: str) -> NDArray[Any]:
    """Return the array that a text holds."""
    if not isinstance(text, str):
        raise ValueError("an array is not base64")
    try:
        # A copy: kernels are compiled for arrays that may be written to.
        return np.frombuffer(base64.b64decode(text, validate=True), dtype).copy()
    except binascii.Error as error:
        raise ValueError(f"an array is not base64: {error}") from None


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Tell whether an open file is still the one with this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO, *, exclusive: bool) -> None:
    """Wait for a lock that ends with the file or its process; reading goes without if need be."""
    try:
        import fcntl
    except ImportError:
        if not exclusive:
            return
        raise OSError(
            "Teaching needs file locks (fcntl), which this system does not have. "
            "Open the model with longtail.load, change it in memory and save it."
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    except OSError:  # some network file systems have no locks
        if exclusive:
            raise
