"""What scikit-learn's tools and users expect beyond fit and predict."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import DoubleSamplingClassifier, LongTailClassifier
from longtail._caching import cached_property
from longtail._progress import report_progress
from longtail.estimators import base
from tests.conftest import assert_same_predictions, make_problem

BOTH = pytest.mark.parametrize("Classifier", [LongTailClassifier, DoubleSamplingClassifier])


@pytest.fixture(scope="module")
def fitted():
    problem = make_problem(n_documents=400, n_classes=40, n_terms=80)
    return problem, LongTailClassifier(random_state=0, candidates=10).fit(problem.X, problem.y)


# ---- probabilities and decisions


def test_probabilities_are_dense_for_few_classes(fitted):
    problem, classifier = fitted
    probabilities = classifier.predict_proba(problem.X)
    top = classifier.predict_proba_topk(problem.X, 10)
    assert probabilities.shape == (400, 40)
    assert np.all(np.count_nonzero(probabilities, axis=1) <= 10)
    for row, classes, scores in zip(probabilities, top.classes, top.scores, strict=True):
        assert row[classes].tolist() == scores.tolist()
    assert np.all(probabilities.sum(axis=1) <= 1 + 1e-9)


def test_probabilities_are_sparse_for_many_classes(fitted, monkeypatch):
    problem, classifier = fitted
    dense = classifier.predict_proba(problem.X), classifier.decision_function(problem.X)
    monkeypatch.setattr(base, "DENSE_CLASSES", 39)
    sparse = classifier.predict_proba(problem.X), classifier.decision_function(problem.X)
    assert all(isinstance(matrix, sp.csr_array) and matrix.nnz == 4000 for matrix in sparse)
    assert np.array_equal(sparse[0].toarray(), dense[0])
    rows, columns = sparse[1].nonzero()
    assert np.array_equal(sparse[1].toarray()[rows, columns], dense[1][rows, columns])
    assert np.count_nonzero(np.isfinite(dense[1])) == 4000


def test_probabilities_sum_to_one_where_every_class_is_a_candidate(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    assert classifier.predict_proba(problem.X).sum(axis=1) == pytest.approx(1)


def test_decisions_agree_with_predictions(fitted, problem):
    large, classifier = fitted
    decisions = classifier.decision_function(large.X)
    assert np.array_equal(
        classifier.classes_[decisions.argmax(axis=1)], classifier.predict(large.X)
    )
    two = LongTailClassifier(random_state=0).fit(problem.X, problem.y > 1)
    assert two.decision_function(problem.X).shape == (60,)
    assert np.array_equal(two.decision_function(problem.X) > 0, two.predict(problem.X))


@BOTH
def test_places_without_a_candidate_are_not_valid(Classifier, problem):
    labels = np.array(list("abcdefg"))[problem.y]
    classifier = Classifier(candidates=2, random_state=0).fit(problem.X, labels)
    top = classifier.predict_topk(problem.X, 4)
    assert top.valid.tolist() == [[True, True, False, False]] * 60
    assert np.all(top.scores[:, 2:] == -np.inf)
    assert set(top.classes[:, 2:].ravel()) == {""}
    classes, scores = top
    assert classes is top.classes
    assert scores is top.scores


@BOTH
def test_k_is_bounded(Classifier, problem):
    classifier = Classifier(random_state=0).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="k must be at most 1000"):
        classifier.predict_topk(problem.X, 10**9)
    with pytest.raises(ValueError, match="top_terms must be an integer of at least 0; got -1"):
        classifier.explain(problem.X, top_terms=-1)


# ---- state, locks, interrupts


@BOTH
def test_an_interrupted_fit_changes_nothing(Classifier, problem):
    classifier = Classifier(random_state=0).fit(problem.X, problem.y)
    before = dict(vars(classifier))

    def interrupt(stage, done, total):
        raise KeyboardInterrupt

    with report_progress(interrupt), pytest.raises(KeyboardInterrupt):
        classifier.fit(problem.X[:, :5], problem.y)
    assert dict(vars(classifier)) == before
    fresh = Classifier()
    with report_progress(interrupt), pytest.raises(KeyboardInterrupt):
        fresh.fit(problem.X, problem.y)
    assert not hasattr(fresh, "n_features_in_")


@BOTH
def test_reading_changes_nothing(Classifier, problem):
    classifier = Classifier(random_state=0).fit(problem.X, problem.y)
    classifier.partial_fit(problem.X[:2], [98, 99])
    state = classifier.state_
    _ = classifier.statistics_, classifier.classes_, classifier.weights_, classifier._repr_html_()
    classifier.explain(problem.X[:2], [98, 99])
    assert classifier.state_ is state


@BOTH
def test_copies_and_pickles_have_a_lock_of_their_own(Classifier, problem):
    classifier = Classifier(random_state=0).fit(problem.X, problem.y)
    classifier.partial_fit(problem.X[:1], [99])
    for twin in (copy.copy(classifier), copy.deepcopy(classifier)):
        assert twin._lock is not classifier._lock
    twin = pickle.loads(pickle.dumps(classifier))
    assert_same_predictions(twin, classifier, problem.X)
    twin.partial_fit(problem.X[:1], [98])
    assert 98 not in classifier.classes_


@BOTH
def test_two_estimators_do_not_wait_for_each_other(Classifier, problem):
    one, two = (Classifier(random_state=0).fit(problem.X, problem.y) for _ in range(2))
    done = threading.Event()

    def teach():
        two.partial_fit(problem.X[:1], [99])
        done.set()

    with one._lock:
        thread = threading.Thread(target=teach)
        thread.start()
        assert done.wait(60)
    thread.join()


def _teach_in_child(classifier, X, queue):
    queue.put(classifier.partial_fit(X, [99]).classes_.tolist())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_the_lock_is_held_does_not_hang(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    held, release = threading.Event(), threading.Event()

    def hold():
        with classifier._lock:
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    child = context.Process(target=_teach_in_child, args=(classifier, problem.X[:1], queue))
    child.start()
    try:
        assert queue.get(timeout=60)[-1] == 99
    finally:
        release.set()
        holder.join()
        child.join(60)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_a_property_is_computed_does_not_hang():
    computing, release = threading.Event(), threading.Event()
    parent = os.getpid()

    class Slow:
        @cached_property
        def value(self):
            if os.getpid() == parent:
                computing.set()
                release.wait(60)
            return 7

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    assert computing.wait(60)
    child = multiprocessing.get_context("fork").Process(target=lambda: Slow().value)
    child.start()
    child.join(20)
    release.set()
    thread.join()
    hung = child.exitcode is None
    child.kill()
    assert not hung
    slow = Slow()
    assert (slow.value, slow.__dict__) == (7, {"value": 7})


# ---- progress and pictures


@BOTH
def test_stages_are_told(Classifier, problem, capsys):
    stages = []
    with report_progress(lambda stage, done, total: stages.append(stage)):
        Classifier(random_state=0, verbose=1).fit(problem.X, problem.y)
    assert stages[0] == "statistics"
    assert stages[-1] == "index"
    lines = capsys.readouterr().err.splitlines()
    told = [line.split(" (")[0] for line in lines if "held-out" not in line]
    begun = [stage for stage in dict.fromkeys(stages) if ": " not in stage]  # without their steps
    assert told == [f"longtail: {stage}" for stage in (*begun, "done")]


def test_the_picture_shows_sizes_and_the_self_check(fitted):
    _, classifier = fitted
    picture = classifier._repr_html_()
    for part in ("classes", "40", "documents", "400", "held-out accuracy"):
        assert part in picture


def test_an_explanation_prints_as_a_table(problem):
    labels = np.array(["<b>", "\x1b[31m", "c", "d", "e", "f", "g"])[problem.y]
    classifier = LongTailClassifier(random_state=0).fit(problem.X, labels)
    explanation = classifier.explain(problem.X[:1], ["\x1b[31m"], top_terms=3)[0]
    assert "\x1b" not in str(explanation)
    assert f"{explanation.score:+.4f}" in str(explanation)
    page = classifier.explain(problem.X[:1], ["<b>"])[0]._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_explanations_of_taught_classes_add_up(problem):
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    classifier.partial_fit(problem.X[:3], [97, 98, 99])
    merged = copy.copy(classifier)
    merged._state = merged._merged(merged.state_)
    labels = [97, 3, 98, 0, 99]
    mine, theirs = (c.explain(problem.X[:5], labels) for c in (classifier, merged))
    for one, other in zip(mine, theirs, strict=True):
        assert one == other
        parts = sum(one.terms.values()) + one.rest + one.constant
        assert parts == pytest.approx(one.score)
        largest = max(map(abs, one.features.values()))  # of what may cancel out
        assert sum(one.features.values()) == pytest.approx(one.score, abs=1e-5 * largest)


def test_without_calibration_there_is_no_threshold(problem):
    classifier = LongTailClassifier(calibrate=False, random_state=0).fit(problem.X, problem.y)
    assert np.isnan(classifier.threshold_for(0.9).threshold)
    assert classifier.predict_proba(problem.X).sum(axis=1) == pytest.approx(1)


@BOTH
def test_texts_for_a_classifier_of_counts(Classifier, problem):
    texts = ["a bear", "a fox", "a bear", "a fox"]
    for X in (texts, np.array(texts), np.array(texts, object)):
        with pytest.raises(ValueError, match="TextClassifier takes texts"):
            Classifier().fit(X, ["b", "f", "b", "f"])
    classifier = Classifier(random_state=0).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="TextClassifier takes texts"):
        classifier.predict(texts)
