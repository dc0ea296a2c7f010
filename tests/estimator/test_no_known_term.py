"""A document without a known term has no class; `predict` alone, which must, gives the largest."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier, load
from longtail.exceptions import NoKnownTermWarning
from longtail.metrics.evaluation import evaluate

WORDS = ["apple", "pear", "plum", "fig", "lime", "kiwi"]
UNKNOWN = ["", "zzzqq", "Wisent 42"]


def fruit(n_documents=240):
    """Texts of 30 classes, the first of them twice as large as the others."""
    rng = np.random.default_rng(0)
    labels = [f"c{max(i % 31 - 1, 0):02}" for i in range(n_documents)]
    texts = [f"{' '.join(rng.choice(WORDS, 3))} mark{label}" for label in labels]
    return texts, labels


@pytest.fixture(scope="module", params=[LongTailClassifier, DoubleSamplingClassifier])
def fitted(request):
    return TextClassifier(request.param(), random_state=0).fit(*fruit())


@pytest.fixture(scope="module")
def sets():
    texts, labels = fruit()
    pairs = [[label, f"other {label[-1]}"] for label in labels]
    return TextClassifier(random_state=0).fit(texts, pairs)


def test_ranked_methods_have_no_class(fitted):
    texts = [*UNKNOWN, "apple markc05"]
    methods = [fitted.predict_topk, getattr(fitted, "predict_proba_topk", fitted.predict_topk)]
    for method in methods:
        for k in (1, 5, 30):
            top = method(texts, k)
            assert not top.valid[:3].any()
            assert top.valid[3, 0]
            assert set(top.classes[:3].ravel().tolist()) == {""}
            alone = method(UNKNOWN[1:2], k)
            assert np.array_equal(alone.scores[0], top.scores[1])
    if methods[0] != methods[1]:
        top = fitted.predict_proba_topk(texts, 3)
        assert top.none[:3].tolist() == [1.0, 1.0, 1.0]
        assert (top.scores[:3] == 0).all()
    assert np.isneginf(fitted.predict_topk(texts, 3).scores[:3]).all()


def test_predict_gives_the_largest_class_and_counts_in_one_warning(fitted):
    with pytest.warns(NoKnownTermWarning, match="3 of 4 documents have no known term") as caught:
        labels = fitted.predict([*UNKNOWN, "apple markc05"])
    assert labels.tolist()[:3] == ["c00"] * 3
    assert labels[3] != "c00"
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(["apple markc05"])


def test_explain_explains_what_predict_gives(fitted):
    texts = [*UNKNOWN, "apple markc05"]
    with pytest.warns(NoKnownTermWarning):
        labels = fitted.predict(texts)
    explained = fitted.explain(texts)
    assert [why.label for why in explained] == labels.tolist()
    assert [bool(why.terms) for why in explained] == [False, False, False, True]
    assert all(why.runner_up not in (None, why.label) for why in explained)
    [other] = fitted.explain(UNKNOWN[:1], classes=["c07"])
    assert other.label == "c07"


def test_dense_rows_hold_the_shares_of_the_largest_classes():
    """So that the highest is what `predict` gives, for few classes and many, dense or sparse."""
    for n_classes in (2, 10, 60, 1200):
        y = np.append(np.arange(n_classes), [1, 1])
        X = sp.eye_array(n_classes, n_classes + 1, format="csr")[y]
        model = LongTailClassifier(random_state=0, calibrate=False).fit(X, y)
        empty = sp.csr_array(([3.0], ([1], [n_classes])), shape=(2, n_classes + 1))
        with pytest.warns(NoKnownTermWarning, match="2 of 2"):
            assert model.predict(empty).tolist() == [1, 1]
        probabilities, scores = model.predict_proba(empty), model.decision_function(empty)
        if n_classes > 1000:
            probabilities, scores = probabilities.toarray(), scores.toarray()
            scores[scores == 0] = -np.inf
        assert probabilities[0, 1] == pytest.approx(3 / len(y))
        assert probabilities.argmax(axis=1).tolist() == [1, 1]
        if n_classes <= 20:
            assert probabilities.sum(axis=1) == pytest.approx(1.0)
        if n_classes == 2:
            assert scores == pytest.approx(np.log(3.0))
        else:
            assert scores.argmax(axis=1).tolist() == [1, 1]


def test_label_sets_are_empty(sets):
    texts = [*UNKNOWN, "apple markc05"]
    for options in ({}, {"threshold": 0.0}, {"max_labels": 1}):
        found = sets.predict(texts, **options)
        assert found[:3] == [[], [], []]
        assert found[3]
    assert not sets.predict_proba_topk(texts, 3).valid[:3].any()
    assert sets.predict_proba(texts)[:3].sum() == 0


def test_a_term_is_known_while_a_class_has_it(tmp_path):
    """Through the delta segment, after forgetting, removing and saving."""
    model = TextClassifier(random_state=0).fit(*fruit())

    def knows(text):
        found = [bool(some.predict_topk([text], 1).valid[0, 0]) for some in (model, reloaded())]
        assert found[0] == found[1]
        return found[0]

    def reloaded():
        model.save(tmp_path / "model.longtail")
        return load(tmp_path / "model.longtail")

    assert not knows("zebra")
    model.partial_fit(["zebra"], ["animal"])
    assert knows("zebra")
    model.forget(["zebra"], ["animal"])
    assert not knows("zebra")
    model.partial_fit(["zebra", "gnu"], ["animal", "animal"])
    assert knows("gnu")
    model.remove_class("animal")
    assert not knows("gnu")
    # A term of the fit whose only class changes in the delta segment, and then loses it.
    texts, labels = fruit()
    last = [text for text, label in zip(texts, labels, strict=True) if label == "c29"]
    assert knows("markc29")
    model.partial_fit(["apple"], ["c29"])
    assert knows("markc29")
    model.forget(last, ["c29"] * len(last))
    assert not knows("markc29")
    assert knows("apple")


def test_a_name_is_evidence_where_documents_have_its_terms():
    model = TextClassifier(random_state=0).fit(*fruit(), class_texts={"named": "markc05 juice"})
    assert model.predict_topk(["markc05"], 1).valid.all()
    model.remove_class("c05")
    assert model.predict_topk(["markc05"], 1).classes[0, 0] == "named"
    assert not model.predict_topk(["juice"], 1).valid.any()  # no document has had it


def test_evaluation_counts_them_as_wrong(fitted):
    texts, labels = fruit(62)
    with_unknown = evaluate(fitted, [([*texts, *UNKNOWN], [*labels, "c00", "c00", ""])])
    without = evaluate(fitted, [(texts, labels)])
    assert with_unknown.accuracy == pytest.approx(without.accuracy * 62 / 65)


def test_recalibrating_passes_them_over():
    model, other = (TextClassifier(random_state=0).fit(*fruit()) for _ in range(2))
    texts, labels = fruit(62)
    model.recalibrate([*texts, *UNKNOWN], [*labels, "c00", "c01", "new"])
    other.recalibrate(texts, labels)
    ours, theirs = (some.classifier_.state_.calibrator for some in (model, other))
    assert np.array_equal(ours.top_probabilities, theirs.top_probabilities)
    assert ours.n_outcomes == theirs.n_outcomes == 62
    assert model.recalibrate(["zzzqq"], ["c00"]).classifier_.state_.calibrator.n_outcomes == 62
