"""One SHA-256 of a model: any BLAS, any x86 processor, any number of Dask workers, and in here."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongTailClassifier
from longtail.datasets import load_wordnet_counts
from longtail.distributed import fit_partitions
from longtail.training import mixture
from tests.distributed import data
from tests.distributed.cluster import ROOT, SOURCE, Cluster

N_DOCUMENTS = 12_000  # so many that the mixture bends, and that BLAS would use its threads

# Fits both estimators; prints their checksums, and how much processor time (in clock ticks) all
# threads but the main one have used meanwhile. BLAS's threads spin when there was work for them.
FIT = """
import os, sys
from pathlib import Path
from longtail import DoubleSamplingClassifier, LongTailClassifier
from tests.distributed import data, test_same_bits

def count_ticks():
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != os.getpid():
            ticks += sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks

folder = Path(sys.argv[1])
X, y = test_same_bits.read_part(folder, 0, test_same_bits.N_DOCUMENTS)
LongTailClassifier(random_state=0, n_jobs=1).fit(X[:500], y[:500])
before = count_ticks()
model = LongTailClassifier(random_state=0, n_jobs=1).fit(X, y)
model.predict_proba_topk(X[:2000], 5)
print(data.checksum(model, folder))
print(data.checksum(DoubleSamplingClassifier(0.2, random_state=0, n_jobs=1).fit(X, y), folder))
print(count_ticks() - before)
"""

MACHINES = {
    "one thread": {"OPENBLAS_NUM_THREADS": "1"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    # A processor of 2008, to BLAS, numpy and the C library; a kernel is compiled for ours.
    "Prescott": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4,AVX512_ICL,AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX2_Usable,-FMA_Usable",
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Documents as a file, so that each process reads them at once."""
    folder = tmp_path_factory.mktemp("wordnet")
    wordnet = load_wordnet_counts()
    X = wordnet.X_train[:N_DOCUMENTS]
    y = wordnet.y_train[:N_DOCUMENTS]
    np.savez(folder / "counts.npz", data=X.data, indices=X.indices, indptr=X.indptr, y=y)
    return folder


def read_part(folder: Path, first: int, last: int) -> tuple[csr_array, np.ndarray]:
    """Return some of the documents."""
    file = np.load(folder / "counts.npz")
    X = csr_array((file["data"], file["indices"], file["indptr"]))
    return X[first:last], file["y"][first:last]


@pytest.fixture(scope="module")
def in_here(folder):
    """The checksum of a fit in this process, in which the mixture is learned with its bends."""
    model = LongTailClassifier(random_state=0).fit(*read_part(folder, 0, N_DOCUMENTS))
    kept: mixture.Mixture = model.state_.check.kept_mixture
    assert kept.features[2:].any()
    return data.checksum(model, folder)


@pytest.fixture(scope="module")
def paper():
    """The checksums of the paper's classifier that were seen."""
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("settings", MACHINES.values(), ids=MACHINES)
def test_any_blas_and_processor(settings, folder, in_here, paper):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    path = os.pathsep.join([str(SOURCE), str(ROOT)])
    process = subprocess.run(
        [sys.executable, "-c", FIT, str(folder)],
        env=kept | {"PYTHONPATH": path} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    ours, theirs, ticks_of_other_threads = process.stdout.split()
    assert ours == in_here
    paper.add(theirs)
    assert len(paper) == 1
    assert ticks_of_other_threads == "0"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_any_number_of_workers(folder, in_here, tmp_path):
    pytest.importorskip("distributed")
    edges = [0, 3_000, 7_000, N_DOCUMENTS]
    parts = [functools.partial(read_part, folder, *pair) for pair in itertools.pairwise(edges)]
    with Cluster(tmp_path, OPENBLAS_NUM_THREADS="1") as cluster:  # as Dask itself sets it
        for n_workers in (1, 2):
            cluster.add_worker()
            with cluster.client() as client:
                client.wait_for_workers(n_workers)
                scratch = tmp_path / f"scratch {n_workers}"
                classifier = LongTailClassifier(random_state=0)
                model = fit_partitions(classifier, parts, scratch=scratch, client=client)
            assert data.checksum(model, tmp_path) == in_here
