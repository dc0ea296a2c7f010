"""Teaching a saved model: the model in memory, the file and its log always agree."""

import errno
import os
import shutil
import sqlite3
import threading

import numpy as np
import pytest
from scipy import sparse

from longtail import (
    DoubleSamplingClassifier,
    LongTailClassifier,
    ModelFileError,
    Teacher,
    TextClassifier,
    load,
)
from longtail.exceptions import DocumentError
from longtail.store.changes import Row, encode
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, journal_path, read_journal
from tests.conftest import assert_same_predictions, make_problem

PROBLEM = make_problem(n_documents=80, n_classes=8)
LABELS = np.array([f"class {c}" for c in PROBLEM.y])
NEW = make_problem(seed=5, n_documents=12, n_classes=3).X
# A journal is the same for both; `make test` leaves the paper's to `make test-all`.
ESTIMATORS = [
    LongTailClassifier,
    pytest.param(DoubleSamplingClassifier, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model.longtail"
    request.param(random_state=0).fit(PROBLEM.X, LABELS).save(path)
    return path


@pytest.fixture
def path(fitted, tmp_path):
    return shutil.copy(fitted, tmp_path / "model.longtail")


def assert_same_model(one, other):
    assert type(one) is type(other)
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.classes_.dtype.kind == other.classes_.dtype.kind
    assert one.statistics_ == other.statistics_
    assert_same_predictions(one, other, PROBLEM.X)
    assert_same_predictions(one, other, NEW)


def assert_reopens(teacher, path):
    assert_same_model(load(path), teacher.model)


# What is taught is known at once, here and after reopening


def test_teaching_is_partial_fit(path):
    teacher, direct = Teacher(path), load(path)
    assert teacher.teach(NEW[:2], ["class 1", "new"]) == 1
    assert teacher.teach(sparse.csr_array(NEW[2:3]), np.array(["new"]), by="ann") == 2
    direct.partial_fit(NEW[:2], ["class 1", "new"]).partial_fit(NEW[2:3], ["new"])
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)
    assert [(c.number, c.action, c.by) for c in teacher.changes()] == [
        (1, "teach", None),
        (2, "teach", "ann"),
    ]


def test_forgetting(path):
    teacher, direct = Teacher(path), load(path)
    only = np.flatnonzero(LABELS == "class 7")
    teacher.forget(PROBLEM.X[only], LABELS[only])
    direct.forget(PROBLEM.X[only], LABELS[only])
    assert "class 7" not in teacher.model.classes_
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)


def test_taught_and_forgotten_is_as_before(path):
    before, teacher = load(path), Teacher(path)
    teacher.teach(NEW, ["new"] * len(NEW))
    teacher.forget(NEW, ["new"] * len(NEW))
    assert_same_model(teacher.model, before)
    assert_reopens(teacher, path)


def test_classes_are_renamed_merged_and_removed(path):
    teacher, direct = Teacher(path), load(path)
    teacher.rename_class("class 1", "zebra")
    teacher.merge_classes("class 2", "class 3")
    teacher.remove_class("class 4", by="ann")
    direct.rename_class("class 1", "zebra")
    direct.merge_classes("class 2", "class 3")
    direct.remove_class("class 4")
    assert {"class 1", "class 2", "class 4"}.isdisjoint(teacher.model.classes_)
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)


def test_an_older_model_object_stays_as_it_is(path):
    teacher = Teacher(path)
    old, before = teacher.model, teacher.model.predict_topk(PROBLEM.X, 3)
    teacher.teach(NEW, ["new"] * len(NEW))
    assert teacher.model is not old
    assert "new" not in old.classes_
    assert np.array_equal(old.predict_topk(PROBLEM.X, 3).scores, before.scores)


@pytest.mark.parametrize("kind", [np.int32, np.int64, float, object])
def test_labels_keep_their_type(tmp_path, kind):
    path = tmp_path / "model"
    labels = LABELS.astype(object) if kind is object else PROBLEM.y.astype(kind)
    new = "class 99" if kind is object else 99
    LongTailClassifier(random_state=0).fit(PROBLEM.X, labels).save(path)
    teacher = Teacher(path)
    teacher.teach(NEW[:2], [labels[0], new])
    assert teacher.model.classes_.dtype == np.dtype(kind)
    assert teacher.model.classes_[-1] == new
    assert_reopens(teacher, path)
    assert load(path).classes_.dtype == np.dtype(kind)


