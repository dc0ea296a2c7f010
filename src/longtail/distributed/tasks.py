"""Tasks: pure functions of paths, run here, in a pool of processes or on a cluster.

In: tasks, each a function with its arguments and the file that its result becomes. Out: the files.
Nothing is pinned to a worker, and only names are sent: a lost task is run again by any free worker,
a task whose file exists is not run at all.
"""

from __future__ import annotations

import glob
import os
import pickle
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from longtail._optional import import_optional
from longtail.distributed.task_results import TaskResult, code_version, hash_arguments, write_result
from longtail.estimators.embedder import Embedder

_ENDING = ".task"


@dataclass(frozen=True)
class Run:
    """The circumstances of a run of a task; results do not depend on them.

    Attributes
    ----------
    n_jobs : int or None
        Number of threads.
    target : str
        The file of the result; further files of the task may have this name and an ending.
    """

    n_jobs: int | None
    target: str


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Attributes
    ----------
    stage, name : str
        What it is, and which part of the data it is for; shown by Dask's dashboard.
    function : callable
        ``function(run, **arguments) -> TaskResult``, at the top level of a module.
    arguments : dict
        Paths and plain values.
    target : str
        The file of the result.
    version : str
        Of the code that the result must come from.
    """

    stage: str
    name: str
    function: Callable[..., TaskResult]
    arguments: dict[str, Any]
    target: str
    version: str

    @property
    def key(self) -> str:
        """Its name in Dask: the stage comes first, so that a stage has one colour."""
        digest = os.path.basename(self.target).removesuffix(_ENDING)
        return f"{self.stage.replace(' ', '_')}-{self.name}-{digest}"


@dataclass(frozen=True)
class TaskReport:
    """The cost of a task.

    Attributes
    ----------
    stage, name : str
        Those of the task.
    seconds, cpu_seconds : float
        Wall time, and CPU seconds of the process meanwhile.
    bytes_read, bytes_written : int
        Sizes of the files that it was given and that it has written.
    worker : str
        The process that ran it: its host and number.
    """

    stage: str
    name: str
    seconds: float
    cpu_seconds: float
    bytes_read: int
    bytes_written: int
    worker: str = ""


def make_task(
    scratch: str,
    stage: str,
    name: str,
    function: Callable[..., TaskResult],
    *,
    identity: Any = None,
    **arguments: Any,
) -> Task:
    """Return a task whose result has a name that follows from what it is computed from.

    `identity` stands for the arguments where it is not their names that count but their content.
    """
    key = hash_arguments(function, arguments if identity is None else identity, scratch=scratch)
    target = name_result(scratch, stage, key)
    return Task(stage, name, function, arguments, target, code_version())


def name_result(scratch: str, stage: str, key: str) -> str:
    """Return the file of a result of a stage."""
    return os.path.join(scratch, stage.replace(" ", "-"), key + _ENDING)


def run_task(task: Task, n_jobs: int | None = None) -> TaskReport:
    """Run a task and write its result, unless it is there."""
    if task.version != code_version():
        raise RuntimeError(
            "this worker has another version of longtail, or of numpy, scipy, scikit-learn or "
            "numba, than the process that gave it work. Install the same versions on all machines."
        )
    report = start_report(task.stage, task.name, n_jobs)
    if not os.path.exists(task.target):
        write_result(task.target, task.function(Run(n_jobs, task.target), **task.arguments))
    written = glob.glob(glob.escape(task.target) + "*")
    return report(set(_paths_in(task.arguments)), written)


def start_report(
    stage: str, name: str, n_jobs: int | None
) -> Callable[[Iterable[str], Iterable[str]], TaskReport]:
    """Return what reports a task that begins now, given the files it has read and written."""
    # Several tasks may run in threads of one process: what one thread does is counted alone.
    cpu_time = time.thread_time if n_jobs in (None, 1) else time.process_time
    start, cpu_start = time.perf_counter(), cpu_time()
    worker = f"{platform.node()}:{os.getpid()}"

    def report(read: Iterable[str], written: Iterable[str]) -> TaskReport:
        seconds, cpu_seconds = time.perf_counter() - start, cpu_time() - cpu_start
        sizes = sum(map(_size_of, read)), sum(map(_size_of, written))
        return TaskReport(stage, name, seconds, cpu_seconds, *sizes, worker)

    return report


def run_tasks(
    tasks: Sequence[Task], client: Any = None, n_jobs: int | None = None
) -> Iterator[TaskReport]:
    """Run the tasks whose results are missing, and yield a report as each is done.

    Parameters
    ----------
    tasks : sequence of Task
        None needs the result of another.
    client : dask.distributed.Client, concurrent.futures.Executor or None
        Where they run; None runs them in this process, one by one.
    n_jobs : int or None
        Number of threads of a task, where they do not run side by side.

    Yields
    ------
    TaskReport
        In the order in which they end.
    """
    missing = [task for task in tasks if not os.path.exists(task.target)]
    if client is None:
        for task in missing:
            yield run_task(task, n_jobs)
        return
    # None is one thread; joblib would ask Dask's worker, which warns.
    n_threads = n_jobs or 1 if len(missing) == 1 else 1
    yield from call_each(
        run_task, [(task, n_threads) for task in missing], client, [t.key for t in missing]
    )


def call_each(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], client: Any, keys: Sequence[str]
) -> Iterator[Any]:
    """Call a function with each of some arguments; yield results as they come.

    The first error ends it: what has not begun is cancelled.
    """
    if client is None:
        yield from (function(*arguments) for arguments in calls)
        return
    if isinstance(client, Executor):
        futures: list[Any] = [client.submit(function, *arguments) for arguments in calls]
        completed: Callable[..., Any] = as_completed
    else:
        completed = import_dask().as_completed
        futures = [
            client.submit(function, *arguments, key=key, pure=False)
            for arguments, key in zip(calls, keys, strict=True)
        ]
    try:
        for future in completed(futures):
            yield future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def check_client(client: Any) -> None:
    """Refuse what is no client."""
    is_executor = client is None or isinstance(client, Executor)
    if not is_executor and not isinstance(client, import_dask().Client):
        raise ValueError(
            "client must be a dask.distributed.Client, a concurrent.futures.Executor or None; got "
            f"{type(client).__name__}."
        )


def check_sendable(embedder: Embedder, client: Any) -> None:
    """Refuse an encoder that other processes of this machine cannot be given."""
    if not isinstance(client, ProcessPoolExecutor):
        return  # Dask sends more
    try:
        pickle.dumps(embedder.encode)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"embedder {embedder.name!r} cannot be sent to other processes: {error}. Give a "
            "function at the top level of a module."
        ) from None


def count_workers(client: Any) -> int:
    """Return how many tasks may run at once, as far as is known."""
    if client is None:
        return 1
    if isinstance(client, Executor):
        return int(getattr(client, "_max_workers", 1))
    return max(1, int(sum(client.nthreads().values())))


def import_dask() -> Any:
    """Return Dask's module for clusters."""
    return import_optional("distributed", "a cluster", "'longtail[dask]'")


def _paths_in(value: Any) -> Iterator[str]:
    """Yield the results that arguments name."""
    if is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, entry.name) for entry in fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _paths_in(entry)
    elif isinstance(value, str) and _ENDING in value:
        yield value


def _size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
