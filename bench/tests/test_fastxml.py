from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from longtail_bench._kernels import fastxml as kernels
from longtail_bench._kernels.separator import Columns, Stopping, fit_separator
from longtail_bench.baselines.fastxml import FastXML, Rows, grow_forest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

from tests.conftest import make_problem

N_CLASSES, N_TERMS = 7, 25


def weighted_problem(seed=0, n_documents=200):
    """Rows of unit length and classes."""
    problem = make_problem(seed, n_documents, N_CLASSES, N_TERMS)
    X = problem.X / np.maximum(np.linalg.norm(problem.X, axis=1, keepdims=True), 1e-9)
    return sp.csr_array(X), problem.y


def grow(X, y, gains=None, max_leaf=5, n_trees=3, seed=0, n_jobs=None):
    return grow_forest(
        Rows.from_matrix(X),
        y,
        np.ones(N_CLASSES) if gains is None else gains,
        C=1.0,
        max_leaf=max_leaf,
        seeds=np.arange(seed, seed + n_trees),
        n_jobs=n_jobs,
    )


def discounted(gains, order):
    return sum(gains[c] / np.log2(2 + place) for place, c in enumerate(order))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_the_ranking_step_gives_the_highest_dcg(counts):
    gains = np.array(counts, float)
    ranks = np.empty(len(gains), np.int64)
    kernels.rank_classes(gains, ranks)
    order = np.argsort(ranks)
    best = max(discounted(gains, p) for p in permutations(range(len(gains))))
    assert discounted(gains, order) == pytest.approx(best)
    assert order.tolist() == sorted(range(len(gains)), key=lambda c: (-counts[c], c))


def alternate(classes, class_gains, sides):
    """The paper's alternation document by document; returns sides and the objective's course."""
    n_classes, sides, course = len(class_gains), list(sides), []
    while True:
        ranks = []
        for child in (0, 1):
            gains = [0.0] * n_classes
            for c, side in zip(classes, sides, strict=True):
                gains[c] += class_gains[c] * (side == child)
            order = sorted(range(n_classes), key=lambda c: (-gains[c], c))
            ranks.append([order.index(c) for c in range(n_classes)])
        course.append(
            sum(
                class_gains[c] / np.log2(2 + ranks[side][c])
                for c, side in zip(classes, sides, strict=True)
            )
        )
        moved = [
            side if ranks[0][c] == ranks[1][c] else int(ranks[1][c] < ranks[0][c])
            for c, side in zip(classes, sides, strict=True)
        ]
        if moved == sides:
            return sides, course
        sides = moved


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=30),
    st.sampled_from([[1.0] * 6, [1.0, 1.5, 2.0, 3.0, 5.0, 8.0]]),
)
def test_the_partition_is_that_of_documents_moved_one_by_one(documents, class_gains):
    # All six classes must occur, as they do in a node.
    classes = [c for c, _ in documents] + list(range(6))
    sides = [side for _, side in documents] + [0, 1, 0, 1, 0, 1]
    expected, course = alternate(classes, class_gains, sides)
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(course))
    gains = np.zeros((2, 6))
    for c, side in zip(classes, sides, strict=True):
        gains[side, c] += class_gains[c]
    moved = np.empty(6, np.int8)
    reached = kernels.split_classes(gains, moved)
    assert reached == pytest.approx(course[-1])
    found = [s if moved[c] < 0 else moved[c] for c, s in zip(classes, sides, strict=True)]
    assert found == expected


def logistic_objective(X, signs, costs, w):
    return np.abs(w).sum() + costs @ np.logaddexp(0, -signs * (X @ w))


def fit_columns(X, sides, costs, tolerance=1e-6, steps=200):
    columns = sp.csc_array(X)
    weights = np.zeros(X.shape[1])
    matrix = Columns(
        columns.indptr.astype(np.int64),
        columns.indices.astype(np.int32),
        columns.data.astype(np.float32),
    )
    fit_separator(matrix, sides, costs, 0, 0, Stopping(tolerance, steps, 50), weights)
    return weights


