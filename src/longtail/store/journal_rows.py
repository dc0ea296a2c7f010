"""Header and rows of a journal: written, read and checked, each chained to the one before.

In: a connection to the database. Out: the changes that it holds, or what is wrong with it. Each
row's SHA-256 covers the row before, the first one's the checksum of the model file; the header
names the last row and has a SHA-256 of its own.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from json.encoder import encode_basestring_ascii as quote
from pathlib import Path
from typing import Any, overload

from longtail.exceptions import ModelFileError
from longtail.store import journal_database as database
from longtail.store.changes import (
    ACTIONS,
    Change,
    check_content,
    decode_row,
    is_checksum,
    is_counter,
)


@dataclass(frozen=True)
class Header:
    """What a journal says of itself; `row` and `last` are where it ends.

    `model` is the checksum of its model file, `pending` that of a file that has all changes. Rows
    are numbered from `start_row` + 1, and `start` takes the place of a checksum before the first.
    """

    model: str
    pending: str | None
    next_number: int
    start_row: int
    start: bytes
    end_row: int
    last: bytes

    @property
    def has_changes(self) -> bool:
        """Whether there are rows."""
        return self.end_row > self.start_row

    def is_folded(self, checksum: str) -> bool:
        """Return whether the rows are in the model file with this checksum already."""
        return self.pending == checksum != self.model

    def seal(self) -> bytes:
        """Return the checksum of all fields."""
        fields = [v.hex() if isinstance(v, bytes) else v for v in vars(self).values()]
        return hashlib.sha256(json.dumps(fields).encode()).digest()


def _seed(model: str, row: int, change_number: int) -> bytes:
    """Return what the first row's checksum covers in place of a row before."""
    return hashlib.sha256(f"longtail journal {model} {row} {change_number}".encode()).digest()


def new_header(model: str, before: Header | None) -> Header:
    """Return the header of a journal without rows; numbers of rows and changes go on."""
    row = before.end_row if before else 0
    change_number = before.next_number if before else 1
    start = _seed(model, row, change_number)
    return Header(model, None, change_number, row, start, row, start)


def _chain(
    previous: bytes,
    row: int,
    change_number: int,
    moment: str,
    by: str | None,
    action: str,
    data: bytes,
) -> bytes:
    """Return the checksum of a row and, through the one before, of all before it."""
    # A JSON list, put together by hand: a replay does this ten thousand times.
    texts = ", ".join(["null" if text is None else quote(text) for text in (moment, by, action)])
    head = f"[{row}, {change_number}, {texts}]"
    return hashlib.sha256(previous + head.encode("ascii") + b"\n" + data).digest()


def insert(
    connection: sqlite3.Connection,
    header: Header,
    change_number: int,
    moment: str,
    by: str | None,
    action: str,
    rows: Sequence[bytes],
) -> Header:
    """Insert the rows of one change; return the header that has them."""
    row, last = header.end_row, header.last
    for data in rows:
        row += 1
        last = _chain(last, row, change_number, moment, by, action, data)
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row, change_number, moment, by, action, data, last),
        )
    return replace(header, end_row=row, last=last, next_number=change_number + 1)


def write_header(connection: sqlite3.Connection, header: Header) -> None:
    """Write the header with its seal."""
    values = (1, *vars(header).values(), header.seal())
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO header VALUES ({marks})", values)


def read_header(path: Path, connection: sqlite3.Connection) -> Header | None:
    """Return the header once it is checked; None where nothing was written yet."""
    if database.is_empty(connection):
        return None
    found = connection.execute("SELECT * FROM header LIMIT 2").fetchall()
    if len(found) != 1:
        raise ModelFileError(path, f"has {len(found)} headers instead of one")
    _, *fields, seal = found[0]
    header = Header(*fields)
    rows = (header.start_row, header.end_row)
    sound = (
        is_checksum(header.model)
        and (header.pending is None or is_checksum(header.pending))
        and is_counter(header.next_number)
        and all(row == 0 or is_counter(row) for row in rows)
        and isinstance(header.start, bytes)
        and isinstance(header.last, bytes)
    )
    if not sound or header.seal() != seal:
        raise ModelFileError(path, "has a damaged header: its SHA-256 is not the recorded one")
    return header


