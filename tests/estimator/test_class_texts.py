"""Class texts: names of classes beside their documents, and classes that have a name alone."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail._labels import LabelSets
from longtail.exceptions import ModelFileError
from longtail.paper.sampling import draw_seed
from longtail.store import open_model, write_model
from longtail.text import TextVectorizer
from longtail.training.mixture import MACRO_SHARE, N_PARTS, PRIOR, PairParts, fit_mixture
from longtail.training.name_rows import MAX_SIMILAR, MIN_SIMILARITY, count_names
from longtail.training.sampling import hold_out
from longtail.training.self_check import share_bonus
from tests import oracle_names

N_CLASSES, N_UNSEEN, N_NOISE = 150, 30, 60
WORDS = ("fox", "foxes", "bear", "bears", "owl", "barn", "night", "nightly", "honey", "hoots")


def make_documents(n_each=10, seed=0, first=0, last=N_CLASSES):
    """Documents with the term of their class's name most of the time, and terms of any class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(first, last), n_each)
    X = np.zeros((len(y), N_CLASSES + N_UNSEEN + N_NOISE))
    named = rng.random(len(y)) < 0.8
    X[np.flatnonzero(named), y[named]] = 1
    for row in X:
        row[rng.integers(0, X.shape[1], 6)] += 1
    return X, y


def name_row(label):
    row = np.zeros(N_CLASSES + N_UNSEEN + N_NOISE)
    row[label] = 2
    row[-1 - label % N_NOISE] = 0.5
    return row


NAMES = {label: name_row(label) for label in range(N_CLASSES + N_UNSEEN)}


@pytest.fixture(scope="module")
def fitted():
    X, y = make_documents()
    single = np.flatnonzero((y % 5 > 0) | (np.arange(len(y)) % 10 == 0))  # each fifth class has one
    return LongTailClassifier(random_state=0).fit(X[single], y[single], class_texts=NAMES)


def test_classes_without_documents_are_found_and_the_others_stay(fitted):
    assert fitted.classes_.tolist() == list(range(N_CLASSES + N_UNSEEN))
    assert not fitted.statistics_.class_sizes[N_CLASSES:].any()
    X, y = make_documents(3, seed=1, first=N_CLASSES, last=N_CLASSES + N_UNSEEN)
    found = fitted.predict_topk(X, k=10).classes
    assert np.mean((found == y[:, None]).any(axis=1)) > 0.6
    X, y = make_documents(3, seed=2)
    batch = fitted.predict_topk(X, k=5)
    for row in range(3):  # one document takes another way through the kernels
        assert np.array_equal(
            fitted.predict_topk(X[row : row + 1], k=5).scores[0], batch.scores[row]
        )
    plain = LongTailClassifier(random_state=0).fit(*make_documents())
    assert np.mean(fitted.predict(X) == y) > np.mean(plain.predict(X) == y) - 0.02


def test_classes_without_documents_share_the_bonus_and_hide_nothing():
    # However many names without documents are given, what is learned on held-out documents is the
    # same: none of these classes can be their label. The bonus falls by the logarithm.
    X, y = make_documents(10)
    kept = np.flatnonzero((y % 2 > 0) | (np.arange(len(y)) % 10 == 0))
    X, y = X[kept], y[kept]
    labels = LabelSets.single(y, np.arange(N_CLASSES))
    names = {label: name_row(label) for label in range(N_CLASSES)}
    weights = {}
    for n_empty in (0, 1, 400):
        texts = names | {1000 + i: name_row(i % N_CLASSES) for i in range(n_empty)}
        model = LongTailClassifier(random_state=0).fit(X, y, class_texts=texts)
        weights[n_empty] = model.self_check_.name_weights
    held_out = hold_out(labels, int(0.15 * len(y)), draw_seed(0), np.ones(N_CLASSES, bool))
    left = np.bincount(np.delete(y, held_out), minlength=N_CLASSES)
    n_held_out = np.count_nonzero(left == 0)
    assert n_held_out > 5
    assert weights[1] == pytest.approx(weights[0], abs=0.2)
    assert weights[400][:2] == pytest.approx(weights[0][:2], abs=0.6)
    expected = weights[0][2] - math.log(400 / n_held_out)
    assert weights[400][2] == pytest.approx(expected, abs=0.3)
    assert share_bonus(5, 4) == 0.0


