"""A model that keeps documents learns anew without being given any."""

from dataclasses import replace

import numpy as np
import pytest

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail._labels import LabelSets
from longtail.sparse import CountMatrix
from longtail.store import open_model
from longtail.training import relearning
from longtail.training.config import FitConfig
from longtail.training.pipeline import fit_long_tail
from longtail.training.relearning import SHARE_CHANGED
from tests.estimator.test_recent import make_documents

EVERYTHING = 1_000


@pytest.fixture(autouse=True)
def few_documents_are_enough(monkeypatch):
    """Tests have few documents, and keep fewer."""
    monkeypatch.setattr(relearning, "MIN_HELD_OUT", 1)
    monkeypatch.setattr(relearning, "SHARE_KEPT", 0.0)


def learned_parts(state):
    """What a fit learns, each as an array."""
    return {
        "term weights": state.term_weights,
        "feature weights": state.feature_weights,
        "residuals": state.residuals.weights,
        "residual terms": state.residuals.indices,
        "biases": state.residuals.biases,
        "mixture": state.check.kept_mixture.features,
        "knots": state.calibrator.top_log_odds,
        "outcomes": state.calibrator.held_out_correct,
        "frequencies": state.corpus.document_frequencies,
        "scorer": state.scorer.weights,
    }


def assert_same_parts(state, other):
    assert np.array_equal(state.classes, other.classes)
    theirs = learned_parts(other)
    for name, part in learned_parts(state).items():
        assert np.array_equal(part, theirs[name]), name


@pytest.fixture(scope="module")
def problem():
    X, y = make_documents(n_classes=40, per_class=12, n_terms=120)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order], y[order]


def test_with_every_document_in_memory_refine_is_a_fit(problem):
    X, y = problem
    half = len(y) // 2
    taught = LongTailClassifier(memory=EVERYTHING, adapt=False, random_state=5)
    taught.fit(X[:half], y[:half])
    for first in range(half, len(y), 50):
        taught.partial_fit(X[first : first + 50], y[first : first + 50])
    taught.refine()
    classes, class_ids = np.unique(y, return_inverse=True)
    labels = LabelSets.single(class_ids, classes)
    fitted = fit_long_tail(CountMatrix.from_matrix(X), labels, FitConfig(seed=0))
    assert_same_parts(taught.state_, fitted)
    assert not taught.state_.stale.any()
    assert taught.state_.memory.n_documents == len(y)


def test_residuals_of_stale_classes_are_those_that_given_documents_would_give(problem):
    X, y = problem
    kept = np.sort(np.concatenate([np.flatnonzero(y == label)[-4:] for label in np.unique(y)]))
    new = np.repeat(X[:3], 2, axis=0), np.repeat(["new 1", "new 2", y[0]], 2)
    model = LongTailClassifier(memory=4, random_state=0).fit(X, y).partial_fit(*new).refine()
    given = LongTailClassifier(random_state=0).fit(X, y).partial_fit(*new)
    dropped = np.flatnonzero(y == y[0])[-4:-2]  # two documents of this class came since
    kept = kept[~np.isin(kept, dropped)]
    given.refine(np.vstack([X[kept], new[0]]), np.concatenate([y[kept], new[1]]))
    assert_same_parts(model.state_, given.state_)
    assert not model.state_.stale.any()
    assert model.state_.memory.n_changed == 6


@pytest.mark.parametrize("n_taught", [9, 60])  # residuals; everything
def test_weights_of_classes_count_in_what_is_learned_from_memory(problem, n_taught):
    X, y = problem
    learned = []
    for class_weight in (None, {y[0]: 5.0, "gone": 2.0}):
        model = LongTailClassifier(memory=99, class_weight=class_weight, random_state=0)
        model.fit(np.vstack([X, X[:1]]), [*y, "gone"]).remove_class("gone")
        model.partial_fit(X[:n_taught], y[:n_taught])
        before = model.state_.term_weights
        learned.append(model.refine().state_.term_weights - before)
    assert np.any(learned[0] != learned[1])


def test_few_stale_classes_wait(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "SHARE_STALE", 0.03)
    model = LongTailClassifier(memory=4, adapt=False, random_state=0).fit(X, y)
    model.partial_fit(X[:1], y[:1])
    before = model.state_.residuals
    assert model.refine().state_.stale.sum() == 1
    assert np.array_equal(model.state_.residuals.weights, before.weights)


def test_refine_learns_only_when_enough_has_changed(problem):
    X, y = problem
    model = LongTailClassifier(memory=2, random_state=0).fit(X, y)
    n_few = int(SHARE_CHANGED * len(y)) - 1
    before = model.state_
    model.partial_fit(X[:n_few], y[:n_few]).refine()
    assert np.array_equal(model.state_.feature_weights, before.feature_weights)
    assert model.state_.corpus.n_documents == len(y) + n_few
    model.forget(X[:20], y[:20]).refine()
    assert not np.array_equal(model.state_.feature_weights, before.feature_weights)
    assert model.state_.memory.n_changed == 0
    assert (
        model.state_.statistics
        == (
            LongTailClassifier(random_state=0).fit(X, y).partial_fit(X[20:n_few], y[20:n_few])
        ).statistics_
    )


