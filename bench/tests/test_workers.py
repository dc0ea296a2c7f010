"""`bench workers`: the bits of `fit` from any number of workers, and an error where they differ."""

from __future__ import annotations

import json
import threading
from concurrent.futures import wait
from dataclasses import replace

import numpy as np
import pytest
from benchmark_data import write_counts
from longtail_bench import workers
from longtail_bench.cli.app import bench
from longtail_bench.scale import Stage
from typer.testing import CliRunner

from longtail.distributed import TaskReport
from tests.conftest import make_problem


@pytest.fixture
def letters(tmp_path):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    return write_counts(tmp_path / "data" / "letters", problem.X, problem.y, 220)


def test_a_data_set_in_this_process(letters):
    words = ["workers", "letters", "--folder", str(letters.parent), "--workers", "0"]
    done = CliRunner().invoke(bench, [*words, "--partitions", "1,5", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["n_workers"], row["n_partitions"]) for row in rows] == [(None, 1), (0, 1), (0, 5)]
    assert len({row["model"] for row in rows}) == 1
    assert len({row["predictions"] for row in rows}) == 1
    assert rows[2]["stages"]["predicting"]["n_tasks"] == 5
    assert rows[2]["stages"]["reading"]["n_tasks"] == 5
    assert rows[0]["busiest"] == rows[0]["cpu_seconds"] > 0


def test_other_bits_are_an_error(letters, monkeypatch):
    calls = iter("ab")
    monkeypatch.setattr(workers, "_digest_file", lambda _: next(calls))
    words = ["workers", str(letters), "--workers", "0", "--partitions", "2"]
    done = CliRunner().invoke(bench, words)
    assert done.exit_code == 1
    assert "other bits than those of fit: this process, shuffled, 2 partitions" in done.output


def test_the_busiest_worker_of_each_stage():
    row = workers.WorkersRow("x", 2, 4, "m", "p", 9.0, 3.0)
    for report in (
        TaskReport("mining", "0", 1.0, 2.0, 0, 0, "a"),
        TaskReport("mining", "1", 1.0, 3.0, 0, 0, "b"),
        TaskReport("index", "0", 1.0, 1.0, 0, 0, "a"),
        TaskReport("predicting", "0", 1.0, 0.5, 0, 0, "a"),
    ):
        workers._add(row.stages, report)
    assert (row.busiest, row.predict_busiest) == (4.0, 0.5)
    assert replace(row, stages={"predicting": Stage()}).busiest == 9.0
    assert row.is_same(replace(row, n_workers=1))
    assert not row.is_same(replace(row, predictions="other"))


def test_tasks_in_another_order():
    order, submitted = [], threading.Event()
    with workers.ShuffledExecutor(seed=1) as executor:
        executor.submit(submitted.wait)
        futures = [executor.submit(order.append, i) for i in range(50)]
        failing = executor.submit(lambda: 1 / 0)
        submitted.set()
        wait([*futures, failing])
    assert sorted(order) == list(range(50))
    assert order != sorted(order)
    assert isinstance(failing.exception(), ZeroDivisionError)


def test_parts_hold_all_documents(letters, tmp_path):
    documents = workers.load_documents(letters, share=0.5)
    assert documents.X.shape[0] == 110
    parts = workers.write_parts(tmp_path / "parts", 3, documents.X, documents.y)
    read = [part() for part in parts]
    assert np.array_equal(np.concatenate([y for _, y in read]), documents.y)
    assert sum(X.shape[0] for X, _ in read) == 110
    with pytest.raises(ValueError, match="share must be above 0 and at most 1; got 2"):
        workers.load_documents(letters, share=2)
