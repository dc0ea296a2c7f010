"""LongTailClassifier's whole fit and prediction equal the oracle's, on small problems of all kinds.

The oracle rounds to 32 bits where the model does, so discrete choices (which documents are sampled,
held out and listed, which scorer, budget and mixture is kept, which class ranks before which) must
agree exactly. Numbers agree to 1e-8. Sums are taken in another order: feature weights were measured
to differ by 1e-11 and all others by 1e-14, unless that rounds a 32-bit number to its neighbour.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from longtail import LongTailClassifier, TextClassifier
from longtail._constants import WHOLE_QUERY
from longtail._labels import as_sets
from longtail.exceptions import NoKnownTermWarning
from longtail.paper.sampling import draw_seed
from longtail.training import (
    calibration,
    mixture,
    pipeline,
    residuals,
    sampling,
    self_check,
    separators,
    short_documents,
)
from longtail.training.sampling import draw_labels, hold_out
from tests import oracle_long_tail as oracle
from tests import oracle_names, oracle_score, oracle_text
from tests.conftest import make_problem
from tests.oracle_scored_classes import Settings, Shared, Steps, score_classes
from tests.oracle_self_check import RESIDUALS, SCORERS
from tests.oracle_shared_weights import DEFAULT_WEIGHTS, FIRST_WEIGHTS, draw_lists
from tests.oracle_training import fit_feature_weights, listwise_gradient, scale_lists

CLOSE = {"rel": 1e-8, "abs": 1e-8}
# Weights are kept in 32 bits: close ones may be rounded to neighbours.
CLOSE_IN_32_BITS = {"rel": 2.0**-22, "abs": 1e-8}
# Sixty documents are enough to hold some out and calibrate on them.
SMALL = Settings(
    held_out_share=0.3, fewest_calibrated=5, fewest_mixed=5, fewest_bent=12, smallest_spread=0.3
)
IN_CONFIG = {  # the field of FitConfig for each setting
    "n_sampled": "n_sampled",
    "n_listed": "n_listed",
    "first_candidates": "n_negatives",
    "n_uniform": "n_uniform",
    "fewest_listed": "min_listed",
    "held_out_share": "held_out_share",
    "most_held_out": "max_held_out",
    "most_checked": "max_checked",
    "residual_cost": "residual_cost",
}
WHERE = {  # the module's name for each other setting
    "fewest_emptied": (sampling, "MIN_EMPTIED"),
    "separator_lag": (self_check, "SEPARATOR_LAG"),
    "most_lost_recall": (self_check, "MAX_LOST_RECALL"),
    "most_lost_f1": (self_check, "MAX_LOST_F1"),
    "most_lost_f1_of_all": (self_check, "MAX_LOST_F1_OF_ALL"),
    "fewest_mixed": (mixture, "MIN_MIXED"),
    "fewest_bent": (mixture, "MIN_BENT"),
    "macro_share": (mixture, "MACRO_SHARE"),
    "mixture_prior": (mixture, "PRIOR"),
    "smallest_spread": (mixture, "SMALLEST_SPREAD"),
    "fewest_calibrated": (calibration, "MIN_DOCUMENTS"),
    "most_truncated": (short_documents, "MAX_TRUNCATED"),
    "tolerance": (residuals, "TOLERANCE"),
    "most_passes": (residuals, "MAX_PASSES"),
    "lowest_offset": (residuals, "LOWEST_LOG_ODDS"),
    "smallest_weight": (residuals, "SMALLEST_WEIGHT"),
    "most_drawn": (separators, "MAX_DRAWN"),
    "separator_lead": (self_check, "SEPARATOR_LEAD"),
    "negatives_per_label": (separators, "NEGATIVES_PER_LABEL"),
    "fewest_negatives": (separators, "MIN_NEGATIVES"),
    "fewest_negatives_of_several": (separators, "MIN_NEGATIVES_MULTILABEL"),
    "separator_tolerance": (separators, "TOLERANCE"),
    "separator_passes": (separators, "MAX_PASSES"),
    "smallest_separator": (separators, "SMALLEST_WEIGHT"),
    "most_lacking": (pipeline, "MAX_LACKING"),
}


@dataclass(frozen=True)
class Case:
    """A problem, how it is fitted, and what its fit must show for the case to be worth anything."""

    X: np.ndarray
    y: np.ndarray | list[list[int]]
    seed: int = 0
    candidates: int = 4
    C: float = 1.0
    settings: Settings = SMALL
    shows: frozenset[str] = frozenset()
    names: dict[int, np.ndarray] = field(default_factory=dict)  # counts of the names of classes
    texts: tuple[list[str], dict[int, str]] | None = None  # of documents and names, where X is

    @property
    def label_sets(self) -> list[list[int]]:
        """The labels of each document, ascending."""
        return [sorted(np.atleast_1d(np.array(labels, int)).tolist()) for labels in self.y]


def plain(seed, *shows):
    problem = make_problem(seed)
    return Case(problem.X, problem.y, seed=seed, shows=frozenset(shows))


def crowded(seed, *shows):
    """Many documents that are hard to tell apart: lists are short, and the residuals matter."""
    problem = make_problem(seed, n_documents=100, n_classes=12, n_terms=20)
    settings = replace(SMALL, first_candidates=6, n_uniform=3)
    return Case(problem.X, problem.y, seed=seed, settings=settings, shows=frozenset(shows))


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
        most_checked=7,
        most_lost_recall=-1.0,
        residual_cost=1.5,
        tolerance=1e-3,
        most_passes=9,
        lowest_offset=-2.0,
        smallest_weight=0.05,
    )
    shows = frozenset({"unreached", "whole query"})
    return Case(problem.X, problem.y, seed=2, candidates=3, C=5.0, settings=settings, shows=shows)


def of_many_classes(seed, n_uniform, *shows):
    """Lists are short, so those that the learned score mines differ from the first."""
    problem = make_problem(seed, n_documents=90, n_classes=30, n_terms=40)
    settings = replace(SMALL, first_candidates=6, n_uniform=n_uniform)
    return Case(
        problem.X, problem.y, seed=seed, candidates=8, settings=settings, shows=frozenset(shows)
    )


def with_separators(case):
    """So few documents are held out that a lead is never beyond chance: the sum decides alone."""
    shows = case.shows | {"mixture with separators"}
    return replace(
        case,
        settings=replace(case.settings, separator_lead=-100.0, separator_lag=100.0),
        shows=shows,
    )


def with_few_random_negatives(case):
    """Fewer are drawn than there are documents; separators are kept from the first round."""
    settings = replace(
        case.settings,
        most_drawn=20,
        separator_lead=-100.0,
        separator_lag=100.0,
        negatives_per_label=1,
        fewest_negatives=3,
        fewest_negatives_of_several=4,
        separator_tolerance=0.01,
        separator_passes=25,
        smallest_separator=0.1,
        most_lacking=0.5,
    )
    shows = case.shows | {"mixture with separators", "separators kept"}
    return replace(case, settings=settings, shows=shows)


def with_nothing_to_learn_from():
    """Too few lists for feature weights, too few documents to hold any out."""
    X = np.array([[2, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 3]])
    return Case(X, np.array([0, 0, 1, 1]), settings=Settings())


def of_label_sets(seed, *shows, n_classes=9, empty=True, most=3, **settings):
    """One to `most` labels per document, each with some of its terms; one document has none."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(20, 0.2), n_classes)
    popularity = 1 / np.arange(1, n_classes + 1)
    y = [
        rng.choice(n_classes, n, replace=False, p=popularity / popularity.sum()).tolist()
        for n in rng.integers(1, most + 1, 70)
    ]
    y[:n_classes] = [[c] for c in range(n_classes)]
    X = np.array([sum(rng.multinomial(5, profiles[c]) for c in labels) for labels in y])
    if empty:
        y[40] = []
    return Case(
        X, y, seed=seed, settings=replace(SMALL, **settings), shows=frozenset({*shows, "several"})
    )


