"""Row blocks over threads: the one place where anything runs in parallel; memory given back.

Kernels are serial and release the interpreter lock; a stage divides its rows into blocks and calls
its kernel on each. What a block computes depends on its rows alone, so the bits are the same for
any number of threads.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BLOCKS_PER_THREAD = 4  # uneven blocks even out; more blocks only add scratch allocations
SMALL_WORK = 20_000  # done sooner than threads are started (they take a millisecond)
DOCUMENT_WORK = 1_000  # of searching one document, where no better measure is at hand
_SMALL_BATCH = DOCUMENT_WORK * np.arange(100, dtype=np.int64)  # at hand: one document must be quick
_SMALL_BATCH.flags.writeable = False


def parallel_for(
    function: Callable[[int, int], None],
    indptr: NDArray[np.int64],
    n_jobs: int | None,
    n_blocks: int = 1,
) -> None:
    """Call `function(first, last)` on blocks of rows of about equal work.

    Parameters
    ----------
    function : callable
        Works on the rows `first` to `last - 1`, and on nothing shared that it writes to.
    indptr : ndarray of shape (n_rows + 1,)
        Running total of the work of the rows, such as the row pointer of a CSR matrix.
    n_jobs : int or None
        Number of threads as joblib understands it: None is one, -1 is every core.
    n_blocks : int
        At least so many blocks, where small ones stay in the cache.
    """
    n_rows = len(indptr) - 1
    if n_rows < 2 or indptr[-1] < SMALL_WORK:
        function(0, n_rows)
        return
    n_threads = _count_threads(n_jobs)
    if n_threads > 1:
        n_blocks = max(n_blocks, n_threads * BLOCKS_PER_THREAD)
    bounds = _balance(indptr, n_blocks) if n_blocks > 1 else [0, n_rows]
    blocks = [(first, last) for first, last in pairwise(bounds) if first < last]
    if n_threads == 1:
        for block in blocks:
            function(*block)
        return
    # Plain threads: joblib's take five milliseconds to start and end.
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in pool.map(lambda block: function(*block), blocks):
            pass


def uniform_work(n_rows: int) -> NDArray[np.int64]:
    """Return the running total for rows that each cost as much as searching one document."""
    if n_rows < len(_SMALL_BATCH):
        return _SMALL_BATCH[: n_rows + 1]
    return DOCUMENT_WORK * np.arange(n_rows + 1, dtype=np.int64)


def release_memory() -> None:
    """Return to the system what has been freed, where the C library can be asked to (glibc).

    It keeps freed arrays of up to 32 MB, for each thread, and takes fresh memory for larger ones.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def _count_threads(n_jobs: int | None) -> int:
    """Return how many threads joblib understands by `n_jobs`."""
    if n_jobs == 1 or not threading.main_thread().is_alive():
        return 1  # once the main thread has ended, no pool takes work: a last snapshot goes on
    if n_jobs == -1 and "joblib" not in sys.modules:  # importing it takes a tenth of a second
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    import multiprocessing

    import joblib

    if multiprocessing.current_process().daemon:  # such as Dask's worker, one of several
        return 1  # so says joblib, too, but with a warning
    return int(joblib.effective_n_jobs(n_jobs))


def _balance(indptr: NDArray[np.int64], n_blocks: int) -> list[int]:
    """Return row bounds that give each block about the same work; a row itself counts as one."""
    work = indptr - indptr[0] + np.arange(len(indptr))
    targets = np.linspace(0, work[-1], n_blocks + 1)
    bounds = np.searchsorted(work, targets)
    bounds[0], bounds[-1] = 0, len(indptr) - 1
    return [int(bound) for bound in bounds]
