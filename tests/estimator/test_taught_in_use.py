"""What is observed while teaching, over the journal, undo, several processes, and files."""

from dataclasses import replace

import numpy as np
import pytest

from longtail import LongTailClassifier, Teacher, TextClassifier, load
from longtail.exceptions import ModelFileError
from longtail.store.changes import decode, encode
from longtail.training import relearning
from tests.estimator.test_recent import make_documents


@pytest.fixture(scope="module")
def problem():
    X, y = make_documents(n_classes=40, per_class=12, n_terms=120)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order], y[order]


@pytest.fixture
def path(problem, tmp_path):
    X, y = problem
    LongTailClassifier(random_state=0).fit(X[:360], y[:360]).save(tmp_path / "model")
    return tmp_path / "model"


def waiting(model):
    """What a model has observed, as numbers."""
    state = model._arrays
    seen = state.in_use.wait([e.learned for _, e in sorted(state.pending.items())])
    return seen.outcomes.tolist(), seen.added.tolist()


def learned(model):
    state = model._arrays
    return {
        "sums": state.in_use.sums,
        "weights": state.in_use.weights,
        "term weights": state.term_weights,
        "knots": state.calibrator.top_log_odds,
        "residuals": state.residuals.weights,
        "scorer": state.scorer.weights,
        "idf": state.corpus.idf,
    }


def assert_same(mine, theirs):
    others = learned(theirs)
    for name, part in learned(mine).items():
        assert np.array_equal(part, others[name]), name
    assert waiting(mine) == waiting(theirs)


def test_what_was_observed_is_in_the_journal(problem, path):
    X, y = problem
    one, other = Teacher(path), Teacher(path)
    for i in range(360, 400, 10):
        (one if i % 20 else other).teach(X[i : i + 10], y[i : i + 10])
    one.refresh()
    other.refresh()
    assert len(waiting(one.model)[0]) == 40
    for model in (other.model, load(path)):
        assert_same(one.model, model)
    one.refine()
    one.teach(X[400:410], y[400:410])
    other.refresh()
    assert other.model._arrays.calibrator.n_outcomes == 40
    assert len(waiting(other.model)[0]) == 10
    assert_same(one.model, other.model)
    assert_same(one.model, load(path))


def test_an_undone_change_has_observed_nothing(problem, path):
    X, y = problem
    teacher = Teacher(path)
    before = waiting(teacher.model)
    for i in (360, 370, 380):
        teacher.teach(X[i : i + 10], y[i : i + 10])
    after = waiting(teacher.model)
    undone = teacher.undo(numbers=[2])
    kept = after[0][:10] + after[0][20:]
    assert waiting(teacher.model)[0] == kept == waiting(load(path))[0]
    teacher.undo(numbers=[undone])  # brings it back
    assert waiting(teacher.model) == after
    teacher.undo(3)
    assert waiting(teacher.model) == before == ([], [0.0] * 6)


def test_what_was_learned_stays_when_an_earlier_change_is_undone(problem, path):
    X, y = problem
    teacher = Teacher(path)
    teacher.teach(X[360:420], y[360:420])
    teacher.teach(X[420:430], y[420:430])
    teacher.refine()
    teacher.teach(X[430:440], y[430:440])
    before, n = learned(teacher.model), waiting(teacher.model)
    teacher.undo(numbers=[1])
    assert np.array_equal(learned(teacher.model)["sums"], before["sums"])
    assert waiting(teacher.model) == n
    assert_same(teacher.model, load(path))
    teacher.refine()
    assert_same(teacher.model, load(path))


def test_a_file_has_what_waits(problem, tmp_path):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X[:360], y[:360])
    model.partial_fit(X[360:390], y[360:390]).save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert waiting(opened) == waiting(model)
    assert np.array_equal(model.predict_proba(X), opened.predict_proba(X))
    assert opened.refine()._state.calibrator.n_outcomes == 30


def test_compact_keeps_what_waits(problem, path):
    X, y = problem
    teacher = Teacher(path)
    teacher.teach(X[360:390], y[360:390])
    before = waiting(teacher.model)
    teacher.compact()
    assert waiting(teacher.model) == before == waiting(load(path))


def test_texts_with_new_terms_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(200)]

    def write(c):
        return " ".join(rng.choice(words[5 * c : 5 * c + 9], 6))

    labels = [f"c{i % 30:02}" for i in range(600)]
    texts = [write(i % 30) for i in range(600)]
    model = TextClassifier(random_state=0).fit(texts[:300], labels[:300])
    model.save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model")
    for i in range(300, 380, 20):
        more = [f"{text} new{i}" for text in texts[i : i + 19]] + ["never seen words"]
        named = [*labels[i : i + 19], f"class {i}"]
        model.partial_fit(more, named)
        teacher.teach(more, named)
    assert waiting(model) == waiting(teacher.model) == waiting(load(tmp_path / "model"))
    assert len(waiting(model)[0]) == 79  # the first without a known term has no outcome
    teacher.refine()
    assert_same(model.refine(), teacher.model)


