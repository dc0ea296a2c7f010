from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from longtail._parallel import SMALL_WORK
from longtail.model.statistics import ClassStatistics
from longtail.paper import pairwise as learning
from longtail.paper.features import pair_features
from longtail.paper.pairwise import (
    adversary_differences,
    fit_pairwise_scorer,
    pair_differences,
    svm_objective,
)
from longtail.paper.sampling import draw_pairs
from longtail.sparse import CountMatrix
from tests import oracle
from tests.conftest import examples, make_problem


def draw_differences(seed, n_pairs=300, n_features=4):
    """Pairs of which most, but not all, can be ordered."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(n_pairs, n_features)) + np.linspace(-0.5, 1.0, n_features)
    return differences * 10.0 ** rng.integers(-3, 4, n_features)


def draw_labels(seed, n_pairs):
    labels = np.where(np.random.default_rng(seed).random(n_pairs) < 0.5, -1.0, 1.0)
    labels[:2] = -1.0, 1.0
    return labels


def test_order_inside_a_pair():
    features = np.array([[[5.0], [2.0], [7.0]]])  # true class 1, adversaries 0 and 2
    differences, labels = pair_differences(features, np.array([[1, 0, 2]]))
    assert labels.tolist() == [-1.0, 1.0]
    assert differences.tolist() == [[2.0 - 5.0], [5.0 - 7.0]]


@pytest.mark.parametrize("options", [{}, {"sublinear": True}])
@pytest.mark.parametrize("adversaries", [1, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_adversary_differences_are_those_of_the_features(seed, adversaries, options):
    problem = make_problem(seed)
    problem.X[3] = 0  # a document without terms
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7, **options)
    sample = draw_pairs(problem.y, 7, 5, adversaries, seed)
    rows = CountMatrix.from_matrix(problem.X)
    computed = adversary_differences(rows, statistics, sample)
    features = pair_features(rows, statistics, sample.documents, sample.classes)
    expected = (features[:, :1] - features[:, 1:]).reshape(-1, 10)
    assert computed.dtype == np.float32
    assert np.array_equal(computed, expected.astype(np.float32))


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_differences_for_any_threads(n_jobs):
    problem = make_problem(0, n_documents=400, n_classes=80)
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 80)
    sample = draw_pairs(problem.y, 80, 400, 79, 0)
    assert len(sample) * 79 > SMALL_WORK  # enough for threads to be used
    arguments = CountMatrix.from_matrix(problem.X), statistics, sample
    one, many = adversary_differences(*arguments), adversary_differences(*arguments, n_jobs)
    assert np.array_equal(one, many)


@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_as_low_as_liblinear_and_at_the_same_place(seed, C):
    differences = draw_differences(seed)
    labels = draw_labels(seed, len(differences))
    scorer = fit_pairwise_scorer(differences * labels[:, None], labels, C)
    scaled = differences * labels[:, None] / scorer.scales
    options = {"C": C, "loss": "squared_hinge", "dual": False, "fit_intercept": False}
    svm = LinearSVC(**options, max_iter=10_000, tol=1e-10).fit(scaled, labels)
    mine, theirs = (
        oracle.svm_objective(weights, scaled.tolist(), labels, C)
        for weights in (scorer.weights * scorer.scales, svm.coef_[0])
    )
    assert mine <= theirs * (1 + 1e-9)
    assert mine == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(scorer.weights * scorer.scales, svm.coef_[0], atol=1e-5)


@pytest.mark.parametrize("chunk", [7, 300, 1 << 14])
def test_the_objective_is_the_oracles(chunk, monkeypatch):
    monkeypatch.setattr(learning, "PAIR_CHUNK", chunk)
    differences, weights = draw_differences(0), np.array([0.5, -0.1, 0.0, 0.2])
    scales = np.abs(differences).max(axis=0)
    expected = oracle.svm_objective(weights, (differences / scales).tolist(), np.ones(300), 0.3)
    assert svm_objective(weights, differences, scales, 0.3).value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_gradient_and_hessian_are_those_of_finite_differences(seed):
    differences = draw_differences(seed)
    scales = np.abs(differences).max(axis=0)
    weights = 5.0 * np.random.default_rng(seed).normal(size=4)

    def at(shift):
        return svm_objective(weights + shift, differences, scales, 0.3)

    here, step = at(0.0), 1e-7  # short enough for no margin to cross 1 on the way
    assert 0 < np.count_nonzero(differences / scales @ weights < 1) < 300
    for j, unit in enumerate(np.eye(4)):
        ahead, behind = at(step * unit), at(-step * unit)
        slope = (ahead.value - behind.value) / (2 * step)
        assert here.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        bend = (ahead.gradient - behind.gradient) / (2 * step)
        lower = slice(j + 1)  # the triangle that is filled
        np.testing.assert_allclose(here.hessian[j, lower], bend[lower], rtol=1e-5, atol=1e-5)


@examples(60)
@given(
    st.lists(st.lists(st.floats(-9, 9, width=16), min_size=3, max_size=3), min_size=1, max_size=12),
    st.sampled_from([1e-6, 0.01, 1.0, 1e6]),
)
def test_the_gradient_vanishes(differences, C):
    differences = np.array(differences)
    scorer = fit_pairwise_scorer(differences, None, C)
    end = svm_objective(scorer.weights * scorer.scales, differences, scorer.scales, C)
    # The Hessian is at least the identity, so the value is at most |gradient|^2 / 2 too high.
    assert 0.5 * end.gradient @ end.gradient <= 1e-6 * end.value
    assert end.value <= C * len(differences)  # what no weights at all would cost


def test_swapped_pairs_give_the_same_weights():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(200, 3)) + np.array([0.5, 0.0, -0.2])
    labels = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    differences *= labels[:, None]
    swap = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    one = fit_pairwise_scorer(differences, labels, 0.1)
    other = fit_pairwise_scorer(differences * swap[:, None], labels * swap, 0.1)
    bare = fit_pairwise_scorer(differences * labels[:, None], None, 0.1)
    for scorer in (other, bare):
        assert np.array_equal(one.weights, scorer.weights)
        assert np.array_equal(one.scales, scorer.scales)


def test_weights_apply_to_unscaled_features():
    rng = np.random.default_rng(1)
    differences = np.abs(rng.normal(size=(100, 2))) * [1.0, 1000.0]
    scorer = fit_pairwise_scorer(differences, np.ones(100), 1.0)
    assert np.all(differences @ scorer.weights > 0)
    assert scorer.scales[1] > 100


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_the_scale_of_a_feature_does_not_matter(scale):
    differences = draw_differences(2)
    plain = fit_pairwise_scorer(differences, None, 0.1)
    scaled = fit_pairwise_scorer(differences * [1.0, scale, 1.0, 1.0], None, 0.1)
    expected = plain.weights / [1.0, scale, 1.0, 1.0]
    np.testing.assert_allclose(scaled.weights, expected, rtol=1e-9)


def test_32_bits_are_enough_and_the_input_stays():
    differences = draw_differences(3).astype(np.float32)
    before = differences.copy()
    short, long = (
        fit_pairwise_scorer(d, None, 0.1) for d in (differences, differences.astype(float))
    )
    assert np.array_equal(differences, before)
    assert np.array_equal(short.weights, long.weights)  # sums are of 64 bits either way
    exact = fit_pairwise_scorer(draw_differences(3), None, 0.1)
    np.testing.assert_allclose(short.weights, exact.weights, rtol=1e-5)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_same_bits_for_any_threads(n_jobs):
    differences = draw_differences(4, n_pairs=100_000)
    one = fit_pairwise_scorer(differences, None, 0.01)
    many = fit_pairwise_scorer(differences, None, 0.01, n_jobs)
    assert np.array_equal(one.weights, many.weights)
    assert np.array_equal(one.scales, many.scales)


@pytest.mark.parametrize("n_pairs", [1, 2, 5])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_pairs_that_are_all_the_same(n_pairs, label):
    # |w|^2 / 2 + C n (1 - w1 - w2)^2 is lowest at w1 = w2 = 2 C n / (1 + 4 C n).
    scorer = fit_pairwise_scorer(np.full((n_pairs, 2), 3.0), np.full(n_pairs, label), 0.5)
    expected = label * n_pairs / (1 + 2 * n_pairs) / 3.0
    assert scorer.weights == pytest.approx([expected, expected])


def test_a_feature_that_never_differs_is_harmless():
    scorer = fit_pairwise_scorer(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0]), 1.0)
    assert scorer.weights[0] == pytest.approx(4 / 5)
    assert scorer.weights[1] == 0
    assert scorer.scales[1] == 1
    nothing = fit_pairwise_scorer(np.zeros((3, 2)), None, 1.0)
    assert nothing.weights.tolist() == [0.0, 0.0]
    subnormal = fit_pairwise_scorer(
        np.array([[1.0, 1e-310]]), None, 1.0
    )  # too little to be divided by
    assert subnormal.weights == pytest.approx([2 / 3, 0.0])


@pytest.mark.parametrize("C", [0, -1, np.nan, np.inf, "1"])
def test_bad_C(C):
    with pytest.raises(ValueError, match="C must be a positive number"):
        fit_pairwise_scorer(np.ones((1, 1)), np.ones(1), C)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_differences_must_be_finite(value):
    with pytest.raises(ValueError, match="differences must be finite"):
        fit_pairwise_scorer(np.array([[1.0], [value], [2.0]]), None, 1.0)


def test_no_pairs():
    with pytest.raises(ValueError, match="no pair"):
        fit_pairwise_scorer(np.ones((0, 3)), np.ones(0), 1.0)
