"""Eqs. 6 and 7 and the bound of a fitted model."""

import math

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, metrics
from longtail.paper import theory
from longtail.paper.features import FEATURE_NAMES, pair_features
from longtail.paper.theory import risks


@pytest.fixture(scope="module")
def data():
    problem = theory.make_problem(n_classes=6, exponent=1.0, random_state=3)
    rng = np.random.default_rng(0)
    X, y = problem.draw(300, rng)
    fresh, fresh_y = problem.draw(2000, rng)
    names = np.array(["f", "b", "a", "d", "c", "e"])
    return X, names[y], fresh, names[fresh_y]


@pytest.fixture(scope="module")
def fitted(data):
    X, y, _, _ = data
    return DoubleSamplingClassifier(
        examples_per_class=20, adversaries=3, C=1.0, random_state=0
    ).fit(X, y)


def weights_of(classifier):
    return np.array([classifier.weights_[name] for name in FEATURE_NAMES])


def test_full_risk_is_that_of_the_written_out_transformation(data, fitted, monkeypatch):
    X, y, _, _ = data
    numbers = np.searchsorted(fitted.classes_, y)
    pairs = theory.transform(X, numbers, n_classes=6)
    weights = weights_of(fitted)
    expected = metrics.transformed_risk(pairs.differences @ weights, pairs.labels)
    assert theory.full_risk(fitted, X, y) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 0.5
    monkeypatch.setattr(risks, "BLOCK_PAIRS", 50)  # blocks of a few documents
    assert theory.full_risk(fitted, X, y) == pytest.approx(expected, abs=1e-12)


def test_full_risk_is_that_of_equation_3(data, fitted):
    X, y, _, _ = data
    numbers = np.searchsorted(fitted.classes_, y)
    classes = np.tile(np.arange(6), (len(y), 1))
    features = pair_features(X, fitted.statistics_, np.arange(len(y)), classes)
    scores = features @ weights_of(fitted)
    true = scores[np.arange(len(y)), numbers]
    other = scores[classes != numbers[:, None]].reshape(len(y), 5)
    assert theory.full_risk(fitted, X, y) == pytest.approx(metrics.empirical_risk(true, other))


def test_sampled_risk_is_that_of_equation_7(data, fitted):
    X, _, _, _ = data
    sample = fitted.sample_
    features = pair_features(X, fitted.statistics_, sample.documents, sample.classes)
    scores = features @ weights_of(fitted)
    expected = metrics.sampled_risk(scores[:, 0], scores[:, 1:])
    assert theory.sampled_risk(fitted, X) == pytest.approx(expected)


def test_bound_takes_every_number_from_the_fitted_model(data, fitted):
    X, y, _, _ = data
    class_sizes = np.unique(y, return_counts=True)[1]
    constants = theory.sampling_constants(class_sizes, np.minimum(1.0, 20 / class_sizes))
    n_sampled = len(fitted.sample_.documents)
    sizes = theory.SampleSizes(300, n_sampled, 3, 6)
    expected = theory.theorem_2a(
        theory.sampled_risk(fitted, X),
        theory.zero_one_complexity_bound(10, n_sampled),
        constants,
        sizes,
        0.05,
    )
    bound = theory.risk_bound(fitted, X, y)
    assert dict(bound.terms) == dict(expected.terms)
    assert (bound.theorem, bound.delta) == ("2a", 0.05)


@pytest.mark.parametrize("theorem", ["1", "2a", "2b"])
@pytest.mark.parametrize("loss", ["zero-one", "ramp"])
def test_bound_is_above_the_risk_on_new_documents(data, fitted, theorem, loss):
    X, y, fresh, fresh_y = data
    bound = theory.risk_bound(fitted, X, y, theorem=theorem, loss=loss)
    assert theory.full_risk(fitted, fresh, fresh_y) <= bound.total


def test_second_inequality_estimates_r_from_the_sampled_pairs(data, fitted):
    X, y, _, _ = data
    risk, n_pairs = theory.sampled_risk(fitted, X), 3 * len(fitted.sample_.documents)
    r = risk * (1 - risk) * n_pairs / (n_pairs - 1)
    estimated = theory.risk_bound(fitted, X, y, theorem="2b")
    given = theory.risk_bound(fitted, X, y, theorem="2b", variance=r)
    assert estimated.terms["variance"] == pytest.approx(given.terms["variance"])


