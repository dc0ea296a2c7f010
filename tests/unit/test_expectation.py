"""What a fit expects of new documents: the measures of evaluate, and intervals that hold them."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import LongTailClassifier, metrics
from longtail._constants import EXPECTED, FREQUENCY_BANDS, MEASURES
from longtail.metrics.evaluation import evaluate
from longtail.metrics.label_set_evaluation import evaluate_label_sets
from longtail.training.calibration import Calibrator
from longtail.training.expectation import expect_measures, nothing_expected
from tests.conftest import make_problem, single_labels


def expected(classifier):
    rows = classifier.self_check_.expected.tolist()
    return {name: row for name, row in zip(EXPECTED, rows, strict=True) if row[0] >= 0}


def make_sets(n, seed):
    """Return counts and label lists: words of each of one to three of 60 classes, most are rare."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 61)
    X, y = np.zeros((n, 240)), []
    for row in range(n):
        labels = rng.choice(60, rng.integers(1, 4), False, popularity / popularity.sum())
        y.append([f"c{label}" for label in labels])
        for label in labels:
            np.add.at(X[row], 4 * label + rng.integers(0, 4, 2), 1)
        np.add.at(X[row], rng.integers(0, 240, 6), 1)
    return X, y


@pytest.fixture(scope="module")
def sets():
    X, y = make_sets(1600, 0)
    return LongTailClassifier(random_state=0, n_jobs=1).fit(X[:1000], y[:1000]), X[1000:], y[1000:]


def test_label_sets_are_promised_in_the_measures_of_evaluate(sets):
    classifier, X, y = sets
    found, measured = expected(classifier), evaluate_label_sets(classifier, [(X, y)])
    assert not {"accuracy", "top_5", "calibration_error"} & set(found)
    values = vars(measured.sets) | {"r_precision": measured.r_precision}
    values |= {
        f"{name}@{k}": measured.ranking[name][k] for name in ("P", "nDCG") for k in (1, 3, 5)
    }
    values["label_calibration_error"] = measured.certainty.calibration_error
    promised = set(found) & set(MEASURES)
    assert promised == set(values) - {"mean_size"}
    for name in promised - {"macro_f1"}:  # which grows with the number of documents
        value, low, high = found[name]
        assert low <= value <= high
        # Both have noise: 600 documents and 150 held out.
        assert value == pytest.approx(values[name], abs=2.5 * (high - low))
    assert measured.intervals["P@1"][0] < measured.ranking["P"][1] < measured.intervals["P@1"][1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_intervals_hold_what_new_documents_show_by_class_size(seed):
    problem = make_problem(n_documents=6000, n_classes=400, n_terms=400, seed=seed)
    X, y = problem.X[:2500], problem.y[:2500]
    classifier = LongTailClassifier(random_state=seed, n_jobs=1).fit(X, y)
    found = expected(classifier)
    known = np.isin(problem.y[2500:], classifier.classes_)
    result = evaluate(classifier, [(problem.X[2500:][known], problem.y[2500:][known])])
    bands = {band.name: band for band in result.bands if band.n_documents >= 30}
    assert len(bands) >= 3
    for name, band in bands.items():
        _, low, high = found[name]
        noise = metrics.wilson_interval(band.accuracy, band.n_documents)
        assert low <= noise[1], (name, band)
        assert noise[0] <= high, (name, band)


def test_a_band_has_both_ways_to_count_what_a_class_has_lost():
    labels = single_labels(np.array([0, 0, 1]))
    ranking = np.array([[0, 1], [1, 0], [0, 1]])
    arguments = (labels, ranking, np.zeros((3, 2)), np.ones(3), Calibrator.identity())
    left = np.array([1, 3])  # of 3 and 4 documents
    table = expect_measures(*arguments, left, np.zeros(5))
    rows = dict(zip(EXPECTED, table.tolist(), strict=True))
    # By what is left, class 0 is a class of one document; but for the document itself, of two.
    assert rows["1"] == pytest.approx([1 / 2, *metrics.wilson_interval(1 / 2, 2)], abs=1e-6)
    of_one, of_three = metrics.wilson_interval(0, 1), metrics.wilson_interval(1 / 3, 3)
    assert rows["2-5"] == pytest.approx([1 / 6, of_one[0], max(of_one[1], of_three[1])], abs=1e-6)
    assert rows["accuracy"][0] == pytest.approx(1 / 3, abs=1e-6)
    assert rows["mean_f1"] == rows["more"] == [-1.0] * 3
    lower = expect_measures(*arguments, left, np.full(len(FREQUENCY_BANDS), 0.05))
    assert lower[EXPECTED.index("1"), 1] == pytest.approx(rows["1"][1] - 0.05, abs=1e-6)


def test_without_held_out_documents_nothing_is_expected(problem):
    classifier = LongTailClassifier(calibrate=False).fit(problem.X, problem.y)
    assert np.array_equal(classifier.self_check_.expected, nothing_expected())
    assert "accuracy" not in classifier.self_check_.summary()