def test_a_memory_of_few_of_the_documents_changes_no_feature_weights(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "SHARE_KEPT", 0.9)
    few, most = (LongTailClassifier(memory=m, random_state=0).fit(X, y) for m in (11, 24))
    before = few.state_.feature_weights
    for model in (few, most):
        model.partial_fit(X[::4], y[::4]).refine()
        assert not model.state_.stale.any()
    assert np.array_equal(few.state_.feature_weights, before)
    assert not np.array_equal(most.state_.feature_weights, before)


def test_documents_of_stale_classes_teach_the_weights_of_their_terms_alone(problem, monkeypatch):
    """As a pass of a fit over these documents would, from the weights that there are."""
    X, y = problem
    monkeypatch.setattr(relearning, "SHARE_KEPT", 2.0)  # nothing is learned anew
    monkeypatch.setattr(relearning, "SHARE_STALE", 0.01)
    model = LongTailClassifier(memory=30, random_state=0).fit(X, y)
    before = model.state_.term_weights
    new = np.zeros((3, X.shape[1]), int)
    terms = np.flatnonzero(X.sum(axis=0))[[3, 8, 21]]
    new[:, terms] = [[2, 1, 0], [1, 2, 0], [1, 1, 1]]
    model.partial_fit(new, ["new"] * 3).refine()
    changed = np.flatnonzero(model.state_.term_weights != before)
    assert changed.tolist() == terms.tolist()
    assert np.abs(np.log(model.state_.term_weights / before)).max() < 0.1  # 3 of many documents


def test_a_fit_that_kept_no_term_weights_learns_none(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "SHARE_KEPT", 2.0)
    model = LongTailClassifier(memory=30, random_state=0).fit(X, y)
    model._state = replace(model.state_, term_weights=np.ones(X.shape[1]))
    model.partial_fit(X[:40], y[:40]).refine()
    assert np.all(model.state_.term_weights == 1.0)
    assert not model.state_.stale.any()


def test_too_few_documents_leave_what_was_learned(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "MIN_HELD_OUT", 1_000)
    model = LongTailClassifier(memory=EVERYTHING, adapt=False, random_state=0).fit(X, y)
    before = model.state_.term_weights
    model.partial_fit(X, y).refine()
    assert np.array_equal(model.state_.term_weights, before)
    assert model.state_.corpus.n_documents == 2 * len(y)


def test_probabilities_go_on_following_many_outcomes(problem):
    X, y = problem
    model = LongTailClassifier(memory=EVERYTHING, random_state=0).fit(X[:200], y[:200])
    model.recalibrate(X[200:], y[200:]).partial_fit(X[200:], y[200:])
    before = model.state_
    after = model.refine().state_
    assert np.any(after.feature_weights != before.feature_weights)
    assert np.array_equal(after.calibrator.top_log_odds, before.calibrator.top_log_odds)
    assert len(after.calibrator.ranked_truth) != len(before.calibrator.ranked_truth)


def test_probabilities_expect_as_many_unknown_classes_as_before(problem, monkeypatch):
    monkeypatch.setattr(relearning, "MIN_FOLLOWED", 201)
    X, y = problem
    model = LongTailClassifier(memory=EVERYTHING, adapt=False, random_state=0).fit(X, y)
    strangers = np.random.default_rng(0).poisson(0.3, (200, X.shape[1])).astype(float)
    labels = np.where(np.arange(200) < 100, "unknown", y[:200])
    rows = np.where((np.arange(200) < 100)[:, None], strangers, X[:200])
    model.recalibrate(rows, labels)
    calibrator = model.state_.calibrator
    assert (calibrator.n_outcomes, calibrator.unknown_share) == (200, 0.5)
    model.partial_fit(X, y).refine()
    learned = model.state_.calibrator
    assert (learned.n_outcomes, learned.unknown_share) == (200, 0.5)
    n_known = len(learned.unknown_log_odds)
    assert len(learned.held_out_correct) == 2 * n_known
    assert learned.held_out_correct.mean() <= 0.5
    plain = LongTailClassifier(memory=EVERYTHING, adapt=False, random_state=0)
    plain.fit(X, y).partial_fit(X, y)
    sure, doubting = (m.predict_proba_topk(strangers, 5) for m in (plain.refine(), model))
    assert np.array_equal(sure.classes[:, 0], doubting.classes[:, 0])  # only probabilities differ
    assert doubting.scores[:, 0].mean() < sure.scores[:, 0].mean()
    assert np.all(doubting.scores.sum(axis=1) <= 1 + 1e-12)


def test_nothing_is_kept_unless_asked_for(problem, tmp_path):
    model = LongTailClassifier(random_state=0).fit(*problem)
    model.save(tmp_path / "model")
    assert model.state_.memory is None
    assert not [name for name in open_model(tmp_path / "model").arrays if "memory" in name]


