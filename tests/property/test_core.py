"""Properties that hold for any data."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longtail
from longtail import DoubleSamplingClassifier
from longtail._labels import LabelSets
from longtail.exceptions import NoKnownTermWarning
from longtail.model.statistics import ClassStatistics
from longtail.paper.features import centroid_scorer, pair_features, weight_for_cosine
from longtail.paper.pairwise import pair_differences
from longtail.paper.sampling import draw_pairs
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix
from tests.conftest import check_statistics, examples


@st.composite
def data_sets(draw, min_classes=2):
    """Counts with empty documents, duplicates, one-document classes and huge values; any labels."""
    n_classes = draw(st.integers(min_classes, 6))
    n_documents = draw(st.integers(n_classes, 14))
    n_terms = draw(st.integers(1, 8))
    values = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 10**6), st.floats(0, 9)]))
    X = draw(
        st.lists(
            st.lists(values, min_size=n_terms, max_size=n_terms),
            min_size=n_documents,
            max_size=n_documents,
        )
    )
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_documents, max_size=n_documents))
    y[:n_classes] = range(n_classes)
    return np.array(X, dtype=float), np.array(y), n_classes


def statistics_of(data, rows=slice(None), **options):
    X, y, n_classes = data
    return ClassStatistics.from_counts(X[rows], y[rows], n_classes, **options)


@given(data_sets(), st.data())
def test_statistics_of_label_sets_are_those_of_replicated_rows(data, choices):
    X, y, n_classes = data
    more = st.sets(st.integers(0, n_classes - 1))
    sets = [sorted({int(c), *choices.draw(more)}) for c in y]
    sets[-1] = choices.draw(st.sampled_from([sets[-1], []]))
    labels = LabelSets(
        np.cumsum([0, *map(len, sets)]),
        np.array([c for own in sets for c in own], np.int64),
        np.arange(n_classes),
    )
    whole = ClassStatistics.from_counts(X, labels, n_classes, sublinear=True)
    rows = labels.document_ids
    replicated = ClassStatistics.from_counts(
        X[rows], labels.class_ids, n_classes, sublinear=True, n_jobs=2
    )
    assert whole == replicated
    check_statistics(whole)
    # Any pair can be taken away by itself.
    pair = choices.draw(st.integers(0, len(rows) - 1))
    one = ClassStatistics.from_counts(
        X[rows[pair : pair + 1]], labels.class_ids[pair : pair + 1], n_classes, sublinear=True
    )
    rest = np.delete(np.arange(len(rows)), pair)
    assert whole - one == ClassStatistics.from_counts(
        X[rows[rest]], labels.class_ids[rest], n_classes, sublinear=True
    )
    order = np.array(choices.draw(st.permutations(range(len(sets)))))
    shuffled = ClassStatistics.from_counts(
        X[order], labels.gather(order), n_classes, sublinear=True
    )
    assert shuffled == whole


@given(data_sets(), st.data(), st.booleans())
def test_statistics_are_order_free(data, choices, sublinear):
    n = len(data[1])
    whole = statistics_of(data, sublinear=sublinear)
    order = np.array(choices.draw(st.permutations(range(n))))
    cut, cut_again = sorted(choices.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    a, b, c = (
        statistics_of(data, order[part], sublinear=sublinear)
        for part in (slice(0, cut), slice(cut, cut_again), slice(cut_again, n))
    )
    assert (a + b) + c == a + (b + c) == c + b + a == whole
    assert whole - b == a + c
    check_statistics(whole)


@given(data_sets(), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_sampled_pairs_are_proper(data, adversaries, seed):
    _, y, n_classes = data
    sample = draw_pairs(y, n_classes, 2, adversaries, seed)
    assert sample.classes.shape[1] == 1 + min(adversaries, n_classes - 1)
    assert np.array_equal(sample.classes[:, 0], y[sample.documents])
    assert all(len(set(row)) == len(row) for row in sample.classes.tolist())
    rare = np.isin(y, np.flatnonzero(np.bincount(y) <= 2))
    assert set(np.flatnonzero(rare)) <= set(sample.documents.tolist())


@given(data_sets())
def test_a_pair_swapped_is_a_difference_negated(data):
    X, y, n_classes = data
    others = np.array([[c for c in range(n_classes) if c != true] for true in y])
    classes = np.column_stack([y, others])
    features = pair_features(X, statistics_of(data), np.arange(len(y)), classes)
    assert np.isfinite(features).all()
    differences, labels = pair_differences(features, classes)
    # Numbering the classes backwards swaps every pair.
    swapped, swapped_labels = pair_differences(features, n_classes - 1 - classes)
    assert np.array_equal(swapped, -differences)
    assert np.array_equal(swapped_labels, -labels)


@given(data_sets(), st.integers(1, 6))
def test_candidates_equal_brute_force(data, q):
    X, _, n_classes = data
    statistics = statistics_of(data)
    q = min(q, n_classes)
    rows = CountMatrix.from_matrix(X)
    score = centroid_scorer(statistics, statistics.corpus)
    documents = weight_for_cosine(rows, statistics.corpus.idf)
    found, cosines = search(documents, score, build_index(score, X.shape[1]), q)
    every = pair_features(X, statistics, np.arange(len(X)), [list(range(n_classes))] * len(X))
    expected = 1 - every[:, :, 8]
    for i in range(len(X)):
        assert len(set(found[i])) == q
        assert cosines[i] == pytest.approx(expected[i, found[i]], abs=1e-9)
        left_out = np.delete(expected[i], found[i])
        assert not len(left_out) or left_out.max() <= cosines[i].min() + 1e-9
        assert np.all(np.diff(cosines[i]) <= 0)
        ties = np.diff(cosines[i]) == 0
        assert np.all(np.diff(found[i])[ties] > 0)


@pytest.mark.filterwarnings("ignore::longtail.exceptions.NoKnownTermWarning")
@given(data_sets(), st.integers(0, 3), st.integers(1, 4))
def test_predictions(data, seed, candidates):
    X, y, n_classes = data
    classifier = DoubleSamplingClassifier(candidates=candidates, random_state=seed).fit(X, y)
    top = classifier.predict_topk(X, n_classes)
    counted = np.asarray(X) >= 2.0**-32  # anything less is taken as zero
    known = counted[:, classifier.statistics_.class_frequencies > 0].any(axis=1)
    assert np.array_equal(top.valid.any(axis=1), known)
    with pytest.warns(NoKnownTermWarning) if not known.all() else contextlib.nullcontext():
        predicted = classifier.predict(X)
    assert np.array_equal(predicted, np.where(known, top.classes[:, 0], np.bincount(y).argmax()))
    for k in range(1, n_classes):  # top-k is a prefix of top-(k+1)
        shorter = classifier.predict_topk(X, k)
        assert np.array_equal(shorter.classes, top.classes[:, :k])
        assert np.array_equal(shorter.scores, top.scores[:, :k])
    for i in range(len(X)):  # alone or in a batch
        alone = classifier.predict_topk(X[i : i + 1], n_classes)
        assert np.array_equal(alone.classes[0], top.classes[i])
        assert np.array_equal(alone.scores[0], top.scores[i])
    threaded = DoubleSamplingClassifier(candidates=candidates, random_state=seed, n_jobs=2)
    assert np.array_equal(
        threaded.fit(sp.csr_array(X), y).predict_topk(X, n_classes).scores, top.scores
    )
    for e, i in zip(classifier.explain(X), range(len(X)), strict=True):
        assert e.label == predicted[i]
        assert sum(e.features.values()) == pytest.approx(e.score, rel=1e-9, abs=1e-9)
        if known[i]:
            assert e.score == pytest.approx(top.scores[i, 0], rel=1e-9, abs=1e-9)
        else:
            assert e.terms == e.common == {}


@given(data_sets(), st.data())
def test_teaching_and_forgetting_is_exact(data, choices):
    X, y, n_classes = data
    classifier = DoubleSamplingClassifier(random_state=0).fit(X, y)
    before, statistics = classifier.predict_topk(X, n_classes), classifier.statistics_
    rows = choices.draw(st.lists(st.integers(0, len(y) - 1), min_size=1, max_size=5))
    labels = choices.draw(
        st.lists(st.integers(-2, n_classes + 2), min_size=len(rows), max_size=len(rows))
    )
    classifier.partial_fit(X[rows], labels)
    check_statistics(classifier.statistics_)
    classifier.forget(X[rows], labels)
    after = classifier.predict_topk(X, n_classes)
    assert classifier.statistics_ == statistics
    assert np.array_equal(before.classes, after.classes)
    assert np.array_equal(before.scores, after.scores)


@examples(20)
@given(data_sets())
def test_saving_keeps_every_bit(tmp_path_factory, data):
    X, y, n_classes = data
    classifier = DoubleSamplingClassifier(random_state=0).fit(X, y)
    path = tmp_path_factory.mktemp("models") / "model"
    classifier.save(path)
    loaded = longtail.load(path)
    one, other = classifier.predict_topk(X, n_classes), loaded.predict_topk(X, n_classes)
    assert np.array_equal(one.classes, other.classes)
    assert np.array_equal(one.scores, other.scores)
