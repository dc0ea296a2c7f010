"""Row blocks over threads."""

from __future__ import annotations

import multiprocessing
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


def test_a_worker_of_several_has_one_thread(monkeypatch):
    """And is not warned: the tests make an error of any warning."""
    pytest.importorskip("joblib")  # and imported, so that it is asked
    worker = SimpleNamespace(daemon=True, name="worker", _config={})
    monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    blocks = []
    parallel_for(lambda *block: blocks.append(block), WORK, -1)
    assert blocks == [(0, 49)]
