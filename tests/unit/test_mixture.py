"""How much features and residuals count, by the size of the class."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import LongTailClassifier
from longtail.model.features import SIZE, weigh_by_size
from longtail.model.scorer import ClassResiduals
from longtail.training.mixture import (
    MIN_BENT,
    MIN_MIXED,
    N_FEATURES,
    N_PARTS,
    SEPARATOR,
    Mixture,
    PairParts,
    add_separators,
    fit_mixture,
)
from longtail.training.self_check import SelfCheck


def make_parts(n_documents=3000, n_candidates=5, largest=1000, seed=0):
    """Candidates of sizes up to `largest`; the first feature tells the true class of large ones.

    The residual tells the true class of small ones, and misleads among the large.
    """
    rng = np.random.default_rng(seed)
    shape = n_documents, n_candidates
    candidates = np.argsort(rng.random((n_documents, 40)), axis=1)[:, :n_candidates]
    sizes = np.geomspace(1, largest, 40).round()
    true_classes = candidates[np.arange(n_documents), rng.integers(0, n_candidates, n_documents)]
    correct = candidates == true_classes[:, None]
    log_sizes = np.log(sizes)[candidates]
    values = rng.normal(size=(*shape, N_PARTS))
    large = log_sizes / np.log(max(largest, 2))
    values[:, :, 0] += 2 * correct * large
    values[:, :, N_FEATURES] += 2 * correct * (1 - large)
    return PairParts(values[:, :, 0], values, log_sizes), correct, candidates


def share_correct(mixture, parts, correct, candidates):
    best = mixture.mix(parts).argmax(axis=1)
    return np.mean(correct[np.arange(len(best)), best])


def test_what_counts_depends_on_the_size():
    learned = fit_mixture(*make_parts())
    of_residual = weigh_by_size(learned.residuals[:, 0], np.log([1, 1000]))
    of_feature = weigh_by_size(learned.features[:, 0], np.log([1, 1000]))
    assert of_residual[0] > of_residual[1]
    assert of_feature[0] < of_feature[1]
    assert learned.features[1, 2] == 0
    plain = fit_mixture(*make_parts(), by_size=False)
    assert not plain.features[1:].any()
    assert not plain.residuals[1:].any()
    shares = [share_correct(m, *make_parts(seed=1)) for m in (Mixture(), plain, learned)]
    assert shares[0] < shares[1] < shares[2]


def test_classes_of_one_size_say_nothing_about_the_size():
    learned = fit_mixture(*make_parts(largest=2))
    assert not learned.features[1:].any()
    assert learned.features[0, 2] == 0
    assert learned.features[0, 0] != 0


def test_too_few_documents_change_nothing():
    mixture = fit_mixture(*make_parts(MIN_MIXED - 1))
    assert not mixture.features.any()
    assert mixture.residuals.tolist() == [[1, 1, 0, 0], *[[0, 0, 0, 0]] * 4]


def test_candidates_that_do_not_differ_leave_the_plain_mixture(caplog):
    """A part that is the same everywhere has no scale; times ln n_c it still differs."""
    parts, correct, candidates = make_parts()
    values = np.ones_like(parts.values) * np.arange(1, N_PARTS + 1)
    mixture = fit_mixture(PairParts(parts.scores, values, parts.log_sizes), correct, candidates)
    assert not mixture.features.any()
    assert mixture.residuals.tolist() == [[1, 1, 0, 0], *[[0, 0, 0, 0]] * 4]
    assert "do not differ enough" in caplog.text


def test_the_size_itself_counts_alike_for_all():
    learned = fit_mixture(*make_parts(3 * MIN_BENT))
    assert learned.features[0, SIZE] != 0
    assert not learned.features[1:, SIZE].any()
    assert learned.features[2:, 0].any()


def test_with_few_documents_what_counts_is_a_line():
    mixture = fit_mixture(*make_parts(MIN_BENT - 1))
    assert mixture.features[1].any()
    assert not mixture.features[2:].any()
    assert not mixture.residuals[2:].any()
    assert fit_mixture(*make_parts(MIN_BENT)).features[2:].any()


def test_documents_without_their_class_change_nothing():
    parts, correct, candidates = make_parts(500)
    correct[::2] = False
    some = fit_mixture(parts, correct, candidates)
    same = fit_mixture(parts[1::2], correct[1::2], candidates[1::2])
    np.testing.assert_allclose(some.features, same.features)


def test_residuals_as_they_count():
    residuals = ClassResiduals(
        np.array([0, 1, 2]), np.array([3, 4], np.int32), np.array([2, 4], np.float32), np.ones(2)
    )
    sizes = np.array([1, 20])
    rows = [[0.5, 0.25, 0, 0], [0.125, 0.5, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [5, 5, 0, 0]]
    mixture = Mixture(residuals=np.array(rows, float))
    scaled = mixture.scale(residuals, None, sizes)
    assert scaled.weights == pytest.approx([1, 4 * (0.5 + 0.125 * np.log(20) + np.log(10))])
    assert scaled.biases == pytest.approx([0.25, 0.25 + 0.5 * np.log(20) + np.log(4)])
    assert len(Mixture.without_residuals().scale(residuals, None, sizes).weights) == 0
    assert SelfCheck().with_mixture(mixture).kept_mixture.residuals.tolist() == rows


def test_separators_are_added_to_residuals_as_they_count():
    residuals = ClassResiduals(
        np.array([0, 1, 2]), np.array([3, 4], np.int32), np.array([2, 4], np.float32), np.ones(2)
    )
    separators = ClassResiduals(
        np.array([0, 2, 3]),
        np.array([1, 3, 0], np.int32),
        np.array([8, 16, 32], np.float32),
        np.array([3.0, 5.0]),
    )
    rows = np.array([[0.5, 0.25, 0.125, 0.25], [0.0, 0.0, 1.0, 0.5], *[[0.0] * 4] * 3])
    mixture = Mixture(residuals=rows)
    assert mixture.uses_separators
    total = mixture.scale(residuals, separators, np.array([1, 20]))
    of_large, of_bias = 0.125 + np.log(20), 0.25 + 0.5 * np.log(20)
    assert total.indptr.tolist() == [0, 2, 4]
    assert total.indices.tolist() == [1, 3, 0, 4]
    assert total.weights == pytest.approx([1, 1 + 2, 32 * of_large, 2])
    assert total.biases == pytest.approx([0.25 + 3 / 4, 0.25 + 5 * of_bias])
    rows[:, 2] = 0.0
    assert mixture.uses_separators  # the bias alone
    rows[:, 3] = 0.0
    assert not mixture.uses_separators
    assert mixture.scale(residuals, separators, np.array([1, 20])).weights.tolist() == [1, 2]


def make_parts_with_separators(n_documents=3000, largest=1000, seed=0):
    """The separator tells the true class as well, of large classes best."""
    parts, correct, candidates = make_parts(n_documents, largest=largest, seed=seed)
    large = parts.log_sizes / np.log(max(largest, 2))
    parts.values[:, :, SEPARATOR] += correct * (1 + large)
    return parts, correct, candidates


def test_separators_count_beside_features_that_stay():
    given = make_parts_with_separators()
    learned = fit_mixture(*given)
    assert not learned.uses_separators
    added = add_separators(learned, *given)
    assert added.uses_separators
    assert added.residuals[2:].any()
    assert np.array_equal(added.features, learned.features)
    of_separator = weigh_by_size(added.residuals[:, SEPARATOR - N_FEATURES], np.log([1, 1000]))
    assert 0 < of_separator[0] < of_separator[1]
    of_bias = weigh_by_size(added.residuals[:, SEPARATOR + 1 - N_FEATURES], np.log([1, 1000]))
    assert np.abs(of_bias).max() < 0.1 * of_separator[1]  # it says nothing
    plain = add_separators(learned, *given, by_size=False)
    factor = plain.residuals[1, 0] / learned.residuals[1, 0]  # of all that depends on the size
    np.testing.assert_allclose(plain.residuals[1:], factor * learned.residuals[1:])
    others = make_parts_with_separators(seed=1)
    shares = [share_correct(m, *others) for m in (Mixture(), learned, plain, added)]
    assert shares[0] < shares[1] < min(shares[2:])


def test_separators_of_few_documents_count_by_a_line_or_not_at_all():
    given = make_parts_with_separators(MIN_BENT - 1)
    added = add_separators(Mixture(), *given)
    assert added.residuals[1].all()
    assert not added.residuals[2:].any()
    few = make_parts_with_separators(MIN_MIXED - 1)
    assert add_separators(learned := fit_mixture(*few), *few) is learned
    of_one_size = make_parts_with_separators(largest=2)
    assert not add_separators(Mixture(), *of_one_size).residuals[1:].any()


def test_separators_do_not_count_where_features_would_count_for_nothing():
    """The result is divided by what the features count."""
    parts, correct, candidates = make_parts_with_separators()
    against = Mixture.without_residuals()
    misled = PairParts(-5.0 * correct, parts.values, parts.log_sizes)
    assert add_separators(against, misled, correct, candidates) is against


@pytest.mark.parametrize("n_documents", [1, 3])
def test_a_new_class_does_not_win_everywhere(n_documents):
    """Where all classes are of one size, a new one, much smaller, must not profit from that."""
    rng = np.random.default_rng(0)
    n_classes, of_class = 60, 25
    topics = rng.dirichlet(np.full(300, 0.05), n_classes + 1)
    y = np.repeat(np.arange(n_classes), of_class)
    X = np.array([rng.multinomial(12, topics[c]) for c in y])
    new = np.array([rng.multinomial(12, topics[n_classes]) for _ in range(n_documents)])
    test = np.array([rng.multinomial(12, topics[c]) for c in np.repeat(np.arange(n_classes), 5)])
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    before = classifier.predict(test)
    after = classifier.partial_fit(new, np.full(n_documents, n_classes)).predict(test)
    assert np.mean(after == n_classes) < 0.02
    assert np.mean(after == before) > 0.97
