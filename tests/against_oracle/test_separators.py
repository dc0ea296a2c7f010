"""Separators equal the oracle's, and at the optimum those of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from longtail._labels import as_sets
from longtail.model.weighting import WeightedDocuments, weight_documents
from longtail.sparse import CountMatrix
from longtail.training import separators
from longtail.training.negatives import MinedPairs
from longtail.training.separators import draw_negatives, solve_separators
from tests import oracle_sampling
from tests.conftest import make_problem
from tests.oracle_separators import fit_separators, follow

SEEDS = range(4)
N_CLASSES, N_TERMS, N_NEGATIVES = 7, 25, 2
CLOSE_IN_32_BITS = {"rel": 2.0**-22, "abs": 1e-8}


@dataclass(frozen=True)
class Setting:
    """Documents with labels and negatives, as ours and as the oracle's."""

    documents: WeightedDocuments
    mined: MinedPairs
    labels: list[list[int]]
    negatives: list[list[int]]
    drawn: list[int]

    @property
    def weighted(self) -> list[dict[int, float]]:
        """Of each document the weights of its terms."""
        rows = self.documents.rows
        bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        weights = self.documents.residual_inputs
        return [
            dict(zip(rows.indices[a:b].tolist(), weights[a:b].tolist(), strict=True))
            for a, b in bounds
        ]

    def solve(self, cost: float = 1.0, **options):
        """Ours."""
        positions = np.full(len(self.labels), -1)
        positions[self.drawn] = np.arange(len(self.drawn))
        learned = solve_separators(
            self.documents,
            self.mined,
            np.zeros(len(self.mined.classes), np.float32),
            N_CLASSES,
            cost,
            self.documents.gather(np.array(self.drawn, np.int64)),
            positions,
            len(self.labels),
            **{"multilabel": False, **options},
        )
        bounds = zip(learned.indptr[:-1], learned.indptr[1:], strict=True)
        rows = [
            dict(zip(learned.indices[a:b].tolist(), learned.weights[a:b].tolist(), strict=True))
            for a, b in bounds
        ]
        return rows, learned.biases.tolist()


def build(seed, several=False, n_drawn=30):
    """Random negatives; class 6 is no document's label, some documents are empty."""
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n_classes=N_CLASSES - 1)
    X = problem.X.copy()
    X[20:22] = 0
    labels = [[int(c)] for c in problem.y]
    if several:
        extra = rng.integers(0, N_CLASSES - 1, len(labels))
        labels = [sorted({*own, int(c)}) for own, c in zip(labels, extra, strict=True)]
        labels[5] = []
    others = [[c for c in range(N_CLASSES) if c not in own] for own in labels]
    negatives = [rng.permutation(row)[:N_NEGATIVES].tolist() for row in others]
    documents = weight_documents(CountMatrix.from_matrix(X), rng.uniform(0.5, 2.0, N_TERMS))
    if several:
        plain = weight_documents(CountMatrix.from_matrix(X), np.ones(N_TERMS))
        documents = replace(documents, plain_weights=plain.weights)
    sets = as_sets(labels).with_classes(np.arange(N_CLASSES))
    pairs = [c for rows in zip(labels, negatives, strict=True) for row in rows for c in row]
    mined = MinedPairs(sets, N_NEGATIVES, np.array(pairs, np.int32))
    drawn = draw_negatives(len(labels), seed)[:n_drawn].tolist()
    return Setting(documents, mined, labels, negatives, drawn)


@pytest.mark.parametrize("without", [None, [3, 50, 7]])
@pytest.mark.parametrize("seed", SEEDS)
def test_draws(seed, without, monkeypatch):
    monkeypatch.setattr(separators, "MAX_DRAWN", 40)
    used = set(range(60)) - {*(without or [])}
    drawn = draw_negatives(60, seed, None if without is None else np.array(without))
    assert drawn.tolist() == oracle_sampling.draw_documents(60, 40, seed, used)
    assert len(drawn) == 40


