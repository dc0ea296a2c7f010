"""Documents much shorter than usual are doubted as much as truncated documents show."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from longtail import LongTailClassifier
from longtail.metrics import expected_calibration_error
from longtail.sparse import CountMatrix
from longtail.training.calibration import Calibrator, calibrate, learn_shortness
from longtail.training.outcomes import recalibrate
from longtail.training.short_documents import (
    LARGEST_SLOPE,
    SHARES,
    doubt_short,
    find_short_length,
    fit_slope,
    truncate_documents,
)
from tests import oracle_calibration as oracle


def draw_counts(seed=0, n_documents=30, n_terms=40):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_documents, n_terms))
    X[3] = 0
    X[4] = [1] + [0] * (n_terms - 1)
    return X


def test_truncate_documents_are_nested_parts():
    X = draw_counts()
    truncated = truncate_documents(CountMatrix.from_matrix(X), seed=7)
    copies = truncated.counts.to_csr().toarray().reshape(len(SHARES), *X.shape)
    assert truncated.document_ids.tolist() == [*range(len(X))] * len(SHARES)
    n_terms = np.count_nonzero(X, axis=1)
    for share, copy in zip(SHARES, copies, strict=True):
        assert np.count_nonzero(copy, axis=1).tolist() == np.ceil(share * n_terms).tolist()
        assert np.all((copy == X) | (copy == 0))
    for longer, shorter in itertools.pairwise(copies):
        assert np.all((shorter == longer) | (shorter == 0))


def test_cuts_depend_on_seed_and_row_alone():
    counts = CountMatrix.from_matrix(draw_counts())
    first = (
        truncate_documents(counts, seed=1).counts.to_csr().toarray().reshape(len(SHARES), 30, 40)
    )
    few = truncate_documents(counts.slice(slice(10)), seed=1).counts.to_csr().toarray()
    assert np.array_equal(few.reshape(len(SHARES), 10, 40), first[:, :10])
    assert not np.array_equal(first, truncate_documents(counts, seed=2).counts.to_csr().toarray())


def test_at_most_so_many_documents_are_cut(monkeypatch):
    monkeypatch.setattr("longtail.training.short_documents.MAX_TRUNCATED", 5)
    truncated = truncate_documents(CountMatrix.from_matrix(draw_counts()), seed=0)
    assert truncated.counts.n_documents == 5 * len(SHARES)


def test_a_tenth_of_the_documents_is_short():
    assert find_short_length(np.arange(1, 102)) == 11
    assert find_short_length(np.array([0, 0, 0])) == 1
    assert find_short_length(np.array([9])) == 9


def test_doubt_by_hand():
    p = np.array([0.8, 0.8, 0.8, 1.0, 1.0, 0.0])
    doubted = doubt_short(p, np.array([10, 5, 0, 10, 5, 5]), short_length=10.0, slope=1.0)
    certain = 0.999 / (0.999 + 2 * 0.001)  # odds 999, halved
    assert doubted == pytest.approx([0.8, 2 / 3, 0.4 / 1.4, 1.0, certain, 0.0])
    assert doubt_short(p, np.zeros(6, int), 10.0, slope=0.0) is p
    rows = doubt_short(np.array([[0.8, 0.5], [0.8, 0.5]]), np.array([10, 5]), 10.0, 1.0)
    assert rows == pytest.approx(np.array([[0.8, 0.5], [2 / 3, 1 / 3]]))


@pytest.mark.parametrize("slope", [0.0, 0.7, 1.9])
def test_the_slope_is_found_again(slope):
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 40, 40_000)
    p = rng.random(len(lengths))
    correct = rng.random(len(p)) < doubt_short(p, lengths, 20.0, slope)
    assert fit_slope(p, correct, lengths, 20.0) == pytest.approx(slope, abs=0.05)


def test_slopes_stay_in_their_range():
    p, lengths = np.full(20, 0.5), np.full(20, 2)
    assert fit_slope(p, np.ones(20, bool), lengths, 9.0) == 0.0
    assert fit_slope(p, np.zeros(20, bool), lengths, 9.0) == pytest.approx(LARGEST_SLOPE)
    assert fit_slope(p, np.zeros(20, bool), lengths, 1.0) == 0.0  # none is short


def test_learned_shortness_equals_the_oracle():
    rng = np.random.default_rng(5)
    scores = -np.sort(-rng.normal(0, 2, (60, 4)), axis=1)
    correct = np.zeros((60, 4), bool)
    correct[:, 0] = rng.random(60) < 0.3
    lengths, truncated_lengths = rng.integers(3, 30, 80), rng.integers(0, 9, 60)
    knots = [(-2.0, 0.2), (0.5, 0.6), (3.0, 1.0)]
    none = np.zeros(0)
    ours = Calibrator(*np.array(knots).T, none, none, none, none.astype(bool))
    found = learn_shortness(ours, lengths, scores, correct, truncated_lengths)
    truncated = list(
        zip(truncated_lengths.tolist(), scores.tolist(), correct[:, 0].tolist(), strict=True)
    )
    theirs = oracle.learn_shortness(oracle.Calibrator(top=knots), lengths.tolist(), truncated)
    assert found.short_length == theirs.short_length
    assert 0.0 < found.short_slope < LARGEST_SLOPE
    assert found.short_slope == pytest.approx(theirs.short_slope, abs=1e-9)
    for marginal in (False, True):
        mine = calibrate(scores, replace(found, marginal=marginal), truncated_lengths)
        rows = [
            oracle.calibrate(row, replace(theirs, marginal=marginal), length)
            for length, row, _ in truncated
        ]
        assert mine == pytest.approx(np.array(rows), abs=1e-9)


def test_what_is_usual_among_outcomes_is_not_short():
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(0, 2, (60, 4)), axis=1)
    correct = np.zeros((60, 4), bool)
    before = replace(Calibrator.identity(), short_length=20.0, short_slope=1.0)
    assert recalibrate(before, scores, correct, 0, np.full(60, 5)).short_length == 5.0
    assert recalibrate(before, scores, correct, 0, np.full(60, 30)).short_length == 20.0
    few = recalibrate(before, scores[:10], correct[:10], 0, np.full(10, 5))
    assert few.short_length == 20.0
    assert recalibrate(before, scores, correct).short_length == 20.0


def test_queries_of_a_few_words_are_not_promised_too_much():
    """Long documents are nearly always right, a few words of them seldom; both are told so."""
    rng = np.random.default_rng(1)
    n_classes, n_terms = 60, 300
    topics = rng.dirichlet(np.full(n_terms, 0.05), n_classes)
    y = np.repeat(np.arange(n_classes), 30)
    mixed = 0.35 * topics[y] + 0.65 / n_terms
    X = np.array([rng.multinomial(60, row) for row in mixed])
    test = rng.random(len(y)) < 0.3
    model = LongTailClassifier(random_state=0).fit(X[~test], y[~test])
    queries = np.array([rng.multinomial(3, row) for row in mixed[test]])

    def error(rows):
        top = model.predict_proba_topk(rows, 1)
        return expected_calibration_error(top.scores[:, 0], top.classes[:, 0] == y[test])

    blind = replace(model.state_.calibrator, short_slope=0.0)
    told = error(queries), error(X[test])
    model._state = replace(model.state_, calibrator=blind)
    untold = error(queries), error(X[test])
    assert told[0] < untold[0] / 2
    assert told[1] < untold[1] + 0.01
