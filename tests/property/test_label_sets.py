"""Properties of whole models of label sets that hold for any data."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail import LongTailClassifier
from longtail.exceptions import UncalibratedWarning
from tests.conftest import examples
from tests.property.test_core import data_sets

# A fit takes 10 to 50 ms: fewer examples than for kernels, of data that is as odd.
few = examples(12)


def fit(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncalibratedWarning)
        return LongTailClassifier(random_state=0, **options).fit(X, y)


def ranked(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncalibratedWarning)
        top = model.predict_topk(X, 6), model.predict_proba_topk(X, 6)
    return [array for entry in top for array in (entry.classes, entry.scores)]


def assert_same(one, other, X):
    for mine, theirs in zip(ranked(one, X), ranked(other, X), strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(one.state_.residuals.weights, other.state_.residuals.weights)
    assert one.statistics_ == other.statistics_


def draw_sets(choices, y, n_classes):
    more = st.sets(st.integers(0, n_classes - 1), max_size=3)
    return [sorted({int(c), *choices.draw(more)}) for c in y]


@few
@given(data_sets())
def test_one_label_each_is_the_single_label_model(data):
    X, y, _ = data
    assert_same(fit(X, y), fit(X, [[int(c)] for c in y]), X)


@few
@given(data_sets(), st.data())
def test_the_order_of_labels_does_not_matter(data, choices):
    X, y, n_classes = data
    sets = draw_sets(choices, y, n_classes)
    shuffled = [list(choices.draw(st.permutations(own))) for own in sets]
    assert_same(fit(X, sets), fit(X, shuffled, n_jobs=2), X)


@few
@given(data_sets(), st.data())
def test_the_order_of_documents_matters_to_no_sum_and_no_prediction(data, choices):
    X, y, n_classes = data
    sets = draw_sets(choices, y, n_classes)
    order = choices.draw(st.permutations(range(len(y))))
    model = fit(X, sets)
    assert fit(X[order], [sets[i] for i in order]).statistics_ == model.statistics_
    for given_order, shuffled in zip(ranked(model, X), ranked(model, X[order]), strict=True):
        assert np.array_equal(given_order[order], shuffled)


@few
@given(data_sets(), st.data())
def test_adding_and_forgetting_a_label_set_is_exact(data, choices):
    X, y, n_classes = data
    sets = draw_sets(choices, y, n_classes)
    model = fit(X, sets)
    edited = LongTailClassifier.from_state(model.state_)
    row = choices.draw(st.integers(0, len(y) - 1))
    added = sorted(choices.draw(st.sets(st.integers(0, n_classes + 1), min_size=1, max_size=4)))
    edited.partial_fit(X[row : row + 1], [added])
    # One label at a time, in any order: the others stay until their turn comes.
    for n_forgotten, label in enumerate(choices.draw(st.permutations(added)), 1):
        edited.forget(X[row : row + 1], [[label]])
        n_left = model.statistics_.n_documents + len(added) - n_forgotten
        assert edited.statistics_.n_documents == n_left
    assert_same(edited, model, X)
