"""What is observed of documents before they are taught, against a slow oracle."""

from dataclasses import replace

import numpy as np
import pytest

from longtail import LongTailClassifier
from longtail.model.scorer import ClassResiduals
from longtail.sparse import CountMatrix
from longtail.training import in_use, observed
from longtail.training.changing import derive, merge
from longtail.training.in_use import observe, take_effect
from longtail.training.mixture import Mixture
from longtail.training.observed import CORRECT, FOUND, MISSED, UNKNOWN, InUse, Observed, solve
from longtail.training.ranking import rank_documents
from tests.estimator.test_recent import make_documents

CANDIDATES = 6


@pytest.fixture(scope="module")
def problem():
    X, y = make_documents(n_classes=40, per_class=12, n_terms=120)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order], y[order]


def with_residuals(model, scale):
    """Residuals of five random terms for each class."""
    state, rng = model._state, np.random.default_rng(0)
    n_classes = len(state.classes)
    terms = [np.sort(rng.choice(120, 5, replace=False)) for _ in range(n_classes)]
    weights = (scale * rng.normal(size=5 * n_classes)).astype(np.float32)
    residuals = ClassResiduals(
        5 * np.arange(n_classes + 1),
        np.concatenate(terms).astype(np.int32),
        weights,
        0.1 * scale * rng.normal(size=n_classes),
    )
    model._state = derive(replace(state, residuals=residuals))
    return model


@pytest.fixture(scope="module")
def model(problem):
    X, y = problem
    fitted = LongTailClassifier(candidates=CANDIDATES, random_state=0).fit(X[:300], y[:300])
    state = fitted._state
    features = np.zeros((5, 6))
    features[0, 1], features[1, 0], features[2, 3] = 0.05, 0.4, -0.02
    mixture = Mixture(features, state.check.kept_mixture.residuals)
    fitted._state = replace(state, check=state.check.with_mixture(mixture))
    return with_residuals(fitted, 0.5)


def ids_of(state, labels):
    classes = state.all_classes.tolist()
    return np.array([classes.index(label) if label in classes else -1 for label in labels])


def reweigh(state, weights):
    """The same model with other weights in use: everything is built anew."""
    merged = merge(state)
    scale = np.full(len(merged.classes), weights[1])
    return derive(
        replace(
            merged,
            check=merged.check.scale_features(weights[0]),
            residuals=merged.residuals.scale(scale, scale),
        )
    )


def oracle_losses(state, counts, labels, weights, listed):
    """Sum of the softmax losses of labels among the candidates, all classes ranked in full."""
    loss = 0.0
    ids, scores = rank_documents(reweigh(state, weights), counts, 40, 40)
    for row, label in enumerate(labels):
        if label not in listed[row]:
            continue
        of_class = dict(zip(ids[row].tolist(), scores[row].tolist(), strict=True))
        chosen = np.array([of_class[c] for c in listed[row]])
        loss += np.log(np.exp(chosen - of_class[label]).sum())
    return loss


@pytest.mark.parametrize("taught", [False, True])
def test_sums_are_the_losses_as_quadratic_functions(problem, model, taught):
    """Gradient and curvature by differences of whole models with other weights."""
    X, y = problem
    if taught:  # classes in the overlay, one of them new
        model = LongTailClassifier.from_state(model._state, candidates=CANDIDATES)
        model.partial_fit(X[300:320], np.where(np.arange(20) < 17, y[300:320], "new"))
    state, counts = model._state, CountMatrix.from_matrix(X[320:360])
    labels = ids_of(state, y[320:360])
    seen = observe(state, counts, labels, CANDIDATES)
    ids, _ = rank_documents(state, counts, CANDIDATES, 40)
    listed = [row[row >= 0].tolist() for row in ids]
    n = sum(label in row for label, row in zip(labels.tolist(), listed, strict=True))
    assert 20 < n <= 40
    assert seen.sums[5] == n
    h = 0.02
    at = {
        (a, b): oracle_losses(state, counts, labels.tolist(), (1 + a * h, 1 + b * h), listed)
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
    }
    gradient = np.array([at[1, 0] - at[-1, 0], at[0, 1] - at[0, -1]]) / (2 * h)
    first = (at[1, 0] - 2 * at[0, 0] + at[-1, 0]) / h**2
    second = (at[0, 1] - 2 * at[0, 0] + at[0, -1]) / h**2
    both = (at[1, 1] - at[1, -1] - at[-1, 1] + at[-1, -1]) / (4 * h**2)
    assert seen.sums[:3] == pytest.approx([first, both, second], rel=0.02, abs=0.02)
    A = np.array([[first, both], [both, second]])
    assert seen.sums[3:5] == pytest.approx(A.sum(axis=1) - gradient, rel=0.02, abs=0.02)


