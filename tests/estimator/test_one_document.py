"""One document is ranked as it is in a batch, by kernels that are called without numba's look."""

from __future__ import annotations

import pickle

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from longtail import LongTailClassifier, TextClassifier, load
from longtail._kernels.calling import DirectCalls
from tests.conftest import make_problem


@pytest.fixture(scope="module")
def problem():
    return make_problem(5, n_documents=300)


@pytest.fixture(scope="module")
def fitted(problem):
    return LongTailClassifier(random_state=0, candidates=4).fit(problem.X, problem.y)


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


@pytest.fixture
def checked_calls(monkeypatch):
    """Compare the types of every direct call with those that it was compiled for."""
    seen, call = {}, DirectCalls.call

    def compare(self, kernel, key, *arguments):
        types = tuple(numba.typeof(argument) for argument in arguments)
        assert seen.setdefault((id(self), id(kernel), key), types) == types
        return call(self, kernel, key, *arguments)

    monkeypatch.setattr(DirectCalls, "call", compare)
    return seen


def test_one_document_is_ranked_as_in_a_batch(problem, fitted, checked_calls):
    for i in range(0, 60, 7):
        for row in variants(problem.X[[i]]):
            both = sp.vstack([sp.csr_array(row)] * 2, format="csr")
            for k in (1, 3, 9):
                alone, batch = fitted.predict_topk(row, k), fitted.predict_topk(both, k)
                assert np.array_equal(alone.classes[0], batch.classes[0])
                assert np.array_equal(alone.scores[0], batch.scores[0])
    assert len(checked_calls) >= 5


def test_a_copy_or_a_file_finds_its_kernels_anew(problem, fitted, checked_calls, tmp_path):
    row = problem.X[[0]]
    expected = fitted.predict_topk(row, 3)
    fitted.save(tmp_path / "model.longtail")
    copies = [pickle.loads(pickle.dumps(fitted)), load(tmp_path / "model.longtail")]
    for model in copies:
        found = model.predict_topk(row, 3)
        assert np.array_equal(found.classes, expected.classes)
        assert np.array_equal(found.scores, expected.scores)
    fitted.predict(row)
    assert not pickle.loads(pickle.dumps(fitted._state.direct_calls))._entries


def test_ties_beyond_the_shortlist_and_taught_classes_take_the_long_way(problem):
    X = np.tile(np.eye(2), (60, 1))
    same = LongTailClassifier(random_state=0, candidates=1).fit(X, np.arange(120))
    assert same.predict(X[:1]).tolist() == same.predict(X[:2]).tolist()[:1]
    taught = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    taught.partial_fit(problem.X[:1], [999])
    alone, batch = taught.predict_topk(problem.X[:1], 3), taught.predict_topk(problem.X[:2], 3)
    assert np.array_equal(alone.classes[0], batch.classes[0])
    assert np.array_equal(alone.scores[0], batch.scores[0])


def test_one_text_is_ranked_as_in_a_batch(checked_calls):
    texts = [f"made up text {i % 12} of number {i % 7} and {i % 12 * 5}" for i in range(120)]
    classifier = TextClassifier(random_state=0).fit(texts, [f"class {i % 12}" for i in range(120)])
    for text in (*texts[:5], "", "unknown words alone", "text"):
        alone, batch = classifier.predict_topk([text], 3), classifier.predict_topk([text] * 2, 3)
        assert np.array_equal(alone.classes[0], batch.classes[0])
        assert np.array_equal(alone.scores[0], batch.scores[0])
