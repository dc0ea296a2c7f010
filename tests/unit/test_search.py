from __future__ import annotations

import numpy as np
import pytest

from longtail._labels import read_label_sets
from longtail._validation import cap_candidates
from longtail.model.statistics import ClassStatistics
from longtail.paper.features import centroid_scorer, weight_for_cosine
from longtail.retrieval.index import IndexShards, build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix


def search_counts(X, y, n_classes, documents, q, **options):
    statistics = ClassStatistics.from_counts(X, y, n_classes)
    score = centroid_scorer(statistics, statistics.corpus)
    rows = CountMatrix.from_matrix(np.asarray(documents, dtype=float))
    weighed = weight_for_cosine(rows, statistics.corpus.idf)
    return search(weighed, score, build_index(score, rows.n_terms), q, **options)


def test_nearest_first():
    classes, cosines = search_counts(np.eye(3), [0, 1, 2], 3, [[0, 2, 1]], 3)
    assert classes.tolist() == [[1, 2, 0]]
    assert cosines[0] == pytest.approx([2 / 5**0.5, 1 / 5**0.5, 0])


def test_ties_go_to_the_lower_class():
    X = np.tile([[1, 1]], (5, 1))
    classes, cosines = search_counts(X, [4, 2, 0, 1, 3], 5, [[1, 0], [3, 3]], 4)
    assert classes.tolist() == [[0, 1, 2, 3]] * 2
    assert np.all(cosines == cosines[:, :1])


def test_classes_that_share_nothing_fill_up_in_order():
    classes, cosines = search_counts(np.eye(4), [0, 1, 2, 3], 4, [[0, 0, 1, 0], [0, 0, 0, 0]], 4)
    assert classes.tolist() == [[2, 0, 1, 3], [0, 1, 2, 3]]
    assert cosines.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]


def test_same_bits_for_any_threads(problem):
    one = search_counts(problem.X, problem.y, 7, problem.X, 5)
    two = search_counts(problem.X, problem.y, 7, problem.X, 5, n_jobs=2)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("bounds", [[0, 4, 7], [0, 2, 5, 7], [0, 7]])
def test_parts_of_the_index_find_what_the_whole_finds(problem, bounds):
    """Also where labels leave a part fewer classes than are wanted."""
    statistics = ClassStatistics.from_counts(problem.X, problem.y, 7)
    scorer = centroid_scorer(statistics, statistics.corpus)
    documents = weight_for_cosine(CountMatrix.from_matrix(problem.X), statistics.corpus.idf)
    sets = [[i % 7, (i + 1) % 7, (i + 3) % 7] if i % 3 else [] for i in range(len(problem.y))]
    labels = read_label_sets(sets, multilabel=True).with_classes(np.arange(7))
    shards = IndexShards(bounds, lambda i: build_index(scorer.slice(slice(*bounds[i : i + 2])), 25))
    for settings in ({}, {"labels": labels}):
        whole = search(documents, scorer, build_index(scorer, 25), 2, **settings)
        found = search(documents, scorer, shards, 2, **settings)
        assert all(np.array_equal(a, b) for a, b in zip(whole, found, strict=True))


@pytest.mark.parametrize("q", [0, -1, 2.5, None])
def test_bad_number_of_candidates(q):
    with pytest.raises(ValueError, match="candidates must be an integer of at least 1"):
        cap_candidates(q, 5)


def test_capped():
    assert cap_candidates(99, 5) == 5