class StoredBatches(Sequence[dict[str, Any]]):
    """The content of a change as rows of a journal have it, decoded when some of it is asked for.

    Raises `ModelFileError`, then, where a row does not hold what its action needs.

    Parameters
    ----------
    path : Path
        The journal.
    action : str
        Of the change.
    change_number : int
        Its number.
    rows : list of bytes
        Their checksums were right.
    """

    # There are many, and the collector of garbage looks at each.
    __slots__ = ("_action", "_change_number", "_decoded", "_path", "rows")

    def __init__(self, path: Path, action: str, change_number: int, rows: list[bytes]) -> None:
        self.rows = rows
        self._path, self._action, self._change_number = path, action, change_number
        self._decoded: tuple[dict[str, Any], ...] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @overload
    def __getitem__(self, i: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, i: int | slice) -> dict[str, Any] | Sequence[dict[str, Any]]:
        """Return the content of a row, or of some."""
        if self._decoded is None:
            change = self._path, self._action, self._change_number
            self._decoded = tuple([_decode(*change, data) for data in self.rows])
        return self._decoded[i]


def read_changes(
    path: Path,
    connection: sqlite3.Connection,
    header: Header,
    after: Header | None = None,
    undecoded: int = 0,
) -> list[Change]:
    """Return the changes after what was the end of the journal, each row checked.

    The content of changes up to the number `undecoded` is checked when it is asked for.
    """
    row, last = (header.start_row, header.start) if after is None else (after.end_row, after.last)
    if after is not None and not has_end(connection, header, after):
        raise ModelFileError(path, "was replaced or cut short while the model was open")
    changes: list[Change] = []
    before: tuple[Any, ...] = (0, None, None, None)
    stored = StoredBatches(path, "", 0, [])
    query = "SELECT * FROM records WHERE row > ? ORDER BY row"
    for found in connection.execute(query, (row,)):
        _check_row(path, found, row + 1, last)
        row, change_number, moment, by, action, data, last = found
        head = change_number, moment, by, action
        if head == before and action in ("teach", "forget"):  # more documents of the same change
            stored.rows.append(data)
        elif change_number <= before[0]:
            raise ModelFileError(path, f"record {change_number} comes after record {before[0]}")
        else:
            stored = StoredBatches(path, action, change_number, [data])
            changes.append(Change(change_number, moment, by, action, stored))
            before = head
    if (row, last) != (header.end_row, header.last) or before[0] >= header.next_number:
        raise ModelFileError(
            path, f"is cut off: its last record should be row {header.end_row}; it is row {row}"
        )
    return [
        change if change.number <= undecoded else replace(change, batches=tuple(change.batches))
        for change in changes
    ]


def has_end(connection: sqlite3.Connection, header: Header, after: Header) -> bool:
    """Return whether a journal still has what was its end."""
    if after.end_row == header.start_row:
        return after.last == header.start
    query = "SELECT checksum FROM records WHERE row = ?"
    found: object = connection.execute(query, (after.end_row,)).fetchone()
    return after.end_row > header.start_row and found == (after.last,)


def _check_row(path: Path, found: tuple[Any, ...], expected: int, last: bytes) -> None:
    """Refuse a row of which anything but the content is wrong."""
    row, change_number, moment, by, action, data, checksum = found
    typed = (
        is_counter(change_number)
        and isinstance(moment, str)
        and isinstance(by, str | None)
        and isinstance(action, str)
        and isinstance(data, bytes)
    )
    if row != expected or not typed:
        what = f"record {change_number}" if is_counter(change_number) else f"row {expected}"
        raise ModelFileError(path, f"{what} is missing, or lacks its time, author or action")
    if _chain(last, row, change_number, moment, by, action, data) != checksum:
        raise ModelFileError(
            path,
            f"record {change_number} is damaged, or not the one that was written there: "
            "its SHA-256 is not the recorded one",
        )
    if action not in ACTIONS:
        raise ModelFileError(path, f"record {change_number} has an unknown action")


def _decode(path: Path, action: str, change_number: int, data: bytes) -> dict[str, Any]:
    """Return what a row holds, once that is what its action needs."""
    try:
        content = decode_row(data)
    except ValueError as error:
        raise ModelFileError(path, f"record {change_number} {error}") from None
    if not check_content(action, content, change_number):
        raise ModelFileError(
            path, f"record {change_number} has the action {action}, but what it needs is missing"
        )
    return content
