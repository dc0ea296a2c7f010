"""Fractional Rademacher complexity and the variance r."""

import itertools
import math

import numpy as np
import pytest

from longtail.paper import theory


def test_closed_bound_by_hand():
    # 2 · 3 · 0.5 · sqrt(4 / 100) = 0.6
    assert theory.linear_complexity_bound(3.0, 0.5, 100, 4) == pytest.approx(0.6)


def test_bound_from_data_by_hand():
    # Two sets of two pairs; squared norms 9 + 16 and 0 + 4: (2 · 1 / 4) (5 + 2) = 3.5
    z = [[3.0, 0.0], [0.0, 0.0], [0.0, 4.0], [2.0, 0.0]]
    cover = theory.document_cover([0, 0, 1, 1])
    assert theory.linear_complexity_from_data(z, cover, 1.0) == pytest.approx(3.5)


def test_monte_carlo_agrees_with_all_signs():
    rng = np.random.default_rng(0)
    z, documents = rng.normal(size=(6, 2)), [0, 0, 1, 1, 2, 2]
    cover = theory.document_cover(documents)
    exact = np.mean(
        [
            sum(np.linalg.norm((np.array(signs)[s, None] * z[s]).sum(axis=0)) for s in cover.sets)
            for signs in itertools.product([-1, 1], repeat=6)
        ]
    ) * (2 * 1.5 / 6)
    estimate = theory.linear_complexity_monte_carlo(z, cover, 1.5, n_draws=4000, random_state=0)
    assert abs(estimate.value - exact) < 4 * estimate.standard_error
    assert estimate.standard_error < 0.02 * exact


def test_three_values_are_ordered():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 10))
    cover = theory.document_cover(np.repeat(np.arange(100), 3))
    estimate = theory.linear_complexity_monte_carlo(z, cover, 2.0, random_state=0)
    from_data = theory.linear_complexity_from_data(z, cover, 2.0)
    largest = np.linalg.norm(z, axis=1).max()
    closed = theory.linear_complexity_bound(2.0, largest, 300, cover.weight)
    assert estimate.value + 4 * estimate.standard_error < from_data * 1.02
    assert estimate.value < from_data < closed


def test_zero_one_bound_by_hand():
    # p = 2, n = 8: sqrt(2 · 2 · ln(4e) / 8) = sqrt((1 + ln 4) / 2)
    expected = math.sqrt((1 + math.log(4)) / 2)
    assert theory.zero_one_complexity_bound(2, 8) == pytest.approx(expected)


def test_zero_one_bound_with_fewer_pairs_than_features():
    # At most 2^n loss vectors: sqrt(2 n ln 2 / n)
    assert theory.zero_one_complexity_bound(10, 3) == pytest.approx(math.sqrt(2 * math.log(2)))


def test_zero_one_bound_is_above_the_true_value_on_the_line():
    # One feature, n pairs of value +1: the losses are all 0 or all 1; E sup Σ ξ ℓ = E max(0, Σ ξ).
    n = 10
    signs = np.array(list(itertools.product([-1, 1], repeat=n))).sum(axis=1)
    true_value = 2 / n * np.maximum(signs, 0).mean()
    assert true_value < theory.zero_one_complexity_bound(1, n)


def test_ramp_lies_between_the_two_step_losses():
    v = np.linspace(-2, 2, 41)
    ramp = theory.ramp_loss(v, margin=0.5)
    assert np.all((v <= 0) <= ramp)
    assert np.all(ramp <= (v < 0.5))
    assert theory.ramp_loss([0.125], margin=0.5).tolist() == [0.75]


def test_variance_by_hand():
    # One error in five: 0.2 · 0.8 · 5 / 4 = 0.2
    assert theory.loss_variance([1, 0, 0, 0, 0]) == pytest.approx(0.2)
    assert theory.loss_variance([0, 0]) == 0.0
    # 0.5 · 0.5 · 2 / 1 = 0.5, which no loss in [0, 1] has: capped.
    assert theory.loss_variance([0, 1]) == 0.25


COVER = theory.document_cover([0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.linear_complexity_bound(-1.0, 1.0, 10, 2), "weight_norm must be"),
        (lambda: theory.linear_complexity_bound(1.0, np.inf, 10, 2), "feature_norm must be"),
        (lambda: theory.linear_complexity_bound(1.0, 1.0, 0, 2), "n_pairs must be an integer"),
        (lambda: theory.linear_complexity_bound(1.0, 1.0, 10, 11), r"n_pairs \(here 10\); got 11"),
        (lambda: theory.linear_complexity_from_data([[1.0]], COVER, 1.0), "0 to 0; it holds 1"),
        (lambda: theory.linear_complexity_from_data([1.0], COVER, 1.0), r"shape \(n_pairs, p\)"),
        (
            lambda: theory.linear_complexity_monte_carlo([[1.0], [1.0]], COVER, 1.0, n_draws=1),
            "n_draws must be an integer of at least 2; got 1",
        ),
        (lambda: theory.zero_one_complexity_bound(0, 5), "n_features must be"),
        (lambda: theory.zero_one_complexity_bound(5, 0), "set_size must be"),
        (lambda: theory.ramp_loss([0.0], margin=0.0), "margin must be a positive number; got 0.0"),
        (lambda: theory.loss_variance([0.0, 2.0]), r"values in \[0, 1\]"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
