"""The rules by which a fit chooses among itself and its simpler selves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longtail import LongTailClassifier
from longtail._constants import MIN_POSTINGS, WHOLE_QUERY
from longtail.sparse import CountMatrix
from longtail.training import pipeline, shared_weights
from longtail.training.config import FitConfig
from longtail.training.pipeline import fit_long_tail
from longtail.training.sampling import draw_uniform_negatives
from longtail.training.self_check import (
    BUDGETS,
    FIGURES,
    RESIDUALS,
    SCORERS,
    Figures,
    SelfCheck,
    choose_budget,
    choose_residuals,
    choose_scorer,
    list_budgets,
    measure_self,
)
from tests.conftest import make_problem, single_labels


def figures(accuracy=0.5, macro_f1=0.5, correct=()):
    return Figures(accuracy, macro_f1, 0.9, (np.nan,) * 5, np.array(correct, float))


def test_figures():
    true_classes, candidates = np.array([0, 1, 1, 2]), np.array([[0, 1], [1, 0], [0, 1], [0, 1]])
    counted = measure_self(single_labels(true_classes), candidates, np.array([1, 7, 200]))
    assert counted.accuracy == 0.5
    assert counted.recall == 0.75
    assert counted.by_band == pytest.approx([1, np.nan, 0.5, np.nan, 0], nan_ok=True)


def test_a_simpler_scorer_must_be_ahead_by_more_than_noise():
    learned = figures(correct=[1] * 50 + [0] * 50)
    little = figures(correct=[0] * 20 + [1] * 30 + [1] * 24 + [0] * 26)
    clearly = figures(correct=[0] * 5 + [1] * 45 + [1] * 30 + [0] * 20)
    assert choose_scorer([little, learned]) == 1
    assert choose_scorer([little, clearly, learned]) == 1
    worse_in_the_tail = replace(clearly, macro_f1=0.4)
    assert choose_scorer([worse_in_the_tail, learned]) == 1


def test_the_smallest_budget_that_finds_enough():
    assert choose_budget(BUDGETS, [0.9, 0.95, 0.99], 0.999) == 16
    assert choose_budget(BUDGETS, [0.99, 0.995, 0.999], 0.999) == 1
    assert choose_budget(BUDGETS, [0.5, 0.6, 0.7], 0.999) == WHOLE_QUERY
    assert (
        choose_budget(list_budgets(100_000, FitConfig()), [0.98, 0.99] + [1.0] * 4, 1.0) == 1 / 64
    )


def test_matching_classes_alone_are_an_option_from_100_000_classes_on():
    assert list_budgets(99_999, FitConfig()) == BUDGETS
    assert list_budgets(100_000, FitConfig(search="exact")) == BUDGETS
    assert min(list_budgets(100_000, FitConfig())) == MIN_POSTINGS


def test_the_simplest_of_equal_residuals():
    assert choose_residuals([figures(), figures(), figures(0.4), figures()]) == 0
    assert choose_residuals([figures(), figures(), figures(0.6), figures()]) == 2


@pytest.mark.parametrize(
    ("macro_f1", "correct", "kept"),
    [
        (0.7, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0], 3),  # two more, at an error of 1.4
        (0.7, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0], 2),  # one more, which may be chance
        (0.1, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0], 3),  # macro F1 has no say
    ],
)
def test_separators_must_be_ahead_by_more_than_noise(macro_f1, correct, kept):
    mixture = figures(0.6, correct=[1] * 5 + [0] * 5)
    separated = figures(0.7, macro_f1, correct=correct)
    nothing = figures(0.1, correct=np.zeros(10))
    assert choose_residuals([nothing, nothing, mixture, separated]) == kept


@pytest.mark.parametrize(("correct", "kept"), [([0, 1, 1, 1, 1], 3), ([0, 0, 0, 1, 1], 2)])
def test_with_several_labels_separators_must_be_behind_by_more_than_noise(correct, kept):
    mixture = figures(0.6, correct=[1] * 5 + [0] * 5)
    separated = figures(0.5, correct=[*correct, 0, 0, 0, 0, 0])
    nothing = figures(0.1, correct=np.zeros(10))
    given = [nothing, nothing, mixture, separated]
    assert choose_residuals(given, multilabel=True) == kept
    assert choose_residuals(given) == 2
    assert choose_residuals([mixture] * 4, multilabel=True) == 0


# ---- inside a fit


def misled(monkeypatch, **weights):
    """Let the shared weights come out as no data would have them."""
    original = pipeline.learn_shared_weights

    def learn(*arguments, **named):
        return replace(original(*arguments, **named), **weights)

    monkeypatch.setattr(pipeline, "learn_shared_weights", learn)


def test_a_fit_that_learned_nonsense_falls_back_and_says_so(monkeypatch):
    problem = make_problem(n_documents=1500, n_classes=50, n_terms=150)
    X, y = problem.X[:1000], problem.y[:1000]
    sound = LongTailClassifier(random_state=0).fit(X, y)
    misled(monkeypatch, feature_weights=np.array([-5.0, 0, 0, 0, 0, 0]))
    rescued = LongTailClassifier(random_state=0).fit(X, y)
    check = rescued.self_check_
    assert SCORERS[check.scorer] != "learned"
    assert check.summary()["scorer"] == SCORERS[check.scorer]
    test = problem.X[1000:], problem.y[1000:]
    assert rescued.score(*test) > sound.score(*test) - 0.05


def test_what_a_fit_keeps_is_in_the_model():
    problem = make_problem(n_documents=600, n_classes=30, n_terms=100)
    classifier = LongTailClassifier(random_state=0).fit(problem.X, problem.y)
    check = classifier.self_check_
    assert check.scorer_figures.shape == (len(SCORERS), len(FIGURES))
    assert check.residual_figures.shape == (len(RESIDUALS), len(FIGURES))
    assert check.recalls.shape == (4,)
    best = check.residual_figures[:, :2].sum(axis=1)
    assert best[check.residuals] == best.max()


def test_without_the_check_everything_learned_is_kept(problem):
    classes, class_ids = np.unique(problem.y, return_inverse=True)
    state = fit_long_tail(
        CountMatrix.from_matrix(problem.X), single_labels(class_ids), FitConfig(self_check=False)
    )
    assert (state.check.scorer, state.check.residuals) == (
        SelfCheck().scorer,
        SelfCheck().residuals,
    )
    assert state.pruning.posting_budget == WHOLE_QUERY * len(classes)


def test_unreached_documents_get_uniform_negatives():
    problem = make_problem(n_documents=400, n_classes=60, n_terms=40)
    counts = CountMatrix.from_matrix(problem.X)
    captured = []
    original = shared_weights._draw_for_unreached

    def capture(lists, labels, config):
        captured.append((lists, original(lists, labels, config)))
        return captured[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_weights, "_draw_for_unreached", capture)
        _, class_ids = np.unique(problem.y, return_inverse=True)
        fit_long_tail(counts, single_labels(class_ids), FitConfig())
    before, after = captured[0]
    assert 0 < before.reached.sum() < len(before)
    same = before.classes == after.classes
    assert same[before.reached].all()
    assert not after.log_multiplicities[before.reached].any()
    unreached = after[np.flatnonzero(~after.reached)]
    assert not unreached.log_multiplicities[:, :-10].any()
    drawn, multiplicities = unreached.classes[:, -10:], unreached.log_multiplicities[:, -10:]
    for row, row_drawn, row_multiplicities in zip(
        unreached.classes, drawn, multiplicities, strict=True
    ):
        assert len(set(row_drawn)) == 10
        assert row[0] not in row_drawn
        listed = set(row[1:-10])
        for class_id, value in zip(row_drawn, row_multiplicities, strict=True):
            expected = -np.inf if class_id in listed else np.log(59 / 10)
            assert value == pytest.approx(expected)


def test_lists_shorter_than_the_uniform_negatives(problem):
    """With few negatives, half of them are drawn at the most, and never more than there are."""
    _, class_ids = np.unique(problem.y, return_inverse=True)
    for n_negatives in (1, 2, 5):
        config = FitConfig(n_negatives=n_negatives, n_uniform=10)
        state = fit_long_tail(CountMatrix.from_matrix(problem.X), single_labels(class_ids), config)
        assert np.isfinite(state.term_weights).all()
    with pytest.raises(ValueError, match="n_drawn must be from 0 to 6"):
        draw_uniform_negatives(class_ids, np.arange(3), 7, 7, 0)
