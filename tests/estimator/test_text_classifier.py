"""TextClassifier: what it adds to the classifier of counts behind it."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, ModelFileError, TextClassifier
from longtail.store.container import open_model, write_model
from longtail.text import TextVectorizer
from tests.conftest import assert_same_predictions

WORDS = np.array([f"wört{i}" for i in range(60)])


def make_texts(seed=0, n_documents=150, n_classes=6):
    """Draw words for each class from its own distribution."""
    rng = np.random.default_rng(seed)
    profiles = np.random.default_rng(7).dirichlet(np.full(len(WORDS), 0.1), n_classes)
    popularity = 1 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, n_documents, p=popularity / popularity.sum())
    y[:n_classes] = np.arange(n_classes)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 12), p=profiles[c])) for c in y]
    return texts, np.array([f"class {c}" for c in y])


TEXTS, LABELS = make_texts()
TEST_TEXTS, TEST_LABELS = make_texts(1, 60)


@pytest.fixture(scope="module")
def fitted():
    return TextClassifier(random_state=0).fit(TEXTS, LABELS)


@pytest.fixture
def model(fitted):
    return pickle.loads(pickle.dumps(fitted))


def test_is_the_vectorizer_and_the_classifier(fitted):
    vectorizer = TextVectorizer()
    inner = LongTailClassifier(random_state=0).fit(vectorizer.fit_transform(TEXTS), LABELS)
    X = vectorizer.transform(TEST_TEXTS)
    one, other = fitted.predict_topk(TEST_TEXTS, 4), inner.predict_topk(X, 4)
    assert np.array_equal(one.classes, other.classes)
    assert np.array_equal(one.scores, other.scores)
    assert fitted.score(TEST_TEXTS, TEST_LABELS) == inner.score(X, TEST_LABELS) > 0.8
    probabilities = fitted.predict_proba_topk(TEST_TEXTS, 3).scores
    assert np.array_equal(probabilities, inner.predict_proba_topk(X, 3).scores)
    assert fitted.weights_ == inner.weights_
    assert fitted.statistics_ == inner.statistics_
    assert fitted.classes_.tolist() == [f"class {c}" for c in range(6)]
    assert fitted.vocabulary_.terms == vectorizer.vocabulary_.terms
    assert isinstance(fitted.classifier_, LongTailClassifier)


@pytest.mark.parametrize("size", [1, 7, 150])
def test_chunks_and_threads_give_the_same_model(fitted, size):
    chunks = ((TEXTS[i : i + size], LABELS[i : i + size]) for i in range(0, 150, size))
    assert_same_predictions(
        fitted, TextClassifier(random_state=0, n_jobs=2).fit_chunks(chunks), TEST_TEXTS
    )


def test_scikit_learn(fitted):
    search = GridSearchCV(
        TextClassifier(LongTailClassifier(random_state=0)),
        {"ngrams": [1, 2], "classifier__C": [0.5]},
        cv=2,
    ).fit(TEXTS, LABELS)
    assert search.best_estimator_.classifier_.C == 0.5
    copied = clone(search.best_estimator_)
    assert copied.classifier.C == 0.5
    with pytest.raises(NotFittedError):
        copied.predict(TEXTS)
    assert_same_predictions(fitted, pickle.loads(pickle.dumps(fitted)), TEST_TEXTS)


def test_the_paper_s_classifier():
    inner = DoubleSamplingClassifier(random_state=0)
    classifier = TextClassifier(inner).fit(TEXTS, LABELS)
    assert classifier.score(TEST_TEXTS, TEST_LABELS) > 0.7
    assert not hasattr(inner, "_model")
    with pytest.raises(AttributeError, match="predict_proba_topk"):
        classifier.predict_proba_topk(TEST_TEXTS)


def test_other_classifiers_are_refused():
    with pytest.raises(ValueError, match="put a TextVectorizer before it in a Pipeline"):
        TextClassifier(LogisticRegression()).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("texts", "y", "message"),
    [
        ("one text", ["a"], "texts must be a list of strings; got one str"),
        (["a", None], ["a", "b"], "document 1 is missing"),
        (["a", "b"], ["a"], "inconsistent numbers of samples"),
        (["a", "b"], ["a", None], "the label of document 1 is missing"),
        (["!", "?"], ["a", "b"], "the vocabulary is empty"),
    ],
)
def test_bad_input(texts, y, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier().fit(texts, y)


def test_explanation_names_terms(fitted):
    explanation = fitted.explain(TEST_TEXTS[:1], top_terms=3)[0]
    words = set(TEST_TEXTS[0].replace("ö", "o").split())
    assert len(explanation.terms) == 3
    assert all(set(term.split(" ")) <= words for term in explanation.terms)
    parts = sum(explanation.terms.values()) + explanation.rest + explanation.constant
    assert parts == pytest.approx(explanation.score, abs=1e-5)
    asked = fitted.explain(TEST_TEXTS[:1], classes=["class 3"])[0]
    assert asked.label == "class 3"


# ---- teaching


def test_new_terms_enter(model):
    n_terms = model.vocabulary_.n_terms
    model.partial_fit(["zebra crossing", "a zebra"], ["zebra", "zebra"])
    assert model.vocabulary_.terms[n_terms:] == [
        "a",
        "a zebra",
        "crossing",
        "zebra",
        "zebra crossing",
    ]
    assert model.predict(["the zebra"]).tolist() == ["zebra"]
    assert model.statistics_.n_terms == n_terms + 5


def test_forget_restores_every_bit_though_the_vocabulary_grew(fitted, model):
    taught = ["zebra crossing wört1 wört2", "wört1 wört1 lion"], ["zebra", "class 1"]
    model.partial_fit(*taught)
    assert model.predict_topk(TEST_TEXTS, 6).scores.tolist() != (
        fitted.predict_topk(TEST_TEXTS, 6).scores.tolist()
    )
    model.forget(*taught)
    assert_same_predictions(fitted, model, TEST_TEXTS, 6)
    assert model.classes_.tolist() == fitted.classes_.tolist()


def test_a_rare_term_that_enters_later_is_no_part_of_fitted_documents():
    """`fit` leaves "once" out; a taught document brings it in; both can be forgotten."""
    texts, y = [*TEXTS, "once wört1 wört2"], [*LABELS, "class 0"]
    classifier = TextClassifier(min_df=2, random_state=0).fit(texts, y)
    before = classifier.predict_topk(TEST_TEXTS, 6)
    classifier.partial_fit(["once upon"], ["class 5"])
    classifier.refine([*texts, "once upon"], [*y, "class 5"])
    classifier.forget(texts[-1:], y[-1:])
    classifier.forget(["once upon"], ["class 5"])
    classifier.partial_fit(TEXTS[:1], LABELS[:1]).forget(TEXTS[:1], LABELS[:1])
    expected = TextClassifier(min_df=2, random_state=0).fit(texts, y).forget(texts[-1:], y[-1:])
    assert classifier.statistics_.n_documents == expected.statistics_.n_documents == 150
    sums, counts = expected.statistics_.centroid_sums, expected.statistics_.counts
    assert np.array_equal(classifier.statistics_.centroid_sums, sums)
    assert np.array_equal(classifier.statistics_.counts, counts)
    assert before.scores.shape == (60, 6)


def test_forget_refuses_strangers(model):
    before = model._state
    with pytest.raises(ValueError, match="never added"):
        model.forget(["wört0 zebra"] * 500, ["class 1"] * 500)
    with pytest.raises(ValueError, match="not among the classes"):
        model.forget(TEXTS[:1], ["class 77"])
    assert model._state is before


def test_partial_fit_of_an_unfitted_one_is_a_fit(fitted):
    classifier = TextClassifier(random_state=0).partial_fit(TEXTS, LABELS)
    assert_same_predictions(fitted, classifier, TEST_TEXTS)
    with pytest.raises(ValueError, match="not among the classes"):
        TextClassifier().partial_fit(TEXTS, LABELS, classes=["class 0"])


def test_failed_teaching_changes_nothing(model):
    before = model._state
    with pytest.raises(ValueError, match="labels such as"):
        model.partial_fit(["brandnew words"], [7])
    assert model._state is before
    assert "brandnew" not in model.vocabulary_.terms


def test_refine_after_growth(model):
    new = ["zebra crossing", "a zebra", "zebra herd"], ["zebra"] * 3
    model.partial_fit(*new)
    model.refine([*TEXTS, *new[0]], [*LABELS, *new[1]])
    assert model.predict(["zebra"]).tolist() == ["zebra"]
    assert model.score(TEST_TEXTS, TEST_LABELS) > 0.8


def test_classes_can_be_renamed_merged_and_removed(model):
    model.rename_class("class 0", "zero")
    assert "zero" in model.predict(TEST_TEXTS)
    model.merge_classes("class 1", "class 2").remove_class("class 3")
    assert model.classes_.tolist() == ["class 2", "class 4", "class 5", "zero"]


def test_predicting_while_another_thread_teaches(model):
    """Every answer is that of the model before or after a call, never a mix of both."""
    problems = []
    done = threading.Event()

    def predict():
        while not done.is_set():
            try:
                top = model.predict_topk(["zebra wört1"], 3)
                model.explain(["zebra wört1"])
                if not np.all(np.diff(top.scores) <= 0):
                    problems.append(top)
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(10):
        model.partial_fit([f"zebra number{i}"], ["zebra"])
    model.forget([f"zebra number{i}" for i in range(10)], ["zebra"] * 10)
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []


# ---- files


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"char_ngrams": (3, 4), "ngrams": 1, "stem": True, "fold_accents": False},
        {"classifier": LongTailClassifier(C=0.3), "min_df": 2, "ngram_weight": 0.7},
        {"classifier": DoubleSamplingClassifier(random_state=1)},
    ],
)
def test_saved_model_is_the_same(options, tmp_path):
    classifier = TextClassifier(random_state=0, **options).fit(TEXTS, LABELS)
    classifier.partial_fit(["zebra crossing"], ["zebra"])
    classifier.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert_same_predictions(classifier, loaded, [*TEST_TEXTS, "zebra"])
    for name, value in options.items():
        if name != "classifier":
            assert getattr(loaded, name) == value
    assert (loaded.classifier is None) == ("classifier" not in options)
    for model in (classifier, loaded):
        model.partial_fit(["crossing lion"], ["lion"]).forget(TEXTS[:2], LABELS[:2])
    assert_same_predictions(classifier, loaded, [*TEST_TEXTS, "lion"])
    assert loaded.vocabulary_.terms == classifier.vocabulary_.terms


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vocabulary/offsets", lambda a: a[:-1], "must have the shape .n_terms"),
        ("vocabulary/offsets", lambda a: a + 10**6, "must go from 0 to"),
        ("vocabulary/offsets", lambda a: a[::-1].copy(), "must go from 0 to"),
        ("vocabulary/utf8", lambda a: a | 128, "are not UTF-8"),
        ("vocabulary/utf8", lambda a: np.full_like(a, 32), "not all in it"),
        ("vocabulary/utf8", lambda a: a.astype(np.int64), "must be uint8; it is int64"),
        ("vocabulary/document_frequencies", lambda a: a * 0, "must be from 1 to"),
        ("vocabulary/document_frequencies", lambda a: None, "has no array"),
    ],
)
def test_hostile_file(fitted, tmp_path, name, change, message):
    fitted.save(tmp_path / "model")
    file = open_model(tmp_path / "model")
    arrays = {**file.arrays, name: change(np.array(file.arrays[name]))}
    arrays = {key: value for key, value in arrays.items() if value is not None}
    write_model(tmp_path / "hostile", file.kind, file.parameters, arrays)
    with pytest.raises(ModelFileError, match=message):
        longtail.load(tmp_path / "hostile")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("estimators", "os.system"), {}, "has the parameters of"),
        (("estimators", "DoubleSamplingClassifier"), {}, "has the parameters of"),
        (("estimators", "TextClassifier"), None, "wrong parameters of TextClassifier"),
        (("estimators", "TextClassifier", "ngrams"), 9, "wrong ngrams: 9"),
        (("estimators", "TextClassifier", "unknown"), 1, "the names are"),
        (("values", "text/n_fitted"), -1, "wrong text/n_fitted: -1"),
        (("values", "text/n_fitted"), "all", "wrong text/n_fitted: 'all'"),
        (("values", "text/n_fitted"), 10**6, "the terms of the fit are among the terms"),
        (("values",), None, "wrong parameters"),
    ],
)
def test_hostile_header(fitted, tmp_path, path, value, message):
    fitted.save(tmp_path / "model")
    file = open_model(tmp_path / "model")
    parameters = holder = copy.deepcopy(file.parameters)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    write_model(tmp_path / "hostile", file.kind, parameters, file.arrays)
    with pytest.raises(ModelFileError, match=message):
        longtail.load(tmp_path / "hostile")