def test_an_estimator_brings_itself_up_to_date(problem, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "MIN_TAUGHT", 40)
    model = LongTailClassifier(random_state=0).fit(X[:360], y[:360])
    model.partial_fit(X[360:399], y[360:399])
    assert model._state.corpus.n_documents == 360
    model.partial_fit(X[399:400], y[399:400])
    state = model._state
    assert state.corpus.n_documents == 400
    assert not state.pending
    assert state.calibrator.n_outcomes == 40
    by_hand = LongTailClassifier(random_state=0).fit(X[:360], y[:360])
    by_hand.partial_fit(X[360:399], y[360:399])
    monkeypatch.setattr(relearning, "MIN_TAUGHT", 1_000)
    assert_same(model, by_hand.partial_fit(X[399:400], y[399:400]).refine())


def test_it_can_be_turned_off(problem, tmp_path, monkeypatch):
    X, y = problem
    monkeypatch.setattr(relearning, "MIN_TAUGHT", 20)
    model = LongTailClassifier(adapt=False, random_state=0).fit(X[:360], y[:360])
    before = model._state.calibrator
    model.partial_fit(X[360:460], y[360:460])
    assert model._state.corpus.n_documents == 360
    assert not model._state.pending
    model.refine()
    after = model._state.calibrator
    assert np.array_equal(after.held_out_log_odds, before.held_out_log_odds)
    model.save(tmp_path / "model")
    teacher = Teacher(tmp_path / "model")
    teacher.teach(X[460:470], y[460:470])
    assert teacher.model.adapt is False
    assert waiting(teacher.model) == ([], [0.0] * 6)


def test_health_counts_what_waits(problem):
    X, y = problem
    model = LongTailClassifier(random_state=0).fit(X[:360], y[:360])
    n = model.health().n_outcomes
    model.partial_fit(X[360:410], y[360:410])
    assert model.health().n_outcomes == n + 50
    assert model.health().n_outcomes == len(model.refine()._state.calibrator.held_out_correct)


@pytest.mark.parametrize(
    "observed",
    [
        [[1.0] * 5],
        [[1.0] * 6, [0.0] * 4],
        [[1e300] * 6],
        [[1.0] * 6, [0, 0, 0, 4, 1]],
        [[1.0] * 6, [0, -1, 0, 0, 1]],
        [[True] * 6],
        ["abcdef"],
        7,
    ],
)
def test_numbers_out_of_bounds_are_refused(problem, path, observed):
    X, y = problem
    teacher = Teacher(path)
    teacher.teach(X[360:370], y[360:370])
    [change] = teacher.changes()
    row = change.rows[0]
    facts = decode(row.facts) | {"observed": observed}
    damaged = replace(change, rows=(row._replace(facts=encode(facts)),))
    from longtail.teaching.log import read_entries
    from longtail.teaching.opening import bounds_of

    with pytest.raises(ModelFileError, match="record 1"):
        read_entries([damaged], bounds_of(load(path)))


def test_probabilities_follow_at_once(problem, path):
    X, y = problem
    teacher = Teacher(path, refine="never")
    before = teacher.model.predict_proba(X[:50])
    wrong = np.roll(y[360:], 7)
    number = teacher.teach(X[360:], wrong)
    state = teacher.model.state_
    assert np.array_equal(load(path).predict_proba(X[:50]), teacher.model.predict_proba(X[:50]))
    followed = state.calibrator_in_use
    assert followed.n_outcomes == 120 > state.calibrator.n_outcomes
    assert followed.top_probabilities.max() < state.calibrator.top_probabilities.max()
    refined = teacher.refine()
    learned_then = teacher.model.state_.calibrator
    assert np.array_equal(learned_then.top_log_odds, followed.top_log_odds)
    assert np.array_equal(learned_then.top_probabilities, followed.top_probabilities)
    teacher.undo(numbers=[number, refined])
    assert np.array_equal(teacher.model.predict_proba(X[:50]), before)


def test_an_uncalibrated_model_follows_nothing(problem):
    X, y = problem
    model = LongTailClassifier(calibrate=False, random_state=0).fit(X[:360], y[:360])
    before = model.state_.calibrator
    model.partial_fit(X[360:], np.roll(y[360:], 7))
    assert model._calibrator(model.state_) is before