def test_ramp_complexity_is_that_of_the_linear_class_over_the_margin(data, fitted):
    X, y, _, _ = data
    sample = fitted.sample_
    features = pair_features(X, fitted.statistics_, sample.documents, sample.classes)
    scaled = (features[:, :1] - features[:, 1:]).reshape(-1, 10) / fitted.feature_scales_
    norm = np.linalg.norm(weights_of(fitted) * fitted.feature_scales_)
    largest = np.linalg.norm(scaled, axis=1).max()
    bound = theory.risk_bound(fitted, X, y, loss="ramp", margin=0.5)
    alpha = bound.terms["deviation"] / math.sqrt(
        5 * math.log(2 / 0.05) / (2 * 3 * len(sample.documents))
    )
    # κ sets of M pairs each: 2 B R sqrt(κ / (Mκ)) / ρ
    expected = alpha * 2 * norm * largest / math.sqrt(len(sample.documents)) / 0.5
    assert bound.terms["complexity"] == pytest.approx(expected)
    margins = (features[:, :1] - features[:, 1:]) @ weights_of(fitted)
    assert bound.terms["empirical"] == pytest.approx(
        alpha * theory.ramp_loss(margins.ravel(), 0.5).mean()
    )


def test_no_sampling_recovers_theorem_1(data):
    X, y, _, _ = data
    classifier = DoubleSamplingClassifier(examples_per_class=10**6, adversaries=5, random_state=0)
    classifier.fit(X, y)
    sampled = theory.risk_bound(classifier, X, y, delta=0.1, theorem="2b")
    full = theory.risk_bound(classifier, X, y, delta=0.05, theorem="1")
    assert theory.sampled_risk(classifier, X) == pytest.approx(theory.full_risk(classifier, X, y))
    assert (sampled.terms["shift_slow"], sampled.terms["shift_fast"]) == (0.0, 0.0)
    for name, value in full.terms.items():
        assert sampled.terms[name] == pytest.approx(value, rel=1e-9)


def test_forms_differ_as_their_constants_do(data, fitted):
    X, y, _, _ = data
    bounds = {
        form: theory.risk_bound(fitted, X, y, form=form, corrected=False)
        for form in ("theorem", "lemma", "retention")
    }
    class_sizes = np.unique(y, return_counts=True)[1]
    total = np.minimum(1.0, 20 / class_sizes).sum()
    ratio = bounds["lemma"].terms["empirical"] / bounds["theorem"].terms["empirical"]
    assert ratio == pytest.approx(total)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1; got 0.0"),
        ({"delta": 1.5}, "delta must lie strictly between 0 and 1; got 1.5"),
        ({"theorem": "3"}, "theorem must be one of '1', '2a', '2b'; got '3'"),
        ({"form": "paper"}, "form must be one of"),
        ({"loss": "hinge"}, "loss must be one of 'zero-one', 'ramp'; got 'hinge'"),
        ({"margin": -1.0}, "margin must be a positive number; got -1.0"),
        ({"chromatic_number": 99}, "chromatic_number must be between"),
    ],
)
def test_bad_options_are_named(data, fitted, options, message):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=message):
        theory.risk_bound(fitted, X, y, **options)


def test_only_the_training_set_is_accepted(data, fitted):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=r"must be the training set.*300 documents; got 200"):
        theory.risk_bound(fitted, X[-200:], y[-200:])
    with pytest.raises(ValueError, match="is not among the classes: 'z'"):
        theory.risk_bound(fitted, X, np.where(y == "a", "z", y))
    with pytest.raises(ValueError, match=r"a document of every class.*class f has none"):
        theory.risk_bound(fitted, X[y != "f"], y[y != "f"])
    with pytest.raises(ValueError, match="in the order in which"):
        theory.risk_bound(fitted, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="one label for each of the 300 documents"):
        theory.full_risk(fitted, X, y[:10])


def test_a_model_from_a_file_has_no_sample(data, fitted, monkeypatch):
    X = data[0]
    monkeypatch.setattr(type(fitted), "sample_", None)
    with pytest.raises(ValueError, match="a model opened from a file has none"):
        theory.sampled_risk(fitted, X)


def test_an_unfitted_model_is_refused(data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="not fitted"):
        theory.risk_bound(DoubleSamplingClassifier(), X, y)