@pytest.mark.parametrize("seed", range(4))
def test_the_separator_reaches_the_optimum_of_liblinear(seed):
    rng = np.random.default_rng(seed)
    X = sp.random(80, 30, 0.3, rng=rng, format="csr").toarray().astype(np.float32)
    X = np.column_stack([X, np.ones(80)]).astype(np.float64)
    sides = rng.integers(0, 2, 80).astype(np.int8)
    signs, costs = 2.0 * sides - 1, np.array([3.0, 5.0])
    weights = fit_columns(X, sides, costs)
    liblinear = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-8, max_iter=5000
    ).fit(X, sides, sample_weight=costs[sides])
    ours = logistic_objective(X, signs, costs[sides], weights)
    theirs = logistic_objective(X, signs, costs[sides], liblinear.coef_[0])
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert 0 < np.count_nonzero(weights) < len(weights)


def test_the_separator_is_zero_where_the_l1_norm_outweighs_the_loss():
    X, y = weighted_problem()
    dense, sides = X.toarray(), (y > 0).astype(np.int8)
    # Below this C the optimum is zero; scikit-learn's bound, for a plain logistic loss.
    lowest = l1_min_c(dense, sides, loss="log", fit_intercept=False)
    assert not fit_columns(dense, sides, np.full(2, 0.99 * lowest)).any()
    assert fit_columns(dense, sides, np.full(2, 1.5 * lowest)).any()


def test_a_step_never_raises_the_objective():
    X, y = weighted_problem()
    dense, sides = X.toarray(), (y % 2).astype(np.int8)
    costs = np.array([20.0, 20.0])
    course = [
        logistic_objective(
            dense, 2.0 * sides - 1, costs[sides], fit_columns(dense, sides, costs, 0.0, steps)
        )
        for steps in range(6)
    ]
    assert np.all(np.diff(course) <= 1e-6)
    assert course[-1] < 0.9 * course[0]


def test_columns_of_a_node_are_those_of_its_documents():
    X, _ = weighted_problem()
    rows = Rows.from_matrix(X)
    documents = np.array([3, 17, 4, 90], np.int32)
    places = np.full(N_TERMS, -1, np.int32)
    starts, terms = np.empty(N_TERMS + 2, np.int64), np.empty(N_TERMS + 1, np.int32)
    cells, values = np.empty(1000, np.int32), np.empty(1000, np.float32)
    columns = Columns(starts, cells, values)
    n_columns = kernels.gather_columns(rows, documents, places, columns, terms)
    found = np.zeros((4, N_TERMS + 1), np.float32)
    for column in range(n_columns):
        entries = slice(starts[column], starts[column + 1])
        found[cells[entries], terms[column]] = values[entries]
    expected = np.column_stack([X.toarray()[documents].astype(np.float32), np.ones(4)])
    assert np.array_equal(found, expected)
    assert np.all(places == -1)


def walk(forest, tree, x):
    """The leaf that one dense document reaches, step by step."""
    node = forest.roots[tree]
    while forest.children[node, 0] >= 0:
        entries = slice(forest.starts[node], forest.starts[node + 1])
        weights = dict(zip(forest.ids[entries], forest.values[entries], strict=True))
        score = weights.pop(N_TERMS, 0.0) + sum(w * x[t] for t, w in weights.items())
        node = forest.children[node, int(score >= 0)]
    return node


def test_leaves_hold_the_documents_that_reach_them():
    X, y = weighted_problem()
    forest = grow(X, y)
    reached = forest.leaves(Rows.from_matrix(X), 0, len(y))
    assert len(np.unique(reached[0])) > 10
    for tree, leaves in enumerate(reached):
        for leaf in np.unique(leaves):
            entries = slice(forest.starts[leaf], forest.starts[leaf + 1])
            counts = np.bincount(y[leaves == leaf], minlength=N_CLASSES)
            shares = np.zeros(N_CLASSES)
            shares[forest.ids[entries]] = forest.values[entries]
            assert np.allclose(shares, counts / counts.sum(), atol=1e-6)
            assert len(forest.ids[entries]) == np.count_nonzero(counts)
        for document in range(0, len(y), 17):
            assert walk(forest, tree, X.toarray()[document]) == leaves[document]


def test_a_node_too_large_for_a_leaf_is_one_only_where_nothing_parts_it():
    X, y = weighted_problem()
    forest = grow(X, y, max_leaf=8)
    reached = forest.leaves(Rows.from_matrix(X), 0, len(y))
    sizes = [np.bincount(leaves).max() for leaves in reached]
    assert max(sizes) < 40
    same = sp.csr_array(np.ones((50, N_TERMS)))
    alike = grow(same, y[:50], n_trees=1)
    assert len(alike.children) == 1
    assert alike.values.sum() == pytest.approx(1.0)


