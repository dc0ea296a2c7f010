"""`bench beyond-memory`: a set under a memory limit; a stopped run goes on where it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
from longtail_bench.beyond_memory import TASKS, count_correct
from longtail_bench.cli.app import bench
from typer.testing import CliRunner

SIZES = ["--documents", "900", "--classes", "40", "--partitions", "3", "--memory-limit", "2GB"]


def run(scratch, *words):
    done = CliRunner().invoke(
        bench, ["beyond-memory", "--scratch", str(scratch), *SIZES, *words, "--json"]
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_set_is_fitted_and_predicted_under_a_limit(tmp_path):
    row = run(tmp_path)
    assert row["stages"]["reading"]["n_tasks"] == 3
    assert row["stages"]["predicting"]["n_tasks"] == 4
    assert 0.5 < row["accuracy"] <= 1.0
    assert 50 < row["fit_megabytes"] < 2000  # an interpreter with its libraries, and the limit
    assert row["cpu_seconds"] > 0
    fitted = (tmp_path / TASKS["fit"]).read_text()
    assert run(tmp_path)["accuracy"] == row["accuracy"]
    assert (tmp_path / TASKS["fit"]).read_text() == fitted  # no task was run again


def test_a_document_is_correct_where_its_class_comes_first(tmp_path):
    lines = [{"line": i, "classes": [c], "probabilities": [1.0]} for i, c in enumerate([4, 2, 0])]
    (tmp_path / "part-0.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert count_correct(tmp_path, [lambda: (None, np.array([4, 1, 0]))]) == pytest.approx(2 / 3)