def test_sums_refer_to_weights_of_one(problem, model):
    """Observed at other weights, they are those of the same losses."""
    X, y = problem
    state, counts = model._state, CountMatrix.from_matrix(X[320:360])
    weights = np.array([0.5, 0.25])
    scaled = replace(reweigh(state, weights), in_use=InUse(weights=weights))
    seen = observe(scaled, counts, ids_of(state, y[320:360]), CANDIDATES)
    again = reweigh(scaled, 1 / weights)
    assert np.allclose(again.scorer.weights, merge(state).scorer.weights, atol=1e-5)
    A = np.array([[seen.sums[0], seen.sums[1]], [seen.sums[1], seen.sums[2]]])
    ids, _ = rank_documents(scaled, counts, CANDIDATES, 40)
    listed = [row[row >= 0].tolist() for row in ids]
    labels = ids_of(state, y[320:360]).tolist()
    h = 0.01
    for j, step in enumerate(np.eye(2) * h):
        up, down = (
            oracle_losses(scaled, counts, labels, 1 + sign * step / weights, listed)
            for sign in (1, -1)
        )
        assert (A @ weights - seen.sums[3:5])[j] == pytest.approx(
            (up - down) / (2 * h), rel=0.03, abs=0.03
        )


def test_weights_are_where_the_sum_is_lowest():
    rng = np.random.default_rng(0)
    for _ in range(20):
        M, n = rng.normal(size=(2, 2)), 40.0
        A = 30 * (M @ M.T + 0.3 * np.eye(2))
        b = A @ rng.uniform(0.2, 1.3, 2)
        found = solve(np.array([A[0, 0], A[0, 1], A[1, 1], *b, n]))
        prior = observed.PRIOR_DOCUMENTS / n * np.diag(A)

        def loss(w, A=A, b=b, prior=prior):
            return 0.5 * w @ A @ w - b @ w + 0.5 * prior @ (w - 1) ** 2

        for step in 0.01 * rng.normal(size=(30, 2)):
            other = np.clip(found + step, observed.MIN_WEIGHT, observed.MAX_WEIGHT)
            inside = np.all((found > 0.06) & (found < 1.49))
            assert not inside or loss(other) >= loss(found) - 1e-9


def test_without_evidence_the_weights_stay():
    assert solve(np.zeros(6)).tolist() == [1.0, 1.0]
    assert InUse().learn().weights.tolist() == [1.0, 1.0]
    assert solve(np.array([0.0, 0.0, 5.0, 0.0, 5.0, 9.0]))[0] == pytest.approx(1.0)


@pytest.mark.parametrize("sums", [[1e300] * 6, [-1e300, 0, 1, 1, 1, 1], [0, 1e10, 0, 1, 1, 1]])
def test_whatever_a_file_holds_weights_are_in_their_bounds(sums):
    weights = solve(np.array(sums, np.float64))
    assert np.all((weights >= observed.MIN_WEIGHT) & (weights <= observed.MAX_WEIGHT))


