"""Several labels per document: fit, predict, edit, save, teach, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, Teacher, TextClassifier
from longtail._labels import as_sets
from longtail.exceptions import UncalibratedWarning
from longtail.metrics.probabilities import expected_calibration_error
from tests.conftest import make_problem

N_CLASSES, N_TERMS = 40, 250


def draw_sets(n_documents, seed=0):
    """Documents of one to four classes, a few of none, with terms of each of them."""
    rng = np.random.default_rng(seed)
    profiles = np.random.default_rng(99).dirichlet(np.full(N_TERMS, 0.05), N_CLASSES)
    popularity = 1 / np.arange(1, N_CLASSES + 1)
    y, X = [], []
    for n in rng.integers(1, 5, n_documents):
        own = rng.choice(N_CLASSES, n, replace=False, p=popularity / popularity.sum())
        own = own if rng.random() < 0.97 else own[:0]
        y.append([f"c{c:02d}" for c in own])
        shares = profiles[own].mean(axis=0) if len(own) else np.full(N_TERMS, 1 / N_TERMS)
        X.append(rng.multinomial(12, 0.7 * shares + 0.3 / N_TERMS))
    return sp.csr_array(np.array(X)), y


@pytest.fixture(scope="module")
def data():
    return draw_sets(900)


@pytest.fixture(scope="module")
def model(data):
    return LongTailClassifier(random_state=0).fit(*data)


def as_indicator(y, kind):
    matrix = np.zeros((len(y), N_CLASSES + 2), int)
    for row, labels in zip(matrix, y, strict=True):
        row[[int(label[1:]) for label in labels]] = 1
    return kind(matrix)


def assert_same(one, other, X):
    a, b = one.predict_topk(X, 8), other.predict_topk(X, 8)
    assert np.array_equal(a.scores, b.scores)
    p, q = one.predict_proba_topk(X, 8), other.predict_proba_topk(X, 8)
    assert np.array_equal(p.scores, q.scores)


def test_new_documents_get_most_of_their_labels(model):
    X, y = draw_sets(400, seed=1)
    assert model.multilabel_
    assert model.score(X, y) > 0.6
    # One label each, the replicated way, cannot reach what sets reach.
    top = model.predict_topk(X, 1).classes[:, 0]
    assert np.mean([label in own for label, own in zip(top, y, strict=True) if own]) > 0.8


def test_marginals_are_calibrated_and_thresholds_keep_their_word(model):
    X, y = draw_sets(1500, seed=2)
    found = model.predict_proba_topk(X, 15)
    assert np.all(np.diff(found.scores, axis=1) <= 0)
    correct = np.array([[c in own for c in row] for row, own in zip(found.classes, y, strict=True)])
    likely = found.scores > 0.01
    assert expected_calibration_error(found.scores[likely], correct[likely]) < 0.03
    threshold = model.threshold_for(0.8)
    sets = model.predict(X, threshold=threshold)
    hits = [label in own for row, own in zip(sets, y, strict=True) for label in row]
    assert np.mean(hits) == pytest.approx(0.8, abs=0.05)
    assert threshold.coverage == pytest.approx(len(hits) / len(y), rel=0.1)


def test_sets_are_prefixes_of_the_ranking(model, data):
    X, _ = data
    ranked = model.predict_proba_topk(X, 40)
    for options in ({}, {"max_labels": 2}, {"threshold": 0.5}, {"threshold": 0.3, "max_labels": 1}):
        for row, labels, p in zip(
            ranked.classes, model.predict(X, **options), ranked.scores, strict=True
        ):
            assert labels == row[: len(labels)].tolist()
            assert len(labels) <= options.get("max_labels", 40)
            if "threshold" in options and "max_labels" not in options:
                assert len(labels) == np.count_nonzero(p >= 0.5)


def test_every_form_and_any_threads_give_the_same_model(model, data):
    X, y = data
    reversed_sets = [labels[::-1] for labels in y]
    assert_same(LongTailClassifier(random_state=0, n_jobs=2).fit(X, reversed_sets), model, X)
    expected = as_indicator(model.predict(X), np.array)
    for kind in (np.array, sp.csr_array):
        other = LongTailClassifier(random_state=0).fit(X, as_indicator(y, kind))
        found = other.predict(X)
        assert isinstance(found, kind if kind is sp.csr_array else np.ndarray)
        assert np.array_equal(found.toarray() if sp.issparse(found) else found, expected)
        assert other.score(X, as_indicator(y, kind)) == model.score(X, y)


def test_one_label_each_is_the_single_label_model():
    problem = make_problem(3, n_documents=400)
    one = LongTailClassifier(random_state=1).fit(problem.X, problem.y)
    for y in ([[int(c)] for c in problem.y], np.eye(7, dtype=int)[problem.y]):
        sets = LongTailClassifier(random_state=1).fit(problem.X, y)
        assert_same(one, sets, problem.X)
        assert np.array_equal(one.state_.residuals.weights, sets.state_.residuals.weights)
        assert one.threshold_for(0.6) == sets.threshold_for(0.6)
    assert LongTailClassifier(multilabel=True, random_state=1).fit(problem.X, problem.y).multilabel_
    assert not one.multilabel_


def test_the_order_of_documents_does_not_matter_to_the_sums(model, data):
    X, y = data
    order = np.random.default_rng(0).permutation(len(y))
    other = LongTailClassifier(random_state=0, calibrate=False).fit(X[order], [y[i] for i in order])
    assert other.statistics_ == model.statistics_
    assert other.statistics_.n_documents == sum(map(len, y))


def test_adding_and_forgetting_label_sets_is_exact(model, data):
    X, y = data
    more_X, more_y = draw_sets(30, seed=5)
    more_y[0] = ["new", "c03"]
    edited = longtail.LongTailClassifier.from_state(model.state_)
    edited.partial_fit(more_X, more_y)
    assert "new" in edited.classes_
    whole = LongTailClassifier(random_state=0, calibrate=False)
    whole.fit(sp.csr_array(sp.vstack([X, more_X])), [*y, *more_y])
    assert edited.statistics_ == whole.statistics_
    # One label of a document goes, the others stay; then the rest.
    edited.forget(more_X[:1], [["new"]])
    assert "new" not in edited.classes_
    edited.forget(more_X, [["c03"], *more_y[1:]])
    assert edited.statistics_ == model.statistics_
    assert_same(edited, model, X)


def test_refine_learns_changed_classes_with_label_sets(model, data):
    X, y = data
    refined = LongTailClassifier.from_state(model.state_).partial_fit(X[:20], y[:20])
    assert refined.state_.overlay is not None
    refined.refine(X, y)
    assert not refined.state_.stale.any()
    assert refined.score(X, y) > 0.8 * model.score(X, y)


def test_a_file_keeps_everything(model, data, tmp_path):
    X, y = data
    dense = LongTailClassifier(random_state=0).fit(
        X[:200].toarray(), as_indicator(y[:200], np.array)
    )
    for fitted in (model, dense):
        fitted.save(tmp_path / "model")
        loaded = longtail.load(tmp_path / "model")
        assert_same(loaded, fitted, X)
        assert np.array_equal(
            np.array(loaded.predict(X), object), np.array(fitted.predict(X), object)
        )
        assert loaded.threshold_for(0.7) == fitted.threshold_for(0.7)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_classes_added_to_an_indicator_are_columns(data, kind, tmp_path):
    X, y = data
    model = LongTailClassifier(random_state=0, calibrate=False)
    model.fit(X[:200], as_indicator(y[:200], kind))
    state = model.state_
    for label, shown in ((-5, "-5"), (2**24, "16777216"), (2.5, "labels of type float64")):
        with pytest.raises(ValueError, match=f"columns of an indicator .* got {shown}"):
            model.partial_fit(X[:1], [[label]])
        with pytest.raises(ValueError, match=f"columns of an indicator .* got {shown}"):
            model.rename_class(model.classes_[3], label)
        with pytest.raises(ValueError, match=f"columns of an indicator .* got {shown}"):
            model.set_class_text(label, np.ones(N_TERMS))
    with pytest.raises(ValueError, match=r"columns of an indicator .* got labels of type <U1"):
        model.set_class_text("a", np.ones(N_TERMS))
    assert model.state_ is state
    model.partial_fit(X[:1], [[N_CLASSES + 9]])
    model.save(tmp_path / "model")
    predicted = longtail.load(tmp_path / "model").predict(X[:3])
    assert predicted.shape == (3, N_CLASSES + 10)
    assert sp.issparse(predicted) == (kind is not np.array)
    model.partial_fit(X[:1], [[2**24 - 1]])
    assert sp.issparse(model.predict(X[:3]))  # a dense one would take 400 MB


def test_a_damaged_indicator_is_refused_everywhere(data):
    X, y = data
    model = LongTailClassifier(random_state=0, calibrate=False)
    model.fit(X[:200], as_indicator(y[:200], sp.csr_array))
    state = model.state_
    for method in (model.fit, model.partial_fit, model.forget, model.refine, model.score):
        indicator = as_indicator(y[:200], sp.csr_array)
        indicator.indptr[5] = 10**8
        with pytest.raises(ValueError, match="y is a damaged csr matrix"):
            method(X[:200], indicator)
    assert model.state_ is state


def test_explanations_of_each_label_add_up(model, data):
    X, _ = data
    labels = model.predict_topk(X[:5], 2).classes
    for column in range(2):
        scores = model.predict_topk(X[:5], 2).scores[:, column]
        for explanation, score in zip(model.explain(X[:5], labels[:, column]), scores, strict=True):
            assert explanation.score == pytest.approx(score)
            assert sum(explanation.features.values()) == pytest.approx(score, rel=1e-4)


TEXTS = ["bears eat honey", "a red fox runs", "fox and bear", "an owl hoots", "owl and fox"] * 20
SETS = [["bear"], ["fox"], ["fox", "bear"], ["owl"], ["fox", "owl"]] * 20


@pytest.mark.parametrize("remember", [False, True])
def test_texts_with_label_sets(remember, tmp_path):
    model = TextClassifier(random_state=0, remember_documents=remember).fit(TEXTS, SETS)
    assert sorted(model.predict(["the fox met a bear"])[0]) == ["bear", "fox"]
    assert model.score(TEXTS, SETS) > 0.9
    before = model.statistics_
    model.partial_fit(["wolf cubs howl"], [["wolf", "fox"]])
    assert "wolf" in model.predict(["howl wolf"])[0]
    model.forget(["wolf cubs howl"], [["wolf"]])
    assert "wolf" not in model.classes_
    model.forget(["wolf cubs howl"], [["fox"]])
    assert model.statistics_.n_documents == before.n_documents
    model.refine(TEXTS, SETS)
    chunks = [(TEXTS[:50], SETS[:50]), (TEXTS[50:], SETS[50:])]
    chunked = TextClassifier(random_state=0).fit_chunks(chunks)
    assert chunked.predict(TEXTS[:5]) == TextClassifier(random_state=0).fit(TEXTS, SETS).predict(
        TEXTS[:5]
    )


def test_a_teacher_teaches_forgets_and_undoes_label_sets(tmp_path):
    TextClassifier(random_state=0).fit(TEXTS, SETS).save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model")
    before = teacher.model.statistics_
    teacher.teach(["wolf cubs howl", "an owl and a wolf"], [["wolf"], ["owl", "wolf"]])
    assert teacher.model.statistics_.n_documents == before.n_documents + 3
    teacher.forget(["an owl and a wolf"], [["wolf"]])
    reopened = longtail.load(tmp_path / "model")
    assert reopened.statistics_ == teacher.model.statistics_
    assert "wolf" in reopened.classes_
    column = np.empty(2, object)  # as a column of a table holds them
    column[:] = [["wolf"], ["owl", "wolf"]]
    teacher.teach(["wolf cubs howl", "an owl and a wolf"], column)
    assert teacher.model.statistics_.n_documents == before.n_documents + 5
    teacher.undo(3)
    assert teacher.model.predict(TEXTS[:5]) == longtail.load(tmp_path / "model").predict(TEXTS[:5])
    assert "wolf" not in teacher.model.classes_
    teacher.close()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a"], ["a", "b"]], "inconsistent numbers of samples: 3 documents, 2 label sets"),
        ([["a"], [], []], "only 1 class, 'a'"),
        ([[], [], []], "only 0 class"),
        ([["a"], ["b"], ["b", "b"]], "label 'b' twice"),
    ],
)
def test_what_a_fit_refuses(y, message):
    with pytest.raises(ValueError, match=message):
        LongTailClassifier().fit(np.eye(3), y)


def test_what_else_is_refused(model, data):
    X, y = data
    with pytest.raises(ValueError, match=r"DoubleSamplingClassifier takes one label .* Replicate"):
        DoubleSamplingClassifier().fit(X, y)
    single = LongTailClassifier(random_state=0).fit(np.eye(4), ["a", "a", "b", "b"])
    with pytest.raises(ValueError, match="fitted with one label for each document"):
        single.partial_fit(np.eye(4)[:1], [["a", "b"]])
    with pytest.raises(ValueError, match="for models that were fitted with label sets"):
        single.predict(np.eye(4), max_labels=2)
    with pytest.raises(ValueError, match="max_labels must be an integer of at least 1"):
        model.predict(X, max_labels=0)
    with pytest.raises(ValueError, match="unknown is for models with one label"):
        model.threshold_for(0.9, unknown=0.1)
    with pytest.raises(ValueError, match="multilabel=False"):
        LongTailClassifier(multilabel=False).fit(X, y)


def test_tiny_problems_with_nearly_every_label():
    X = np.array([[2, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncalibratedWarning)
        for y in ([["a", "b"], ["a"], ["b"], ["a", "b"]], [["a", "b", "c"]] * 3 + [["c"]]):
            model = LongTailClassifier(random_state=0).fit(X, y)
            assert all(set(row) <= set(as_sets(y).classes) and row for row in model.predict(X))
            assert np.isfinite(model.predict_proba_topk(X, 2).scores).all()
