"""The journal of a model: what it was taught since it was saved, in a SQLite database.

In: changes (an action, its content, who). Out: the same changes back, in order, or what is wrong
with the file. This module knows no estimator; what changes do to a model is the business of
`longtail.teaching`. ``docs/model-format.md`` gives the layout.

The journal of ``genus.longtail`` is ``genus.longtail.journal``. One transaction is one change. Each
row's SHA-256 covers the row before, the first one's the checksum of the model file, and the header
names the last row: a row that was changed, removed, swapped, repeated or cut off is noticed.

How a file that has all changes (or that makes them void) takes the place of the model file, so that
a kill at any moment leaves file and journal in agreement:

1. The new file is written beside the model file and made durable; its checksum is C.
2. Transaction one: the header's `pending` becomes C. The rows still count, for the model file is
   still the header's `model`.
3. Transaction two begins. If another process made a change since, it has set `pending` back, and
   all starts again. Otherwise the new file is renamed into place and the rename made durable.
   A process that finds the model file with checksum C and `pending` C knows that it has the rows.
4. Transaction two deletes the rows, sets `model` to C, and commits.

Numbers go on in every case: the header keeps the next one.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from longtail._words import count
from longtail.exceptions import ModelFileError
from longtail.store import journal_database as database
from longtail.store.changes import LARGEST_ROW, Change, Row, mark_undone
from longtail.store.container import read_checksum
from longtail.store.files import set_mode, sync_folder, temporary_path
from longtail.store.forking import watch
from longtail.store.journal_database import translate_errors
from longtail.store.journal_rows import (
    Header,
    insert,
    new_header,
    read_changes,
    read_header,
    read_some,
    write_header,
)

_FORKED: list[sqlite3.Connection] = []  # a child must neither use nor close what it inherited


@dataclass(frozen=True)
class JournalContents:
    """The header of a journal and its changes, oldest first."""

    header: Header
    changes: list[Change]


def journal_path(model: str | os.PathLike[str]) -> Path:
    """Return where the journal of a model file is; a link has that of the file it leads to."""
    return Path(os.path.realpath(model) + ".journal")


def read_journal(path: Path) -> JournalContents | None:
    """Read a whole journal and check it; None where there is none, or nothing in it yet.

    Raises
    ------
    ModelFileError
        If it is damaged, or a record is missing, repeated or out of place.

    Warns
    -----
    RuntimeWarning
        If a crash left the last record unfinished. It was never acknowledged and is left out.
    """
    if not database.exists(path):
        return None
    return database.read_once(path, lambda connection: OpenJournal(path, connection).read())


def waiting_changes(path: str | os.PathLike[str]) -> list[Change]:
    """Return the changes of the journal that the model file does not have yet, oldest first.

    `in_effect` is False for what an undo took back.

    Raises
    ------
    ModelFileError
        The journal is damaged, or belongs to another model file.
    """
    found, checksum = read_journal(journal_path(path)), read_checksum(path)
    if found is None or found.header.is_folded(checksum):
        return []
    check_same_model(path, found, checksum)
    return mark_undone(found.changes)


def check_same_model(path: str | os.PathLike[str], journal: JournalContents, checksum: str) -> None:
    """Refuse a journal whose changes belong to another model file."""
    header = journal.header
    if not journal.changes or header.model == checksum or header.is_folded(checksum):
        return
    raise ModelFileError(
        journal_path(path),
        f"holds {count(len(journal.changes), 'change')} of another model file than the one "
        f"beside it: {os.fspath(path)} was replaced since. If they are no longer wanted, or "
        "the new file has them already, delete this journal; otherwise put the file back that it "
        f"belongs to (checksum {header.model[:12]}...)",
    )


def refined_path(model: str | os.PathLike[str], change_number: int) -> Path:
    """Return where what a `refine` learned is, until the journal is folded into the model file."""
    return Path(f"{os.path.realpath(model)}.refined-{change_number}")


def find_refined(model: Path) -> list[Path]:
    """Return the files that hold what `refine` learned; what is no file is not ours."""
    prefix = f"{model.name}.refined-"
    return [
        entry
        for entry in model.parent.iterdir()
        if entry.name.startswith(prefix)
        and entry.name[len(prefix) :].isdecimal()
        and not entry.is_dir()
    ]


def remove_refined(model: Path) -> None:
    """Remove the files that hold what `refine` learned.

    Raises
    ------
    OSError
        If one cannot be removed.
    """
    for path in find_refined(model):
        path.unlink(missing_ok=True)


@contextmanager
def saving(model: str | os.PathLike[str], *, discard_changes: bool = False) -> Iterator[Path]:
    """Guard the saving of a new model file over one that may have a journal.

    Yields where to write the file. `discard_changes` drops the changes that the journal holds.

    Raises
    ------
    ModelFileError
        If the journal holds changes that the model file does not have, and they are not to be
        dropped.
    """
    path, target = journal_path(model), Path(os.path.realpath(model))
    if not target.exists() or not database.exists(path):
        yield Path(model)
        return
    journal = Journal(target)
    try:
        with journal.locked():
            header, checksum = journal.header(), read_checksum(target)
            if header is None or not header.has_changes or header.is_folded(checksum):
                remove_refined(target)
                yield Path(model)
                return
            if not discard_changes:
                raise ModelFileError(
                    path,
                    f"holds {count(journal.count_changes(), 'change')} that saving over "
                    f"{os.fspath(model)} would drop. Fold them into it first "
                    "(Teacher(path).compact()), save under another name, or give "
                    "discard_changes=True",
                )
            with journal.new_file() as beside:
                yield beside
                if journal.replace_model(beside, header) is None:
                    raise ModelFileError(path, "was changed by another process; save again")
    finally:
        journal.close()


class JournalReader:
    """A journal as it is when it is asked, by way of an open database."""

    path: Path

    def _connect(self) -> sqlite3.Connection:
        raise NotImplementedError

    def header(self) -> Header | None:
        """Return the header; None where nothing was written yet."""
        with translate_errors(self.path):
            return read_header(self.path, self._connect())

    def read(self, after: Header | None = None) -> JournalContents | None:
        """Read and check all changes, or those after what was the end of the journal.

        Raises
        ------
        ModelFileError
            If a record is damaged, or the journal is not the one that had that end.
        """
        with translate_errors(self.path):
            connection = self._connect()
            header = read_header(self.path, connection)
            if header is None:
                return None
            return JournalContents(header, read_changes(self.path, connection, header, after))

    def read_some(self, header: Header, change_numbers: Sequence[int]) -> list[Change]:
        """Read and check the changes with some numbers."""
        with translate_errors(self.path):
            return read_some(self.path, self._connect(), header, change_numbers)


class OpenJournal(JournalReader):
    """A journal of somebody else, to be read while its connection is open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")  # header and rows of the same moment
        self.path, self._connection = path, connection

    def _connect(self) -> sqlite3.Connection:
        return self._connection


