"""Tables of rows: gathered, sliced, spliced and stacked, against lists of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import sparse
from longtail.sparse import (
    RowTable,
    join_arrays,
    offsets_from_lengths,
    splice_rows,
    stack_rows,
)


@dataclass(frozen=True, eq=False)
class Shelf(RowTable):
    """Rows of numbers, with a second number for each, a name for each row, and a colour."""

    ENTRIES: ClassVar = ("values", "squares", "absent")
    ROWS: ClassVar = ("lengths",)

    indptr: np.ndarray
    values: np.ndarray
    squares: np.ndarray
    lengths: np.ndarray
    colour: str
    absent: np.ndarray | None = None

    @classmethod
    def of(cls, rows, colour="red"):
        lengths = np.array([len(row) for row in rows], np.int64)
        values = np.array([value for row in rows for value in row], np.int64)
        return cls(offsets_from_lengths(lengths), values, values**2, lengths, colour)

    def lists(self):
        """Return the rows as lists, once the arrays were seen to agree."""
        assert self.indptr[0] == 0
        assert self.absent is None
        assert np.array_equal(self.squares, self.values**2)
        assert self.lengths.tolist() == np.diff(self.indptr).tolist()
        bounds = zip(self.indptr[:-1], self.indptr[1:], strict=True)
        return [self.values[start:end].tolist() for start, end in bounds]


ROWS = st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6)


@st.composite
def tables_and_sources(draw):
    """Return the rows of some tables, and which of them stand where."""
    tables = draw(st.lists(ROWS, min_size=1, max_size=3))
    n_rows = draw(st.integers(0, 8))
    sources = [
        draw(st.lists(st.integers(-1, len(table) - 1), min_size=n_rows, max_size=n_rows))
        for table in tables
    ]
    return tables, sources


@pytest.mark.parametrize("entries_per_run", [0, 1 << 20])
@given(problem=tables_and_sources())
def test_a_splice_is_what_lists_say(entries_per_run, problem):
    tables, sources = problem
    expected = []
    for of_row in zip(*sources, strict=True):
        row: list[int] = []
        for table, source in zip(tables, of_row, strict=True):
            row = table[source] if source >= 0 else row  # the last one counts
        expected.append(row)
    shelves = [Shelf.of(table, str(i)) for i, table in enumerate(tables)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "ENTRIES_PER_RUN", entries_per_run)
        spliced = splice_rows(shelves, *(np.array(rows, np.int64) for rows in sources))
    assert spliced.lists() == expected
    assert spliced.colour == str(len(tables) - 1)


def test_arrays_that_are_known_are_not_put_together_again():
    known = np.array([5, 6])
    spliced = splice_rows([Shelf.of([[5], [6]])], np.array([0, 1]), values=known)
    assert spliced.values is known


def test_rows_that_follow_each_other_are_not_copied():
    table = Shelf.of([[1, 2], [], [3], [4, 5]])
    taken = table.gather(np.array([-1, 1, 2, -1, 3]))
    assert taken.lists() == [[], [], [3], [], [4, 5]]
    assert np.shares_memory(taken.values, table.values)
    assert not np.shares_memory(table.gather(np.array([0, 3])).values, table.values)


@given(rows=ROWS, first=st.integers(0, 6), last=st.integers(0, 6))
def test_a_slice_is_a_view(rows, first, last):
    table = Shelf.of(rows)
    taken = table.slice(slice(first, max(first, last)))
    assert taken.lists() == rows[first : max(first, last)]
    assert not len(taken.values) or np.shares_memory(taken.values, table.values)


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_tables_are_stacked(tables):
    stacked = stack_rows([Shelf.of(table) for table in tables])
    assert stacked.lists() == [row for table in tables for row in table]


@pytest.mark.parametrize("n_bytes", [1, 20, 1 << 26])
def test_arrays_are_joined_in_their_order(n_bytes, monkeypatch):
    monkeypatch.setattr(sparse, "FREED_TOGETHER", n_bytes)
    arrays = [np.arange(n, dtype=np.int32) + n for n in (3, 0, 5, 1)]
    expected = np.concatenate(arrays)
    joined = join_arrays(arrays)
    assert joined.dtype == np.int32
    assert joined.tolist() == expected.tolist()
    assert arrays == []
