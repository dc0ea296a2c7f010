"""Properties of whole models whose classes have names that hold for any data, by their files."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import longtail
from longtail import LongTailClassifier, TextClassifier
from longtail.exceptions import UncalibratedWarning
from tests.conftest import examples
from tests.property.test_core import data_sets
from tests.property.test_label_sets import draw_sets, ranked

few = examples(15)  # a fit takes 10 to 50 ms

WORDS = ("bear", "bears", "bearish", "fox", "foxes", "owl", "Ohr", "öhrchen", "熊猫")
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@st.composite
def named_sets(draw):
    """Documents, labels (one each, or sets), and names of some classes, with documents or not."""
    X, y, n_classes = draw(data_sets())
    labels = draw_sets(draw(st.data()), y, n_classes) if draw(st.booleans()) else y
    named = draw(st.sets(st.integers(-2, n_classes + 2), min_size=1))
    return X, labels, {label: draw(rows(X.shape[1])) for label in sorted(named)}


def rows(n_terms):
    values = st.sampled_from([0.0, 0.0, 1.0, 2.5, 1e6])
    return st.lists(values, min_size=n_terms, max_size=n_terms).map(np.array)


def fit(X, y, names, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncalibratedWarning)
        return LongTailClassifier(random_state=0, **options).fit(X, y, class_texts=names)


def saved(model):
    """Return the bytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def copy_of(model):
    return LongTailClassifier.from_state(model.state_).set_params(**model.get_params())


@few
@given(named_sets(), st.data())
def test_the_order_and_the_form_of_class_texts_do_not_matter(data, choices):
    X, y, names = data
    expected = saved(fit(X, y, names))
    shuffled = choices.draw(st.permutations(list(names)))
    assert saved(fit(X, y, {label: names[label] for label in shuffled})) == expected
    pair = list(shuffled), np.array([names[label] for label in shuffled])
    assert saved(fit(X, y, pair)) == expected


@few
@given(named_sets(), st.data())
def test_the_order_of_documents_matters_to_no_name_and_no_prediction(data, choices):
    X, y, names = data
    order = choices.draw(st.permutations(range(len(y))))
    model, other = fit(X, y, names), fit(X[order], [y[i] for i in order], names)
    assert other.classes_.tolist() == model.classes_.tolist()
    assert other.statistics_ == model.statistics_
    for name in ("indptr", "indices", "weights", "named"):
        ours, theirs = getattr(model.state_.names, name), getattr(other.state_.names, name)
        assert np.array_equal(ours, theirs)
    for given_order, shuffled in zip(ranked(model, X), ranked(model, X[order]), strict=True):
        assert np.array_equal(given_order[order], shuffled)


@few
@given(named_sets(), st.data())
def test_the_same_text_again_changes_nothing(data, choices):
    X, y, names = data
    model = fit(X, y, names)
    edited = copy_of(model)
    for label in choices.draw(st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=3)):
        edited.set_class_text(label, names[label])
    assert saved(edited) == saved(model)


@few
@given(named_sets(), st.booleans(), st.data())
def test_a_text_that_is_taken_back_was_never_there(data, has_names, choices):
    X, y, names = data
    names = names if has_names else {}
    model = fit(X, y, names)
    edited = copy_of(model)
    known = sorted({*model.classes_.tolist(), -7, 99})
    changed = choices.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    for label in changed:
        edited.set_class_text(label, choices.draw(rows(X.shape[1])))
    assert set(changed) <= set(edited.classes_.tolist())
    for label in choices.draw(st.permutations(changed)):
        edited.set_class_text(label, names.get(label))
    assert saved(edited) == saved(model)


@few
@given(named_sets(), st.data())
def test_documents_of_named_classes_come_and_go(data, choices):
    X, y, names = data
    model = fit(X, y, names)
    edited = copy_of(model)
    row = X[: choices.draw(st.integers(1, 2))]
    label = choices.draw(st.sampled_from(sorted(names)))
    labels = [label] * len(row) if np.ndim(y[0]) == 0 else [[label]] * len(row)
    edited.partial_fit(row, labels)
    edited.forget(row, labels)
    for ours, theirs in zip(ranked(edited, X), ranked(model, X), strict=True):
        assert np.array_equal(ours, theirs)
    assert edited.classes_.tolist() == model.classes_.tolist()


@few
@given(st.lists(texts, min_size=4, max_size=12), st.data())
def test_names_that_are_texts(documents, choices):
    """Their order does not matter; one that is set again, or taken back, leaves the same file."""
    documents = ["bear fox", *documents]
    labels = [f"class {i % 4}" for i in range(len(documents))]
    known = st.sampled_from([*sorted(set(labels)), "class 9", "class 10"])
    names = choices.draw(st.dictionaries(known, texts, max_size=5))

    def fit_texts(given_names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncalibratedWarning)
            model = TextClassifier(random_state=0)
            return model.fit(documents, labels, class_texts=given_names)

    model = fit_texts(names)
    expected = saved(model)
    assert saved(fit_texts(dict(reversed(names.items())))) == expected
    edited = fit_texts(names)
    for label, text in names.items():
        if text.strip():
            edited.set_class_text(label, text)
    assert saved(edited) == expected
    label = choices.draw(known)
    edited.set_class_text(label, "bearish")
    edited.set_class_text(label, names.get(label))
    assert saved(edited) == expected
    with tempfile.TemporaryDirectory() as folder:
        edited.save(Path(folder) / "model")
        assert longtail.load(Path(folder) / "model").class_texts_ == model.class_texts_
