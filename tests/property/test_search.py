"""The search against brute force, bit for bit, on cases made to break it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail._kernels import search as kernels
from longtail._kernels.jit import kernel
from longtail.model import scorer as scoring
from longtail.model.scorer import ClassResiduals, LinearScorer, score_pairs
from longtail.model.weighting import WeightedDocuments
from longtail.retrieval import search as candidates
from longtail.retrieval.index import IndexShards, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import Segment, search, search_segments
from longtail.sparse import CountMatrix
from tests.conftest import examples, single_labels

quick = examples(60)


@st.composite
def searches(draw):
    """A score with common and rare terms, and documents; values as awkward as asked for."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_classes = draw(st.sampled_from([1, 2, 17, 63, 64, 65, 300, 2048, 2500]))
    n_terms = draw(st.sampled_from([1, 5, 70]))
    shares = rng.choice([0.0, 0.01, 0.05, 0.1, 0.5, 1.0], n_terms)  # one may be in every class
    present = rng.random((n_classes, n_terms)) < shares
    kind = draw(st.sampled_from(["plain", "ties", "signed", "wide", "tiny", "near ties", "zeros"]))
    values = {
        "plain": lambda: rng.random(present.shape),
        "ties": lambda: np.ones(present.shape),
        "signed": lambda: rng.normal(size=present.shape),
        "wide": lambda: 10.0 ** rng.uniform(-6, 6, present.shape),
        "tiny": lambda: rng.random(present.shape) * 1e-38,
        "near ties": lambda: 1 + rng.integers(0, 3, present.shape) * 1e-7,
        "zeros": lambda: rng.integers(0, 2, present.shape) * 1.0,
    }[kind]()
    matrix = sp.csr_array(present)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    level = draw(st.sampled_from([0.0, 1.0, 1e3]))
    score = LinearScorer(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        values[present].astype(dtype),
        level * rng.normal(size=n_classes) * draw(st.sampled_from([0.0, 1.0])),
        level * rng.normal(size=n_classes),
    )
    n_documents = 6
    counts = rng.poisson(draw(st.sampled_from([0.02, 0.3, 2])), (n_documents, n_terms)) * 1.0
    counts[0] = 0  # an empty document
    rows = CountMatrix.from_matrix(counts)
    weights = rows.data * rng.choice([0.0, 1e-3, 1.0], len(rows.data), p=[0.1, 0.2, 0.7])
    documents = WeightedDocuments(rows, weights.astype(dtype), rng.random(n_documents))
    return documents, score, n_terms


@kernel
def accumulate_one(vectors, row, index, scratch):
    """Return the quantum and the error bound of a document whose accumulators are filled."""
    quantum, _, _ = kernels.plan_document(vectors, row, index)
    return quantum, kernels.accumulate(vectors, row, index, scratch)


def find_error_spread(documents, score, n_terms):
    """Return, for each document, the spread of its classes' errors by its error bound."""
    n_classes = len(score.biases)
    every = np.tile(np.arange(n_classes), (documents.rows.n_documents, 1))
    index = build_index(score, n_terms).arrays
    spreads = []
    for row, scores in enumerate(score_pairs(documents, every, score)):
        scratch = candidates.make_scratch(n_classes, documents.rows.most_terms)
        quantum, bound = accumulate_one(documents.vectors, row, index, scratch)
        errors = scratch.accumulators - scores / quantum
        assert scratch.accumulators.min() > 0  # 0 is a class that is passed over
        spreads.append((errors.max() - errors.min()) / bound)
    return spreads


@quick
@given(searches())
def test_accumulators_are_off_by_no_more_than_the_error_bound(problem):
    assert max(find_error_spread(*problem)) <= 1  # one that wraps around is off by 65,536


@pytest.mark.parametrize("n_terms", [3000, 9000])
@pytest.mark.parametrize("share", [0.01, 0.9])
def test_accumulators_of_long_documents_do_not_wrap_around(n_terms, share):
    rng = np.random.default_rng(n_terms)
    present = rng.random((40, n_terms)) < share
    present[0], present[1] = True, False  # a class with every term has every rounding error
    values = rng.normal(size=present.shape) * 10.0 ** rng.uniform(-3, 0, n_terms)
    values[2] = np.abs(values[2])
    matrix = sp.csr_array(present)
    score = LinearScorer(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        values[present].astype(np.float32),
        np.zeros(40),
        np.zeros(40),
    )
    rows = CountMatrix.from_matrix(np.ones((1, n_terms)))
    documents = WeightedDocuments(rows, rng.random(n_terms).astype(np.float32), np.zeros(1))
    assert max(find_error_spread(documents, score, n_terms)) <= 1


