from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from longtail_bench._kernels import pdsparse as kernels
from longtail_bench._kernels.sum_tables import Products, read_sum
from longtail_bench._kernels.types import Ranked
from longtail_bench.baselines.fastxml import Rows
from longtail_bench.baselines.pdsparse import DualProblem, PDSparse, default_term_share, hold_out
from scipy.optimize import minimize
from sklearn.base import clone

from tests.conftest import examples, make_problem


def start(seed=0, n_documents=40, n_classes=5, n_terms=12, l1=0.05, C=1.0):
    """A problem with rows of unit length; returns it with the dense rows and the classes."""
    drawn = make_problem(seed, n_documents, n_classes, n_terms)
    X = drawn.X / np.linalg.norm(drawn.X, axis=1, keepdims=True)
    X = X.astype(np.float32).astype(float)
    rows = Rows.from_matrix(sp.csr_array(X))
    return DualProblem.start(rows, drawn.y, n_classes, l1, C), X, drawn.y


def soft(v, l1):
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0)


def dual_objective(problem, X, y):
    alpha = problem.dual_variables().toarray()
    W = soft(X.T @ alpha, problem.l1)
    others = alpha.sum() - alpha[np.arange(len(y)), y].sum()
    return -0.5 * (W**2).sum() - others


def primal_objective(W, X, y, l1, C):
    scores = X @ W
    margins = scores + 1.0 - scores[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = 0.0
    return 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + C * margins.max(axis=1).sum()


@examples(40)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.1, 1.0, 10.0]))
def test_a_block_is_solved_exactly(seed, n_others, ceiling):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_others + 1)
    square = rng.uniform(0.3, 2.0)
    before = -rng.uniform(0, ceiling / n_others, n_others + 1)
    before[0] = -before[1:].sum()
    alphas = before.copy()
    kernels.solve_block(scores, ceiling, square, alphas)

    def objective(others):
        change = np.concatenate([[-others.sum()], others]) - before
        return scores @ change + others.sum() + 0.5 * square * change @ change

    assert alphas[0] == pytest.approx(-alphas[1:].sum())
    assert np.all(alphas[1:] <= 0)
    assert 0 <= alphas[0] <= ceiling + 1e-9
    brute = minimize(
        objective,
        before[1:],
        method="SLSQP",
        bounds=[(None, 0)] * n_others,
        constraints={"type": "ineq", "fun": lambda others: ceiling + others.sum()},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert objective(alphas[1:]) <= brute.fun + 1e-6
    # Against many feasible points as well: the solver above may stop early.
    for _ in range(50):
        other = -rng.exponential(size=n_others) * rng.uniform(0, 1)
        other *= min(1.0, ceiling / -other.sum())
        assert objective(alphas[1:]) <= objective(other) + 1e-9


@pytest.mark.parametrize(
    "search", [{}, {"new_classes": 3}, {"term_share": 0.4}, {"subset_bits": 1}]
)
def test_the_dual_rises_with_every_pass(search):
    problem, X, y = start()
    rng, course = np.random.default_rng(0), [0.0]
    for number in range(12):
        problem.run_pass(rng.permutation(len(y)), number, **search)
        course.append(dual_objective(problem, X, y))
        alpha = problem.dual_variables().toarray()
        own = alpha[np.arange(len(y)), y]
        assert np.allclose(alpha.sum(axis=1), 0)
        assert np.all(own >= 0)
        assert np.all(own <= 1 + 1e-9)
        assert np.all(np.delete(alpha, 0, axis=1)[y == 0] <= 0)
    assert np.all(np.diff(course) >= -1e-9)
    assert course[3] > 0.5 * course[-1] > 0


def test_tables_hold_the_sums_of_the_dual_variables():
    problem, X, _ = start(1, 120, 30, 12)
    for number in range(6):
        problem.run_pass(np.arange(120), number, new_classes=4)
    sums = X.T @ problem.dual_variables().toarray()
    found = np.array(
        [[read_sum(problem.tables, term, np.int32(c)) for c in range(30)] for term in range(12)]
    )
    assert np.allclose(found, sums, atol=1e-6)
    assert np.allclose(problem.weights().toarray(), soft(sums, problem.l1), atol=1e-5)
    assert problem.weights().has_sorted_indices
    scores = X @ soft(sums, problem.l1)
    predicted = problem.predict(np.arange(120), None)
    clear = np.sort(scores, axis=1)[:, -1] > np.sort(scores, axis=1)[:, -2] + 1e-4
    assert clear.sum() > 100
    assert np.array_equal(predicted[clear], scores.argmax(axis=1)[clear])


@pytest.mark.parametrize("search", [{}, {"term_share": 0.5, "new_classes": 2, "subset_bits": 1}])
@pytest.mark.parametrize(("l1", "C"), [(0.05, 1.0), (0.3, 0.5), (0.0, 2.0)])
def test_the_duality_gap_closes(search, l1, C):
    problem, X, y = start(2, l1=l1, C=C)
    rng = np.random.default_rng(0)
    for number in range(400):
        problem.run_pass(rng.permutation(len(y)), number, **search)
    dual = dual_objective(problem, X, y)
    W = soft(X.T @ problem.dual_variables().toarray(), l1)
    assert primal_objective(W, X, y, l1, C) == pytest.approx(dual, rel=1e-2)
    assert primal_objective(W, X, y, l1, C) >= dual - 1e-6


def test_the_optimum_is_that_of_a_general_solver():
    problem, X, y = start(3, 10, 3, 4, l1=0.1)
    for number in range(300):
        problem.run_pass(np.arange(10), number, new_classes=2)
    n_weights, rows = 12, np.arange(10)

    def objective(z):  # positive part, negative part, slack
        W = z[:n_weights] - z[n_weights : 2 * n_weights]
        return 0.5 * W @ W + 0.1 * z[: 2 * n_weights].sum() + z[2 * n_weights :].sum()

    def slack(z):
        scores = X @ (z[:n_weights] - z[n_weights : 2 * n_weights]).reshape(4, 3)
        margins = 1.0 + scores - scores[rows, y][:, None]
        margins[rows, y] = 0.0
        return (z[2 * n_weights :, None] - margins).ravel()

    solved = minimize(
        objective,
        np.concatenate([np.full(2 * n_weights, 0.01), np.full(10, 2.0)]),
        method="SLSQP",
        bounds=[(0, None)] * (2 * n_weights + 10),
        constraints={"type": "ineq", "fun": slack},
        options={"maxiter": 1000, "ftol": 1e-10},
    )
    assert solved.success
    assert dual_objective(problem, X, y) == pytest.approx(solved.fun, rel=1e-3)
    W = problem.weights().toarray().astype(float)
    assert primal_objective(W, X, y, 0.1, 1.0) == pytest.approx(solved.fun, rel=1e-3)


def find(problem, X, document, active, n_new, n_draws=0, subset_bits=0, seed=0):
    rows = problem.rows
    best = Ranked(np.full(n_new, -1), np.zeros(n_new))
    products = Products(np.zeros(problem.n_classes), np.empty(problem.n_classes, np.int64))
    options = kernels.StepOptions(problem.l1, problem.C, 1.0, n_new, subset_bits, seed)
    n_found = kernels.find_violators(
        rows,
        document,
        n_draws,
        problem.tables,
        np.array(active, np.int32),
        options,
        products,
        best,
    )
    assert not products.values.any()
    return best.classes[:n_found], best.scores[:n_found]


def test_the_search_finds_the_highest_products():
    problem, X, _ = start(4, 100, 12, 12)
    for number in range(3):
        problem.run_pass(np.arange(100), number)
    products = X @ problem.weights().toarray()
    for document in range(100):
        active = [0, 5]
        classes, scores = find(problem, X, document, active, 2)
        order = [c for c in np.argsort(-products[document]) if c not in active]
        positive = [c for c in order if products[document, c] > 1e-6][:2]
        assert classes[: len(positive)].tolist() == positive
        assert np.allclose(scores[: len(positive)], products[document, positive], atol=1e-5)
        assert not set(classes) & set(active)
        assert len(set(classes)) == len(classes)


def test_sampled_products_are_right_on_average():
    problem, X, _ = start(5, 100, 3, 12)
    for number in range(3):
        problem.run_pass(np.arange(100), number)
    products = X @ problem.weights().toarray()
    document = int(np.argmax(products[:, 1] * ((X > 0).sum(axis=1) >= 4)))
    drawn = []
    for seed in range(4000):
        classes, scores = find(problem, X, document, [0, 2], 1, n_draws=3, seed=seed)
        drawn.append(scores[0] if classes.tolist() == [1] else 0.0)
    # Estimates below zero are not reported, which this document has few of.
    assert np.mean(drawn) == pytest.approx(products[document, 1], rel=0.1)
    assert np.std(drawn) > 0


def test_subsets_split_the_classes():
    problem, X, _ = start(6, 200, 40, 12)
    for number in range(4):
        problem.run_pass(np.arange(200), number, new_classes=4)

    def positive(subset_bits, seed):
        classes, scores = find(problem, X, 0, [], 40, 0, subset_bits, seed)
        return {int(c) for c, score in zip(classes, scores, strict=True) if score > 0}

    parts = [positive(1, seed) for seed in range(12)]
    together = set.union(*parts)
    assert len({frozenset(part) for part in parts}) == 2
    # A class pushed out of its part of a table by a collision counts with the other part.
    assert len(together ^ positive(0, 0)) <= 2
    assert all(len(part) < 0.8 * len(together) for part in parts)


def test_held_out_documents_leave_each_class_one():
    y = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 3])
    held = hold_out(y, 0.5, 0)
    assert held.sum() == 6
    assert set(y[~held]) == {0, 1, 2, 3}
    assert not hold_out(y, 0.0, 0).any()
    assert not hold_out(np.arange(5), 0.5, 0).any()


