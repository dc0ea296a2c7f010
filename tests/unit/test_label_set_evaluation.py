"""What `evaluate` computes of label sets, prints and draws, against loops over the documents."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from longtail import metrics
from longtail.cli.findings import find
from longtail.cli.report import ReportPage, html_report
from longtail.metrics.evaluation import MIN_PROBABILITY, evaluate
from longtail.results import TopK

LABELS = [f"c{i}" for i in range(6)]


def make_classifier(seed=0, n_documents=40):
    """Return a classifier of made-up probabilities, its documents, and true label sets."""
    rng = np.random.default_rng(seed)
    probabilities = rng.random((n_documents, 6)) ** 3
    truth = [
        [label for label, p in zip(LABELS, row, strict=True) if rng.random() < p]
        for row in probabilities
    ]
    truth[0] = [*truth[0], "never seen"]

    def rank(X, k):
        rows = probabilities[X]
        order = np.argsort(-rows, axis=1)[:, :k]
        scores = np.take_along_axis(rows, order, axis=1)
        classes = np.array(LABELS)[order]
        missing = k - order.shape[1]
        pad = ((0, 0), (0, max(missing, 0)))
        valid = np.pad(scores > 0.001, pad)
        return TopK(np.pad(classes, pad), np.pad(np.where(scores > 0.001, scores, 0), pad), valid)

    def predict(X):
        return [[LABELS[i] for i in np.flatnonzero(row > 0.5)] for row in probabilities[X]]

    classifier = SimpleNamespace(
        classes_=np.array(LABELS),
        statistics_=SimpleNamespace(class_sizes=np.array([1, 1, 3, 10, 50, 500]), n_documents=600),
        predict=predict,
        predict_proba_topk=rank,
        predict_topk=rank,
        threshold_for=lambda precision: 0.6,
    )
    return classifier, np.arange(n_documents), truth, probabilities


@pytest.fixture(scope="module")
def evaluated():
    classifier, X, truth, probabilities = make_classifier()
    chunks = [(X[:15], truth[:15]), (X[15:], truth[15:])]
    return evaluate(classifier, chunks, precision=0.8), truth, probabilities


def test_against_loops(evaluated):
    result, truth, probabilities = evaluated
    assert result.n_documents == 40
    assert result.n_labels == sum(map(len, truth))
    assert result.n_unknown == 1
    order = np.argsort(-probabilities, axis=1)
    for k in (1, 3, 5):
        hits = [sum(LABELS[c] in t for c in row[:k]) for row, t in zip(order, truth, strict=True)]
        assert result.ranking["P"][k] == pytest.approx(np.mean(hits) / k)
    predicted = [[LABELS[i] for i in np.flatnonzero(row > 0.5)] for row in probabilities]
    assert result.sets == metrics.score_label_sets(truth, predicted)
    pairs = [
        (p, LABELS[c] in t)
        for row, t in zip(probabilities, truth, strict=True)
        for c, p in enumerate(row)
        if p > MIN_PROBABILITY
    ]
    values, correct = zip(*pairs, strict=True)
    certainty = result.certainty
    assert certainty.n_pairs == len(pairs)
    expected = metrics.expected_calibration_error(values, correct)
    assert certainty.calibration_error == pytest.approx(expected)
    low, high = certainty.calibration_interval
    assert low <= certainty.calibration_error < high
    kept = probabilities >= 0.6
    right = sum(LABELS[c] in truth[d] for d, c in zip(*np.nonzero(kept), strict=True))
    assert certainty.abstention.precision == pytest.approx(right / kept.sum())
    assert certainty.abstention.recall == pytest.approx(right / result.n_labels)
    assert certainty.abstention.coverage == pytest.approx(kept.any(axis=1).mean())
    assert result.measures["mean_f1"] == result.sets.mean_f1
    assert result.measures["P@3"] == result.ranking["P"][3]
    assert result.measures["label_calibration_error"] == certainty.calibration_error
    assert "accuracy" not in result.measures
    bands = {band.name: band for band in result.bands}
    assert bands["never seen"].n_labels == 1
    assert bands["never seen"].recall == 0.0
    assert bands["1"].n_labels == sum(label in ("c0", "c1") for t in truth for label in t)


def test_without_probabilities_or_documents():
    classifier, X, truth, _ = make_classifier()
    del classifier.predict_proba_topk
    assert evaluate(classifier, [(X, truth)]).certainty is None
    with pytest.raises(ValueError, match="no documents to evaluate"):
        evaluate(classifier, [])
    classifier, X, truth, _ = make_classifier()
    classifier.threshold_for = lambda precision: math.nan
    assert evaluate(classifier, [(X, truth)]).certainty.abstention is None


def test_one_label_each():
    classifier, X, truth, _ = make_classifier()
    classifier.predict = lambda X: np.array(LABELS)[np.zeros(len(X), int)]
    plain = [labels[0] if labels else "c0" for labels in truth]
    result = evaluate(classifier, [(X, [[label] for label in plain])])
    assert result.sets.mean_size == 1
    assert result.sets.exact == np.mean([label == "c0" for label in plain])


def test_tables_figures_and_page(evaluated):
    pytest.importorskip("matplotlib")
    result, _, _ = evaluated
    findings = find(result)
    tables = {section.title: section.rows for section in findings.sections}
    ranked = {row[0]: row[1:] for row in tables["The first k classes of the ranking"]}
    assert ranked["P@k"][0] == f"{result.ranking['P'][1]:.1%}"
    [bands] = [rows for title, rows in tables.items() if title.startswith("By how many documents")]
    assert bands[0][0] == "never seen"
    [first, *_] = tables["Most confused classes"]
    assert first[:2] == (result.confusions[0].first, result.confusions[0].second)
    measures = {row[0]: row[1:] for row in findings.sections[0].rows}
    low, high = result.certainty.calibration_interval
    assert measures["calibration error of labels"][1] == f"{low:.3f} to {high:.3f} (90 %)"
    low, high = result.intervals["mean_f1"]
    assert measures["mean F1 of the documents' label sets"][1] == f"{low:.1%} to {high:.1%}"
    assert "1 label of classes that the model does not have" in findings.sentences[0]
    figures = {name: draw() for name, draw in findings.figures.items()}
    assert set(figures) == {"frequency", "calibration", "precision"}
    page = html_report(ReportPage("Model & data"), findings, figures)
    assert page.count("<svg") == 3
    assert "Model &amp; data" in page
    assert "curve" not in result.as_dict()["certainty"]
    assert 'id="classes-data"' in page
    assert "Most confused classes" in page


def test_every_class_and_the_surest_wrong_labels():
    classifier, X, truth, _ = make_classifier()
    classifier.explain = lambda document, classes, top_terms: [
        SimpleNamespace(terms={"word": float(len(str(classes[0])))}, score=1.0)
    ]
    result = evaluate(classifier, [(X, truth, [f"id {i}" for i in range(len(X))])], n_mistakes=5)
    predicted = classifier.predict(X)
    for found in result.classes:
        has = [found.label in labels for labels in truth]
        given = [found.label in labels for labels in predicted]
        assert (found.n_true, found.n_predicted) == (sum(has), sum(given))
        assert found.n_correct == sum(a and b for a, b in zip(has, given, strict=True))
    assert result.mistakes
    certainties = [mistake.certainty for mistake in result.mistakes]
    assert certainties == sorted(certainties, reverse=True)
    for mistake in result.mistakes:
        assert mistake.predicted in predicted[mistake.document_id]
        assert mistake.predicted not in mistake.true
        assert mistake.reference == f"id {mistake.document_id}"
    missed_as_wrong = Counter(
        (missed, wrong)
        for labels, found in zip(truth, predicted, strict=True)
        for missed in set(labels) - set(found)
        for wrong in set(found) - set(labels)
    )
    for pair in result.confusions:
        assert pair.n_first_as_second == missed_as_wrong[pair.first, pair.second]
        assert pair.n_second_as_first == missed_as_wrong[pair.second, pair.first]
    assert sum(pair.n_confused for pair in result.confusions) <= missed_as_wrong.total()
    assert result.confusions[0].n_confused == max(
        n + missed_as_wrong[pair[::-1]] for pair, n in missed_as_wrong.items()
    )
    f1 = [
        2 * len(set(a) & set(b)) / (len(a) + len(b)) if a or b else 1.0
        for a, b in zip(truth, predicted, strict=True)
    ]
    assert result.document_f1 == pytest.approx(f1)
