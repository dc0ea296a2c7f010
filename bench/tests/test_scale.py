"""`bench scale`: costs are added up by stage, and the model finds the numbers behind them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from longtail_bench.cli.app import bench
from longtail_bench.scale import (
    TERMS,
    Configuration,
    ScaleRow,
    Stage,
    draw_partition,
    fit_cost_model,
    list_parts,
    measure_scale,
    read_rows,
    relative_error,
)
from typer.testing import CliRunner

from longtail.distributed import TaskReport

TRUE = {stage: 1e-6 * np.arange(1, 4) for stage in TERMS}


def make_row(*sizes):
    configuration = Configuration(*sizes)
    stages = {}
    for stage, terms in TERMS.items():
        work = terms(configuration)
        stages[stage] = Stage(float(np.dot(work, TRUE[stage][: len(work)])), 0.0, 7.0 * work[0], 1)
    return ScaleRow(configuration, 1.0, stages)


def test_the_model_finds_its_coefficients():
    sizes = [(d, k, p) for d in (1000, 5000) for k in (100, 900) for p in (2, 9)]
    model = fit_cost_model([make_row(*size) for size in sizes])
    assert model.error < 1e-6
    check = make_row(70_000, 30_000, 30)
    assert relative_error(model, check) < 1e-6
    written = model.predict(check.configuration)["mining"]["bytes_written"]
    assert written == pytest.approx(7.0 * 70_000)
    with pytest.raises(ValueError, match="at least 3"):
        fit_cost_model([make_row(*size) for size in sizes[:2]])


def test_partitions_have_every_class():
    parts = list_parts(Configuration(50, 20, 3), seed=1)
    drawn = [part() for part in parts]
    labels = np.concatenate([y for _, y in drawn])
    assert len(labels) == 50
    assert set(labels) == set(range(20))
    X, y = draw_partition(50, 20, *(0, 16), seed=1)
    assert (drawn[0][0] != X).nnz == 0
    assert np.array_equal(y, drawn[0][1])


def test_the_speedup_is_that_of_the_busiest_workers():
    stage = Stage()
    for worker, seconds in (("a", 2.0), ("b", 1.0), ("a", 1.0)):
        stage = stage.add(TaskReport("mining", "0", 9.0, seconds, 5, 7, worker))
    assert (stage.cpu_seconds, stage.longest, stage.n_tasks) == (4.0, 3.0, 3)
    alone = Stage().add(TaskReport("draws", "all", 9.0, 2.0, 0, 0, "b"))
    row = ScaleRow(Configuration(9, 3, 2, 2), 1.0, {"mining": stage, "draws": alone})
    assert row.speedup == pytest.approx(6.0 / 5.0)


def test_rows_are_read_again(tmp_path):
    rows = [make_row(1000, 100, 2), make_row(1000, 100, 4), make_row(1000, 100, 2)]
    rows[2] = replace(rows[2], seconds=2.0)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row.as_json()) + "\n" for row in rows))
    read = read_rows(path)
    assert read == {row.configuration: row for row in rows[1:]}
    sizes = ["--documents", "1000", "--classes", "100", "--partitions", "2,4"]
    done = CliRunner().invoke(bench, ["scale", *sizes, "--check", "70,10,2", "--rows", str(path)])
    assert "at least 3 configurations; got 2" in done.output  # of the three, one was measured


def test_classes_of_one_document_are_refused():
    with pytest.raises(ValueError, match="fewer than 3 documents per class"):
        measure_scale(Configuration(1000, 900, 2))
