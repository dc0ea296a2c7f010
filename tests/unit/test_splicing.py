"""Rows of CSR matrices put together as another one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.sparse import offsets_from_lengths
from longtail.splicing import RowSplice
from tests.conftest import examples


@st.composite
def matrices_and_sources(draw):
    """Return the rows of some matrices as lists, and which of them stand where."""
    rows = st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6)
    matrices = draw(st.lists(rows, min_size=1, max_size=3))
    n_rows = draw(st.integers(0, 8))
    sources = [
        draw(st.lists(st.integers(-1, len(matrix) - 1), min_size=n_rows, max_size=n_rows))
        for matrix in matrices
    ]
    return matrices, sources


@examples(300)
@given(matrices_and_sources())
def test_a_splice_is_what_lists_say(problem):
    matrices, sources = problem
    expected = []
    for of_row in zip(*sources, strict=True):
        row: list[int] = []
        for matrix, source in zip(matrices, of_row, strict=True):
            row = matrix[source] if source >= 0 else row  # the last one counts
        expected.append(row)
    entries = [np.array([e for row in matrix for e in row], np.int64) for matrix in matrices]
    indptrs = [offsets_from_lengths(np.array([len(r) for r in m], np.int64)) for m in matrices]
    splice = RowSplice.of(indptrs, *(np.array(rows, np.int64) for rows in sources))
    spliced = splice.entries(*entries)
    bounds = zip(splice.indptr[:-1], splice.indptr[1:], strict=True)
    assert [spliced[start:end].tolist() for start, end in bounds] == expected
    lengths = splice.rows(*(np.diff(indptr) for indptr in indptrs))
    assert lengths.tolist() == [len(row) for row in expected]


def test_rows_that_follow_each_other_are_one_run():
    indptr = np.array([0, 2, 2, 5, 9])
    splice = RowSplice.of([indptr], np.array([0, 1, 2, 3]))
    assert splice.runs == [(0, 0, 9)]
    splice = RowSplice.of([indptr, indptr], np.array([0, -1, 2, 3]), np.array([-1, 3, -1, -1]))
    assert splice.runs == [(0, 0, 2), (1, 5, 9), (0, 2, 9)]
