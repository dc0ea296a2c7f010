from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit

from longtail._kernels import residuals as kernels
from longtail._kernels.types import Block, ListRows
from longtail.model.features import group_by_class
from longtail.model.scorer import ClassResiduals, score_pairs
from longtail.model.weighting import weight_documents
from longtail.sparse import CountMatrix
from longtail.training import residuals as refinement
from tests import oracle_score as oracle
from tests.conftest import fit_residuals, make_problem, mined_rows


def hard_negatives(seed=0, width=4, n_classes=7):
    """Documents with their class, random candidates and random scores."""
    rng = np.random.default_rng(seed)
    problem = make_problem(seed)
    documents = weight_documents(CountMatrix.from_matrix(problem.X), np.ones(25))
    others = [[c for c in range(n_classes) if c != true] for true in problem.y]
    classes = np.column_stack([problem.y, [rng.permutation(row)[: width - 1] for row in others]])
    return documents, classes, rng.normal(size=classes.shape)


def make_weights(rows, constants):
    """Class weights of a dict for each class."""
    sizes = [len(row) for row in rows]
    return ClassResiduals(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([t for row in rows for t in sorted(row)], np.int32),
        np.array([row[t] for row in rows for t in sorted(row)], np.float32),
        np.array(constants, float),
    )


def as_dicts(weights):
    """A dict for each class; terms must ascend."""
    rows = []
    for c in range(len(weights.biases)):
        entries = slice(weights.indptr[c], weights.indptr[c + 1])
        terms = weights.indices[entries].tolist()
        assert terms == sorted(set(terms))
        rows.append(dict(zip(terms, weights.weights[entries].tolist(), strict=True)))
    assert weights.indptr[-1] == len(weights.indices) == len(weights.weights)
    return rows


def equal(a, b):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("indptr", "indices", "weights", "biases")
    )


ROWS = [{0: 0.5, 3: -1.0}, {}, {1: 2.0}, {0: 1.0, 1: 1.5, 4: -0.25}]
CONSTANTS = [0.1, 0.2, -0.3, 0.4]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_pairs_are_grouped_by_class(width):
    classes = np.random.default_rng(width).integers(0, 9, (30, width))
    classes[classes == 5] = 6  # class 5 has no pair, class 8 may be the last
    starts, pairs, n_columns = group_by_class(classes, 9)
    assert n_columns == width
    for c, expected in enumerate(oracle.list_pairs(classes.tolist(), 9)):
        assert pairs[starts[c] : starts[c + 1]].tolist() == [i * width + k for i, k in expected]
    assert starts[-1] == 30 * width


def test_offsets_of_two_classes_are_score_differences():
    scores = np.array([[1.5, -2.0], [0.0, 0.0], [-5000.0, 5000.0]])
    offsets = np.empty(6, np.float32)
    rows = ListRows(2 * np.arange(4), np.ones(3, np.int64))
    kernels.fill_log_odds(scores.ravel(), rows, Block(0, 3), np.empty(scores.shape[1]), offsets)
    assert offsets.reshape(3, 2).tolist() == [[3.5, -3.5], [0.0, 0.0], [-10000.0, 10000.0]]


def test_offsets_of_some_rows_leave_the_others():
    flat = np.full(12, 9.0, np.float32)
    rows = ListRows(3 * np.arange(5), np.ones(4, np.int64))
    kernels.fill_log_odds(np.zeros(12), rows, Block(1, 3), np.empty(4), flat)
    offsets = flat.reshape(4, 3)
    assert np.all(offsets[[0, 3]] == 9)
    assert offsets[1:3] == pytest.approx(-np.log(2))


@njit
def solve_dual(guess, log_odds, cost):
    return kernels.solve_dual(guess, log_odds, cost)  # compiled code alone can call it


@pytest.mark.parametrize("cost", [0.1, 1.0, 5.0, 10.0, 100.0])
def test_one_dual_variable_reaches_its_optimum(cost):
    for log_odds in np.linspace(-40, 40, 41):
        for guess in (min(-log_odds, 0.0), 0.0, 30.0):
            r = guess
            for _ in range(3):
                r, share = solve_dual(r, log_odds, cost)
            assert r == pytest.approx(-log_odds - kernels.SQUARE * cost * share, abs=1e-6)
            assert share == pytest.approx(1 / (1 + np.exp(-r)), rel=1e-6)


def test_what_is_learned_ranks_documents_right():
    X = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    documents = weight_documents(CountMatrix.from_matrix(X), np.ones(3))
    classes = np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    scores = np.array([[-1.0, 1.0]] * 4)  # the statistics get every document wrong
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 2, cost=30.0)
    learned = scores + score_pairs(documents, classes, weights.as_scorer)
    assert np.all(learned[:, 0] > learned[:, 1])
    rows = as_dicts(weights)
    assert rows[0][0] > 0 > rows[0][1]
    assert rows[1][1] > 0 > rows[1][0]


