"""What `evaluate` computes and draws, against loops over the documents."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm, sem

from longtail import DoubleSamplingClassifier, LongTailClassifier, metrics
from longtail.cli.findings import Section, describe_worst, find
from longtail.cli.report import ReportPage, html_report
from longtail.metrics.evaluation import TOP, evaluate
from longtail.plotting import plot_explanation, rank_terms
from longtail.results import Explanation, TopK
from tests.conftest import make_problem

pytest.importorskip("matplotlib")


def test_reliability_and_curve():
    rng = np.random.default_rng(0)
    chances = rng.integers(0, 21, 300) / 20  # many ties, and both ends
    right = rng.random(300) < chances
    bins = metrics.reliability(chances, right, n_bins=4)
    assert sum(part.n_documents for part in bins) == 300
    for part in bins:
        inside = [
            i
            for i, chance in enumerate(chances)
            if part.lowest <= chance < part.highest or (part.highest == 1 and chance == 1)
        ]
        assert part.n_documents == len(inside)
        assert part.mean_probability == pytest.approx(np.mean(chances[inside]))
        assert part.accuracy == pytest.approx(np.mean(right[inside]))
    curve = metrics.precision_curve(chances, right)
    assert curve.thresholds.tolist() == sorted(set(chances.tolist()), reverse=True)
    for threshold, coverage, precision in zip(
        curve.thresholds, curve.coverage, curve.precision, strict=True
    ):
        kept = [i for i in range(300) if chances[i] >= threshold]
        assert coverage == pytest.approx(len(kept) / 300)
        assert precision == pytest.approx(np.mean(right[kept]))
    gap = sum(
        part.n_documents * abs(part.accuracy - part.mean_probability)
        for part in metrics.reliability(chances, right, 15)
        if part.n_documents
    )
    assert metrics.expected_calibration_error(chances, right) == pytest.approx(gap / 300)


def test_an_empty_bin_is_not_a_number():
    low, high = metrics.reliability([0.1], [True], n_bins=2)
    assert low.accuracy == 1
    assert high.n_documents == 0
    assert math.isnan(high.accuracy)
    with pytest.raises(ValueError, match="probabilities must be from 0 to 1"):
        metrics.reliability([1.5], [True])
    with pytest.raises(ValueError, match="same length"):
        metrics.precision_curve([0.5], [True, False])


def test_most_confused():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 5, 200).astype(str), rng.integers(0, 5, 200).astype(str)
    pairs = Counter(
        (t, p) for t, p in zip(true.tolist(), predicted.tolist(), strict=True) if t != p
    )
    expected = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:7]
    found = metrics.most_confused(true, predicted, n=7)
    assert [((c.true, c.predicted), c.n_documents) for c in found] == expected
    assert all(c.n_true == np.count_nonzero(true == c.true) for c in found)
    assert metrics.most_confused(["a"], ["a"]) == []


def test_confused_pairs_count_both_directions():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 5, 200).astype(str), rng.integers(0, 5, 200).astype(str)
    wrong = Counter(
        (t, p) for t, p in zip(true.tolist(), predicted.tolist(), strict=True) if t != p
    )
    both = {tuple(sorted(pair)): wrong[pair] + wrong[pair[::-1]] for pair in wrong}
    expected = sorted(both.items(), key=lambda item: (-item[1], item[0]))[:4]
    found = metrics.confused_pairs(true, predicted, n=4)
    assert [(tuple(sorted((c.first, c.second))), c.n_confused) for c in found] == expected
    for pair in found:
        assert pair.n_first_as_second == wrong[pair.first, pair.second]
        assert pair.n_second_as_first == wrong[pair.second, pair.first]
        assert pair.n_first_as_second >= pair.n_second_as_first
        assert pair.n_first == np.count_nonzero(true == pair.first)
    assert metrics.confused_pairs(["a"], ["a"]) == []


def test_classes_to_merge_are_confused_both_ways():
    both_ways = metrics.confused_pairs(["a"] * 4 + ["b"] * 4, list("aabb") + list("bbba"))
    assert both_ways[0].may_be_one
    one_way = metrics.confused_pairs(["a"] * 4 + ["b"] * 4, list("abbb") + list("bbbb"))
    assert not one_way[0].may_be_one


def test_confused_labels_of_sets_by_hand():
    """A missed label stands beside every wrong one of the same document.

    Document 0 misses a and is given c and d; 1 misses a and is given c; 2 misses c and is given a;
    3 misses b and is given nothing wrong; 4 misses nothing and is given d; 5 has no label.
    """
    true = [["a", "b"], ["a"], ["c", "b"], ["a", "b"], ["b"], []]
    predicted = [["b", "c", "d"], ["c"], ["a", "b"], ["a"], ["b", "d"], ["c"]]
    first, second = metrics.confused_pairs(true, predicted)
    assert first == metrics.ConfusedPair("a", "c", 2, 1, n_first=3, n_second=1)
    assert first.may_be_one
    assert second == metrics.ConfusedPair("a", "d", 1, 0, n_first=3, n_second=0)
    assert metrics.confused_pairs(true, predicted, n=1) == [first]
    assert metrics.most_confused(true, predicted)[0] == metrics.Confusion("a", "c", 2, 3)


def test_one_label_is_a_set_of_one():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 5, (2, 200)).astype(str).tolist()
    as_sets = [[[label] for label in labels] for labels in (true, predicted)]
    assert metrics.confused_pairs(*as_sets) == metrics.confused_pairs(true, predicted)
    assert metrics.most_confused(*as_sets) == metrics.most_confused(true, predicted)


def draw(result):
    return {name: figure() for name, figure in find(result).figures.items()}


@pytest.mark.parametrize(
    ("missed", "said"),
    [
        ([0, 0], "no mistakes"),
        ([3, 1], "2 classes have all mistakes"),
        ([3], "1 class has all mistakes"),
        ([30, 20, 10, 30, 10], "three classes make 80% of the mistakes"),
        ([1] * 100, "the mistakes are spread over 100 classes"),
    ],
)
def test_the_headline_says_where_the_mistakes_are(missed, said):
    classes = [metrics.ClassResult(i, 9, 50, 50, 50 - n) for i, n in enumerate(missed)]
    assert describe_worst(classes, "mistakes") == said


def test_what_each_precision_costs(fitted):
    classifier, X, y = fitted
    choices = evaluate(classifier, [(X, y)], precision=0.8).certainty.choices
    assert [choice.wanted for choice in choices] == [0.8, 0.95, 0.98, 0.99]
    for choice in choices:
        kept = classifier.threshold_for(choice.wanted).keeps(classifier.predict_proba_topk(X, 1))
        assert choice.coverage == kept[:, 0].mean()


def test_mistakes_say_where_documents_come_from(fitted):
    classifier, X, y = fitted
    where = [f"ticket {i}" for i in range(len(X))]
    chunks = [(X[:50], y[:50], where[:50]), (X[50:], y[50:], where[50:])]
    found = evaluate(classifier, chunks, n_mistakes=3).mistakes
    assert [mistake.reference for mistake in found] == [where[m.document_id] for m in found]
    heard = []
    evaluate(classifier, chunks, on_predicted=lambda labels, top, _: heard.append((labels, top)))
    assert [len(top.classes) for _, top in heard] == [50, len(X) - 50]


@pytest.fixture(scope="module")
def fitted():
    problem = make_problem(2, n_documents=900)
    labels = np.array([f"class {y}" for y in problem.y])
    classifier = LongTailClassifier(random_state=0).fit(problem.X[:800], labels[:800])
    return classifier, problem.X[800:], labels[800:]


def test_evaluation(fitted):
    classifier, X, y = fitted
    labels = y.tolist()
    labels[0] = "never seen"
    chunks = [(X[:33], labels[:33]), (X[33:], labels[33:])]
    result = evaluate(classifier, chunks, precision=0.8, n_confusions=3)
    predicted = classifier.predict(X).tolist()
    assert {type(pair.first) for pair in result.confusions} == {str}
    assert result.n_documents == 100
    assert result.n_unknown == 1
    known = [p == t for p, t in zip(predicted[1:], labels[1:], strict=True)]
    assert result.accuracy_known == pytest.approx(np.mean(known))
    assert any(
        "1.0% of the documents have classes" in remark for remark in result.certainty.remarks
    )
    assert any("threshold expects none of them" in remark for remark in result.certainty.remarks)
    assert any("--unknown 0.01 makes" in remark for remark in result.certainty.remarks)
    told = evaluate(classifier, chunks, unknown=0.01).certainty.remarks
    assert any(remark.endswith("the threshold expects 1.0% of them.") for remark in told)
    # What a fit promises is of known classes, and so is what is put beside it.
    top = classifier.predict_proba_topk(X[1:], 20)
    hits = top.classes == y[1:, None]
    assert result.measures == pytest.approx(
        {
            "accuracy": result.accuracy_known,
            "macro_f1": metrics.macro_f1(labels[1:], predicted[1:]),
            **{f"top_{k}": hits[:, :k].any(axis=1).mean() for k in TOP[1:]},
            "calibration_error": metrics.expected_calibration_error(top.scores[:, 0], hits[:, 0]),
        }
    )
    assert any("too few to judge" in remark for remark in result.certainty.remarks)
    low, high = result.certainty.calibration_interval
    assert low <= result.certainty.calibration_error <= high
    assert result.accuracy == np.mean([p == t for p, t in zip(predicted, labels, strict=True)])
    assert result.macro_f1 == metrics.macro_f1(labels, predicted)
    assert result.macro_f1_of_means == metrics.macro_f1_of_means(labels, predicted)
    assert list(result.top) == list(TOP)
    assert result.top[1] == result.accuracy
    assert result.top[20] == 0.99  # fewer classes than that, so only the unknown one is missed
    ranking = classifier.predict_topk(X, 3).classes
    assert result.top[3] == metrics.top_k_accuracy(labels, ranking)
    assert sum(band.n_documents for band in result.bands) == 99
    assert len(result.confusions) <= 3
    chances = classifier.predict_proba_topk(X, 1).scores[:, 0]
    right = np.array(predicted) == np.array(labels)
    assert result.certainty.calibration_error == metrics.expected_calibration_error(chances, right)
    abstention = result.certainty.abstention
    kept = chances >= classifier.threshold_for(0.8)
    assert abstention.threshold == classifier.threshold_for(0.8).threshold
    assert abstention.coverage == kept.mean()
    assert abstention.precision == right[kept].mean()


def test_padding_is_never_right():
    """A ranking of one candidate, padded with the first class, which is the true one."""
    classifier = SimpleNamespace(
        classes_=np.array(["a", "b"]),
        statistics_=SimpleNamespace(class_sizes=np.array([1, 1])),
        predict_proba_topk=lambda X, k: TopK(
            np.array([["b"] + ["a"] * (k - 1)]),
            np.array([[0.7] + [0.0] * (k - 1)]),
            np.array([[True] + [False] * (k - 1)]),
        ),
        threshold_for=lambda precision: 0.9,
    )
    result = evaluate(classifier, [([[1]], ["a"])])
    assert result.top == dict.fromkeys(TOP, 0.0)
    assert result.certainty.abstention.coverage == 0
    assert math.isnan(result.certainty.abstention.precision)
    assert set(draw(result)) == {"frequency", "calibration", "precision"}


def test_without_probabilities(fitted):
    _, X, y = fitted
    classifier = DoubleSamplingClassifier(random_state=0).fit(X, y)
    result = evaluate(classifier, [(X, y)])
    assert result.certainty is None
    assert set(draw(result)) == {"frequency"}


def test_no_threshold_and_no_documents(fitted):
    classifier, X, y = fitted
    few = LongTailClassifier(random_state=0).fit(X[:20], y[:20])
    assert evaluate(few, [(X, y)]).certainty.abstention is None
    with pytest.raises(ValueError, match="no documents to evaluate"):
        evaluate(classifier, [])


def test_intervals():
    for n_correct, n in ((0, 7), (3, 7), (7, 7), (450, 1000)):
        expected = binomtest(n_correct, n).proportion_ci(method="wilson")
        assert metrics.wilson_interval(n_correct / n, n) == pytest.approx(tuple(expected))
    assert metrics.wilson_interval(float("nan"), 0) == (0, 1)
    with pytest.raises(ValueError, match="share must be from 0 to 1"):
        metrics.wilson_interval(1.5, 3)
    values = np.random.default_rng(0).random(50)
    low, high = metrics.mean_interval(values)
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.975) * sem(values))
    assert metrics.mean_interval([0.5]) == (0, 1)
    for value in (0.0, 1.0):  # 47 documents that are all alike leave room for others
        expected = pytest.approx(metrics.wilson_interval(value, 47))
        assert metrics.mean_interval(np.full(47, value)) == expected
        assert metrics.ratio_interval(np.full(47, 2 * value), np.full(47, 2)) == expected
    with pytest.raises(ValueError, match="list of numbers"):
        metrics.mean_interval([])


def test_every_class_is_reported():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 6, (2, 60)).astype(str)
    sizes = {"0": 3, "1": 1}
    found = metrics.class_report(true, predicted, sizes)
    assert [result.label for result in found] == sorted(set(true) | set(predicted))
    for result in found:
        both = np.count_nonzero((true == result.label) & (predicted == result.label))
        assert result.recall == both / np.count_nonzero(true == result.label)
        assert result.precision == both / np.count_nonzero(predicted == result.label)
        assert result.n_seen == sizes.get(result.label, 0)
    assert np.mean([result.f1 for result in found]) == pytest.approx(
        metrics.macro_f1(true, predicted)
    )
    [_, never] = metrics.class_report(["a"], ["b"], {})
    assert math.isnan(never.recall)
    assert never.f1 == 0


def test_the_surest_mistakes_are_explained(fitted):
    classifier, X, y = fitted
    labels = y.tolist()
    labels[5] = "never seen"
    chunks = [(X[:33], labels[:33]), (X[33:], labels[33:])]
    found = evaluate(classifier, chunks, n_mistakes=4).mistakes
    top = classifier.predict_proba_topk(X, 1)
    wrong = [i for i in range(100) if top.classes[i, 0] != labels[i]]
    expected = sorted(wrong, key=lambda i: -top.scores[i, 0])[:4]
    assert [mistake.document_id for mistake in found] == expected
    for mistake in found:
        i = mistake.document_id
        assert (mistake.true, mistake.predicted) == (labels[i], top.classes[i, 0])
        assert mistake.certainty == top.scores[i, 0]
        assert mistake.text is None
        assert mistake.known == (i != 5)
        [mine] = classifier.explain(X[i : i + 1], [mistake.predicted], top_terms=999)
        terms = dict(mine.terms)
        if mistake.known:
            [other] = classifier.explain(X[i : i + 1], [mistake.true], top_terms=999)
            for term, value in other.terms.items():
                terms[term] = terms.get(term, 0.0) - value
        largest = sorted(terms.values(), reverse=True)[:5]
        assert list(mistake.misleading.values()) == pytest.approx([v for v in largest if v > 0])
    assert evaluate(classifier, chunks).mistakes == []


def test_report_is_one_page_that_loads_nothing(fitted):
    classifier, X, y = fitted
    labels = y.tolist()
    labels[0] = "</script><i>&"
    result = evaluate(classifier, [(X, labels)], n_mistakes=3)
    table = Section("A <title>", ("name", "value"), [("<script>", "1.0"), ("b & c", "-2")])
    page = ReportPage("Model & data", {"date": "<i>"}, expected=table, comparison=table)
    written = html_report(page, find(result), draw(result))
    assert written.count("<svg") == written.count('role="img" aria-label="') == 3
    assert written.count("<figcaption>") == 3
    assert "Model &amp; data" in written
    assert "<dd>&lt;i&gt;</dd>" in written
    assert "<i>&" not in written
    assert "&lt;script&gt;" in written
    # The data of the table, and the script: nothing that comes from a label opens or ends one.
    assert re.findall(r"</?script[^>]*>", written) == [
        '<script type="application/json" id="classes-data">',
        "</script>",
        "<script>",
        "</script>",
    ]
    rows = json.loads(re.search(r'classes-data">(.*?)</script>', written).group(1))
    assert [row[:5] for row in rows if row[0] == labels[0]] == [[labels[0], 0, 1, 0, 0]]
    assert len(rows) == len(result.classes)
    # Namespaces look like addresses; nothing else may, and the page forbids itself the rest.
    assert "default-src 'none'" in written
    places = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', written)
    assert all(place.startswith("#") for place in places)
    ET.fromstring(re.search(r"<svg.*?</svg>", written, re.DOTALL).group())


def explanation(label, terms):
    return Explanation(
        label=label,
        score=sum(terms.values()),
        features={"cosine": 1.0, "size": -0.5},
        terms=terms,
        rest=0.0,
        constant=0.0,
        runner_up="other",
        runner_up_score=1.0,
    )


def test_explanation_figure():
    mine = explanation("$class$", {"a": 3.0, "b": 1.0, "c": 0.1})
    rival = explanation("other", {"b": 2.5, "d": 0.2})
    assert rank_terms(mine, rival) == ["a", "b", "d", "c"]
    assert rank_terms(mine, None) == ["a", "b", "c"]
    figure = plot_explanation(mine, rival, n_terms=2)
    above, below = figure.axes
    assert [label.get_text() for label in above.get_yticklabels()] == ["a", "b"]
    widths = [[bar.get_width() for bar in bars] for bars in above.containers]
    assert widths == [[3.0, 1.0], [0.0, 2.5]]
    assert [label.get_text() for label in below.get_yticklabels()] == ["cosine", "size"]
    figure.canvas.draw()  # a dollar sign must not start a formula
    plot_explanation(explanation("none", {})).canvas.draw()


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'longtail\[plot\]'"):
        plot_explanation(explanation("a", {"x": 1.0}))


def test_a_long_label_is_kept_once():
    """Arrays of labels are not all as wide as the longest one."""
    import tracemalloc

    labels = ["a"] * 20_000 + ["x" * 100_000]
    tracemalloc.start()
    assert metrics.accuracy(labels, labels) == 1.0
    assert metrics.macro_f1(labels, labels) == 1.0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_uncalibrated_probabilities_are_told():
    rng = np.random.default_rng(0)
    certain = np.full(3000, 0.95)
    correct = rng.random(3000) < 0.5
    low, high = metrics.calibration_interval(certain, correct)
    assert 0.4 < low < 0.45 < high < 0.5
    classifier = SimpleNamespace(
        classes_=np.array(["a", "b"]),
        statistics_=SimpleNamespace(class_sizes=np.array([1, 1])),
        predict_proba_topk=lambda X, k: TopK(
            np.full((3000, 1), "a"), np.full((3000, 1), 0.95), np.full((3000, 1), True)
        ),
        threshold_for=lambda precision: float("nan"),
    )
    result = evaluate(classifier, [(None, np.where(correct, "a", "b"))])
    assert "not calibrated on these documents" in result.certainty.remarks[0]
    assert result.certainty.abstention is None


def test_the_interval_of_a_calibration_error_holds_it():
    # Exact in every bin, which no sample drawn from it is.
    probabilities = np.repeat(np.arange(15) / 15 + 1 / 30, 30)
    correct = np.concatenate([np.arange(30) < 2 * k + 1 for k in range(15)])
    error = metrics.expected_calibration_error(probabilities, correct)
    low, high = metrics.calibration_interval(probabilities, correct)
    assert error < 1e-12
    assert low <= error < high


def test_probabilities_of_one_document_are_drawn_together():
    """Ten copies of each pair say no more than one: pair by pair the interval is too narrow."""
    rng = np.random.default_rng(0)
    probabilities = rng.random(60)
    correct = rng.random(60) < probabilities
    alone = metrics.calibration_interval(probabilities, correct)
    copies = [np.repeat(values, 10) for values in (probabilities, correct, np.arange(60))]
    together = metrics.calibration_interval(*copies[:2], documents=copies[2])
    assert together == pytest.approx(alone, abs=1e-12)
    low, high = metrics.calibration_interval(*copies[:2])
    assert high - low < (together[1] - together[0]) / 1.5
