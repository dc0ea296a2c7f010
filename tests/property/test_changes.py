"""Properties of the change log and of teaching, for any records and any order of operations."""

import shutil
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import LongTailClassifier, ModelFileError, Teacher, load
from longtail.model.statistics import ClassStatistics
from longtail.store import write_model
from longtail.store.changes import mark_undone
from longtail.store.container import read_checksum
from longtail.store.journal import Journal, journal_path, read_journal
from tests.conftest import as_row, examples

labels = st.one_of(st.text(max_size=5), st.integers(-(2**60), 2**60), st.booleans())
documents = st.lists(st.tuples(st.text(max_size=8), labels), max_size=4).map(
    lambda pairs: {"documents": [text for text, _ in pairs], "labels": [y for _, y in pairs]}
)
records = st.one_of(
    st.tuples(st.just("teach"), documents),
    st.tuples(st.just("forget"), documents),
    st.tuples(st.just("rename"), st.fixed_dictionaries({"old": labels, "new": labels})),
    st.tuples(st.just("remove"), st.fixed_dictionaries({"label": labels})),
)
logs = st.lists(st.tuples(records, st.one_of(st.none(), st.text(max_size=4))), max_size=5)


def write(folder, content):
    """Append changes to the journal of a model; return its path and what it holds."""
    model = Path(folder) / "model"
    write_model(model, "test", {}, {"a": np.arange(3)})
    journal = Journal(model)
    with journal.locked():
        header = journal.restart(None, read_checksum(model))
        journal.append(header, "remove", [as_row("remove", {"label": 1})], None)
    for (action, fields), by in content:
        with journal.locked():
            journal.append(journal.header(), action, [as_row(action, fields)], by)
    journal.close()
    return journal.path, read_journal(journal.path)


@given(logs)
@examples(30)
def test_any_records_come_back(content):
    with tempfile.TemporaryDirectory() as folder:
        _, contents = write(folder, content)
    assert [((c.action, c.content), c.by) for c in contents.changes[1:]] == content


@given(logs, st.data())
@examples(60)
def test_any_flipped_bit_is_noticed_or_harmless(content, data):
    with tempfile.TemporaryDirectory() as folder:
        path, expected = write(folder, content)
        bits = bytearray(path.read_bytes())
        where = data.draw(st.integers(0, len(bits) - 1))
        bits[where] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(bits)
        try:
            assert read_journal(path) == expected  # a page has bytes that hold nothing
        except ModelFileError:
            return


@given(st.data())
@examples(60)
def test_any_flipped_bit_of_a_record_is_noticed(data):
    with tempfile.TemporaryDirectory() as folder:
        path, _ = write(folder, [(("rename", {"old": "aardvark", "new": "zebra"}), "somebody")])
        bits = bytearray(path.read_bytes())
        text = data.draw(st.sampled_from([b"aardvark", b"zebra", b"somebody", b"rename"]))
        where = bits.index(text) + data.draw(st.integers(0, len(text) - 1))
        bits[where] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(bits)
        with pytest.raises(ModelFileError):
            read_journal(path)


@given(logs, st.data())
@examples(60)
def test_any_overwritten_bytes_give_the_journal_or_the_one_error(content, data):
    with tempfile.TemporaryDirectory() as folder:
        path, expected = write(folder, content)
        whole = bytearray(path.read_bytes())
        where = data.draw(st.integers(0, len(whole) - 1))
        garbage = data.draw(st.binary(min_size=1, max_size=64))
        whole[where : where + len(garbage)] = garbage
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                contents = read_journal(path)
            except ModelFileError:
                return
    assert contents in (None, expected)


# Teaching, against plain counts of plain documents

