"""The paper's estimator as a user meets it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from longtail_bench.speed import input_megabytes, model_arrays
from longtail_bench.synthetic import draw_counts

import longtail
from longtail import DoubleSamplingClassifier
from longtail.paper.features import FEATURE_NAMES, pair_features
from tests.conftest import assert_same_predictions, load_shared


def fit(problem, **options):
    options = {"random_state": 0} | options
    return DoubleSamplingClassifier(**options).fit(problem.X, problem.y)


def test_learns(problem):
    classifier = fit(problem)
    assert classifier.score(problem.X, problem.y) > 0.8
    assert set(classifier.weights_) == set(FEATURE_NAMES)
    assert classifier.weights_["centroid_distance"] < 0


def test_random_state_decides(problem):
    assert fit(problem, random_state=1).weights_ == fit(problem, random_state=1).weights_
    assert fit(problem, random_state=1).weights_ != fit(problem, random_state=2).weights_


def test_the_sample_can_be_inspected(problem):
    classifier = fit(problem, examples_per_class=1)
    sample = classifier.sample_
    assert np.array_equal(sample.classes[:, 0], problem.y[sample.documents])
    assert sample.classes.shape[1] == 1 + classifier.adversaries_ == 7
    again = longtail.paper.sampling.draw_pairs(problem.y, 7, 1, 30, random_state=0)
    assert np.array_equal(again.documents, sample.documents)
    assert np.array_equal(again.classes, sample.classes)


def test_scores_are_the_weighted_features(problem):
    classifier = fit(problem)
    top = classifier.predict_topk(problem.X, 3)
    features = pair_features(problem.X, classifier.statistics_, np.arange(60), top.classes)
    weights = np.array([classifier.weights_[name] for name in FEATURE_NAMES])
    np.testing.assert_allclose(top.scores, features @ weights, atol=1e-9)


def test_more_than_the_data_allow(problem):
    everything = fit(problem, adversaries=10_000, candidates=10_000, examples_per_class=10_000)
    exact = fit(problem, adversaries=6, candidates=7, examples_per_class=60)
    assert_same_predictions(everything, exact, problem.X, 7)


def traced_fit(data, **options):
    """Fit twice, the second time with an eye on memory: the first compiles."""
    classifier = DoubleSamplingClassifier(random_state=0, **options)
    classifier.fit(data.X_train[:200], data.y_train[:200])
    tracemalloc.start()
    try:
        classifier.fit(data.X_train, data.y_train)
        return classifier, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_pair_costs_twelve_numbers_of_32_bits():
    data = draw_counts(400, n_test=1)
    few, less = traced_fit(data, adversaries=100)
    many, more = traced_fit(data, adversaries=200)
    n_pairs = 100 * len(many.sample_)
    assert len(few.sample_) == len(many.sample_)
    # Ten differences, the class, and its place in the order of the classes.
    assert 40 * n_pairs < more - less < 50 * n_pairs


def test_memory_of_a_fit():
    data = draw_counts(2000, n_test=1)
    classifier, peak = traced_fit(data)
    given = 1e6 * input_megabytes(data.X_train)
    model = sum(model_arrays(classifier).values())
    assert peak + given < 3 * given + model  # the input itself is not traced


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_weights_for_any_threads(n_jobs):
    data = draw_counts(400, n_test=1)
    one, many = (
        DoubleSamplingClassifier(adversaries=60, random_state=0, n_jobs=jobs)
        for jobs in (None, n_jobs)
    )
    one.fit(data.X_train, data.y_train)
    many.fit(data.X_train, data.y_train)
    assert one.weights_ == many.weights_
    assert len(one.sample_) * 60 > 2 * longtail.paper.pairwise.PAIR_CHUNK  # more than one chunk


def test_a_draw_that_comes_out_empty_is_repeated():
    X, y = np.tile(np.eye(2, dtype=int), (500, 1)), np.tile([0, 1], 500)
    for seed in range(20):
        classifier = DoubleSamplingClassifier(examples_per_class=0.01, random_state=seed)
        assert classifier.fit(X, y).score(X, y) == 1.0
    with pytest.raises(ValueError, match="so small that"):
        DoubleSamplingClassifier(examples_per_class=1e-12, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adversaries": 0}, "adversaries must be an integer of at least 1; got 0"),
        ({"candidates": 0}, "candidates must be an integer of at least 1; got 0"),
        ({"examples_per_class": -1}, "examples_per_class must be a positive number; got -1"),
        ({"C": 0}, "C must be a positive number; got 0"),
    ],
)
def test_bad_parameters(problem, options, message):
    with pytest.raises(ValueError, match=message):
        fit(problem, **options)


def test_a_model_of_another_kind_is_refused(problem, tmp_path):
    longtail.store.write_model(tmp_path / "other", "Toaster", {}, {"a": np.ones(3)})
    with pytest.raises(longtail.ModelFileError, match="Toaster"):
        longtail.load(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "accuracy", "macro_f1"),
    [("cve-product", 0.755, 0.60), ("wordnet-hypernym", 0.41, 0.26)],
)
def test_real_data(name, accuracy, macro_f1):
    X_train, y_train, X_test, y_test = load_shared(name)
    classifier = DoubleSamplingClassifier(random_state=0, n_jobs=2).fit(X_train, y_train)
    predicted = classifier.predict(X_test)
    assert longtail.metrics.classes.accuracy(y_test, predicted) >= accuracy
    assert longtail.metrics.macro_f1(y_test, predicted) >= macro_f1
