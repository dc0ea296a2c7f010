"""The change log alone: what goes in comes out, and nothing else than a sound log is read."""

import builtins
import errno
import hashlib
import json
import os
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.exceptions import ModelFileError
from longtail.store import journal as changes
from longtail.store.journal import (
    Change,
    lock_log,
    log_path,
    mark_undone,
    pack_counts,
    read_log,
    unpack_counts,
)

MODEL = "ab" * 32
COUNTS = csr_array(np.array([[0.5, 0, 2], [0, 0, 0], [0, 1e-300, 0]]))
CONTENTS = [
    ("teach", {"documents": ["naïve \ud800\n\0", ""], "labels": ["a", "熊"]}),
    ("teach", {"documents": pack_counts(COUNTS), "labels": [1, 2, 3]}),
    ("forget", {"documents": ["x"], "labels": [1.5]}),
    ("rename", {"old": "a", "new": "b"}),
    ("merge", {"source": 1, "into": 2}),
    ("remove", {"label": True}),
    ("undo", {"changes": [1, 5]}),
    ("compact", {"into": "cd" * 32}),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.longtail.changes"


def write(path, contents=CONTENTS, first=1):
    with lock_log(path) as log:
        end = log.start(MODEL, first)
        for action, content in contents:
            end = log.append(end, action, content, "ann" if action == "teach" else None)
    return end


def sign(*records, previous=""):
    """Lines with right checksums around any records: what a hostile hand writes."""
    lines = []
    for record in records:
        text = record if isinstance(record, bytes) else json.dumps(record).encode()
        previous = hashlib.sha256(previous.encode() + text).hexdigest()
        lines.append(previous.encode() + b" " + text + b"\n")
    return b"".join(lines)


HEADER = {"format_number": 1, "model": MODEL, "first": 1}


def record(number=1, action="remove", **content):
    return {"number": number, "time": "", "by": None, "action": action, **content}


def problem_of(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_log(path)
    assert caught.value.path == str(path)
    return caught.value.problem


# What goes in comes out


def test_everything_comes_back(path):
    end = write(path, first=7)
    contents = read_log(path)
    assert contents.model == MODEL
    assert [(change.action, change.content) for change in contents.changes] == CONTENTS
    assert [change.number for change in contents.changes] == list(range(7, 15))
    assert [change.by for change in contents.changes] == ["ann"] * 2 + [None] * 6
    assert all(change.time.endswith("+00:00") for change in contents.changes)
    assert contents.end == end
    assert end.length == path.stat().st_size
    assert end.number == 15


def test_the_log_is_lines_of_ascii(path):
    write(path)
    lines = path.read_bytes().decode("ascii").split("\n")
    assert len(lines) == len(CONTENTS) + 2
    assert lines[-1] == ""
    assert json.loads(lines[1].split(" ", 1)[1])["labels"] == ["a", "熊"]


def test_no_log_and_an_empty_log(path):
    assert read_log(path) is None
    path.touch()
    assert read_log(path) is None


def test_nothing_is_left_behind_where_nothing_was_written(path):
    with lock_log(path) as log:
        assert log.read() is None
    assert not path.exists()


def test_a_link_has_the_log_of_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert log_path(tmp_path / "link") == log_path(tmp_path / "model")
    assert log_path(tmp_path / "model").name == "model.changes"


def test_records_of_others_are_read_after_ours(path):
    end = write(path, CONTENTS[:2])
    with lock_log(path) as log:
        assert log.read_after(MODEL, end).changes == []
    with lock_log(path) as log:
        log.append(end, *CONTENTS[3], None)
    with lock_log(path) as log:
        news = log.read_after(MODEL, end)
    assert [change.number for change in news.changes] == [3]
    assert news.end == read_log(path).end


@pytest.mark.parametrize("change", ["begun anew", "cut"])
def test_another_log_in_its_place_is_noticed(path, change):
    end = write(path, CONTENTS[:2])
    if change == "cut":
        os.truncate(path, end.length - 1)
    else:
        write(path, CONTENTS[3:4] * 20)
    with lock_log(path) as log, pytest.raises(ModelFileError, match="was replaced or cut short"):
        log.read_after(MODEL, end)


def test_counts_come_back_bit_by_bit():
    X = unpack_counts(json.loads(json.dumps(pack_counts(COUNTS))))
    assert X.shape == COUNTS.shape
    assert X.toarray().tobytes() == COUNTS.toarray().tobytes()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_terms": -1}, "cannot be"),
        ({"n_terms": 1 << 60}, "cannot be"),
        ({"n_terms": 2}, "indices"),
        ({"n_documents": 4}, "4 row starts do not fit 4 documents"),
        ({"data": "AAAA"}, "multiple of element size"),
        ({"data": "AAA"}, "not base64"),
        ({"data": 7}, "not base64"),
        ({"data": ""}, "indices and data"),
    ],
)
def test_unsound_counts(changed, message):
    with pytest.raises(ValueError, match=message):
        unpack_counts({**pack_counts(COUNTS), **changed})


