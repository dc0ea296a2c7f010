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
from typing import Any

from longtail.exceptions import ModelFileError
from longtail.store import journal_database as database
from longtail.store.changes import ACTIONS, WITH_DOCUMENTS, Change, Row, is_checksum, is_counter


@dataclass(frozen=True)
class Header:
    """The header of a journal; `end_row` and `last` are where it ends.

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
    data: Row,
) -> bytes:
    """Return the checksum of a row and, through the one before, of all before it."""
    # A JSON list, put together by hand: opening does this ten thousand times.
    texts = ", ".join(["null" if text is None else quote(text) for text in (moment, by, action)])
    lengths = ", ".join([str(len(summand)) for summand in data])
    head = f"[{row}, {change_number}, {texts}, {lengths}]"
    return hashlib.sha256(b"".join((previous, head.encode("ascii"), b"\n", *data))).digest()


def insert(
    connection: sqlite3.Connection,
    header: Header,
    change_number: int,
    moment: str,
    by: str | None,
    action: str,
    rows: Sequence[Row],
) -> Header:
    """Insert the rows of one change; return the header that has them."""
    row, last = header.end_row, header.last
    for data in rows:
        row += 1
        last = _chain(last, row, change_number, moment, by, action, data)
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row, change_number, moment, by, action, *data, last),
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


def read_changes(
    path: Path, connection: sqlite3.Connection, header: Header, after: Header | None = None
) -> list[Change]:
    """Return the changes after what was the end of the journal, each row checked."""
    row, last = (header.start_row, header.start) if after is None else (after.end_row, after.last)
    if after is not None and not has_end(connection, header, after):
        raise ModelFileError(path, "was replaced or cut short while the model was open")
    changes: list[Change] = []
    rows: list[Row] = []
    before: tuple[Any, ...] = (0, None, None, None)
    query = "SELECT * FROM records WHERE row > ? ORDER BY row"
    for found in connection.execute(query, (row,)):
        _check_row(path, found, row + 1, last)
        row, change_number, moment, by, action, *parts, last = found
        head = change_number, moment, by, action
        if head == before and action in WITH_DOCUMENTS:  # more documents of the same change
            rows.append(Row(*parts))
            changes[-1] = replace(changes[-1], rows=tuple(rows))
        elif change_number <= before[0]:
            raise ModelFileError(path, f"record {change_number} comes after record {before[0]}")
        else:
            rows = [Row(*parts)]
            changes.append(Change(change_number, moment, by, action, tuple(rows), path=path))
            before = head
    if (row, last) != (header.end_row, header.last) or before[0] >= header.next_number:
        raise ModelFileError(
            path, f"is cut off: its last record should be row {header.end_row}; it is row {row}"
        )
    for change in changes:  # those of documents are looked at when they are applied, or shown
        if change.action not in WITH_DOCUMENTS:
            _ = change.facts
    return changes


def read_some(
    path: Path, connection: sqlite3.Connection, header: Header, change_numbers: Sequence[int]
) -> list[Change]:
    """Return the changes with some numbers, each row checked against the one before."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for change_number in sorted(change_numbers):
        query = "SELECT * FROM records WHERE number = ? ORDER BY row"
        for record in connection.execute(query, (change_number,)):
            row = record[0]
            query = "SELECT checksum FROM records WHERE row = ?"
            before = connection.execute(query, (row - 1,)).fetchone() if is_counter(row) else None
            last = header.start if before is None else before[0]
            _check_row(path, record, row, last if isinstance(last, bytes) else b"")
            found.setdefault(change_number, []).append(record)
        if change_number not in found:
            raise ModelFileError(path, f"record {change_number} is missing")
    changes = []
    for records in found.values():
        change_number, moment, by, action = records[0][1:5]
        rows = tuple(Row(*record[5:-1]) for record in records)
        changes.append(Change(change_number, moment, by, action, rows, path=path))
    return changes


def has_end(connection: sqlite3.Connection, header: Header, after: Header) -> bool:
    """Return whether a journal still has what was its end."""
    if after.end_row == header.start_row:
        return after.last == header.start
    query = "SELECT checksum FROM records WHERE row = ?"
    found: object = connection.execute(query, (after.end_row,)).fetchone()
    return after.end_row > header.start_row and found == (after.last,)


def _check_row(path: Path, found: tuple[Any, ...], expected: int, last: bytes) -> None:
    """Refuse a row that is not as it was written."""
    row, change_number, moment, by, action, *data, checksum = found
    typed = (
        is_counter(change_number)
        and isinstance(moment, str)
        and isinstance(by, str | None)
        and isinstance(action, str)
        and all(isinstance(summand, bytes) for summand in data)
    )
    if row != expected or not typed:
        what = f"record {change_number}" if is_counter(change_number) else f"row {expected}"
        raise ModelFileError(path, f"{what} is missing, or lacks its time, author or action")
    if _chain(last, row, change_number, moment, by, action, Row(*data)) != checksum:
        raise ModelFileError(
            path,
            f"record {change_number} is damaged, or not the one that was written there: "
            "its SHA-256 is not the recorded one",
        )
    if action not in ACTIONS:
        raise ModelFileError(path, f"record {change_number} has an unknown action")
