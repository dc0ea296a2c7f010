"""From the text log of an earlier version to a journal, once.

In: ``genus.longtail.changes``. Out: ``genus.longtail.journal`` with the same changes and their
numbers; the log is gone. A kill at any moment leaves the log, or the journal, or both, and the
journal tells that it was made from that very log.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from longtail.exceptions import ModelFileError
from longtail.store import journal_database as database
from longtail.store.changes import encode_row
from longtail.store.files import sync_folder, temporary_path
from longtail.store.journal_database import translate_errors
from longtail.store.journal_rows import Header, insert, read_header, seed, write_header
from longtail.store.old_journal import OldLog, lock_old_log, old_log_path, read_old_log


def convert(path: Path, mode: int) -> None:
    """Turn the text log of an earlier version into a journal, at once or not at all.

    The database is built under another name, then renamed; only then is the log removed. A log
    that is still there beside the journal made from it is removed.
    """
    log = old_log_path(path)
    if not log.exists():
        return
    with lock_old_log(log):
        old = read_old_log(log)
        if old is not None and not database.exists(path):
            beside = temporary_path(path)
            try:
                database.create(beside, mode)
                _build(beside, old)
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
            sync_folder(path.parent)
        elif old is not None:
            header = database.read_once(path, partial(read_header, path))
            if header is not None:
                refuse_two_journals(path, header, old)
        log.unlink(missing_ok=True)


def _build(path: Path, old: OldLog) -> None:
    """Write the changes of a text log into an empty database."""
    connection = database.connect(path, writable=True)
    try:
        with translate_errors(path):
            connection.execute("PRAGMA journal_mode = MEMORY").fetchone()  # no file beside it
            connection.execute("BEGIN IMMEDIATE")
            database.install_schema(connection)
            given = header_of(old)
            header = replace(given, end_row=0, last=given.start)
            for change in old.changes:
                rows = [encode_row(batch) for batch in change.batches]
                header = insert(
                    connection, header, change.number, change.time, change.by, change.action, rows
                )
            write_header(connection, replace(header, next_number=old.next_number))
            connection.execute("COMMIT")
    finally:
        connection.close()


def header_of(old: OldLog) -> Header:
    """Return the header of the journal that a text log becomes."""
    start = seed(old.model, 0, 1)
    pending = old.folded_into
    n_rows = len(old.changes)
    return Header(old.model, pending, old.checksum, old.next_number, 0, start, n_rows, start)


def refuse_two_journals(path: Path, header: Header, old: OldLog | None) -> None:
    """Refuse a text log beside a journal that was not made from it."""
    if old is not None and old.checksum != header.converted:
        raise ModelFileError(
            old_log_path(path),
            f"lies beside {path.name}, and each has changes that the other lacks: an earlier "
            "version of longtail has taught the model. Put one of them away",
        )