def test_a_name_adds_what_the_formula_says(fitted):
    state = fitted.state_
    weight, slope, bonus = state.check.name_weights.tolist()
    idf, sizes = state.corpus.idf, state.statistics.class_sizes
    documents, _ = make_documents(1, seed=3)
    scores = fitted.decision_function(documents)
    x = documents[0]
    weights = zip(x, state.document_weights, strict=True)
    squares = [(1 + math.log(n)) * w if n else 0.0 for n, w in weights]
    length = math.sqrt(sum(value**2 for value in squares))
    for c in (0, 1, N_CLASSES, N_CLASSES + 7):
        row = {t: NAMES[c][t] * idf[t] for t in np.flatnonzero(NAMES[c])}
        norm = math.sqrt(sum(value**2 for value in row.values()))
        match = sum(squares[t] / length * value / norm for t, value in row.items())
        size = max(sizes[c], 0.5)
        added = match * (weight + slope * math.log(size)) + bonus * (sizes[c] == 0)
        (explanation,) = fitted.explain(documents[:1], [c])
        assert explanation.features["name"] == pytest.approx(added, abs=1e-4)
        assert sum(explanation.features.values()) == pytest.approx(explanation.score, abs=1e-3)
        if np.isfinite(scores[0, c]):
            assert explanation.score == pytest.approx(scores[0, c], abs=1e-4)
    assert "because of its name" in str(fitted.explain(name_row(155)[None], [155])[0])


def test_documents_come_and_go_and_the_name_stays(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    classifier = longtail.load(tmp_path / "model")
    X, y = make_documents(2, seed=4, first=N_CLASSES - 2, last=N_CLASSES + 3)
    before = classifier.predict_topk(X, k=5)
    assert np.array_equal(before.scores, fitted.predict_topk(X, k=5).scores)
    scorer = classifier.state_.ranking_scorer
    classifier.partial_fit(X, y)
    assert classifier.state_.ranking_scorer is scorer  # adding names takes as long as an index
    taught = classifier.predict_topk(X, k=5)
    assert np.mean(taught.classes[:, 0] == y) > np.mean(before.classes[:, 0] == y)
    classifier.save(tmp_path / "taught")
    merged = longtail.load(tmp_path / "taught")  # one segment: the same scores
    assert np.array_equal(merged.predict_topk(X, k=5).scores, taught.scores)
    parts = (c.explain(X[:3], y[:3])[0].features for c in (classifier, merged))
    assert next(parts) == pytest.approx(next(parts), rel=1e-6)
    classifier.forget(X, y)
    assert classifier.classes_.tolist() == fitted.classes_.tolist()
    assert np.array_equal(classifier.predict_topk(X, k=5).scores, before.scores)
    merged.forget(X, y)
    assert np.array_equal(merged.predict_topk(X, k=5).scores, before.scores)


def test_a_text_is_replaced_exactly(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    classifier = longtail.load(tmp_path / "model")
    X, _ = make_documents(1, seed=5, last=N_CLASSES + N_UNSEEN)
    before = classifier.predict_topk(X, k=5)
    classifier.set_class_text(3, name_row(4))
    assert not np.array_equal(classifier.predict_topk(X, k=5).scores, before.scores)
    classifier.set_class_text(3, sp.csr_array(name_row(3)[None]))
    assert np.array_equal(classifier.predict_topk(X, k=5).scores, before.scores)
    classifier.set_class_text(160, None)
    assert 160 not in classifier.classes_
    classifier.set_class_text(2, None)
    assert 2 in classifier.classes_  # it has documents
    classifier.set_class_text(2, name_row(2)).set_class_text(160, name_row(160))
    assert np.array_equal(classifier.predict_topk(X, k=5).scores, before.scores)
    classifier.rename_class(160, 500)
    (explanation,) = classifier.explain(name_row(160)[None], [500])
    assert explanation.features["name"] > 0
    classifier.merge_classes(500, 2)
    assert 500 not in classifier.classes_
    classifier.remove_class(161)
    assert 161 not in classifier.classes_


def test_a_model_without_names_can_get_one():
    X, y = make_documents(3)
    classifier = LongTailClassifier(random_state=0).fit(X, y)
    before = classifier.predict_topk(X, k=5)
    classifier.set_class_text(155, name_row(155))
    assert classifier.predict(name_row(155)[None]).tolist() == [155]
    classifier.set_class_text(155, None)
    assert classifier.state_.names is None
    assert np.array_equal(classifier.predict_topk(X, k=5).scores, before.scores)


def test_no_text_is_as_if_there_were_none_and_threads_do_not_matter():
    X, y = make_documents(3)
    plain, empty, pair, threads = (
        LongTailClassifier(random_state=0, n_jobs=n_jobs).fit(X, y, class_texts=texts)
        for texts, n_jobs in (
            (None, 1),
            ({1: None}, 1),
            ((list(NAMES), np.array(list(NAMES.values()))), 1),
            (dict(reversed(NAMES.items())), 2),
        )
    )
    scores = [c.predict_topk(X, k=5).scores for c in (plain, empty, pair, threads)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[2], scores[3])
    assert "name" not in plain.explain(X[:1])[0].features


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([1, 2], "must be a mapping"),
        ({1: "a name"}, "TextClassifier takes texts"),
        ({1: [1.0, 2.0]}, "rows of 240 counts"),
        ({1: -name_row(1)}, "negative"),
        ({1: name_row(1) * np.nan}, "NaN"),
        ({"a": name_row(1)}, "labels of the same type"),
        (([1, 1], np.array([name_row(1)] * 2)), "twice"),
        (([1], np.array([name_row(1)] * 2)), "1 labels and 2 rows"),
    ],
)
def test_bad_class_texts_are_refused(texts, message):
    X, y = make_documents(2)
    with pytest.raises(ValueError, match=message):
        LongTailClassifier(random_state=0).fit(X, y, class_texts=texts)


