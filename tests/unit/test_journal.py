"""The journal alone: what goes in comes out, and nothing but a sound journal is read."""

import errno
import json
import os
import sqlite3
import stat
import threading
import zlib
from contextlib import closing

import numpy as np
import pytest

from longtail.exceptions import ModelFileError
from longtail.store import journal as journal_module
from longtail.store import journal_database, write_model
from longtail.store.changes import Change, Row, decode, encode, mark_undone
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, journal_path, read_journal, saving
from longtail.store.journal_rows import Header, _chain
from tests.conftest import as_row

CONTENTS = [
    ("teach", [{"documents": ["naïve \ud800\n\0", ""], "labels": ["a", "熊"]}]),
    ("teach", [{"labels": [1, 2, 3]}]),
    ("forget", [{"documents": ["x"], "labels": [1.5]}, {"documents": ["y" * 900], "labels": [2]}]),
    ("rename", [{"old": "a", "new": "b"}]),
    ("merge", [{"source": 1, "into": 2}]),
    ("remove", [{"label": True}]),
    ("undo", [{"changes": [1, 5]}]),
]
CONTENTS = [(action, [as_row(action, part) for part in parts]) for action, parts in CONTENTS]


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", "test", {}, {"a": np.arange(3)})
    return tmp_path / "model"


def write(model, contents=CONTENTS):
    """Append changes to the journal of a model; return its header."""
    journal = Journal(model)
    for action, rows in contents:
        with journal.locked():
            header = journal.header() or journal.restart(None, read_checksum(model))
            header = journal.append(header, action, rows, "ann" if action == "teach" else None)
    journal.close()
    return header


def edit(model, *statements):
    """Change a closed journal as a hostile hand does."""
    with sqlite3.connect(journal_path(model), isolation_level=None) as connection:
        for statement in statements:
            connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))
    connection.close()


def problem_of(model):
    with pytest.raises(ModelFileError) as caught:
        read_journal(journal_path(model))
    assert caught.value.path == str(journal_path(model))
    journal = Journal(model)
    with pytest.raises(ModelFileError), journal.locked():
        journal.read()
    journal.close()
    return caught.value.problem


# What goes in comes out


def test_everything_comes_back(model):
    header = write(model)
    contents = read_journal(journal_path(model))
    assert contents.header == header
    assert header.model == read_checksum(model)
    assert [(c.action, list(c.rows)) for c in contents.changes] == CONTENTS
    assert [change.number for change in contents.changes] == list(range(1, 8))
    assert [change.by for change in contents.changes] == ["ann"] * 2 + [None] * 5
    assert all(change.time.endswith("+00:00") for change in contents.changes)
    assert header.next_number == 8
    assert contents.changes[2].labels == [1.5, 2]
    assert contents.changes[2].content == {"documents": ["x", "y" * 900], "labels": [1.5, 2]}


def test_no_journal_and_an_empty_one(model):
    assert read_journal(journal_path(model)) is None
    journal_path(model).touch()
    assert read_journal(journal_path(model)) is None
    write(model, CONTENTS[:1])
    assert len(read_journal(journal_path(model)).changes) == 1


def test_a_journal_whose_creator_was_stopped_is_empty(model):
    journal = Journal(model)
    with journal.locked():
        journal.restart(None, read_checksum(model))  # never committed
    journal.close()
    assert read_journal(journal_path(model)) is None
    write(model, CONTENTS[:1])
    assert len(read_journal(journal_path(model)).changes) == 1


def test_a_link_has_the_journal_of_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert journal_path(tmp_path / "link") == journal_path(tmp_path / "model")
    assert journal_path(tmp_path / "model").name == "model.journal"


def test_reading_leaves_nothing_behind(model):
    write(model)
    read_journal(journal_path(model))
    assert sorted(os.listdir(model.parent)) == ["model", "model.journal"]