def test_column_names_stay_and_replaying_does_not_ask_for_them(path):
    model = load(path)
    model.feature_names_in_ = np.array([f"term {t}" for t in range(25)], dtype=object)
    model.save(path)
    teacher = Teacher(path)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        teacher.teach(NEW[:1], ["new"])  # scikit-learn's own word on the caller's matrix
    assert teacher.model.feature_names_in_[3] == "term 3"
    reopened = load(path)
    assert reopened.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert "new" in reopened.classes_


# Undo


def test_undo_is_exact(path):
    before, teacher = load(path), Teacher(path)
    teacher.teach(NEW[:3], ["a", "b", "class 1"])
    middle = teacher.model
    teacher.forget(NEW[:1], ["a"])
    assert teacher.undo() == 3
    assert_same_model(teacher.model, middle)
    assert_reopens(teacher, path)
    teacher.undo(by="ann")
    assert_same_model(teacher.model, before)
    assert_reopens(teacher, path)
    assert [(c.action, c.in_effect, c.by) for c in teacher.changes()] == [
        ("teach", False, None),
        ("forget", False, None),
        ("undo", True, None),
        ("undo", True, "ann"),
    ]


def test_undo_opens_nothing_and_leaves_older_models(path, monkeypatch):
    before, teacher = load(path), Teacher(path)
    teacher.teach(NEW[:1], ["class 1"])
    held = teacher.model
    teacher.teach(NEW[1:2], ["new"])
    held.partial_fit(NEW[2:4], ["other", "other"])  # the caller's own: the teacher keeps a copy
    monkeypatch.setattr("longtail.teaching.opening.open_file", None)
    teacher.undo()
    monkeypatch.undo()
    before.partial_fit(NEW[:1], ["class 1"])
    assert_same_model(teacher.model, before)
    assert_reopens(teacher, path)


def test_undo_after_another_teacher(path):
    teacher, other, direct = Teacher(path), Teacher(path), load(path)
    teacher.teach(NEW[:1], ["new"])
    other.teach(NEW[1:2], ["newer"])
    teacher.undo()  # of the other's
    direct.partial_fit(NEW[:1], ["new"])
    assert_same_model(teacher.model, direct)
    teacher.teach(NEW[1:2], ["newer"])
    other.undo()
    teacher.refresh()
    assert_same_model(teacher.model, direct)
    assert_reopens(other, path)


def test_a_refinement_is_a_change_like_any_other(path):
    teacher, direct = Teacher(path), load(path)
    if not isinstance(direct, LongTailClassifier):
        with pytest.raises(ValueError, match="DoubleSamplingClassifier has nothing to refine"):
            teacher.refine()
        assert not journal_path(path).exists()
        return
    teacher.teach(NEW[:3], ["a", "b", "class 1"])
    assert teacher.refine(by="ann") == 2
    teacher.teach(NEW[3:4], ["c"])
    direct.partial_fit(NEW[:3], ["a", "b", "class 1"]).refine().partial_fit(NEW[3:4], ["c"])
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)
    teacher.undo(numbers=[2])
    direct = load(shutil.copy(path, f"{path} alone"))
    direct.partial_fit(NEW[:4], ["a", "b", "class 1", "c"])
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)
    assert [(c.action, c.in_effect, c.by) for c in teacher.changes()][1] == ("refine", False, "ann")


def test_undo_of_several_and_of_an_undo(path):
    before, teacher = load(path), Teacher(path)
    for i in range(3):
        teacher.teach(NEW[i : i + 1], [f"new {i}"])
    after = teacher.model
    assert teacher.undo(3) == 4
    assert_same_model(teacher.model, before)
    teacher.undo(numbers=[4])
    assert_same_model(teacher.model, after)
    assert_reopens(teacher, path)
    teacher.undo(numbers=[5])
    assert_same_model(teacher.model, before)
    assert_reopens(teacher, path)


def test_undo_of_one_in_the_middle(path):
    teacher, direct = Teacher(path), load(path)
    for i in range(3):
        teacher.teach(NEW[i : i + 1], [f"new {i}"])
    teacher.undo(numbers=[2])
    direct.partial_fit(NEW[[0, 2]], ["new 0", "new 2"])
    assert_same_model(teacher.model, direct)
    assert_reopens(teacher, path)


