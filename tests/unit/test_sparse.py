"""Count matrices: a damaged one is an error, whatever scipy lets through."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import DoubleSamplingClassifier, LongTailClassifier
from longtail.sparse import (
    CountMatrix,
    append,
    append_constant,
    copy_with_capacity,
    gather_rows,
)
from tests.conftest import make_problem

WRAPPED = np.array([0, 2**63 - 1, -(2**63) + 5, 4, 4, 6], np.int64)  # differences overflow
DAMAGE = {
    "column too large": {"indices": lambda old: np.where(np.arange(len(old)) == 3, 10**6, old)},
    "column negative": {"indices": lambda old: np.where(np.arange(len(old)) == 3, -5, old)},
    "offsets fall": {"indptr": lambda old: old[::-1].copy()},
    "offsets wrap": {"indptr": lambda old: np.resize(WRAPPED, len(old))},
    "offsets beyond the end": {"indptr": lambda old: old * 1000},
    "first offset": {"indptr": lambda old: old + 1},
    "offsets too few": {"indptr": lambda old: old[:-1]},
    "data too short": {"data": lambda old: old[:-2]},
    "indices too short": {"indices": lambda old: old[:-2]},
}


def damaged(matrix, damage):
    for name, change in damage.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_matrix_is_refused(problem, kind, damage):
    with pytest.raises(ValueError, match=r"X is a damaged cs. matrix of shape .* Rebuild"):
        CountMatrix.from_matrix(damaged(kind(problem.X), damage))


@pytest.mark.parametrize("estimator", [LongTailClassifier, DoubleSamplingClassifier])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_estimators_refuse_a_damaged_matrix(problem, estimator, kind):
    classifier = estimator(random_state=0).fit(problem.X, problem.y)
    for damage in DAMAGE.values():
        for method in (estimator(random_state=0).fit, classifier.partial_fit, classifier.forget):
            with pytest.raises(ValueError, match="damaged"):
                method(damaged(kind(problem.X), damage), problem.y)
        for method in (classifier.predict, classifier.predict_topk, classifier.explain):
            with pytest.raises(ValueError, match="damaged"):
                method(damaged(kind(problem.X), damage))


def test_other_formats_are_checked():
    coo = sp.coo_array(np.eye(3))
    coo.coords = (np.array([0, 1, 2]), np.array([0, 1, 9]))
    with pytest.raises(ValueError, match="damaged coo matrix"):
        CountMatrix.from_matrix(coo)
    lil = sp.lil_array(np.eye(3))
    lil.rows[1] = [7]
    with pytest.raises(ValueError, match="damaged csr matrix"):
        CountMatrix.from_matrix(lil)
    bsr = sp.bsr_array(np.eye(4), blocksize=(2, 2))
    assert CountMatrix.from_matrix(bsr).n_terms == 4
    bsr.indices[0] = 2
    with pytest.raises(ValueError, match="damaged bsr matrix"):
        CountMatrix.from_matrix(bsr)


def test_a_matrix_that_claims_to_be_canonical_is_not_believed():
    matrix = sp.csr_array(np.array([[1, 2, 0], [0, 1, 1]]))
    assert matrix.has_canonical_format
    matrix.indices[:2] = [1, 0]
    matrix.indices[2:] = [1, 1]
    rows = CountMatrix.from_matrix(matrix)
    assert rows.indices.tolist() == [0, 1, 1]
    assert rows.data.tolist() == [2, 1, 2]
    assert rows.indptr.tolist() == [0, 2, 3]


def test_entries_behind_the_last_row_do_not_count():
    X = make_problem().X
    matrix = sp.csr_array(X)
    matrix.indices = np.append(matrix.indices, 99).astype(matrix.indices.dtype)
    matrix.data = np.append(matrix.data, 7)
    rows, whole = CountMatrix.from_matrix(matrix), CountMatrix.from_matrix(X)
    assert np.array_equal(rows.indices, whole.indices)
    assert np.array_equal(rows.data, whole.data)


def test_appending_shares_memory_and_changes_nothing_before():
    first = append(np.arange(5), np.arange(5, 8))
    second = append(first, np.array([8, 9]))
    assert np.shares_memory(first, second)
    other = append(first, np.array([-1]))  # what follows `first` belongs to `second`
    assert not np.shares_memory(first, other)
    third = append_constant(second, 1000, 7)
    assert np.array_equal(first, np.arange(8))
    assert np.array_equal(second, np.arange(10))
    assert np.array_equal(other, [*range(8), -1])
    assert np.array_equal(third, [*range(10), *[7] * 1000])
    assert np.array_equal(append(second[:3], np.array([4])), [0, 1, 2, 4])
    assert np.array_equal(append(second[2:], np.array([4])), [*range(2, 10), 4])
    assert append_constant(first, 0) is first
    kept = copy_with_capacity(second)
    kept[0] = 99
    assert second[0] == 0
    assert np.shares_memory(kept, append(kept, np.array([1])))


def test_only_one_of_many_threads_appends_in_place():
    array = append(np.arange(3), np.arange(3, 6))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: append(array, np.full(2, i)), range(64)))
    for i, result in enumerate(results):
        assert result.tolist() == [0, 1, 2, 3, 4, 5, i, i]
    assert sum(np.shares_memory(array, result) for result in results) == 1


@pytest.mark.parametrize(
    "sources", [[0, 1, 2], [-1, 0, 1, -1, 2, -1], [2, -1, 0], [1, 1], [0, 1], [], [0, 1, 2, 0]]
)
def test_rows_are_gathered(sources):
    indptr, values = np.array([0, 2, 2, 5]), np.arange(10, 15)
    starts, entries = gather_rows(indptr, np.array(sources, np.int64))
    expected = [values[indptr[s] : indptr[s + 1]].tolist() if s >= 0 else [] for s in sources]
    gathered = values[entries]
    found = [gathered[a:b].tolist() for a, b in itertools.pairwise(starts.tolist())]
    assert found == expected


@pytest.mark.parametrize("indptr", [[0, -1], [0, 9], [1, 2], [0, 1, 2]])
def test_one_damaged_document_is_an_error(indptr):
    matrix = sp.csr_array(np.array([[1.0, 2.0, 0.0]]))
    matrix.indptr = np.array(indptr)
    with pytest.raises(ValueError, match="damaged csr matrix"):
        CountMatrix.from_matrix(matrix)


@pytest.mark.parametrize("indices", [[2, 0, 1], [0, 0, 1], [0, 1, 2], [], [1]])
def test_one_document_is_sorted_and_summed(indices):
    data = np.arange(1.0, len(indices) + 1)
    matrix = sp.csr_array((data, np.array(indices, int), [0, len(indices)]), shape=(1, 3))
    counts = CountMatrix.from_matrix(matrix)
    assert np.array_equal(counts.to_csr().toarray(), matrix.toarray())
    assert np.all(np.diff(counts.indices) > 0)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize(
    "row", [[0, 2, 0, 1, 3], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0.5, 0, 2, 0]]
)
def test_one_document_is_read_as_it_is_among_others(row, dtype):
    alone = CountMatrix.from_matrix(sp.csr_array(np.array([row]).astype(dtype)))
    batch = CountMatrix.from_matrix(sp.csr_array(np.array([row, row]).astype(dtype)))
    n = int(batch.indptr[1])
    for name in ("indices", "data"):
        one, other = getattr(alone, name), getattr(batch, name)[:n]
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert alone.indptr.tolist() == [0, n]
    assert alone.indptr.dtype == np.int64


@pytest.mark.parametrize("count", [np.nan, np.inf, -1.0])
def test_one_document_with_an_impossible_count_is_an_error(count):
    with pytest.raises(ValueError, match=r"NaN or infinity|Negative values"):
        CountMatrix.from_matrix(sp.csr_array(np.array([[1.0, count, 0.0]])))


def test_documents_that_have_any_of_some_terms():
    counts = CountMatrix.from_matrix(np.array([[1, 0, 0], [0, 2, 0], [0, 0, 0], [1, 1, 1]]))
    assert counts.have_any(np.array([True, False, True])).tolist() == [True, False, False, True]
    assert not counts.have_any(np.zeros(3, np.bool_)).any()