def with_names(case, *shows, empty=(3,), unnamed=(0,), own=0.7, **settings):
    """Names that share terms with documents of their class; some are all that a class has.

    Class ids make way for the classes without documents. Some names have a term of no document.
    """
    rng = np.random.default_rng(case.seed)
    n_classes = 1 + max(c for labels in case.label_sets for c in labels) + len(empty)
    ids = [c for c in range(n_classes) if c not in empty]
    y = [[ids[c] for c in labels] for labels in case.label_sets]
    if np.ndim(case.y[0]) == 0:
        y = np.array([c for [c] in y])
    X = np.hstack([case.X, np.zeros((len(case.X), 1), int)])  # the last term is in names alone
    names = {}
    for c in range(n_classes):
        members = [i for i, labels in enumerate(y) if c in np.atleast_1d(labels)]
        row = X[rng.choice(members)] if members else rng.poisson(0.2, X.shape[1])
        row = row * (rng.random(len(row)) < own)
        row[-1] = c % 3 == 0
        names[c] = row
    names = {c: row for c, row in names.items() if c not in unnamed}
    named = frozenset({*case.shows, *shows, "named"})
    case = replace(case, X=X, y=y, names=names, shows=named)
    return replace(case, settings=replace(case.settings, **settings))


WORDS = ("bear", "bears", "brown", "fox", "foxes", "owl", "owls", "barn", "night", "nightly")