def test_bad_edits_leave_the_model(fitted):
    state = fitted.state_
    for label, text, message in (
        (1, [1.0], "rows of 240"),
        ("a", name_row(1), "same type"),
        (999, None, "no class 999"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.set_class_text(label, text)
    assert fitted.state_ is state


@pytest.mark.parametrize(
    "rows",
    [{1: [[1], [1, 2]]}, {1: [object()] * 240}, {1: [10**400] * 240}, ([1], [["a"] * 240])],
)
def test_class_texts_that_are_no_counts_are_refused(rows):
    X, y = make_documents(4)
    with pytest.raises(ValueError, match="class_texts must hold rows of counts"):
        LongTailClassifier().fit(X, y, class_texts=rows)


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("offset", [10**8, -(10**8)])
def test_a_damaged_row_is_refused(fitted, n_rows, offset):
    row = sp.csr_array(np.ones((n_rows, 240 // n_rows)))
    row.indptr[1] = offset
    with pytest.raises(ValueError, match="the text of class 1 is a damaged csr matrix"):
        fitted.set_class_text(1, row)


def test_rows_may_be_lists():
    X, y = make_documents(4)
    lists, matrix = (
        ([1, 2], [name_row(1).tolist(), name_row(2).tolist()]),
        {
            1: name_row(1),
            2: name_row(2),
        },
    )
    models = [
        LongTailClassifier(random_state=0, calibrate=False).fit(X, y, class_texts=texts)
        for texts in (lists, matrix)
    ]
    assert np.array_equal(*(model.decision_function(X[:5]) for model in models))


def test_columns_of_an_indicator_matrix_can_be_known_by_name():
    X, y = make_documents(4)
    Y = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), 180))
    classifier = LongTailClassifier(random_state=0).fit(X, Y, class_texts=NAMES)
    assert classifier.predict(name_row(170)[None]).toarray()[0, 170] == 1
    with pytest.raises(ValueError, match="180 columns"):
        LongTailClassifier().fit(X, Y, class_texts={180: name_row(1)})


def test_only_named_classes_lose_their_last_document():
    labels = LabelSets.single(np.repeat(np.arange(50), 2), np.arange(50))
    named = np.arange(50) < 25
    held_out = hold_out(labels, 100, 0, named)
    lost = np.bincount(labels.class_ids[held_out], minlength=50)
    assert lost[:25].tolist() == [2] * 25
    assert lost[25:].max() == 1


def test_weights_of_names_minimise_the_softmax_loss():
    rng = np.random.default_rng(0)
    n_documents, n_candidates = 600, 5
    candidates = np.argsort(rng.random((n_documents, 60)), axis=1)[:, :n_candidates]
    sizes = np.arange(60) % 20
    correct = np.zeros(candidates.shape, bool)
    correct[np.arange(n_documents), rng.integers(0, n_candidates, n_documents)] = True
    values = np.zeros((*candidates.shape, N_PARTS + 2))
    values[:, :, N_PARTS] = rng.random(candidates.shape) + 0.5 * correct
    values[:, :, N_PARTS + 1] = sizes[candidates] == 0
    log_sizes = np.log(np.maximum(sizes, 0.5))[candidates]
    parts = PairParts(rng.normal(size=candidates.shape), values, log_sizes)
    learned = fit_mixture(parts, correct, candidates)
    of_class = Counter(candidates[correct].tolist())
    shares = np.array([1 / of_class[c] for c in candidates[correct].tolist()])
    weights = (1 - MACRO_SHARE) / n_documents + MACRO_SHARE * shares / shares.sum()
    scales = values.std(axis=(0, 1)) + 1e-9

    def loss(changes):
        name, slope, bonus = changes / scales[[N_PARTS, N_PARTS, N_PARTS + 1]]
        scores = parts.scores + values[:, :, N_PARTS] * (name + slope * log_sizes)
        scores = scores + bonus * values[:, :, N_PARTS + 1]
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        penalty = PRIOR / n_documents * float(changes @ changes)
        return penalty - float(weights @ np.log(shares[correct]))

    best = minimize(loss, np.zeros(3), tol=1e-12).x / scales[[N_PARTS, N_PARTS, N_PARTS + 1]]
    assert learned.names[0, 1] == pytest.approx(best[2], abs=2e-3)
    assert learned.names[:2, 0] == pytest.approx(best[:2], abs=2e-3)
    assert not learned.names[2:].any()
    assert learned.names[1, 1] == 0


# ---- from texts


def test_words_stand_for_words_that_look_like_them():
    """As the oracle has them: at most twenty each, bigrams as in a document."""
    alike = [f"undergroundish{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    documents = [" ".join([*WORDS, *alike]), "brown bear", "brown bear", "a fox", "a fox"]
    vocabulary = TextVectorizer().fit(documents).vocabulary_
    names = ["Bear, nights", "§", "foxlike bear bear", "brown bear; a fox!", "Undergroundish"]
    expected = oracle_names.count_names(names, vocabulary.terms, MAX_SIMILAR, MIN_SIMILARITY)
    rows = count_names(vocabulary, names, None)
    assert rows.shape == (len(names), len(vocabulary.terms))
    for row, counts in zip(rows.toarray().tolist(), expected, strict=True):
        counted = {t: value for t, value in enumerate(row) if value}
        assert counted == pytest.approx(counts, rel=1e-9)
    assert expected[1] == {}
    assert len(expected[4]) == MAX_SIMILAR < len(alike)
    assert len(oracle_names.count_names(names, vocabulary.terms, 100)[4]) == len(alike)
    bigrams = {vocabulary.terms[t] for t in expected[3] if " " in vocabulary.terms[t]}
    assert bigrams == {"brown bear", "a fox"}


@pytest.fixture(scope="module")
def of_texts():
    texts = [f"{word} {other}" for word in WORDS for other in WORDS for _ in range(3)]
    y = [word for word in WORDS for _ in WORDS for _ in range(3)]
    names = {"Tyto alba": "barn owl; screech owls", "bear": "brown bears", "fox": " ", "x": None}
    return TextClassifier(random_state=0).fit(texts, y, class_texts=names)


def test_a_text_classifier_keeps_its_texts(of_texts, tmp_path):
    assert "Tyto alba" in of_texts.classes_
    assert "x" not in of_texts.classes_
    assert of_texts.class_texts_ == {"Tyto alba": "barn owl; screech owls", "bear": "brown bears"}
    of_texts.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.class_texts_ == of_texts.class_texts_
    document = ["an owl in a barn"]
    before = loaded.predict_topk(document, k=3)
    assert "Tyto alba" in before.classes[0]
    assert np.array_equal(before.scores, of_texts.predict_topk(document, k=3).scores)
    loaded.partial_fit(["a white face"], ["Tyto alba"]).forget(["a white face"], ["Tyto alba"])
    assert np.array_equal(before.scores, loaded.predict_topk(document, k=3).scores)
    loaded.rename_class("Tyto alba", "barn owl").merge_classes("fox", "bear")
    assert loaded.class_texts_ == {"barn owl": "barn owl; screech owls", "bear": "brown bears"}
    loaded.set_class_text("barn owl", "")
    assert "barn owl" not in loaded.classes_
    assert loaded.class_texts_ == {"bear": "brown bears"}
    loaded.set_class_text("Strix", "hooting nightly owl")
    assert "Strix" in loaded.predict_topk(["owl hoots nightly"], k=4).classes


def test_bad_texts_are_refused(of_texts):
    with pytest.raises(ValueError, match="must be a string or None; got 3"):
        of_texts.set_class_text("bear", 3)
    with pytest.raises(ValueError, match="must be a mapping of label to text"):
        TextClassifier().fit(["a b", "c d"], ["a", "b"], class_texts=["a"])
    with pytest.raises(ValueError, match="DoubleSamplingClassifier takes no class_texts"):
        TextClassifier(DoubleSamplingClassifier()).fit(
            ["a b", "c d"], ["a", "b"], class_texts={"a": "b"}
        )
    assert not hasattr(TextClassifier(DoubleSamplingClassifier()), "set_class_text")


@pytest.mark.parametrize("change", ["index", "part", "range"])
def test_a_file_with_false_names_is_refused(of_texts, tmp_path, change):
    of_texts.save(tmp_path / "model")
    file = open_model(tmp_path / "model")
    arrays = dict(file.arrays)
    assert not any(name.startswith("index/") for name in arrays)
    if change == "part":
        del arrays["names/named"]
    elif change == "range":
        arrays["names/indices"] = arrays["names/indices"] + 10**6
    else:
        plain = TextClassifier(random_state=0).fit(["a b", "c d"], ["a", "b"])
        plain.save(tmp_path / "plain")
        others = open_model(tmp_path / "plain").arrays
        arrays |= {name: others[name] for name in others if name.startswith("index/")}
    write_model(tmp_path / "bad", file.kind, file.parameters, arrays)
    with pytest.raises(ModelFileError):
        longtail.load(tmp_path / "bad")


@pytest.mark.parametrize("blank", ["", "  ", " \n", None])
def test_a_text_that_a_teacher_took_away_stays_away(of_texts, tmp_path, blank):
    of_texts.save(tmp_path / "model")
    teacher = longtail.Teacher(tmp_path / "model")
    teacher.set_class_text("bear", blank)
    opened = longtail.load(tmp_path / "model")
    assert (
        opened.class_texts_ == teacher.model.class_texts_ == {"Tyto alba": "barn owl; screech owls"}
    )
    assert teacher.changes()[0].content == {"label": "bear", "text": ""}


def test_a_teacher_records_texts(of_texts, tmp_path):
    of_texts.save(tmp_path / "model")
    teacher = longtail.Teacher(tmp_path / "model")
    before = teacher.model.class_texts_
    teacher.set_class_text("Strix", "hooting nightly owl", by="ann")
    teacher.set_class_text("bear", None)
    assert longtail.load(tmp_path / "model").class_texts_ == {
        "Tyto alba": "barn owl; screech owls",
        "Strix": "hooting nightly owl",
    }
    assert [change.action for change in teacher.changes()] == ["describe", "describe"]
    with pytest.raises(ValueError, match="must be a string or None"):
        teacher.set_class_text("bear", 3)
    with pytest.raises(ValueError, match="no class 'unknown'"):
        teacher.set_class_text("unknown", "")
    teacher.undo(2)
    assert teacher.model.class_texts_ == before
    assert "Strix" not in teacher.model.classes_
    X, y = make_documents(2)
    LongTailClassifier(random_state=0).fit(X, y).save(tmp_path / "counts")
    with pytest.raises(ValueError, match="keeps no texts of classes"):
        longtail.Teacher(tmp_path / "counts").set_class_text(1, "one")
