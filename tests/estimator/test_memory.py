"""How much memory a fit takes, as far as it can be counted: arrays, not the allocator's slack."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongTailClassifier
from longtail.model.statistics import ClassStatistics
from longtail.sparse import LARGEST_NARROW_COUNT, CountMatrix


def make_documents(n_documents, n_classes, n_terms=4000, length=60, seed=0):
    """Documents of which a third of the terms tell the class; few classes have most of them."""
    rng = np.random.default_rng(seed)
    y = (n_classes * rng.random(n_documents) ** 3).astype(int)
    y[:n_classes] = np.arange(n_classes)
    own = (37 * y[:, None] + rng.integers(0, 40, (n_documents, length // 3))) % n_terms
    common = (n_terms * rng.random((n_documents, length - length // 3)) ** 2).astype(int)
    columns = np.hstack([own, common]).astype(np.int32)
    indptr = np.arange(0, columns.size + 1, length, dtype=np.int32)
    X = csr_array((np.ones(columns.size), columns.ravel(), indptr), shape=(n_documents, n_terms))
    X.sum_duplicates()
    return X, y


def size_of(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


@pytest.mark.slow
def test_peak_of_fit_is_three_times_the_input_and_the_model(tmp_path):
    LongTailClassifier(random_state=0).fit(*make_documents(500, 50))  # what is loaded once
    X, y = make_documents(20_000, 500)
    classifier = LongTailClassifier(random_state=0)
    tracemalloc.start()
    try:
        classifier.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    classifier.save(tmp_path / "model")
    assert peak < 3 * size_of(X) + (tmp_path / "model").stat().st_size


@pytest.mark.parametrize(
    ("counts", "dtype"),
    [
        ([1, 2, 3], np.float32),
        ([1.0, LARGEST_NARROW_COUNT, 3.0], np.float32),
        ([1.0, LARGEST_NARROW_COUNT + 1, 3.0], np.float64),
        ([1, LARGEST_NARROW_COUNT + 1, 3], np.float64),
        ([0.5, 1.0, 2.0], np.float64),
        ([True, True, True], np.float32),
    ],
)
def test_counts_are_held_in_the_smallest_exact_type(counts, dtype):
    X = csr_array(np.diag(np.array(counts)))
    rows = CountMatrix.from_matrix(X)
    assert rows.data.dtype == dtype
    assert rows.data.tolist() == [float(count) for count in counts]


def test_narrow_counts_sum_to_the_same_bits():
    X, y = make_documents(300, 20)
    X.data = np.random.default_rng(1).integers(1, 9, len(X.data)).astype(float)
    rows = CountMatrix.from_matrix(X)
    assert rows.data.dtype == np.float32
    wide = CountMatrix(rows.indptr, rows.indices, rows.data.astype(np.float64), rows.n_terms)
    narrow, whole = (
        ClassStatistics.from_counts(each, y, 20, sublinear=True) for each in (rows, wide)
    )
    assert narrow == whole


def test_documents_that_follow_each_other_are_not_copied():
    X, _ = make_documents(100, 20)
    rows = CountMatrix.from_matrix(X)
    part, taken = rows.slice(slice(30, 50)), rows.gather(np.arange(30, 50))
    assert part.n_documents == 20
    assert np.shares_memory(part.indices, rows.indices)
    assert np.array_equal(part.indices, taken.indices)
    assert np.array_equal(part.indptr, taken.indptr)
