from __future__ import annotations

import numpy as np
import pytest

from longtail.learning import learn_scorer, pair_differences


def test_order_inside_a_pair():
    features = np.array([[[5.0], [2.0], [7.0]]])  # true class 1, adversaries 0 and 2
    differences, labels = pair_differences(features, np.array([[1, 0, 2]]))
    assert labels.tolist() == [-1.0, 1.0]
    assert differences.tolist() == [[2.0 - 5.0], [5.0 - 7.0]]


def test_swapped_pairs_give_the_same_weights():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(200, 3)) + np.array([0.5, 0.0, -0.2])
    labels = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    differences *= labels[:, None]
    swap = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    one = learn_scorer(differences, labels, 0.1)
    other = learn_scorer(differences * swap[:, None], labels * swap, 0.1)
    assert one.weights == pytest.approx(other.weights, rel=1e-3)
    assert np.array_equal(one.scales, other.scales)


def test_weights_apply_to_unscaled_features():
    rng = np.random.default_rng(1)
    differences = np.abs(rng.normal(size=(100, 2))) * [1.0, 1000.0]
    scorer = learn_scorer(differences, np.ones(100), 1.0)
    assert np.all(differences @ scorer.weights > 0)
    assert scorer.scales[1] > 100


@pytest.mark.parametrize("n_pairs", [1, 2, 5])
def test_one_label_is_enough(n_pairs):
    scorer = learn_scorer(np.ones((n_pairs, 2)), np.full(n_pairs, -1.0), 1.0)
    assert np.all(scorer.weights < 0)


def test_a_feature_that_never_differs_is_harmless():
    scorer = learn_scorer(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0]), 1.0)
    assert scorer.weights[1] == 0
    assert scorer.scales[1] == 1


@pytest.mark.parametrize("C", [0, -1, np.nan, np.inf, "1"])
def test_bad_C(C):
    with pytest.raises(ValueError, match="C must be a positive number"):
        learn_scorer(np.ones((1, 1)), np.ones(1), C)


def test_no_pairs():
    with pytest.raises(ValueError, match="no pair"):
        learn_scorer(np.ones((0, 3)), np.ones(0), 1.0)
