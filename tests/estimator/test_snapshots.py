"""Snapshots of a taught model: opening through one gives the same model, or it is not used."""

import os
import shutil
import stat
import threading

import numpy as np
import pytest

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail.exceptions import ModelFileError
from longtail.store import open_model, write_model
from longtail.store.container import read_checksum
from longtail.store.files import replace_file
from longtail.store.journal import Journal, journal_path, read_journal
from longtail.store.snapshots import snapshot_path
from longtail.teaching import opening, snapshots
from longtail.teaching.versions import Follower
from tests.estimator.test_teaching import ESTIMATORS, LABELS, NEW, PROBLEM, assert_same_model

ALL = ["model", "model.journal", "model.snapshot"]


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    request.param(random_state=0).fit(PROBLEM.X, LABELS).save(path)
    return path


@pytest.fixture
def path(fitted, tmp_path):
    (tmp_path / "m").mkdir()
    return shutil.copy(fitted, tmp_path / "m" / "model")


@pytest.fixture
def often(monkeypatch):
    """A snapshot after every fourth change."""
    monkeypatch.setattr(snapshots, "MOST_CHANGES", 4)


@pytest.fixture
def replayed(monkeypatch):
    """The numbers of the changes that each opening replays."""
    calls = []
    real = snapshots.replay

    def replay(model, changes):
        changes = list(changes)
        calls.append([change.number for change in changes])
        return real(model, changes)

    monkeypatch.setattr(snapshots, "replay", replay)
    return calls


def teach(path, n_changes, teacher=None):
    """Teach one document after the other; a snapshot that becomes due is waited for."""
    teacher = teacher or Teacher(path)
    for i in range(n_changes):
        teacher.teach(NEW[[i]], [f"class {i % 3}" if i % 2 else f"new {i}"])
        teacher._snapshots.wait()
    return teacher


def listed(path):
    return sorted(os.listdir(path.parent))


def without_snapshot(path):
    """The model as replaying all of its journal gives it."""
    aside = path.parent / "aside"
    os.replace(snapshot_path(path), aside)
    model = load(path)
    os.replace(aside, snapshot_path(path))
    return model


def test_opening_starts_from_the_snapshot(path, often, replayed):
    teach(path, 6).close()
    assert listed(path) == ALL
    assert read_journal(journal_path(path)).snapshot.change_number == 4
    replayed.clear()
    model = load(path)
    assert replayed == [[5, 6]]
    assert_same_model(model, without_snapshot(path))
    assert replayed[-1] == [1, 2, 3, 4, 5, 6]
    assert_same_model(Follower(path).current.model, model)
    assert_same_model(Teacher(path).model, model)
    assert_same_model(load(path, verify=False), model)


def test_it_is_the_model_after_that_change(path, often):
    teacher = teach(path, 4)
    assert_same_model(load(snapshot_path(path)), teacher.model)


def test_small_models_and_short_journals_have_none(path):
    teach(path, 12).close()
    assert listed(path) == ALL[:2]


def test_a_process_counts_what_others_taught(path, often, replayed):
    """Each process makes one change, as the command line does."""
    for i in range(5):
        teacher = Teacher(path)
        teacher.teach(NEW[[i]], ["new"])
        teacher.close()
    assert replayed == [[1], [1, 2], [1, 2, 3], []]
    assert read_journal(journal_path(path)).snapshot.change_number == 4


def test_two_teachers_do_not_write_the_same_twice(path, often):
    one, other = Teacher(path), Teacher(path)
    teach(path, 4, one)
    before = read_checksum(snapshot_path(path))
    teach(path, 1, other)
    assert read_checksum(snapshot_path(path)) == before
    assert other._state.tail.start_number == 4


def test_a_large_model_has_one_once_its_index_was_built_anew(path, monkeypatch):
    monkeypatch.setattr(snapshots, "LEAST_BYTES", 0)
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 1)
    teacher = teach(path, 3)
    is_long_tail = isinstance(teacher.model, LongTailClassifier)  # the other has no delta segment
    assert snapshot_path(path).exists() == (not is_long_tail)
    teacher.rename_class("class 3", "renamed")
    teacher.rename_class("class 1", "class 1a")  # its rank is what it was
    teacher._snapshots.wait()
    assert read_journal(journal_path(path)).snapshot.change_number == 5
    assert_same_model(load(path), without_snapshot(path))
    teacher.teach(NEW[:1], ["another"])
    teacher._snapshots.wait()
    expected = 5 if is_long_tail else 6
    assert read_journal(journal_path(path)).snapshot.change_number == expected


def test_of_those_that_wait_the_last_is_written(path, often, monkeypatch):
    go, real, written = threading.Event(), snapshots.write_snapshot, []

    def wait_and_write(file, model, header):
        go.wait()
        written.append(header.next_number - 1)
        return real(file, model, header)

    monkeypatch.setattr(snapshots, "write_snapshot", wait_and_write)
    monkeypatch.setattr(snapshots, "MOST_CHANGES", 1)
    teacher = Teacher(path)
    for i in range(5):
        teacher.teach(NEW[[i]], ["new"])
    go.set()
    teacher.close()
    assert written[-1] == 5
    assert len(written) <= 2
    assert_same_model(load(path), without_snapshot(path))


