"""Row blocks over threads."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from longtail._parallel import SMALL_WORK, parallel_for

WORK = SMALL_WORK * np.arange(50)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_every_row_once(n_jobs):
    seen = np.zeros(49, int)

    def count(first, last):
        seen[first:last] += 1

    parallel_for(count, WORK, n_jobs)
    assert np.all(seen == 1)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blocks_that_are_asked_for(n_jobs):
    blocks = []
    parallel_for(lambda *block: blocks.append(block), WORK, n_jobs, n_blocks=12)
    assert len(blocks) == 12
    assert sorted(i for first, last in blocks for i in range(first, last)) == list(range(49))


def test_a_thread_that_outlives_the_main_one_goes_on_alone():
    """No pool takes work then; a snapshot that is being written must not fail for that."""
    script = """
import threading
import numpy as np
from longtail._parallel import SMALL_WORK, parallel_for
blocks = []
def work():
    threading.main_thread().join()
    parallel_for(lambda *block: blocks.append(block), SMALL_WORK * np.arange(50), 2)
    print(blocks)
threading.Thread(target=work).start()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[(0, 49)]\n", "")


def test_a_worker_of_several_has_one_thread(monkeypatch):
    """And is not warned: the tests make an error of any warning."""
    pytest.importorskip("joblib")  # and imported, so that it is asked
    worker = SimpleNamespace(daemon=True, name="worker", _config={})
    monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    blocks = []
    parallel_for(lambda *block: blocks.append(block), WORK, -1)
    assert blocks == [(0, 49)]