def test_gains_weigh_the_leaves():
    X, y = weighted_problem()
    gains = np.arange(1.0, N_CLASSES + 1)
    forest = grow(X, y, gains=gains, max_leaf=len(y), n_trees=1)
    shares = np.zeros(N_CLASSES)
    shares[forest.ids] = forest.values
    assert np.allclose(shares, gains * np.bincount(y, minlength=N_CLASSES) / len(y), rtol=1e-5)


def test_scores_are_mean_shares_over_the_trees():
    problem = make_problem(1, 150)
    model = FastXML(n_trees=4, max_leaf=3, random_state=0).fit(problem.X[:120], problem.y[:120])
    found = model.predict_topk(problem.X[120:], 7)
    X = model.weighting_.transform(sp.csr_array(problem.X[120:])).toarray()
    forest = model.forest_
    for row, x in enumerate(X):
        shares = np.zeros(7)
        for tree in range(4):
            leaf = walk(forest, tree, x)
            entries = slice(forest.starts[leaf], forest.starts[leaf + 1])
            shares[forest.ids[entries]] += forest.values[entries]
        order = sorted(range(7), key=lambda c: (-shares[c], c))
        assert np.allclose(found.scores[row], shares[order] / 4, atol=1e-6)
        assert np.allclose(shares[found.classes[row]], shares[order], atol=1e-6)
        ties = np.diff(found.scores[row]) == 0
        assert np.all(np.diff(found.classes[row])[ties] > 0)


def test_learns_what_a_single_class_does_not_say():
    problem = make_problem(2, 400)
    model = FastXML(n_trees=10, random_state=0).fit(problem.X[:300], problem.y[:300])
    share = np.bincount(problem.y[300:]).max() / 100
    assert model.score(problem.X[300:], problem.y[300:]) > share + 0.2


def test_the_same_trees_for_any_number_of_threads():
    X, y = weighted_problem()
    one, two = grow(X, y, n_trees=5, n_jobs=1), grow(X, y, n_trees=5, n_jobs=2)
    for name in ("roots", "children", "starts", "ids", "values"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    other = grow(X, y, n_trees=5, seed=77)
    assert not np.array_equal(one.values, other.values)
    models = [
        FastXML(n_trees=5, random_state=3, n_jobs=n).fit(X, y).predict_topk(X, 3) for n in (1, 2)
    ]
    assert np.array_equal(models[0].classes, models[1].classes)
    assert np.array_equal(models[0].scores, models[1].scores)


def test_a_document_gets_the_same_answer_alone(problem):
    model = FastXML(n_trees=5, random_state=0).fit(problem.X, problem.y)
    together = model.predict_topk(problem.X, 4)
    for row in (0, 11, 59):
        alone = model.predict_topk(problem.X[row : row + 1], 4)
        assert np.array_equal(alone.classes[0], together.classes[row])
        assert np.array_equal(alone.scores[0], together.scores[row])


def test_small_and_empty_input():
    X = np.array([[3, 0], [2, 1], [0, 0], [0, 4], [1, 5], [0, 0]])
    y = np.array(["b", "b", "b", "a", "a", "c"])
    model = FastXML(n_trees=3, max_leaf=1, random_state=0).fit(X, y)
    top = model.predict_topk(X, 5)
    assert top.classes.shape == (6, 5)
    assert np.all(np.isneginf(top.scores[:, 3:]))
    assert set(top.classes[2, :3]) == {"a", "b", "c"}
    two = FastXML(n_trees=3, max_leaf=1, random_state=0).fit(X[[0, 3]], y[[0, 3]])
    assert set(two.predict(X)) <= {"a", "b"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, "n_trees must be an integer of at least 1; got 0"),
        ({"n_trees": 2.5}, "n_trees must be an integer of at least 1; got 2.5"),
        ({"max_leaf": 0}, "max_leaf must be an integer of at least 1; got 0"),
        ({"C": 0.0}, "C must be a finite number above 0; got 0.0"),
        ({"C": "big"}, "C must be a finite number above 0; got 'big'"),
    ],
)
def test_parameters_out_of_range_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        FastXML(**parameters).fit(problem.X, problem.y)


def test_clone_keeps_the_parameters():
    model = FastXML(n_trees=7, C=0.5, max_leaf=3, random_state=1, n_jobs=2)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["n_trees"] == 7
