"""The documents that a model keeps: against lists of plain tuples, however changes come."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.model.entry import Changes, Entry
from longtail.sparse import CountMatrix
from longtail.training.memory import TERMS_PER_PAIR, DocumentMemory
from tests.conftest import examples

CLASSES = np.array(["a", "b", "c", "d"])
DOCUMENTS = [
    ((0, 1), (1.0, 2.0)),
    ((0, 1), (1.0, 3.0)),
    ((2,), (1.0,)),
    ((), ()),
    ((0, 2), (0.5, 1.0)),
    ((65_534, 65_535, 65_536, 131_070, 199_999), (1.0, 255.0, 256.0, 3.0, 1.0)),
]
N_TERMS = 200_000
CHANGES = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, -1]),
        st.lists(st.tuples(st.sampled_from(range(6)), st.sampled_from("abcd")), max_size=4),
    ),
    max_size=8,
)


def counts_of(documents):
    lengths = [len(terms) for terms, _ in documents]
    return CountMatrix(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([t for terms, _ in documents for t in terms], np.int32),
        np.array([n for _, counts in documents for n in counts], np.float64),
        N_TERMS,
    )


def empty(per_class):
    return DocumentMemory.of(counts_of([]), np.zeros(0, np.int64), per_class)


def as_lists(memory):
    """The documents of each class, oldest first."""
    counts = memory.documents(N_TERMS)
    documents = [
        (tuple(counts.indices[a:b].tolist()), tuple(counts.data[a:b].tolist()))
        for a, b in pairwise(counts.indptr.tolist())
    ]
    kept = {label: [] for label in CLASSES.tolist()}
    for row, class_id in enumerate(memory.class_ids.tolist()):
        document = documents[row]
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
    settled = memory.settle(OVERLAY, N_TERMS)
    assert as_lists(settled) == apply_plainly(live, per_class)
    assert settled.n_changed == sum(len(pairs) for _, pairs in live)
    assert not settled.pending


@pytest.mark.parametrize("per_class", [1, 2, 5])
def test_a_fit_keeps_the_last_documents_of_each_class(per_class):
    class_ids = np.array([0, 1, 0, 0, 1])
    memory = DocumentMemory.of(counts_of(DOCUMENTS[:5]), class_ids, per_class)
    changes = [(1, [(i, CLASSES[c].item()) for i, c in enumerate(class_ids.tolist())])]
    assert as_lists(memory) == apply_plainly(changes, per_class)
    assert memory.documents(N_TERMS).data.dtype == np.float64  # 0.5 is no whole count
    assert memory.n_changed == 0


def test_documents_follow_their_classes():
    memory = DocumentMemory.of(counts_of(DOCUMENTS[:5]), np.array([0, 1, 0, 2, 1]), 2)
    overlay = SimpleNamespace(outer_ids=np.array([1, 1, -1]), row_ids=np.arange(3))
    moved = memory.settle(overlay, N_TERMS)  # a into b, and c is gone
    assert as_lists(moved) == {"a": [], "b": [DOCUMENTS[2], DOCUMENTS[4]], "c": [], "d": []}


def test_the_caller_may_change_what_was_added():
    counts = counts_of(DOCUMENTS[:1])
    memory = empty(2).take_in(Changes.of(Entry(1, "teach", np.zeros(1, np.int64), counts)))
    counts.data[:] = 9
    assert as_lists(memory.settle(OVERLAY, N_TERMS))["a"] == [DOCUMENTS[0]]


@examples(100)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=12), st.integers(0, 20))
def test_all_classes_keep_the_same_number_as_many_as_fit(given, n_pairs):
    documents = [(tuple(range(length)), (1.0,) * length) for length, _ in given]
    class_ids = np.array([class_id for _, class_id in given], np.int64)
    entry = Entry(1, "teach", class_ids, counts_of(documents))
    memory = DocumentMemory.empty().take_in(Changes.of(entry))
    kept = {}
    for per_class in range(len(given) + 1):
        last = {
            label: [d for d, c in zip(documents, class_ids, strict=True) if c == i][-per_class:]
            for i, label in enumerate(CLASSES.tolist())
        }
        last = last if per_class else {label: [] for label in last}
        if (
            sum(len(terms) for rows in last.values() for terms, _ in rows)
            <= TERMS_PER_PAIR * n_pairs
        ):
            kept = last
    assert as_lists(memory.settle(OVERLAY, n_pairs)) == kept


def test_a_term_of_a_text_takes_three_bytes():
    memory = DocumentMemory.of(counts_of(DOCUMENTS[:3]), np.zeros(3, np.int64), 9)
    assert memory.gaps.nbytes + memory.data.nbytes == 3 * 5


def test_documents_that_count_as_fractions_are_not_kept():
    entry = Entry(1, "teach", np.zeros(1, np.int64), counts_of(DOCUMENTS[:1]), np.array([0.5]))
    memory = DocumentMemory.empty().take_in(Changes.of(entry))
    assert memory.settle(OVERLAY, 9).n_documents == 0
