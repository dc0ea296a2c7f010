"""Every stage of the paper's method equals the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import DoubleSamplingClassifier
from longtail.retrieval.index import build_index
from longtail.retrieval.search import search
from longtail.scoring.paper import (
    FEATURE_NAMES,
    centroid_scorer,
    pair_features,
    weight_for_cosine,
)
from longtail.sparse import CountMatrix
from longtail.statistics.classes import CENTROID_BITS, ClassStatistics
from longtail.training.pairwise import (
    PairwiseScorer,
    adversary_differences,
    fit_pairwise_scorer,
    pair_differences,
)
from longtail.training.sampling import PairSample
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
    model = classifier._assemble(classifier.classes_, statistics, statistics.corpus, scorer, None)
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


@pytest.mark.parametrize("seed", SEEDS)
def test_fit_and_predict_whole(seed):
    X, problem, documents, _, corpus = build(seed)
    classifier = DoubleSamplingClassifier(adversaries=4, candidates=3, random_state=seed)
    classifier.fit(X, problem.y)
    sample = classifier.sample_
    phi = [
        [oracle.features(corpus, documents[i], c) for c in range(problem.n_classes)]
        for i in sample.documents
    ]
    y = problem.y[sample.documents].tolist()
    differences, labels = oracle.transform(phi, y, sample.classes[:, 1:].tolist())
    scorer = fit_pairwise_scorer(np.array(differences), np.array(labels, float), C=0.01)
    weights = [classifier.weights_[name] for name in FEATURE_NAMES]
    assert weights == pytest.approx(scorer.weights, rel=1e-4, abs=1e-6)
    predicted = classifier.predict(X)
    for i, document in enumerate(documents):
        best = oracle.predict(corpus, document, weights, 3)[0]
        assert predicted[i] == best or oracle.score(
            corpus, document, predicted[i], weights
        ) == pytest.approx(oracle.score(corpus, document, best, weights), abs=1e-9)