def test_records_of_others_are_read_after_ours(model):
    before = write(model, CONTENTS[:2])
    after = write(model, CONTENTS[3:4])
    journal = Journal(model)
    with journal.locked():
        news = journal.read(before)
        assert [change.number for change in news.changes] == [3]
        assert news.header == after
        assert journal.read(after).changes == []
    journal.close()


@pytest.mark.parametrize("change", ["begun anew", "rows are others"])
def test_another_journal_in_its_place_is_noticed(model, change):
    before = write(model, CONTENTS[:2])
    if change == "begun anew":
        journal = Journal(model)
        with journal.locked():
            header = journal.restart(before, read_checksum(model))
            journal.append(header, *CONTENTS[3], None)
        journal.close()
    else:
        journal_path(model).unlink()
        write(model, CONTENTS[3:6])
    journal = Journal(model)
    with journal.locked(), pytest.raises(ModelFileError, match="was replaced or cut short"):
        journal.read(before)
    journal.close()


def test_numbers_of_rows_and_changes_go_on(model):
    before = write(model, CONTENTS[:3])
    journal = Journal(model)
    with journal.locked():
        after = journal.append(journal.restart(before, "ab" * 32), *CONTENTS[3], None)
    journal.close()
    contents = read_journal(journal_path(model))
    assert contents.header == after
    assert [change.number for change in contents.changes] == [4]
    assert (after.start_row, after.end_row) == (4, 5)


def undo(number, *targets):
    return Change(number, "", None, "undo", (as_row("undo", {"changes": list(targets)}),))


@pytest.mark.parametrize(
    ("undos", "expected"),
    [
        ([], [1, 2, 3]),
        ([undo(4, 2)], [1, 3, 4]),
        ([undo(4, 2), undo(5, 4)], [1, 2, 3, 5]),
        ([undo(4, 2), undo(5, 4), undo(6, 5)], [1, 3, 4, 6]),
        ([undo(4, 2, 3), undo(5, 1), undo(6, 4, 5)], [1, 2, 3, 6]),
    ],
)
def test_what_is_in_effect(undos, expected):
    taught = [Change(number, "", None, "remove", (Row(),)) for number in (1, 2, 3)]
    marked = mark_undone([*taught, *undos])
    assert [change.number for change in marked if change.in_effect] == expected


# Bytes of rows


def test_long_rows_are_compressed():
    content = {"documents": [f"word{i} honey" for i in range(2000)], "labels": ["a"] * 2000}
    data = encode(content)
    assert len(data) < len(json.dumps(content)) / 3
    assert decode(data) == content


def test_no_row_expands_to_more_than_64_times_its_size():
    repetitive = {"label": "a" * 10**6}
    assert len(encode(repetitive)) > 10**6  # zlib alone would make 1 KB of it
    assert decode(encode(repetitive)) == repetitive
    bomb = zlib.compress(json.dumps(repetitive).encode(), 9)
    with pytest.raises(ValueError, match="of an accepted size"):
        decode(bomb)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not JSON"),
        (b"\x78\x9c", "of an accepted size"),
        (b"\x78\x01\xff\xff", "is not compressed JSON"),
        (zlib.compress(b"{}") + b"more", "of an accepted size"),
        (b"[1]", "is not a JSON object"),
        (b'{"label":NaN}', "NaN is not a finite number"),
        (b'{"label":' + b"1" * 9000 + b"}", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"label":"\xff"}', "is not JSON"),
    ],
)
def test_bytes_that_are_no_row(data, message):
    with pytest.raises(ValueError, match=message):
        decode(data)


def test_a_row_that_is_too_large(model, monkeypatch):
    before = write(model, CONTENTS[:2])
    journal = Journal(model)
    with monkeypatch.context() as patched, journal.locked():
        patched.setattr(journal_module, "LARGEST_ROW", 10)
        with pytest.raises(ValueError, match="Shorten it"):
            journal.append(before, "remove", [as_row("remove", {"label": "x" * 200})], None)
    journal.close()
    assert read_journal(journal_path(model)).header == before


