"""The text log in which earlier versions kept the changes of a model: reading it, nothing else.

In: ``genus.longtail.changes``. Out: its changes, for `longtail.store.journal` to convert. Each line
is a SHA-256, a space, a JSON object and a line feed; the SHA-256 covers the object and that of the
line before. The first line names the model file by its checksum. A last line without its line feed
was never acknowledged.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from longtail.exceptions import ModelFileError
from longtail.store.changes import Change, check_content, is_checksum, is_counter
from longtail.store.files import open_regular
from longtail.store.strict_json import FaultError

_LONGEST_LINE = 16 << 20  # bytes
_ENVELOPE = {"number", "time", "by", "action"}


@dataclass(frozen=True)
class OldLog:
    """What a text log holds.

    Attributes
    ----------
    model : str
        Checksum of its model file.
    folded_into : str or None
        Checksum of the file into which a compaction that did not finish put all of it.
    changes : list of Change
        Oldest first.
    next_number : int
        Number of the next change.
    checksum : str
        That of its last line, which covers all of it.
    """

    model: str
    folded_into: str | None
    changes: list[Change]
    next_number: int
    checksum: str


def old_log_path(journal: Path) -> Path:
    """Return where the text log of a model is, whose journal's place is given."""
    return journal.with_name(journal.name.removesuffix(".journal") + ".changes")


def read_old_log(path: Path) -> OldLog | None:
    """Read a text log and check it.

    Returns
    -------
    OldLog or None
        None where there is no log, or one that holds nothing.

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
        with _open(path) as file:
            return _read(path, file)
    except FileNotFoundError:
        return None


@contextmanager
def lock_old_log(path: Path) -> Iterator[None]:
    """Keep earlier versions, and others that convert the log, from it; a missing one needs none."""
    try:
        import fcntl

        file = _open(path)
    except (ImportError, FileNotFoundError):
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open(path: Path) -> BinaryIO:
    """Open a text log; a pipe, which may have no writer, is refused."""
    try:
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, open_regular(path))))
    except FaultError:
        raise ModelFileError(path, "is not a regular file, so it is no change log") from None


def _read(path: Path, file: BinaryIO) -> OldLog | None:
    """Read the header, then the records."""
    line = _next_line(path, file, "the header")
    if not line:
        return None
    header, checksum = _parse(path, line, "the header", "")
    known = header.keys() == {"format_number", "model", "first"} and header["format_number"] == 1
    if not known or not is_counter(header["first"]) or not is_checksum(header["model"]):
        raise ModelFileError(path, "the header is not that of a change log of format 1")
    changes: list[Change] = []
    change_number, folded_into = header["first"], None
    while line := _next_line(path, file, f"record {change_number}"):
        record, checksum = _parse(path, line, f"record {change_number}", checksum)
        folded_into = None
        if record.get("action") == "compact" and is_checksum(record.get("into")):
            folded_into = record["into"]
        else:
            changes.append(_to_change(path, record, change_number))
        change_number += 1
    return OldLog(header["model"], folded_into, changes, change_number, checksum)


def _next_line(path: Path, file: BinaryIO, what: str) -> bytes:
    """Return the next line, or nothing at the end; a torn line is left out."""
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise ModelFileError(path, f"{what} is longer than {_LONGEST_LINE:,} bytes")
    if line and not line.endswith(b"\n"):
        warnings.warn(
            f"{path}: the last {len(line)} bytes are an unfinished record: whoever wrote it was "
            "stopped before it was acknowledged. It is left out.",
            RuntimeWarning,
            stacklevel=2,
        )
        return b""
    return line


def _parse(path: Path, line: bytes, what: str, previous: str) -> tuple[dict[str, Any], str]:
    """Return what a line holds and its checksum, once that is right."""
    text = line[65:-1]
    checksum = hashlib.sha256(previous.encode() + text).hexdigest()
    if line[:65] != checksum.encode() + b" ":
        raise ModelFileError(
            path,
            f"{what} is damaged, or not the one that was written there: "
            "its SHA-256 is not the recorded one",
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(path, f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFileError(path, f"{what} is not a JSON object")
    return value, checksum


def _to_change(path: Path, record: dict[str, Any], change_number: int) -> Change:
    """Return the change that a record holds."""
    if not record.keys() >= _ENVELOPE or record["number"] != change_number:
        raise ModelFileError(
            path, f"record {change_number} lacks its number, time, author or action"
        )
    content = {name: record[name] for name in record.keys() - _ENVELOPE}
    time, by, action = record["time"], record["by"], record["action"]
    named = isinstance(time, str) and isinstance(by, str | None) and isinstance(action, str)
    if not named or not check_content(action, content, change_number):
        raise ModelFileError(path, f"record {change_number} is not a change that can be made")
    return Change(change_number, time, by, action, (content,))