# Undo


def test_undo_of_what_came_after_it(path, often, replayed):
    teacher = teach(path, 6)
    replayed.clear()
    teacher.undo(2)
    assert replayed == [[5, 6, 7]]
    assert_same_model(teacher.model, load(snapshot_path(path)))
    assert_same_model(load(path), without_snapshot(path))


def test_undo_past_it(path, often, replayed):
    teacher = teach(path, 5)
    replayed.clear()
    teacher.undo(numbers=[2])
    teacher._snapshots.wait()
    assert replayed == [[1, 2, 3, 4, 5, 6]]
    assert read_journal(journal_path(path)).snapshot.change_number == 6  # all else is replayed
    replayed.clear()
    assert_same_model(load(path), teacher.model)
    assert replayed == [[]]
    teacher.undo(numbers=[6])
    assert_same_model(load(path), teacher.model)
    assert_same_model(load(path), without_snapshot(path))


def test_an_undo_that_is_undone_makes_it_usable_again(path, often, replayed, monkeypatch):
    teacher = teach(path, 4)
    monkeypatch.setattr(snapshots, "MOST_CHANGES", 99)
    teacher.undo(numbers=[1])
    replayed.clear()
    assert_same_model(load(path), teacher.model)
    assert replayed == [[1, 2, 3, 4, 5]]
    teacher.undo(numbers=[5])
    replayed.clear()
    assert_same_model(load(path), teacher.model)
    assert replayed == [[5, 6]]


# When it goes


def test_compacting_removes_it(path, often):
    teacher = teach(path, 5)
    teacher.compact()
    model = teacher.model
    teacher.close()
    assert listed(path) == ALL[:2]
    assert_same_model(load(path), model)


def test_compacting_by_a_process_that_knows_of_none(path, often, monkeypatch):
    """The row goes with the records; the file with the next change."""
    teach(path, 5).close()
    monkeypatch.setattr("longtail.store.journal.remove_snapshot", lambda model: None)
    monkeypatch.setattr("longtail.teaching.teacher.remove_unknown", lambda journal: None)
    Teacher(path).compact()
    monkeypatch.undo()
    assert snapshot_path(path).exists()
    expected = load(path)
    teacher = Teacher(path)
    assert_same_model(teacher.model, expected)
    teacher.teach(NEW[:1], ["new"])
    assert not snapshot_path(path).exists()
    assert_same_model(load(path), teacher.model)


def test_saving_over_the_model_removes_it(path, often):
    teach(path, 5).close()
    load(path).save(path, discard_changes=True)
    assert listed(path) == ALL[:2]


def test_a_journal_that_was_deleted_takes_it_along(path, often):
    base = load(path)
    teach(path, 5).close()
    journal_path(path).unlink()
    assert_same_model(load(path), base)
    teacher = Teacher(path)
    assert_same_model(teacher.model, base)
    teacher.teach(NEW[:1], ["new"])
    assert not snapshot_path(path).exists()


def test_nothing_of_an_erased_text_is_left(tmp_path, often):
    path = tmp_path / "model"
    texts = ["brown bear", "bears eat honey", "red fox", "the fox runs"]
    TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox"]).save(path)
    teacher = Teacher(path)
    for _ in range(4):
        teacher.teach(["ann's secret is honey"], ["bear"])
    teacher._snapshots.wait()
    assert snapshot_path(path).exists()
    teacher.undo(3)
    teacher.forget(["ann's secret is honey"], ["bear"], erase=True)
    teacher.close()
    assert listed(path) == ALL[:2]


def test_a_snapshot_that_is_late_is_dropped(path, often, monkeypatch):
    """Another process compacts while it is written."""
    teacher = teach(path, 3)
    go, real = threading.Event(), snapshots.put_snapshot

    def wait_and_put(*arguments):
        go.wait()
        return real(*arguments)

    monkeypatch.setattr(snapshots, "put_snapshot", wait_and_put)
    teacher.teach(NEW[:1], ["new"])
    Teacher(path).compact()
    go.set()
    teacher.close()
    assert listed(path) == ALL[:2]
    assert_same_model(load(path), teacher.model)


# What cannot be used


def damage(content):
    content = bytearray(content)
    content[-1] ^= 1
    return bytes(content)


FILES = {
    "damaged": damage,
    "cut short": lambda content: content[:-1],
    "empty": lambda content: b"",
    "no model": lambda content: b"something else",
    "a header alone": lambda content: content[:64],
}


@pytest.mark.parametrize("change", FILES.values(), ids=FILES)
def test_a_file_that_is_not_sound_is_not_used(path, often, change):
    teacher = teach(path, 6)
    content = change(snapshot_path(path).read_bytes())
    snapshot_path(path).unlink()
    snapshot_path(path).write_bytes(content)
    assert_same_model(load(path), teacher.model)
    assert_same_model(load(path, verify=False), teacher.model)
    teacher.undo()
    assert_same_model(load(path), teacher.model)
    teach(path, 4, teacher)
    assert open_model(snapshot_path(path)).kind == type(teacher.model).__name__


