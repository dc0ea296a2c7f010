"""Listwise learning of feature and term weights, and the documents that it learns from."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.model.features import Contributions
from longtail.sparse import CountMatrix
from longtail.training.listwise import fit_feature_weights, fit_term_weights, listwise_objective
from longtail.training.sampling import draw_labels, hold_out
from tests import oracle_score as oracle
from tests.conftest import single_labels


def make_features(seed=0, n_documents=80, width=5):
    """The first class is high in feature 0 and low in feature 1; feature 2 is noise."""
    features = np.random.default_rng(seed).normal(size=(n_documents, width, 3))
    features[:, 0, :2] += [1.0, -0.5]
    return (features * [1.0, 100.0, 0.01]).astype(np.float32)


def listwise_loss(weights, features, decay, costs=None):
    """Value and gradient, by features as they are."""
    return listwise_objective(weights, features, np.ones(len(weights)), decay, costs)[:2]


@pytest.mark.parametrize("decay", [1e-3, 0.1])
def test_listwise_weights_are_stationary(decay):
    features = make_features()
    weights = fit_feature_weights(features, decay)
    scales = features.std(axis=(0, 1), dtype=np.float64)
    value, gradient = listwise_loss(weights * scales, features / scales, decay)
    assert gradient == pytest.approx(np.zeros(3), abs=1e-6)
    assert value < listwise_loss(np.zeros(3), features / scales, decay)[0] - 0.01
    assert weights[0] > 0 > weights[1]


@pytest.mark.parametrize("low_high", [(-0.1, 0.2), (0.0, 0.0), (0.3, 0.5), (-9.0, 9.0)])
def test_listwise_weights_keep_their_bounds(low_high):
    """At a bound the gradient points outwards, elsewhere it is zero: the optimum of the box."""
    features = make_features()
    bounds = [(-np.inf, np.inf), (low_high[0] / 100.0, low_high[1] / 100.0), (-np.inf, 20.0)]
    weights = fit_feature_weights(features, 1e-3, bounds)
    scales = features.std(axis=(0, 1), dtype=np.float64)
    _, gradient = listwise_loss(weights * scales, features / scales, 1e-3)
    for weight, slope, (low, high) in zip(weights, gradient, bounds, strict=True):
        assert low <= weight <= high
        assert slope >= -1e-6 or weight == pytest.approx(high)
        assert slope <= 1e-6 or weight == pytest.approx(low)


def test_gradient_and_hessian_are_those_of_finite_differences():
    features = make_features(5).astype(float)
    scales = features.std(axis=(0, 1))
    weights, shift = np.array([0.5, -0.2, 0.9]), 1e-6

    def at(change):
        return listwise_objective(weights + change, features, scales, 0.01)

    here = at(0.0)
    for j, unit in enumerate(np.eye(3)):
        ahead, behind = at(shift * unit), at(-shift * unit)
        assert here.gradient[j] == pytest.approx((ahead.value - behind.value) / (2 * shift))
        bend = (ahead.gradient - behind.gradient) / (2 * shift)
        assert here.hessian[j, : j + 1] == pytest.approx(bend[: j + 1])


def test_listwise_weights_beat_their_neighbours():
    features = make_features(1)
    scales = features.std(axis=(0, 1), dtype=np.float64)
    scaled = (features / scales).tolist()
    weights = fit_feature_weights(features) * scales
    best = oracle.listwise_loss(weights, scaled, 1e-3)
    rng = np.random.default_rng(0)
    for step in (0.3, 0.03):
        for _ in range(5):
            other = weights + rng.normal(size=3) * step
            assert oracle.listwise_loss(other, scaled, 1e-3) > best


def test_units_of_the_features_do_not_matter():
    features = make_features(2)
    one = fit_feature_weights(features)
    other = fit_feature_weights(features * np.array([4.0, 0.5, 1024.0], np.float32))
    assert one / [4.0, 0.5, 1024.0] == pytest.approx(other, rel=1e-3)


def test_zero_weights_lose_the_logarithm_of_the_width():
    value, gradient = listwise_loss(np.zeros(3), make_features(width=4), 1.0)
    assert value == pytest.approx(np.log(4))
    assert np.any(gradient != 0)


def test_large_scores_do_not_overflow():
    features = np.array([[[1e5], [-1e5]], [[-1e5], [1e5]]])
    value, gradient = listwise_loss(np.array([1.0]), features, 0.0)
    assert value == pytest.approx(1e5)
    assert gradient == pytest.approx([1e5])


def test_a_shared_shift_of_a_row_changes_nothing():
    features = make_features(3).astype(float)
    weights = np.array([0.5, -0.01, 3.0])
    shifted = features + np.random.default_rng(0).normal(size=(80, 1, 3))
    one, other = (listwise_loss(weights, f, 0.0) for f in (features, shifted))
    assert one[0] == pytest.approx(other[0])
    assert one[1] == pytest.approx(other[1])


def test_a_feature_that_is_always_zero_gets_no_weight():
    features = make_features(4)
    features[:, :, 2] = 0
    assert fit_feature_weights(features)[2] == 0


def test_a_feature_that_never_differs_gets_no_weight():
    features = make_features(4)
    features[:, :, 2] = 0.69
    assert abs(fit_feature_weights(features)[2]) < 1e-3


def split(parts):
    """Give contributions of a slice of the oracle's parts, as the learner asks for them."""
    return lambda part: contributions(parts[part])


