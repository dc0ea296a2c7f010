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

    Classes are counted as they came; what they are called, and whether they are there, follows from
    the changes in effect. How many documents have each term is counted beside it, because removing
    a class leaves that count as it is; never more than there are documents are shown.
    """

    def __init__(self):
        self.begin(Counter(START), count_terms(Counter(START)))

    def begin(self, bag, counts):
        """Take documents by label as those of a file."""
        self.labels = sorted({label for _, label in bag})
        self.base = Counter()
        for (row, label), n in bag.items():
            self.base[row, self.labels.index(label)] += n
        n_documents = sum(bag.values())
        self.counts = np.minimum(counts, n_documents)
        self.log = []  # number, action, arguments with ids in place of labels

    def live(self, undoing=()):
        """Return the changes in effect, without those that undo."""
        taken = set(undoing)
        for number, action, *arguments in reversed(self.log):
            if action == "undo" and number not in taken:
                taken.update(arguments[0])
        return [change for change in self.log if change[0] not in taken and change[1] != "undo"]

    def label(self, k, live):
        renames = [
            arguments[1]
            for _, action, *arguments in live
            if (action, arguments[0]) == ("rename", k)
        ]
        return renames[-1] if renames else self.labels[k]

    def root(self, k, live):
        """Return what a class is a part of in the end; None where that leads nowhere."""
        into = {}
        for _, action, *arguments in live:
            if action == "merge":
                if arguments[0] in into:
                    return None
                into[arguments[0]] = arguments[1]
        for _ in self.labels:
            k = into.get(k, k)
        return None if k in into else k

    def state(self, live):
        """Return documents by label and term counts, or None if changes contradict each other."""
        bag, counts = Counter(self.base), self.counts
        for _, action, *arguments in live:
            if action in ("teach", "forget"):
                sign = 1 if action == "teach" else -1
                for key in arguments[0]:
                    bag[key] += sign
                counts = counts + sign * count_terms(Counter(arguments[0]))
        sums = Counter()
        for (row, k), n in bag.items():
            root = self.root(k, live)
            if root is None:
                return None
            sums[row, root] += n
        removed = {arguments[0] for _, action, *arguments in live if action == "remove"}
        if min(sums.values()) < 0:
            return None
        ids = {k for (_, k), n in sums.items() if n and k not in removed}
        labels = {k: self.label(k, live) for k in ids}
        if not ids or len(set(labels.values())) < len(ids):
            return None
        left = {(row, labels[k]): n for (row, k), n in sums.items() if n and k in ids}
        return Counter(left), counts

    def find(self, label, live):
        """Return the class that has a label, or would have it if it had documents."""
        removed = {arguments[0] for _, action, *arguments in live if action in ("remove", "merge")}
        named = [k for k in range(len(self.labels)) if k not in removed]
        named = [k for k in named if self.label(k, live) == label]
        there = {name for _, name in self.state(live)[0]}
        bag = [k for k in named if label in there and self.has_documents(k, live)]
        return (bag or named or [None])[0]

    def has_documents(self, k, live):
        bag = Counter(self.base)
        for _, action, *arguments in live:
            if action in ("teach", "forget"):
                for key in arguments[0]:
                    bag[key] += 1 if action == "teach" else -1
        sums = Counter()
        for (_, other), n in bag.items():
            sums[self.root(other, live)] += n
        return sums[k] > 0

    def resolve(self, action, arguments):
        """Return arguments with ids, or None where a class must be there and is not."""
        live = self.live()
        there = {name for _, name in self.state(live)[0]}
        if action == "teach":
            pairs = []
            for row, label in arguments[0]:
                k = self.find(label, live)
                if k is None:
                    self.labels.append(label)
                    k = len(self.labels) - 1
                pairs.append((row, k))
            return [pairs]
        if action == "forget":
            [[(row, label)]] = arguments
            return [[(row, self.find(label, live))]] if label in there else None
        first, last = arguments[0], arguments[-1]
        if first not in there or (action == "remove" and len(there) == 1):
            return None
        if action == "remove":
            return [self.find(first, live)]
        if (last in there) == (action == "rename") or first == last:
            return None
        return [self.find(first, live), last if action == "rename" else self.find(last, live)]


def count_terms(bag):
    """Count the documents that have each term."""
    return sum(n * (np.array(row) > 0) for (row, _), n in bag.items())


def statistics_of(state):
    """Sum the documents that the oracle has."""
    pairs = sorted(state[0].elements())
    classes = sorted({name for _, name in pairs})
    y = np.array([classes.index(name) for _, name in pairs])
    X = np.array([row for row, _ in pairs])
    sums = ClassStatistics.from_counts(X, y, len(classes), sublinear=True)
    return classes, replace(sums, document_frequencies=np.minimum(state[1], len(pairs)))


def perform(teacher, oracle, path, step):
    """Do one step to both; what the oracle refuses must be refused, and nothing else."""
    action, *arguments = step
    if action == "reopen":
        return Teacher(path)
    live = oracle.live()
    bag, counts = oracle.state(live)
    if action == "compact":
        if oracle.log:
            oracle.begin(bag, counts)
        teacher.compact()
        return teacher
    if action == "forget":
        arguments = [[tuple(arguments)]]
    elif action == "forget some":  # one that is there
        kept = sorted(bag.elements())
        action, arguments = "forget", [[kept[arguments[0] % len(kept)]]]
    n_classes = len(oracle.labels)
    if action in ("teach", "forget"):
        X, y = zip(*arguments[0], strict=True)
        call, given = getattr(teacher, action), (np.array(X), list(y))
        meant = oracle.resolve(action, arguments)
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
        action, meant = "undo", None if chosen is None else [chosen]
    else:
        method = "remove_class" if action == "remove" else f"{action}_class"
        method = "merge_classes" if action == "merge" else method
        call, given = getattr(teacher, method), arguments
        meant = oracle.resolve(action, arguments)
    if meant is not None:
        after = oracle.live(*meant) if action == "undo" else [*live, (None, action, *meant)]
    if meant is None or oracle.state(after) is None:
        del oracle.labels[n_classes:]
        with pytest.raises(ValueError, match=r"."):
            call(*given)
        return teacher
    oracle.log.append((call(*given), action, *meant))
    return teacher


def taught(label, row=1):
    return "teach", [(POOL[row], label)]


@given(steps)
@example([("merge", "a", "b"), taught("a"), ("undo one", 1), ("undo one", 2), ("undo one", 1)])
@example([("rename", "a", "d"), taught("a"), ("undo one", 1), ("remove", "a"), ("undo one", 1)])
@example([("remove", "b"), ("remove", "c"), ("compact",), taught("a")])
@example([("merge", "a", "b"), taught("b", 6), ("undo one", 1), ("undo one", 3)])
@example([("merge", "a", "b"), ("undo", 1), ("merge", "a", "c"), ("undo one", 2)])
@examples(40)
def test_teaching_is_summing(fitted, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(fitted, Path(folder) / "model"))
        teacher, oracle = Teacher(path), Oracle()
        for step in steps:
            teacher = perform(teacher, oracle, path, step)
        classes, expected = statistics_of(oracle.state(oracle.live()))
        reopened = load(path)
        for model in (teacher.model, reopened):
            assert model.classes_.tolist() == classes
            assert model.statistics_ == expected
        X = np.array([row for row, _ in START])
        one, other = teacher.model.predict_topk(X, 3), reopened.predict_topk(X, 3)
        assert np.array_equal(one.classes, other.classes)
        assert np.array_equal(one.scores, other.scores)
        assert journal_path(path).exists() or not oracle.log
