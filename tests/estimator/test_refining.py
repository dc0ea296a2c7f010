"""A `refine` of a taught model: a change like any other, in a file of its own until folded."""

import errno
import os
import shutil
import threading

import numpy as np
import pytest

from longtail import LongTailClassifier, ModelFileError, Teacher, TextClassifier, load
from longtail.store.changes import Row, encode
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, find_refined, refined_path
from longtail.teaching import opening
from longtail.teaching import teacher as teaching
from longtail.teaching.versions import Follower
from tests.conftest import assert_same_predictions, make_problem

TEXTS = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "the grey wolf", "a wolf"]
LABELS = ["bear", "bear", "fox", "fox", "wolf", "wolf"]
QUESTIONS = ["honey for the fox", "an owl hoots", "a newt swims", "grey bears run", "unheard of"]


@pytest.fixture
def path(tmp_path):
    TextClassifier(random_state=0).fit(TEXTS, LABELS).save(tmp_path / "model")
    return tmp_path / "model"


def assert_same_model(one, other):
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.statistics_ == other.statistics_
    assert one.class_texts_ == other.class_texts_
    assert_same_predictions(one, other, QUESTIONS)


def test_changes_before_and_after_it_are_undone_in_any_order(path):
    """What was learned stays; the sums are those of the changes that are live."""
    teacher, follower = Teacher(path), Follower(path)
    teacher.teach(["an owl hoots"], ["owl"])
    teacher.merge_classes("wolf", "fox")
    teacher.remove_class("bear")
    assert teacher.refine() == 4
    teacher.teach(["a newt swims"], ["newt"])
    teacher.rename_class("owl", "night owl")
    learned = teacher.model.state_.model.corpus
    for number, classes in (
        (3, ["bear", "fox", "newt", "night owl"]),
        (2, ["bear", "fox", "newt", "night owl", "wolf"]),
        (1, ["bear", "fox", "newt", "wolf"]),
    ):
        teacher.undo(numbers=[number])
        assert teacher.model.classes_.tolist() == classes
        follower.refresh()
        for other in (load(path), follower.current.model):
            assert_same_model(teacher.model, other)
        corpus = teacher.model.state_.model.corpus
        assert corpus.n_documents == learned.n_documents
    teacher.undo(numbers=[8])  # brings the merger back
    assert teacher.model.classes_.tolist() == ["bear", "fox", "newt"]
    teacher.undo(numbers=[4])
    direct = load(shutil.copy(path, f"{path} alone")).merge_classes("wolf", "fox")
    direct.partial_fit(["a newt swims"], ["newt"])
    assert teacher.model.statistics_.class_sizes.tolist() == direct.statistics_.class_sizes.tolist()
    assert_same_model(teacher.model, load(path))


def test_it_is_what_the_model_itself_would_be(path):
    teacher, direct = Teacher(path), load(path)
    for i in range(2):
        teacher.teach([f"an owl hoots {i}"], ["owl"])
        teacher.refine()
        direct.partial_fit([f"an owl hoots {i}"], ["owl"]).refine()
        assert_same_model(teacher.model, direct)
    teacher.set_class_text("newt", "an owl that swims")
    direct.set_class_text("newt", "an owl that swims")
    teacher.teach(["the owl"], ["bear"])
    direct.partial_fit(["the owl"], ["bear"])
    assert_same_model(teacher.model, direct)
    assert_same_model(load(path), direct)
    teacher.undo(numbers=[4])  # the first one counts again
    assert_same_model(teacher.model, load(path))


def test_a_label_comes_back_after_it(path):
    teacher = Teacher(path)
    teacher.forget(TEXTS[4:], LABELS[4:])
    teacher.refine()
    teacher.teach(["the white wolf"], ["wolf"])
    assert teacher.model.classes_.tolist() == ["bear", "fox", "wolf"]
    assert_same_model(teacher.model, load(path))
    teacher.undo(numbers=[2])
    assert_same_model(teacher.model, load(path))
    for numbers in ([1], [4]):  # what was forgotten comes back to the same class; so after a refine
        teacher.undo(numbers=numbers)
        assert teacher.model.classes_.tolist() == ["bear", "fox", "wolf"]
        assert teacher.model.statistics_.class_sizes.tolist() == [2, 2, 3]
        assert_same_model(teacher.model, load(path))


def test_outcomes_after_it_are_seen(path):
    teacher = Teacher(path)
    texts = [f"{a} {b}" for a in ("bear", "fox", "wolf", "red") for b in ("runs", "eats", "a")] * 3
    teacher.recalibrate(texts, ["bear"] * len(texts))
    teacher.refine()
    teacher.recalibrate(texts, ["fox"] * len(texts))
    assert_same_model(teacher.model, load(path))
    with_both = teacher.model.predict_proba_topk(QUESTIONS, 2).scores
    teacher.undo(numbers=[3])
    assert_same_model(teacher.model, load(path))
    teacher.undo()  # that is of the refinement
    assert_same_model(teacher.model, load(path))
    teacher.undo(numbers=[5])
    teacher.undo(numbers=[4])
    assert teacher.model.predict_proba_topk(QUESTIONS, 2).scores.tolist() == with_both.tolist()


def test_folding_removes_the_files(path):
    teacher = Teacher(path)
    for fold in (
        teacher.compact,
        lambda: teacher.forget(TEXTS[:1], LABELS[:1], erase=True),
        lambda: load(path).save(path, discard_changes=True),
    ):
        teacher.teach(["an owl hoots"], ["owl"])
        teacher.refine()
        teacher.refine()
        names = {f"model.refined-{change.number}" for change in teacher.changes()[1:]}
        assert names <= set(os.listdir(path.parent))
        fold()
        teacher.close()
        assert sorted(os.listdir(path.parent)) == ["model", "model.journal"]


