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
from longtail.exceptions import UncalibratedWarning
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


def test_an_explanation_shows_first_what_decides():
    topics = ["owl beak night", "bear honey den", "fox tail hole", "elk antler moss"]
    texts = [f"the {topic} in a wood {i}" for topic in topics for i in range(8)]
    labels = [topic.split()[0] for topic in topics for _ in range(8)]
    fitted = TextClassifier(random_state=0).fit(texts, labels)
    [why] = fitted.explain(["in the the the wood honey and a beak"], classes=["bear"])
    everywhere = {"the", "in", "a", "wood", "in a", "a wood"}
    assert {"the", "in", "a", "wood"} <= set(why.common) <= everywhere
    assert set(list(why.terms)[:2]) == {"honey", "beak"}
    assert not everywhere & set(why.terms)
    assert why.against.common.keys() == why.common.keys()
    for side in (why, why.against):
        lines = dict(side.term_lines())
        [folded] = [name for name in lines if name.startswith("(shared by most classes: ")]
        assert lines[folded] == pytest.approx(sum(side.common.values()))
        assert sum(lines.values()) == pytest.approx(side.score)
        features = dict(side.feature_lines())
        both = side.features["cosine"] + side.features["dampened_cosine"]
        assert features["cosine"] == pytest.approx(both)
        assert "dampened_cosine" not in features
        assert sum(features.values()) == pytest.approx(side.score, rel=1e-5)
    shown = str(why)
    assert shown.index("honey") < shown.index("(shared by most") < shown.index("(other terms)")
    assert "difference" in shown.splitlines()[1]
    assert "<th>difference</th>" in why._repr_html_()


def test_topics_of_a_few_large_classes_are_not_common_terms():
    topics = ["owl", "bear", "fox"]
    texts = [f"about {topic} {i}" for topic in topics for i in range(60)]
    texts += [f"about {topic} beside bear" for topic in topics]
    labels = [*np.repeat(topics, 60).tolist(), *topics]
    fitted = TextClassifier(random_state=0).fit(texts, labels)
    [why] = fitted.explain(["about a bear beside"])
    assert "about" in why.common
    assert "beside" in why.terms  # every class has it, hardly a document does


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
        TextClassifier(random_state=0),
        {"vectorizer__ngram_range": [(1, 1), (1, 2)], "classifier__C": [0.5]},
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


# ---- parameters


def test_parameters_of_the_defaults_are_found_and_set():
    classifier = TextClassifier(random_state=3)
    assert classifier.get_params()["classifier__C"] == LongTailClassifier().C
    assert classifier.get_params()["vectorizer__ngram_range"] == (1, 2)
    assert classifier.classifier is None  # reading creates nothing
    classifier.set_params(classifier__C=0.5, vectorizer__min_df=2)
    assert classifier.classifier.C == 0.5
    assert classifier.vectorizer.min_df == 2
    classifier.set_params(classifier=None, classifier__C=2.0)
    assert classifier.classifier.C == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        TextClassifier().set_params(classifier__c=1)
    assert clone(classifier).get_params()["classifier__C"] == 2.0


def test_what_is_handed_down():
    given = TextClassifier(LongTailClassifier(n_jobs=1), random_state=7, n_jobs=2)
    fitted = given.fit(TEXTS, LABELS)
    assert fitted.classifier_.random_state == 7
    assert fitted.classifier_.n_jobs == 1
    assert given.classifier.random_state is None


def test_a_search_over_the_defaults_is_deterministic():
    grid = {"classifier__C": [0.5, 1.0], "vectorizer__ngram_range": [(1, 1), (1, 2)]}
    first, second = (
        GridSearchCV(TextClassifier(random_state=0), grid, cv=2).fit(TEXTS, LABELS)
        for _ in range(2)
    )
    assert first.cv_results_["mean_test_score"].tolist() == (
        second.cv_results_["mean_test_score"].tolist()
    )
    assert set(first.best_params_) == set(grid)


def test_methods_are_those_of_the_classifier(fitted):
    names = ("predict_proba", "predict_proba_topk", "decision_function", "threshold_for", "refine")
    for estimator in (TextClassifier(), fitted):
        assert all(hasattr(estimator, name) for name in names)
    of_the_paper = TextClassifier(DoubleSamplingClassifier())
    assert not any(hasattr(of_the_paper, name) for name in names)
    assert not hasattr(of_the_paper.fit(TEXTS, LABELS), "term_weights_")
    assert len(fitted.term_weights_) == len(fitted.vocabulary_)
    X = fitted.vocabulary_.count(TEST_TEXTS)
    for name in ("predict_proba", "decision_function"):
        ours, theirs = (
            getattr(one, name)(given)
            for one, given in ((fitted, TEST_TEXTS), (fitted.classifier_, X))
        )
        assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_sample_weight_repeats_documents():
    weights = np.ones(len(TEXTS), int)
    weights[3] = 2
    one = TextClassifier(random_state=0).fit(TEXTS, LABELS, sample_weight=weights)
    assert one.statistics_.n_documents == len(TEXTS) + 1
    one.forget([TEXTS[3]], [LABELS[3]])
    assert one.statistics_ == TextClassifier(random_state=0).fit(TEXTS, LABELS).statistics_