def of_texts(seed, *shows):
    """Documents and names are texts; their counts are those of the oracle."""
    rng, n_classes = np.random.default_rng(seed), 14
    profiles = rng.dirichlet(np.full(len(WORDS), 0.4), n_classes)
    popularity = 1 / np.arange(1, n_classes + 1) ** 1.5
    y = rng.choice(n_classes, 70, p=popularity / popularity.sum())
    y = np.append(np.arange(n_classes), y)
    documents = [" ".join(rng.choice(WORDS, rng.integers(3, 7), p=profiles[c])) for c in y]
    names = {c: " ".join(rng.choice(WORDS, 2, p=profiles[c])) + "ish" for c in range(1, n_classes)}
    names |= {14: "a Brown, bearish fox", 15: "owling; by night"}
    counted = [oracle_text.terms(text) for text in documents]
    frequencies = oracle_text.document_frequencies(counted)
    vocabulary = sorted(t for t, n in frequencies.items() if n > 1 or " " not in t)
    X = np.array([[row.get(term, 0.0) for term in vocabulary] for row in counted])
    rows = oracle_names.count_names(list(names.values()), vocabulary)
    dense = [[row.get(t, 0.0) for t in range(len(vocabulary))] for row in rows]
    return Case(
        X,
        y,
        seed=seed,
        shows=frozenset({*shows, "named"}),
        names=dict(zip(names, np.array(dense), strict=True)),
        texts=(documents, names),
    )