def test_pairs_that_the_score_gets_right_teach_little():
    documents, classes, scores = hard_negatives()
    scores[:, 0] += 40
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0)
    assert not len(weights.indices)
    assert weights.biases == pytest.approx(np.zeros(7), abs=1e-6)


def test_a_class_without_own_documents_gets_no_weights():
    documents, classes, scores = hard_negatives(n_classes=7)
    classes[:, 1] = 7  # every document's candidate, nobody's class
    weights = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 9, 1.0)
    rows = as_dicts(weights)
    assert rows[7] == rows[8] == {}
    assert weights.biases[7] == weights.biases[8] == 0
    assert all(rows[:7])


def test_only_the_chosen_classes_are_fitted():
    documents, classes, scores = hard_negatives()
    chosen = np.array([True, False, False, True, True, False, False])
    every = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0)
    some = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, 7, 1.0, class_mask=chosen
    )
    for c, (mine, whole) in enumerate(zip(as_dicts(some), as_dicts(every), strict=True)):
        assert mine == (whole if chosen[c] else {})
        assert some.biases[c] == (every.biases[c] if chosen[c] else 0)
    none = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, 7, 1.0, class_mask=np.zeros(7, bool)
    )
    assert equal(none, ClassResiduals.none(7))


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_threads(n_jobs):
    documents, classes, scores = hard_negatives()
    chosen = np.arange(7) != 2
    one = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, 7, 1.0, class_mask=chosen, n_jobs=1
    )
    other = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, 7, 1.0, class_mask=chosen, n_jobs=n_jobs
    )
    assert len(one.indices) > 50
    assert equal(one, other)


def test_small_weights_are_dropped(monkeypatch):
    documents, classes, scores = hard_negatives()
    monkeypatch.setattr(refinement, "SMALLEST_WEIGHT", 1e-300)
    every = as_dicts(fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0))
    for threshold in (0.01, 0.3):
        monkeypatch.setattr(refinement, "SMALLEST_WEIGHT", threshold)
        some = as_dicts(fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0))
        assert some == [{t: v for t, v in row.items() if abs(v) >= threshold} for row in every]
        assert some != every


def test_no_threshold_lists_each_term_once(monkeypatch):
    monkeypatch.setattr(refinement, "SMALLEST_WEIGHT", 0.0)
    documents, classes, scores = hard_negatives()
    as_dicts(fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0))


def test_more_weights_than_the_first_buffer_holds():
    X = np.zeros((4, 5000))
    X[0, :3000], X[1, 3000:] = 1, 1
    X[2, ::2], X[3, 1::2] = 1, 1
    documents = weight_documents(CountMatrix.from_matrix(X), np.ones(5000))
    classes = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])
    weights = fit_residuals(documents, mined_rows(classes), np.zeros((4, 2)).__getitem__, 4, 1000.0)
    rows = as_dicts(weights)
    for row, own in zip(rows, X, strict=True):
        assert row
        for sign, terms in (
            (1, np.flatnonzero(own)),
            (-1, sorted(set(row) - {*np.flatnonzero(own)})),
        ):
            values = [row[t] for t in terms]
            assert len(values) >= 2000
            assert values == pytest.approx([values[0]] * len(values))
            assert values[0] * sign > 0


def test_documents_without_terms_move_the_constant_alone():
    documents = weight_documents(CountMatrix.from_matrix(np.zeros((3, 4))), np.ones(4))
    classes = np.array([[0, 1], [0, 1], [0, 1]])
    weights = fit_residuals(documents, mined_rows(classes), np.zeros((3, 2)).__getitem__, 2, 1.0)
    assert as_dicts(weights) == [{}, {}]
    assert weights.biases[0] > 0  # class 0 wins every pair it has
    assert weights.biases[1] == 0  # no document of its own


def test_no_weights():
    weights = ClassResiduals.none(3)
    assert as_dicts(weights) == [{}, {}, {}]
    assert weights.biases.tolist() == [0, 0, 0]
    documents = weight_documents(CountMatrix.from_matrix(np.eye(2)), np.ones(2))
    assert not score_pairs(documents, np.tile([0, 1, 2], (2, 1)), weights.as_scorer).any()


