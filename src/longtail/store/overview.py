"""Contents of a model file and its journal, read and checked without building the model.

In: the path of a model file. Out: its checked contents, and the changes that wait in its journal.
Neither a compiler nor scikit-learn is imported for it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longtail._words import count
from longtail.exceptions import ModelFileError
from longtail.store.changes import Change, mark_undone
from longtail.store.checks import Sizes
from longtail.store.container import ModelFile, open_model, read_checksum
from longtail.store.contents import Contents, check_all, read_contents
from longtail.store.journal import JournalContents, journal_path, read_journal
from longtail.store.strict_json import FaultError


class CheckedFile(NamedTuple):
    """An opened file, its contents, and its sizes by name."""

    file: ModelFile
    contents: Contents
    sizes: Sizes


def open_checked(path: str | os.PathLike[str], *, verify: bool = True) -> CheckedFile:
    """Open a file and check everything in it against the schema.

    `verify` compares every array with its checksum; the checks against the schema are made in any
    case.

    Raises
    ------
    ModelFileError
        Anything is wrong with the file.
    """
    file = open_model(path, verify=verify)
    try:
        contents = read_contents(file)
        return CheckedFile(file, contents, check_all(contents))
    except FaultError as fault:
        raise file.error(str(fault)) from None


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
