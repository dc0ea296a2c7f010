"""Properties of the change log and of teaching, for any records and any order of operations."""

import shutil
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import LongTailClassifier, ModelFileError, Teacher, load
from longtail.model.statistics import ClassStatistics
from longtail.store import write_model
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
        st.just(("refine",)),
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
    """Every document of every class, kept as it is: a file, and the set of changes in effect.

    Classes are numbered in the order in which they came, those of the file first; a class that has
    lost its documents is found again by its label, unless it was removed or merged. How many
    documents have each term is counted beside it, because removing a class leaves that count as it
    is; never more than there are documents are shown.
    """

    def __init__(self):
        bag = Counter(START)
        self.begin(bag, self.count(bag))

    def begin(self, bag, counts):
        """Take documents and counts as those of a file."""
        self.labels = sorted({name for _, name in bag})  # what each class was called first
        self.base = {(row, self.labels.index(name)): n for (row, name), n in bag.items()}
        self.counts = counts
        self.log = []  # number, action, arguments

    def live(self, undoing=()):
        """Return the changes in effect, undos among them."""
        taken = set(undoing)
        for number, action, *arguments in reversed(self.log):
            if action == "undo" and number not in taken:
                taken.update(arguments[0])
        return [change for change in self.log if change[0] not in taken]

    @staticmethod
    def count(bag):
        """Count the documents that have each term."""
        return sum((n * (np.array(row) > 0) for (row, _), n in bag.items()), np.zeros(11, int))

    def roots(self, live):
        """Return what each class is a part of in the end; None where there is no one such."""
        into = [change[2:] for change in live if change[1] == "merge"]
        if len(dict(into)) < len(into):
            return None
        roots = {}
        for k in range(len(self.labels)):
            root, seen = k, set()
            while root in dict(into):
                if root in seen:
                    return None
                seen.add(root)
                root = dict(into)[root]
            roots[k] = root
        return roots

    def state(self, live):
        """Return the documents, the term counts and the class of each label; None if refused."""
        roots = self.roots(live)
        removed = {change[2] for change in live if change[1] == "remove"}
        if roots is None or any(roots[k] != k for k in removed):
            return None
        own, counts, labels = Counter(), self.counts, dict(enumerate(self.labels))
        for (row, k), n in self.base.items():
            own[row, roots[k]] += n
        for _, action, *arguments in live:
            if action == "rename":
                labels[arguments[0]] = arguments[1]
            if action in ("teach", "forget"):
                sign = 1 if action == "teach" else -1
                for row, k in arguments[0]:
                    own[row, roots[k]] += sign
                    counts = counts + sign * (np.array(row) > 0)
        there = {k for (_, k), n in own.items() if n and k not in removed}
        ids = {labels[k]: k for k in there}
        if min(own.values()) < 0 or not there or len(ids) < len(there):
            return None
        bag = Counter({(row, labels[k]): n for (row, k), n in own.items() if k in there})
        return +bag, counts, ids

    def find(self, label):
        """Return the class that has a label, or would have it; a new one where none has."""
        live = self.live()
        ids, roots = self.state(live)[2], self.roots(live)
        removed = {change[2] for change in live if change[1] == "remove"}
        labels = dict(enumerate(self.labels))
        labels |= {change[2]: change[3] for change in live if change[1] == "rename"}
        hidden = [k for k, name in labels.items() if name == label and roots[k] == k]
        hidden = [k for k in hidden if k not in removed]
        if label not in ids and not hidden:
            self.labels.append(label)
            return len(self.labels) - 1
        return ids.get(label, min(hidden, default=None))


METHODS = {
    "rename": "rename_class",
    "merge": "merge_classes",
    "remove": "remove_class",
    "refine": "refine",
}


def statistics_of(state):
    """Sum the documents that the oracle has."""
    pairs = sorted(state[0].elements())
    classes = sorted({name for _, name in pairs})
    y = np.array([classes.index(name) for _, name in pairs])
    X = np.array([row for row, _ in pairs])
    sums = ClassStatistics.from_counts(X, y, len(classes), sublinear=True)
    return classes, replace(sums, document_frequencies=np.minimum(state[1], len(pairs)))