@pytest.mark.parametrize("what", ["folded", "superseded"])
def test_a_model_that_another_changes_while_it_is_opened(path, monkeypatch, what):
    """What the journal named as it was read is gone."""
    teacher, real = Teacher(path, refine="never"), opening.open_refined
    teacher.teach(["an owl hoots"], ["owl"])
    teacher.refine()

    def open_too_late(*arguments, **options):
        monkeypatch.undo()
        if what == "folded":
            teacher.compact()
        else:
            teacher.refine()
            refined_path(path, 2).unlink()
        return real(*arguments, **options)

    monkeypatch.setattr(opening, "open_refined", open_too_late)
    assert_same_model(load(path), teacher.model)


def test_no_file_stays_that_no_change_names(path, monkeypatch):
    teacher = Teacher(path, refine="never")
    teacher.teach(["an owl hoots"], ["owl"])

    def append(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", append)
        with pytest.raises(OSError, match="No space left"):
            teacher.refine()
    assert find_refined(path) == []
    shutil.copy(path, refined_path(path, 2))  # of a killed process
    teacher.teach(["a newt swims"], ["newt"])
    teacher.refine()
    assert find_refined(path) == [refined_path(path, 3)]
    assert_same_model(load(path), teacher.model)


def test_two_processes_that_refine_leave_each_other_their_files(path, monkeypatch):
    """The second has its file in place and is about to record it as the first looks around."""
    teacher, other = Teacher(path, refine="never"), Teacher(path, refine="never")
    teacher.teach(["an owl hoots"], ["owl"])
    real_open, real_append = teaching.open_state, Journal.append
    in_place, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=other.refine)

    def open_late(*arguments, **options):
        if not in_place.is_set():
            thread.start()
            in_place.wait()
        return real_open(*arguments, **options)

    def append_late(journal, *arguments):
        if journal is other._journal:
            in_place.set()
            done.wait(0.5)
        return real_append(journal, *arguments)

    monkeypatch.setattr(teaching, "open_state", open_late)
    monkeypatch.setattr(Journal, "append", append_late)
    teacher.refine()
    done.set()
    thread.join()
    teacher.refresh()
    assert [change.action for change in teacher.changes()] == ["teach", "refine", "refine"]
    assert_same_model(load(path), teacher.model)


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_has_the_permissions_of_the_model(path, mode):
    os.chmod(path, mode)
    teacher = Teacher(path)
    teacher.refine()
    assert os.stat(refined_path(path, 1)).st_mode & 0o777 == mode


@pytest.mark.parametrize("what", ["missing", "another", "damaged"])
def test_a_file_that_is_not_the_one_of_the_journal(path, what):
    teacher = Teacher(path)
    teacher.teach(["an owl hoots"], ["owl"])
    teacher.refine()
    file = refined_path(path, 2)
    if what == "missing":
        file.unlink()
    elif what == "another":
        shutil.copy(path, file)
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert caught.value.path == str(file)


def refine_record(path, **changed):
    """A journal whose only record is a refinement, with a sound file."""
    ids = changed.pop("ids", [0, 1, 2])
    facts = {"file": read_checksum(path), "live": [], "until": 0} | changed
    journal = Journal(path)
    with journal.locked():
        row = Row(np.array(ids, "<i8").tobytes(), facts=encode(facts))
        journal.append(journal.restart(None, read_checksum(path)), "refine", [row], None)
    journal.close()
    shutil.copy(path, refined_path(path, 1))


def test_a_forged_record_is_read_if_it_is_sound(path):
    before = load(path)
    refine_record(path, ids=[0, 1, 2])
    assert_same_model(load(path), before)


@pytest.mark.parametrize("ids", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2**40], []])
def test_a_record_that_does_not_fit_its_file(path, ids):
    refine_record(path, ids=ids)
    with pytest.raises(ModelFileError, match=r"other classes or terms|out of bounds"):
        load(path)


def test_a_class_that_was_empty_when_a_model_was_opened_has_its_residual_when_it_comes_again(
    tmp_path,
):
    problem = make_problem()
    X, y = problem.X, problem.y.astype(str)
    LongTailClassifier(random_state=0).fit(X, y).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model", refine="never")
    teacher.teach(X[:1], ["new"])
    teacher.refine()
    teacher.undo(numbers=[1])  # what was learned is laid over other sums
    rows = np.flatnonzero(y == "0")
    teacher.forget(X[rows], y[rows])
    other = Teacher(tmp_path / "model", refine="never")
    other.teach(X[rows], y[rows])
    teacher.refresh()
    for model in (teacher.model, load(tmp_path / "model")):
        assert_same_predictions(other.model, model, X)
        assert other.model.explain(X[:2])[0].score == model.explain(X[:2])[0].score


def test_what_held_out_documents_showed_is_of_the_same_classes_after_an_undo(tmp_path):
    problem = make_problem(n_documents=400)
    X, y = problem.X, np.array([f"class {k}" for k in problem.y])
    LongTailClassifier(random_state=0).fit(X, y).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model", refine="never")
    teacher.teach(X[:2], ["a first", "a second"])
    teacher.refine()

    def ranked():
        state = teacher.model.state_
        return state.all_classes[state.find_today()[state.calibrator.ranked_truth]].tolist()

    before = ranked()
    assert len(before) >= 50
    teacher.undo(numbers=[1])
    assert ranked() == before
    teacher.compact()  # a file that names classes it does not have would be refused
    assert ranked() == before