# What is wrong with a journal


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET action = 'forget' WHERE row = 2",
        "UPDATE records SET author = 'ben' WHERE row = 1",
        "UPDATE records SET time = '2000' WHERE row = 3",
        "UPDATE records SET number = 9 WHERE row = 5",
        "UPDATE records SET facts = CAST(facts || ' ' AS BLOB) WHERE row = 5",
        "UPDATE records SET terms = x'01000000' WHERE row = 1",
        "UPDATE records SET sizes = classes, classes = content WHERE row = 1",
        "UPDATE records SET checksum = x'00' WHERE row = 8",
        "UPDATE records SET content = (SELECT content FROM records WHERE row = 1) WHERE row = 3",
    ],
)
def test_a_changed_record_is_noticed(model, statement):
    write(model)
    edit(model, statement)
    assert "SHA-256 is not the recorded one" in problem_of(model)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["DELETE FROM records WHERE row = 4"], "record 4 is missing"),
        (["DELETE FROM records WHERE row = 1"], "record 2 is missing"),
        (["DELETE FROM records WHERE row >= 7"], "is cut off: its last record should be row 8"),
        (["DELETE FROM records"], "is cut off"),
        (["INSERT INTO records SELECT 9, * FROM (SELECT number, time, author, action, classes, "
          "sizes, terms, counts, facts, content, checksum FROM records WHERE row = 8)"],
         "SHA-256 is not the recorded one"),
        (["UPDATE records SET row = 99 WHERE row = 5", "UPDATE records SET row = 5 WHERE row = 6",
          "UPDATE records SET row = 6 WHERE row = 99"], "SHA-256 is not the recorded one"),
        (["UPDATE header SET model = replace(model, 'a', 'b')"], "damaged header"),
        (["UPDATE header SET next_number = 3"], "damaged header"),
        (["UPDATE header SET end_row = 7"], "damaged header"),
        (["UPDATE header SET start = 5"], "damaged header"),
        (["UPDATE header SET start_row = NULL"], "damaged header"),
        (["UPDATE header SET pending = 'x'"], "damaged header"),
        (["DELETE FROM header"], "has 0 headers"),
        (["INSERT INTO header SELECT 2, model, pending, next_number, start_row, start, "
          "end_row, last, seal FROM header"], "has 2 headers"),
    ],
)  # fmt: skip
def test_records_removed_swapped_or_repeated_are_noticed(model, statements, problem):
    write(model)
    edit(model, *statements)
    assert problem in problem_of(model)


def forge(model, *rows):
    """A journal with right checksums around anything: (number, time, author, action, content)."""
    header = write(model, CONTENTS[3:4])
    last, statements = header.start, ["DELETE FROM records"]
    for row, (number, moment, author, action, content) in enumerate(rows, 1):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        if not any(isinstance(value, bytes) for value in (moment, author, action)):
            last = _chain(last, row, number, moment, author, action, as_row(action, data))
        values = (row, number, moment, author, action, *as_row(action, data), last)
        statements.append((f"INSERT INTO records VALUES ({', '.join('?' * 12)})", values))
    fields = {**vars(header), "end_row": len(rows), "last": last, "next_number": 100}
    sealed = (len(rows), last, 100, Header(**fields).seal())
    update = "UPDATE header SET end_row = ?, last = ?, next_number = ?, seal = ?"
    edit(model, *statements, (update, sealed))


def record(number=1, action="remove", content=None, moment="", author=None):
    return (number, moment, author, action, {"label": 1} if content is None else content)


