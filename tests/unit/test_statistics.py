from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.model.statistics import ClassStatistics
from longtail.sparse import CountMatrix, index_dtype
from tests.conftest import check_statistics, make_problem


def build(problem, rows=slice(None), **options):
    return ClassStatistics.from_counts(
        sp.csr_array(problem.X[rows]), problem.y[rows], problem.n_classes, **options
    )


def test_hand_computed():
    X = np.array([[3, 4, 0], [0, 2, 0], [0, 0, 5]])
    statistics = ClassStatistics.from_counts(X, [0, 0, 1], 2)
    assert statistics.counts.tolist() == [3, 6, 5]
    centroid = statistics.centroid_sums * 2.0**-38
    assert centroid == pytest.approx([0.6, 1.8, 1.0], abs=1e-11)
    assert statistics.class_sizes.tolist() == [2, 1]
    assert statistics.document_frequencies.tolist() == [1, 2, 1]
    assert statistics.class_lengths.tolist() == [9.0, 5.0]
    assert statistics.corpus.mean_class_length == 7.0
    assert statistics.corpus.rarity.tolist() == pytest.approx([14 / 3, 14 / 6, 14 / 5])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("n_chunks", [1, 2, 13])
def test_same_bits_for_any_chunks_and_threads(n_jobs, n_chunks):
    problem = make_problem(3, n_documents=90)
    whole = build(problem)
    order = np.random.default_rng(0).permutation(len(problem.y))
    total = ClassStatistics.empty(problem.n_classes, problem.X.shape[1])
    for chunk in np.array_split(order, n_chunks):
        total = total + build(problem, chunk, n_jobs=n_jobs)
    assert total == whole
    check_statistics(total)


def test_subtraction_undoes_addition(problem):
    first, second = build(problem, slice(0, 40)), build(problem, slice(40, None))
    assert (first + second) - second == first
    nothing = (first + second) - second - first
    assert nothing == ClassStatistics.empty(problem.n_classes, problem.X.shape[1])


def test_fractional_and_whole_counts_mix(problem):
    halves = ClassStatistics.from_counts(problem.X * 0.5, problem.y, problem.n_classes)
    whole = build(problem)
    assert halves.count_bits > whole.count_bits == 0
    assert halves + whole == whole + halves
    assert (whole + halves) - halves == whole
    assert (halves + whole).class_lengths == pytest.approx(whole.class_lengths * 1.5)


def test_subtracting_what_was_never_added_is_an_error(problem):
    statistics = build(problem)
    stranger = ClassStatistics.from_counts(problem.X[:1] + 1, problem.y[:1], problem.n_classes)
    with pytest.raises(ValueError, match="never added"):
        statistics - stranger


def test_different_sizes_do_not_add(problem):
    with pytest.raises(ValueError, match="same classes and terms"):
        build(problem) + ClassStatistics.empty(problem.n_classes, 3)
    with pytest.raises(ValueError, match="sublinear"):
        build(problem) + build(problem, sublinear=True)


def test_explicit_zeros_and_duplicates_do_not_matter():
    indptr, indices, data = [0, 3, 4], [2, 0, 2, 1], [1.0, 0.0, 1.0, 3.0]
    messy = sp.csr_array((data, indices, indptr), shape=(2, 3))
    clean = np.array([[0, 0, 2], [0, 3, 0]])
    assert ClassStatistics.from_counts(messy, [0, 1], 2) == ClassStatistics.from_counts(
        clean, [0, 1], 2
    )
    assert messy.data.tolist() == data  # the caller's matrix is left alone


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_counts_must_be_finite(value):
    with pytest.raises(ValueError, match="NaN or infinity"):
        CountMatrix.from_matrix(np.array([[1.0, value]]))


def test_counts_must_not_be_negative():
    with pytest.raises(ValueError, match="the smallest is -2"):
        CountMatrix.from_matrix(np.array([[1.0, -2.0]]))


def test_counts_must_be_summable():
    with pytest.raises(ValueError, match="Scale the counts down"):
        ClassStatistics.from_counts(np.array([[1e10, 0.5]]), [0], 1)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0], "one class id for each of the 2 documents"),
        ([0, 2], "from 0 to 1"),
        ([-1, 0], "from 0 to 1"),
        ([0.0, 1.0], "integer class ids"),
    ],
)
def test_class_ids_are_checked(y, message):
    with pytest.raises(ValueError, match=message):
        ClassStatistics.from_counts(np.eye(2), y, 2)


def test_new_terms_take_their_present_frequency():
    before = ClassStatistics.from_counts(np.array([[1, 0], [1, 0]]), [0, 1], 2)
    after = before + ClassStatistics.from_counts(np.array([[5, 1]]), [0], 2)
    corpus = before.corpus.with_new_terms(
        after.corpus.document_frequencies, after.corpus.term_counts
    )
    assert corpus.n_documents == 2
    assert corpus.document_frequencies.tolist() == [2, 1]
    assert corpus.term_counts.tolist() == [2.0, 1.0]
    assert corpus.length == before.corpus.length


def test_index_dtype_grows_where_needed():
    assert index_dtype(2**31 - 1) is np.int32
    assert index_dtype(2**31) is np.int64


def test_wide_index_arrays_give_the_same_statistics(problem):
    wide = sp.csr_array(problem.X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert ClassStatistics.from_counts(wide, problem.y, problem.n_classes) == build(problem)


def test_running_totals_are_refused_before_they_wrap():
    huge = ClassStatistics.from_counts(np.array([[1.5 * 2.0**61, 1], [1, 1]]), np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="the counts add up to"):
        _ = huge + huge
    assert huge.class_lengths.tolist() == [1.5 * 2.0**61, 2]
    # In units of 2^-32 whole counts that fitted do so no more.
    whole = ClassStatistics.from_counts(np.array([[2.0**40]]), np.array([0]), 1)
    half = ClassStatistics.from_counts(np.array([[0.5]]), np.array([0]), 1)
    with pytest.raises(ValueError, match="the counts add up to"):
        _ = whole + half


def test_too_many_documents_for_a_centroid_are_refused():
    one = ClassStatistics.from_counts(np.array([[1, 0], [0, 1]]), np.array([0, 1]), 2)
    many = replace(one, centroid_sums=np.full(2, 2**61 + 2**60), class_sizes=np.array([2, 2]))
    with pytest.raises(ValueError, match="too many documents, 8 in all"):
        _ = many + many
    both = many + one  # above 2^62 over all classes, but not in any
    assert both.centroid_sums.tolist() == [2**61 + 2**60 + 2**38] * 2