def undo(number, *targets):
    return Change(number, "", None, "undo", {"changes": list(targets)})


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
    taught = [Change(number, "", None, "remove", {"label": 1}) for number in (1, 2, 3)]
    marked = mark_undone([*taught, *undos])
    assert [change.number for change in marked if change.in_effect] == expected


# What is wrong with a log


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"dear diary", "the header is damaged"),
        (b"x" * 5000, "the header is damaged"),
        (sign({**HEADER, "format_number": 2}), "has format 2; .* reads up to 1. Upgrade"),
        (sign({**HEADER, "format_number": "1"}), "not that of a change log"),
        (sign({**HEADER, "first": 0}), "not that of a change log"),
        (sign({**HEADER, "more": 0}), "not that of a change log"),
        (sign({**HEADER, "model": "ab"}), "names no model"),
        (sign([1]), "the header is not a JSON object"),
        (sign(b"{"), "the header is not JSON"),
        (sign(HEADER, record(2, label=1)), "record 1 lacks its number"),
        (sign(HEADER, {"number": 1}), "record 1 lacks its number"),
        (sign(HEADER, {**record(label=1), "time": 3}), "record 1 has a wrong time"),
        (sign(HEADER, {**record(label=1), "by": 3}), "record 1 has a wrong time or author"),
        (sign(HEADER, record(action="explode")), "record 1 has an unknown action"),
        (sign(HEADER, record(action=["teach"])), "record 1 has an unknown action"),
        (sign(HEADER, record(label=None)), "what it needs is missing"),
        (sign(HEADER, record(label=1, more=2)), "what it needs is missing"),
        (sign(HEADER, record(action="undo", changes=[1])), "what it needs is missing"),
        (sign(HEADER, record(action="undo", changes=[0])), "what it needs is missing"),
        (sign(HEADER, record(action="undo", changes=3)), "what it needs is missing"),
        (sign(HEADER, record(action="compact", into="x")), "what it needs is missing"),
        (sign(HEADER, record(action="teach", documents=["x"], labels=[])), "is missing"),
        (sign(HEADER, record(action="teach", documents=[1], labels=[1])), "is missing"),
        (sign(HEADER, record(action="teach", documents=["x"], labels=[[]])), "is missing"),
        (sign(HEADER, record(action="teach", documents={}, labels=[1])), "is missing"),
        (sign(HEADER, b'{"number":' + b"1" * 9000), "record 1 is not JSON"),
        (sign(HEADER, b'{"number":NaN}'), "record 1 is not JSON: NaN"),
        (sign(HEADER, b"[" * 100_000), "record 1 is not JSON"),
    ],
)
def test_hostile_logs(path, content, problem):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=problem):
        read_log(path)