def perform(teacher, oracle, path, step):
    """Do one step to both; what the oracle refuses must be refused, and change nothing."""
    action, *arguments = step
    if action == "reopen":
        return Teacher(path)
    live = oracle.live()
    bag, counts, ids = oracle.state(live)
    if action == "compact":
        oracle.begin(bag, counts)
        teacher.compact()
        return teacher
    before, n_classes = teacher.model, len(oracle.labels)
    if action in ("undo", "undo one"):
        changes = [number for number, kind, *_ in live if kind != "undo"]
        if action == "undo":
            undone = changes[-arguments[0] :] if len(changes) >= arguments[0] else None
            call, given = teacher.undo, arguments
        else:
            number = arguments[0] + (oracle.log[0][0] - 1 if oracle.log else 0)
            undone = [number] if number in [change[0] for change in live] else None
            call, given = (lambda number: teacher.undo(numbers=[number])), [number]
        action, meant = "undo", [undone]
        possible = undone is not None and oracle.state(oracle.live(undone)) is not None
    else:
        if action == "forget":
            arguments = [[tuple(arguments)]]
        elif action == "forget some":  # one that is there
            kept = sorted(bag.elements())
            action, arguments = "forget", [[kept[arguments[0] % len(kept)]]]
        if action in ("teach", "forget"):
            X, y = zip(*arguments[0], strict=True)
            call, given = getattr(teacher, action), (np.array(X), list(y))
            find = oracle.find if action == "teach" else ids.get
            found = {name: find(name) for name in sorted(set(y))}
            meant = [[(row, found[name]) for row, name in arguments[0]]]
            possible = None not in found.values()
        else:
            call, given, last = getattr(teacher, METHODS[action]), arguments, arguments[-1:]
            meant = [ids.get(arguments[0]), *arguments[1:]] if arguments else []
            if action == "merge":
                meant = [ids.get(name) for name in arguments]
            possible = None not in meant and (action != "merge" or meant[0] != meant[1])
            possible &= action != "rename" or last[0] not in ids
        possible = possible and oracle.state([*live, (0, action, *meant)]) is not None
    if not possible:
        with pytest.raises(ValueError, match=r"."):
            call(*given)
        assert teacher.model is before
        del oracle.labels[n_classes:]
        return teacher
    number = call(*given)
    oracle.log.append((number, action, *meant))
    return teacher


def taught(label, row=1):
    return "teach", [(POOL[row], label)]


@given(steps)
@example([("remove", "a"), taught("a", 5), ("undo one", 1)])  # two would be called a
@example([taught("e", 5), ("remove", "e"), ("undo one", 1)])
@example([("remove", "a"), ("forget some", 0), ("compact",), taught("b", 5)])
@example([("remove", "a"), ("forget some", 0), ("refine",), taught("b", 5)])
@example([("merge", "a", "b"), ("undo", 1), ("remove", "a"), ("undo one", 2)])
@example([("remove", "a"), ("undo", 1), ("merge", "a", "b"), ("undo one", 2)])
@example([("merge", "a", "b"), taught("a"), ("undo one", 1), ("undo one", 2), ("undo one", 1)])
@example([("rename", "a", "d"), taught("a"), ("undo one", 1), ("remove", "a"), ("undo one", 1)])
@example([("remove", "b"), ("remove", "c"), ("compact",), taught("a")])
@example([("merge", "a", "b"), taught("b", 6), ("undo one", 1), ("undo one", 3)])
@example([("merge", "a", "b"), ("undo", 1), ("merge", "a", "c"), ("undo one", 2)])
@example([("rename", "c", "d"), ("refine",), ("rename", "a", "e"), ("undo one", 1), ("undo", 1)])
@example(
    [
        ("rename", "c", "d"),
        ("refine",),
        taught("e", 5),
        ("undo one", 1),
        ("forget", POOL[5], "e"),
        ("reopen",),
        ("undo", 1),
    ]
)
@examples(40)
def test_teaching_is_summing(fitted, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(fitted, Path(folder) / "model"))
        teacher, other, oracle = Teacher(path), Teacher(path), Oracle()
        for step in steps:
            teacher = perform(teacher, oracle, path, step)
            other.refresh()
            classes, expected = statistics_of(oracle.state(oracle.live()))
            for model in (teacher.model, other.model):
                assert model.classes_.tolist() == classes
                assert model.statistics_ == expected
        reopened = load(path)
        assert reopened.classes_.tolist() == teacher.model.classes_.tolist()
        assert reopened.statistics_ == teacher.model.statistics_
        X = np.array([row for row, _ in START])
        one, other = teacher.model.predict_topk(X, 3), reopened.predict_topk(X, 3)
        assert np.array_equal(one.classes, other.classes)
        assert np.array_equal(one.scores, other.scores)
        assert journal_path(path).exists() or not oracle.log
