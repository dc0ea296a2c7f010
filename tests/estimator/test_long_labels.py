"""One long label beside many classes takes the memory of one long label."""

import shutil
import tracemalloc
from contextlib import closing

import numpy as np
import pytest

from longtail import ModelFileError, Teacher, TextClassifier, load
from longtail._columns import join_labels
from longtail._constants import MAX_LABEL
from longtail.store.changes import Row, encode
from longtail.store.container import read_checksum
from longtail.store.journal import Journal

N_CLASSES = 2_000
LONG = "z" * MAX_LABEL  # beside 2,000 classes of fixed width it would take 80 MB
MAX_BYTES = 40 << 20


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "model.longtail"
    texts = [f"word{i // 2} other{i % 50}" for i in range(2 * N_CLASSES)]
    labels = [f"class {i // 2:04d}" for i in range(2 * N_CLASSES)]
    classifier = TextClassifier(random_state=0).set_params(classifier__time_budget=5)
    classifier.fit(texts, labels).save(path)
    load(path).partial_fit(["word0"], ["class 0000"]).predict(["word0"])  # imports and compiles
    return path


@pytest.fixture
def path(fitted, tmp_path):
    return shutil.copy(fitted, tmp_path / "model.longtail")


def measure(function):
    """Return the peak of what a call allocates, in bytes, and what it returns."""
    tracemalloc.start()
    try:
        result = function()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


EDITS = {
    "teach": lambda model: model.partial_fit(["strange word3"], [LONG]),
    "teach several": lambda model: model.partial_fit(["a"] * 20, [*["x"] * 19, LONG]),
    "rename": lambda model: model.rename_class("class 0007", LONG),
    "describe": lambda model: model.set_class_text(LONG, "strange"),
    "forget": lambda model: model.forget(["strange"], [LONG]),
    "merge": lambda model: model.merge_classes("class 0001", LONG),
    "explain": lambda model: model.explain(["strange"], [LONG]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_with_a_long_label(path, edit):
    model = load(path)
    before = model.predict(["word3 other7"]).tolist()

    def run():
        try:
            EDITS[edit](model)
        except ValueError as error:
            return len(str(error))
        return 0

    n_bytes, n_characters = measure(run)
    assert n_bytes < MAX_BYTES
    assert n_characters < 1_000
    assert model.predict(["word3 other7"]).tolist() == before
    if edit in ("teach", "teach several", "rename", "describe"):
        assert LONG in model.classes_.tolist()
        model.partial_fit(["strange words"], [LONG])
        assert model.predict(["strange words"]).tolist() == [LONG]
        model.forget(["strange words"], [LONG])


def test_a_journal_with_a_long_label(path):
    with closing(Teacher(path)) as teacher:
        teacher.teach(["strange", "stranger"], ["new", LONG])
        teacher.rename_class("class 0007", "y" * MAX_LABEL)
    n_bytes, model = measure(lambda: load(path))
    assert n_bytes < MAX_BYTES
    assert model.predict(["stranger"]).tolist() == [LONG]
    with closing(Teacher(path)) as teacher:
        teacher.undo()
        teacher.compact()
    assert load(path).classes_.tolist()[-1] == LONG


def test_labels_that_grow_take_no_more_than_a_long_one(path):
    model = load(path)
    lengths = [1 << i for i in range(5, 14)]  # the last would make all of them 65 MB

    def teach():
        for length in lengths:
            model.partial_fit(["strange word3"], ["z" * length])

    n_bytes, _ = measure(teach)
    assert n_bytes < MAX_BYTES
    assert [len(label) for label in model.classes_.tolist()[-len(lengths) :]] == lengths


def test_longer_labels_are_refused(path):
    with closing(Teacher(path)) as teacher:
        for edit in (
            lambda: teacher.teach(["x"], [LONG + "z"]),
            lambda: teacher.rename_class("class 0001", LONG + "z"),
            lambda: teacher.set_class_text(LONG + "z", "text"),
        ):
            with pytest.raises(
                ValueError, match=r"may have 10,000 characters; 'z+\.\.\. has 10,001"
            ):
                edit()
    journal = Journal(path)
    row = Row(facts=encode({"classes": [LONG + "z"]}))
    with journal.locked():
        journal.append(journal.restart(None, read_checksum(path)), "teach", [row], None)
    journal.close()
    with pytest.raises(ModelFileError):
        load(path)


def test_chunks_of_labels_are_joined_as_objects_where_one_is_long():
    chunks = [np.array(["a"] * 10_000), np.array(["z" * 10_000])]
    n_bytes, joined = measure(lambda: join_labels(chunks))
    assert n_bytes < MAX_BYTES
    assert joined.tolist() == [*["a"] * 10_000, "z" * 10_000]