def test_rounding_errors_that_add_up_are_within_the_error_bound():
    """Every term of one class is rounded down, every term of another up, by almost half."""
    n_classes, n_terms = 64, 400
    values = np.zeros((n_classes, n_terms))
    values[:3] = [[0.5], [0.5], [1.0]]  # three of 64 classes have a term: its postings are a list
    rows = CountMatrix.from_matrix(np.ones((1, n_terms)))
    documents = WeightedDocuments(rows, np.ones(n_terms, np.float32), np.zeros(1))

    def spread(values):
        matrix, zeros = sp.csr_array(values.astype(np.float32)), np.zeros(n_classes)
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        score = LinearScorer(indptr, indices, matrix.data, zeros, zeros)
        index = build_index(score, n_terms).arrays
        scratch = candidates.make_scratch(n_classes, n_terms)
        quantum, _ = accumulate_one(documents.vectors, 0, index, scratch)
        return quantum, max(find_error_spread(documents, score, n_terms))

    quantum, _ = spread(values)
    values[0] = (np.floor(0.5 / quantum) + 0.45) * quantum
    values[1] = (np.floor(0.5 / quantum) + 0.55) * quantum
    assert 0.5 < spread(values)[1] <= 1


def brute_force(documents, score, q, own=None):
    every = np.tile(np.arange(len(score.biases)), (documents.rows.n_documents, 1))
    scores = score_pairs(documents, every, score)
    if own is not None:
        scores[np.arange(len(own)), own] = -np.inf
    order = np.lexsort((every, -scores))[:, :q]
    return order, np.take_along_axis(scores, order, axis=1)


@quick
@given(searches(), st.sampled_from([1, 2, 20, 300, 5000]), st.booleans(), st.integers(1, 2))
def test_the_search_equals_brute_force_bit_for_bit(problem, q, exclude, n_jobs):
    documents, score, n_terms = problem
    n_classes = len(score.biases)
    own = np.arange(documents.rows.n_documents) % n_classes if exclude and n_classes > 1 else None
    q = min(q, n_classes - (own is not None))
    index = build_index(score, n_terms, n_jobs)
    labels = None if own is None else single_labels(own)
    classes, scores = search(documents, score, index, q, labels=labels, n_jobs=n_jobs)
    expected = brute_force(documents, score, q, own)
    assert np.array_equal(classes, expected[0])
    assert np.array_equal(scores, expected[1])


