"""`longtail bench speed | growth`: what is measured is the right thing; how long it took is not."""

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from benchmark_data import write_counts
from hypothesis import given
from hypothesis import strategies as st
from longtail_bench import searching, speed
from longtail_bench.growth import QUANTITIES, fit_exponents, run_growth
from longtail_bench.jobs import run_job
from longtail_bench.processes import Limits, RunError
from longtail_bench.stages import time_stages
from longtail_bench.synthetic import draw_class_sizes, draw_counts, zipf

from longtail._progress import StageReporter
from longtail.sparse import CountMatrix
from tests.conftest import examples, make_problem

N_CLASSES = 200


@pytest.fixture(scope="module")
def data():
    return draw_counts(N_CLASSES, n_test=60)


@pytest.fixture(scope="module", params=list(speed.ESTIMATORS))
def classifier(request, data):
    return speed.ESTIMATORS[request.param](random_state=0).fit(data.X_train, data.y_train)


# ---- synthetic sets


def test_synthetic_sets_are_the_same_for_a_seed():
    one, other = draw_counts(50, seed=3), draw_counts(50, seed=4)
    again = draw_counts(50, seed=3)
    assert (one.X_train != again.X_train).nnz == (one.X_test != again.X_test).nnz == 0
    assert np.array_equal(one.y_train, again.y_train)
    assert not np.array_equal(one.y_train, other.y_train)


def test_synthetic_sets_are_long_tailed_and_canonical(data):
    sizes = np.bincount(data.y_train, minlength=N_CLASSES)
    assert sizes.min() >= 1
    assert sizes.sum() == 5 * N_CLASSES
    assert np.mean(sizes <= 5) > 0.6
    # Spread evenly, a tenth of the classes would have a tenth of the documents.
    assert np.sort(sizes)[-N_CLASSES // 10 :].sum() > sizes.sum() / 3
    occurrences = np.sort(data.X_train.sum(axis=0))[::-1]
    assert occurrences[: len(occurrences) // 100].sum() > occurrences.sum() / 4
    for X in (data.X_train, data.X_test):
        X.check_format(full_check=True)
        assert X.has_canonical_format
        assert np.shares_memory(CountMatrix.from_matrix(X).data, X.data)  # no copy is made
        assert X.sum(axis=1).min() >= 5


def test_chunks_leave_no_seam(monkeypatch):
    monkeypatch.setattr("longtail_bench.synthetic.CHUNK", 7)
    data = draw_counts(30, documents_per_class=2, n_test=3)
    data.X_train.check_format(full_check=True)
    assert data.X_train.shape[0] == 60
    assert np.diff(data.X_train.indptr).min() > 1


def test_synthetic_classes_can_be_learned(data, classifier):
    assert classifier.score(data.X_test, data.y_test) > 0.5


@given(st.integers(1, 1000), st.floats(0, 1, exclude_max=True))
def test_ranks_are_in_range(n, uniform):
    assert 0 <= zipf(np.array([uniform]), n)[0] < n


@given(st.integers(2, 60), st.integers(0, 300), st.integers(0, 9))
def test_every_class_has_a_document(n_classes, n_more, seed):
    sizes = draw_class_sizes(n_classes, n_classes + n_more, np.random.default_rng(seed))
    assert sizes.min() >= 1
    assert sizes.sum() == n_classes + n_more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "n_classes must be an integer of at least 2; got 1"),
        ((5, 0.5), "at least 1, as every"),
    ],
)
def test_synthetic_sets_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_counts(*arguments)


# ---- stages


def test_stages_last_until_the_next_and_add_up(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))

    def call():
        report = StageReporter()
        for stage in ("statistics", "mining", "mining", "statistics"):
            report(stage)
        return "fitted"

    result, total, costs = time_stages(call)
    assert result == "fitted"
    # The clock is read at the start, whenever the stage changes, and at the end.
    assert {name: cost.wall for name, cost in costs.items()} == {
        "validation": 1,
        "statistics": 2,
        "mining": 1,
    }
    assert total.wall == 4