def test_what_is_kept_is_in_the_file_and_leaves_it_when_forgotten(problem, tmp_path):
    X, y = problem
    model = LongTailClassifier(memory=2, random_state=0).fit(X, y)
    model.partial_fit(np.eye(1, X.shape[1], 7) * 77, ["secret"]).save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert opened.memory == opened.state_.memory.per_class == 2
    assert 77 in opened.state_.memory.data
    opened.forget(np.eye(1, X.shape[1], 7) * 77, ["secret"]).save(tmp_path / "other")
    assert 77 not in open_model(tmp_path / "other").arrays["memory/data"]
    opened.refine()  # two documents of each class are enough to learn from
    assert np.mean(opened.predict(X) == y) > 0.8


def test_a_journal_replays_what_was_learned(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(200)]

    def write(c):
        return " ".join(rng.choice(words[5 * c : 5 * c + 9], 6)) + f" note{rng.integers(400)}"

    labels = [f"c{i % 30:02}" for i in range(300)]
    texts = [write(i % 30) for i in range(300)]
    path = tmp_path / "model"
    TextClassifier(LongTailClassifier(memory=3)).fit(texts, labels).save(path)  # no seed
    teacher = Teacher(path)
    for i in range(40):
        teacher.teach([write(i % 33)], [f"c{i % 33:02}"])
    teacher.forget(texts[:2], labels[:2])
    teacher.refine()
    teacher.rename_class("c03", "z")
    teacher.merge_classes("c04", "c05")
    teacher.remove_class("c06")
    teacher.teach([write(7)], ["q"])
    teacher.refine()
    mine, theirs = (model.classifier_.state_ for model in (teacher.model, load(path)))
    assert_same_parts(mine, theirs)
    for name in ("indptr", "gaps", "data", "class_ids", "n_changed"):
        assert np.array_equal(getattr(mine.memory, name), getattr(theirs.memory, name)), name
    assert np.bincount(mine.memory.class_ids).max() == 3


def test_a_class_without_a_kept_document_learns_nothing(problem):
    X, y = problem
    model = LongTailClassifier(memory=1, random_state=0).fit(X, y)
    label = y[-1]
    last = np.flatnonzero(y == label)[-1]
    others = np.flatnonzero(y != label)[:60]
    model.forget(X[[last]], [label]).partial_fit(X[others], y[others]).refine()
    class_id = np.searchsorted(model.classes_, label)
    assert class_id not in model.state_.memory.class_ids
    assert model.state_.memory.n_changed == 0
    residuals = model.state_.residuals
    assert residuals.indptr[class_id] == residuals.indptr[class_id + 1]
    assert residuals.biases[class_id] == 0


@pytest.mark.parametrize("memory", [-1, 1.5, True, "all"])
def test_what_is_no_number_of_documents_is_refused(problem, memory):
    with pytest.raises(ValueError, match='memory must be None, "auto", or the number of documents'):
        LongTailClassifier(memory=memory).fit(*problem)


def test_label_sets_are_refused(problem):
    X, y = problem
    sets = [[label, "all"] for label in y]
    with pytest.raises(ValueError, match="memory is for models with one label"):
        LongTailClassifier(memory=1).fit(X, sets)


def test_outcomes_are_changes_of_the_journal(problem, tmp_path):
    X, y = problem
    path = tmp_path / "model"
    LongTailClassifier(random_state=0).fit(X, y).save(path)
    teacher = Teacher(path, refine="never")
    before = teacher.model.state_.calibrator
    for first in (0, 60):
        rows = slice(first, first + 60)
        labels = np.where(np.arange(60) % 3, y[rows], "unknown")
        teacher.recalibrate(X[rows], labels, by="ann")
        teacher.teach(X[rows], labels)
    mine, theirs = teacher.model.state_.calibrator, load(path).state_.calibrator
    assert mine.n_outcomes == theirs.n_outcomes == 120
    assert mine.unknown_share == theirs.unknown_share == 20 / 120  # taught, it is no longer unknown
    assert np.array_equal(mine.top_probabilities, theirs.top_probabilities)
    assert [change.action for change in teacher.changes()] == ["recalibrate", "teach"] * 2
    teacher.undo(4)
    assert np.array_equal(
        teacher.model.state_.calibrator.top_probabilities, before.top_probabilities
    )
    teacher.recalibrate(X[:60], y[:60])
    teacher.recalibrate(X[60:90], y[60:90])  # in a row, yet one by one
    mine, theirs = teacher.model.state_.calibrator, load(path).state_.calibrator
    assert np.array_equal(mine.other_probabilities, theirs.other_probabilities)
    assert np.array_equal(mine.held_out_log_odds, theirs.held_out_log_odds)


def test_learning_anew_disregards_sizes_where_classes_keep_coming(problem, monkeypatch):
    X, y = problem
    asked = []
    real = relearning.learn_state

    def learn(counts, labels, statistics, names, config):
        asked.append(config.by_size)
        return real(counts, labels, statistics, names, config)

    monkeypatch.setattr(relearning, "learn_state", learn)
    for share in (0.0, 0.04, 0.05):
        model = LongTailClassifier(memory=EVERYTHING, adapt=False, random_state=0).fit(X, y)
        model.expect_unknown(share).partial_fit(X, y).refine()
    assert asked == [True, True, False]