@quick
@given(searches())
def test_classes_passed_over_are_not_found(problem):
    documents, score, n_terms = problem
    n_classes = len(score.biases)
    if n_classes < 3:
        return
    index = replace(build_index(score, n_terms), tombstones=np.arange(0, n_classes, 2))
    found, _ = search(documents, score, index, n_classes // 2)
    expected = brute_force(documents, score, n_classes)[0]
    for row, every in zip(found, expected, strict=True):
        assert row.tolist() == [c for c in every if c % 2][: n_classes // 2]


def keep_rarest(documents, counts, most):
    """The slow way: terms by rising number of classes, until the next one is one too many."""
    rows, weights = documents.rows, np.zeros_like(documents.weights)
    for start, stop in pairwise(rows.indptr):
        left = most
        for n, j in enumerate(sorted(range(start, stop), key=lambda j: counts[rows.indices[j]])):
            if n > 0 and counts[rows.indices[j]] > left:
                break
            left -= counts[rows.indices[j]]
            weights[j] = documents.weights[j]
    return weights


@quick
@given(searches(), st.sampled_from([0, 40, 300, 10**6]))
def test_the_rarest_terms_are_kept(problem, most):
    documents, score, n_terms = problem
    counts = np.bincount(score.indices, minlength=n_terms).astype(np.int32)
    every = np.arange(documents.rows.n_documents)
    few = QueryPruning(counts, most).prune(documents, every)
    assert np.array_equal(few.weights, keep_rarest(documents, counts, most))
    sums = [few.weights[a:b].astype(np.float64).sum() for a, b in pairwise(few.rows.indptr)]
    assert np.allclose(few.totals, sums)
    alone = QueryPruning(counts, most).prune(documents, every[2:3])  # others stay undefined
    part = slice(*few.rows.indptr[2:4])
    assert np.array_equal(alone.weights[part], few.weights[part])


@quick
@given(
    searches(),
    st.sampled_from([1, 3, 20, 5000]),
    st.sampled_from([1, 4, 5000]),
    st.sampled_from([0.0, np.inf]),
    st.integers(1, 2),
)
def test_one_pass_over_the_pairs_equals_three(problem, q, k, pairs_per_class, n_jobs):
    """Search by the rarest terms, then score and correction of all: the same bits."""
    documents, score, n_terms = problem
    n_classes = len(score.biases)
    q = min(q, n_classes)
    rng = np.random.default_rng(q)
    matrix = sp.random_array((n_classes, n_terms), density=0.3, format="csr", rng=rng)
    residuals = ClassResiduals(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        rng.normal(size=matrix.nnz).astype(np.float32),
        rng.normal(size=n_classes),
    )
    index, rare = build_index(score, n_terms), QueryPruning(rng.integers(0, 9, n_terms), 20)
    few = rare.prune(documents, np.arange(documents.rows.n_documents))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "MIN_SPREAD_PAIRS", 0)
        patch.setattr(scoring, "PAIRS_PER_CLASS", pairs_per_class)
        found, scores = search_segments(
            documents, few, [Segment(score, residuals.as_scorer, index)], q, min(k, q), n_jobs
        )
    expected, _ = brute_force(few, score, q)
    corrected = score_pairs(documents, expected, score)
    corrected += score_pairs(documents, expected, residuals.as_scorer)
    order = np.lexsort((expected, -corrected))[:, : min(k, q)]
    assert np.array_equal(found, np.take_along_axis(expected, order, axis=1))
    assert np.array_equal(scores, np.take_along_axis(corrected, order, axis=1))


def split_segments(score, index, n_terms, rng, **options):
    """Move some classes into a segment of their own, without residuals."""
    n_classes = len(score.biases)
    none = ClassResiduals.none(n_classes).as_scorer
    moved = np.flatnonzero(rng.random(n_classes) < 0.5)
    main_ids = np.arange(n_classes)
    main_ids[moved] = -1
    segments = [Segment(score, none, replace(index, tombstones=moved), main_ids)]
    if len(moved):
        few = score.gather(moved)
        few_index = build_index(few, n_terms, n_of_all=n_classes, **options)
        segments.append(Segment(few, none.gather(moved), few_index, moved))
    return segments


@quick
@given(searches(), st.sampled_from([1, 3, 20]), st.booleans(), st.integers(1, 2))
def test_two_segments_equal_one(problem, q, ties, n_jobs):
    """Whichever segment a class is in: the same bits, and ties go to the lower class id."""
    documents, score, n_terms = problem
    n_classes = len(score.biases)
    if ties:
        score = score.gather(np.zeros(n_classes, np.int64))
    q = min(q, n_classes)
    index = build_index(score, n_terms)
    segments = split_segments(score, index, n_terms, np.random.default_rng(q))
    whole = [Segment(score, ClassResiduals.none(n_classes).as_scorer, index)]
    expected = search_segments(documents, documents, whole, q, q, n_jobs)
    unindexed = [segments[0], *(replace(segment, index=None) for segment in segments[1:])]
    for asked in (segments, unindexed):
        found = search_segments(documents, documents, asked, q, q, n_jobs)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])


def find_matching(documents, score, counts, budget, wanted):
    """The slow way: the classes that have a term which searches, a set for each document.

    None for a document that may find any class: it has no such term of at least one class and at
    most `budget` of them, or fewer classes than wanted have one.
    """
    rows, found = documents.rows, []
    for start, stop in pairwise(rows.indptr):
        terms = [rows.indices[j] for j in range(start, stop) if documents.weights[j] != 0]
        if not any(0 < counts[t] <= budget for t in terms):
            found.append(None)
            continue
        of_class = [score.indices[a:b] for a, b in pairwise(score.indptr)]
        matching = {c for c, have in enumerate(of_class) if not {*terms}.isdisjoint(have)}
        found.append(matching if len(matching) >= wanted else None)
    return found


def brute_force_matching(documents, score, q, matching):
    classes, scores = brute_force(documents, score, len(score.biases))
    kept = [
        [p for p, c in enumerate(row) if of_row is None or c in of_row][:q]
        for row, of_row in zip(classes, matching, strict=True)
    ]
    return np.take_along_axis(classes, np.array(kept), 1), np.take_along_axis(
        scores, np.array(kept), 1
    )