# Each document has a term of its own, so that sums show when one is missing.
POOL = [(i % 3, (i + 1) % 2, i % 2, *(int(i == j) for j in range(8))) for i in range(8)]
START = [(POOL[0], "a"), (POOL[1], "a"), (POOL[2], "b"), (POOL[3], "b"), (POOL[4], "c")]
rows = st.sampled_from(POOL)
names = st.sampled_from(["a", "b", "c", "d", "e"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("teach"), st.lists(st.tuples(rows, names), min_size=1, max_size=3)),
        st.tuples(st.just("forget"), rows, names),
        st.tuples(st.just("forget some"), st.integers(0, 9)),
        st.tuples(st.just("rename"), names, names),
        st.tuples(st.just("merge"), names, names),
        st.tuples(st.just("remove"), names),
        st.tuples(st.just("undo"), st.integers(1, 2)),
        st.tuples(st.just("undo one"), st.integers(1, 8)),
        st.just(("compact",)),
        st.just(("reopen",)),
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "model"
    X, y = zip(*START, strict=True)
    LongTailClassifier(random_state=0).fit(np.array(X), list(y)).save(path)
    return path


class Oracle:
    """Every document of every class, kept as it is; undo starts again from the beginning.

    How many documents have each term is counted beside it, because removing a class leaves that
    count as it is; never more than there are documents are shown.
    """

    def __init__(self):
        self.base = (Counter(START), self.count(Counter(START)))
        self.log = []  # number, action, arguments

    def state(self, undoing=()):
        """Return documents and term counts after what is in effect; None if a change fails."""
        state = self.base
        taken = set(undoing)
        for number, action, *arguments in reversed(self.log):
            if action == "undo" and number not in taken:
                taken.update(arguments[0])
        for number, action, *arguments in self.log:
            if number not in taken and action != "undo":
                state = self.after(state, action, *arguments)
                if state is None:
                    return None
        return state

    @staticmethod
    def count(bag):
        """Count the documents that have each term."""
        return sum(n * (np.array(row) > 0) for (row, _), n in bag.items())

    @classmethod
    def after(cls, state, action, *arguments):
        """Return the state after one change, or None where it is refused."""
        bag, counts = state
        if action in ("teach", "forget"):
            given = Counter(arguments[0])
            if action == "teach":
                return bag + given, counts + cls.count(given)
            if given - bag or given == bag:
                return None
            return bag - given, counts - cls.count(given)
        present, first, last = {name for _, name in bag}, arguments[0], arguments[-1]
        if action == "remove":
            rest = Counter({key: n for key, n in bag.items() if key[1] != first})
            return (rest, counts) if first in present and rest else None
        if first not in present or (last in present) == (action == "rename") or first == last:
            return None
        moved = Counter()
        for (row, name), n in bag.items():
            moved[row, last if name == first else name] += n
        return moved, counts


def statistics_of(state):
    """Sum the documents that the oracle has."""
    pairs = sorted(state[0].elements())
    classes = sorted({name for _, name in pairs})
    y = np.array([classes.index(name) for _, name in pairs])
    X = np.array([row for row, _ in pairs])
    sums = ClassStatistics.from_counts(X, y, len(classes), sublinear=True)
    return classes, replace(sums, document_frequencies=np.minimum(state[1], len(pairs)))


def perform(teacher, oracle, path, step):
    """Do one step to both; what the oracle refuses must be refused."""
    action, *arguments = step
    if action == "reopen":
        return Teacher(path)
    if action == "compact":
        if oracle.log:
            oracle.base, oracle.log = oracle.state(), []
        teacher.compact()
        return teacher
    state = oracle.state()
    if action == "forget":
        arguments = [[tuple(arguments)]]
    elif action == "forget some":  # one that is there
        kept = sorted(state[0].elements())
        action, arguments = "forget", [[kept[arguments[0] % len(kept)]]]
    if action in ("teach", "forget"):
        X, y = zip(*arguments[0], strict=True)
        call, given = getattr(teacher, action), (np.array(X), list(y))
    elif action in ("undo", "undo one"):
        marked = mark_undone(teacher.changes())
        done = [c.number for c in marked if c.in_effect]
        changes = [c.number for c in marked if c.in_effect and c.action != "undo"]
        if action == "undo":
            chosen = changes[-arguments[0] :] if len(changes) >= arguments[0] else None
            call, given = teacher.undo, (arguments[0],)
        else:
            number = arguments[0] + (oracle.log[0][0] - 1 if oracle.log else 0)
            chosen = [number] if number in done else None
            call, given = (lambda number: teacher.undo(numbers=[number])), (number,)
        action, arguments = "undo", [chosen]
    else:
        method = "remove_class" if action == "remove" else f"{action}_class"
        method = "merge_classes" if action == "merge" else method
        call, given = getattr(teacher, method), arguments
    if action == "undo":
        possible = chosen is not None and oracle.state(chosen) is not None
    else:
        possible = Oracle.after(state, action, *arguments) is not None
    if not possible:
        with pytest.raises(ValueError, match=r"."):
            call(*given)
        return teacher
    number = call(*given)
    oracle.log.append((number, action, *arguments))
    return teacher


@given(steps)
@examples(40)
def test_teaching_is_summing(fitted, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(fitted, Path(folder) / "model"))
        teacher, oracle = Teacher(path), Oracle()
        for step in steps:
            teacher = perform(teacher, oracle, path, step)
        classes, expected = statistics_of(oracle.state())
        reopened = load(path)
        for model in (teacher.model, reopened):
            assert model.classes_.tolist() == classes
            assert model.statistics_ == expected
        X = np.array([row for row, _ in START])
        one, other = teacher.model.predict_topk(X, 3), reopened.predict_topk(X, 3)
        assert np.array_equal(one.classes, other.classes)
        assert np.array_equal(one.scores, other.scores)
        assert journal_path(path).exists() or not oracle.log