def test_what_is_no_file_is_not_used(path, often):
    expected = teach(path, 6).model
    snapshot_path(path).unlink()
    assert_same_model(load(path), expected)
    os.mkfifo(snapshot_path(path))
    assert_same_model(load(path), expected)
    snapshot_path(path).unlink()
    snapshot_path(path).mkdir()
    teacher = teach(path, 4, Teacher(path))
    assert_same_model(load(path), teacher.model)
    assert snapshot_path(path).is_dir()


def forge(path, model):
    """Let the journal name another model as the snapshot of its fourth change."""
    contents = read_journal(journal_path(path))
    journal = Journal(path)
    with journal.new_file() as beside:
        model.save(beside)
        snapshots.put_snapshot(journal, beside, contents.header)
    journal.close()


def test_another_model_in_its_place_is_not_used(path, often):
    expected = teach(path, 6).model
    os.replace(shutil.copy(path, path.parent / "copy"), snapshot_path(path))
    assert_same_model(load(path), expected)


def test_a_forged_snapshot_that_the_changes_do_not_fit(path, often):
    teacher = teach(path, 4)
    wide = np.hstack([PROBLEM.X, PROBLEM.X])
    forge(path, LongTailClassifier(random_state=0).fit(wide, LABELS))
    teacher.teach(NEW[:1], ["new"])
    assert_same_model(load(path), teacher.model)
    assert_same_model(Teacher(path).model, teacher.model)


def test_a_forged_snapshot_is_checked_as_any_model(path, often):
    teacher = teach(path, 4)
    file = open_model(snapshot_path(path))
    arrays = dict(file.arrays)
    arrays["statistics/indices"] = np.full_like(arrays["statistics/indices"], 2**30)
    contents, journal = read_journal(journal_path(path)), Journal(path)
    with journal.new_file() as beside:
        write_model(beside, file.kind, file.parameters, arrays)
        assert snapshots.put_snapshot(journal, beside, contents.header)
    journal.close()
    with pytest.raises(ModelFileError):
        load(snapshot_path(path))
    assert_same_model(load(path), teacher.model)


def test_a_label_that_makes_strings_objects(path, often):
    teacher = teach(path, 3)
    teacher.teach(NEW[:1], ["x" * 10_000])
    teacher._snapshots.wait()
    assert not snapshot_path(path).exists()
    assert load(path).classes_.dtype.kind == teacher.model.classes_.dtype.kind == "U"


# Writing


def test_it_has_the_permissions_of_the_model_from_the_first_byte(path, often, monkeypatch):
    path.chmod(0o640)
    modes = []

    def write(target, blocks, mode):
        modes.append((mode, stat.S_IMODE(target.stat().st_mode)))
        replace_file(target, blocks, mode)

    monkeypatch.setattr("longtail.store.container.replace_file", write)
    teach(path, 4)
    assert modes == [(0o640, 0o640)]
    assert stat.S_IMODE(snapshot_path(path).stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("no")])
def test_a_failure_is_logged_and_changes_nothing(path, often, monkeypatch, caplog, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("longtail.store.container.replace_file", fail)
    teacher = teach(path, 5)
    assert "no snapshot of" in caplog.text
    assert listed(path)[:2] == ALL[:2]
    assert not snapshot_path(path).exists()
    teacher.close()
    assert listed(path) == ALL[:2]
    assert_same_model(load(path), teacher.model)


def test_no_thread_can_be_started(path, often, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    teacher = teach(path, 4)
    assert "no snapshot of" in caplog.text
    assert_same_model(load(path), teacher.model)


def test_closing_waits_for_it(path, often):
    teacher = Teacher(path)
    for i in range(4):
        teacher.teach(NEW[[i]], ["new"])
    teacher.close()
    assert listed(path) == ALL
    assert load(snapshot_path(path)).classes_.tolist() == teacher.model.classes_.tolist()


def test_what_the_caller_does_to_the_model_is_in_no_snapshot(path, often):
    teacher = teach(path, 3)
    teacher.model.partial_fit(NEW[:1], ["the caller's own"])
    teacher.model.set_params(candidates=3)
    teach(path, 1, teacher)
    assert_same_model(load(path), without_snapshot(path))
    assert "the caller's own" not in load(path).classes_
    assert load(path).candidates != 3


def test_a_damaged_model_file_is_noticed_when_it_is_needed(path, often):
    teacher = teach(path, 5)
    content = damage(path.read_bytes())
    path.unlink()
    path.write_bytes(content)
    assert_same_model(load(path), teacher.model)  # which does not need it
    with pytest.raises(ModelFileError, match="is damaged"):
        teacher.undo(numbers=[1])
    snapshot_path(path).unlink()
    with pytest.raises(ModelFileError, match="is damaged"):
        opening.load(path)