def test_a_forged_journal_is_read_if_it_is_sound(model):
    forge(model, record(3), record(8, "undo", {"changes": [3]}))
    assert [change.number for change in read_journal(journal_path(model)).changes] == [3, 8]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([record(0)], "row 1 is missing, or lacks"),
        ([record(-1)], "row 1 is missing, or lacks"),
        ([record("1x")], "row 1 is missing, or lacks"),
        ([record(1.5)], "row 1 is missing, or lacks"),
        ([record(2), record(1)], "record 1 comes after record 2"),
        ([record(2), record(2)], "record 2 comes after record 2"),
        ([record(100)], "is cut off"),
        ([record(moment=None)], "lacks its time"),
        ([record(moment=b"\xff")], "lacks its time"),
        ([record(author=b"x")], "lacks its time, author"),
        ([record(action="explode")], "unknown action"),
        ([record(action="compact", content={"into": "ab" * 32})], "unknown action"),
        ([record(content={"label": None})], "what it needs is missing"),
        ([record(content={"label": 1, "more": 2})], "what it needs is missing"),
        ([record(action="undo", content={"changes": [1]})], "what it needs is missing"),
        ([record(action="undo", content={"changes": [0]})], "what it needs is missing"),
        ([record(action="undo", content={"changes": 3})], "what it needs is missing"),
        ([record(action="refine", content={"file": "x", "live": [], "until": 0})], "is missing"),
        (
            [record(action="refine", content={"file": "ab" * 32, "live": [1], "until": 1})],
            "is missing",
        ),
        (
            [record(action="refine", content={"file": "ab" * 32, "live": [1], "until": 0})],
            "is missing",
        ),
        ([record(action="refine", content={"file": "ab" * 32, "live": []})], "is missing"),
        (
            [record(action="describe", content={"label": 1, "text": 2, "is_new": True})],
            "is missing",
        ),
        ([record(content=b"[]")], "record 1 is not a JSON object"),
        ([record(content=b"{")], "record 1 is not JSON"),
        ([record(content=zlib.compress(b" " * 10**6 + b"{}"))], "of an accepted size"),
    ],
)
def test_forged_records(model, rows, problem):
    forge(model, *rows)
    assert problem in problem_of(model)


@pytest.mark.parametrize(
    "content",
    [
        {"documents": ["x"], "labels": []},
        {"documents": [1], "labels": [1]},
        {"documents": ["x"], "labels": [[]]},
        {"documents": {}, "labels": [1]},
        {"labels": [None]},
        {"labels": 1},
        {},
        {"labels": [1], "more": []},
        b"{",
        zlib.compress(b" " * 10**6 + b"{}"),
    ],
)
def test_forged_documents_are_refused_when_they_are_shown(model, content):
    forge(model, record(action="teach", content=content))
    [change] = read_journal(journal_path(model)).changes
    for show in (lambda: change.content, lambda: change.labels):
        with pytest.raises(ModelFileError, match="record 1 "):
            show()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON records (number)",
        "CREATE VIEW more AS SELECT * FROM records",
        "CREATE TRIGGER more AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "ALTER TABLE records ADD COLUMN more TEXT DEFAULT 'x'",
        "ALTER TABLE header RENAME COLUMN model TO mode",
        "DROP TABLE records",
        "PRAGMA application_id = 0",
    ],
)
def test_other_tables_than_ours_are_refused(model, statement):
    write(model)
    edit(model, statement)
    assert "is not a journal of longtail" in problem_of(model)


def test_a_view_in_the_place_of_a_table_is_not_run(model):
    write(model)
    edit(
        model,
        "DROP TABLE records",
        "CREATE VIEW records AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x AS row, x, x, x, x, x, x, x, x, x, x, x FROM n",
    )
    assert "is not a journal of longtail" in problem_of(model)


def test_a_newer_format_asks_for_an_upgrade(model):
    write(model)
    edit(model, "PRAGMA user_version = 2")
    assert "has format 2; this version of longtail reads up to 1. Upgrade" in problem_of(model)


