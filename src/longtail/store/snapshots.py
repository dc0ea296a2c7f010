"""Snapshots: the model after some change of its journal, as a file beside it. A cache, no more.

In: a connection to a journal. Out: which file is the model after which change, if the journal says
so. The snapshot of ``genus.longtail`` is ``genus.longtail.snapshot``, an ordinary model file. The
journal names its checksum in a row of its own, whose number is below those of all records: a
process that knows nothing of snapshots does not read it, and deletes it together with the records.

A row or a file that is missing, damaged or foreign is as good as none: the journal is replayed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.store.changes import is_checksum, is_counter
from longtail.store.container import read_checksum
from longtail.store.files import set_mode
from longtail.store.journal_database import translate_errors
from longtail.store.journal_rows import Header, has_end

if TYPE_CHECKING:
    from longtail.store.journal import Journal

__all__ = [
    "Snapshot",
    "find_usable",
    "follow_mode",
    "put_snapshot",
    "read_snapshot",
    "remove_snapshot",
    "remove_unknown",
    "snapshot_path",
]

_ROW = -1  # records are numbered from 1 on
_LARGEST = 1000  # bytes of the row's content


@dataclass(frozen=True)
class Snapshot:
    """What a journal says of a snapshot.

    Attributes
    ----------
    checksum : str
        Of the file.
    row : int
        The last row of the journal that it has.
    change_number : int
        Of the change in that row.
    """

    checksum: str
    row: int
    change_number: int


def snapshot_path(model: str | os.PathLike[str]) -> Path:
    """Return where the snapshot of a model file is; a link has that of the file it leads to."""
    return Path(os.path.realpath(model) + ".snapshot")


def put_snapshot(journal: Journal, beside: Path, end: Header) -> bool:
    """Let a file be the snapshot of a model, and let the journal say so.

    A kill between the two leaves a row that names another file, or none: the journal is replayed.

    Parameters
    ----------
    journal : Journal
        Not locked by the caller.
    beside : Path
        The file, in the folder of the model, durable; it is moved.
    end : Header
        The journal up to the last change that the file has.

    Returns
    -------
    bool
        False where the journal was begun anew since, so that the file must not be kept.
    """
    checksum = read_checksum(beside)
    with journal.locked(), translate_errors(journal.path):
        header, connection = journal.header(), journal._connect()
        if header is None or header.model != end.model or not has_end(connection, header, end):
            return False
        os.replace(beside, snapshot_path(journal.model))
        _write(connection, checksum, end)
        connection.execute("COMMIT")
    return True


def _write(connection: sqlite3.Connection, checksum: str, header: Header) -> None:
    """Write the row; the caller commits."""
    fields = {"file": checksum, "row": header.end_row, "last": header.last.hex()}
    content = json.dumps(fields).encode("ascii")
    values = (_ROW, None, None, None, "snapshot", content, _seal(content))
    connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def read_snapshot(connection: sqlite3.Connection) -> Snapshot | None:
    """Return what a journal says of a snapshot; None where that is nothing, or makes no sense.

    The checksum of the last row that it has covers all rows before it and the checksum of the model
    file, so it is the very history that the snapshot was made of.
    """
    query = "SELECT content, checksum FROM records WHERE row = ? AND length(content) <= ?"
    found = connection.execute(query, (_ROW, _LARGEST)).fetchone()
    if found is None or not isinstance(found[0], bytes) or _seal(found[0]) != found[1]:
        return None
    try:
        fields = json.loads(found[0])
        checksum, row, last = fields["file"], fields["row"], bytes.fromhex(fields["last"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not is_checksum(checksum) or not is_counter(row):
        return None
    query = "SELECT number FROM records WHERE row = ? AND checksum = ?"
    ends = connection.execute(query, (row, last)).fetchone()
    if ends is None or not is_counter(ends[0]):
        return None
    return Snapshot(checksum, row, ends[0])


def find_usable(journal: Journal) -> Snapshot | None:
    """Return the snapshot of a journal unless there was an undo since, which may reach before it.

    The journal is locked, or nobody writes.
    """
    connection = journal._connect()
    with translate_errors(journal.path):
        snapshot = read_snapshot(connection)
        if snapshot is None:
            return None
        query = "SELECT count(*) FROM records WHERE row > ? AND action = 'undo'"
        return None if connection.execute(query, (snapshot.row,)).fetchone()[0] else snapshot


def remove_snapshot(model: Path) -> None:
    """Remove the snapshot of a model file; what is no file is not ours.

    Raises
    ------
    OSError
        If it is there and cannot be removed.
    """
    path = snapshot_path(model)
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            path.unlink()


def remove_unknown(journal: Journal) -> None:
    """Remove a file that the journal does not know: of a process that was killed, or is older.

    The journal is locked.
    """
    if not os.path.lexists(snapshot_path(journal.model)) or journal.header() is None:
        return
    query = "SELECT count(*) FROM records WHERE row = ?"
    with translate_errors(journal.path), suppress(OSError):
        if not journal._connect().execute(query, (_ROW,)).fetchone()[0]:
            remove_snapshot(journal.model)


def follow_mode(model: Path, mode: int) -> None:
    """Give a snapshot the permissions that its model has by now."""
    with suppress(OSError):
        set_mode(snapshot_path(model), mode)


def _seal(content: bytes) -> bytes:
    """Return the checksum of a snapshot's row."""
    return hashlib.sha256(b"longtail snapshot " + content).digest()