def test_the_share_of_terms_follows_the_document_length():
    short = Rows.from_matrix(sp.csr_array(np.ones((10, 4))))
    assert default_term_share(short, 100, 1.0) == 1.0
    long = Rows.from_matrix(sp.csr_array(np.ones((10, 50))))
    assert default_term_share(long, 100, 1.0) == 1 / 10


def test_learns_and_ranks_by_products():
    problem = make_problem(8, 500, 20, 60)
    model = PDSparse(random_state=0).fit(problem.X[:400], problem.y[:400])
    found = model.predict_topk(problem.X[400:], 20)
    X = model.weighting_.transform(sp.csr_array(problem.X[400:]))
    postings = model.postings_
    weights = (postings.values, postings.classes, postings.indptr)
    scores = (X @ sp.csr_array(weights, shape=(60, 20))).toarray()
    assert np.allclose(found.scores, -np.sort(-scores, axis=1), atol=1e-5)
    for row in range(100):
        assert sorted(found.classes[row]) == list(range(20))
        ties = np.diff(found.scores[row]) == 0
        assert np.all(np.diff(found.classes[row])[ties] > 0)
    share = np.bincount(problem.y[400:]).max() / 100
    assert model.score(problem.X[400:], problem.y[400:]) > share + 0.2
    assert 0 < len(postings.values) < 20 * 60
    strict = PDSparse(l1=0.5, random_state=0).fit(problem.X[:400], problem.y[:400])
    assert len(strict.postings_.values) < len(postings.values)


