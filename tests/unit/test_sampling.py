from __future__ import annotations

import numpy as np
import pytest

from longtail.paper.sampling import draw_pairs, retention_probabilities

Y = np.repeat([0, 1, 2, 3], [1, 2, 10, 400])


def test_retention_probabilities():
    assert retention_probabilities([1, 2, 4, 400], 2).tolist() == [1.0, 1.0, 0.5, 0.005]
    assert retention_probabilities([0, 1], 0.5).tolist() == [0.5, 0.5]


def test_true_class_comes_first_and_adversaries_are_distinct_others():
    sample = draw_pairs(Y, 4, examples_per_class=50, adversaries=2, random_state=1)
    assert np.array_equal(sample.classes[:, 0], Y[sample.documents])
    for row in sample.classes:
        assert len(set(row)) == 3
        assert set(row) <= {0, 1, 2, 3}
    assert np.all(np.diff(sample.documents) > 0)
    assert sample.classes.dtype == np.int32  # the largest part of a sample


def test_small_classes_are_kept_whole_and_large_ones_thinned():
    sizes = np.zeros(4)
    for seed in range(300):
        sizes += np.bincount(draw_pairs(Y, 4, 2, 1, seed).classes[:, 0], minlength=4)
    assert sizes[:2].tolist() == [300, 600]
    # Binomial(300 * n_k, 2 / n_k): mean 600, standard deviation below 25.
    assert abs(sizes[2] - 600) < 100
    assert abs(sizes[3] - 600) < 100


def test_adversaries_are_uniform():
    y = np.full(6000, 2)
    sample = draw_pairs(y, 7, examples_per_class=6000, adversaries=3, random_state=0)
    counts = np.bincount(sample.classes[:, 1:].ravel(), minlength=7)
    assert counts[2] == 0
    # Each of the 6 others is drawn in half of the 6000 rows: standard deviation below 39.
    assert np.all(np.abs(counts[[0, 1, 3, 4, 5, 6]] - 3000) < 160)


def test_same_state_same_sample_for_any_threads():
    first = draw_pairs(Y, 4, 2, 2, 7)
    for other in (
        draw_pairs(Y, 4, 2, 2, 7, n_jobs=2),
        draw_pairs(Y, 4, 2, 2, np.random.RandomState(7)),
    ):
        assert np.array_equal(first.documents, other.documents)
        assert np.array_equal(first.classes, other.classes)
    assert not np.array_equal(first.documents, draw_pairs(Y, 4, 2, 2, 8).documents)


def test_a_draw_depends_on_its_document_alone():
    long = draw_pairs(np.zeros(100, int), 9, 100, 3, 5)
    short = draw_pairs(np.zeros(40, int), 9, 40, 3, 5)
    assert np.array_equal(long.classes[:40], short.classes)


def test_adversaries_are_capped():
    sample = draw_pairs(Y, 4, 2, 99, 0)
    assert sample.classes.shape[1] == 4
    assert all(set(row) == {0, 1, 2, 3} for row in sample.classes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adversaries": 0}, r"adversaries must be an integer of at least 1; got 0\. .*here 3"),
        ({"adversaries": 1.5}, "adversaries must be an integer"),
        ({"examples_per_class": 0}, "examples_per_class must be a positive number; got 0"),
        ({"examples_per_class": "two"}, "examples_per_class must be a positive number; got 'two'"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"n_classes": 3}, "from 0 to 2"),
    ],
)
def test_bad_arguments(options, message):
    arguments = {"y": Y, "n_classes": 4, "examples_per_class": 2, "adversaries": 2} | options
    with pytest.raises(ValueError, match=message):
        draw_pairs(**arguments)
