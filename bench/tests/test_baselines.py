"""Baselines against brute force and against scikit-learn, on small data."""

import os
import pickle
import sys
from types import ModuleType, SimpleNamespace

import longtail_bench.baselines
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from longtail_bench.baselines import (
    BM25,
    Baseline,
    ComplementBayes,
    CrammerSinger,
    MultinomialBayes,
    NearestNeighbours,
    OneVsAll,
)
from longtail_bench.baselines.cores import limit_cores
from longtail_bench.baselines.files import Conversion, rank_lists, token_lines, weighted_lines
from longtail_bench.baselines.linear import BLOCK
from longtail_bench.baselines.neighbours import count_votes
from longtail_bench.baselines.postings import Postings
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.conftest import examples, make_problem

SIMPLE = [
    BM25(),
    MultinomialBayes(),
    ComplementBayes(),
    NearestNeighbours(),
    OneVsAll(random_state=0),
    CrammerSinger(random_state=0),
]


def weights(X_train, X):
    return TfidfTransformer(sublinear_tf=True).fit(X_train).transform(X).toarray()


def order_of(scores, k):
    """The k best columns of each row; ties to the lower column."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def assert_ranks(top, scores, k):
    expected = np.take_along_axis(scores, order_of(scores, k), axis=1)
    np.testing.assert_allclose(top.scores, expected, rtol=1e-9, atol=1e-12)
    # Where sums in another order give a near tie, the class may differ; its score may not.
    found = np.take_along_axis(scores, top.classes, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# --- what all share -----------------------------------------------------------------------------


@parametrize_with_checks(SIMPLE)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", SIMPLE, ids=lambda e: type(e).__name__)
def test_shared_behaviour(estimator, problem):
    names = np.array([f"class {c}" for c in range(problem.n_classes)])
    X = sp.csr_array(problem.X)
    model = clone(estimator).fit(X, names[problem.y])
    top = model.predict_topk(X, 10)
    assert top.classes.shape == top.scores.shape == (60, 10)
    assert np.all(top.scores[:, 1:] <= top.scores[:, :-1])
    assert np.all(np.isneginf(top.scores[:, 7:]))
    np.testing.assert_array_equal(model.predict(X), top.classes[:, 0])
    np.testing.assert_array_equal(model.predict_topk(X, 3).classes, top.classes[:, :3])
    one = model.predict_topk(X[[4]], 3)
    np.testing.assert_array_equal(one.classes[0], top.classes[4, :3])
    again = pickle.loads(pickle.dumps(model)).predict_topk(X, 10)
    np.testing.assert_array_equal(again.scores, top.scores)
    threaded = clone(estimator).set_params(n_jobs=2).fit(X, names[problem.y]).predict_topk(X, 10)
    np.testing.assert_array_equal(threaded.scores, top.scores)
    assert 1000 < model.model_bytes() == len(pickle.dumps(model, protocol=5))


def test_bad_input(problem):
    with pytest.raises(ValueError, match="only 1 class, 3"):
        BM25().fit(problem.X, np.full(60, 3))
    with pytest.raises(ValueError, match="Negative values in data"):
        BM25().fit(-problem.X, problem.y)
    model = BM25().fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="k must be an integer of at least 1; got 0"):
        model.predict_topk(problem.X, 0)
    with pytest.raises(ValueError, match="neighbours must be at least 1; got 0"):
        NearestNeighbours(0).fit(problem.X, problem.y)


def test_stored_zeros_and_unsorted_terms_change_nothing(problem):
    X = sp.csr_array(problem.X)
    messy = sp.csr_array(
        (np.append(X.data, 0), np.append(X.indices, 3), np.append(X.indptr[:-1], X.nnz + 1)),
        shape=X.shape,
    )
    messy.data[:2], messy.indices[:2] = messy.data[1::-1].copy(), messy.indices[1::-1].copy()
    before = messy.data.copy()
    model = OneVsAll(random_state=0).fit(X, problem.y)
    other = OneVsAll(random_state=0).fit(messy, problem.y)
    np.testing.assert_array_equal(model.predict_topk(X).scores, other.predict_topk(messy).scores)
    np.testing.assert_array_equal(messy.data, before)


def test_names_are_loaded_on_demand():
    assert {"BM25", "RecallTree", "Omikuji"} <= set(dir(longtail_bench.baselines))
    assert issubclass(longtail_bench.baselines.Omikuji, Baseline)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = longtail_bench.baselines.Nothing


# --- each against its definition ----------------------------------------------------------------


@examples(30)
@given(st.integers(0, 10_000), st.integers(1, 7))
def test_postings_rank_as_a_dense_product(seed, k):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (7, 12)) * 1.0  # integers: ties, and sums without rounding
    X = rng.integers(0, 3, (9, 12)) * 1.0
    constants, lengths = rng.integers(-2, 3, 7) * 1.0, rng.integers(-1, 2, 7) * 1.0
    postings = Postings.from_classes(sp.csr_array(values), constants, lengths)
    ranked, scores = postings.rank(sp.csr_array(X), k, n_jobs=None)
    dense = X @ values.T + constants + X.sum(axis=1)[:, None] * lengths
    np.testing.assert_array_equal(ranked, order_of(dense, k))
    np.testing.assert_array_equal(scores, np.take_along_axis(dense, ranked, axis=1))


def test_bm25(problem):
    model = BM25(k1=1.5, b=0.6).fit(problem.X, problem.y)
    joined = np.array([problem.X[problem.y == c].sum(axis=0) for c in range(7)], float)
    lengths = joined.sum(axis=1)
    n_with = (joined > 0).sum(axis=0)
    expected = np.zeros((60, 7))
    for document, c, term in np.ndindex(60, 7, 25):
        count, tf = problem.X[document, term], joined[c, term]
        if count and tf:
            idf = np.log(1 + (7 - n_with[term] + 0.5) / (n_with[term] + 0.5))
            slow = 1.5 * (1 - 0.6 + 0.6 * lengths[c] / lengths.mean())
            expected[document, c] += count * idf * tf * 2.5 / (tf + slow)
    assert_ranks(model.predict_topk(problem.X, 7), expected, 7)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_multinomial_bayes_is_that_of_scikit_learn(problem, alpha):
    model = MultinomialBayes(alpha).fit(problem.X, problem.y)
    oracle = MultinomialNB(alpha=alpha).fit(problem.X, problem.y)
    assert_ranks(model.predict_topk(problem.X, 7), oracle.predict_joint_log_proba(problem.X), 7)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_complement_bayes_is_that_of_scikit_learn(problem, alpha):
    model = ComplementBayes(alpha).fit(problem.X, problem.y)
    oracle = ComplementNB(alpha=alpha).fit(problem.X, problem.y)
    shared = problem.X @ np.log(problem.X.sum(axis=0) + alpha)  # the same for all classes
    expected = oracle.predict_joint_log_proba(problem.X) + shared[:, None]
    assert_ranks(model.predict_topk(problem.X, 7), expected, 7)


def test_nearest_neighbours(problem):
    X, y, queries = problem.X[:45], problem.y[:45], problem.X[45:]
    top = NearestNeighbours(6).fit(X, y).predict_topk(queries, 4)
    cosines = weights(X, queries) @ weights(X, X).T
    for document, row in enumerate(cosines):
        votes = {}
        for neighbour in np.argsort(-row, kind="stable")[:6]:
            if row[neighbour] > 0:
                votes[y[neighbour]] = votes.get(y[neighbour], 0.0) + row[neighbour]
        best = sorted(votes, key=lambda c: (-round(votes[c], 9), c))[:4]
        assert top.classes[document, : len(best)].tolist() == best
        np.testing.assert_allclose(top.scores[document, : len(best)], [votes[c] for c in best])
        assert np.all(np.isneginf(top.scores[document, len(best) :]))


def test_votes():
    ranked, scores = count_votes(
        np.array([[2, 0, 2], [1, 0, 0], [1, 1, 1]]),
        np.array([[0.5, 0.75, 0.5], [0.5, 0.25, 0.25], [0.0, 0.0, -1.0]]),
        2,
    )
    assert ranked.tolist() == [[2, 0], [0, 1], [0, 0]]
    assert scores.tolist() == [[1.0, 0.75], [0.5, 0.5], [-np.inf, -np.inf]]


def test_one_vs_all_is_one_svm_for_each_class():
    # More classes than a block holds, so that the rest is a class of its own in each.
    problem = make_problem(n_documents=3 * BLOCK, n_classes=BLOCK + 2, n_terms=40)
    model = OneVsAll(C=2.0, tol=1e-6, threshold=0.0).fit(problem.X, problem.y)
    W = weights(problem.X, problem.X)
    expected = np.column_stack(
        [
            LinearSVC(C=2.0, tol=1e-6, dual=True, max_iter=100_000)
            .fit(W, problem.y == c)
            .decision_function(W)
            for c in range(problem.n_classes)
        ]
    )
    top = model.predict_topk(problem.X, 5)
    np.testing.assert_allclose(
        top.scores, np.take_along_axis(expected, order_of(expected, 5), axis=1), atol=1e-3
    )


def test_weights_below_the_threshold_are_dropped(problem):
    dense = OneVsAll(threshold=0.0, random_state=0).fit(problem.X, problem.y).postings_
    sparse = OneVsAll(threshold=0.2, random_state=0).fit(problem.X, problem.y).postings_
    assert np.abs(sparse.values).min() >= 0.2
    assert len(sparse.values) == np.count_nonzero(np.abs(dense.values) >= 0.2)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_crammer_singer_is_that_of_scikit_learn(n_classes):
    problem = make_problem(n_classes=n_classes)
    model = CrammerSinger(tol=1e-6, threshold=0.0).fit(problem.X, problem.y)
    W = weights(problem.X, problem.X)
    oracle = LinearSVC(multi_class="crammer_singer", tol=1e-6, max_iter=100_000).fit(W, problem.y)
    np.testing.assert_array_equal(model.predict(problem.X), oracle.predict(W))


def test_crammer_singer_refuses_what_does_not_fit(problem):
    model = CrammerSinger(max_gigabytes=5e-6)
    with pytest.raises(MemoryError, match=r"needs 0\.0 GB for 60 documents, 25 terms and 7 clas"):
        model.fit(problem.X, problem.y)
    assert not hasattr(model, "postings_")
    CrammerSinger(max_gigabytes=9e-6).fit(problem.X, problem.y)


# --- formats of peers ---------------------------------------------------------------------------


def test_lines_for_peers():
    X = sp.csr_array(np.array([[2.0, 0, 1], [0, 0, 0], [0, 0.125, 0]]))
    assert list(weighted_lines(X)) == ["0:2 2:1", "", "1:0.125"]
    assert list(token_lines(sp.csr_array(np.array([[2, 0, 1], [0, 0, 0], [0, 1, 0]])))) == [
        "0 0 2",
        "",
        "1",
    ]


def test_lists_of_peers_are_padded():
    ranked, scores = rank_lists([[4, 2, 9], []], [[0.5, 0.5, 0.75], []], 2, 4)
    assert ranked.tolist() == [[9, 2, 4, 0], [0, 0, 0, 0]]
    assert scores[0].tolist() == [0.75, 0.5, 0.5, -np.inf]
    assert np.all(np.isneginf(scores[1]))


def test_conversion_is_counted_even_when_it_fails():
    conversion = Conversion()
    with pytest.raises(ZeroDivisionError), conversion.counted():
        sum(range(10_000)) / 0
    assert conversion.seconds > 0


def test_fasttext_wants_vectors_in_ten_blocks(problem):
    with pytest.raises(ValueError, match="dim must be a multiple of 10 above 0; got 64"):
        longtail_bench.baselines.FastText(dim=64).fit(problem.X, problem.y)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be chosen here")
def test_cores_are_given_back():
    before = os.sched_getaffinity(0)
    with limit_cores(1):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_libmultilabel_ranks_what_the_beam_reaches(problem, monkeypatch):
    rng = np.random.default_rng(0)
    n_documents, n_classes = 300, len(np.unique(problem.y))  # more than one block
    values = rng.integers(0, 4, (n_documents, n_classes)) / 4.0  # ties, and zeros: not reached
    values[0] = 0
    blocks, cores = [], []

    def predict_values(X, beam_width):
        blocks.append(X.shape[0])
        assert beam_width == 7
        return values[sum(blocks[:-1]) : sum(blocks)]

    def train_tree(y, x, **options):
        cores.append(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0})
        return SimpleNamespace(predict_values=predict_values)

    package = ModuleType("libmultilabel.linear")
    package.train_tree = train_tree
    monkeypatch.setitem(sys.modules, "libmultilabel", ModuleType("libmultilabel"))
    monkeypatch.setitem(sys.modules, "libmultilabel.linear", package)
    model = longtail_bench.baselines.LibMultiLabelTree(beam=7, n_jobs=1).fit(problem.X, problem.y)
    assert len(cores[0]) == 1  # whatever the number of threads that it starts
    X = sp.csr_array(np.ones((n_documents, problem.X.shape[1])))
    ranked, scores = model.rank(X, 5)
    for row, found, found_scores in zip(values, ranked, scores, strict=True):
        reached = sorted((-value, c) for c, value in enumerate(row) if value > 0)[:5]
        assert [(-s, c) for s, c in zip(found_scores, found, strict=True) if s > 0] == reached
        assert np.all(np.isneginf(found_scores[len(reached) :]))
    assert len(blocks) == 2


def test_omikuji_predicts_from_dense_weights(problem, monkeypatch):
    calls = []

    class Model:
        @staticmethod
        def default_hyper_param():
            return SimpleNamespace()

        @staticmethod
        def train_on_data(path, settings, n_threads):
            calls.append(("train", n_threads, settings.n_trees))
            return Model()

        def densify_weights(self, share):
            calls.append(("densify", share))

        def init_prediction_thread_pool(self, n_threads):
            calls.append(("threads", n_threads))

        def predict(self, pairs, beam_size, top_k):
            assert calls[1] == ("densify", 0.2)  # before the first prediction
            return [(2, 0.5), (1, 0.5), (0, 0.75)][:top_k]

    package = ModuleType("omikuji")
    package.Model = Model
    monkeypatch.setitem(sys.modules, "omikuji", package)
    model = longtail_bench.baselines.Omikuji(dense_above=0.2, n_jobs=1)
    ranked, scores = model.fit(problem.X, problem.y).rank(problem.X[:2], 3)
    assert calls == [("train", 1, 3), ("densify", 0.2), ("threads", 1)]
    assert ranked.tolist() == [[0, 1, 2]] * 2  # best first, ties in class order
    assert scores.tolist() == [[0.75, 0.5, 0.5]] * 2