def test_residuals_that_mislead_lose_their_weight(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X[:300], y[:300])
    noise = with_residuals(model, 9.0)._state.residuals.weights
    before = model.score(X[300:], y[300:])
    for first in range(300, 480, 30):
        model.partial_fit(X[first : first + 30], y[first : first + 30])
    state = model._state
    assert state.in_use.weights[1] < 0.3
    assert np.abs(state.residuals.weights).max() < 0.3 * np.abs(noise).max()
    assert model.score(X[300:], y[300:]) > before


def test_each_document_has_one_outcome(problem, model):
    X, y = problem
    state, counts = model._state, CountMatrix.from_matrix(X[300:])
    labels = ids_of(state, y[300:])
    labels[:10] = -1
    seen = observe(state, counts, labels, CANDIDATES)
    ids, _ = rank_documents(state, counts, CANDIDATES, 40)
    expected = []
    for row, label in zip(ids.tolist(), labels.tolist(), strict=True):
        kinds = CORRECT if row[0] == label else FOUND if label in row else MISSED
        expected.append(UNKNOWN if label < 0 else kinds)
    assert seen.documents[:, observed.RESULT].tolist() == expected
    top = model.predict_proba_topk(X[300:], 1).scores[:, 0]
    assert np.allclose(seen.documents[:, observed.PROBABILITY], top, atol=1e-6)


def test_of_many_documents_some_are_observed(problem, model, monkeypatch):
    X, y = problem
    monkeypatch.setattr(in_use, "MAX_OBSERVED", 50)
    counts = CountMatrix.from_matrix(X[300:])
    seen = observe(model._state, counts, ids_of(model._state, y[300:]), CANDIDATES)
    assert len(seen.documents) == 50


def test_a_document_of_several_labels_is_one_outcome():
    X, y = make_documents(n_classes=40, per_class=12, n_terms=120)
    sets = [[label, f"all {i % 3}"] for i, label in enumerate(y.tolist())]
    model = LongTailClassifier(random_state=0).fit(X, sets)
    calibrator = model._state.calibrator
    model.partial_fit(X[:30], sets[:30])
    [entry] = model._state.pending.values()
    assert len(entry.class_ids) == 60
    assert len(entry.learned.documents) == 30
    assert entry.learned.sums[5] > 30  # labels
    counts, labels = in_use.pending_documents(model._state)
    assert counts.n_documents == 30
    assert labels.sizes.tolist() == [2] * 30
    model.refine()
    assert model._state.calibrator.n_outcomes == calibrator.n_outcomes  # marginals stay
    assert not model._state.pending


def test_what_waits_takes_effect_once(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X[:300], y[:300])
    model.partial_fit(X[300:360], y[300:360])
    state = model._state
    assert state.calibrator.n_outcomes == 0  # teaching changes sums alone
    model.refine()
    learned = model._state
    assert learned.calibrator.n_outcomes == 60
    assert learned.in_use.sums[5] > 0
    assert not learned.in_use.added.any()
    assert take_effect(learned) is learned
    fresh = LongTailClassifier(calibrate=False, random_state=0).fit(X[:300], y[:300])
    fresh.partial_fit(X[300:360], y[300:360]).refine()
    assert not fresh._state.calibrator.is_calibrated


def test_what_was_told_before_does_not_count_twice(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X[:300], y[:300])
    model.recalibrate(X[300:360], y[300:360])
    model.partial_fit(X[300:380], y[300:380]).refine()
    assert model._state.calibrator.n_outcomes == 80


def test_joined_they_are_in_their_order():
    parts = [Observed(np.full((1, 5), i), np.full(6, 0.1 * i)) for i in range(4)]
    joined = Observed.join(parts)
    assert joined.documents[:, 0].tolist() == [0, 1, 2, 3]
    waiting = InUse().wait(parts[:2]).wait(parts[2:])
    assert np.array_equal(waiting.outcomes, joined.documents)
    assert np.array_equal(waiting.added, joined.sums)
