"""A model opened through a snapshot has the bits of one that was replayed from its file."""

import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import Teacher, load
from longtail.store import open_model
from longtail.store.journal import journal_path
from longtail.store.snapshots import snapshot_path
from longtail.teaching import snapshots
from tests.conftest import examples
from tests.property.test_runs import FITTED, MODELS, TEXTS, capacity

texts = st.sampled_from(TEXTS)
names = st.sampled_from(["bear", "fox", "owl", "a newt", "axo"])
pairs = st.lists(st.tuples(texts, names), min_size=1, max_size=2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), pairs),
        st.tuples(st.just("teach"), pairs),
        st.tuples(st.just("forget"), pairs),
        st.tuples(st.just("forget"), st.sampled_from(FITTED).map(lambda pair: [pair])),
        st.tuples(st.just("recalibrate"), pairs),
        st.tuples(st.just("rename_class"), names, names),
        st.tuples(st.just("merge_classes"), names, names),
        st.tuples(st.just("remove_class"), names),
        st.tuples(st.just("set_class_text"), names, texts),
        st.tuples(st.just("undo"), st.integers(1, 2)),
        st.tuples(st.just("undo one"), st.integers(1, 9)),
        st.just(("refine",)),
        st.just(("snapshot",)),
        st.just(("snapshot",)),
        st.just(("reopen",)),
        st.just(("compact",)),
    ),
    min_size=2,
    max_size=12,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    for kind, model in MODELS.items():
        model.save(folder / kind)
    return folder


@contextmanager
def every(n_changes):
    """Let a snapshot be due after so many changes."""
    before = snapshots.MOST_CHANGES
    snapshots.MOST_CHANGES = n_changes
    yield
    snapshots.MOST_CHANGES = before


def perform(teacher, path, step):
    """Do one step; what is refused changes nothing."""
    action, *arguments = step
    if action == "reopen":
        teacher.close()
        return Teacher(path)
    if action == "snapshot":
        state = teacher._state
        if state.is_attached:
            assert snapshots.write_snapshot(path, state.model, state.header)
        return teacher
    if action in ("teach", "forget", "recalibrate"):
        arguments = [list(column) for column in zip(*arguments[0], strict=True)]
    options = {}
    if action == "undo one":
        action, arguments, options = "undo", [], {"numbers": arguments}
    with suppress(ValueError):
        getattr(teacher, action)(*arguments, **options)
    teacher._snapshots.wait()
    return teacher


def arrays_of(model, folder):
    """Return all that a file has of a model."""
    model.save(folder / "saved")
    file = open_model(folder / "saved")
    return file.arrays, file.parameters


def assert_same_bits(one, other, folder):
    mine, theirs = arrays_of(one, folder), arrays_of(other, folder)
    assert mine[1] == theirs[1]
    assert mine[0].keys() == theirs[0].keys()
    for name, array in mine[0].items():
        assert array.dtype == theirs[0][name].dtype, name
        assert array.tobytes() == theirs[0][name].tobytes(), name
    a, b = one.predict_proba_topk(TEXTS, k=3), other.predict_proba_topk(TEXTS, k=3)
    assert np.array_equal(a.classes, b.classes)
    assert a.scores.tobytes() == b.scores.tobytes()


def copy_without_snapshot(path, folder):
    """Copy a model and its closed journal, but no snapshot."""
    folder.mkdir()
    shutil.copy(journal_path(path), journal_path(folder / "model"))
    return Path(shutil.copy(path, folder / "model"))


@examples(60)
@example([("teach", [("newt eats", "a newt")]), ("snapshot",)], [("undo", 1)], "plain", 256, 99)
@example(
    [("teach", [("newt", "axo")]), ("snapshot",)], [("forget", [("newt", "axo")])], "plain", 1, 99
)
@example([("rename_class", "owl", "axo"), ("snapshot",)], [("undo one", 1)], "names", 1, 99)
@example([("teach", [("gills", "owl")])] * 3, [("refine",)], "memory", 3, 1)
@example([("forget", [FITTED[-1]]), ("snapshot",)], [("teach", [FITTED[-1]])], "register", 256, 99)
@given(
    steps, steps, st.sampled_from(list(MODELS)), st.sampled_from([1, 3, 256]),
    st.sampled_from([1, 3, 99]),
)  # fmt: skip
def test_through_a_snapshot_is_through_the_journal(files, first, then, kind, n_classes, n_changes):
    with tempfile.TemporaryDirectory() as name, capacity(n_classes), every(n_changes):
        folder = Path(name)
        path = Path(shutil.copy(files / kind, folder / "model"))
        teacher = Teacher(path)
        for step in first:
            teacher = perform(teacher, path, step)
        teacher.close()
        if not journal_path(path).exists():
            return
        bare = copy_without_snapshot(path, folder / "bare")
        assert_same_bits(load(path), load(bare), folder)
        assert_same_bits(teacher.model, load(bare), folder)
        teacher, replayed = Teacher(path), Teacher(bare)
        for step in then:
            teacher = perform(teacher, path, step)
            with every(10**9):
                replayed = perform(replayed, bare, step if step != ("snapshot",) else ("reopen",))
        assert not snapshot_path(bare).exists()
        assert_same_bits(teacher.model, replayed.model, folder)
        assert_same_bits(load(path), load(bare), folder)
        teacher.close()
        replayed.close()