def test_undo_that_a_later_change_builds_on(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    teacher.forget(NEW[:1], ["new"])
    model, log = teacher.model, read_journal(journal_path(path))
    with pytest.raises(
        ValueError, match=r"change 1 cannot be undone, because change 2 \(forget\) builds on it"
    ):
        teacher.undo(numbers=[1])
    assert teacher.model is model
    assert read_journal(journal_path(path)) == log
    teacher.undo(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1; got 0"),
        ({"n": 1.0}, "n must be an integer"),
        ({"n": 2}, r"only 1 change can be undone: .*n=2"),
        ({"numbers": [1]}, "change 1 is undone already"),
        ({"numbers": [9]}, "there is no change 9"),
        ({"numbers": []}, "one number at least"),
    ],
)
def test_undo_of_what_cannot_be(path, options, message):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    teacher.teach(NEW[:1], ["new"])
    teacher.undo(numbers=[1])
    with pytest.raises(ValueError, match=message):
        teacher.undo(**options)
    assert len(teacher.changes()) == 3


def test_undo_of_what_was_compacted(path):
    teacher = Teacher(path)
    number = teacher.teach(NEW[:1], ["new"])
    teacher.compact()
    with pytest.raises(ValueError, match="change 1 is part of the model file since"):
        teacher.undo(numbers=[number])
    teacher.teach(NEW[:1], ["newer"])
    with pytest.raises(ValueError, match="forget its documents instead"):
        teacher.undo(numbers=[number])


def test_undo_without_a_log(path):
    with pytest.raises(ValueError, match="there is nothing to undo"):
        Teacher(path).undo()
    assert not journal_path(path).exists()


# An error leaves memory and disk as they were


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.teach(NEW[:2], ["a"]), ValueError, r"got 2 documents and 1 label"),
        (lambda t: t.teach(NEW[:0], []), ValueError, "minimum of 1"),
        (lambda t: t.teach(NEW[:1], "a"), ValueError, "labels must be a list"),
        (lambda t: t.teach(NEW[:1], [3]), ValueError, "labels of the same type"),
        (lambda t: t.teach(NEW[:2], [3, "a"]), ValueError, "all strings or all numbers"),
        (lambda t: t.teach(NEW[:1], [None]), TypeError, "must be a string or a number; got None"),
        (lambda t: t.teach(NEW[:1, :5], ["a"]), ValueError, "expecting 25 features"),
        (lambda t: t.teach(-NEW[:1], ["a"]), ValueError, "Negative values"),
        (lambda t: t.teach(["some text"], ["a"]), TypeError, "takes a matrix of counts"),
        (lambda t: t.teach(NEW[:1], ["a"], by=7), TypeError, "by must be a string or None; got 7"),
        (lambda t: t.forget(NEW[:1], ["class 7"]), ValueError, "never added"),
        (lambda t: t.forget(NEW[:1], ["unknown"]), ValueError, "not among the classes"),
        (lambda t: t.rename_class("unknown", "x"), ValueError, "unknown"),
        (lambda t: t.rename_class("class 1", "class 2"), ValueError, "class 2"),
        (lambda t: t.merge_classes("unknown", "class 1"), ValueError, "unknown"),
        (lambda t: t.remove_class("unknown"), ValueError, "unknown"),
        (lambda t: t.remove_class(["class 1"]), TypeError, "a label must be a string or a number"),
    ],
)
def test_an_error_changes_nothing(path, call, error, message):
    teacher = Teacher(path)
    with pytest.raises(error, match=message):
        call(teacher)
    assert not journal_path(path).exists()
    teacher.teach(NEW[:1], ["kept"])
    model, log = teacher.model, read_journal(journal_path(path))
    with pytest.raises(error, match=message):
        call(teacher)
    assert teacher.model is model
    assert read_journal(journal_path(path)) == log
    assert_reopens(teacher, path)