def contributions(parts):
    """Contributions of the oracle's parts; each document has terms in ascending order."""
    lengths = [len(p.terms[0]) * len(p.terms) for p in parts]
    return Contributions(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([v for p in parts for row in p.terms for v in row.values()], np.float32),
        np.array([p.constants for p in parts], np.float32),
    )


# Term 0 speaks for the first class, term 1 against it, term 2 for neither; term 3 is never seen.
ROWS = CountMatrix.from_matrix(np.array([[1.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]))
TOY = [
    oracle.Parts([{0: 1.0, 1: 0.5}, {0: 0.25, 1: 1.0}], [0.0, 0.5]),
    oracle.Parts([{0: 1.0, 2: 0.5}, {0: 0.25, 2: 0.5}], [0.25, 0.25]),
    oracle.Parts([{1: 0.25, 2: 0.5}, {1: 1.0, 2: 0.5}], [0.5, -0.5]),
]
ORDER = np.arange(3)


@pytest.mark.parametrize("n_epochs", [1, 2])
def test_term_weights_take_the_steps_of_adagrad(n_epochs):
    learned = fit_term_weights(
        ROWS, ORDER, split(TOY), learning_rate=0.3, decay=0.1, n_epochs=n_epochs
    )
    expected = oracle.learn_factors(TOY, 0.3, 0.1, n_epochs)
    assert learned == pytest.approx([expected.get(t, 1.0) for t in range(4)], rel=1e-6)
    assert learned[3] == 1.0
    assert learned[0] > 1 > learned[1]


def test_the_first_step_by_hand():
    # Shares are one half each, so the gradient of term t is (theirs - ours) / 2.
    parts = [oracle.Parts([{0: 1.0, 1: 0.5}, {0: 0.5, 1: 1.0}], [0.0, 0.0])]
    learned = fit_term_weights(ROWS, ORDER[:1], split(parts), learning_rate=0.1, n_epochs=1)
    step = 0.1 * 0.25 / np.sqrt(0.01 + 0.25**2)
    assert learned == pytest.approx([np.exp(step), np.exp(-step), 1.0, 1.0], rel=1e-12)


def test_term_weights_lower_the_loss():
    losses = [oracle.factored_loss(TOY, {})]
    for n_epochs in (1, 3, 10, 30):
        learned = fit_term_weights(ROWS, ORDER, split(TOY), n_epochs=n_epochs)
        assert np.all(learned > 0)
        losses.append(oracle.factored_loss(TOY, dict(enumerate(learned.tolist()))))
    assert np.all(np.diff(losses) < 0)
    assert losses[-1] < losses[0] / 2


def test_the_penalty_pulls_towards_one():
    free, bound = (
        fit_term_weights(ROWS, ORDER, split(TOY), decay=decay, n_epochs=50) for decay in (0, 1)
    )
    assert np.all(np.abs(np.log(bound[:2])) < np.abs(np.log(free[:2])) / 2)


def test_term_weights_of_no_epochs_or_documents_are_one():
    assert fit_term_weights(ROWS, ORDER, split(TOY), n_epochs=0).tolist() == [1.0] * 4
    assert fit_term_weights(ROWS, ORDER[:0], split([])).tolist() == [1.0] * 4


@pytest.mark.parametrize("block", [1, 2, 3])
def test_all_passes_over_a_block_come_before_the_next(block):
    learned = fit_term_weights(ROWS, ORDER, split(TOY), n_epochs=3, block=block)
    blocks = [TOY[start : start + block] for start in range(0, len(TOY), block)]
    expected = oracle.learn_factors([part for own in blocks for part in 3 * own], 0.1, 1e-3, 1)
    assert learned[:3] == pytest.approx([expected[t] for t in range(3)], rel=1e-6)


def test_the_order_of_documents_is_the_order_of_steps():
    order = np.array([2, 0, 1])
    parts = [TOY[i] for i in order]
    learned = fit_term_weights(ROWS, order, split(parts), n_epochs=1)
    expected = oracle.learn_factors(parts, 0.1, 1e-3, 1)
    assert learned[:3] == pytest.approx([expected[t] for t in range(3)], rel=1e-6)
    forward = fit_term_weights(ROWS, ORDER, split(TOY), n_epochs=1)
    assert not np.allclose(learned, forward, rtol=1e-6)


Y = np.array(
    [0, 1, 1, 2, 2, 2, 3, 4, 4, 4, 4]
)  # classes 0, 3 and (empty) 5 have no second document
LABELS = single_labels(Y, 6)
NOT_ALONE = np.flatnonzero(~np.isin(Y, [0, 3]))


@pytest.mark.parametrize("most", [0, 1, 4, 9, 10, 1000])
def test_drawn_documents_are_distinct_and_never_alone(most):
    for seed in range(20):
        drawn = draw_labels(LABELS, most, seed)
        assert len(drawn) == len(set(drawn.tolist())) == min(most, 9)
        assert set(drawn.tolist()) <= set(NOT_ALONE.tolist())
        assert drawn.dtype == np.int64


def test_draws_depend_on_the_seed_alone():
    drawn = draw_labels(LABELS, 5, 3)
    assert np.array_equal(drawn, draw_labels(LABELS, 5, 3))
    assert np.array_equal(drawn, draw_labels(LABELS, 9, 3)[:5])  # more is more of the same
    assert len({tuple(draw_labels(LABELS, 9, seed)) for seed in range(50)}) > 45


def test_draws_are_uniform_in_every_place():
    drawn = np.array([draw_labels(LABELS, 4, seed) for seed in range(3600)])
    for column in drawn.T:
        counts = np.bincount(column, minlength=11)[NOT_ALONE]
        # Binomial(3600, 1/9): mean 400, standard deviation 19.
        assert np.all(np.abs(counts - 400) < 95)


def test_documents_kept_aside_are_not_drawn():
    aside = np.array([1, 5, 8])
    for seed in range(20):
        drawn = draw_labels(LABELS, 100, seed, without=aside)
        every = draw_labels(LABELS, 100, seed)
        assert drawn.tolist() == [i for i in every.tolist() if i not in aside]


@pytest.mark.parametrize("most", [0, 1, 4, 6, 100])
def test_no_class_loses_its_last_document(most):
    seen = set()
    for seed in range(60):
        aside = hold_out(LABELS, most, seed)
        assert len(aside) == len(set(aside.tolist())) == min(most, 6)  # 11 documents, 5 classes
        assert set(np.delete(Y, aside).tolist()) == set(Y.tolist())
        assert np.array_equal(aside, hold_out(LABELS, most, seed))
        seen |= set(aside.tolist())
    assert seen == (set(NOT_ALONE.tolist()) if most else set())  # which one stays is random


def test_nothing_to_draw():
    assert len(draw_labels(single_labels(np.arange(5)), 10, 0)) == 0
    assert len(draw_labels(single_labels([], 5), 10, 0)) == 0
    assert len(hold_out(single_labels(np.arange(5)), 10, 0)) == 0
    assert len(hold_out(single_labels([], 5), 10, 0)) == 0


def test_a_row_that_costs_twice_counts_as_two():
    features, costs = make_features(3), np.arange(80) % 3 + 1.0
    repeated = np.repeat(features, costs.astype(int), axis=0)
    value, gradient = listwise_loss(np.array([0.5, -0.01, 3.0]), features, 0.1, costs)
    expected, expected_gradient = listwise_loss(np.array([0.5, -0.01, 3.0]), repeated, 0.1)
    assert value == pytest.approx(expected)
    assert gradient == pytest.approx(expected_gradient)
    ones = fit_feature_weights(features, costs=np.ones(80))
    assert np.array_equal(ones, fit_feature_weights(features))


def test_steps_of_term_weights_count_by_cost():
    parts = [oracle.Parts([{0: 1.0, 1: 0.5}, {0: 0.5, 1: 1.0}], [0.0, 0.0])]
    costs = np.array([0.5])
    learned = fit_term_weights(ROWS, ORDER[:1], split(parts), n_epochs=1, costs=costs)
    step = 0.1 * 0.125 / np.sqrt(0.01 + 0.125**2)  # half of the gradient
    assert learned == pytest.approx([np.exp(step), np.exp(-step), 1.0, 1.0], rel=1e-12)
    plain = fit_term_weights(ROWS, ORDER, split(TOY))
    assert np.array_equal(fit_term_weights(ROWS, ORDER, split(TOY), costs=np.ones(3)), plain)