def test_a_malformed_schema(model):
    write(model)
    edit(
        model,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE records (' WHERE name = 'records'",
    )
    assert "SQLite says 'malformed database schema" in problem_of(model)


def test_a_value_without_end_is_not_read_into_memory(model):
    write(model)
    edit(model, "UPDATE records SET content = zeroblob(140000000) WHERE row = 2")
    assert "SQLite says 'string or blob too big'" in problem_of(model)


@pytest.mark.parametrize("content", [b"dear diary", b"x" * 5000, b"\0" * 8192])
def test_something_else_under_the_name_of_a_journal(model, content):
    journal_path(model).write_bytes(content)
    assert "SQLite says" in problem_of(model)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_pipe_does_not_hang(model, suffix):
    if suffix:
        write(model)
    name = str(journal_path(model)) + suffix
    os.mkfifo(name)
    with pytest.raises(ModelFileError, match="is not a regular file") as caught:
        read_journal(journal_path(model))
    assert caught.value.path == name
    with pytest.raises(ModelFileError, match="is not a regular file"), Journal(model).locked():
        pass


def test_a_database_cut_anywhere_is_an_error_or_no_loss(model):
    """Cut at every 97th byte: the one error, unless what is gone held nothing."""
    write(model, CONTENTS * 3)
    path, expected = journal_path(model), read_journal(journal_path(model))
    whole = path.read_bytes()
    n_refused = 0
    for length in range(97, len(whole), 97):
        path.write_bytes(whole[:length])
        try:
            assert read_journal(path) == expected
        except ModelFileError:
            n_refused += 1
    assert n_refused > 0.9 * len(whole) / 97


# Permissions


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_journal_has_the_permissions_of_its_model(model, mode):
    os.chmod(model, mode)
    seen = {}
    real = os.open

    def spy(path, flags, mode=0o777, **options):
        handle = real(path, flags, mode, **options)
        seen.setdefault(os.fspath(path), stat.S_IMODE(os.fstat(handle).st_mode))
        return handle

    journal = Journal(model)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "open", spy)
        with journal.locked():
            header = journal.restart(None, read_checksum(model))
            journal.append(header, *CONTENTS[3], None)
    path = journal_path(model)
    assert seen[str(path)] & ~(mode | 0o200) == 0  # from the first moment
    for name in (path, *journal_database.companions(path)):
        assert stat.S_IMODE(name.stat().st_mode) == mode | 0o200
    journal.close()


def test_permissions_follow_the_model(model):
    write(model)
    os.chmod(model, 0o600)
    write(model, CONTENTS[3:4])
    assert stat.S_IMODE(journal_path(model).stat().st_mode) == 0o600


def test_permissions_never_follow_a_link(model):
    secret, link = model.with_name("secret"), journal_module.refined_path(model, 1)
    secret.write_bytes(b"keys")
    secret.chmod(0o600)
    link.symlink_to(secret)
    os.chmod(model, 0o644)
    write(model)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.mark.parametrize("left", ["clean", "after a kill"])
def test_a_folder_that_cannot_be_written_can_be_read(model, monkeypatch, left):
    write(model)
    expected = read_journal(journal_path(model))
    if left == "after a kill":
        wal = write_and_die(model)
        expected = wal
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {p.name: p.read_bytes() for p in model.parent.iterdir()}
    assert read_journal(journal_path(model)) == expected
    assert {p.name: p.read_bytes() for p in model.parent.iterdir()} == before


def write_and_die(model):
    """Leave a write-ahead log behind, as a process does that is killed; return what it wrote."""
    journal = Journal(model)
    with journal.locked():
        header = journal.append(journal.header(), *CONTENTS[4], None)
        expected = journal.read()
    assert expected.header == header
    files = {p: p.read_bytes() for p in model.parent.iterdir() if not p.name.endswith("-shm")}
    journal.close()
    for path, content in files.items():
        path.write_bytes(content)
    return expected


def test_what_a_killed_writer_left_is_read(model):
    write(model)
    expected = write_and_die(model)
    assert journal_database.companions(journal_path(model))[0].exists()
    assert read_journal(journal_path(model)) == expected


def test_every_truncation_of_the_write_ahead_log(model):
    """The last change is there or not; a log cut within a page is noticed."""
    write(model)
    before = read_journal(journal_path(model))
    after = write_and_die(model)
    path, wal = journal_path(model), journal_database.companions(journal_path(model))[0]
    main, whole = path.read_bytes(), wal.read_bytes()
    for length in range(0, len(whole), 211):
        path.write_bytes(main)
        wal.write_bytes(whole[:length])
        torn = length > 0 and (length - 32) % 4120 != 0
        with (
            pytest.warns(RuntimeWarning, match="the last record is unfinished")
            if torn
            else (pytest.MonkeyPatch.context())
        ):
            assert read_journal(path) in (before, after)


