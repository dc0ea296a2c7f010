"""LongTailClassifier's whole fit and prediction equal the oracle's, on small problems of all kinds.

The oracle rounds to 32 bits where the model does, so discrete choices (which documents are sampled,
held out and listed, which class ranks before which) must agree exactly. Numbers agree to 1e-8:
1e-10 was measured for feature and term weights, whose sums are taken in another order, and 3e-10
for scores, since the model squares a document's 32-bit weights in 32 bits to learn residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from longtail import LongTailClassifier
from longtail.training import calibration, residuals
from longtail.training.sampling import draw_documents, draw_seed, hold_out
from tests import oracle_long_tail as oracle
from tests import oracle_score
from tests.conftest import make_problem
from tests.oracle_training import fit_feature_weights, scale_lists

CLOSE = {"rel": 1e-8, "abs": 1e-8}
# Sixty documents are enough to hold some out and calibrate on them.
SMALL = oracle.Settings(held_out_share=0.3, fewest_calibrated=5)
IN_CONFIG = {  # the field of FitConfig for each setting
    "n_sampled": "n_sampled",
    "n_listed": "n_listed",
    "first_candidates": "n_negatives",
    "fewest_listed": "min_listed",
    "held_out_share": "held_out_share",
    "most_held_out": "max_held_out",
}
WHERE = {  # the module's name for each other setting
    "fewest_calibrated": (calibration, "FEWEST_DOCUMENTS"),
    "tolerance": (residuals, "TOLERANCE"),
    "most_passes": (residuals, "MAX_PASSES"),
    "lowest_offset": (residuals, "LOWEST_LOG_ODDS"),
    "smallest_weight": (residuals, "SMALLEST_WEIGHT"),
}


@dataclass(frozen=True)
class Case:
    """A problem and how it is fitted."""

    X: np.ndarray
    y: np.ndarray
    seed: int = 0
    candidates: int = 4
    C: float = 1.0
    settings: oracle.Settings = SMALL


def plain(seed):
    problem = make_problem(seed)
    return Case(problem.X, problem.y, seed=seed)


def with_twins(C):
    """Each class has a twin with the same documents, and one of a pair is the last candidate.

    With C this small residuals are lost in rounding, and final scores tie as well.
    """
    problem = make_problem(3, n_documents=30, n_classes=4)
    y = np.append(problem.y, problem.y + 4)
    return Case(np.vstack([problem.X] * 2), y, candidates=5, C=C)


def with_lonely_and_empty_documents():
    """Classes of one document, empty documents, one of them alone in its class."""
    problem = make_problem(5, n_documents=50, n_classes=12)
    X, y = problem.X.copy(), problem.y.copy()
    X[20:23] = 0
    return Case(np.vstack([X, np.zeros(25, int)]), np.append(y, 12))


def of_two_classes():
    problem = make_problem(6, n_documents=40, n_classes=2)
    return Case(problem.X, problem.y, candidates=20)


def of_fractions():
    problem = make_problem(7)
    return Case(problem.X * 0.37, problem.y, C=0.3)


def with_small_settings():
    """Every limit is reached; with one candidate many documents are out of reach of their class."""
    problem = make_problem(8, n_documents=70)
    settings = replace(
        SMALL,
        n_sampled=35,
        n_listed=20,
        first_candidates=1,
        most_held_out=12,
        tolerance=1e-3,
        most_passes=9,
        lowest_offset=-2.0,
        smallest_weight=0.05,
    )
    return Case(problem.X, problem.y, seed=2, candidates=3, C=5.0, settings=settings)


def of_more_classes_than_candidates():
    """Lists are short, so those that the learned score mines differ from the first."""
    problem = make_problem(9, n_documents=90, n_classes=30, n_terms=40)
    settings = replace(SMALL, first_candidates=6)
    return Case(problem.X, problem.y, seed=1, candidates=8, settings=settings)


def with_nothing_to_learn_from():
    """Too few lists for feature weights, too few documents to hold any out."""
    X = np.array([[2, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 3]])
    return Case(X, np.array([0, 0, 1, 1]), settings=oracle.Settings())


CASES = {
    **{f"seed {seed}": lambda seed=seed: plain(seed) for seed in range(4)},
    "twins": lambda: with_twins(1.0),
    "twins to the end": lambda: with_twins(1e-30),
    "lonely and empty": with_lonely_and_empty_documents,
    "two classes": of_two_classes,
    "fractions": of_fractions,
    "small settings": with_small_settings,
    "many classes": of_more_classes_than_candidates,
    "nothing to learn from": with_nothing_to_learn_from,
}


@dataclass(frozen=True)
class Fitted:
    """The same fit twice."""

    case: Case
    ours: LongTailClassifier
    theirs: oracle.OracleModel

    @property
    def state(self):
        return self.ours._state

    @property
    def unseen(self):
        """The documents of the fit, and others, with terms that no class has."""
        rng = np.random.default_rng(1)
        others = rng.poisson(0.2, (20, self.case.X.shape[1]))
        return np.vstack([self.case.X, others])


@pytest.fixture(scope="module", params=list(CASES))
def fitted(request):
    case = CASES[request.param]()
    with pytest.MonkeyPatch.context() as patch:
        for name, (module, constant) in WHERE.items():
            patch.setattr(module, constant, getattr(case.settings, name))
        settings = {field: getattr(case.settings, name) for name, field in IN_CONFIG.items()}

        class Configured(LongTailClassifier):
            def _config(self):
                return replace(super()._config(), **settings)

        ours = Configured(case.candidates, case.C, random_state=case.seed)
        ours.fit(case.X, case.y)
    theirs = oracle.fit(
        oracle_score.to_documents(case.X.tolist()),
        case.y.tolist(),
        case.X.shape[1],
        draw_seed(case.seed),
        case.candidates,
        case.C,
        case.settings,
    )
    return Fitted(case, ours, theirs)


def test_draws(fitted):
    case, theirs = fitted.case, fitted.theirs
    n_classes, seed = int(case.y.max()) + 1, draw_seed(case.seed)
    held_out = hold_out(case.y, n_classes, len(theirs.held_out), seed)
    assert held_out.tolist() == theirs.held_out
    sample = draw_documents(case.y, n_classes, case.settings.n_sampled, seed, without=held_out)
    assert sample.tolist() == theirs.sample


def test_feature_weights(fitted):
    assert fitted.state.feature_weights == pytest.approx(fitted.theirs.feature_weights, **CLOSE)


def test_term_weights(fitted):
    assert fitted.state.term_weights == pytest.approx(fitted.theirs.term_weights, **CLOSE)


def class_rows(scorer):
    """A CSR scorer as dicts."""
    bounds = zip(scorer.indptr[:-1], scorer.indptr[1:], strict=True)
    return [
        dict(zip(scorer.indices[a:b].tolist(), scorer.weights[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


@pytest.mark.parametrize("name", ["scorer", "residuals"])
def test_weights_of_classes(fitted, name):
    ours, theirs = getattr(fitted.state, name), getattr(fitted.theirs, name)
    for mine, expected in zip(class_rows(ours), theirs.weights, strict=True):
        assert mine == pytest.approx(expected, **CLOSE)
    assert ours.biases == pytest.approx(theirs.biases, **CLOSE)
    if name == "scorer":
        assert ours.length_weights == pytest.approx(theirs.length_weights, **CLOSE)


def test_calibrator(fitted):
    ours, theirs = fitted.state.calibrator, fitted.theirs.calibrator
    for knots, log_odds, probabilities in (
        (theirs.top, ours.top_log_odds, ours.top_probabilities),
        (theirs.others, ours.other_log_odds, ours.other_probabilities),
    ):
        assert log_odds == pytest.approx([v for v, _ in knots], **CLOSE)
        assert probabilities == pytest.approx([p for _, p in knots], **CLOSE)


@pytest.mark.parametrize("method", ["predict_topk", "predict_proba_topk"])
def test_predictions(fitted, method):
    X = fitted.unseen
    k = min(fitted.case.candidates, len(fitted.ours.classes_))
    ours = getattr(fitted.ours, method)(X, k)
    theirs = getattr(oracle, method)(fitted.theirs, oracle_score.to_documents(X.tolist()), k)
    assert ours.classes.tolist() == [[c for c, _ in row] for row in theirs]
    np.testing.assert_allclose(
        ours.scores, [[v for _, v in row] for row in theirs], rtol=1e-8, atol=1e-8
    )


def test_the_cases_hold_what_they_are_for(fitted):
    """A fit that learns nothing, or holds nothing out, would agree with anything."""
    case, theirs = fitted.case, fitted.theirs
    if len(case.y) < 10:
        assert theirs.feature_weights == oracle.DEFAULT_WEIGHTS
        assert theirs.held_out == []
        return
    assert theirs.feature_weights != oracle.DEFAULT_WEIGHTS
    assert max(theirs.term_weights) - min(theirs.term_weights) > 0.1
    assert theirs.calibrator.top
    if case.C > 1e-9:
        assert any(theirs.residuals.weights)
    else:
        ranked = oracle.predict_topk(theirs, oracle_score.to_documents(case.X.tolist()), 5)
        ties = [row[0][1] == row[1][1] for row in ranked]  # unless a twin is no candidate
        assert sum(ties) > len(ties) / 2


def test_the_feature_weights_minimise_the_loss():
    """L-BFGS-B stops early; the loss that is left is a millionth."""
    case, seen = plain(0), []

    def fit_and_record(lists):
        weights = fit_feature_weights(lists)
        seen.append((lists, weights))
        return weights

    oracle.fit(
        oracle_score.to_documents(case.X.tolist()),
        case.y.tolist(),
        case.X.shape[1],
        draw_seed(case.seed),
        steps=oracle.Steps(fit_feature_weights=fit_and_record),
    )
    assert len(seen) == 3
    for lists, weights in seen:
        features, scales = scale_lists(lists)
        best = fit_feature_weights(lists, options={"ftol": 1e-15, "gtol": 1e-10})
        loss, smallest = (
            oracle_score.listwise_loss(np.multiply(w, scales), features, 1e-3)
            for w in (weights, best)
        )
        assert smallest <= loss < smallest + 1e-6
