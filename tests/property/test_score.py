"""Properties of the additive score that hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.model.features import leave_one_out_scores, score_features, term_contributions
from longtail.model.scorer import build_scorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile, estimate_collection_model, weight_documents
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix
from tests.conftest import examples, fit_residuals, mined_rows, single_labels

WEIGHTS = np.array([3.0, 0.7, 0.2, -0.4, 1.5, 0.9])
quick = examples(50)


@st.composite
def data_sets(draw):
    """Counts with empty documents, duplicates, one-document classes, fractions and huge values."""
    n_classes = draw(st.integers(2, 5))
    n_documents = draw(st.integers(n_classes, 10))
    n_terms = draw(st.integers(1, 7))
    values = draw(st.sampled_from([st.integers(0, 2), st.integers(0, 10**6), st.floats(0, 3)]))
    row = st.lists(values, min_size=n_terms, max_size=n_terms)
    X = draw(st.lists(row, min_size=n_documents, max_size=n_documents))
    for copy, original in draw(
        st.lists(st.tuples(*[st.integers(0, n_documents - 1)] * 2), max_size=2)
    ):
        X[copy] = X[original]
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_documents, max_size=n_documents))
    y[:n_classes] = range(n_classes)
    return np.array(X, dtype=float), np.array(y), n_classes


def prepare(data):
    X, y, n_classes = data
    statistics = ClassStatistics.from_counts(X, y, n_classes, sublinear=True)
    documents = weight_documents(CountMatrix.from_matrix(X), statistics.corpus.idf)
    profile = Profile.of(statistics, statistics.corpus, estimate_collection_model(statistics))
    return documents, profile, np.tile(np.arange(n_classes), (len(y), 1))


@quick
@given(data_sets())
def test_leaving_out_equals_statistics_without_the_document(data):
    X, y, n_classes = data
    documents, profile, every = prepare(data)
    computed = score_features(documents, np.arange(len(y)), every, y, profile)
    scores = leave_one_out_scores(documents, y, profile, WEIGHTS)
    assert np.isfinite(computed).all()
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        statistics = ClassStatistics.from_counts(X[kept], y[kept], n_classes, sublinear=True)
        rebuilt = Profile.of(statistics, profile.corpus, profile.collection_model)
        nobody = np.array([-1])
        expected = score_features(documents, np.array([i]), every[:1], nobody, rebuilt)[0]
        np.testing.assert_allclose(computed[i], expected, rtol=1e-5, atol=1e-7)
        assert scores[i] == pytest.approx(expected[y[i]] @ WEIGHTS, rel=1e-5, abs=1e-5)


@quick
@given(data_sets())
def test_a_document_alone_in_its_class_leaves_nothing_behind(data):
    _, y, _ = data
    documents, profile, _ = prepare(data)
    features = score_features(documents, np.arange(len(y)), y[:, None], y, profile)[:, 0]
    alone = features[np.bincount(y)[y] == 1]
    assert np.all(alone[:, 2] == np.float32(np.log(0.5)))
    assert not np.delete(alone, 2, axis=1).any()


@quick
@given(data_sets(), st.booleans())
def test_features_contributions_and_scores_agree(data, left_out):
    _, y, n_classes = data
    documents, profile, every = prepare(data)
    chosen = np.arange(len(y))[::-1].copy()
    own = y[chosen] if left_out else np.full(len(y), -1)
    expected = score_features(documents, chosen, every, own, profile) @ WEIGHTS
    parts = term_contributions(documents, chosen, every, own, profile, WEIGHTS)
    for i in range(len(y)):
        values = parts.values[parts.offsets[i] : parts.offsets[i + 1]].reshape(n_classes, -1)
        sums = values.sum(axis=1, dtype=np.float64) + parts.biases[i]
        np.testing.assert_allclose(sums, expected[i], rtol=1e-4, atol=1e-5)
    if not left_out:
        scores = score_pairs(documents, every, build_scorer(profile, WEIGHTS))[chosen]
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


@quick
@given(data_sets())
def test_alone_or_in_a_batch_a_document_gets_the_same_bits(data):
    X, _, n_classes = data
    documents, profile, every = prepare(data)
    score = build_scorer(profile, WEIGHTS)
    index = build_index(score, X.shape[1])
    batch = score_pairs(documents, every, score)
    found = search(documents, score, index, n_classes)
    for i in range(len(X)):
        single = weight_documents(CountMatrix.from_matrix(X[i : i + 1]), profile.corpus.idf)
        assert np.array_equal(score_pairs(single, every[:1], score)[0], batch[i])
        classes, scores = search(single, score, index, n_classes)
        assert np.array_equal(classes[0], found[0][i])
        assert np.array_equal(scores[0], found[1][i])


@quick
@given(data_sets(), st.integers(1, 5), st.booleans())
def test_highest_classes_equal_brute_force(data, q, exclude):
    X, y, n_classes = data
    documents, profile, every = prepare(data)
    score = build_scorer(profile, WEIGHTS)
    q = min(q, n_classes - exclude)
    own = single_labels(y) if exclude else None
    classes, scores = search(documents, score, build_index(score, X.shape[1]), q, labels=own)
    expected = score_pairs(documents, every, score)
    if exclude:
        expected[np.arange(len(y)), y] = -np.inf
    best = -np.sort(-expected, axis=1)[:, :q]
    np.testing.assert_allclose(scores, best, atol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(expected, classes, axis=1), best, atol=1e-9)
    assert all(len(set(row)) == q for row in classes.tolist())
    assert np.all(np.diff(scores, axis=1) <= 0)
    assert np.all(np.diff(classes, axis=1)[np.diff(scores, axis=1) == 0] > 0)


@quick
@given(data_sets(), st.sampled_from([0.1, 1.0, 4.0]), st.integers(2, 3))
def test_class_weights_are_finite_sorted_and_the_same_for_any_threads(data, cost, n_jobs):
    _, y, n_classes = data
    documents, profile, _ = prepare(data)
    others = np.array([[c for c in range(n_classes) if c != true] for true in y])
    classes = np.column_stack([y, others])
    scores = score_pairs(documents, classes, build_scorer(profile, WEIGHTS))
    scores[:, 0] = leave_one_out_scores(documents, y, profile, WEIGHTS)
    one = fit_residuals(documents, mined_rows(classes), scores.__getitem__, n_classes, cost)
    other = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, n_classes, cost, n_jobs=n_jobs
    )
    for name in ("indptr", "indices", "weights", "biases"):
        assert np.isfinite(getattr(one, name)).all()
        assert np.array_equal(getattr(one, name), getattr(other, name))
    for c in range(n_classes):
        assert np.all(np.diff(one.indices[one.indptr[c] : one.indptr[c + 1]]) > 0)
