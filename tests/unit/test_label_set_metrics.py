"""Measures of label sets: against loops over documents, napkinXC's own figures, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from longtail import metrics
from longtail._labels import LabelSets
from longtail.metrics.rankings import NO_CLASS, OTHER_CLASS
from longtail.results import TopK
from tests.conftest import examples

# napkinXC 0.7.2 on `draw(3, least=1)`: napkinxc.metrics.NAME(sets, rankings, k=5), places 1 to 5;
# inverse propensities by Jain_et_al_inverse_propensity of the training sets drawn with them.
NAPKINXC = {
    "inverse_propensity": [
        1.49878276,
        1.6082205003,
        1.7812757466,
        1.7736398588,
        1.9837945398,
        1.9989411165,
        2.1983077939,
        2.2249662883,
        2.3888215509,
        2.5757345199,
        2.4296213742,
        2.6346059749,
    ],
    "ndcg": [0.1833333333, 0.1656790444, 0.1965323606, 0.2484156909, 0.3022976805],
    "precision": [0.1833333333, 0.15, 0.1666666667, 0.2, 0.2066666667],
    "psndcg": [0.1744415875, 0.1646196492, 0.1967228283, 0.2522227075, 0.3048582776],
    "psprecision": [0.1744415875, 0.1746891513, 0.2352463487, 0.3461742301, 0.4449927192],
    "recall": [0.0527777778, 0.1152777778, 0.2097222222, 0.3263888889, 0.4416666667],
}


def draw(seed, n_documents=60, n_classes=12, n_ranked=6, least=0):
    """Return true sets (some empty unless `least` is 1), rankings, and training sets."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, n_classes + 1)

    def sets(n, least):
        sizes = rng.integers(least, 5, n)
        return [
            sorted(
                rng.choice(n_classes, size, replace=False, p=popularity / popularity.sum()).tolist()
            )
            for size in sizes
        ]

    truth, train = sets(n_documents, least), sets(200, 1)
    ranking = np.array([rng.permutation(n_classes)[:n_ranked] for _ in range(n_documents)])
    return truth, ranking, train


def oracle(truth, ranking, inverse, k):
    """Every measure at k in plain loops; `None` in a ranking is a place without a candidate."""
    totals = dict.fromkeys(("p", "r", "f1", "ndcg", "rp"), 0.0)
    gain = best = ps_gain = ps_best = 0.0
    for labels, ranked in zip(truth, ranking, strict=True):
        first = list(ranked)[:k]
        found = [c for c in first if c in labels]
        n_predicted = sum(c is not None for c in first)
        totals["p"] += len(found) / k
        totals["r"] += len(found) / len(labels) if labels else 0
        if n_predicted + len(labels):
            totals["f1"] += 2 * len(found) / (n_predicted + len(labels))
        ideal = sum(1 / math.log2(i + 2) for i in range(min(k, len(labels))))
        dcg = sum(1 / math.log2(i + 2) for i, c in enumerate(first) if c in labels)
        totals["ndcg"] += dcg / ideal if labels else 0
        head = list(ranked)[: len(labels)]
        totals["rp"] += sum(c in labels for c in head) / len(labels) if labels else 0
        gain += sum(inverse[c] for c in found)
        ordered = sorted((inverse[c] for c in labels), reverse=True)[:k]
        best += sum(ordered)
        if labels:
            ps_gain += (
                sum(inverse[c] / math.log2(i + 2) for i, c in enumerate(first) if c in labels)
                / ideal
            )
            ps_best += sum(value / math.log2(i + 2) for i, value in enumerate(ordered)) / ideal
    n_labelled = sum(map(bool, truth)) or math.nan
    means = {
        name: total / (len(truth) if name in ("p", "f1") else n_labelled)
        for name, total in totals.items()
    }
    both = means["p"] + means["r"]
    means["f1_of_means"] = 2 * means["p"] * means["r"] / both if both else 0.0
    return means | {
        "psp": gain / best if best else 0,
        "psndcg": ps_gain / ps_best if ps_best else 0,
    }


def measure(ranked, propensity, k):
    return {
        "p": metrics.precision_at_k(ranked, k=k),
        "r": metrics.recall_at_k(ranked, k=k),
        "f1": metrics.f1_at_k(ranked, k=k),
        "f1_of_means": metrics.f1_at_k_of_means(ranked, k=k),
        "ndcg": metrics.ndcg_at_k(ranked, k=k),
        "rp": metrics.r_precision(ranked),
        "psp": metrics.psp_at_k(ranked, propensity=propensity, k=k),
        "psndcg": metrics.psndcg_at_k(ranked, propensity=propensity, k=k),
    }


@examples(60)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_rankings_equal_loops(seed, k, masked):
    truth, ranking, _ = draw(seed, n_documents=int(seed % 9) + 1)
    rng = np.random.default_rng(seed)
    propensity = rng.uniform(0.05, 1.0, 12)
    valid = rng.random(ranking.shape) < (0.7 if masked else 2)
    classes = np.arange(12)
    sizes = np.array([len(labels) for labels in truth])
    sets = LabelSets(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array([c for labels in truth for c in labels], np.int64),
        classes,
    )
    ranked = metrics.RankedSets.compare(sets, TopK(ranking, np.where(valid, 1.0, -np.inf)))
    shown = [
        [c if ok else None for c, ok in zip(row, mask, strict=True)]
        for row, mask in zip(ranking.tolist(), valid.tolist(), strict=True)
    ]
    assert measure(ranked, propensity, k) == pytest.approx(
        oracle(truth, shown, (1 / propensity).tolist(), k), nan_ok=True
    )


