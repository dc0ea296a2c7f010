"""Snapshots as a journal names them, and when one is due; nothing in a row is trusted."""

import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from longtail.exceptions import ModelFileError
from longtail.store import write_model
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, journal_path, read_journal, saving
from longtail.store.journal_database import companions
from longtail.store.journal_rows import StoredBatches, new_header
from longtail.store.snapshots import (
    Snapshot,
    _seal,
    find_usable,
    put_snapshot,
    remove_unknown,
    snapshot_path,
)
from longtail.teaching import snapshots
from longtail.teaching.snapshots import Tail


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", "test", {}, {"a": np.arange(3)})
    return tmp_path / "model"


def shared_memory(model):
    return companions(journal_path(model))[1]


def append(model, *actions):
    """Append changes to the journal of a model; return its header."""
    journal = Journal(model)
    for action in actions:
        with journal.locked():
            header = journal.header() or journal.restart(None, read_checksum(model))
            content = {"changes": [1]} if action == "undo" else {"label": 1}
            header = journal.append(header, action, [content], None)
    journal.close()
    return header


def put(model, header):
    """Let a small file be the snapshot."""
    journal = Journal(model)
    with journal.new_file() as beside:
        write_model(beside, "test", {"n": header.end_row}, {"a": np.arange(4)})
        found = put_snapshot(journal, beside, header)
    journal.close()
    return found


def edit(model, statement, *values):
    with sqlite3.connect(journal_path(model), isolation_level=None) as connection:
        connection.execute(statement, values)
    connection.close()


def listed(model):
    return sorted(os.listdir(model.parent))


def test_a_journal_names_its_snapshot(model):
    assert snapshot_path(model).name == "model.snapshot"
    header = append(model, "remove", "remove")
    assert read_journal(journal_path(model)).snapshot is None
    assert put(model, header)
    append(model, "remove")
    contents = read_journal(journal_path(model))
    checksum = read_checksum(snapshot_path(model))
    assert contents.snapshot == Snapshot(checksum, row=2, change_number=2)
    assert [change.number for change in contents.changes] == [1, 2, 3]
    journal = Journal(model)
    assert journal.count_changes() == 3
    journal.close()
    assert listed(model) == ["model", "model.journal", "model.snapshot"]


def test_the_newest_takes_the_place_of_the_one_before(model):
    put(model, append(model, "remove"))
    put(model, append(model, "remove"))
    assert read_journal(journal_path(model)).snapshot.change_number == 2
    assert listed(model) == ["model", "model.journal", "model.snapshot"]


def test_a_journal_begun_anew_takes_no_snapshot_of_what_was(model):
    header = append(model, "remove")
    put(model, header)
    journal = Journal(model)
    with journal.locked():
        fresh = journal.restart(journal.header(), read_checksum(model))
        journal.append(fresh, "remove", [{"label": 1}], None)
    journal.close()
    assert not snapshot_path(model).exists()
    assert not put(model, header)
    assert not put(model, new_header("0" * 64, header))
    assert listed(model) == ["model", "model.journal"]
    assert read_journal(journal_path(model)).snapshot is None


def test_saving_another_model_removes_it(model):
    put(model, append(model, "remove"))
    with saving(model, discard_changes=True) as beside:
        write_model(beside, "test", {}, {"a": np.arange(5)})
    assert listed(model) == ["model", "model.journal"]
    snapshot_path(model).write_bytes(b"left by somebody")
    with saving(model) as target:
        write_model(target, "test", {}, {"a": np.arange(6)})
    assert listed(model) == ["model", "model.journal"]


def test_a_file_that_the_journal_does_not_know_goes(model):
    """An older process deletes all rows and knows of no file."""
    put(model, append(model, "remove"))
    journal = Journal(model)
    with journal.locked():
        remove_unknown(journal)
    assert snapshot_path(model).exists()
    edit(model, "DELETE FROM records WHERE row < 0")
    with journal.locked():
        remove_unknown(journal)
    journal.close()
    assert not snapshot_path(model).exists()


