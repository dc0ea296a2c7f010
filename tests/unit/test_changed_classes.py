"""A second mining searches only the classes that changed, and finds what a whole search finds."""

from __future__ import annotations

import numpy as np
import pytest

from longtail._constants import WHOLE_QUERY
from longtail._labels import read_label_sets
from longtail.retrieval.index import IndexShards, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import LinearScorer
from longtail.scoring.weighting import WeightedDocuments
from longtail.sparse import CountMatrix
from longtail.training import negatives, scored_classes
from longtail.training.config import FitConfig
from longtail.training.negatives import ChangedClasses, few_changed, mine_pairs
from tests.conftest import single_labels

N_CLASSES, N_TERMS, N_DOCUMENTS = 90, 40, 70


def draw_scorer(rng, like=None, changed=()):
    """Values of a few sizes, so that classes tie; all but the changed classes are as in `like`."""
    dense = rng.integers(0, 4, (N_CLASSES, N_TERMS)) * (rng.random((N_CLASSES, N_TERMS)) < 0.2)
    biases = rng.integers(0, 2, N_CLASSES) * 0.5
    if like is not None:
        kept = np.setdiff1d(np.arange(N_CLASSES), changed)
        dense[kept], biases[kept] = like[0][kept], like[1][kept]
    rows = CountMatrix.from_matrix(dense)
    weights = rows.data.astype(np.float32)
    scorer = LinearScorer(rows.indptr, rows.indices, weights, -0.1 * biases, biases)
    return (dense, biases), scorer


class Scored:
    """What `find_others` reads."""

    n_classes = N_CLASSES

    def __init__(self, scorer):
        self.scorer = scorer


@pytest.mark.parametrize("n_changed", [1, 11, 60])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("bounds", [None, [0, 30, 90]])
@pytest.mark.parametrize("budgets", [(WHOLE_QUERY, WHOLE_QUERY), (60, 60), (60, 80)])
def test_the_same_pairs(n_changed, several, bounds, budgets):
    """Also where some documents search with other terms than before."""
    rng = np.random.default_rng(n_changed)
    changed = np.sort(rng.choice(N_CLASSES, n_changed, replace=False))
    values, before = draw_scorer(rng)
    _, after = draw_scorer(rng, values, changed)
    rows = CountMatrix.from_matrix(rng.poisson(0.15, (N_DOCUMENTS, N_TERMS)))
    documents = WeightedDocuments(rows, rows.data.astype(np.float32), rng.random(N_DOCUMENTS))
    sets = [rng.choice(N_CLASSES, rng.integers(0, 4), replace=False) for _ in range(N_DOCUMENTS)]
    labels = single_labels(rng.integers(0, N_CLASSES, N_DOCUMENTS), N_CLASSES)
    if several:
        labels = read_label_sets(sets, multilabel=True).with_classes(np.arange(N_CLASSES))
    index = build_index(before, N_TERMS)
    if bounds is not None:
        index = IndexShards(
            bounds,
            lambda i: build_index(before.slice_classes(*bounds[i : i + 2]), N_TERMS),
        )
    every = np.arange(N_DOCUMENTS)
    frequencies = np.bincount(before.indices, minlength=N_TERMS).astype(np.int32)
    others = scored_classes.find_others(
        documents,
        labels,
        Scored(before),
        index,
        changed,
        QueryPruning(frequencies, budgets[0]),
        FitConfig(candidates=8),
    )
    assert not np.isin(others.classes, changed).any()
    n_again = 0
    for scorer, budget in ((before, budgets[0]), (after, budgets[1])):
        pruning = QueryPruning(frequencies, budget)
        whole = build_index(scorer, N_TERMS)
        expected = mine_pairs(documents, labels, scorer, whole, pruning, 8)
        sliced = scorer.gather_classes(changed)
        apart = ChangedClasses(others, sliced, build_index(sliced, N_TERMS), whole)
        found = mine_pairs(documents, labels, scorer, apart, pruning, 8)
        assert np.array_equal(found.classes, expected.classes)
        assert found.classes.dtype == expected.classes.dtype
        pruned = (QueryPruning(frequencies, b).prune(documents, every) for b in budgets)
        n_again = np.count_nonzero(negatives._differ(*pruned, every))
    assert (n_again > 0) == (budgets[0] != budgets[1])


def test_ids_of_postings_have_one_type():
    """So that the search is compiled once."""
    scorer = draw_scorer(np.random.default_rng(0))[1]
    assert build_index(scorer, N_TERMS).classes.dtype == np.uint16
    assert build_index(scorer, N_TERMS, n_of_all=1 << 17).classes.dtype == np.int32


def test_only_with_few_changes():
    ids = np.arange(10)
    assert few_changed(ids, 80)
    assert not few_changed(ids, 79)