@pytest.mark.parametrize("cost", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_separators(seed, several, cost, monkeypatch):
    monkeypatch.setattr(separators, "MIN_NEGATIVES", 2)
    monkeypatch.setattr(separators, "MIN_NEGATIVES_MULTILABEL", 4)
    monkeypatch.setattr(separators, "NEGATIVES_PER_LABEL", 1)
    setting = build(seed, several)
    rows, biases = setting.solve(cost, multilabel=several)
    theirs = fit_separators(
        setting.weighted, setting.labels, setting.negatives, setting.drawn,
        60, N_CLASSES, cost, 1, 4 if several else 2, 0.3, 10, 0.1,
    )  # fmt: skip
    for mine, expected in zip(rows, theirs.weights, strict=True):
        assert mine == pytest.approx(expected, **CLOSE_IN_32_BITS)
    assert biases == pytest.approx(theirs.biases, rel=1e-8, abs=1e-8)
    assert sum(map(bool, rows)) == N_CLASSES - 1  # but for the class without documents
    assert rows[-1] == {}


@pytest.mark.parametrize("cost", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("n_drawn", [0, 30, 60])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_is_that_of_scikit_learn(seed, n_drawn, cost, monkeypatch):
    """What a random negative stands for, and what a document counts, are weights of samples."""
    monkeypatch.setattr(separators, "TOLERANCE", 1e-9)
    monkeypatch.setattr(separators, "MAX_PASSES", 20_000)
    monkeypatch.setattr(separators, "SMALLEST_WEIGHT", 0.0)
    monkeypatch.setattr(separators, "MIN_NEGATIVES", 3)
    monkeypatch.setattr(separators, "NEGATIVES_PER_LABEL", 1)
    setting = build(seed, n_drawn=n_drawn)
    counts = np.random.default_rng(seed).uniform(0.2, 3.0, 60)
    mined = replace(setting.mined, labels=replace(setting.mined.labels, costs=counts))
    rows, biases = replace(setting, mined=mined).solve(cost)
    dense = np.array([[x.get(t, 0.0) for t in range(N_TERMS)] for x in setting.weighted])
    for c in range(N_CLASSES - 1):
        is_label = np.array([c in own for own in setting.labels])
        listed = is_label | np.array([c in row for row in setting.negatives])
        wanted = follow(setting.drawn, c, int(is_label.sum()) + 3)
        others = [i for i in wanted if not listed[i]]
        weights = np.where(listed, counts, 0.0)
        weights[others] = max((60 - listed.sum()) / max(len(others), 1), 1.0)
        svm = LinearSVC(C=cost, dual=True, tol=1e-10, max_iter=1_000_000, random_state=0)
        used = weights > 0.0
        svm.fit(dense[used], is_label[used], sample_weight=weights[used])
        mine = [rows[c].get(t, 0.0) for t in range(N_TERMS)]
        assert mine == pytest.approx(svm.coef_[0], abs=1e-5)
        assert biases[c] == pytest.approx(svm.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_threads(n_jobs):
    setting = build(1)
    assert setting.solve(n_jobs=n_jobs) == setting.solve(n_jobs=1)


def test_only_the_chosen_classes_and_documents_count():
    setting = build(2, n_drawn=0)
    every, some = np.ones(N_CLASSES, np.bool_), np.arange(N_CLASSES) % 2 == 0
    used = np.arange(60) % 3 > 0
    rows, biases = setting.solve(document_mask=used)
    chosen, of_chosen = setting.solve(document_mask=used, class_mask=some)
    for c in range(N_CLASSES):
        assert chosen[c] == (rows[c] if some[c] else {})
        assert of_chosen[c] == (biases[c] if some[c] else 0.0)
    assert (rows, biases) != setting.solve(class_mask=every)
    seen = {t for i in np.flatnonzero(used) for t in setting.weighted[i]}
    assert all(t in seen for row in rows for t in row)