def test_rankings_equal_napkinxc():
    truth, ranking, train = draw(3, least=1)
    matrix = sp.csr_array(np.array([np.isin(np.arange(12), s) for s in truth]).astype(int))
    class_sizes = np.bincount([c for labels in train for c in labels], minlength=12)
    propensity = metrics.propensities(class_sizes, len(train))
    assert 1 / propensity == pytest.approx(NAPKINXC["inverse_propensity"])
    ranked = metrics.RankedSets.compare(matrix, ranking)
    names = {"p": "precision", "r": "recall", "ndcg": "ndcg", "psp": "psprecision"}
    for k in range(1, 6):
        ours = measure(ranked, propensity, k)
        for name, theirs in (names | {"psndcg": "psndcg"}).items():
            assert ours[name] == pytest.approx(NAPKINXC[theirs][k - 1]), name


def test_unknown_labels_and_missing_candidates():
    top = TopK(np.array([["b", "q", ""]]), np.array([[2.0, 1.0, -np.inf]]))
    ranked = metrics.RankedSets.compare([["a", "b", "new"]], top)
    assert ranked.ranking.tolist() == [[1, OTHER_CLASS, NO_CLASS]]
    assert metrics.precision_at_k(ranked, k=3) == pytest.approx(1 / 3)
    assert metrics.f1_at_k(ranked, k=3) == pytest.approx(2 / 5)  # two predicted, three true
    assert metrics.r_precision([["a"], ["b"]], [["b", "a"], ["b", "a"]]) == 0.5


@examples(40)
@given(st.integers(0, 10_000))
def test_sets_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth, predicted, _ = draw(seed, n_documents=25)[0], draw(seed + 1, n_documents=25)[0], None
    for labels, other in zip(predicted, truth, strict=True):
        if rng.random() < 0.4:
            labels[:] = other
    one, two = (
        np.array([np.isin(np.arange(12), s) for s in sets]).astype(int)
        for sets in (truth, predicted)
    )
    occurs = (one.sum(axis=0) + two.sum(axis=0)) > 0
    found = metrics.score_label_sets(truth, predicted)
    assert found.micro_f1 == pytest.approx(f1_score(one, two, average="micro", zero_division=0))
    per_class = f1_score(one, two, average=None, zero_division=0)
    assert found.macro_f1 == pytest.approx(per_class[occurs].mean())
    assert found.mean_f1 == pytest.approx(f1_score(one, two, average="samples", zero_division=1))
    assert found.exact == pytest.approx(np.mean((one == two).all(axis=1)))
    assert found.precision * two.sum() == pytest.approx((one & two).sum())
    assert found.recall * one.sum() == pytest.approx((one & two).sum())
    assert found.mean_size == two.sum() / 25
    assert metrics.score_label_sets(sp.csr_array(one), sp.csr_array(two)) == found


def test_sets_without_any_label():
    nothing = metrics.score_label_sets([["a"], ["b"]], [[], []])
    assert (nothing.micro_f1, nothing.precision, nothing.mean_f1) == (0.0, 0.0, 0.0)
    assert metrics.score_label_sets([["a"], []], [["a"], []]).mean_f1 == 1.0


def test_bands():
    truth = [["one", "few"], ["few", "new"], ["most"]]
    ranking = [["few", "one"], ["new", "most"], ["other", "few"]]
    sizes = {"one": 1, "few": 5, "most": 101, "other": 50}
    bands = {
        band.name: band
        for band in metrics.label_frequency_report(
            metrics.RankedSets.compare(truth, ranking), sizes, k=2
        )
    }
    assert list(bands) == ["never seen", "1", "2-5", "6-20", "21-100", "more"]
    assert (bands["never seen"].n_classes, bands["never seen"].recall) == (1, 1.0)
    assert bands["2-5"].recall == 0.5
    assert bands["2-5"].precision == 0.5  # ranked twice
    assert bands["2-5"].macro_f1 == 0.5
    assert (bands["more"].recall, bands["more"].precision) == (0.0, 0.0)
    assert math.isnan(bands["6-20"].recall)
    assert sum(band.n_labels for band in bands.values()) == 5


@examples(40)
@given(st.integers(0, 10_000))
def test_curve_equals_loops(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (8, 3)) / 5  # ties, and places without a candidate
    correct = rng.random((8, 3)) < values
    curve = metrics.label_curve(values, correct, n_true=30)
    assert curve.thresholds.tolist() == sorted({v for v in values.ravel() if v > 0}, reverse=True)
    for i, threshold in enumerate(curve.thresholds):
        kept = values >= threshold
        assert curve.precision[i] == pytest.approx(correct[kept].mean())
        assert curve.recall[i] == pytest.approx(correct[kept].sum() / 30)
        assert curve.coverage[i] == pytest.approx(kept.any(axis=1).mean())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.precision_at_k([["a"]], [["a"]], k=2), "k must be from 1 to 1"),
        (lambda: metrics.precision_at_k([["a"]], [["a"], ["b"]]), "a row for each"),
        (lambda: metrics.precision_at_k([["a"]], [[1]], k=1), "same type"),
        (lambda: metrics.precision_at_k([["a", "a"]], [["a"]], k=1), "twice"),
        (lambda: metrics.psp_at_k([["a"]], [["a"]], propensity=[0.5, 1], k=1), "one value for"),
        (lambda: metrics.psp_at_k([["a"]], [["a"]], propensity=[0.0], k=1), "above 0"),
        (lambda: metrics.propensities([1], 0), "n_documents must be at least 1"),
        (lambda: metrics.score_label_sets([["a"]], [["a"], ["b"]]), "got 1 and 2"),
        (lambda: metrics.label_curve([0.5], [True], 1), "two dimensions"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