def test_stops_early_or_where_nothing_changes():
    problem = make_problem(9, 300, 10, 40)
    early = PDSparse(patience=1, random_state=0).fit(problem.X, problem.y)
    patient = PDSparse(patience=8, random_state=0).fit(problem.X, problem.y)
    assert early.n_passes_ < patient.n_passes_ <= 50
    separable = np.eye(3, dtype=int).repeat(3, axis=0)
    settled = PDSparse(held_out=0.0, max_passes=500, random_state=0)
    settled.fit(separable, np.arange(3).repeat(3))
    assert 1 < settled.n_passes_ < 500


def test_the_same_bits_for_any_number_of_threads():
    problem = make_problem(10, 200)
    one, two = (
        PDSparse(random_state=1, n_jobs=n).fit(problem.X, problem.y).predict_topk(problem.X, 3)
        for n in (1, 2)
    )
    assert np.array_equal(one.classes, two.classes)
    assert np.array_equal(one.scores, two.scores)
    other = PDSparse(random_state=2).fit(problem.X, problem.y).predict_topk(problem.X, 3)
    assert not np.array_equal(one.scores, other.scores)


def test_small_and_empty_input():
    X = np.array([[3, 0], [2, 1], [0, 0], [0, 4], [1, 5]])
    y = np.array(["b", "b", "c", "a", "a"])
    model = PDSparse(random_state=0).fit(X, y)
    top = model.predict_topk(X, 5)
    assert top.classes.shape == (5, 5)
    assert np.all(np.isneginf(top.scores[:, 3:]))
    assert top.classes[2, :3].tolist() == ["a", "b", "c"]  # an empty document has no products
    assert model.predict(X[[0, 3]]).tolist() == ["b", "a"]
    two = PDSparse(random_state=0).fit(X[[0, 3]], y[[0, 3]])
    assert two.predict(X[[0, 3]]).tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l1": -0.1}, "l1 must be a finite number of at least 0; got -0.1"),
        ({"C": 0}, "C must be a finite number above 0; got 0"),
        ({"held_out": 1.0}, "held_out must be at least 0 and below 1; got 1.0"),
        ({"max_passes": 0}, "max_passes must be an integer of at least 1; got 0"),
        ({"patience": 0}, "patience must be an integer of at least 1; got 0"),
        ({"new_classes": 0}, "new_classes must be an integer of at least 1; got 0"),
        ({"term_share": 0.0}, "term_share must be above 0 and at most 1, or None; got 0.0"),
        ({"class_subsets": 3}, "class_subsets must be a power of two; got 3"),
    ],
)
def test_parameters_out_of_range_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        PDSparse(**parameters).fit(problem.X, problem.y)


def test_clone_keeps_the_parameters():
    model = PDSparse(l1=0.1, C=2.0, new_classes=2, class_subsets=4)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["class_subsets"] == 4
