"""The SQLite database of a journal: creating, opening and checking it; its errors in our words.

In: the path of a journal. Out: a connection to a database that has exactly our two tables. Nothing
in a database that someone else made is run: functions in its schema are not trusted, and whatever
is not one of the two tables, word by word, is refused before either of them is read.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from longtail.exceptions import ModelFileError
from longtail.store.changes import LARGEST_ROW
from longtail.store.files import set_mode, sync_folder
from longtail.store.forking import GATE

Result = TypeVar("Result")

JOURNAL_FORMAT = 1
LOCK_TIMEOUT = (
    600.0  # seconds; a compaction of a large model holds the lock for as long as it takes
)

_APPLICATION = 0x6C746A6C  # "ltjl"; tells the database from those of other programs
_MAX_READINGS = 100  # of a journal that others write all the while
_LARGEST_CHECKED = 64 << 20  # bytes; SQLite's own check of all pages takes 0.1 s for so many
_SCHEMA = (
    (
        "header",
        "CREATE TABLE header (id INTEGER PRIMARY KEY, model TEXT, pending TEXT, "
        "next_number INTEGER, start_row INTEGER, start BLOB, end_row INTEGER, last BLOB, "
        "seal BLOB)",
    ),
    (
        "records",
        "CREATE TABLE records (row INTEGER PRIMARY KEY, number INTEGER, time TEXT, author TEXT, "
        "action TEXT, classes BLOB, sizes BLOB, terms BLOB, counts BLOB, facts BLOB, content BLOB, "
        "checksum BLOB)",
    ),
)


def exists(path: Path) -> bool:
    """Return whether there is a journal that holds something.

    Raises
    ------
    ModelFileError
        If it, or a file that belongs to it, is not a regular file; opening it might never end.
    """
    size = 0
    for name in (path, *companions(path)):
        try:
            found = os.stat(name)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise ModelFileError(name, "is not a regular file, so it is no journal")
        size += found.st_size if name == path else 0
    return size > 0


def companions(path: Path) -> tuple[Path, Path]:
    """Return the files that SQLite keeps beside a database in use."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def create(path: Path, mode: int) -> None:
    """Create an empty file for a database, with these permissions from the first moment."""
    if not path.exists():
        for name in companions(path):  # of a journal that was deleted; SQLite would replay it
            name.unlink(missing_ok=True)
    with suppress(FileExistsError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        os.close(handle)
        sync_folder(path.parent)
    # What the umask took away, or the permissions of the model have changed since.
    for name in (path, *companions(path)):
        with suppress(OSError):
            set_mode(name, mode)


def connect(path: Path, *, writable: bool, timeout: float = 1.0) -> sqlite3.Connection:
    """Open a database and check its schema.

    Raises
    ------
    ModelFileError
        If it is damaged, or not a journal.
    """
    exists(path)  # refuses what is not a regular file
    options = "mode=rw" if writable else "mode=ro"
    is_alone = not writable and not _holds_something(companions(path)[0])
    if is_alone:
        options += "&immutable=1"  # or SQLite would want to create files beside it
    address = f"{path.absolute().as_uri()}?{options}"
    with translate_errors(path):
        connection = sqlite3.connect(
            address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            _configure(connection)
            if not is_empty(connection):
                _check_schema(path, connection)
                if not is_alone:  # then it was empty; who writes to it now has not crashed
                    _warn_torn(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection


def read_once(path: Path, read: Callable[[sqlite3.Connection], Result]) -> Result:
    """Return what `read` returns of a connection; needs no permission to write.

    Who may not write cannot keep others from creating, moving and removing what is beside the
    database: what was read, or failed, while they did is read again.
    """
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        with closing(connect(path, writable=True)) as connection, translate_errors(path):
            return read(connection)
    for is_last in (*[False] * _MAX_READINGS, True):
        before = _identify(path)
        try:
            with _connect_reader(path) as connection, translate_errors(path):
                found = read(connection)
            if is_last or before[0] == _identify(path)[0]:
                return found
        except (OSError, ModelFileError):
            if is_last or before == _identify(path):
                raise
        time.sleep(0.001)
    raise AssertionError  # the last reading returns or raises


def _identify(path: Path) -> list[tuple[int, int, int] | None]:
    """Return what tells whether a database or a file beside it was written meanwhile."""
    found: list[tuple[int, int, int] | None] = []
    for name in (path, *companions(path)):
        try:
            status = os.stat(name)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


@contextmanager
def _connect_reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to read it, without permission to write."""
    wal, shm = companions(path)
    if not _holds_something(wal) or shm.exists():
        with closing(connect(path, writable=False)) as connection:
            yield connection
        return
    # What a crash left behind can only be read where SQLite may write.
    with tempfile.TemporaryDirectory(prefix="longtail-") as private:
        copy = Path(private) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(wal, companions(copy)[0])
        with closing(connect(copy, writable=True)) as connection:
            yield connection


def install_schema(connection: sqlite3.Connection) -> None:
    """Create the tables of a new journal, inside a transaction of the caller's."""
    for _, statement in _SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {JOURNAL_FORMAT}")


def begin(
    path: Path, connection: sqlite3.Connection, on_begun: Callable[[], None] = lambda: None
) -> None:
    """Begin a transaction that writes, alone among all processes.

    `on_begun` is called before this process may fork.

    Raises
    ------
    TimeoutError
        If another process does not end its own.
    """

    def attempt() -> None:
        with translate_errors(path):
            connection.execute("BEGIN IMMEDIATE")
            on_begun()

    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            GATE.run(attempt)
            return
        except TimeoutError:  # after each second, so that an interrupt is heeded
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)  # a fork may wait for its turn


def erase_deleted(path: Path, connection: sqlite3.Connection) -> bool:
    """Remove deleted rows from all files of a database; return whether nothing is left of them.

    SQLite has overwritten the rows with zeros (``secure_delete``); they are still in the
    write-ahead log until that is emptied, for which no other process may be reading.
    """
    with translate_errors(path):
        emptied = empty_wal(connection)
        with suppress(sqlite3.OperationalError):  # makes the file small; a full disk may forbid it
            connection.execute("VACUUM")
            emptied = empty_wal(connection)
    return emptied


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the system's, where it is to blame, or into `ModelFileError`."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        name, kind = os.fspath(path), _SYSTEM_ERRORS.get(code)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TimeoutError(
                errno.ETIMEDOUT, "another process holds the journal; try again", name
            ) from None
        if kind is not None:
            raise OSError(kind, f"{os.strerror(kind)} ({error})", name) from error
        raise ModelFileError(
            path, f"is damaged, or not a journal of longtail: SQLite says {str(error)!r}"
        ) from None


_SYSTEM_ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
}