def test_weights_as_a_score():
    weights = make_weights(ROWS, CONSTANTS)
    X = np.random.default_rng(0).integers(0, 3, (10, 5)).astype(float)
    documents = weight_documents(CountMatrix.from_matrix(X), np.ones(5))
    scores = score_pairs(documents, np.tile(np.arange(4), (10, 1)), weights.as_scorer)
    for i, x in enumerate(oracle.to_documents(X)):
        x = oracle.weigh(x, [1.0] * 5)
        expected = [
            constant + sum(x.get(t, 0.0) * v for t, v in row.items())
            for row, constant in zip(ROWS, CONSTANTS, strict=True)
        ]
        assert scores[i] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sources", [[0, 1, 2, 3], [-1, 0, 1, -1, -1, 2, 3], [3, 1, -1], [-1], []])
def test_gather_classes(sources):
    taken = make_weights(ROWS, CONSTANTS).gather(np.array(sources, np.int64))
    assert as_dicts(taken) == [ROWS[c] if c >= 0 else {} for c in sources]
    assert taken.biases.tolist() == [CONSTANTS[c] if c >= 0 else 0 for c in sources]


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [1, 3], [0], []])
def test_replace_classes(chosen):
    other_rows, other_constants = [{2: 9.0}, {0: 7.0, 4: 6.0}, {}, {3: 5.0}], [1.0, 2.0, 3.0, 4.0]
    mine, theirs = make_weights(ROWS, CONSTANTS), make_weights(other_rows, other_constants)
    replaced = mine.replace_classes(theirs, np.isin(np.arange(4), chosen))
    assert as_dicts(replaced) == [(other_rows if c in chosen else ROWS)[c] for c in range(4)]
    assert replaced.biases.tolist() == [
        (other_constants if c in chosen else CONSTANTS)[c] for c in range(4)
    ]
    assert as_dicts(mine) == ROWS  # what came in stays as it was
    assert as_dicts(theirs) == other_rows


def test_refitting_the_chosen_classes_updates_only_those():
    documents, classes, scores = hard_negatives()
    before = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0)
    chosen = np.arange(7) % 3 == 0
    after = fit_residuals(
        documents, mined_rows(classes), (scores * 2).__getitem__, 7, 1.0, class_mask=chosen
    )
    updated = as_dicts(before.replace_classes(after, chosen))
    fresh = as_dicts(
        fit_residuals(documents, mined_rows(classes), (scores * 2).__getitem__, 7, 1.0)
    )
    for c in range(7):
        assert updated[c] == (fresh if chosen[c] else as_dicts(before))[c]
        assert fresh[c] != as_dicts(before)[c]


def test_documents_that_are_not_used_do_not_count():
    documents, classes, scores = hard_negatives()
    used = np.arange(len(classes)) % 3 > 0
    some = fit_residuals(
        documents, mined_rows(classes), scores.__getitem__, 7, 1.0, document_mask=used
    )
    kept = np.flatnonzero(used)
    alone = fit_residuals(
        documents.gather(kept), mined_rows(classes[kept]), scores[kept].__getitem__, 7, 1.0
    )
    assert as_dicts(some) == as_dicts(alone)
    assert as_dicts(some) != as_dicts(
        fit_residuals(documents, mined_rows(classes), scores.__getitem__, 7, 1.0)
    )


def test_a_document_that_costs_twice_counts_as_two(monkeypatch):
    # To the optimum, where the order of the pairs does not matter.
    monkeypatch.setattr("longtail.training.residuals.MAX_PASSES", 2_000)
    monkeypatch.setattr("longtail.training.residuals.TOLERANCE", 1e-7)
    monkeypatch.setattr("longtail.training.residuals.SMALLEST_WEIGHT", 0.0)
    X = np.random.default_rng(0).integers(0, 3, (12, 6))
    documents = weight_documents(CountMatrix.from_matrix(X), np.ones(6))
    classes = np.column_stack([np.arange(12) % 2, (np.arange(12) + 1) % 2])
    scores, costs = np.zeros((12, 2)), np.array([1, 2, 3] * 4)
    mined = mined_rows(classes)
    mined = replace(mined, labels=replace(mined.labels, costs=costs.astype(float)))
    weighted = fit_residuals(documents, mined, scores.__getitem__, 2, 1.0)
    rows = np.repeat(np.arange(12), costs)
    repeated = weight_documents(CountMatrix.from_matrix(X[rows]), np.ones(6))
    expected = fit_residuals(repeated, mined_rows(classes[rows]), scores[rows].__getitem__, 2, 1.0)
    assert weighted.biases == pytest.approx(expected.biases, abs=2e-3)
    assert weighted.weights == pytest.approx(expected.weights, abs=2e-3)
    plain = fit_residuals(documents, mined_rows(classes), scores.__getitem__, 2, 1.0)
    assert np.abs(weighted.weights - plain.weights).max() > 0.02