CASES = {
    "label sets 1": lambda: of_label_sets(1, "as learned", separator_lag=-100.0),
    "label sets 2": lambda: with_separators(of_label_sets(2, first_candidates=4, n_uniform=2)),
    "label sets, few random negatives": lambda: with_few_random_negatives(
        of_label_sets(2, first_candidates=4, n_uniform=2)
    ),
    "label sets of nearly all": lambda: of_label_sets(3, n_classes=5, most=5, empty=False),
    "label sets of one": lambda: replace(
        plain(4, "mixture"), y=[[int(c)] for c in make_problem(4).y]
    ),
    "names": lambda: with_names(plain(4), "none", "no document"),
    "names of lonely classes": lambda: with_names(
        with_lonely_and_empty_documents(), "shared", "late bonus", "learned weights", empty=(2, 9)
    ),
    "names of many classes": lambda: with_names(
        of_many_classes(1, 3), "held out whole", "late bonus", "learned weights", "pruned"
    ),
    "names, most without documents": lambda: with_names(
        of_many_classes(9, 10), "shared", "lower bonus", "learned weights", empty=range(7, 19)
    ),
    "names of all": lambda: with_names(
        crowded(12), "whole query", "learned weights", unnamed=(), most_lost_recall=-1.0
    ),
    "names, nothing learned": lambda: with_names(
        of_many_classes(3, 0), "held out whole", fewest_mixed=10**6
    ),
    "names of label sets": lambda: with_names(of_label_sets(1), "no document", empty=(1, 4)),
    "names of many label sets": lambda: with_names(
        of_label_sets(2, n_classes=30), "held out whole", "learned weights", empty=(3, 8)
    ),
    "names of label sets that empty classes": lambda: with_names(
        of_label_sets(2, n_classes=30), "held out whole", empty=(3, 8), fewest_emptied=1
    ),
    "names and texts": lambda: of_texts(4, "learned weights", "held out whole", "late bonus"),
    "seed 2": lambda: plain(2, "none"),
    "seed 4": lambda: plain(4, "mixture"),
    "seed 5": lambda: plain(5, "nearest centroid", "mixture"),
    "seed 10": lambda: plain(10, "mixture"),
    "crowded 4": lambda: crowded(4, "no term weights", "mixture", "uniform"),
    "crowded 11": lambda: with_separators(crowded(11, "learned", "uniform", "listed already")),
    "crowded 12": lambda: crowded(12, "learned", "mixture", "pruned"),
    "twins": lambda: with_twins(1.0),
    "twins to the end": lambda: with_twins(1e-30),
    "lonely and empty": with_lonely_and_empty_documents,
    "two classes": of_two_classes,
    "fractions": of_fractions,
    "small settings": with_small_settings,
    "many classes": lambda: with_separators(of_many_classes(3, 3, "pruned", "listed already")),
    "many classes, few random negatives": lambda: with_few_random_negatives(of_many_classes(3, 3)),
    "many classes 32": lambda: of_many_classes(32, 3, "default feature weights", "mixture"),
    "half uniform": lambda: of_many_classes(9, 10, "unreached", "uniform"),
    "nothing uniform": lambda: of_many_classes(3, 0, "unreached"),
    "nothing to learn from": with_nothing_to_learn_from,
}


# Those that `make test` runs: together they show all that any case shows.
QUICK = frozenset(
    [
        "crowded 11",
        "crowded 4",
        "label sets 1",
        "label sets, few random negatives",
        "many classes 32",
        "names",
        "names of many classes",
        "names, most without documents",
        "nothing to learn from",
        "seed 5",
        "small settings",
        "two classes",
    ]
)


def test_the_quick_cases_show_what_all_show():
    shows = {name: CASES[name]().shows for name in CASES}
    assert frozenset().union(*(shows[name] for name in QUICK)) == frozenset().union(*shows.values())


@dataclass(frozen=True)
class Fitted:
    """The same fit twice."""

    case: Case
    ours: LongTailClassifier
    theirs: oracle.OracleModel

    @property
    def state(self):
        return self.ours.state_

    @property
    def unseen(self):
        """The documents of the fit, and others, with terms that no class has."""
        rng = np.random.default_rng(1)
        others = rng.poisson(0.2, (20, self.case.X.shape[1]))
        return np.vstack([self.case.X, others])


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name)
        for name in CASES
    ],
)
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
        if case.texts is None:
            ours.fit(case.X, case.y, class_texts=case.names or None)
        else:
            documents, names = case.texts
            ours = TextClassifier(ours).fit(documents, case.y, class_texts=names).classifier_
    theirs = oracle.fit(
        oracle_score.to_documents(case.X.tolist()),
        case.label_sets,
        case.X.shape[1],
        draw_seed(case.seed),
        case.candidates,
        case.C,
        case.settings,
        texts=dict(zip(case.names, to_rows(case.names), strict=True)),
    )
    return Fitted(case, ours, theirs)