def test_a_record_without_end_is_not_read_into_memory(path, monkeypatch):
    monkeypatch.setattr(changes, "LARGEST_RECORD", 1000)
    assert "record 1 is longer than 1,000 bytes" in problem_of(path, sign(HEADER) + b"x" * 2000)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:3], *lines[4:]],  # removed
        lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],  # swapped
        lambda lines: [*lines[:4], lines[3], *lines[4:]],  # repeated
        lambda lines: [*lines, lines[3]],  # replayed at the end
        lambda lines: lines[1:],  # without header
    ],
)
def test_every_record_is_tied_to_the_one_before(path, change):
    write(path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert "SHA-256 is not the recorded one" in problem_of(path, b"".join(change(lines)))


def test_a_record_of_another_log_does_not_fit(path, tmp_path):
    write(path)
    end = write(tmp_path / "other", CONTENTS[:2])
    with lock_log(tmp_path / "other") as log:
        log.append(end, *CONTENTS[3], None)
    stranger = (tmp_path / "other").read_bytes().splitlines(keepends=True)[-1]
    problem = problem_of(path, path.read_bytes() + stranger)
    assert problem.startswith("record 9 is damaged")


def test_every_truncation_of_the_last_record(path):
    end = write(path, CONTENTS[:4])
    whole = path.read_bytes()
    expected = read_log(path).changes[:-1]
    for length in range(end.last + 1, end.length):
        path.write_bytes(whole[:length])
        with pytest.warns(RuntimeWarning, match=rf"the last {length - end.last} bytes"):
            contents = read_log(path)
        assert contents.changes == expected
        assert contents.end.length == end.last
    path.write_bytes(whole[: end.last])
    assert read_log(path).changes == expected


def test_every_truncation_of_the_header(path):
    header = write(path, []).length
    whole = path.read_bytes()
    for length in range(1, header):
        path.write_bytes(whole[:length])
        with pytest.warns(RuntimeWarning, match="unfinished record"):
            assert read_log(path) is None


def test_zeros_that_a_power_cut_left(path):
    end = write(path, CONTENTS[:2])
    with path.open("ab") as file:
        file.write(bytes(300))
    with pytest.warns(RuntimeWarning, match="the last 300 bytes"):
        contents = read_log(path)
    assert contents.end == end


def test_appending_cuts_off_what_a_crash_left(path):
    write(path, CONTENTS[:3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.warns(RuntimeWarning, match="unfinished"):
        contents = read_log(path)
    with lock_log(path) as log:
        log.append(contents.end, *CONTENTS[3], None)
    actions = [change.action for change in read_log(path).changes]
    assert actions == ["teach", "teach", "rename"]


def test_a_wrong_last_byte_is_damage_and_no_crash(path):
    write(path, CONTENTS[:2])
    whole = path.read_bytes()
    assert "record 2 is damaged: it does not end" in problem_of(path, whole[:-1] + b"\x0b")
    header = whole.splitlines(keepends=True)[0]
    assert "the header is damaged: it does not end" in problem_of(path, header[:-1] + b"\x0b")


# Writing


def test_a_record_that_is_too_large(path, monkeypatch):
    end = write(path, CONTENTS[:2])
    before = path.read_bytes()
    monkeypatch.setattr(changes, "LARGEST_RECORD", 100)
    with lock_log(path) as log, pytest.raises(ValueError, match="Give fewer documents at once"):
        log.append(end, *CONTENTS[0], None)
    assert path.read_bytes() == before


def fail_after(n_bytes):
    real = os.write

    def write_some(handle, data):
        nonlocal n_bytes
        if not n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(handle, data[:n_bytes])
        n_bytes -= written
        return written

    return write_some


@pytest.mark.parametrize("n_bytes", [0, 1, 70, 150])
def test_a_full_disk_leaves_the_log_as_it_was(path, monkeypatch, n_bytes):
    end = write(path, CONTENTS[:2])
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fail_after(n_bytes))
        with lock_log(path) as log, pytest.raises(OSError, match="the log is as it was") as caught:
            log.append(end, *CONTENTS[0], None)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before


def test_a_failing_sync_leaves_the_log_as_it_was(path, monkeypatch):
    end = write(path, CONTENTS[:2])
    before = path.read_bytes()
    calls = []

    def fail_once(handle):
        calls.append(handle)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail_once)
    with lock_log(path) as log, pytest.raises(OSError, match="The change was not recorded"):
        log.append(end, *CONTENTS[0], None)
    assert path.read_bytes() == before


def test_a_disk_that_cannot_even_be_cut_back(path, monkeypatch):
    end = write(path, CONTENTS[:2])

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr(os, "ftruncate", fail)
    with lock_log(path) as log, pytest.raises(OSError, match="the log may hold a part of it"):
        log.append(end, *CONTENTS[0], None)


def test_records_are_on_the_disk_before_append_returns(path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    write(path, [])
    assert len(synced) == 2  # the log and its folder
    write(path, CONTENTS[:1])
    assert len(synced) == 5


# Locks


def test_a_second_writer_waits(path):
    order = []

    def second():
        with lock_log(path) as log:
            order.append("second")
            log.append(log.read().end, *CONTENTS[1], None)

    with lock_log(path) as log:
        end = log.start(MODEL)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
        log.append(end, *CONTENTS[0], None)
    thread.join()
    assert order == ["first", "second"]
    assert len(read_log(path).changes) == 2


def test_a_log_deleted_while_waiting_is_not_written(path):
    write(path, CONTENTS[:1])

    def second():
        with lock_log(path) as log:
            log.start("cd" * 32)

    with lock_log(path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        path.unlink()
    thread.join()
    assert read_log(path).model == "cd" * 32


def test_a_system_without_locks_can_read_but_not_teach(path, monkeypatch):
    write(path, CONTENTS[:1])
    real = builtins.__import__

    def without_fcntl(name, *arguments, **options):
        if name == "fcntl":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_fcntl)
    assert len(read_log(path).changes) == 1
    with pytest.raises(OSError, match="needs file locks"), lock_log(path):
        pass
