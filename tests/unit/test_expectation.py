"""What a fit expects of new documents: the measures of evaluate, and intervals that hold them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import LongTailClassifier, metrics
from longtail._constants import EXPECTED, FREQUENCY_BANDS, MEASURES
from longtail._labels import read_label_sets
from longtail.metrics.evaluation import evaluate
from longtail.sparse import CountMatrix
from longtail.training import pipeline
from longtail.training.calibration import Calibrator
from longtail.training.documents import Documents, drop_unknown_terms, sum_block
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
    found, measured = expected(classifier), evaluate(classifier, [(X, y)])
    assert not {"accuracy", "top_5", "calibration_error"} & set(found)
    values = vars(measured.sets) | {"r_precision": measured.r_precision}
    values |= {
        f"{name}@{k}": measured.ranking[name][k] for name in ("P", "nDCG") for k in (1, 3, 5)
    }
    values["label_calibration_error"] = measured.certainty.calibration_error
    promised = set(found) & set(MEASURES)
    assert promised == set(values) - {"mean_size"}
    for name in promised:
        _, low, high = found[name]
        assert low <= values[name] <= high, (name, found[name], values[name])
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


def make_rare_sets(n_documents, seed):
    """Return counts and label lists: words of each label; most of 3,000 classes are rare."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(5, 3005)
    rows, columns, y = [], [], []
    for row in range(n_documents):
        labels = rng.choice(3000, rng.integers(1, 5), False, popularity / popularity.sum())
        y.append(labels.tolist())
        words = [*(6 * np.repeat(labels, 3) + rng.integers(0, 6, 3 * len(labels)))]
        words += rng.integers(0, 18_000, 6).tolist()
        rows += [row] * len(words)
        columns += words
    counts = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_documents, 18_000))
    return counts, y


def name_rows():
    """Return two of the words of each class as the text of it."""
    rows = np.arange(3000)
    columns = np.concatenate([6 * rows, 6 * rows + 1])
    return rows, sp.csr_array((np.ones(6000), (np.tile(rows, 2), columns)), shape=(3000, 18_000))


@pytest.fixture(scope="module", params=[(0, False), (1, False), (0, True), (1, True)])
def rare(request):
    """A model of label sets of which many are new later, with texts of classes or without."""
    seed, named = request.param
    X, y = make_rare_sets(4500, seed)
    classifier = LongTailClassifier(random_state=seed, n_jobs=1)
    classifier.fit(X[:2500], y[:2500], class_texts=name_rows() if named else None)
    known = {label for labels in y[:2500] for label in labels}
    assert sum(not known.issuperset(labels) for labels in y[2500:]) > 300
    return classifier, X[2500:], y[2500:]


def test_new_documents_with_labels_that_no_document_has_are_as_expected(rare):
    classifier, X, y = rare
    result = evaluate(classifier, [(X, y)])
    values = {"mean_f1": result.sets.mean_f1, "recall": result.sets.recall}
    values |= {"P@1": result.ranking["P"][1], "nDCG@5": result.ranking["nDCG"][5]}
    found = expected(classifier)
    for name in set(values) & set(found):
        value, low, high = found[name]
        assert low <= value <= high
        # The model has one document in seven more than when they were held out.
        assert low - 0.01 <= values[name] <= high + 0.02, (name, found[name], values[name])


def test_labels_are_no_more_probable_than_they_are_right_though_some_are_new(rare):
    classifier, X, y = rare
    top = classifier.predict_proba_topk(X, k=20)
    correct = np.array([np.isin(row, own) for row, own in zip(top.classes, y, strict=True)])
    # 375 documents were held out: the standard error of a share of theirs is 0.025.
    assert top.scores[:, 0].mean() < correct[:, 0].mean() + 0.04
    likely = top.scores >= 0.05
    assert -0.1 < top.scores[likely].mean() - correct[likely].mean() < 0.05
    for precision in (0.6, 0.7, 0.8):
        kept = classifier.threshold_for(precision).keeps(top)
        assert kept.sum() < 100 or correct[kept].mean() > precision - 0.03


def test_held_out_documents_are_read_as_new_ones():
    X = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 2]])
    documents = Documents(CountMatrix.from_matrix(X), read_label_sets([["a"], ["b"], ["a", "b"]]))
    rest = sum_block(documents.gather(np.array([0])), sublinear=True, n_jobs=1)
    read = drop_unknown_terms(documents, rest, n_jobs=1)
    assert read.counts.to_csr().toarray().tolist() == [[1, 1, 0, 0], [0, 1, 0, 0], [0] * 4]
    assert read.labels is documents.labels


@pytest.mark.parametrize("several", [False, True])
def test_no_held_out_document_has_a_term_that_is_its_own(monkeypatch, several):
    """A new document has no such term either: the vocabulary is that of the training documents."""
    seen, find = [], pipeline.find_candidates

    def look(held_out, scorer, **given):
        seen.append(np.isin(held_out.counts.indices, scorer.indices).all())
        return find(held_out=held_out, scorer=scorer, **given)

    problem = make_problem(n_documents=60)
    y = [[label] for label in problem.y] if several else problem.y
    monkeypatch.setattr(pipeline, "find_candidates", look)
    LongTailClassifier(random_state=0).fit(np.hstack([problem.X, np.eye(60, dtype=int)]), y)
    assert seen == [True]


def test_a_band_has_both_ways_to_count_what_a_class_has_lost():
    labels = single_labels(np.array([0, 0, 1]))
    ranking = np.array([[0, 1], [1, 0], [0, 1]])
    arguments = (labels, ranking, np.zeros((3, 2)), np.ones(3), Calibrator.identity())
    left = np.array([1, 3])  # of 3 and 4 documents
    table = expect_measures(*arguments, left, np.zeros(5))
    rows = dict(zip(EXPECTED, table.tolist(), strict=True))

    # By what is left, class 0 is a class of one document; but for the document itself, of two.
    def widen(share, n):  # by the chance in as many new documents
        return np.clip(
            share + np.sqrt(2) * (np.array(metrics.wilson_interval(share, n)) - share), 0, 1
        )

    assert rows["1"] == pytest.approx([1 / 2, *widen(1 / 2, 2)], abs=1e-6)
    of_one, of_three = widen(0, 1), widen(1 / 3, 3)
    assert rows["2-5"] == pytest.approx([1 / 6, of_one[0], max(of_one[1], of_three[1])], abs=1e-6)
    assert rows["accuracy"][0] == pytest.approx(1 / 3, abs=1e-6)
    assert rows["mean_f1"] == rows["more"] == [-1.0] * 3
    lower = expect_measures(*arguments, left, np.full(len(FREQUENCY_BANDS), 0.05))
    assert lower[EXPECTED.index("1"), 1] == pytest.approx(max(rows["1"][1] - 0.05, 0), abs=1e-6)


def test_without_held_out_documents_nothing_is_expected(problem):
    classifier = LongTailClassifier(calibrate=False).fit(problem.X, problem.y)
    assert np.array_equal(classifier.self_check_.expected, nothing_expected())
    assert "accuracy" not in classifier.self_check_.summary()
