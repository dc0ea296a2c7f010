"""The documents that a model keeps: against lists of plain tuples, however changes come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
                kept[label] = [*kept[label], DOCUMENTS[document]][-per_class:]
            elif DOCUMENTS[document] in kept[label]:
                last = len(kept[label]) - 1 - kept[label][::-1].index(DOCUMENTS[document])
                del kept[label][last]
    return kept


@examples(200)
@given(CHANGES, st.integers(1, 3), st.integers(0, 8), st.booleans())
def test_what_is_kept_is_what_a_list_for_each_class_keeps(changes, per_class, settled, split):
    memory = empty(per_class)
    for i, (direction, pairs) in enumerate(changes):
        batches = [[pair] for pair in pairs] if split else [pairs]
        for batch in batches:
            documents = counts_of([DOCUMENTS[document] for document, _ in batch])
            labels = np.array([label for _, label in batch], "U1")
            memory = memory.record(documents, labels, direction)
        if i == settled:  # when the segments are merged must not matter
            memory = memory.settle(CLASSES)
    memory = memory.settle(CLASSES)
    assert as_lists(memory) == apply_plainly(changes, per_class)
    assert memory.n_changed == sum(len(pairs) for _, pairs in changes)
    assert not memory.pending


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
    moved = memory.move_classes(np.array([1, 1, -1]))  # a into b, and c is gone
    assert as_lists(moved) == {"a": [], "b": [DOCUMENTS[2], DOCUMENTS[4]], "c": [], "d": []}


def test_the_caller_may_change_what_was_added():
    counts = counts_of(DOCUMENTS[:1])
    memory = empty(2).record(counts, np.array(["a"]), 1)
    counts.data[:] = 9
    assert as_lists(memory.settle(CLASSES))["a"] == [DOCUMENTS[0]]