@pytest.mark.parametrize(
    ("estimator", "stages"),
    [
        ("LongTailClassifier", {"shared weights", "mining", "calibration", "residuals", "index"}),
        ("DoubleSamplingClassifier", {"sampling", "pair features", "pairwise scorer", "index"}),
    ],
)
def test_stages_of_a_fit(estimator, stages, data):
    classifier = speed.ESTIMATORS[estimator](random_state=0)
    _, total, costs = time_stages(lambda: classifier.fit(data.X_train, data.y_train))
    assert {"validation", "statistics", *stages} <= set(costs)
    assert sum(cost.wall for cost in costs.values()) == pytest.approx(total.wall)
    total, costs = searching.time_prediction(classifier, data.X_test)
    assert {"weighting", "search", "everything else"} <= set(costs)
    assert sum(cost.wall for cost in costs.values()) == pytest.approx(total.wall)


# ---- the search against brute force


def test_brute_force_equals_the_search(classifier, data):
    search = searching.prepare_search(classifier, data.X_test)
    assert search.documents.rows.n_documents == data.X_test.shape[0]
    for asked in (search, replace(search, pruning=None), replace(search, n_candidates=N_CLASSES)):
        searching.compare_with_brute_force(asked, 1)
    classes, scores = searching.brute_force(replace(search, pruning=None), 2)()
    for document in (0, 17):
        assert_is_highest(search, document, classes[document], scores[document])


def assert_is_highest(search, document, classes, scores):
    """Score every class with plain dicts and sort."""
    rows, score = search.documents.rows, search.scorer
    entries = range(rows.indptr[document], rows.indptr[document + 1])
    weights = {rows.indices[j]: float(search.documents.weights[j]) for j in entries}
    expected = []
    for c in range(len(score.biases)):
        places = range(score.indptr[c], score.indptr[c + 1])
        product = sum(weights.get(score.indices[p], 0.0) * float(score.weights[p]) for p in places)
        line = score.biases[c] + search.documents.totals[document] * score.length_weights[c]
        expected.append((-(line + product), c))
    expected.sort()
    wanted = expected[: search.n_candidates]
    assert np.allclose(scores, [-value for value, _ in wanted], rtol=1e-9, atol=1e-12)
    assert set(classes.tolist()) == {c for _, c in wanted}


def test_a_wrong_search_is_noticed(classifier, data, monkeypatch):
    search = searching.prepare_search(classifier, data.X_test)
    find = searching.search

    def find_wrongly(*arguments, **options):
        classes, scores = find(*arguments, **options)
        scores[3, 0] = np.nextafter(scores[3, 0], np.inf)
        return classes, scores

    monkeypatch.setattr(searching, "search", find_wrongly)
    with pytest.raises(RuntimeError, match="found different classes or scores"):
        searching.compare_with_brute_force(search, 1)


@examples(10)
@given(st.integers(0, 1000))
def test_reads_are_counted(seed):
    problem = make_problem(seed, n_documents=40, n_classes=9, n_terms=30)
    classifier = speed.LongTailClassifier(candidates=4, random_state=0).fit(problem.X, problem.y)
    search = searching.prepare_search(classifier, problem.X)
    reads = searching.count_reads(replace(search, pruning=None))
    has_term = np.zeros((9, 30), bool)
    for c in range(9):
        has_term[c] = problem.X[problem.y == c].any(axis=0)
    frequencies = has_term.sum(axis=0)
    postings = ((problem.X > 0) * frequencies).sum(axis=1)
    assert reads["postings"] == pytest.approx(postings.mean())
    assert reads["postings_searched"] == reads["postings"]
    common = classifier.state_.index.dense_row_ids >= 0
    listed = ((problem.X > 0) * np.where(common, 0, frequencies)).sum(axis=1)
    n_rows = ((problem.X > 0) & common).sum(axis=1)
    assert reads["postings_read"] == pytest.approx(listed.mean())
    assert reads["byte_entries_read"] == pytest.approx((9 * 4 * np.ceil(n_rows / 4)).mean())
    assert 4 <= reads["classes_scored"] <= 9
    assert searching.count_reads(search)["postings_searched"] <= reads["postings"]