def to_rows(names):
    """Counts of names as dicts."""
    return oracle_score.to_documents([row.tolist() for row in names.values()])


def test_draws(fitted):
    case, theirs = fitted.case, fitted.theirs
    labels, seed = as_sets(case.label_sets), draw_seed(case.seed)
    labels = labels.with_classes(fitted.ours.classes_)
    named = np.isin(labels.classes, list(case.names)) if case.names else None
    may_be_empty = np.ones(len(labels.classes), np.bool_) if labels.has_several else named
    held_out = hold_out(labels, len(theirs.held_out), seed, may_be_empty)
    assert held_out.tolist() == theirs.held_out
    sample = draw_labels(labels, case.settings.n_sampled, seed, without=held_out)
    places = sample - labels.indptr[labels.document_ids[sample]]
    assert list(zip(labels.document_ids[sample], places, strict=True)) == theirs.sample


def test_feature_weights(fitted):
    assert fitted.state.feature_weights == pytest.approx(
        fitted.theirs.shared.feature_weights, **CLOSE
    )


def test_term_weights(fitted):
    assert fitted.state.term_weights == pytest.approx(fitted.theirs.shared.term_weights, **CLOSE)


def class_rows(scorer):
    """A CSR scorer as dicts."""
    bounds = zip(scorer.indptr[:-1], scorer.indptr[1:], strict=True)
    return [
        dict(zip(scorer.indices[a:b].tolist(), scorer.weights[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


def test_names(fitted):
    ours, theirs = fitted.state.names, fitted.theirs.task.names
    assert (ours is None) == (theirs is None) == (not fitted.case.names)
    if ours is not None:
        assert ours.named.tolist() == theirs.named
        for mine, expected in zip(class_rows(ours), theirs.rows, strict=True):
            assert mine == pytest.approx(expected, **CLOSE_IN_32_BITS)


@pytest.mark.parametrize("name", ["scorer", "residuals", "ranking_scorer", "ranking_residuals"])
def test_weights_of_classes(fitted, name):
    ours, theirs = getattr(fitted.state, name), getattr(fitted.theirs, name)
    for mine, expected in zip(class_rows(ours), theirs.weights, strict=True):
        if name == "ranking_scorer":  # without zeros: terms of names that no document has
            mine, expected = ({t: w for t, w in row.items() if w} for row in (mine, expected))
        assert mine == pytest.approx(expected, **CLOSE_IN_32_BITS)
    assert ours.biases == pytest.approx(theirs.biases, **CLOSE)
    if name.endswith("scorer"):
        assert ours.length_weights == pytest.approx(theirs.length_weights, **CLOSE)


def test_self_check(fitted):
    ours, theirs = fitted.state.check, fitted.theirs.check
    assert (ours.scorer, ours.residuals) == (theirs.scorer, theirs.residuals)
    budget = WHOLE_QUERY if theirs.budget is None else theirs.budget
    assert ours.postings_per_class == budget
    kept = ours.kept_mixture
    assert kept.residuals == pytest.approx(np.array(theirs.mixture.residuals), **CLOSE)
    assert kept.features == pytest.approx(np.array(theirs.mixture.features), **CLOSE)
    assert ours.name_weights == pytest.approx(theirs.mixture.name_weights, **CLOSE)
    assert ours.recalls == pytest.approx(theirs.recalls, **CLOSE)
    for figures, expected in (
        (ours.scorer_figures, theirs.scorer_figures),
        (ours.residual_figures, theirs.residual_figures),
    ):
        assert len(figures) == len(expected)
        for row, entry in zip(figures, expected, strict=True):
            assert row == pytest.approx(entry.row, **CLOSE)


def test_calibrator(fitted):
    ours, theirs = fitted.state.calibrator, fitted.theirs.calibrator
    for knots, log_odds, probabilities in (
        (theirs.top, ours.top_log_odds, ours.top_probabilities),
        (theirs.others, ours.other_log_odds, ours.other_probabilities),
    ):
        assert log_odds == pytest.approx([v for v, _ in knots], **CLOSE)
        assert probabilities == pytest.approx([p for _, p in knots], **CLOSE)
    assert ours.held_out_log_odds == pytest.approx([v for v, _ in theirs.held_out], **CLOSE)
    assert ours.held_out_correct.tolist() == [hit for _, hit in theirs.held_out]
    assert ours.pair_probabilities == pytest.approx([p for p, _ in theirs.likely], **CLOSE)
    for ours_at, theirs_at in zip(by_level(ours), by_level(theirs), strict=True):
        assert ours_at == theirs_at


def test_short_documents(fitted):
    ours, theirs = fitted.state.calibrator, fitted.theirs.calibrator
    assert ours.short_length == theirs.short_length
    # The maps that it rests on differ by 1e-14 or so; a flat likelihood makes more of that.
    assert ours.short_slope == pytest.approx(theirs.short_slope, abs=1e-7)


def by_level(calibrator):
    """How many pairs of each probability are labels: equal probabilities come in any order."""
    pairs = getattr(calibrator, "likely", None)
    if pairs is None:
        columns = calibrator.pair_probabilities.tolist(), calibrator.pair_correct.tolist()
        pairs = list(zip(*columns, strict=True))
    levels = {}
    for probability, hit in pairs:
        n, n_hits = levels.get(round(probability, 7), (0, 0))
        levels[round(probability, 7)] = (n + 1, n_hits + hit)
    return list(levels.values())


@pytest.mark.parametrize("method", ["predict_topk", "predict_proba_topk"])
def test_predictions(fitted, method):
    X = fitted.unseen
    k = min(fitted.case.candidates, len(fitted.ours.classes_))
    ours = getattr(fitted.ours, method)(X, k)
    theirs = getattr(oracle, method)(fitted.theirs, oracle_score.to_documents(X.tolist()), k)
    missing = -np.inf if method == "predict_topk" else 0.0
    theirs = [row + [(-1, missing)] * (k - len(row)) for row in theirs]
    assert ours.classes.tolist() == [[c for c, _ in row] for row in theirs]
    assert ours.valid.tolist() == [[c >= 0 for c, _ in row] for row in theirs]
    expected = [[v for _, v in row] for row in theirs]
    # A sum of weights in 32 bits.
    np.testing.assert_allclose(ours.scores, expected, rtol=2.0**-20, atol=1e-7)


def test_predict(fitted):
    documents = oracle_score.to_documents(fitted.unseen.tolist())
    if not fitted.ours.multilabel_:
        n_unknown = sum(not row for row in oracle.predict_topk(fitted.theirs, documents, 1))
        with expect_unknown(n_unknown, len(documents)):
            predicted = fitted.ours.predict(fitted.unseen)
        assert predicted.tolist() == oracle.predict(fitted.theirs, documents)
        return
    for max_labels in (None, 2):
        expected = oracle.predict_sets(fitted.theirs, documents, max_labels)
        assert fitted.ours.predict(fitted.unseen, max_labels=max_labels) == expected


def expect_unknown(n_unknown, n_documents):
    """Expect the warning about documents without a known term, or none where there are none."""
    if not n_unknown:
        return contextlib.nullcontext()
    message = f"^{n_unknown} of {n_documents} documents have no known term"
    return pytest.warns(NoKnownTermWarning, match=message)


def what_it_shows(theirs):
    """What was kept, and what became of documents whose true class is out of reach."""
    task, check = theirs.task, theirs.check
    ones = [1.0] * task.problem.n_terms
    scored = score_classes(task.problem, theirs.scored.used, Shared(ones, FIRST_WEIGHTS))
    lists = draw_lists(task, scored, theirs.sample)
    multiplicities = {m for entry in lists for m in entry.log_multiplicities}
    shown = {
        SCORERS[check.scorer],
        RESIDUALS[check.residuals],
        "whole query" if check.budget is None else "pruned",
    }
    return shown | {
        name
        for name, is_shown in (
            ("unreached", not all(entry.reached for entry in lists)),
            ("uniform", any(m > 0.0 for m in multiplicities)),
            ("listed already", -math.inf in multiplicities),
            ("several", task.has_several),
            ("separators kept", keeps_separators(theirs)),
            *what_names_show(theirs),
        )
        if is_shown
    }


def keeps_separators(theirs):
    """Whether those that were learned without the held-out documents count."""
    n_documents = len(theirs.task.problem.labels)
    lacks_little = 0 < len(theirs.held_out) < theirs.task.settings.most_lacking * n_documents
    return lacks_little and any(any(row[2:]) for row in theirs.check.mixture.residuals)


def what_names_show(theirs):
    """What was learned of names, and which classes had no documents when it was."""
    task, name_weights = theirs.task, theirs.check.mixture.name_weights
    if task.names is None:
        return []
    held_out_of = {c for i in theirs.held_out for c in task.problem.labels[i]}
    used = [i for i in theirs.scored.used if i not in theirs.held_out]
    left = {c for i in used for c in task.problem.labels[i]}
    empty = [c for c, size in enumerate(theirs.scored.classes.sizes) if size == 0]
    return [
        ("named", True),
        ("held out whole", bool(held_out_of - left)),
        ("no document", bool(empty)),
        ("shared", len(empty) > len(held_out_of - left) > 0),
        ("learned weights", name_weights[0] != 17.0 and name_weights[1] != -2.0),
        ("late bonus", name_weights[2] > 1.5),
        ("lower bonus", name_weights[2] < 1.5),
    ]


def test_the_cases_hold_what_they_are_for(fitted):
    """A fit that learns nothing, or holds nothing out, would agree with anything."""
    case, theirs = fitted.case, fitted.theirs
    assert case.shows <= what_it_shows(theirs)
    if len(case.y) < 10:
        assert theirs.shared.feature_weights == DEFAULT_WEIGHTS
        assert theirs.held_out == []
        return
    is_default = theirs.shared.feature_weights == DEFAULT_WEIGHTS
    assert is_default == (SCORERS[theirs.check.scorer] == "default feature weights")
    if SCORERS[theirs.check.scorer] in ("learned", "default feature weights"):
        assert max(theirs.shared.term_weights) - min(theirs.shared.term_weights) > 0.1
    assert theirs.calibrator.top
    has_residuals = RESIDUALS[theirs.check.residuals] != "none" and case.C > 1e-9
    assert any(theirs.residuals.weights) == has_residuals
    if case.C < 1e-9:
        ranked = oracle.predict_topk(theirs, oracle_score.to_documents(case.X.tolist()), 5)
        ties = [row[0][1] == row[1][1] for row in ranked]  # unless a twin is no candidate
        assert sum(ties) > len(ties) / 2


def test_the_feature_weights_minimise_the_loss():
    """The gradient vanishes, but for a weight at its bound."""
    case, seen = plain(0), []

    def fit_and_record(lists):
        weights = fit_feature_weights(lists)
        seen.append((lists, weights))
        return weights

    oracle.fit(
        oracle_score.to_documents(case.X.tolist()),
        case.label_sets,
        case.X.shape[1],
        draw_seed(case.seed),
        steps=Steps(fit_feature_weights=fit_and_record),
    )
    assert len(seen) == 3
    for lists, weights in seen:
        features, scales = scale_lists(lists)
        gradient = listwise_gradient(np.multiply(weights, scales), features, 1e-3)
        free = [slope for w, slope in zip(weights, gradient, strict=True) if w not in (-0.5, 1.0)]
        assert len(free) >= 5
        assert free == pytest.approx([0.0] * len(free), abs=1e-12)
