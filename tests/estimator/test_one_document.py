"""One document is ranked as it is in a batch, whatever it is given as."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import LongTailClassifier, TextClassifier
from tests.conftest import make_problem


@pytest.fixture(scope="module")
def problem():
    return make_problem(5, n_documents=300)


@pytest.fixture(scope="module", params=["fitted", "taught"])
def classifier(request, problem):
    fitted = LongTailClassifier(random_state=0, candidates=4).fit(problem.X, problem.y)
    if request.param == "taught":  # a new class, and a known one
        fitted.partial_fit(problem.X[:4], [999, 999, problem.y[2], problem.y[2]])
        assert fitted.state_.overlay is not None
    return fitted


def variants(X):
    """The same document as users may have it."""
    row = sp.csr_array(X)
    yield row
    yield row.astype(np.float32)
    yield row.astype(np.int64)
    yield 0.5 * row
    yield row.toarray()
    wide = row.copy()
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    yield wide
    locked = row.copy()
    for array in (locked.indptr, locked.indices, locked.data):
        array.flags.writeable = False
    yield locked
    scattered = row.astype(np.float32)
    for name in ("indices", "data"):
        setattr(scattered, name, np.repeat(getattr(scattered, name), 2)[::2])
    yield scattered
    yield sp.csr_array(row.shape)


def assert_first_is(batch, alone):
    assert np.array_equal(alone.classes[0], batch.classes[0])
    assert np.array_equal(alone.scores[0], batch.scores[0])


def test_one_document_is_ranked_as_in_a_batch(problem, classifier):
    for i in range(0, 60, 7):
        for row in variants(problem.X[[i]]):
            both = sp.vstack([sp.csr_array(row)] * 2, format="csr")
            for k in (1, 3, 9):
                assert_first_is(classifier.predict_topk(both, k), classifier.predict_topk(row, k))
            assert_first_is(classifier.predict_proba_topk(both), classifier.predict_proba_topk(row))


def test_one_document_is_ranked_as_in_a_large_batch(problem, classifier):
    """Few pairs are scored pair by pair, many class by class."""
    many = np.tile(problem.X, (20, 1))
    batch = classifier.predict_topk(many, 4)
    for i in range(0, 300, 29):
        assert_first_is(batch[i:], classifier.predict_topk(problem.X[[i]], 4))


def test_ties_beyond_the_shortlist():
    X = np.tile(np.eye(2), (60, 1))
    same = LongTailClassifier(random_state=0, candidates=1).fit(X, np.arange(120))
    assert same.predict(X[:1]).tolist() == same.predict(X[:2]).tolist()[:1]


def test_one_text_is_ranked_as_in_a_batch():
    texts = [f"made up text {i % 12} of number {i % 7} and {i % 12 * 5}" for i in range(120)]
    classifier = TextClassifier(random_state=0).fit(texts, [f"class {i % 12}" for i in range(120)])
    for text in (*texts[:5], "", "unknown words alone", "text"):
        alone, batch = classifier.predict_topk([text], 3), classifier.predict_topk([text] * 2, 3)
        assert_first_is(batch, alone)