# ---- memory


def test_model_bytes_count_each_array_once(classifier):
    arrays = speed.model_arrays(classifier)
    model = classifier.state_
    assert arrays["statistics.indices"] == model.statistics.indices.nbytes
    assert arrays["index.quantized"] == model.index.quantized.nbytes
    assert not {"score.indices", "centroids.indices", "term_scores.indices"} & set(arrays)
    described = speed.describe_memory(classifier)
    assert described["model_bytes"] == sum(described["parts"].values()) == sum(arrays.values())
    assert max(arrays.values()) == next(iter(described["largest"].values()))
    assert described["file_bytes"] > arrays["statistics.indices"]


def test_floor_is_bytes_over_bandwidth():
    bandwidth = {"bytes_per_wall_second": 2e9, "bytes_per_cpu_second": 4e9}
    floor = speed.describe_floor(1000.0, bandwidth)
    assert floor["floor_bytes"] == 8000
    assert floor["floor_wall_microseconds"] == pytest.approx(4.0)
    assert floor["floor_cpu_microseconds"] == pytest.approx(2.0)


def test_bandwidth_copies_everything_with_every_number_of_threads():
    for n_threads in (1, 3):
        assert min(speed.measure_bandwidth(n_threads, 1001).values()) > 0


# ---- processes


def test_a_job_returns_json_or_says_why_not():
    limits = Limits(60.0)
    assert run_job("json:loads", {"s": '{"a": 1}'}, 1, limits) == {"a": 1}
    with pytest.raises(RunError, match="JSONDecodeError"):
        run_job("json:loads", {"s": "{"}, 1, limits)


def test_a_row_that_does_not_finish_says_so():
    (row,) = run_growth([N_CLASSES], ["longtail"], time_limit=0.2)
    assert (row["outcome"], row["error"]) == ("time", "not finished after 0.2 s")
    assert row["n_classes"] == N_CLASSES
    assert fit_exponents([row]) == []


def test_growth_of_systems_that_run_as_bench_run_does():
    ours, other = run_growth([N_CLASSES], ["paper", "centroid"], documents_per_class=3.0)
    assert (ours["error"], other["error"]) == (None, None)
    assert [row["estimator"] for row in (ours, other)] == [
        "DoubleSamplingClassifier",
        "nearest centroid",
    ]
    assert ours["sizes"] == other["sizes"]
    assert ours["memory"]["input_megabytes"] == other["memory"]["input_megabytes"]
    assert 0 < other["accuracy"] <= 1
    assert {exponent.estimator for exponent in fit_exponents([ours, other])} == set()
    for quantity in QUANTITIES:
        assert quantity.of(other) > 0
    failed = run_growth([N_CLASSES], ["centroid"], time_limit=0.2)[0]
    assert (failed["outcome"], failed["error"]) == ("time", "not finished after 0.2 s")


def growth_row(n_classes, value, outcome="ok"):
    return {
        "estimator": "a",
        "n_classes": n_classes,
        "outcome": outcome,
        "fit": {"cpu_seconds": value},
        "predict": {"cpu_microseconds": math.sqrt(value)},
        "memory": {"peak_megabytes": 5.0, "model_bytes": value**2},
    }


def test_exponents_are_those_of_a_power_law():
    rows = [growth_row(10, 10), growth_row(100, 100), growth_row(1000, 1000)]
    exponents = {exponent.quantity: exponent for exponent in fit_exponents(rows)}
    for quantity, power in {
        "fit": 1.0,
        "predict a document": 0.5,
        "peak memory": 0.0,
        "model": 2.0,
    }.items():
        assert exponents[quantity].overall == pytest.approx(power)
        assert exponents[quantity].at_the_end == pytest.approx(power)
    bent = {e.quantity: e for e in fit_exponents([*rows, growth_row(10_000, 1000)])}
    assert bent["fit"].at_the_end == 0.0
    assert 0.0 < bent["fit"].overall < 1.0
    failed = [*rows, growth_row(10_000, 1.0, "time")]
    assert fit_exponents(failed) == fit_exponents(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": ["nonsense"]}, "estimators must be among LongTailClassifier, Dou"),
        ({"n_threads": (0,)}, r"n_threads must be integers of at least 1; got \(0,\)"),
        ({"n_documents": 0}, "n_documents must be integers of at least 1"),
    ],
)
def test_speed_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        speed.run_speed([speed.EMBEDDED], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": [1]}, r"classes must be at least 2; got \[1\]"),
        ({"documents_per_class": 0.5}, "documents_per_class must be at least 1"),
        ({"systems": ["nonsense"]}, "systems must be among"),
    ],
)
def test_growth_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        run_growth(**{"classes": [10], **options})