def test_a_missing_model(tmp_path):
    with pytest.raises(FileNotFoundError):
        Teacher(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


# Compaction


def test_compacting_keeps_the_model_and_empties_the_log(path):
    teacher = Teacher(path)
    before = os.path.getsize(path)
    os.chmod(path, 0o640)
    teacher.teach(NEW, ["new"] * len(NEW))
    teacher.teach(NEW[:1], ["class 1"])
    teacher.undo()
    model = teacher.model
    teacher.compact()
    assert_same_model(teacher.model, model)
    assert teacher.changes() == []
    teacher.close()
    assert os.path.getsize(path) > before
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert sorted(os.listdir(path.parent)) == ["model.longtail", "model.longtail.journal"]
    assert_reopens(teacher, path)
    assert teacher.teach(NEW[:1], ["later"]) == 4
    assert_reopens(teacher, path)
    with pytest.raises(ValueError, match=r"only 1 change can be undone"):
        teacher.undo(2)


def test_compacting_what_was_never_taught(path):
    before = path.read_bytes()
    Teacher(path).compact()
    assert path.read_bytes() == before
    assert not journal_path(path).exists()


def test_a_failed_compaction_leaves_model_and_log(path, monkeypatch):
    teacher = Teacher(path)
    teacher.teach(NEW, ["new"] * len(NEW))
    model, before = teacher.model, path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space"):
            teacher.compact()
    assert path.read_bytes() == before
    teacher.close()
    assert sorted(os.listdir(path.parent)) == ["model.longtail", "model.longtail.journal"]
    assert_same_model(teacher.model, model)
    assert_reopens(teacher, path)
    teacher.teach(NEW[:1], ["later"])
    assert_reopens(teacher, path)
    teacher.compact()
    assert_reopens(teacher, path)


# Several teachers


def test_two_teachers_see_each_other(path):
    one, other = Teacher(path), Teacher(path)
    one.teach(NEW[:1], ["from one"])
    assert "from one" not in other.model.classes_
    other.teach(NEW[1:2], ["from other"])
    assert {"from one", "from other"} <= set(other.model.classes_)
    one.refresh()
    assert_same_model(one.model, other.model)
    other.undo(numbers=[1])
    one.teach(NEW[2:3], ["third"])
    assert "from one" not in one.model.classes_
    assert_reopens(one, path)


def test_two_teachers_and_a_compaction(path):
    one, other = Teacher(path), Teacher(path)
    one.teach(NEW[:1], ["from one"])
    other.teach(NEW[1:2], ["from other"])
    one.compact()
    other.teach(NEW[2:3], ["third"])
    assert {"from one", "from other", "third"} <= set(other.model.classes_)
    assert [change.number for change in one.changes()] == [3]
    assert_reopens(other, path)


def test_a_log_begun_anew_for_the_very_same_file(path):
    """What one teacher compacts back to the same bytes must not confuse another."""
    load(path).save(path)  # parameters in the form in which they come back
    one, other = Teacher(path), Teacher(path)
    one.teach(NEW[:1], ["gone"])
    other.refresh()
    one.undo()
    before = path.read_bytes()
    one.compact()
    assert path.read_bytes() == before
    one.teach(NEW[1:4], ["a", "b", "c"])
    other.teach(NEW[4:5], ["d"])
    assert {"a", "b", "c", "d"} <= set(other.model.classes_)
    assert_reopens(other, path)


def test_threads_share_a_teacher(path):
    teacher = Teacher(path)
    errors = []

    def teach(number):
        try:
            for i in range(4):
                teacher.teach(NEW[i : i + 1], [f"thread {number}"])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=teach, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(teacher.changes()) == 12
    sizes = dict(zip(teacher.model.classes_, teacher.model.statistics_.class_sizes, strict=True))
    assert [sizes[f"thread {number}"] for number in range(3)] == [4, 4, 4]
    assert_reopens(teacher, path)


# A log and a model that do not belong together


def test_saving_over_a_model_with_changes_is_refused(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    before = path.read_bytes()
    model = load(path).partial_fit(NEW[1:2], ["not recorded"])
    with pytest.raises(ModelFileError, match=r"holds 1 change that saving over .* would drop"):
        model.save(path)
    assert path.read_bytes() == before
    assert_reopens(teacher, path)
    teacher.undo()  # a change that was undone is history that would be lost
    with pytest.raises(ModelFileError, match=r"holds 2 changes"):
        model.save(path)
    model.save(path.parent / "other")
    assert_same_model(load(path.parent / "other"), model)


def test_saving_over_a_model_and_dropping_its_changes(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    model = load(path).partial_fit(NEW[1:2], ["not recorded"])
    os.chmod(path, 0o600)
    model.save(path, discard_changes=True)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert_same_model(load(path), model)
    assert teacher.changes() == []
    assert teacher.teach(NEW[2:3], ["x"]) == 2
    assert {"new", "not recorded", "x"} <= set(teacher.model.classes_)
    teacher.close()
    assert sorted(os.listdir(path.parent)) == ["model.longtail", "model.longtail.journal"]


def test_a_file_replaced_behind_the_journal_is_noticed(path, tmp_path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    model = load(path).partial_fit(NEW[1:2], ["not recorded"])
    model.save(tmp_path / "other")
    os.replace(tmp_path / "other", path)
    for call in (load, Teacher, lambda _: teacher.teach(NEW[:1], ["x"])):
        with pytest.raises(
            ModelFileError, match=r"holds 1 change of another model file .* delete this"
        ) as caught:
            call(path)
        assert caught.value.path == str(journal_path(path))
    journal_path(path).unlink()
    assert_same_model(load(path), model)
    teacher.teach(NEW[2:3], ["x"])
    assert {"new", "not recorded", "x"} <= set(teacher.model.classes_)


def test_saving_over_a_compacted_model_is_fine(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    teacher.compact()
    model = load(path)
    model.partial_fit(NEW[1:2], ["not logged"])
    model.save(path)
    assert_same_model(load(path), model)
    assert teacher.teach(NEW[2:3], ["x"]) == 2
    assert {"new", "not logged", "x"} <= set(teacher.model.classes_)
    assert_reopens(teacher, path)


def test_the_log_of_another_model(path, tmp_path):
    other = tmp_path / "other"
    LongTailClassifier(random_state=1).fit(PROBLEM.X[:, :9], LABELS).save(other)
    teacher = Teacher(other)
    teacher.teach(NEW[:1, :9], ["new"])
    teacher.close()
    shutil.copy(journal_path(other), journal_path(path))
    with pytest.raises(ModelFileError, match="of another model file"):
        load(path)


def write_journal(path, *records):
    """A sound journal with records that no teacher would write."""
    journal = Journal(path)
    with journal.locked():
        header = journal.restart(None, read_checksum(path))
        journal.append(header, records[0][0], [records[0][1]], None)
    for action, row in records[1:]:
        with journal.locked():
            journal.append(journal.header(), action, [row], None)
    journal.close()


def numbers(values, kind="<i8"):
    return np.asarray(values, kind).tobytes()


def row_of(**changed):
    """A document with terms 1 and 3 of class 2, but for what is changed."""
    sound = {
        "classes": numbers([2]),
        "sizes": numbers([2]),
        "terms": numbers([1, 3], "<i4"),
        "counts": numbers([1, 2], "<f4"),
        "content": encode({"labels": ["class 2"]}),
    }
    return Row(**(sound | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": numbers([99])}, "a class is out of bounds"),
        ({"classes": numbers([-1])}, "a class is out of bounds"),
        ({"classes": numbers([2**40])}, "a class is out of bounds"),
        ({"classes": numbers([1, 2])}, "do not fit each other"),
        ({"sizes": numbers([3])}, "do not fit each other"),
        ({"sizes": numbers([2**62])}, "do not fit each other"),
        ({"sizes": numbers([-2])}, "do not fit each other"),
        ({"terms": numbers([1, 25], "<i4")}, "a term is out of bounds"),
        ({"terms": numbers([-1, 3], "<i4")}, "a term is out of bounds"),
        ({"terms": numbers([3, 1], "<i4")}, "do not ascend"),
        ({"terms": numbers([3, 3], "<i4")}, "do not ascend"),
        ({"counts": numbers([1, np.nan], "<f4")}, "a count is out of bounds"),
        ({"counts": numbers([1, np.inf], "<f8")}, "a count is out of bounds"),
        ({"counts": numbers([0, 1], "<f8")}, "a count is out of bounds"),
        ({"counts": numbers([-1, 1], "<f8")}, "a count is out of bounds"),
        ({"facts": encode({"terms": ["zebra"]})}, "it brings terms"),
        ({"counts": numbers([50, 50], "<f4")}, "never added"),
    ],
)
def test_a_record_that_does_not_fit_the_model(path, changed, message):
    action = "forget" if message == "never added" else "teach"
    sound = ("teach", row_of(facts=encode({"classes": ["new"]}), classes=numbers([8])))
    write_journal(path, sound, (action, row_of(**changed)))
    with pytest.raises(ModelFileError, match=rf"record 2 \({action}\) does not fit.*{message}"):
        load(path)


def test_numbers_that_are_cut_off(path):
    write_journal(path, ("teach", row_of(sizes=b"1234567")))
    with pytest.raises(ModelFileError, match="record 1 has sizes that are cut off"):
        load(path)


def test_damage_in_the_journal_is_an_error_everywhere(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:1], ["new"])
    teacher.teach(NEW[:1], ["new"])
    teacher.close()
    content = journal_path(path).read_bytes()
    where = content.index(b"teach")
    journal_path(path).write_bytes(content[:where] + b"Teach" + content[where + 5 :])
    for call in (lambda: load(path), lambda: Teacher(path), teacher.changes, teacher.undo):
        with pytest.raises(ModelFileError, match=r"record \d is damaged"):
            call()


# Many documents are one change


@pytest.mark.parametrize("largest", [10, 1 << 19])
def test_many_documents_are_one_change(path, monkeypatch, largest):
    monkeypatch.setattr("longtail.teaching.log._LARGEST_BATCH", largest)
    before, teacher = load(path), Teacher(path)
    labels = [f"new {i % 3}" for i in range(12)]
    assert teacher.teach(NEW, labels) == 1
    (change,) = teacher.changes()
    assert len(change.rows) == (1 if largest > 100 else 12)
    assert change.labels == labels
    assert_same_model(teacher.model, load(path))
    assert_same_model(teacher.model, before.partial_fit(NEW, labels))
    assert teacher.forget(NEW, labels) == 2
    assert_reopens(teacher, path)
    assert teacher.undo(2) == 3
    assert_reopens(teacher, path)


@pytest.mark.parametrize("bad", [0, 7, 11])
def test_one_document_that_cannot_be_forgotten_is_named(path, bad):
    teacher = Teacher(path)
    labels = ["new"] * 12
    teacher.teach(NEW, labels)
    model, before = teacher.model, read_journal(journal_path(path))
    given = NEW.copy()
    given[bad] += 100
    with pytest.raises(DocumentError, match=r"never added.* Nothing was changed") as caught:
        teacher.forget(given, labels)
    assert caught.value.document == bad
    labels[bad] = "unknown"
    with pytest.raises(DocumentError, match="not among the classes") as caught:
        teacher.forget(NEW, labels)
    assert caught.value.document == bad
    assert teacher.model is model
    assert read_journal(journal_path(path)) == before


# Erasing


def all_bytes(folder):
    return b"".join(p.read_bytes() for p in folder.iterdir())


def test_a_forgotten_text_stays_in_the_journal_unless_it_is_erased(tmp_path):
    path = tmp_path / "model"
    texts = ["a brown bear", "the bear", "a red fox", "the fox", "zanzibar and xylophone"]
    TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox", "odd"]).save(path)
    teacher = Teacher(path)
    teacher.teach(["zanzibar and xylophone"], ["odd"])
    teacher.forget(["zanzibar and xylophone"], ["odd"])
    teacher.close()
    assert b"zanzibar and xylophone" in all_bytes(tmp_path)
    number = teacher.forget(["zanzibar and xylophone"], ["odd"], erase=True)
    assert number == 3
    assert b"zanzibar and xylophone" not in all_bytes(tmp_path)  # though the teacher is open
    assert "odd" not in load(path).classes_
    assert teacher.changes() == []
    assert teacher.teach(["an owl"], ["owl"]) == 4
    assert_same_text_model(load(path), teacher.model)


def test_compacting_erases(tmp_path):
    path = tmp_path / "model"
    TextClassifier(random_state=0).fit(["a bear", "a fox"], ["bear", "fox"]).save(path)
    teacher = Teacher(path)
    for i in range(50):
        teacher.teach([f"zanzibar and xylophone {i}"], ["odd"])
    teacher.compact()
    assert b"zanzibar and xylophone" not in all_bytes(tmp_path)
    teacher.close()
    assert journal_path(path).stat().st_size <= 3 * 4096


def test_erasing_without_a_journal_and_an_error(path):
    teacher = Teacher(path)
    with pytest.raises(ValueError, match="not among the classes"):
        teacher.forget(NEW[:1], ["unknown"], erase=True)
    assert not journal_path(path).exists()
    first = np.flatnonzero(LABELS == "class 1")[:1]
    assert teacher.forget(PROBLEM.X[first], LABELS[first], erase=True) == 1
    assert_same_model(load(path), teacher.model)
    assert teacher.model.statistics_.n_documents == 79
    assert teacher.changes() == []


def test_erasing_says_when_another_process_still_reads(path):
    teacher = Teacher(path)
    teacher.teach(NEW[:2], ["new", "new"])
    reader = sqlite3.connect(journal_path(path), isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM records").fetchall()
    with pytest.raises(TimeoutError, match="text is still in the journal"):
        teacher.forget(NEW[:1], ["new"], erase=True)
    reader.close()
    assert teacher.model.statistics_.n_documents == 81
    assert_reopens(teacher, path)


# Models of texts

ANIMALS = {
    "bear": ["a brown bear", "bears eat honey", "the bear sleeps in winter"],
    "fox": ["the red fox", "a fox runs", "foxes eat mice and honey"],
    "wolf": ["the grey wolf", "wolves howl at night"],
}
QUESTIONS = ["who eats honey", "it howls", "a red bear at night", "hoots at night", "unheard of"]


@pytest.fixture
def animals(tmp_path):
    path = tmp_path / "animals"
    pairs = [(text, label) for label, texts in ANIMALS.items() for text in texts]
    texts, labels = zip(*pairs, strict=True)
    TextClassifier(random_state=0).fit(texts, labels).save(path)
    return path


def assert_same_text_model(one, other):
    assert type(one) is type(other) is TextClassifier
    assert one.vocabulary_.terms == other.vocabulary_.terms
    frequencies = one.vocabulary_.document_frequencies, other.vocabulary_.document_frequencies
    assert frequencies[0].tolist() == frequencies[1].tolist()
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.statistics_ == other.statistics_
    assert_same_predictions(one, other, QUESTIONS)


def test_texts_are_taught_with_their_new_terms(animals):
    teacher, direct = Teacher(animals), load(animals)
    for text, label in (
        ("an owl hoots", "owl"),
        ("a fox of the arctic is white", "fox"),
        ("the owl hunts, the snowy owl is white", "owl"),
        ("arctic arctic hunts a white hare", "hare"),
        ("a hare hunts an owl", "hare"),
    ):
        teacher.teach([text], [label], by="ann")
        direct.partial_fit([text], [label])
    assert teacher.model.predict(["it hoots"]).tolist() == ["owl"]
    assert_same_text_model(teacher.model, direct)
    assert_same_text_model(load(animals), direct)  # all at once
    teacher.rename_class("owl", "night owl")
    teacher.merge_classes("wolf", "fox")
    teacher.forget(["a fox of the arctic is white", "the red fox"], ["fox", "fox"])
    teacher.remove_class("bear")
    assert_same_text_model(load(animals), teacher.model)
    teacher.undo(4)
    assert_same_text_model(teacher.model, direct)
    teacher.compact()
    assert_same_text_model(load(animals), direct)
    teacher.teach(["zebras"], ["zebra"])
    assert_same_text_model(load(animals), teacher.model)


def test_forgetting_texts_in_a_row_is_forgetting_them_one_by_one(animals):
    """A text of the fit has terms that entered later: what counts depends on what was before."""
    teacher = Teacher(animals)
    teacher.teach(["a fox runs into the night wolf"], ["fox"])
    teacher.forget(["a fox runs into the night wolf"], ["fox"])
    teacher.forget(["a fox runs"], ["fox"])
    teacher.forget(["the red fox"], ["fox"])
    assert_same_text_model(load(animals), teacher.model)


@pytest.mark.parametrize(
    ("documents", "labels", "error", "message"),
    [
        ("one text", ["owl"], TypeError, "documents must be a list of texts"),
        ([7], ["owl"], TypeError, "documents must be a list of texts"),
        (["one", "two"], ["owl"], ValueError, r"2 documents and 1 label"),
        ([], [], ValueError, "one at least"),
        (["one"], [3], ValueError, "labels of the same type"),
    ],
)
def test_texts_that_cannot_be_taught(animals, documents, labels, error, message):
    teacher = Teacher(animals)
    with pytest.raises(error, match=message):
        teacher.teach(documents, labels)
    assert not journal_path(animals).exists()


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["bear"], "is in the vocabulary twice"),
        (["zebra", "zebra"], "is in the vocabulary twice"),
        ([""], "a term is empty"),
        (["\ud800"], "a term is no text"),
    ],
)
def test_terms_of_a_journal_that_cannot_enter(animals, terms, message):
    write_journal(animals, ("teach", row_of(facts=encode({"terms": terms}))))
    with pytest.raises(ModelFileError, match=rf"record 1 \(teach\) does not fit .*{message}"):
        load(animals)
