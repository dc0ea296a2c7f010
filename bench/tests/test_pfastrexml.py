from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from longtail_bench.baselines.fastxml import FastXML, Rows
from longtail_bench.baselines.pfastrexml import PfastReXML, propensities
from sklearn.base import clone

from tests.conftest import make_problem


def test_propensities_are_those_of_the_paper():
    sizes = np.array([1, 2, 10, 400])
    c = (np.log(413) - 1) * (1.5 + 1) ** 0.55
    expected = [1 / (1 + c * np.exp(-0.55 * np.log(n + 1.5))) for n in sizes]
    assert np.allclose(propensities(sizes), expected)
    assert np.all(np.diff(propensities(sizes)) > 0)
    assert not np.allclose(propensities(sizes, A=0.6, B=2.6), expected)
    assert np.array_equal(propensities(np.array([1, 1])), [1.0, 1.0])


def test_the_trees_weigh_documents_by_inverse_propensity():
    problem = make_problem(3, 150)
    model = PfastReXML(n_trees=2, max_leaf=150, random_state=0).fit(problem.X, problem.y)
    shares = np.zeros(7)
    forest = model.forest_
    leaf = slice(forest.starts[0], forest.starts[1])
    shares[forest.ids[leaf]] = forest.values[leaf]
    sizes = np.bincount(problem.y)
    assert np.allclose(shares, sizes / propensities(sizes) / 150, rtol=1e-5)


def test_scores_mix_trees_and_centroids():
    problem = make_problem(4, 160)
    model = PfastReXML(n_trees=4, max_leaf=3, alpha=0.7, gamma=12.0, random_state=0)
    model.fit(problem.X[:130], problem.y[:130])
    found = model.predict_topk(problem.X[130:], 7)
    X = model.weighting_.transform(sp.csr_array(problem.X[130:]))
    train = model.weighting_.transform(sp.csr_array(problem.X[:130])).toarray()
    centroids = np.array([train[problem.y[:130] == c].mean(axis=0) for c in range(7)])
    forest = model.forest_
    leaves = forest.leaves(Rows.from_matrix(sp.csr_array(X)), 0, 30)
    for row, x in enumerate(X.toarray()):
        shares = np.zeros(7)
        for leaf in leaves[:, row]:
            entries = slice(forest.starts[leaf], forest.starts[leaf + 1])
            shares[forest.ids[entries]] += forest.values[entries] / 4
        distances = ((x - centroids) ** 2).sum(axis=1)
        with np.errstate(divide="ignore"):
            scores = 0.7 * np.log(shares) - 0.3 * np.log1p(np.exp(6.0 * distances))
        order = sorted(range(7), key=lambda c: (-scores[c], c))
        assert np.allclose(found.scores[row], scores[order], atol=1e-4)
        assert found.classes[row, 0] == order[0]
        absent = np.isneginf(found.scores[row])
        assert np.array_equal(absent, shares[found.classes[row]] == 0)


def test_with_alpha_1_the_trees_decide():
    problem = make_problem(5, 160)
    model = PfastReXML(n_trees=3, alpha=1.0, random_state=0).fit(problem.X, problem.y)
    trees = FastXML._rank(model, model._weigh(sp.csr_array(problem.X).astype(float)), 1)
    found = model.predict_topk(problem.X, 1)
    assert np.array_equal(found.classes[:, 0], trees[0][:, 0])
    assert np.allclose(found.scores, np.log(trees[1]))


def test_centroids_help_where_trees_are_few():
    problem = make_problem(6, 500, n_classes=40, n_terms=80)
    train, test = slice(0, 350), slice(350, 500)
    accuracy = [
        PfastReXML(n_trees=5, alpha=alpha, random_state=0)
        .fit(problem.X[train], problem.y[train])
        .score(problem.X[test], problem.y[test])
        for alpha in (1.0, 0.8)
    ]
    assert accuracy[1] > accuracy[0]


def test_the_same_bits_for_any_number_of_threads():
    problem = make_problem(7, 150)
    one, two = (
        PfastReXML(n_trees=4, random_state=1, n_jobs=n)
        .fit(problem.X, problem.y)
        .predict_topk(problem.X, 3)
        for n in (1, 2)
    )
    assert np.array_equal(one.classes, two.classes)
    assert np.array_equal(one.scores, two.scores)


def test_small_and_empty_input():
    X = np.array([[3, 0], [2, 1], [0, 0], [0, 4], [1, 5]])
    y = np.array(["b", "b", "c", "a", "a"])
    model = PfastReXML(n_trees=3, max_leaf=1, random_state=0).fit(X, y)
    top = model.predict_topk(X, 5)
    assert top.classes.shape == (5, 5)
    assert np.all(np.isneginf(top.scores[:, 3:]))
    assert top.classes[0, 0] == "b"
    two = PfastReXML(n_trees=3, random_state=0).fit(X[[0, 3]], y[[0, 3]])
    assert two.predict(X[[0, 3]]).tolist() == ["b", "a"]  # the centroids part one leaf


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.5}, "alpha must be between 0 and 1; got 1.5"),
        ({"gamma": 0}, "gamma must be a finite number above 0; got 0"),
        ({"A": -1.0}, "A must be a finite number above 0; got -1.0"),
        ({"B": np.inf}, "B must be a finite number above 0; got inf"),
        ({"n_trees": 0}, "n_trees must be an integer of at least 1; got 0"),
    ],
)
def test_parameters_out_of_range_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        PfastReXML(**parameters).fit(problem.X, problem.y)


def test_clone_keeps_the_parameters():
    model = PfastReXML(n_trees=7, alpha=0.5, gamma=3.0, A=0.6, B=2.6)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["gamma"] == 3.0
