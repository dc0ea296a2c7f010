"""`longtail bench calibration`: what thresholds keep, against what was asked for."""

import json

import numpy as np
import pytest
from benchmark_data import write_counts
from longtail_bench.data import load_counts
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.measure import measure_reliability
from typer.testing import CliRunner

from longtail import LongTailClassifier
from longtail._labels import LabelSets
from longtail.cli.app import app
from tests.conftest import make_problem


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    problem = make_problem(n_documents=1500, n_classes=20, n_terms=60)
    path = tmp_path_factory.mktemp("data") / "letters"
    return write_counts(path, problem.X, problem.y, 1000)


def test_what_thresholds_keep_is_counted_on_the_test_part(folder):
    data = load_counts(folder)
    found = measure_reliability(LongTailClassifier(random_state=0), data, (0.5, 0.8))
    model = LongTailClassifier(random_state=0).fit(data.X_train, data.y_train)
    top = model.predict_proba_topk(data.X_test, 1)
    correct = top.classes[:, 0] == data.y_test
    assert found.accuracy == correct.mean()
    assert [(row.asked, row.each) for row in found.kept] == [
        (0.5, False), (0.5, True), (0.8, False), (0.8, True)
    ]  # fmt: skip
    for row in found.kept:
        kept = model.threshold_for(row.asked, each=row.each).keeps(top)[:, 0]
        assert row.n_kept == kept.sum() > 0
        assert row.precision == correct[kept].mean()
        assert row.lowest == top.scores[kept].min() >= row.asked / (1 if row.each else 2)


def test_labels_of_sets_are_counted_one_by_one(folder):
    data = load_counts(folder)
    train, test = (
        LabelSets(
            np.arange(0, 2 * len(y) + 1, 2),
            np.stack([y, 20 + y % 2], axis=1).ravel(),
            np.arange(22),
        )
        for y in (data.y_train, data.y_test)
    )
    sets = LabelSetDataset(data.X_train, train, data.X_test, test, 22, None, None)
    found = measure_reliability(LongTailClassifier(random_state=0), sets, (0.8,))
    model = LongTailClassifier(random_state=0).fit(data.X_train, train.to_lists())
    predicted = model.predict(data.X_test, threshold=model.threshold_for(0.8))
    truth = test.to_lists()
    hits = [label in true for some, true in zip(predicted, truth, strict=True) for label in some]
    assert found.kept[0].n_kept == len(hits) > len(truth)
    assert found.kept[0].precision == np.mean(hits)
    assert found.kept[0].coverage == len(hits) / len(truth)


def test_the_command_prints_and_writes(folder, tmp_path):
    out = tmp_path / "rows.jsonl"
    arguments = ["bench", "calibration", str(folder), "--seeds", "0", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    [row] = map(json.loads, out.read_text().splitlines())
    assert (row["data"], len(row["kept"])) == ("letters", 10)
