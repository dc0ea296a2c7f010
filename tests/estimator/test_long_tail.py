"""LongTailClassifier: what it promises beyond what both estimators do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from longtail_bench.baselines import NearestCentroid

import longtail
from longtail import LongTailClassifier, metrics
from longtail._constants import RESIDUALS
from longtail.exceptions import UncalibratedWarning
from longtail.sparse import CountMatrix
from longtail.training import held_out
from longtail.training.changing import merge as merge_segments
from longtail.training.config import FitConfig
from longtail.training.pipeline import fit_long_tail
from tests.conftest import assert_same_predictions, load_shared, make_problem, single_labels


@pytest.fixture(scope="module")
def large():
    """Enough documents to learn from and to hold some out; the second half is for testing."""
    return make_problem(5, n_documents=1600, n_classes=60, n_terms=150)


@pytest.fixture(scope="module")
def fitted(large):
    return LongTailClassifier(random_state=0).fit(large.X[:1200], large.y[:1200])


def test_learns(large, fitted):
    baseline = NearestCentroid(sublinear=True).fit(large.X[:1200], large.y[:1200])
    test = large.X[1200:], large.y[1200:]
    assert fitted.score(*test) > max(0.75, baseline.score(*test))
    assert set(fitted.weights_) == {
        "cosine",
        "likelihood",
        "size",
        "coverage",
        "dampened_cosine",
        "saturation",
        "residual",
    }
    assert fitted.term_weights_.shape == (150,)
    assert np.all(fitted.term_weights_ > 0)


def test_random_state_decides(large):
    X, y = large.X[:300], large.y[:300]
    models = [LongTailClassifier(random_state=seed).fit(X, y) for seed in (1, 1, 2)]
    assert models[0].weights_ == models[1].weights_
    assert_same_predictions(models[0], models[1], X)
    assert models[0].weights_ != models[2].weights_


@pytest.mark.parametrize(
    ("left", "residuals", "calibrate"),
    [(19.9, True, False), (20.0, True, True), (9.9, False, False)],
)
def test_a_time_budget_leaves_out_what_is_not_expected_to_end(left, residuals, calibrate):
    config = FitConfig(time_budget=5.0 + left).within_budget(elapsed=5.0, expected=10.0)
    assert (config.residuals, config.calibrate) == (residuals, calibrate)
    assert FitConfig().within_budget(elapsed=1e9, expected=1e9) == FitConfig()


def test_a_fit_without_time_has_sums_and_shared_weights(large, fitted, caplog):
    X, y = large.X[:1200], large.y[:1200]
    hurried = LongTailClassifier(time_budget=1e-9, random_state=0).fit(X, y)
    assert "no time for calibration and residuals" in caplog.text
    assert hurried.state_.residuals.weights.size == 0
    with pytest.warns(UncalibratedWarning, match="time_budget was too short"):
        hurried.predict_proba_topk(X[:1])
    assert hurried.score(large.X[1200:], large.y[1200:]) > 0.6
    patient = LongTailClassifier(time_budget=1e9, random_state=0).fit(X, y)
    assert_same_predictions(patient, fitted, X)
    with pytest.raises(ValueError, match="time_budget must be a positive number; got -1"):
        LongTailClassifier(time_budget=-1).fit(X, y)


def test_sampling_limits_do_not_matter_to_threads(large):
    labels = single_labels(np.unique(large.y, return_inverse=True)[1])
    counts = CountMatrix.from_matrix(large.X)
    one, two = (
        fit_long_tail(counts, labels, FitConfig(n_sampled=200, n_listed=100, n_jobs=n_jobs))
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one.term_weights, two.term_weights)
    assert np.array_equal(one.scorer.weights, two.scorer.weights)
    assert np.array_equal(one.residuals.weights, two.residuals.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0}, "candidates must be an integer of at least 1; got 0"),
        ({"C": -1}, "C must be a positive number; got -1"),
    ],
)
def test_bad_parameters(problem, options, message):
    with pytest.raises(ValueError, match=message):
        LongTailClassifier(**options).fit(problem.X, problem.y)


def test_every_document_alone_in_its_class():
    X = np.eye(12, dtype=int) * 2
    classifier = LongTailClassifier(random_state=0).fit(X, np.arange(12))
    assert classifier.predict(X).tolist() == list(range(12))


# ---- probabilities


def test_probabilities_fall_and_sum_to_at_most_one(large, fitted):
    top = fitted.predict_proba_topk(large.X[1200:], 20)
    ranking = fitted.predict_topk(large.X[1200:], 20)
    assert np.array_equal(top.classes, ranking.classes)
    assert np.all(top.scores >= 0)
    assert np.all(top.scores.sum(axis=1) <= 1 + 1e-9)
    assert np.all(np.diff(top.scores, axis=1) <= 1e-12)
    shorter = fitted.predict_proba_topk(large.X[1200:], 3)
    assert np.array_equal(shorter.scores, top.scores[:, :3])


def test_probabilities_are_calibrated(large, fitted):
    top = fitted.predict_proba_topk(large.X[1200:], 1)
    right = top.classes[:, 0] == large.y[1200:]
    assert abs(top.scores[:, 0].mean() - right.mean()) < 0.06
    sure = top.scores[:, 0] >= np.median(top.scores[:, 0])
    assert right[sure].mean() > right[~sure].mean()


def test_probabilities_beyond_the_candidates_are_zero(problem):
    classifier = LongTailClassifier(candidates=2, random_state=0).fit(problem.X, problem.y)
    top = classifier.predict_proba_topk(problem.X, 4)
    assert np.all(top.scores[:, 2:] == 0)
    assert top.valid.tolist() == [[True, True, False, False]] * len(problem.X)
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        classifier.predict_proba_topk(problem.X, 0)


def test_threshold(large, fitted):
    low, high = fitted.threshold_for(0.8), fitted.threshold_for(0.95)
    assert 0 <= low.threshold <= high.threshold <= 1
    assert low.expected_precision >= 0.8
    assert high.expected_precision >= 0.95
    assert 0 < high.coverage <= low.coverage <= 1
    top = fitted.predict_proba_topk(large.X[1200:], 1)
    kept = top.scores[:, 0] >= high.threshold
    right = top.classes[:, 0] == large.y[1200:]
    assert kept.sum() > 50
    assert right[kept].mean() > 0.9


def test_threshold_that_cannot_be_reached():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.3, (1000, 30)), rng.integers(0, 20, 1000)  # nothing to learn
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    threshold = classifier.threshold_for(0.9)
    assert np.isnan(threshold.threshold)
    assert np.isnan(threshold.expected_precision)
    assert threshold.coverage == 0
    for precision in (90, "x", None, 0, 1, True):
        with pytest.raises(ValueError, match="between 0 and 1"):
            classifier.threshold_for(precision)


def test_threshold_needs_held_out_documents(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    with pytest.warns(UncalibratedWarning, match="fewer than 50 documents could be held out"):
        assert np.isnan(classifier.threshold_for(0.9).threshold)
    with pytest.warns(UncalibratedWarning, match="They order predictions"):
        classifier.predict_proba(problem.X)
    assert np.isnan(classifier.calibration_error_)
    chosen = LongTailClassifier(calibrate=False, random_state=0).fit(problem.X, problem.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen.predict_proba(problem.X)


def test_what_to_expect_is_said(large, caplog):
    with caplog.at_level("INFO", logger="longtail"):
        classifier = LongTailClassifier(random_state=0).fit(large.X[:1200], large.y[:1200])
    figures = classifier.self_check_.summary()
    assert caplog.messages[-1] == (
        f"on held-out documents: accuracy {figures['accuracy']:.1%}, "
        f"macro F1, mean of the per-class F1 {figures['macro_f1']:.1%}, "
        f"true class in the top 20 {figures['top_20']:.1%}, "
        f"calibration error {classifier.calibration_error_:.3f}"
    )
    accuracy = classifier.score(large.X[1200:], large.y[1200:])
    assert abs(figures["accuracy"] - accuracy) < 0.05
    assert 0 < classifier.calibration_error_ < 0.2


# ---- teaching


@pytest.fixture
def keep_residuals(monkeypatch):
    """Keep the residuals as they are learned, even where the scorer alone is as good."""
    monkeypatch.setattr(
        held_out, "choose_residuals", lambda *_, **__: RESIDUALS.index("as learned")
    )


def test_a_new_class_competes_fairly(large):
    """Teach three documents of classes left out of the fit; a fit with them is the measure."""
    sizes = np.bincount(large.y, minlength=60)
    new = np.flatnonzero((sizes >= 10) & (sizes <= 25))[:5]
    three = np.concatenate([np.flatnonzero(large.y == c)[:3] for c in new])
    old = np.flatnonzero(~np.isin(large.y[:1200], new))
    both = np.concatenate([old, three])
    test = np.setdiff1d(np.arange(1600), both)
    is_new = np.isin(large.y[test], new)
    taught = LongTailClassifier(random_state=0).fit(large.X[old], large.y[old])
    taught.partial_fit(large.X[three], large.y[three])
    refitted = LongTailClassifier(random_state=0).fit(large.X[both], large.y[both])
    assert np.mean(taught.predict(large.X[three]) == large.y[three]) > 0.9
    rates = {}
    for name, model in (("taught", taught), ("refitted", refitted)):
        right = model.predict(large.X[test]) == large.y[test]
        rates[name] = right[is_new].mean(), right[~is_new].mean()
    assert rates["taught"][0] > 0.7 * rates["refitted"][0]
    assert rates["taught"][1] > rates["refitted"][1] - 0.03


def test_refine_learns_the_stale_classes_only(large, keep_residuals):
    X, y = large.X[:600], large.y[:600]
    classifier = LongTailClassifier(adapt=False, random_state=0).fit(X, y)
    before = classifier.state_.residuals
    extra, labels = large.X[600:640], np.full(40, 7)
    classifier.partial_fit(extra, labels)
    assert np.flatnonzero(merge_segments(classifier.state_).stale).tolist() == [7]
    classifier.refine(np.vstack([X, extra]), np.concatenate([y, labels]))
    after = classifier.state_.residuals
    assert not classifier.state_.stale.any()
    for c in range(60):
        mine, theirs = (w.weights[w.indptr[c] : w.indptr[c + 1]].tolist() for w in (before, after))
        assert (mine == theirs) == (c != 7)
    assert classifier.state_.corpus.n_documents == 640


def test_refine_gives_a_new_class_residuals(large, keep_residuals):
    X, y = large.X[:600], np.where(large.y[:600] == 3, 99, large.y[:600])
    new = y == 99
    classifier = LongTailClassifier(random_state=0).fit(X[~new], y[~new])
    classifier.partial_fit(X[new], y[new])
    number = np.searchsorted(classifier.classes_, 99)

    def size():
        indptr = merge_segments(classifier.state_).residuals.indptr
        return indptr[number + 1] - indptr[number]

    assert size() == 0
    classifier.refine(X, y)
    assert size() > 0
    assert np.mean(classifier.predict(X[new]) == 99) > 0.8


def test_refine_of_nothing_touched_keeps_every_weight(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    before = classifier.predict_topk(problem.X, 5)
    classifier.refine(problem.X, problem.y)
    after = classifier.predict_topk(problem.X, 5)
    assert np.array_equal(before.classes, after.classes)
    assert np.array_equal(before.scores, after.scores)


def test_refine_refuses_strangers(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    model = classifier.state_
    with pytest.raises(ValueError, match="never added"):
        classifier.refine(problem.X + 1, problem.y)
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.refine(problem.X, problem.y + 100)
    assert classifier.state_ is model


def test_weights_of_a_class_that_disappears_go_with_it(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    gone = problem.y == 2
    classifier.forget(problem.X[gone], problem.y[gone])
    assert classifier.classes_.tolist() == [0, 1, 3, 4, 5, 6]
    model = merge_segments(classifier.state_)
    assert len(model.residuals.biases) == len(model.stale) == 6
    assert 2 not in classifier.predict(problem.X)


def test_saved_model_keeps_probabilities_and_thresholds(large, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    one, other = (m.predict_proba_topk(large.X[1200:], 5) for m in (fitted, loaded))
    assert np.array_equal(one.scores, other.scores)
    assert loaded.threshold_for(0.9) == fitted.threshold_for(0.9)
    assert loaded.weights_ == fitted.weights_
    for model in (fitted, loaded):
        model.partial_fit(large.X[1200:1210], large.y[1200:1210])
        model.refine(large.X[:1210], large.y[:1210])
    assert_same_predictions(fitted, loaded, large.X)


# ---- real data: ahead of every peer of the same counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "accuracy", "macro_f1"),
    [("cve-product", 0.832, 0.661), ("wordnet-hypernym", 0.445, 0.268)],
)
def test_real_data(name, accuracy, macro_f1):
    """Ahead of the best peer in each column, calibrated, and as precise as promised."""
    X_train, y_train, X_test, y_test = load_shared(name)
    classifier = LongTailClassifier(random_state=0, n_jobs=2).fit(X_train, y_train)
    top = classifier.predict_proba_topk(X_test, 1)
    right = top.classes[:, 0] == y_test
    assert right.mean() > accuracy
    assert metrics.macro_f1(y_test, top.classes[:, 0]) > macro_f1
    bins = np.minimum((top.scores[:, 0] * 15).astype(int), 14)
    gaps = np.bincount(bins, top.scores[:, 0] - right, minlength=15)
    assert np.abs(gaps).sum() / len(right) <= 0.03  # expected calibration error
    kept = top.scores[:, 0] >= classifier.threshold_for(0.9).threshold
    assert right[kept].mean() >= 0.88


def test_a_small_new_class_among_classes_of_equal_size_does_not_win_everywhere():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.05), 7)
    y = np.repeat(np.arange(6), 25)
    X = np.array([rng.multinomial(8, topics[c]) for c in y])
    X_test = np.array([rng.multinomial(8, topics[c]) for c in y])
    new = np.array([rng.multinomial(8, topics[6]) for _ in range(3)])
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    before = classifier.score(X_test, y)
    classifier.partial_fit(new, [6] * 3)
    assert classifier.score(X_test, y) > before - 0.1
    classifier.refine(np.vstack([X, new]), np.append(y, [6] * 3))
    assert classifier.score(X_test, y) > before - 0.1


def test_a_model_is_told_to_expect_classes_that_it_lacks(tmp_path):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.08), 30)
    y = rng.integers(0, 30, 1500)
    X = np.array([rng.multinomial(8, topics[c]) for c in y])
    fitted, new = (y < 20) & (np.arange(1500) < 900), np.arange(1500) >= 900
    classifier = LongTailClassifier(candidates=6, random_state=0).fit(X[fitted], y[fitted])
    before = classifier.predict_proba_topk(X[new], 3)
    assert classifier.expect_unknown(np.mean(y[new] >= 20)) is classifier
    after = classifier.predict_proba_topk(X[new], 3)
    assert np.array_equal(before.classes, after.classes)
    correct = after.classes[:, 0] == y[new]
    errors = [
        metrics.expected_calibration_error(found.scores[:, 0], correct) for found in (before, after)
    ]
    assert errors[1] < errors[0] - 0.05
    assert after.none.mean() > before.none.mean() + 0.1
    with pytest.raises(ValueError, match="expects documents of unknown classes already"):
        classifier.expect_unknown(0.1)
    classifier.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba_topk(X[new], 3).scores, after.scores)
    loaded.recalibrate(X[new][:200], y[new][:200])  # outcomes know better
    share = loaded.state_.calibrator.unknown_share
    assert share == pytest.approx(np.mean(y[new][:200] >= 20))


@pytest.mark.parametrize("share", [-0.1, 1.0, "half", True])
def test_an_impossible_share_of_unknown_classes_is_refused(share):
    classifier = LongTailClassifier(random_state=0).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="share must be a share from 0 to below 1"):
        classifier.expect_unknown(share)


def test_unknown_classes_that_cannot_be_expected():
    classifier = LongTailClassifier(random_state=0).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="does not know how documents of unknown classes score"):
        classifier.expect_unknown(0.5)


@pytest.mark.parametrize("every", [2, 3, 10])
def test_documents_that_do_not_tell_classes_apart(every, caplog):
    """One text with two labels: where what counts cannot be learned, a fit goes on and says so."""
    y = np.where(np.arange(4000) % every == 0, "a", "b")
    classifier = LongTailClassifier(random_state=0).fit(np.ones((4000, 6)), y)
    assert set(classifier.predict(np.ones((2, 6)))) == {"b"}
    assert ("do not differ enough to learn" in caplog.text) == (every == 10)


def test_recalibration_with_classes_that_the_model_lacks(tmp_path):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.08), 30)
    y = rng.integers(0, 30, 1500)
    X = np.array([rng.multinomial(8, topics[c]) for c in y])
    fitted, new = (y < 20) & (np.arange(1500) < 900), np.arange(1500) >= 900
    classifier = LongTailClassifier(candidates=6, random_state=0).fit(X[fitted], y[fitted])
    before = classifier.predict_proba_topk(X[new], 3)
    later = np.flatnonzero(new)
    first, rest = later[:400], later[400:]
    assert classifier.recalibrate(X[first], y[first]) is classifier
    after = classifier.predict_proba_topk(X[new], 3)
    assert np.array_equal(before.classes, after.classes)
    correct = (after.classes[:, 0] == y[new])[400:]
    errors = [
        metrics.expected_calibration_error(found.scores[400:, 0], correct)
        for found in (before, after)
    ]
    assert errors[1] < errors[0] - 0.05
    assert after.none is not None
    assert np.all(after.none <= 1 - after.scores.sum(axis=1) + 1e-12)
    unknown = y[rest] >= 20
    assert after.none[400:][unknown].mean() > after.none[400:][~unknown].mean() + 0.1
    classifier.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model").predict_proba_topk(X[new], 3)
    assert np.array_equal(loaded.scores, after.scores)
    with pytest.raises(ValueError, match="one label for each document"):
        classifier.recalibrate(X[:2], [[1, 2], [3]])