def test_a_folder_of_that_name_is_left_alone(model):
    append(model, "remove")
    snapshot_path(model).mkdir()
    journal = Journal(model)
    with journal.locked():
        remove_unknown(journal)
        journal.restart(journal.header(), read_checksum(model))
    journal.close()
    assert snapshot_path(model).is_dir()


def test_an_undo_since_makes_it_doubtful(model):
    put(model, append(model, "remove"))
    journal = Journal(model)
    assert find_usable(journal).change_number == 1
    append(model, "undo")
    assert find_usable(journal) is None
    journal.close()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_it_has_the_permissions_of_the_model(model, mode):
    header = append(model, "remove")
    model.chmod(mode)
    put(model, header)
    assert snapshot_path(model).stat().st_mode & 0o777 == mode
    model.chmod(0o600)
    append(model, "remove")
    assert snapshot_path(model).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("beside", [snapshot_path, journal_path, shared_memory])
def test_what_a_link_leads_to_keeps_its_permissions(model, tmp_path, beside):
    model.chmod(0o644)
    private = tmp_path / "private"
    private.write_bytes(b"")
    private.chmod(0o600)
    beside(model).symlink_to(private)
    append(model, "remove")
    assert private.stat().st_mode & 0o777 == 0o600


def test_permissions_are_set_without_giving_up_a_lock(model):
    append(model, "remove")
    holder, other = Journal(model), Journal(model)
    with holder.locked():
        other.header()  # connects, in the same process
        command = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0).execute('BEGIN IMMEDIATE')"
        ended = subprocess.run(
            [sys.executable, "-c", command, journal_path(model)], capture_output=True, check=False
        )
        assert b"database is locked" in ended.stderr
    holder.close()
    other.close()


def forge(content):
    return json.dumps(content).encode() if not isinstance(content, bytes) else content


SOUND = {"file": "0" * 64, "row": 1, "last": "00"}
ROWS = {
    "no object": b"[]",
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "deep": b"[" * 900,
    "nothing": {},
    "another row": {**SOUND, "row": 7},
    "no row": {**SOUND, "row": "1"},
    "a row below all": {**SOUND, "row": -1},
    "a row that is true": {**SOUND, "row": True},
    "a large row": {**SOUND, "row": 2**80},
    "no checksum": {**SOUND, "file": "x"},
    "a path": {**SOUND, "file": "../../etc/passwd"},
    "another history": SOUND,
    "no hexadecimal": {**SOUND, "last": "zz"},
    "no last": {**SOUND, "last": None},
    "long": {**SOUND, "more": "x" * 2000},
}


@pytest.mark.parametrize("content", ROWS.values(), ids=ROWS)
def test_a_forged_row_is_no_snapshot(model, content):
    append(model, "remove")
    data = forge(content)
    values = ("snapshot", data, _seal(data))
    edit(model, "INSERT INTO records VALUES (-1, NULL, NULL, NULL, ?, ?, ?)", *values)
    contents = read_journal(journal_path(model))
    assert contents.snapshot is None
    assert len(contents.changes) == 1


@pytest.mark.parametrize("value", [None, 1, 1.5, "text", b"", b"\0" * 99_999])
@pytest.mark.parametrize("column", ["content", "checksum", "number", "action"])
def test_a_damaged_row_is_none_or_the_same(model, column, value):
    put(model, append(model, "remove"))
    expected = read_journal(journal_path(model))
    edit(model, f"UPDATE records SET {column} = ? WHERE row = -1", value)
    contents = read_journal(journal_path(model))
    assert contents.changes == expected.changes
    assert contents.snapshot == (expected.snapshot if column in ("number", "action") else None)


# What a snapshot has is decoded when it is asked for


def remove_labels(model, *labels):
    """Append removals of classes; return the header."""
    journal = Journal(model)
    for label in labels:
        with journal.locked():
            header = journal.header() or journal.restart(None, read_checksum(model))
            header = journal.append(header, "remove", [{"label": label}], None)
    journal.close()
    return header


