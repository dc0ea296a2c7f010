"""`longtail bench honesty`: the default beside its simpler selves."""

import json

import numpy as np
import pytest
from benchmark_data import write_counts
from longtail_bench.ablation import (
    VARIANTS,
    ConfiguredClassifier,
    choose_variants,
    run_ablation,
)
from longtail_bench.baselines import NearestCentroid
from longtail_bench.data import load_counts
from longtail_bench.honesty import (
    DEFAULT,
    OTHERS,
    SIMPLER,
    HonestyRow,
    find_distances,
    list_settings,
    run_honesty,
)

from longtail import LongTailClassifier
from tests.conftest import assert_same_predictions, make_problem


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    path = tmp_path_factory.mktemp("data") / "letters"
    return write_counts(path, problem.X, problem.y, 220)


def test_the_default_configuration_is_the_estimator(problem):
    configured = ConfiguredClassifier({}, random_state=3).fit(problem.X, problem.y)
    classifier = LongTailClassifier(random_state=3).fit(problem.X, problem.y)
    assert_same_predictions(configured, classifier, problem.X)


def test_an_estimator_from_a_state_is_fitted(problem):
    classifier = LongTailClassifier(random_state=3).fit(problem.X, problem.y)
    again = LongTailClassifier.from_state(classifier.state_, candidates=5)
    assert again.candidates == 5
    assert_same_predictions(
        again, LongTailClassifier.from_state(classifier.state_, candidates=5), problem.X
    )
    with pytest.raises(ValueError, match="features"):
        again.predict(np.ones((1, problem.X.shape[1] + 1)))


def test_the_cosine_alone_ranks_like_nearest_centroid(folder):
    data = load_counts(folder)
    simple = ConfiguredClassifier(SIMPLER["nearest centroid"]).fit(data.X_train, data.y_train)
    centroid = NearestCentroid(sublinear=True).fit(data.X_train, data.y_train)
    same = simple.predict_topk(data.X_test, 1).classes[:, 0] == centroid.predict(data.X_test)
    assert same.mean() > 0.9


def test_every_variant_runs(folder):
    results = [result for _, result in run_ablation(load_counts(folder), (0,))]
    assert [result.system for result in results] == list(VARIANTS)
    assert len({result.accuracy for result in results}) > 1


def test_variants_by_name(folder, tmp_path):
    from longtail_bench.cli.app import bench
    from typer.testing import CliRunner

    out = tmp_path / "rows.jsonl"
    arguments = ["ablation", str(folder), "--seeds", "0", "--out", str(out), "--variants"]
    result = CliRunner().invoke(bench, [*arguments, "nearest centroid; cosine only"])
    assert result.exit_code == 0, result.output
    systems = [json.loads(line)["system"] for line in out.read_text().splitlines()]
    assert systems == ["nearest centroid", "cosine only"]
    with pytest.raises(ValueError, match="no variant 'cosine'; there are: LongTailClassifier;"):
        choose_variants("cosine")


def test_rows_of_every_setting(folder):
    data = load_counts(folder)
    heard = []
    rows = run_honesty("letters", data, on_row=heard.append)
    assert rows == heard
    held = [row.setting for row in rows if row.split == "held-out"]
    assert held == list(list_settings())
    tested = {row.setting: row for row in rows if row.split == "test"}
    assert {DEFAULT, "no residuals", "nearest centroid"} <= set(tested)
    assert len(set(tested) & set(OTHERS)) <= 1
    classifier = LongTailClassifier(random_state=0).fit(data.X_train, data.y_train)
    assert tested[DEFAULT].accuracy == classifier.score(data.X_test, data.y_test)
    top = classifier.predict_topk(data.X_test, 20).classes
    recall = np.mean((top == data.y_test[:, None]).any(axis=1))
    assert tested[DEFAULT].candidate_recall == pytest.approx(recall)


def row(setting, split, accuracy, macro_f1):
    return HonestyRow("a", setting, split, 0, accuracy, macro_f1, 0.9, 1.0, [])


def test_distances_are_on_test_documents_and_the_search_is_not():
    rows = [
        row(DEFAULT, "held-out", 0.5, 0.5),
        row("no residuals", "held-out", 0.4, 0.4),
        row("C = 3", "held-out", 0.6, 0.5),
        row(DEFAULT, "test", 0.5, 0.5),
        row("no residuals", "test", 0.7, 0.4),
        row("C = 3", "test", 0.45, 0.55),
    ]
    (first, best), (second, simpler) = find_distances(rows)
    assert (first, best.best) == ("best on held-out", "C = 3")
    assert (best.accuracy, best.macro_f1) == pytest.approx((-0.05, 0.05))
    assert (second, simpler.best) == ("best simpler self", "no residuals")
    assert (simpler.accuracy, simpler.macro_f1) == pytest.approx((0.2, -0.1))


def test_the_command(folder, tmp_path):
    pytest.importorskip("typer")
    from longtail_bench.cli.app import bench
    from typer.testing import CliRunner

    out = tmp_path / "rows.jsonl"
    arguments = ["honesty", str(folder), "--threads", "1", "--out", str(out)]
    result = CliRunner().invoke(bench, arguments)
    assert result.exit_code == 0, result.output
    assert "best simpler self, seed 0" in result.stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0]["setting"] == DEFAULT
    assert [band["name"] for band in rows[0]["bands"]][:2] == ["1", "2-5"]