def test_a_tokenizer_is_pickled_but_not_saved(tmp_path):
    classifier = TextClassifier(vectorizer=TextVectorizer(tokenizer=str.split), random_state=0)
    classifier.fit(TEXTS, LABELS)
    assert_same_predictions(classifier, pickle.loads(pickle.dumps(classifier)), TEST_TEXTS)
    with pytest.raises(ValueError, match=r"a file holds no code\. Use token_pattern"):
        classifier.save(tmp_path / "model")


# ---- input


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ((["a", "b"], ["x"]), r"chunk 1 has inconsistent numbers of samples: 2 texts, but.*\(1,\)"),
        ((["a"], [7]), "y mixes labels of different types: 'class 0'.*7 "),
        ((["a"], [None]), "the label of document 0 is missing"),
        (("a text", ["x"]), "got one str"),
        (["a"], r"chunks must be pairs \(texts, labels\); chunk 1 is list"),
    ],
)
def test_a_bad_chunk_is_named(chunk, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier().fit_chunks([(TEXTS, LABELS), chunk])


@pytest.mark.parametrize("library", ["pandas", "categorical", "polars", "pyarrow", "StringDType"])
def test_columns(fitted, library):
    texts, labels = make_columns(library)
    assert_same_predictions(fitted, TextClassifier(random_state=0).fit(texts, labels), TEST_TEXTS)
    chunks = ((texts[i : i + 50], labels[i : i + 50]) for i in range(0, 150, 50))
    assert_same_predictions(fitted, TextClassifier(random_state=0).fit_chunks(chunks), TEST_TEXTS)
    assert fitted.predict(texts[:5]).tolist() == fitted.predict(TEXTS[:5]).tolist()


def make_columns(library):
    """Return texts and labels as columns of a library."""
    if library == "StringDType":
        return tuple(np.array(column, np.dtypes.StringDType()) for column in (TEXTS, LABELS))
    module = pytest.importorskip("pandas" if library == "categorical" else library)
    if library == "pandas":
        return module.Series(TEXTS), module.Series(LABELS, index=range(9, 159))
    if library == "categorical":
        return module.Series(TEXTS), module.Series(LABELS, dtype="category")
    if library == "polars":
        return module.Series(TEXTS), module.Series(LABELS.tolist(), dtype=module.Categorical)
    return module.chunked_array([TEXTS[:70], TEXTS[70:]]), module.array(LABELS).dictionary_encode()


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
    classifier = TextClassifier(vectorizer=TextVectorizer(min_df=2), random_state=0).fit(texts, y)
    before = classifier.predict_topk(TEST_TEXTS, 6)
    classifier.partial_fit(["once upon"], ["class 5"])
    classifier.refine([*texts, "once upon"], [*y, "class 5"])
    classifier.forget(texts[-1:], y[-1:])
    classifier.forget(["once upon"], ["class 5"])
    classifier.partial_fit(TEXTS[:1], LABELS[:1]).forget(TEXTS[:1], LABELS[:1])
    expected = (
        TextClassifier(vectorizer=TextVectorizer(min_df=2), random_state=0)
        .fit(texts, y)
        .forget(texts[-1:], y[-1:])
    )
    assert classifier.statistics_.n_documents == expected.statistics_.n_documents == 150
    sums, counts = expected.statistics_.centroid_sums, expected.statistics_.counts
    assert np.array_equal(classifier.statistics_.centroid_sums, sums)
    assert np.array_equal(classifier.statistics_.counts, counts)
    assert before.scores.shape == (60, 6)


def test_forget_refuses_strangers(model):
    before = model.state_
    with pytest.raises(ValueError, match="never added"):
        model.forget(["wört0 zebra"] * 500, ["class 1"] * 500)
    with pytest.raises(ValueError, match="not among the classes"):
        model.forget(TEXTS[:1], ["class 77"])
    assert model.state_ is before


def test_partial_fit_of_an_unfitted_one_is_a_fit(fitted):
    classifier = TextClassifier(random_state=0).partial_fit(TEXTS, LABELS)
    assert_same_predictions(fitted, classifier, TEST_TEXTS)
    with pytest.raises(ValueError, match="not among the classes"):
        TextClassifier().partial_fit(TEXTS, LABELS, classes=["class 0"])


def test_failed_teaching_changes_nothing(model):
    before = model.state_
    with pytest.raises(
        ValueError, match="labels are such as 7, but the model's classes are such as"
    ):
        model.partial_fit(["brandnew words"], [7])
    assert model.state_ is before
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
        {
            "vectorizer": TextVectorizer(
                ngram_range=(1, 1), char_ngram_range=(3, 4), stem=True, strip_accents=None
            )
        },
        {
            "vectorizer": TextVectorizer(
                stop_words=("wort1",), max_df=0.9, max_features=40, token_pattern=r"\w+"
            )
        },
        {"vectorizer": TextVectorizer(stop_words="english", split_unspaced=False, lowercase=False)},
        {
            "classifier": LongTailClassifier(C=0.3),
            "vectorizer": TextVectorizer(min_df=2, ngram_weight=0.7),
        },
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
            assert repr(getattr(loaded, name)) == repr(value)
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
        (("estimators", "TextVectorizer", "ngram_range"), [1, 99], r"wrong ngram_range: \[1, 99\]"),
        (("estimators", "TextVectorizer", "min_df"), 1.5, "wrong min_df: 1.5"),
        (("estimators", "TextVectorizer", "token_pattern"), "a" * 1001, "wrong token_pattern"),
        (("estimators", "TextVectorizer", "token_pattern"), "(", "must be a regular expression"),
        (("estimators", "TextVectorizer", "strip_accents"), "all", "strip_accents must be"),
        (("estimators", "TextVectorizer", "stop_words"), [1], "wrong stop_words"),
        (("estimators", "TextVectorizer"), None, "wrong parameters of TextVectorizer"),
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


def test_no_text_at_all_is_said():
    with pytest.raises(ValueError, match="texts must have a document at least; there is none"):
        TextClassifier().fit([], [])


def test_the_warning_of_no_calibration_points_at_the_caller():
    classifier = TextClassifier(random_state=0).fit(["a b", "a c", "d e", "d f"], list("xxyy"))
    with pytest.warns(UncalibratedWarning) as caught:
        classifier.predict_proba_topk(["a"], k=1)
    assert [warning.filename for warning in caught] == [__file__]


# ---- what models of counts and of texts have in common


@pytest.mark.parametrize("kind", [LongTailClassifier, DoubleSamplingClassifier])
def test_counts_and_texts_have_one_interface(kind):
    texts = TextClassifier(kind(random_state=0)).fit(TEXTS, LABELS)
    counts = texts.classifier_
    assert texts.takes_texts
    assert not counts.takes_texts
    assert counts.classifier_ is counts
    assert type(counts) is kind
    assert not texts.multilabel_
    assert not counts.multilabel_
    X = texts.vocabulary_.count(TEST_TEXTS)
    for counted in (texts.count(TEST_TEXTS), counts.count(X)):
        assert (counted.to_csr() != X).nnz == 0


def test_label_sets_are_known_to_both():
    texts = TextClassifier(random_state=0).fit(TEXTS, [[label] for label in LABELS])
    assert texts.multilabel_
    assert texts.classifier_.multilabel_


@pytest.mark.parametrize("name", ["classifier_", "multilabel_"])
@pytest.mark.parametrize("kind", [TextClassifier, LongTailClassifier, DoubleSamplingClassifier])
def test_the_interface_is_that_of_a_fitted_model(kind, name):
    with pytest.raises(NotFittedError):
        getattr(kind(), name)


def test_a_text_model_is_a_vocabulary_beside_arrays(fitted):
    state = fitted.state_
    assert state.model is fitted.classifier_.state_
    assert not state.template.__sklearn_is_fitted__()


def test_threads_stay_set_and_are_those_of_one_copy(model):
    other = copy.copy(model).set_threads(2)
    assert (other.n_jobs, other.classifier_.n_jobs) == (2, 2)
    assert model.classifier_.n_jobs is None
    other.partial_fit(["an owl hoots"], [LABELS[0]])
    assert other.classifier_.n_jobs == 2
    assert TextClassifier().set_threads(2).n_jobs == 2


def test_a_second_fit_reads_labels_as_the_new_classifier_does(model):
    model.set_params(classifier__multilabel=True).fit(TEXTS, LABELS)
    assert model.multilabel_


def test_an_estimator_made_of_a_state_predicts_the_same(fitted):
    other = TextClassifier.from_state(fitted.state_, random_state=0)
    assert_same_predictions(fitted, other, TEST_TEXTS)