def test_a_journal_that_was_deleted_does_not_come_back(model):
    """A write-ahead log without its database belongs to nothing."""
    write(model)
    write_and_die(model)
    journal_path(model).unlink()
    assert read_journal(journal_path(model)) is None
    header = write(model, CONTENTS[3:4])
    assert header.next_number == 2
    assert [c.action for c in read_journal(journal_path(model)).changes] == ["rename"]


# Locks


def test_a_second_writer_waits(model):
    order = []
    write(model, CONTENTS[:1])

    def second():
        journal = Journal(model)
        with journal.locked():
            order.append("second")
            journal.append(journal.header(), *CONTENTS[4], None)
        journal.close()

    journal = Journal(model)
    with journal.locked():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
        journal.append(journal.header(), *CONTENTS[3], None)
    thread.join()
    journal.close()
    assert order == ["first", "second"]
    assert len(read_journal(journal_path(model)).changes) == 3


def test_a_writer_that_never_ends(model, monkeypatch):
    write(model, CONTENTS[:1])
    monkeypatch.setattr(journal_database, "LOCK_TIMEOUT", 0.0)
    one, other = Journal(model), Journal(model)
    busy = pytest.raises(TimeoutError, match="another process holds the journal")
    with one.locked(), busy, other.locked():
        pass
    one.close()
    other.close()


def test_a_journal_deleted_while_open_is_not_written(model):
    write(model, CONTENTS[:1])
    journal = Journal(model)
    with journal.locked():
        pass
    for name in (journal_path(model), *journal_database.companions(journal_path(model))):
        name.unlink(missing_ok=True)
    with journal.locked():
        assert journal.header() is None
        journal.append(journal.restart(None, "ab" * 32), *CONTENTS[3], None)
    journal.close()
    assert read_journal(journal_path(model)).header.model == "ab" * 32


def test_what_is_not_committed_is_undone(model):
    header = write(model, CONTENTS[:1])
    journal = Journal(model)
    with journal.locked():
        journal.restart(header, "ab" * 32)
    journal.close()
    assert read_journal(journal_path(model)).header == header


# Reading without permission to write


@pytest.mark.parametrize("failure", [PermissionError, FileNotFoundError, None])
def test_what_others_changed_meanwhile_is_read_again(tmp_path, monkeypatch, failure):
    journal = tmp_path / "m.journal"
    with closing(sqlite3.connect(journal)) as connection, connection:
        journal_database.install_schema(connection)
    monkeypatch.setattr(journal_database.os, "access", lambda *_: False)
    n_read = 0

    def read(connection):
        nonlocal n_read
        n_read += 1
        if n_read < 3:
            others = journal if failure is None else journal_database.companions(journal)[0]
            others.touch()
            os.utime(others, ns=(n_read, n_read))
            if failure is not None:
                raise failure(errno.EACCES, "attempt to write a readonly database")
        return n_read

    assert journal_database.read_once(journal, read) == 3


def test_what_nobody_changed_is_refused_at_once(tmp_path, monkeypatch):
    journal = tmp_path / "m.journal"
    with closing(sqlite3.connect(journal)) as connection, connection:
        journal_database.install_schema(connection)
    monkeypatch.setattr(journal_database.os, "access", lambda *_: False)
    n_read = 0

    def read(connection):
        nonlocal n_read
        n_read += 1
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        journal_database.read_once(journal, read)
    assert n_read == 1


@pytest.mark.parametrize("ending", [".journal", ".journal-wal"])
def test_a_pipe_beside_a_model_is_refused_without_waiting(tmp_path, ending):
    model = tmp_path / "m"
    write_model(model, "test", {}, {"a": np.arange(3)})
    os.mkfifo(f"{model}{ending}")
    with pytest.raises(ModelFileError, match="is not a regular file"), saving(model):
        pytest.fail("not reached")
