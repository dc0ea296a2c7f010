"""Fits on a real Dask cluster: workers are killed, join late, run out of memory; clients leave.

The long ones run with ``make cluster`` (``LONGTAIL_CLUSTER=1``).
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongTailClassifier, TextClassifier
from longtail.datasets import Table
from longtail.distributed import PartitionError, fit_partitions, predict_partitions
from tests.conftest import SHARED_DATA, load_shared
from tests.distributed import data, test_class_texts
from tests.distributed.cluster import ROOT, SOURCE, Cluster, Killer

distributed = pytest.importorskip("distributed")

long = pytest.mark.skipif(
    not os.environ.get("LONGTAIL_CLUSTER"), reason="takes minutes; make cluster runs it"
)
pytestmark = [
    # Dask leaves sockets of killed workers to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

STAGES = (
    *("reading", "classes", "statistics", "draws", "shared weights", "self-check"),
    *("scorer", "index", "weights", "mining", "log odds", "residuals", "calibration"),
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    X, y = data.counts()
    model = LongTailClassifier(random_state=0).fit(X, y)
    return data.checksum(model, tmp_path_factory.mktemp("plain"))


def fit(partitions, scratch, client, **settings):
    return fit_partitions(
        LongTailClassifier(random_state=0), partitions, scratch=scratch, client=client, **settings
    )


@pytest.mark.slow
def test_a_worker_killed_while_mining_and_one_that_joins_late(plain, tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()
        with cluster.client() as client:
            killer = Killer(cluster, client, {"mining"})
            model = fit(data.functions(4), tmp_path / "s", client, on_stage=killer.on_stage)
            killer.thread.join()
            assert (killer.killed, killer.errors) == (["mining"], [])
            assert data.checksum(model, tmp_path) == plain


@long
def test_a_broken_partition_and_predictions(plain, tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()
        with cluster.client() as client:
            model = fit(data.functions(4), tmp_path / "s", client)
            assert data.checksum(model, tmp_path) == plain
            with pytest.raises(PartitionError, match=r"partition 1 .* cannot be read"):
                fit([*data.functions(1), functools.partial(data.part, 3)], tmp_path / "s", client)
            files = predict_partitions(
                tmp_path / "model.longtail",
                data.functions(3),
                tmp_path / "out",
                client=client,
                k=2,
            )
    X, _ = data.counts()
    expected = model.predict_proba_topk(X, 2)
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    assert [row["classes"] for row in rows] == expected.classes.tolist()
    assert [row["probabilities"] for row in rows] == expected.scores.tolist()


@long
def test_a_worker_killed_in_each_stage(plain, tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        with cluster.client() as client:
            for stage in STAGES:
                client.wait_for_workers(2)
                killer = Killer(cluster, client, {stage})
                scratch = tmp_path / stage
                model = fit(data.functions(4), scratch, client, on_stage=killer.on_stage)
                killer.thread.join()
                assert (killer.killed, killer.errors) == ([stage], [])
                assert data.checksum(model, tmp_path) == plain, stage


@long
@pytest.mark.parametrize("stage", ["class texts", "self-check", "calibration"])
def test_a_worker_killed_where_names_count(stage, tmp_path):
    documents, labels = test_class_texts.texts(test_class_texts.label_sets)
    labels = [label or ["class 7"] for label in labels]
    names = test_class_texts.texts_of_names()
    whole = TextClassifier(random_state=0).fit(documents, labels, class_texts=names)
    rows = [json.dumps({"body": t, "label": c}) for t, c in zip(documents, labels, strict=True)]
    for i in range(3):
        (tmp_path / f"part-{i}.jsonl").write_text("\n".join(rows[300 * i : 300 * i + 300]))
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        with cluster.client() as client:
            client.wait_for_workers(2)
            killer = Killer(cluster, client, {stage})
            model = fit_partitions(
                TextClassifier(random_state=0),
                Table(tmp_path / "*.jsonl", text=["body"], label="label"),
                scratch=tmp_path / "s",
                client=client,
                on_stage=killer.on_stage,
                class_texts=names,
            )
            killer.thread.join()
    assert (killer.killed, killer.errors) == ([stage], [])
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)


@long
def test_a_client_that_goes_away_and_comes_back(plain, tmp_path):
    """A process that fits is killed; another goes on with what its tasks have done."""
    code = (
        "import sys, distributed\n"
        "from longtail import LongTailClassifier\n"
        "from longtail.distributed import fit_partitions\n"
        "from tests.distributed import data\n"
        "client = distributed.Client(scheduler_file=sys.argv[1])\n"
        "fit_partitions(LongTailClassifier(random_state=0), data.functions(6, data.slow_part),\n"
        "    scratch=sys.argv[2], client=client, on_stage=lambda *stage: print(*stage, flush=True))"
    )
    scratch = tmp_path / "scratch"
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        with cluster.client() as client:
            first = subprocess.Popen(
                [sys.executable, "-c", code, str(cluster.file), str(scratch)],
                env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"},
                stdout=subprocess.PIPE,
                text=True,
            )
            for line in first.stdout:
                if line.startswith("reading 3"):
                    break
            first.kill()
            first.wait()
            first.stdout.close()
            reports = []
            partitions = data.functions(6, data.slow_part)
            model = fit(partitions, scratch, client, on_task=reports.append)
    assert data.checksum(model, tmp_path) == plain
    assert sum(report.stage == "reading" for report in reports) <= 3


@long
def test_workers_on_one_empty_cache_of_compiled_kernels(plain, tmp_path):
    # A copy of the package, since compiled kernels are also read from beside its sources.
    cache, site = tmp_path / "kernels", tmp_path / "site"
    shutil.copytree(SOURCE, site, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
    }
    with Cluster(tmp_path, **environment) as cluster:
        workers = [cluster.add_worker() for _ in range(3)]
        with cluster.client() as client:
            client.wait_for_workers(3)
            model = fit(data.functions(9), tmp_path / "scratch", client)
            assert all(worker.poll() is None for worker in workers)
    assert data.checksum(model, tmp_path) == plain
    assert any(cache.rglob("*.kernel"))


def _greedy():
    hoard = np.ones(10**8)
    time.sleep(5.0)
    return data.part(0, int(hoard[0]))


@long
def test_a_worker_over_its_memory_limit(plain, tmp_path):
    """Its nanny kills it; the task fails elsewhere too, and is named; the rest is kept."""
    with Cluster(tmp_path) as cluster:
        cluster.add_worker("--memory-limit", "600MB")
        with cluster.client() as client:
            with pytest.raises(distributed.scheduler.KilledWorker, match="reading-1"):
                fit([functools.partial(data.part, 0, 500), _greedy], tmp_path / "s", client)
            model = fit(data.functions(2), tmp_path / "s", client)
    assert data.checksum(model, tmp_path) == plain


@functools.cache
def _shared(name, n_documents):
    if name == "wordnet-hypernym":
        X, y, _, _ = load_shared(name)
        return X[:n_documents], y[:n_documents]
    with np.load(SHARED_DATA / name / "counts.npz") as z:
        indptr = z["train_label_indptr"]
        labels = z["train_labels"]
        y = [labels[a:b].tolist() for a, b in itertools.pairwise(indptr[: n_documents + 1])]
        arrays = (z["train_data"], z["train_indices"], z["train_indptr"])
        return csr_array(arrays, shape=(z["shape"][0], z["shape"][3]))[:n_documents], y


def _shared_part(name, n_documents, first, last):
    X, y = _shared(name, n_documents)
    return X[first:last], y[first:last]


@long
@pytest.mark.parametrize(
    ("name", "n_workers", "n_parts"),
    [
        ("wordnet-hypernym", 1, 7),
        ("wordnet-hypernym", 2, 64),
        ("wordnet-hypernym", 4, 7),
        ("wordnet-hypernym", 2, 1),
        ("tib-subjects", 1, 7),
        ("tib-subjects", 2, 16),
    ],
)
def test_a_shared_set(name, n_workers, n_parts, tmp_path):
    if not (SHARED_DATA / name).exists():
        pytest.skip(f"{name} is absent")
    n_documents = None if name == "wordnet-hypernym" else 10_000
    X, y = _shared(name, n_documents)
    edges = np.linspace(0, len(y), n_parts + 1).astype(int).tolist()
    parts = [
        functools.partial(_shared_part, name, n_documents, *pair)
        for pair in itertools.pairwise(edges)
    ]
    with Cluster(tmp_path) as cluster:
        for _ in range(n_workers):
            cluster.add_worker()
        with cluster.client() as client:
            client.wait_for_workers(n_workers)
            model = fit(parts, tmp_path / "scratch", client)
    whole = LongTailClassifier(random_state=0, n_jobs=-1).fit(X, y)
    whole.n_jobs = None
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)