# ---- the commands


@pytest.fixture
def bench():
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from longtail.cli.app import app

    def run(*arguments):
        result = CliRunner().invoke(app, ["bench", *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_speed_command(bench, data, tmp_path, capsys):
    from longtail_bench.cli.speed import print_speed

    X = np.vstack([data.X_train.toarray(), data.X_test.toarray()])
    y = np.concatenate([data.y_train, data.y_test])
    write_counts(tmp_path / "data" / "drawn", X, y, len(data.y_train))
    out = tmp_path / "rows.jsonl"
    arguments = ("speed", "--folder", tmp_path / "data", "--threads", "1", "--documents", "40")
    rows = json.loads(bench(*arguments, "--json", "--out", out))
    assert [json.loads(line) for line in out.read_text().splitlines()] == rows
    assert [row["estimator"] for row in rows] == list(speed.ESTIMATORS)
    for row in rows:
        assert (row["data"], row["n_threads"], row["error"]) == ("drawn", 1, None)
        assert row["sizes"] == {
            "train": 5 * N_CLASSES,
            "classes": N_CLASSES,
            "terms": X.shape[1],
            "documents": 40,
        }
        for step in ("fit", "predict"):
            for clock in ("wall_seconds", "cpu_seconds"):
                parts = sum(cost[clock] for cost in row[step]["stages"].values())
                assert parts == pytest.approx(row[step][clock])
        assert row["latency"]["calls"] == speed.N_CALLS
        assert row["search"]["postings"] >= row["search"]["postings_searched"]
        assert row["memory"]["peak_fit_megabytes"] >= row["memory"]["peak_before_megabytes"]
        assert set(row["searched_terms"]) == set(row["all_terms"])
    print_speed([*rows, {**rows[0], "error": "not finished after 1 s"}])
    table = capsys.readouterr().out
    for line in ("pair features", "brute force, all terms", "memory floor", "classes scored"):
        assert line in table
    assert "drawn, LongTailClassifier, 1 threads: not finished after 1 s" in table


def test_growth_command(bench, tmp_path):
    pytest.importorskip("matplotlib")
    figure, out = tmp_path / "growth.png", tmp_path / "rows.jsonl"
    arguments = ("growth", "--systems", "paper", "--threads", "1")
    sizes = ("--classes", f"100,{N_CLASSES}", "--documents-per-class", "3")
    result = json.loads(bench(*arguments, *sizes, "--figure", figure, "--out", out, "--json"))
    assert [row["sizes"]["train"] for row in result["rows"]] == [300, 3 * N_CLASSES]
    assert all(0 < row["accuracy"] <= 1 for row in result["rows"])
    assert {e["quantity"] for e in result["exponents"]} == {
        "fit",
        "predict a document",
        "peak memory",
        "model",
    }
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert len(out.read_text().splitlines()) == 2
    table = bench(*arguments, "--classes", "100", "--time-limit", "0.1")
    assert "not finished" in table


def test_without_data_the_embedded_set_is_used(tmp_path):
    assert speed.available_data(tmp_path / "absent") == [speed.EMBEDDED]
    write_counts(tmp_path / "letters", np.eye(4, dtype=int), np.arange(4) % 2, 2)
    assert speed.available_data(tmp_path) == ["letters"]
    with pytest.raises(FileNotFoundError, match="no data set digits"):
        speed.run_speed(["digits"], data_folder=tmp_path)