def _configure(connection: sqlite3.Connection) -> None:
    """Set what protects from hostile databases, from power cuts, and from traces of the deleted."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW + 65_536)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # VACUUM needs one
    for setting in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "synchronous = FULL",
        "secure_delete = ON",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a database has nothing in it yet: its creator was stopped."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database that is not a journal, or a damaged one."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _APPLICATION and version > JOURNAL_FORMAT:
        raise ModelFileError(
            path,
            f"has format {version}; this version of longtail reads up to {JOURNAL_FORMAT}. "
            "Upgrade longtail to open it",
        )
    found = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name LIMIT 3"
    ).fetchall()
    expected = [("table", name, name, statement) for name, statement in _SCHEMA]
    if application != _APPLICATION or version != JOURNAL_FORMAT or found != expected:
        raise ModelFileError(path, "is not a journal of longtail: its tables are others")
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if n_pages * page_size <= _LARGEST_CHECKED:  # the rows are checked in any case
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise ModelFileError(path, f"is damaged: SQLite says {verdict!r:.200}")


def empty_wal(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the database and cut it to nothing; return whether it is."""
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _holds_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _warn_torn(path: Path, connection: sqlite3.Connection) -> None:
    """Warn of a write-ahead log that ends within a page: a kill, a power cut or damage did it."""
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()

    def is_torn() -> bool:
        try:
            size = companions(path)[0].stat().st_size
            return size > 0 and (size - 32) % (24 + page_size) != 0
        except FileNotFoundError:
            return False

    if not is_torn():
        return
    with suppress(sqlite3.OperationalError):  # another process writes just now: no crash
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        if is_torn():
            warnings.warn(
                f"{path}: the last record is unfinished: whoever wrote it was stopped before it "
                "was acknowledged. It is left out.",
                RuntimeWarning,
                stacklevel=4,
            )
