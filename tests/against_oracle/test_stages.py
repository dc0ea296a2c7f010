"""Every stage of the paper's method equals the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import DoubleSamplingClassifier
from longtail.model.statistics import CENTROID_BITS, ClassStatistics
from longtail.paper.double_sampling import derive_state
from longtail.paper.features import (
    FEATURE_NAMES,
    centroid_scorer,
    pair_features,
    weight_for_cosine,
)
from longtail.paper.pairwise import (
    PairwiseScorer,
    adversary_differences,
    fit_pairwise_scorer,
    pair_differences,
)
from longtail.paper.sampling import PairSample, draw_pairs, draw_seed
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.sparse import CountMatrix
from tests import oracle
from tests.conftest import make_problem

SEEDS = range(5)
WEIGHTS = np.array([0.3, -0.1, 0.2, 0.9, 1.5, -0.4, 0.8, 0.05, -2.0, 0.6])


def build(seed, kind="integer"):
    problem = make_problem(seed)
    X = problem.X if kind == "integer" else problem.X * 0.37
    documents = oracle.to_documents(X)
    statistics = ClassStatistics.from_counts(sp.csr_array(X), problem.y, problem.n_classes)
    return (
        X,
        problem,
        documents,
        statistics,
        oracle.build_corpus(documents, problem.y, problem.n_classes),
    )


@pytest.mark.parametrize("kind", ["integer", "fraction"])
@pytest.mark.parametrize("seed", SEEDS)
def test_statistics(seed, kind):
    _, problem, _, statistics, corpus = build(seed, kind)
    for c in range(problem.n_classes):
        entries = slice(statistics.indptr[c], statistics.indptr[c + 1])
        counts = statistics.counts[entries] * 2.0**-statistics.count_bits
        terms = statistics.indices[entries].tolist()
        assert terms == sorted(corpus.y_t[c])
        assert counts == pytest.approx([corpus.y_t[c][t] for t in terms], rel=1e-8)
        centroid = statistics.centroid_sums[entries] * 2.0**-CENTROID_BITS
        expected = [corpus.centroid[c][t] * statistics.class_sizes[c] for t in terms]
        assert centroid == pytest.approx(expected, abs=1e-10)
    assert statistics.corpus.length == pytest.approx(corpus.l_S)
    assert statistics.corpus.idf == pytest.approx(
        [oracle.idf(corpus, t) for t in range(statistics.n_terms)]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_log_frequency_centroids(seed):
    problem = make_problem(seed)
    statistics = ClassStatistics.from_counts(
        problem.X, problem.y, problem.n_classes, sublinear=True
    )
    corpus = oracle.build_corpus(
        oracle.to_documents(problem.X), problem.y, problem.n_classes, oracle.log_frequency
    )
    for c in range(problem.n_classes):
        entries = slice(statistics.indptr[c], statistics.indptr[c + 1])
        centroid = statistics.centroid_sums[entries] * 2.0**-CENTROID_BITS
        expected = [
            corpus.centroid[c][t] * statistics.class_sizes[c]
            for t in statistics.indices[entries].tolist()
        ]
        assert centroid == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kind", ["integer", "fraction"])
@pytest.mark.parametrize("seed", SEEDS)
def test_features(seed, kind):
    X, problem, documents, statistics, corpus = build(seed, kind)
    pairs = np.tile(np.arange(problem.n_classes), (len(X), 1))
    computed = pair_features(X, statistics, np.arange(len(X)), pairs)
    for i, document in enumerate(documents):
        for c in range(problem.n_classes):
            expected = oracle.features(corpus, document, c)
            assert computed[i, c] == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_transformation(seed):
    X, problem, documents, statistics, corpus = build(seed)
    rng = np.random.default_rng(seed)
    adversaries = [
        rng.permutation([c for c in range(problem.n_classes) if c != true])[:3].tolist()
        for true in problem.y
    ]
    phi = [
        [oracle.features(corpus, document, c) for c in range(problem.n_classes)]
        for document in documents
    ]
    expected, expected_labels = oracle.transform(phi, problem.y.tolist(), adversaries)
    classes = np.column_stack([problem.y, np.array(adversaries)])
    features = pair_features(X, statistics, np.arange(len(X)), classes)
    differences, labels = pair_differences(features, classes)
    assert labels.tolist() == expected_labels
    np.testing.assert_allclose(differences, expected, atol=1e-9)
    sample = PairSample(np.arange(len(X)), classes)
    oriented = adversary_differences(CountMatrix.from_matrix(X), statistics, sample)
    expected = np.array(expected) * np.array(expected_labels)[:, None]
    np.testing.assert_allclose(oriented, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_learner_minimises_the_objective(seed):
    X, problem, _, statistics, _ = build(seed)
    others = [[c for c in range(problem.n_classes) if c != true] for true in problem.y]
    classes = np.column_stack([problem.y, np.array(others)])
    features = pair_features(X, statistics, np.arange(len(X)), classes)
    differences, labels = pair_differences(features, classes)
    scorer = fit_pairwise_scorer(differences, labels, C=0.01)
    assert scorer.scales == pytest.approx(np.abs(differences).max(axis=0))
    scaled = (differences / scorer.scales).tolist()
    weights = scorer.weights * scorer.scales
    best = oracle.svm_objective(weights, scaled, labels, 0.01)
    rng = np.random.default_rng(seed)
    for step in (1e-1, 1e-2):
        for _ in range(20):
            other = weights + rng.normal(size=10) * step
            assert oracle.svm_objective(other, scaled, labels, 0.01) >= best


@pytest.mark.parametrize("q", [1, 3, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_candidates_and_ranking(seed, q):
    X, problem, documents, statistics, corpus = build(seed)
    score = centroid_scorer(statistics, statistics.corpus)
    rows = weight_for_cosine(CountMatrix.from_matrix(X), statistics.corpus.idf)
    candidates, cosines = search(rows, score, build_index(score, X.shape[1]), q)
    classifier = DoubleSamplingClassifier(candidates=q, random_state=seed).fit(X, problem.y)
    scorer = PairwiseScorer(np.array(WEIGHTS), np.ones(10))
    model = derive_state(classifier.classes_, statistics, statistics.corpus, scorer, None)
    ranked, scores = classifier._rank(model, CountMatrix.from_matrix(X), q)
    for i, document in enumerate(documents):
        expected = [oracle.cosine(corpus, document, c) for c in candidates[i]]
        assert cosines[i] == pytest.approx(expected, abs=1e-9)
        assert_same_up_to_ties(
            candidates[i],
            oracle.nearest(corpus, document, q),
            lambda c, document=document: oracle.cosine(corpus, document, c),
        )
        expected = [oracle.score(corpus, document, c, WEIGHTS) for c in ranked[i]]
        assert scores[i] == pytest.approx(expected, abs=1e-8)
        assert_same_up_to_ties(
            ranked[i],
            oracle.predict(corpus, document, WEIGHTS, q),
            lambda c, document=document: oracle.score(corpus, document, c, WEIGHTS),
        )


def assert_same_up_to_ties(ranked, expected, value):
    """Two orders may differ only where the values agree to rounding."""
    for mine, theirs in zip(ranked, expected, strict=True):
        assert mine == theirs or value(mine) == pytest.approx(value(theirs), abs=1e-9)


def two_classes():
    problem = make_problem(2, n_documents=30, n_classes=2)
    return problem.X, problem.y, {"adversaries": 30, "candidates": 10}


def lonely_and_empty_documents():
    problem = make_problem(5, n_documents=50, n_classes=12)
    X = np.vstack([problem.X, np.zeros(25, int)])
    X[20:23] = 0
    return X, np.append(problem.y, 12), {"adversaries": 12, "candidates": 6}


def drawn_until_a_document_is_kept():
    problem = make_problem(4)
    return problem.X, problem.y, {"examples_per_class": 0.02, "adversaries": 3}


WHOLE = {
    **{
        f"seed {seed}": lambda seed=seed: (
            make_problem(seed).X,
            make_problem(seed).y,
            {"adversaries": 4, "candidates": 3, "random_state": seed},
        )
        for seed in SEEDS
    },
    "two classes": two_classes,
    "lonely and empty": lonely_and_empty_documents,
    "several draws": drawn_until_a_document_is_kept,
}


@pytest.mark.parametrize("case", WHOLE)
def test_fit_and_predict_whole(case):
    """Sample, weights and ranking; the oracle draws, learns and ranks by itself.

    Differences are stored in 32 bits, so weights agree to about 1e-6.
    """
    X, y, parameters = WHOLE[case]()
    classifier = DoubleSamplingClassifier(**{"random_state": 0, **parameters}).fit(X, y)
    random_state = np.random.RandomState(parameters.get("random_state", 0))
    seeds = [draw_seed(random_state) for _ in range(100)]
    documents, n_classes = oracle.to_documents(X), int(y.max()) + 1
    corpus, kept, adversaries, weights = oracle.fit(
        documents,
        y.tolist(),
        n_classes,
        seeds,
        classifier.examples_per_class,
        classifier.adversaries,
        classifier.C,
    )
    if case == "several draws":
        assert draw_pairs(y, n_classes, 0.02, 3, np.random.RandomState(0)).documents.size == 0
    assert classifier.sample_.documents.tolist() == kept
    assert classifier.sample_.classes[:, 1:].tolist() == adversaries
    learned = [classifier.weights_[name] for name in FEATURE_NAMES]
    assert learned == pytest.approx(weights, rel=1e-5, abs=1e-7)
    q = min(classifier.candidates, n_classes)
    top = classifier.predict_topk(X, q)
    assert (~top.valid).any() == (case == "lonely and empty")
    for i, document in enumerate(documents):
        if not document:  # without a term there is no evidence, so no candidate
            assert not top.valid[i].any()
            continue
        ranked = oracle.predict(corpus, document, weights, q)
        scores = [oracle.score(corpus, document, c, weights) for c in ranked]
        n_missing = q - len(ranked)
        assert top.valid[i].tolist() == [True] * len(ranked) + [False] * n_missing
        assert top.scores[i, : len(ranked)] == pytest.approx(scores, rel=1e-5, abs=1e-6)
        assert top.scores[i, len(ranked) :].tolist() == [-np.inf] * n_missing
        assert_same_up_to_ties(
            top.classes[i, : len(ranked)],
            ranked,
            lambda c, document=document: oracle.score(corpus, document, c, weights),
        )