def read_lazily(model):
    """Return the journal as a process that opens the model reads it."""
    journal = Journal(model)
    with journal.locked():
        locked = journal.read(lazily=True)
    journal.close()
    contents = read_journal(journal_path(model), lazily=True)
    assert [change.number for change in contents.changes] == [c.number for c in locked.changes]
    return contents


def test_what_is_read_lazily_is_the_same_once_it_is_asked_for(model):
    put(model, remove_labels(model, "a", "b"))
    remove_labels(model, "c")
    eagerly = read_journal(journal_path(model)).changes
    assert [type(change.batches) for change in eagerly] == [tuple] * 3
    lazily = read_lazily(model).changes
    assert [type(change.batches) for change in lazily] == [StoredBatches] * 2 + [tuple]
    assert [len(change.batches) for change in lazily] == [1, 1, 1]
    assert [change.content for change in lazily] == [{"label": label} for label in "abc"]
    assert [tuple(change.batches) for change in lazily] == [change.batches for change in eagerly]


def test_a_journal_without_a_snapshot_is_decoded_at_once(model):
    remove_labels(model, "a", "b")
    assert [type(change.batches) for change in read_lazily(model).changes] == [tuple] * 2


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE records SET content = CAST(\'{"label":"x"}\' AS BLOB) WHERE row = 1',
        "UPDATE records SET time = 'x' WHERE row = 1",
        "DELETE FROM records WHERE row = 1",
        "DELETE FROM records WHERE row = 3",
    ],
)
def test_damage_to_what_a_snapshot_has_is_noticed_all_the_same(model, statement):
    put(model, remove_labels(model, "a", "b"))
    remove_labels(model, "c")
    edit(model, statement)
    for lazily in (False, True):
        with pytest.raises(ModelFileError, match=r"damaged|missing|cut off"):
            read_journal(journal_path(model), lazily=lazily)


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"label": null}', b"\x78\x00"])
def test_what_checksums_cannot_tell_is_refused_when_it_is_asked_for(model, monkeypatch, content):
    """A hand that forges rows computes right checksums for them."""
    monkeypatch.setattr("longtail.store.journal.encode_row", lambda _: content)
    put(model, remove_labels(model, "a"))
    monkeypatch.undo()
    remove_labels(model, "b")
    with pytest.raises(ModelFileError, match="record 1 "):
        read_journal(journal_path(model))
    first, last = read_lazily(model).changes
    assert last.content == {"label": "b"}
    for _ in range(2):
        with pytest.raises(ModelFileError, match="record 1 ") as caught:
            _ = first.content
        assert caught.value.path == str(journal_path(model))


# When one is due


def at(row):
    header = new_header("0" * 64, None)
    return type(header)(*{**vars(header), "end_row": row, "next_number": row + 1}.values())


@pytest.mark.parametrize(
    ("tail", "row", "large", "due"),
    [
        (Tail(), 999, True, False),
        (Tail(), 1000, False, True),
        (Tail(500, 500), 1000, False, False),
        (Tail(500, 500), 1500, False, True),
        (Tail(0, 0, 1), 199, True, False),
        (Tail(0, 0, 1), 200, True, True),
        (Tail(0, 0, 3), 10, True, False),
        (Tail(0, 0, 4), 10, True, True),
        (Tail(0, 0, 4), 900, False, False),
    ],
)
def test_when_one_is_due(tail, row, large, due):
    n_bytes = snapshots.LEAST_BYTES if large else snapshots.LEAST_BYTES - 1
    assert tail.is_due(at(row), n_bytes) == due


def test_an_undo_that_reaches_before_a_snapshot_makes_all_of_the_journal_its_tail():
    tail = Tail(70, 70, 2)
    assert tail.extend_by_undo(at(75), [71, 73]) == tail
    assert tail.extend_by_undo(at(75), [70]) == Tail(0, 0, 2)
