"""A teacher that refines its model beside predictions and changes."""

import threading

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier, Teacher, TextClassifier, load
from longtail.model.edits import Refine
from longtail.store.journal import find_refined
from longtail.training import relearning
from tests.estimator.test_taught_in_use import assert_same

WAIT = 60  # seconds, so that a test that hangs ends
WORDS = [f"w{i}" for i in range(200)]


def write(rng, c):
    return " ".join(rng.choice(WORDS[5 * c : 5 * c + 9], 6))


@pytest.fixture(autouse=True)
def few_documents_are_enough(monkeypatch):
    monkeypatch.setattr(relearning, "MIN_TAUGHT", 20)


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    return [write(rng, i % 30) for i in range(600)], [f"c{i % 30:02}" for i in range(600)]


@pytest.fixture
def path(texts, tmp_path):
    documents, labels = texts
    model = TextClassifier(LongTailClassifier(random_state=0))
    model.fit(documents[:360], labels[:360]).save(tmp_path / "model")
    return tmp_path / "model"


def teach(teacher, texts, first, n, by=None):
    documents, labels = texts
    return teacher.teach(documents[first : first + n], labels[first : first + n], by)


def actions(teacher):
    return [(change.action, change.by) for change in teacher.changes() if change.in_effect]


@pytest.fixture
def paused(monkeypatch):
    """A refinement begins, and goes on when it is told to."""
    begun, go_on, real = threading.Event(), threading.Event(), Refine.apply

    def apply(self, classifier, state):
        begun.set()
        assert go_on.wait(WAIT)
        return real(self, classifier, state)

    monkeypatch.setattr(Refine, "apply", apply)
    yield begun, go_on
    go_on.set()


def test_it_refines_when_enough_was_taught(texts, path):
    teacher = Teacher(path)
    teach(teacher, texts, 360, 19)
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("teach", None)]
    teach(teacher, texts, 379, 1)
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("teach", None)] * 2 + [("refine", "auto")]
    assert teacher.model.classifier_.state_.corpus.n_documents == 380
    assert_same(teacher.model, load(path))
    by_hand = load(path.with_name("model"), verify=False)
    assert np.array_equal(by_hand.predict(texts[0]), teacher.model.predict(texts[0]))


def test_it_is_what_refine_would_have_done(texts, path, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    teacher, by_hand = Teacher(path), Teacher(other, refine="never")
    for one in (teacher, by_hand):
        teach(one, texts, 360, 40)
    assert teacher.settle(WAIT)
    assert by_hand.refine_due
    by_hand.refine()
    assert_same(teacher.model, by_hand.model)


def test_never(texts, path):
    teacher = Teacher(path, refine="never")
    teach(teacher, texts, 360, 100)
    assert teacher.refine_due
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("teach", None)]
    with pytest.raises(ValueError, match='"auto" or "never"; got True'):
        Teacher(path, refine=True)


def test_predictions_and_changes_go_on_meanwhile(texts, path, paused):
    begun, go_on = paused
    teacher = Teacher(path)
    documents = texts[0]
    teach(teacher, texts, 360, 40)
    assert begun.wait(WAIT)
    before = teacher.model.predict(documents[:5]).tolist()
    assert len(before) == 5
    teacher.teach(["entirely new words here"], ["new class"], "ann")
    assert teacher.model.predict(["entirely new words"]).tolist() == ["new class"]
    teacher.rename_class("c03", "c99")
    other = Teacher(path, refine="never")
    teach(other, texts, 400, 10, "ben")
    go_on.set()
    assert teacher.settle(WAIT)
    assert [action for action, _ in actions(teacher)] == [
        "teach", "teach", "rename", "teach", "refine"
    ]  # fmt: skip
    model = teacher.model
    assert model.predict(["entirely new words"]).tolist() == ["new class"]
    assert "c99" in model.classes_.tolist()
    assert model.classifier_.state_.corpus.n_documents == 400  # what it began with
    assert model.statistics_.n_documents == 411
    assert_same(model, load(path))
    other.refresh()
    assert_same(model, other.model)
    undo = teacher.undo(numbers=[2])
    assert "new class" not in teacher.model.classes_.tolist()
    assert_same(teacher.model, load(path))
    teacher.undo(numbers=[undo])
    assert_same(teacher.model, model)