class Journal(JournalReader):
    """The journal of a model file, for one process that writes; created with the first change."""

    def __init__(self, model: str | os.PathLike[str]) -> None:
        self.path = journal_path(model)
        self.model = Path(os.path.realpath(model))
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] = (0, 0, 0)  # process, device and inode
        self._held_by = 0, 0  # process and thread
        watch(self)

    def exists(self) -> bool:
        """Return whether there is a journal."""
        return database.exists(self.path)

    def close(self) -> None:
        """Close the database; it is opened again when it is needed."""
        connection = self._connection
        if connection is not None and self._opened[0] == os.getpid():
            with suppress(sqlite3.Error):
                connection.close()
        elif connection is not None:
            _FORKED.append(connection)
        self._connection = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other processes from writing; what is not committed at the end is undone.

        Raises
        ------
        OSError
            If the journal cannot be written.
        """
        try:
            self.begin()
            yield
        finally:
            self.release()

    def begin(self) -> None:
        """Begin to keep all other processes from writing, until `release`."""
        while True:
            database.begin(self.path, self._connect(), self._note_holder)
            if self._is_current():
                return
            self.close()  # the file was deleted, and perhaps created again

    def release(self) -> None:
        """Undo what is not committed, if anything, and let others write; harmless twice."""
        connection = self._connection
        if connection is not None and self._opened[0] == os.getpid():
            with suppress(sqlite3.Error):
                connection.rollback()  # nothing where no transaction is open
        self._held_by = 0, 0

    def is_held_elsewhere(self) -> bool:
        """Return whether another thread of this process is between `begin` and `release`."""
        process, thread = self._held_by
        return process == os.getpid() and thread != threading.get_ident()

    def _note_holder(self) -> None:
        self._held_by = os.getpid(), threading.get_ident()

    def count_changes(self) -> int:
        """Return how many changes there are."""
        query = "SELECT count(DISTINCT number) FROM records"
        with translate_errors(self.path):
            return int(self._connect().execute(query).fetchone()[0])

    def append(
        self,
        header: Header,
        action: str,
        rows: Sequence[Row],
        by: str | None,
    ) -> Header:
        """Record one change durably, and return the header with the new end.

        `header` is as it is now, or as `restart` made it.

        Raises
        ------
        ValueError
            If a row would be too large; nothing was written.
        OSError
            If it could not be written; the journal is as it was.
        """
        if any(sum(map(len, row)) > LARGEST_ROW for row in rows):
            raise ValueError(
                f"a document would take more than {LARGEST_ROW:,} bytes in the journal. Shorten it."
            )
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._unchanged_on_failure("The change was not recorded"):
            header = insert(self._connect(), header, header.next_number, moment, by, action, rows)
            header = replace(header, pending=None)
            write_header(self._connect(), header)
            self._connect().execute("COMMIT")
        return header

    def restart(self, header: Header | None, model: str) -> Header:
        """Delete all rows and name another model file; the caller commits, or appends."""
        remove_refined(self.model)
        with translate_errors(self.path):
            if header is None:
                database.install_schema(self._connect())
            else:
                self._connect().execute("DELETE FROM records")
            fresh = new_header(model, header)
            write_header(self._connect(), fresh)
        return fresh

    @contextmanager
    def new_file(self) -> Iterator[Path]:
        """Yield the name of an empty file beside the model file, with its permissions."""
        beside = temporary_path(self.model)
        mode = stat.S_IMODE(self.model.stat().st_mode)
        os.close(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        try:
            set_mode(beside, mode)
            yield beside
        finally:
            beside.unlink(missing_ok=True)

    def replace_model(self, beside: Path, header: Header, n_used: int = 0) -> Header | None:
        """Put a new file in the model file's place and empty the journal: see the module.

        `header` is as it is in the transaction that is open. `n_used` numbers are used by what the
        new file has beyond the rows. Returns None where another process made a change meanwhile:
        then nothing was replaced.
        """
        # A number that may be in a file is never used again.
        used = header.next_number + n_used
        pending = replace(header, pending=read_checksum(beside), next_number=used)
        connection = self._connect()
        with self._unchanged_on_failure("The model was not replaced"):
            write_header(connection, pending)
            connection.execute("COMMIT")
        database.begin(self.path, connection)
        if not self._is_current() or self.header() != pending:
            connection.rollback()
            return None
        os.replace(beside, self.model)
        # Before the changes are given up, and with them the files of refinements, without which
        # the old file would not open.
        sync_folder(self.model.parent)
        fresh = self.restart(pending, str(pending.pending))
        with translate_errors(self.path):
            connection.execute("COMMIT")
        return fresh

    def erase(self) -> bool:
        """Remove what was deleted from the disk; return whether nothing is left of it."""
        return database.erase_deleted(self.path, self._connect())

    def _connect(self) -> sqlite3.Connection:
        """Return the connection; a new one after a fork, and where there is none yet."""
        if self._connection is not None and self._opened[0] == os.getpid():
            return self._connection
        self.close()
        mode = stat.S_IMODE(self.model.stat().st_mode) | stat.S_IRUSR | stat.S_IWUSR
        database.create(self.path, mode)
        for path in find_refined(self.model):
            with suppress(OSError):
                set_mode(path, mode)
        connection = database.connect(self.path, writable=True)
        with translate_errors(self.path):
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        found = os.stat(self.path)
        self._connection, self._opened = connection, (os.getpid(), found.st_dev, found.st_ino)
        return connection

    def _is_current(self) -> bool:
        """Return whether the open database is still the file with its name."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return self._opened[1:] == (found.st_dev, found.st_ino)

    @contextmanager
    def _unchanged_on_failure(self, what: str) -> Iterator[None]:
        """Undo a transaction that could not be written, and say so."""
        try:
            with translate_errors(self.path):
                yield
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._connect().in_transaction:
                    self._connect().rollback()
                database.empty_wal(self._connect())  # of what was written before it failed
            if isinstance(error, OSError):
                message = f"{error.strerror}. {what}; model and journal are as they were"
                raise type(error)(error.errno, message, os.fspath(self.path)) from error
            raise
