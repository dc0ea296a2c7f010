"""Models of so many classes that a search looks only at those with a rare term of the document."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from longtail import LongTailClassifier, load
from longtail.distributed import fit_partitions
from longtail.estimators import long_tail
from longtail.training.config import FitConfig

N_CLASSES, N_OWN = 600, 4


def draw_documents(rng, n_per_class):
    """Documents of terms of their class, of a neighbour, and of everybody."""
    n_terms = N_CLASSES * N_OWN + 20
    X = np.zeros((N_CLASSES * n_per_class, n_terms), np.int64)
    y = np.repeat(np.arange(N_CLASSES), n_per_class)
    for row, c in zip(X, y, strict=True):
        row[c * N_OWN + rng.integers(0, N_OWN, 3)] += 1
        row[(c + 1) % N_CLASSES * N_OWN + rng.integers(0, N_OWN)] += 1
        row[-20:] += rng.poisson(0.4, 20)
    return X, y


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return *draw_documents(rng, 4), draw_documents(rng, 1)[0]


def fit(data, min_matching=2, **parameters):
    X, y, _ = data
    with many_classes_are(min_matching):
        return LongTailClassifier(random_state=0, **parameters).fit(X, y)


@contextmanager
def many_classes_are(min_matching):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_tail, "FitConfig", partial(FitConfig, min_matching=min_matching))
        yield


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data, n_jobs=1)


def same(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def predict(classifier, X, **options):
    return classifier.predict_proba_topk(X, 5, **options)


def test_held_out_documents_choose_it(data, fitted):
    check = fitted.state_.check
    assert check.postings_per_class < 1
    assert fitted.state_.pruning.matching_only
    assert len(check.recalls) == 7
    exact = fit(data, search="exact")
    assert exact.state_.check.postings_per_class >= 1
    assert len(exact.state_.check.recalls) == 4
    assert not exact.state_.pruning.matching_only
    assert not fit(data, min_matching=N_CLASSES + 1).state_.pruning.matching_only
    assert np.mean(fitted.predict(data[2]) == exact.predict(data[2])) > 0.95


def test_same_bits_for_any_threads_and_batches(data, fitted):
    found = predict(fitted, data[2])
    two = fit(data, n_jobs=2)
    assert same(predict(two, data[2]), found)
    alone = [predict(fitted, data[2][i : i + 1]) for i in range(0, 40)]
    assert all(same([a[0], b[0]], [f[i] for f in found]) for i, (a, b) in enumerate(alone))


def test_a_saved_model_finds_the_same(data, fitted, tmp_path):
    fitted.save(tmp_path / "model.longtail")
    assert same(predict(load(tmp_path / "model.longtail"), data[2]), predict(fitted, data[2]))


def test_taught_classes_are_found_as_those_of_the_file(data, tmp_path):
    """Whether base and overlay are apart or put together."""
    X, _, new = data
    classifier = fit(data)
    classifier.partial_fit(new[:40], [*range(700, 720), *range(20)])
    apart = predict(classifier, X[::7])
    classifier.save(tmp_path / "model.longtail")
    together = load(tmp_path / "model.longtail")
    assert together.state_.overlay is None
    assert same(predict(together, X[::7]), apart)
    assert np.isin(classifier.predict(new[:20]), range(700, 720)).mean() > 0.5


def test_partitions_give_the_same_bits(data, fitted, tmp_path):
    X, y, new = data
    parts = [lambda i=i: (X[i : i + 900], y[i : i + 900]) for i in range(0, len(X), 900)]
    classifier = LongTailClassifier(random_state=0)
    with many_classes_are(2):
        fit_partitions(classifier, parts, scratch=tmp_path)
    assert same(predict(classifier, new), predict(fitted, new))


def test_any_class_of_a_subset_is_found(data, fitted):
    """Also those that share nothing with the document."""
    classes, _ = predict(fitted, data[2][:9], within=[5, 99, 300, 301, 400])
    assert [sorted(row) for row in classes.tolist()] == [[5, 99, 300, 301, 400]] * 9


@pytest.mark.parametrize("search", ["approximate", None, True])
def test_other_searches_are_refused(data, search):
    with pytest.raises(ValueError, match='search must be "auto" or "exact"; got'):
        LongTailClassifier(search=search).fit(data[0][:8], data[1][:8])
