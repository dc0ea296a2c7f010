"""Documents that count as other than one document, and classes whose losses count more or less."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_sample_weight

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail._labels import LabelSets
from longtail.distributed import fit_partitions
from longtail.model.features import score_features
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile, estimate_collection_model, weight_documents
from longtail.sparse import CountMatrix
from longtail.store.container import open_model, write_model
from tests.conftest import assert_same_predictions, check_statistics, make_problem

BOTH = pytest.mark.parametrize("Classifier", [LongTailClassifier, DoubleSamplingClassifier])
SETS = [["a"], ["b", "a"], ["c"], ["c", "b"]]


@pytest.fixture(scope="module")
def problem():
    return make_problem(3, n_documents=120, n_classes=7)


def sums(X, y, weights, n_classes=7):
    """Sum weighted documents with plain floats."""
    counts, sizes = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
    frequencies = np.zeros(X.shape[1])
    for row, label, weight in zip(X, y, weights, strict=True):
        counts[label] += weight * row
        sizes[label] += weight
        frequencies += weight * (row > 0)
    return counts, sizes, frequencies


@BOTH
def test_fractions_count_in_the_sums(Classifier, problem):
    weights = np.random.default_rng(0).integers(0, 9, 120) / 4
    statistics = (
        Classifier(random_state=0).fit(problem.X, problem.y, sample_weight=weights).statistics_
    )
    counts, sizes, frequencies = sums(problem.X, problem.y, weights)
    dense = sp.csr_array(
        (statistics.counts * 2.0**-statistics.count_bits, statistics.indices, statistics.indptr),
        shape=counts.shape,
    ).toarray()
    assert dense == pytest.approx(counts)
    assert statistics.class_sizes.tolist() == sizes.tolist()
    assert statistics.document_frequencies.tolist() == frequencies.tolist()
    assert statistics.n_documents == weights.sum()
    check_statistics(statistics)


@BOTH
def test_halves_that_make_a_whole_are_saved(Classifier, tmp_path):
    X, y = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]], ["a", "a", "b", "b"]
    model = Classifier(random_state=0).fit(X, y)
    model.partial_fit([[0, 0, 0, 1]] * 2, ["a", "b"], sample_weight=[0.5, 0.5])
    model.save(tmp_path / "model")  # the last term is in one document and in two classes
    assert longtail.load(tmp_path / "model").statistics_ == model.statistics_


@BOTH
def test_whole_weights_are_repetitions_in_the_sums(Classifier, problem):
    weights = np.arange(120) % 4
    weighted = Classifier(random_state=0).fit(problem.X, problem.y, sample_weight=weights)
    rows = np.repeat(np.arange(120), weights)
    plain = Classifier(random_state=0).fit(problem.X[rows], problem.y[rows])
    assert weighted.statistics_ == plain.statistics_
    assert weighted.statistics_.class_sizes.dtype == np.int64
    weighted.partial_fit(problem.X[:3], problem.y[:3], sample_weight=[2, 0, 1])
    plain.partial_fit(problem.X[[0, 0, 2]], problem.y[[0, 0, 2]])
    assert weighted.statistics_ == plain.statistics_
    weighted.forget(problem.X[:1], problem.y[:1])
    plain.forget(problem.X[:1], problem.y[:1])
    assert weighted.statistics_ == plain.statistics_


@BOTH
def test_ones_change_nothing(Classifier, problem, tmp_path):
    for name, weights in (("plain", None), ("ones", np.ones(120))):
        Classifier(random_state=0).fit(problem.X, problem.y, weights).save(tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "ones").read_bytes()


@BOTH
def test_what_is_added_with_fractions_is_forgotten_exactly(Classifier, problem):
    X, y = problem.X, problem.y
    weights = np.random.default_rng(1).random(120) * 3
    model = Classifier(random_state=0).fit(X, y)
    before = model.statistics_
    model.partial_fit(X[:40], y[:40], sample_weight=weights[:40])
    assert model.statistics_.n_documents != before.n_documents
    order = np.random.default_rng(2).permutation(40)
    model.forget(X[order], y[order], sample_weight=weights[order])
    assert model.statistics_ == before
    assert model.statistics_.class_sizes.dtype == np.int64


def test_sums_do_not_depend_on_order_or_chunks(problem):
    weights = np.random.default_rng(3).random(120)
    whole = LongTailClassifier(random_state=0).fit(problem.X, problem.y, weights).statistics_
    order = np.random.default_rng(4).permutation(120)
    first, last = order[:70], order[70:]
    model = LongTailClassifier(random_state=0)
    model.fit(problem.X[first], problem.y[first], weights[first])
    model.partial_fit(problem.X[last], problem.y[last], sample_weight=weights[last])
    assert model.statistics_ == whole


def test_more_than_was_added_is_not_forgotten(problem):
    model = LongTailClassifier(random_state=0)
    model.fit(problem.X, problem.y, sample_weight=np.full(120, 0.25))
    first = np.flatnonzero(problem.y == problem.y[0])
    with pytest.raises(ValueError, match="never added"):
        model.forget(problem.X[np.tile(first, 5)], problem.y[np.tile(first, 5)])


@BOTH
def test_a_model_with_fractions_is_saved(Classifier, problem, tmp_path):
    weights = compute_sample_weight("balanced", problem.y)
    model = Classifier(random_state=0).fit(problem.X, problem.y, sample_weight=weights)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.statistics_ == model.statistics_
    assert_same_predictions(loaded, model, problem.X)
    for one in (model, loaded):
        one.partial_fit(problem.X[:5], problem.y[:5], sample_weight=[0.5] * 5)
    assert loaded.statistics_ == model.statistics_
    assert_same_predictions(loaded, model, problem.X)


def test_weights_by_age_on_texts():
    texts = [f"word{i % 5} thing{i % 5} day{i}" for i in range(60)]
    labels = [f"class {i % 5}" for i in range(60)]
    weights = 0.97 ** np.arange(60)
    model = TextClassifier(random_state=0, remember_documents=True)
    model.fit(texts, labels, sample_weight=weights)
    assert model.predict(["word3 thing3"])[0] == "class 3"
    assert model.n_documents_ == round(weights.sum())
    before = model.statistics_
    model.partial_fit(["word1 new"], ["class 1"], sample_weight=[1.5])
    model.forget(["word1 new"], ["class 1"], sample_weight=[1.5])
    assert np.array_equal(model.statistics_.class_sizes, before.class_sizes)
    model.forget(texts[:1], labels[:1], sample_weight=weights[:1])
    with pytest.raises(ValueError, match="never added"):
        model.forget(texts[:1], labels[:1], sample_weight=weights[:1])


@pytest.mark.parametrize(
    ("y", "weights"),
    [
        (SETS * 10, [[1], [0.5, 2], [1], [0.25, 4]] * 10),
        (
            np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]] * 10),
            np.array([[1, 0, 0], [2, 0.5, 0], [0, 0, 1], [0, 4, 0.25]] * 10),
        ),
    ],
)
def test_labels_of_a_document_have_weights_of_their_own(y, weights):
    X = np.random.default_rng(0).integers(0, 3, (40, 12))
    given = sp.csr_array(weights) if isinstance(weights, np.ndarray) else weights
    statistics = LongTailClassifier(random_state=0).fit(X, y, sample_weight=given).statistics_
    assert statistics.class_sizes.tolist() == [30.0, 45.0, 12.5]


def test_a_label_of_weight_zero_is_none():
    X = np.random.default_rng(0).integers(0, 3, (40, 12))
    weights = [[1], [1, 0], [1], [1, 1]] * 10
    one = LongTailClassifier(random_state=0).fit(X, SETS * 10, sample_weight=weights)
    other = LongTailClassifier(random_state=0).fit(X, [["a"], ["b"], ["c"], ["c", "b"]] * 10)
    assert one.statistics_ == other.statistics_
    assert one.predict(X) == other.predict(X)


@BOTH
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([-1] * 120, "must hold numbers from 0 to 1000000"),
        ([np.nan] * 120, "must hold numbers from 0"),
        ([2e6] * 120, "must hold numbers from 0"),
        ([0] * 120, "zero for every document"),
        ([1] * 119, "one weight for each of the 120 documents"),
        ([10**400] * 120, "must hold numbers: int too large"),
        ([1j] * 120, "must hold numbers: "),
        (["a"] * 120, "must hold numbers: "),
    ],
)
def test_bad_weights(Classifier, problem, weights, message):
    with pytest.raises(ValueError, match=message):
        Classifier().fit(problem.X, problem.y, sample_weight=weights)


def test_bad_weights_of_labels():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="weight for each label of each document"):
        LongTailClassifier().fit(X, SETS, sample_weight=[[1], [1], [1], [1, 1]])
    with pytest.raises(
        ValueError, match=r"shape of the indicator matrix, \(4, 3\); it is \(4, 2\)"
    ):
        LongTailClassifier().fit(X, np.eye(4, 3), sample_weight=np.ones((4, 2)))


def test_weights_that_cannot_be_summed_exactly():
    with pytest.raises(ValueError, match=r"add up to 3e\+08 documents; at most 16,777,216"):
        LongTailClassifier().fit(np.ones((300, 2)), [0, 1] * 150, sample_weight=[1e6] * 300)


def test_a_tiny_weight_is_not_lost(problem):
    model = LongTailClassifier(random_state=0).fit(problem.X, problem.y, [1e-12] * 120)
    assert model.statistics_.n_documents == 120 * 2.0**-24


def test_memory_keeps_whole_documents(problem):
    weights = np.full(120, 0.5)
    with pytest.raises(ValueError, match="fractions, which memory cannot keep"):
        LongTailClassifier(memory=3).fit(problem.X, problem.y, sample_weight=weights)
    model = LongTailClassifier(memory=3, random_state=0).fit(problem.X, problem.y, weights * 4)
    with pytest.raises(ValueError, match="fractions, which memory cannot keep"):
        model.partial_fit(problem.X, problem.y, sample_weight=weights)


def test_a_document_is_left_out_with_all_that_it_counts(problem):
    """A class of one document is empty to learn from, however much the document counts."""
    X, y, weights = problem.X, problem.y, np.random.default_rng(6).random(120) * 3
    labels = LabelSets.single(y, np.arange(7), np.round(weights * 2**24) * 2.0**-24)
    statistics = ClassStatistics.from_counts(X, labels, 7, sublinear=True)
    corpus, shares = statistics.corpus, estimate_collection_model(statistics)
    documents = weight_documents(CountMatrix.from_matrix(X), corpus.idf)
    profile = Profile.of(statistics, corpus, shares)
    features = score_features(
        documents, np.arange(120), y[:, None], y, profile, sample_weights=labels.weights
    )
    for i in (0, 17, 119):
        others = np.delete(np.arange(120), i)
        without = ClassStatistics.from_counts(X[others], labels.gather(others), 7, sublinear=True)
        assert statistics - without == ClassStatistics.from_counts(
            X[i : i + 1], labels.gather(np.array([i])), 7, sublinear=True
        )
        expected = score_features(
            documents,
            np.array([i]),
            y[i : i + 1, None],
            np.array([-1]),
            Profile.of(without, corpus, shares),
        )
        assert features[i] == pytest.approx(expected[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_refine_learns_from_weighted_documents(problem, n_jobs):
    weights = np.random.default_rng(5).random(120) + 0.5
    model = LongTailClassifier(random_state=0, n_jobs=n_jobs)
    model.fit(problem.X, problem.y, sample_weight=weights)
    model.partial_fit(problem.X[:9] + 1, problem.y[:9], sample_weight=[0.5] * 9)
    model.refine(problem.X, problem.y, sample_weight=weights)
    assert model.health().n_stale == 0
    with pytest.raises(ValueError, match="never added"):
        model.refine(problem.X, problem.y, sample_weight=weights * 9)


# ---- weights of classes


def test_class_weight_changes_what_is_learned_and_no_sum(problem):
    def fit(class_weight):
        model = LongTailClassifier(class_weight=class_weight, calibrate=False, random_state=0)
        return model.fit(problem.X, problem.y)

    plain, balanced = fit(None), fit("balanced")
    assert balanced.statistics_ == plain.statistics_
    assert not np.array_equal(balanced.term_weights_, plain.term_weights_)
    assert balanced.weights_ != plain.weights_
    sizes = plain.statistics_.class_sizes
    same = fit({int(c): 120 / (7 * n) for c, n in zip(plain.classes_, sizes, strict=True)})
    assert np.array_equal(same.term_weights_, balanced.term_weights_)
    assert np.array_equal(same.decision_function(problem.X), balanced.decision_function(problem.X))
    balanced.partial_fit(problem.X[:4], problem.y[:4]).forget(problem.X[:4], problem.y[:4])
    assert balanced.statistics_ == plain.statistics_


def test_a_class_whose_losses_count_more_is_found_more_often():
    rng = np.random.default_rng(0)
    one = rng.dirichlet(np.ones(30))
    two = 0.6 * one + 0.4 * rng.dirichlet(np.ones(30))
    X = np.vstack([rng.multinomial(12, share, 300) for share in (one, two, one, two)])
    y = np.repeat(["one", "two"], 300)
    found = []
    for factor in (0.05, 20.0):
        model = LongTailClassifier(
            class_weight={"two": factor}, calibrate=False, random_state=0
        ).fit(X[:600], y)
        found.append(np.mean(model.predict(X[600:]) == "two"))
    assert found[0] < found[1] - 0.2


@pytest.mark.parametrize("weights", ["balanced", {"b": 2.0}, {1: 2.5}, None])
def test_class_weight_is_saved(weights, tmp_path):
    y = [1, 2, 3] * 20 if weights == {1: 2.5} else ["a", "b", "c"] * 20
    model = LongTailClassifier(class_weight=weights, random_state=0).fit(np.eye(60), y)
    model.save(tmp_path / "model")
    assert longtail.load(tmp_path / "model").class_weight == weights


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("even", 'class_weight must be "balanced", a dict'),
        (2.0, "class_weight must be"),
        ({"a": 0}, r"class_weight\['a'\] must be a positive number"),
        ({"z": 1.0}, "not among the classes: 'z'"),
    ],
)
def test_bad_class_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        LongTailClassifier(class_weight=weights).fit(np.eye(4), ["a", "b", "a", "b"])


def test_a_fit_over_partitions_takes_no_class_weight(tmp_path):
    model = LongTailClassifier(class_weight="balanced")
    with pytest.raises(ValueError, match="class_weight is for fit in memory"):
        fit_partitions(model, [lambda: (np.eye(2), ["a", "b"])], scratch=tmp_path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5])
def test_a_file_with_wrong_fractions_is_refused(problem, tmp_path, wrong):
    model = LongTailClassifier(random_state=0).fit(problem.X, problem.y, np.full(120, 0.5))
    model.save(tmp_path / "model")
    content = open_model(tmp_path / "model")
    arrays = {name: np.array(array) for name, array in content.arrays.items()}
    assert arrays["statistics/class_sizes"].dtype == np.float64
    arrays["statistics/class_sizes"][0] = wrong
    write_model(tmp_path / "other", content.kind, content.parameters, arrays)
    with pytest.raises(longtail.ModelFileError, match="class_sizes"):
        longtail.load(tmp_path / "other")