def test_what_was_undone_meanwhile_makes_it_vain(texts, path, paused):
    begun, go_on = paused
    teacher = Teacher(path)
    teach(teacher, texts, 360, 40)
    assert begun.wait(WAIT)
    teacher.undo()
    go_on.set()
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("undo", None)]
    assert not find_refined(path)


def test_compacting_meanwhile_makes_it_vain(texts, path, paused):
    begun, go_on = paused
    teacher = Teacher(path)
    teach(teacher, texts, 360, 40)
    assert begun.wait(WAIT)
    teacher.compact()
    go_on.set()
    assert teacher.settle(WAIT)
    assert not teacher.changes()
    assert sorted(p.name for p in path.parent.iterdir() if "tmp" in p.name) == []


def test_a_teacher_that_is_closed_refines_no_more(texts, path, paused):
    begun, go_on = paused
    teacher = Teacher(path)
    teach(teacher, texts, 360, 40)
    assert begun.wait(WAIT)
    teacher.close()  # does not wait
    go_on.set()
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("teach", None)]
    teach(teacher, texts, 400, 1)
    assert teacher.settle(WAIT)
    assert actions(teacher)[-1] == ("refine", "auto")


def test_undone_it_does_not_come_back(texts, path):
    teacher = Teacher(path)
    before = Teacher(path).model
    teach(teacher, texts, 360, 40)
    assert teacher.settle(WAIT)
    teacher.undo()
    assert teacher.model.classifier_.state_.corpus.n_documents == 360
    teach(teacher, texts, 400, 40)
    assert teacher.settle(WAIT)
    assert [action for action, _ in actions(teacher)] == ["teach", "undo", "teach"]
    teacher.refine()  # by hand
    teach(teacher, texts, 440, 60)
    assert teacher.settle(WAIT)
    assert actions(teacher)[-1] == ("refine", "auto")
    assert before.classifier_.state_.corpus.n_documents == 360


def test_old_files_go(texts, path):
    teacher = Teacher(path)
    for first in range(360, 560, 50):
        teach(teacher, texts, first, 50)
        assert teacher.settle(WAIT)
    refined = [c.number for c in teacher.changes() if c.action == "refine"]
    assert len(refined) == 4
    kept = sorted(int(file.name.rpartition("-")[2]) for file in find_refined(path))
    assert kept == refined[-2:]
    teacher.undo(numbers=refined[-1:])
    assert_same(teacher.model, load(path))
    with pytest.raises(ValueError, match=f"undo {refined[-3]} as well"):
        teacher.undo(numbers=refined[-2:-1])
    assert_same(teacher.model, load(path))
    teacher.undo(numbers=refined[:-1])  # all of them: the model file with its changes
    assert teacher.model.classifier_.state_.corpus.n_documents == 360
    assert_same(teacher.model, load(path))
    assert teacher.refine()  # tidies up: those that are undone are not kept
    teacher.undo()
    with pytest.raises(ValueError, match=f"what change {refined[-1]} .* refine anew instead"):
        teacher.undo(numbers=[teacher.changes()[-4].number])


def test_what_fails_is_logged_and_leaves_the_model(texts, path, monkeypatch, caplog):
    def fail(self, classifier, state):
        raise MemoryError("no room")

    monkeypatch.setattr(Refine, "apply", fail)
    teacher = Teacher(path)
    teach(teacher, texts, 360, 40)
    assert teacher.settle(WAIT)
    assert actions(teacher) == [("teach", None)]
    assert "was not refined: no room" in caplog.text


def test_models_that_cannot_be_refined_are_left_alone(tmp_path):
    X = np.eye(6, dtype=int) + 1
    DoubleSamplingClassifier(random_state=0).fit(X, list("aabbcc")).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model")
    teacher.teach(np.repeat(X, 10, axis=0), list("aabbcc") * 10)
    assert teacher.settle(WAIT)
    assert not teacher.refine_due
    assert len(teacher.changes()) == 1
