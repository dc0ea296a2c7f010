"""The report on a model in use says what is true of it, and advises what changes that."""

import math

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.training import relearning
from tests.estimator.test_recent import make_documents


@pytest.fixture(scope="module")
def problem():
    return make_documents(n_classes=40, per_class=12, n_terms=120)


def test_a_fresh_model_is_up_to_date(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X, y)
    health = model.health()
    assert (health.n_documents, health.n_classes) == (480, 40)
    assert health.n_unrefined == health.n_stale == health.n_kept == 0
    assert not health.will_learn
    calibrator = model.state_.calibrator
    assert health.n_outcomes == len(calibrator.held_out_correct)
    assert health.accuracy == calibrator.held_out_correct.mean()
    assert health.calibration_error == model.calibration_error_
    assert health.abstention == pytest.approx(1 - model.threshold_for(0.9).coverage)
    assert not any("refine" in sentence for sentence in health.advice)


def test_teaching_shows_until_it_is_refined(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X, y)
    new = np.zeros((40, 120))
    new[:, -1] = 3  # a term that no document had
    labels = [f"new {i % 20}" for i in range(40)]
    model.partial_fit(new, labels)
    state = model.state_
    health = model.health()
    assert model.state_ is state  # reading changes nothing
    assert health.n_unrefined == 40
    assert health.n_stale == 20
    assert health.unseen_terms == pytest.approx(120 / (X.sum() + 120))
    assert [sentence.split(":")[0] for sentence in health.advice[:2]] == [
        "call refine()",
        "call refine(X, y) with documents, or fit again",
    ]
    assert [sentence.split(":")[0] for sentence in health.commands[:2]] == [
        "run longtail refine",
        "fit again, with the documents taught",
    ]
    assert len(health.commands) == len(health.advice)
    assert not any("(" in value for name, value in health.rows(commands=True) if name == "advice")
    refined = model.refine().health()
    assert refined.n_unrefined == 0
    assert refined.n_stale == 20  # needs documents
    model.forget(new, labels)
    assert model.health().n_unrefined == 40


def test_with_documents_kept_refine_is_said_to_learn(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "MIN_HELD_OUT", 1)
    model = LongTailClassifier(memory=3, random_state=0).fit(X, y)
    assert model.health().n_kept == 120
    assert not model.health().will_learn
    model.partial_fit(X[:60], y[:60])
    health = model.health()
    assert health.will_learn
    assert health.advice[0].startswith("call refine(): it learns from the documents kept")
    refined = model.refine().health()
    assert not refined.will_learn
    assert refined.n_stale == 0


def test_outcomes_in_use_count(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X, y)
    n_before = model.health().n_outcomes
    strangers = np.random.default_rng(0).poisson(0.3, (300, 120)).astype(float)
    model.recalibrate(strangers, ["unknown"] * 300)
    health = model.health()
    assert health.n_outcomes == n_before + 300
    assert health.accuracy < 0.5
    assert health.abstention > 0.5


def test_it_prints_and_texts_have_it():
    model = TextClassifier(random_state=0).fit(["a bear", "a fox"], ["bear", "fox"])
    health = model.health()
    assert math.isnan(health.accuracy)
    assert math.isnan(health.abstention)
    assert "stale classes" in str(health)
    assert "0 of 2" in health._repr_html_()
    assert "few outcomes" in str(health)
    paper = TextClassifier(DoubleSamplingClassifier()).fit(["a bear", "a fox"], ["bear", "fox"])
    assert not hasattr(paper, "health")
