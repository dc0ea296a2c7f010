"""What both estimators promise, as a user meets it."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier
from tests.conftest import assert_same_predictions, make_problem


@pytest.fixture(params=[DoubleSamplingClassifier, LongTailClassifier])
def Classifier(request):
    return request.param


def fit(Classifier, problem, **options):
    options = {"random_state": 0} | options
    return Classifier(**options).fit(problem.X, problem.y)


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, np.asarray]
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_any_matrix_gives_the_same_model(Classifier, problem, make, dtype):
    expected = fit(Classifier, problem)
    other = Classifier(random_state=0).fit(make(problem.X.astype(dtype)), problem.y)
    assert_same_predictions(expected, other, problem.X)


@pytest.mark.parametrize(
    "name", [str, lambda c: c * 10 - 5, lambda c: f"class {c}", bool, np.float64]
)
def test_any_labels(Classifier, problem, name):
    labels = np.array([name(c) for c in problem.y.tolist()])
    classifier = Classifier(random_state=0).fit(problem.X, labels)
    assert np.array_equal(classifier.classes_, np.unique(labels))
    assert classifier.predict(problem.X).dtype == labels.dtype


def test_list_and_object_labels(Classifier, problem):
    labels = [f"class {c}" for c in problem.y]
    one = Classifier(random_state=0).fit(problem.X, labels)
    other = Classifier(random_state=0).fit(problem.X, np.array(labels, dtype=object))
    assert one.predict(problem.X).tolist() == other.predict(problem.X).tolist()


def test_same_bits_for_any_number_of_threads(Classifier):
    problem = make_problem(2, n_documents=300, n_classes=40, n_terms=80)
    models = [fit(Classifier, problem, n_jobs=n_jobs) for n_jobs in (None, 1, 2, 3)]
    for model in models[1:]:
        assert_same_predictions(models[0], model, problem.X)
        assert model.weights_ == models[0].weights_
        assert model.statistics_ == models[0].statistics_


def test_topk_is_padded_beyond_the_candidates(Classifier, problem):
    classifier = fit(Classifier, problem, candidates=2)
    top = classifier.predict_topk(problem.X, 5)
    assert top.classes.shape == top.scores.shape == (60, 5)
    assert np.all(np.isneginf(top.scores[:, 2:]))
    assert np.all(np.isfinite(top.scores[:, :2]))
    assert np.array_equal(top.classes[:, 0], classifier.predict(problem.X))


def test_two_classes(Classifier):
    X = np.array([[2, 0, 1], [1, 0, 0], [0, 3, 0], [0, 1, 1]])
    classifier = Classifier(random_state=0).fit(X, ["no", "no", "yes", "yes"])
    assert classifier.predict(X).tolist() == ["no", "no", "yes", "yes"]


def test_one_document_in_each_class(Classifier):
    X = np.eye(5, dtype=int) * 3
    classifier = Classifier(random_state=0).fit(X, np.arange(5))
    assert classifier.predict(X).tolist() == [0, 1, 2, 3, 4]


def test_empty_and_foreign_documents(Classifier, problem):
    X = np.pad(problem.X, ((0, 0), (0, 1)))
    X[3] = 0
    classifier = Classifier(random_state=0).fit(X, problem.y)
    stranger = np.zeros((2, 26), dtype=int)
    stranger[1, 25] = 4
    top = classifier.predict_topk(stranger, 3)
    assert not top.valid.any()  # nothing known, no candidates
    assert np.isneginf(top.scores).all()
    assert classifier.predict_topk(X[3:4], 3).valid.tolist() == [[False] * 3]


def test_duplicated_documents(Classifier, problem):
    X, y = np.repeat(problem.X, 2, axis=0), np.repeat(problem.y, 2)
    assert Classifier(random_state=0).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, -1], [1, 0]], [0, 1], "Negative values"),
        ([[1, np.nan], [1, 0]], [0, 1], "NaN"),
        ([[1, np.inf], [1, 0]], [0, 1], "infinity"),
        ([[1, 1], [1, 0]], [0, np.nan], "label of document 1 is missing"),
        ([[1, 1], [1, 0]], np.array(["a", None], object), "label of document 1 is missing"),
        ([[1, 1], [1, 0]], np.array(["a", np.nan], object), "label of document 1 is missing"),
        ([[1, 1], [1, 0]], [1, 1], "only 1 class"),
        ([[1, 1], [1, 0]], [0, 1, 2], "inconsistent numbers of samples"),
        ([[1, 1], [1, 0]], [0.5, 1.7], "Unknown label type"),
        (np.zeros((0, 2)), [], "0 sample"),
    ],
)
def test_bad_data(Classifier, X, y, message):
    with pytest.raises(ValueError, match=message):
        Classifier().fit(X, y)


def test_predicting_other_columns_is_an_error(Classifier, problem):
    classifier = fit(Classifier, problem)
    for call in (classifier.predict, classifier.predict_topk, classifier.explain):
        with pytest.raises(ValueError, match="expecting 25 features"):
            call(problem.X[:, :5])
    with pytest.raises(ValueError, match="expecting 25 features"):
        classifier.partial_fit(problem.X[:, :5], problem.y)
    with pytest.raises(ValueError, match="k must be an integer of at least 1; got 0"):
        classifier.predict_topk(problem.X, 0)


@pytest.mark.parametrize("call", ["predict", "predict_topk", "explain"])
def test_not_fitted(Classifier, problem, call):
    with pytest.raises(NotFittedError):
        getattr(Classifier(), call)(problem.X)
    with pytest.raises(NotFittedError):
        Classifier().forget(problem.X, problem.y)


def test_pipeline_clone_grid_search_pickle(Classifier):
    texts = ["red apple", "green apple", "apple pie", "fast car", "red car", "old car"] * 3
    labels = ["fruit", "fruit", "fruit", "vehicle", "vehicle", "vehicle"] * 3
    pipeline = Pipeline([("counts", CountVectorizer()), ("classifier", Classifier(random_state=0))])
    grid = {"classifier__C": [0.01, 1.0]}
    search = GridSearchCV(clone(pipeline), grid, cv=3).fit(texts, labels)
    assert search.best_score_ == 1.0
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    assert copy.predict(["green car"]).tolist() == search.predict(["green car"]).tolist()


def test_partial_fit_on_an_unfitted_estimator_is_a_fit(Classifier, problem):
    classifier = Classifier(random_state=0).partial_fit(problem.X, problem.y)
    assert_same_predictions(classifier, fit(Classifier, problem), problem.X)


def test_a_new_class_is_predicted_at_once(Classifier, problem):
    X = np.pad(problem.X, ((0, 0), (0, 2)))
    classifier = Classifier(random_state=0).fit(X, problem.y)
    weights = classifier.weights_
    new = np.zeros((3, 27), dtype=int)
    new[:, 25:] = [[2, 1], [1, 1], [1, 2]]
    classifier.partial_fit(new, [-4, -4, -4])
    assert classifier.classes_.tolist() == [-4, 0, 1, 2, 3, 4, 5, 6]
    assert classifier.predict(new).tolist() == [-4, -4, -4]
    assert classifier.weights_ == weights


def test_forget_restores_every_bit(Classifier, problem):
    classifier = fit(Classifier, problem)
    before, statistics = classifier.predict_topk(problem.X, 7), classifier.statistics_
    rng = np.random.default_rng(0)
    extra = rng.poisson(0.5, size=(9, 25))
    labels = np.array([0, 1, 1, 17, 17, -3, 6, 6, 99])
    classifier.partial_fit(extra, labels)
    assert len(classifier.classes_) == 10
    shuffled = rng.permutation(9)
    classifier.forget(extra[shuffled], labels[shuffled])
    assert classifier.statistics_ == statistics
    after = classifier.predict_topk(problem.X, 7)
    assert np.array_equal(before.classes, after.classes)
    assert np.array_equal(before.scores, after.scores)


def test_statistics_are_those_of_all_documents(Classifier, problem):
    order = np.argsort(problem.y % 2, kind="stable")  # classes 1, 3, 5 come later
    X, y = problem.X[order], problem.y[order]
    half = int(np.sum(y % 2 == 0))
    classifier = Classifier(random_state=0).fit(X[:half], y[:half])
    classifier.partial_fit(X[half:], y[half:])
    assert classifier.statistics_ == fit(Classifier, problem).statistics_


def test_teaching_one_class_leaves_the_scores_of_others(Classifier, problem):
    classifier = fit(Classifier, problem)
    before = classifier.explain(problem.X, classes=np.full(60, 2))
    classifier.partial_fit(problem.X[:4], [1, 1, 1, 1])
    after = classifier.explain(problem.X, classes=np.full(60, 2))
    assert [e.score for e in before] == [e.score for e in after]


def test_forgetting_what_was_never_taught_changes_nothing(Classifier, problem):
    classifier = fit(Classifier, problem)
    statistics = classifier.statistics_
    with pytest.raises(ValueError, match="never added"):
        classifier.forget(problem.X[:1] + 1, problem.y[:1])
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.forget(problem.X[:1], [77])
    with pytest.raises(ValueError, match="last document"):
        classifier.forget(problem.X, problem.y)
    assert classifier.statistics_ is statistics


def test_labels_must_stay_of_one_type(Classifier, problem):
    with pytest.raises(ValueError, match="labels of the same type"):
        fit(Classifier, problem).partial_fit(problem.X, problem.y.astype(str))


def test_declared_classes_are_checked(Classifier, problem):
    with pytest.raises(ValueError, match=r"not among the classes: .*6"):
        Classifier().partial_fit(problem.X, problem.y, classes=np.arange(6))
    classifier = Classifier().partial_fit(problem.X, problem.y, classes=np.arange(9))
    assert classifier.classes_.tolist() == list(range(7))


def test_prediction_while_another_thread_teaches(Classifier, problem):
    classifier = fit(Classifier, problem)
    extra, labels = problem.X[:5], np.full(5, 50)
    before = classifier.predict_topk(problem.X, 7)
    classifier.partial_fit(extra, labels)
    after = classifier.predict_topk(problem.X, 7)
    classifier.forget(extra, labels)

    def teach():
        for _ in range(30):
            classifier.partial_fit(extra, labels)
            classifier.forget(extra, labels)

    teacher = threading.Thread(target=teach)
    teacher.start()
    seen = [classifier.predict_topk(problem.X, 7) for _ in range(60)]
    teacher.join()
    for top in seen:
        assert any(
            np.array_equal(top.classes, state.classes) and np.array_equal(top.scores, state.scores)
            for state in (before, after)
        )


@pytest.mark.parametrize("top_terms", [0, 3, 100])
def test_an_explanation_adds_up(Classifier, problem, top_terms):
    classifier = fit(Classifier, problem)
    top = classifier.predict_topk(problem.X, 2)
    for i, e in enumerate(classifier.explain(problem.X, top_terms=top_terms)):
        assert e.label == top.classes[i, 0]
        assert e.runner_up == top.classes[i, 1]
        assert e.score == pytest.approx(top.scores[i, 0], abs=1e-5)
        assert sum(e.features.values()) == pytest.approx(e.score, abs=1e-5)
        assert sum(e.terms.values()) + e.rest + e.constant == pytest.approx(e.score, abs=1e-5)
        assert len(e.terms) <= top_terms
        assert list(e.terms) == list(e.against.terms)
        decisive = [abs(value - e.against.terms[term]) for term, value in e.terms.items()]
        assert decisive == sorted(decisive, reverse=True)
        assert set(e.terms) <= set(np.flatnonzero(problem.X[i]))
        assert e.runner_up_score == pytest.approx(top.scores[i, 1], abs=1e-5)
        for side in (e, e.against):
            for lines in (side.term_lines(), side.feature_lines()):
                assert sum(value for _, value in lines) == pytest.approx(side.score, abs=1e-5)


def test_any_class_can_be_explained(Classifier, problem):
    classifier = fit(Classifier, problem)
    best = classifier.predict(problem.X)
    for e, winner in zip(classifier.explain(problem.X, classes=np.full(60, 5)), best, strict=True):
        assert e.label == 5
        assert sum(e.features.values()) == pytest.approx(e.score, abs=1e-5)
        assert e.runner_up != 5
        assert winner == 5 or e.runner_up == winner
    with pytest.raises(ValueError, match="one label for each of the 60"):
        classifier.explain(problem.X, classes=[1])
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.explain(problem.X, classes=np.full(60, 99))


@pytest.mark.parametrize("labels", [int, str, object])
def test_saved_model_predicts_the_same_bits(Classifier, problem, tmp_path, labels):
    y = problem.y if labels is int else np.array([f"class {c}" for c in problem.y], dtype=labels)
    classifier = Classifier(candidates=4, random_state=3).fit(problem.X, y)
    path = tmp_path / "model.longtail"
    classifier.save(path)
    for verify in (True, False):
        loaded = longtail.load(path, verify=verify)
        assert_same_predictions(classifier, loaded, problem.X)
        assert loaded.get_params() == classifier.get_params()
        assert loaded.classes_.dtype == classifier.classes_.dtype
        assert loaded.statistics_ == classifier.statistics_
    loaded.partial_fit(problem.X[:2], y[:2])
    classifier.partial_fit(problem.X[:2], y[:2])
    assert_same_predictions(classifier, loaded, problem.X)


def test_a_saved_taught_model_keeps_its_global_quantities(Classifier, problem, tmp_path):
    X = np.pad(problem.X, ((0, 0), (0, 1)))
    classifier = Classifier(random_state=3).fit(X, problem.y)
    new = np.zeros((1, 26), dtype=int)
    new[0, 25] = 2
    classifier.partial_fit(new, [8])
    classifier.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert_same_predictions(classifier, loaded, np.vstack([X, new]))
    loaded.forget(new, [8])
    classifier.forget(new, [8])
    assert_same_predictions(classifier, loaded, X)


def test_a_consistent_file_with_an_unsound_model_is_refused(Classifier, problem, tmp_path):
    path = tmp_path / "model"
    fit(Classifier, problem).save(path)
    file = longtail.store.open_model(path)
    arrays = {name: np.array(array) for name, array in file.arrays.items()}
    arrays["index/dense_row_ids"] += 1000
    longtail.store.write_model(tmp_path / "bad", file.kind, file.parameters, arrays)
    with pytest.raises(longtail.ModelFileError, match="'index/dense_row_ids' must be from"):
        longtail.load(tmp_path / "bad")