@quick
@given(searches(), st.sampled_from([1, 2, 20, 300]), st.sampled_from([3, 40, 10**5]))
def test_matching_classes_alone_equal_brute_force(problem, q, budget):
    """Through one index, the parts of one, and two segments."""
    documents, score, n_terms = problem
    n_classes = len(score.biases)
    q = min(q, n_classes)
    counts = np.bincount(score.indices, minlength=n_terms).astype(np.int32)
    pruning = QueryPruning(counts, budget, matching_only=True)
    every = np.arange(documents.rows.n_documents)
    few = pruning.prune(documents, every)
    expected = brute_force_matching(few, score, q, find_matching(few, score, counts, budget, q))
    index = build_index(score, n_terms, dense_share=1.0)
    found = search(documents, score, index, q, pruning=pruning)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])
    if n_classes >= 2 * q + 2:
        bounds = [0, n_classes // 2, n_classes]
        parts = IndexShards(
            bounds,
            lambda i: build_index(score.slice(slice(*bounds[i : i + 2])), n_terms, dense_share=1.0),
        )
        of_parts = search(documents, score, parts, q, pruning=pruning)
        assert all(np.array_equal(a, b) for a, b in zip(of_parts, found, strict=True))
    segments = split_segments(score, index, n_terms, np.random.default_rng(q), dense_share=1.0)
    matching = pruning.find_matching(few, every)
    of_segments = search_segments(few, few, segments, q, q, matching=matching)
    assert all(np.array_equal(a, b) for a, b in zip(of_segments, expected, strict=True))


def test_a_dense_row_matches_every_class():
    """It does not tell which classes have the term."""
    score = LinearScorer(
        np.arange(65),
        np.zeros(64, np.int32),
        np.ones(64, np.float32),
        np.zeros(64),
        np.arange(64.0),
    )
    documents = WeightedDocuments(CountMatrix.from_matrix(np.ones((1, 1))), np.ones(1), np.ones(1))
    index = build_index(score, 1)
    assert index.dense_row_ids.tolist() == [0]
    pruning = QueryPruning(np.array([64]), 64, matching_only=True)
    classes, _ = search(documents, score, index, 3, pruning=pruning)
    assert classes.tolist() == [[63, 62, 61]]


@pytest.mark.parametrize("room", [1, 64, 1 << 20])
def test_ties_beyond_the_room_are_still_exact(room, monkeypatch):
    """All 3,000 classes tie, so every one must be scored; whatever room there is."""
    monkeypatch.setattr(candidates, "BATCH_ENTRIES", room)
    n_classes = 3000
    matrix = sp.csr_array(np.ones((n_classes, 2), np.float32))
    score = LinearScorer(
        matrix.indptr.astype(np.int64),
        matrix.indices,
        matrix.data,
        np.zeros(n_classes),
        np.zeros(n_classes),
    )
    rows = CountMatrix.from_matrix(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 3.0]]))
    documents = WeightedDocuments(rows, rows.data, rows.data[:0].sum() * np.ones(3))
    classes, scores = search(documents, score, build_index(score, 2), 20)
    assert classes.tolist() == [list(range(20))] * 3
    assert scores.tolist() == [[3.0] * 20, [0.0] * 20, [3.0] * 20]


@pytest.mark.parametrize("n_terms", [8000, 8191, 8192, 20_000])
@pytest.mark.parametrize("sign", [1, -1])
def test_documents_of_very_many_terms_are_still_exact(n_terms, sign):
    """Each term may lose a unit to rounding; with thousands of terms that must still fit."""
    rng = np.random.default_rng(n_terms)
    n_classes = 90
    present = rng.random((n_classes, n_terms)) < rng.choice([0.03, 0.3], n_terms)
    values = np.where(rng.random(present.shape) < 0.5, 1.0, sign * rng.random(present.shape))
    matrix = sp.csr_array(present)
    score = LinearScorer(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        values[present].astype(np.float32),
        rng.normal(size=n_classes),
        rng.normal(size=n_classes),
    )
    rows = CountMatrix.from_matrix(1.0 + rng.integers(0, 3, (3, n_terms)))
    documents = WeightedDocuments(rows, (rows.data / n_terms).astype(np.float32), np.ones(3))
    found = search(documents, score, build_index(score, n_terms), 20)
    expected = brute_force(documents, score, 20)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])
