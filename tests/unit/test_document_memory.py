"""The documents that a model keeps: against lists of plain tuples, however changes come."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.model.entry import Changes, Entry
from longtail.sparse import CountMatrix
from longtail.training.memory import DocumentMemory
from tests.conftest import examples

CLASSES = np.array(["a", "b", "c", "d"])
DOCUMENTS = [
    ((0, 1), (1.0, 2.0)),
    ((0, 1), (1.0, 3.0)),
    ((2,), (1.0,)),
    ((), ()),
    ((0, 2), (0.5, 1.0)),
]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, -1]),
        st.lists(st.tuples(st.sampled_from(range(5)), st.sampled_from("abcd")), max_size=4),
    ),
    max_size=8,
)


def counts_of(documents):
    lengths = [len(terms) for terms, _ in documents]
    return CountMatrix(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([t for terms, _ in documents for t in terms], np.int32),
        np.array([n for _, counts in documents for n in counts], np.float64),
        3,
    )


def empty(per_class):
    return DocumentMemory.of(counts_of([]), np.zeros(0, np.int64), per_class)


def as_lists(memory):
    """The documents of each class, oldest first."""
    kept = {label: [] for label in CLASSES.tolist()}
    for row, class_id in enumerate(memory.class_ids.tolist()):
        entries = slice(memory.indptr[row], memory.indptr[row + 1])
        document = tuple(memory.indices[entries].tolist()), tuple(memory.data[entries].tolist())
        kept[CLASSES[class_id].item()].append(document)
    return kept


def apply_plainly(changes, per_class):
    kept = {label: [] for label in CLASSES.tolist()}
    for direction, pairs in changes:
        for document, label in pairs:
            if direction > 0:
                kept[label].append(DOCUMENTS[document])
    for direction, pairs in changes:
        for document, label in pairs:
            if direction < 0 and DOCUMENTS[document] in kept[label]:
                last = len(kept[label]) - 1 - kept[label][::-1].index(DOCUMENTS[document])
                del kept[label][last]
    return {label: documents[-per_class:] for label, documents in kept.items()}


def as_entry(number, direction, pairs):
    class_ids = np.array([CLASSES.tolist().index(label) for _, label in pairs], np.int64)
    counts = counts_of([DOCUMENTS[document] for document, _ in pairs])
    return Entry(number, "teach" if direction > 0 else "forget", class_ids, counts)


OVERLAY = SimpleNamespace(outer_ids=np.arange(4), row_ids=np.arange(4))


@examples(200)
@given(CHANGES, st.integers(1, 3), st.booleans(), st.data())
def test_what_is_kept_follows_from_the_changes_that_are_live(changes, per_class, split, data):
    memory = empty(per_class)
    parts = [(d, [pair]) for d, pairs in changes for pair in pairs] if split else changes
    entries = [as_entry(number, *part) for number, part in enumerate(parts, 1)]
    for entry in entries:
        memory = memory.take_in(Changes.of(entry))
    undone = data.draw(st.sets(st.sampled_from(entries)) if entries else st.just(set()))
    brought_back = data.draw(st.sets(st.sampled_from(entries)) if entries else st.just(set()))
    for entry in undone:
        memory = memory.take_in(Changes(minus=[entry]))
    for entry in undone & brought_back:
        memory = memory.take_in(Changes(plus=[entry]))
    live = [p for e, p in zip(entries, parts, strict=True) if e not in undone - brought_back]
    settled = memory.settle(OVERLAY)
    assert as_lists(settled) == apply_plainly(live, per_class)
    assert settled.n_changed == sum(len(pairs) for _, pairs in live)
    assert not settled.pending


@pytest.mark.parametrize("per_class", [1, 2, 5])
def test_a_fit_keeps_the_last_documents_of_each_class(per_class):
    class_ids = np.array([0, 1, 0, 0, 1])
    memory = DocumentMemory.of(counts_of(DOCUMENTS), class_ids, per_class)
    changes = [(1, [(i, CLASSES[c].item()) for i, c in enumerate(class_ids.tolist())])]
    assert as_lists(memory) == apply_plainly(changes, per_class)
    assert memory.documents(3).data.dtype == np.float64  # 0.5 is no whole count
    assert memory.n_changed == 0


def test_documents_follow_their_classes():
    memory = DocumentMemory.of(counts_of(DOCUMENTS), np.array([0, 1, 0, 2, 1]), 2)
    overlay = SimpleNamespace(outer_ids=np.array([1, 1, -1]), row_ids=np.arange(3))
    moved = memory.settle(overlay)  # a into b, and c is gone
    assert as_lists(moved) == {"a": [], "b": [DOCUMENTS[2], DOCUMENTS[4]], "c": [], "d": []}


def test_the_caller_may_change_what_was_added():
    counts = counts_of(DOCUMENTS[:1])
    memory = empty(2).take_in(Changes.of(Entry(1, "teach", np.zeros(1, np.int64), counts)))
    counts.data[:] = 9
    assert as_lists(memory.settle(OVERLAY))["a"] == [DOCUMENTS[0]]
