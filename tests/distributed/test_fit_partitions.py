"""A fit over partitions has the bits of a plain fit, wherever its tasks run and in any order."""

from __future__ import annotations

import multiprocessing
import random
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.datasets import Table
from longtail.distributed import (
    CountFile,
    MemoryLimitError,
    PartitionError,
    fit_partitions,
    memory_plan,
    stages,
)
from longtail.distributed.memory_plan import parse_bytes
from longtail.distributed.on_disk import Stored, open_result
from longtail.distributed.task_results import TaskResult, write_result
from longtail.model.scorer import ClassResiduals
from longtail.sparse import stack_rows
from longtail.text import TextVectorizer
from longtail.training import pipeline, runner
from longtail.training.class_rows import LearnedRows, mix_rows
from longtail.training.mixture import Mixture
from tests.distributed import data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def plain(folder):
    X, y = data.counts()
    return data.checksum(LongTailClassifier(random_state=0).fit(X, y), folder)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A scratch path that tests share: results are found by what they are computed from."""
    return tmp_path_factory.mktemp("scratch")


def fit(partitions, scratch, **settings):
    return fit_partitions(
        LongTailClassifier(random_state=0), partitions, scratch=scratch, **settings
    )


@pytest.mark.parametrize("n_parts", [1, 4])
def test_any_number_of_partitions(n_parts, plain, scratch, folder):
    model = fit(data.functions(n_parts), scratch)
    assert data.checksum(model, folder) == plain
    X, y = data.counts()
    assert np.mean(model.predict(X) == y) > 0.8


def test_any_order_of_tasks(plain, tmp_path, folder, monkeypatch):
    def shuffled(tasks, *arguments, run_tasks=stages.run_tasks):
        tasks = list(tasks)
        random.Random(len(tasks)).shuffle(tasks)
        return run_tasks(tasks, *arguments)

    monkeypatch.setattr(stages, "run_tasks", shuffled)
    assert data.checksum(fit(data.functions(9), tmp_path), folder) == plain


def test_a_process_pool(plain, tmp_path, folder):
    data.write_svmlight(tmp_path, 5)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        model = fit(f"{tmp_path}/*.svm", tmp_path / "scratch", client=pool)
    assert data.checksum(model, folder) == plain


def test_small_blocks_many_shards(plain, tmp_path, folder, monkeypatch):
    """A file becomes many blocks, the index is divided by class: nothing changes."""
    monkeypatch.setattr(memory_plan, "INDEX_BYTES", 10**6)
    monkeypatch.setattr(memory_plan, "READING_FACTOR", 10**5)
    monkeypatch.setattr(memory_plan, "SHARD_ENTRIES", 900)
    reports = []
    model = fit(data.functions(3), tmp_path / "scratch", memory_limit="3GB", on_task=reports.append)
    assert sum(report.stage == "index" for report in reports) == 8  # three variants, and all
    assert sum(report.stage == "residuals" for report in reports) > 8
    assert data.checksum(model, folder) == plain


@pytest.mark.parametrize("read", [data.counts, data.label_sets])
def test_shards_of_classes_that_learn_in_memory(read, tmp_path, monkeypatch):
    X, y = read()
    whole = data.checksum(LongTailClassifier(random_state=0).fit(X, y), tmp_path)
    monkeypatch.setattr(runner, "PAIRS_PER_SHARD", 3_000)
    assert data.checksum(LongTailClassifier(random_state=0).fit(X, y), tmp_path) == whole


@pytest.mark.parametrize("read", [data.counts, data.label_sets])
def test_rows_stay_where_few_documents_were_held_out(read, tmp_path, monkeypatch):
    """Documents are mined once, here and apart: the same bits, other ones than mined twice."""
    X, y = read()
    halves = [slice(0, 500), slice(500, None)]
    parts = [lambda rows=rows: (X[rows], y[rows]) for rows in halves]
    twice = data.checksum(LongTailClassifier(random_state=0).fit(X, y), tmp_path)
    monkeypatch.setattr(pipeline, "MAX_LACKING", 1.0)
    once = data.checksum(LongTailClassifier(random_state=0).fit(X, y), tmp_path)
    assert once != twice
    reports = []
    model = fit(parts, tmp_path / "scratch", on_task=reports.append)
    assert data.checksum(model, tmp_path) == once
    assert sum(report.stage == "mining" for report in reports) == len(parts)


def test_files_folders_and_patterns(plain, tmp_path, scratch, folder):
    data.write_svmlight(tmp_path, 3)
    model = fit(CountFile(tmp_path), scratch)
    assert data.checksum(model, folder) == plain
    with pytest.raises(FileNotFoundError, match="none that matches"):
        fit(f"{tmp_path}/*.nothing", scratch)
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"Table\(.*text=\['body'\]"):
        fit(tmp_path / "x.csv", scratch)


def test_resumes_where_it_stopped(plain, tmp_path, folder):
    done = []
    partitions = data.functions(3)

    def stop(report):
        done.append(report.name)
        if report.stage == "shared weights":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(partitions, tmp_path, on_task=stop)
    reports = []
    model = fit(partitions, tmp_path, on_task=reports.append)
    assert data.checksum(model, folder) == plain
    assert "reading" not in {report.stage for report in reports}
    n_first = len(reports) + len(done)
    reports.clear()
    fit(partitions, tmp_path, on_task=reports.append)
    assert reports == []
    lost = next((tmp_path / "mining").iterdir())
    lost.unlink()
    fit(partitions, tmp_path, on_task=reports.append)
    assert [report.stage for report in reports] == ["mining"]
    assert n_first == len(list(tmp_path.rglob("*.task")))
    fit(partitions, tmp_path, clean=True)
    assert list(tmp_path.rglob("*.task*")) == []


@pytest.mark.parametrize("client", [None, ProcessPoolExecutor])
def test_a_partition_that_cannot_be_read(client, plain, tmp_path, folder):
    files, scratch = tmp_path / "files", tmp_path / "scratch"
    files.mkdir()
    data.write_svmlight(files, 4)
    broken = files / "part-02.svm"
    whole = broken.read_text()
    broken.write_text(whole + "7 1:one\n")
    pool = client and client(1, mp_context=multiprocessing.get_context("spawn"))
    with pytest.raises(PartitionError, match=r"part-02.svm cannot be read.*1:one"):
        fit(files, scratch, client=pool)
    if pool:
        pool.shutdown()
    broken.write_text(whole)
    reports = []
    assert data.checksum(fit(files, scratch, on_task=reports.append), folder) == plain
    assert sum(report.stage == "reading" for report in reports) <= 2  # the one, and one after it


@pytest.mark.parametrize(
    ("settings", "ending"),
    [
        ({}, "jsonl"),
        ({"remember_documents": True, "vectorizer": TextVectorizer(max_features=150)}, "parquet"),
        ({"classifier": DoubleSamplingClassifier(), "vectorizer": TextVectorizer(min_df=2)}, "csv"),
    ],
)
def test_texts(settings, ending, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    data.write_tables(files, ending, 3)
    whole = TextClassifier(random_state=0, **settings).fit(*data.texts())
    model = fit_partitions(
        TextClassifier(random_state=0, **settings),
        Table(files, text=["body"], label="label"),
        scratch=tmp_path / "scratch",
    )
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)
    assert model.vocabulary_.terms == whole.vocabulary_.terms


def test_the_papers_method(tmp_path):
    X, y = data.counts()
    whole = DoubleSamplingClassifier(random_state=3).fit(X, y)
    model = DoubleSamplingClassifier(random_state=3)
    fit_partitions(model, data.functions(4), scratch=tmp_path)
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)
    assert np.array_equal(model.sample_.documents, whole.sample_.documents)


def test_fractions_in_one_partition_widen_all(tmp_path):
    X, y = data.counts()
    X = X.copy()
    X.data[-1] = 0.5
    halves = [lambda: (X[:500], y[:500]), lambda: (X[500:], y[500:])]
    whole = LongTailClassifier(random_state=0).fit(X, y)
    model = fit(halves, tmp_path / "scratch")
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)


def test_a_memory_limit_is_refused_before_work(tmp_path):
    reports = []
    with pytest.raises(MemoryLimitError, match=r"0.10GB is too low .* at least"):
        fit(data.functions(2), tmp_path, memory_limit="100MB", on_task=reports.append)
    assert reports == []
    assert parse_bytes("6GB") == parse_bytes(6 * 10**9) == 6 * 10**9
    with pytest.raises(ValueError, match="such as '6GB'"):
        parse_bytes("six")


def test_a_memory_limit_that_the_classes_exceed(plain, scratch, folder, monkeypatch):
    """It is refused before anything is learned; the size that the message gives is enough."""
    monkeypatch.setattr(memory_plan, "CLASS_TERM_BYTES", 10**6)
    reports = []
    with pytest.raises(MemoryLimitError, match=r"0.60GB is too low for 58 classes") as refused:
        fit(data.functions(4), scratch, memory_limit="600MB", on_task=reports.append)
    assert {report.stage for report in reports} <= {"reading", "classes", "statistics"}
    [needed] = re.findall(r"at least ([0-9.]+GB)", str(refused.value))
    assert data.checksum(fit(data.functions(4), scratch, memory_limit=needed), folder) == plain


@pytest.mark.parametrize("factors", [[0.8, 1.2, 0.5, 0.7], [0.8, 1.2, 0.0, 0.0], [0.0] * 4])
def test_residuals_of_shards_as_a_mixture_has_them(factors, tmp_path):
    rng = np.random.default_rng(0)
    mixture = Mixture(residuals=np.array([factors, [-0.1 * factors[0], 0.0, 0.0, 0.0]]))
    learned = {"residuals": [], "separators": []}
    paths = [str(tmp_path / f"{i}.task") for i in range(3)]
    for path, n_terms in zip(paths, [[2, 0, 3], [0], [4, 1]], strict=True):
        rows = {}
        for more, (name, shards) in enumerate(learned.items()):
            lengths = [n + more for n in n_terms]
            indptr = np.cumsum([0, *lengths])
            terms = np.concatenate([np.arange(n) for n in lengths]).astype(np.int32)
            weights = rng.normal(size=len(terms)).astype(np.float32)
            shards.append(ClassResiduals(indptr, terms, weights, rng.normal(size=len(lengths))))
            rows[name] = shards[-1]
        write_result(path, TaskResult().add("result", LearnedRows(**rows)))
    parts = open_result([Stored(path, LearnedRows) for path in paths])
    class_sizes = np.arange(1, 7)
    expected = mixture.scale(*(stack_rows(shards) for shards in learned.values()), class_sizes)
    found = mix_rows(parts, mixture, class_sizes)
    for name in ("indptr", "indices", "weights", "biases"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_what_is_no_partition(tmp_path):
    with pytest.raises(ValueError, match="at least one file"):
        fit([], tmp_path)
    with pytest.raises(ValueError, match="a path, a Table, a CountFile or a function"):
        fit([3], tmp_path)
    with pytest.raises(PartitionError, match=r"partition 0 .* must return \(X, y\)"):
        fit([lambda: 3], tmp_path)
    with pytest.raises(PartitionError, match=r"got 3 items.* weights are for fit in memory"):
        fit([lambda: ([[1, 2]], ["a"], [0.5])], tmp_path)
    with pytest.raises(PartitionError, match="learns from counts, not texts"):
        fit([lambda: (["a text"], ["a"])], tmp_path)
    with pytest.raises(PartitionError, match="smallest is -1"):
        fit([lambda: ([[1, -1]], ["a"])], tmp_path)
    with pytest.raises(ValueError, match="only 1 class"):
        fit([lambda: ([[1, 1]], ["a"])], tmp_path)
    with pytest.raises(ValueError, match="client must be"):
        fit(data.functions(2), tmp_path, client=3)
    model = LongTailClassifier(time_budget=9.0)
    with pytest.raises(ValueError, match="time_budget is for fit in memory"):
        fit_partitions(model, data.functions(2), scratch=tmp_path)
    with pytest.raises(ValueError, match="memory: a fit over partitions keeps no documents"):
        fit_partitions(LongTailClassifier(memory=3), data.functions(2), scratch=tmp_path)


def test_core_imports_no_dask():
    code = (
        "import sys, longtail, longtail.distributed, longtail.cli.app\n"
        "print({'dask', 'distributed'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_page_names_the_versions_of_dask_that_tests_run_with():
    root = Path(__file__).resolve().parents[2]
    pinned = re.findall(
        r"^(?:dask|distributed)==(.+)$", (root / "constraints.txt").read_text(), re.MULTILINE
    )
    page = (root / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert len(pinned) == 2
    assert len(set(pinned)) == 1
    assert f"tested with dask and distributed {pinned[0]}." in page
