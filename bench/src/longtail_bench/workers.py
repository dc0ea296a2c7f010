"""The same model from any number of workers and partitions, and what they cost.

In: a data set, numbers of Dask workers and of partitions. Out: a row for `fit` and for each pair of
numbers: the SHA-256 of the model file and of the predictions, which must be those of `fit`, and CPU
seconds of whole processes, of tasks, and of the worker that had most to do.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import pickle
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longtail import LongTailClassifier
from longtail.distributed import TaskReport, fit_partitions, predict_partitions
from longtail_bench.data import name_data_set
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.scale import Stage, draw_partition
from longtail_bench.table_data import load_data

PREDICTING = "predicting"


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents to fit and to predict; labels are class ids, or a list of them each."""

    X: csr_array[Any]
    y: Any
    X_new: csr_array[Any]


@dataclass(frozen=True)
class WorkersRow:
    """One way to fit and predict a data set."""

    data: str  # which one
    # Dask workers; 0 is this process, with tasks in a random order, and None a plain `fit`.
    n_workers: int | None
    n_partitions: int  # of the documents that are fitted, and of those that are predicted
    # SHA-256 of the model file, and of the classes and probabilities predicted.
    model: str
    predictions: str
    # Of whole processes, while fitting and while predicting.
    cpu_seconds: float
    predict_cpu_seconds: float
    stages: dict[str, Stage] = field(default_factory=dict)  # what their tasks have cost

    @property
    def busiest(self) -> float:
        """CPU seconds of fitting: of the busiest worker of each stage, or of a plain fit."""
        costs = [cost.longest for stage, cost in self.stages.items() if stage != PREDICTING]
        return sum(costs) if costs else self.cpu_seconds

    @property
    def predict_busiest(self) -> float:
        """The same of predicting."""
        return self.stages[PREDICTING].longest

    def is_same(self, other: WorkersRow) -> bool:
        """Return whether model and predictions have the same bits."""
        return (self.model, self.predictions) == (other.model, other.predictions)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"busiest": self.busiest, "predict_busiest": self.predict_busiest}


class ShuffledExecutor(Executor):
    """Runs tasks in one thread of this process, any of those that wait."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._changed = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Add a task."""
        future: Future[Any] = Future()
        with self._changed:
            self._waiting.append((future, functools.partial(fn, *args, **kwargs)))
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread, after what waits or without it."""
        with self._changed:
            self._open = False
            if cancel_futures:
                self._waiting.clear()
            self._changed.notify()
        if wait:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._open)
                if not self._waiting:
                    return
                future, call = self._waiting.pop(self._rng.randrange(len(self._waiting)))
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # handed to whoever waits for it
                    future.set_exception(error)


def load_documents(path: Path, share: float = 1.0) -> Documents:
    """Load a data set that `find_data_set` found; of its training documents the first share."""
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1; got {share!r}.")
    y: Any
    data = load_data(path)
    X, X_new = data.X_train, data.X_test
    y = data.train.to_lists() if isinstance(data, LabelSetDataset) else data.y_train
    n_documents = round(share * X.shape[0])
    return Documents(csr_array(X[:n_documents]), y[:n_documents], csr_array(X_new))


def write_parts(folder: Path, n_parts: int, X: csr_array[Any], y: Any) -> list[Any]:
    """Write documents in parts; return functions that read them, for a process that has none."""
    folder.mkdir(parents=True)
    parts = []
    edges = np.linspace(0, X.shape[0], n_parts + 1).astype(int).tolist()
    for i, (first, last) in enumerate(itertools.pairwise(edges)):
        path = folder / f"{i}.pickle"
        path.write_bytes(pickle.dumps((X[first:last], y[first:last]), protocol=5))
        parts.append(functools.partial(read_part, str(path)))
    return parts


def read_part(path: str) -> Any:
    """Return the documents and labels that `write_parts` wrote."""
    return pickle.loads(Path(path).read_bytes())


def compare_workers(
    path: Path,
    workers: Sequence[int],
    partitions: Sequence[int],
    *,
    share: float = 1.0,
    seed: int = 0,
    on_row: Callable[[WorkersRow], None] = lambda _: None,
) -> list[WorkersRow]:
    """Fit and predict a data set by `fit`, and with each number of workers and of partitions.

    Parameters
    ----------
    path : Path
        A data set that `find_data_set` found.
    workers : sequence of int
        Numbers of Dask workers, each a process with one thread; 0 is this process.
    partitions : sequence of int
        Numbers of partitions.
    share : float, default=1.0
        Which share of the training documents is fitted, from the first one on.
    seed : int, default=0
        Of models and of the order of tasks.
    on_row : callable, optional
        Hears each row as soon as it is there.

    Returns
    -------
    list of WorkersRow
        `fit` comes first.
    """
    documents, name = load_documents(path, share), name_data_set(path)
    warm_up()
    rows = []
    with tempfile.TemporaryDirectory(prefix="workers-") as temporary:
        folder = Path(temporary)
        row = _fit_plainly(documents, name, folder / "fit", seed)
        rows.append(row)
        on_row(row)
        for n_workers in workers:
            with _open_client(n_workers, folder, seed) as client:
                for n_partitions in partitions:
                    inside = folder / f"{n_workers}-{n_partitions}"
                    row = _fit_in_parts(
                        documents, name, inside, (n_workers, n_partitions), client, seed
                    )
                    rows.append(row)
                    on_row(row)
    return rows


def warm_up() -> float:
    """Load the compiled kernels into this process; return its CPU seconds so far."""
    X, y = draw_partition(600, 30, 0, 600, 0)
    LongTailClassifier(random_state=0, n_jobs=1).fit(X, y).predict_proba_topk(X, 2)
    return time.process_time()


@contextmanager
def _open_client(n_workers: int, folder: Path, seed: int) -> Iterator[Any]:
    """Give what runs tasks: Dask with workers that have loaded the kernels, or this process."""
    if not n_workers:
        with ShuffledExecutor(seed) as executor:
            yield executor
        return
    from longtail.distributed.tasks import import_dask

    dask = import_dask()
    with (
        dask.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",  # any free port
            local_directory=str(folder / f"dask-{n_workers}"),
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        client.run(warm_up)
        yield client


def _fit_plainly(documents: Documents, name: str, folder: Path, seed: int) -> WorkersRow:
    """Fit by `fit`, and predict in one partition in this process."""
    start = time.process_time()
    model = LongTailClassifier(random_state=seed).fit(documents.X, documents.y)
    cpu_seconds = time.process_time() - start
    folder.mkdir()
    model.save(folder / "model.longtail")
    stages, predictions, predicting = _predict(documents, folder, 1, None)
    digest = _digest_file(folder / "model.longtail")
    return WorkersRow(name, None, 1, digest, predictions, cpu_seconds, predicting, stages)


def _fit_in_parts(
    documents: Documents,
    name: str,
    folder: Path,
    sizes: tuple[int, int],
    client: Any,
    seed: int,
) -> WorkersRow:
    """Fit and predict through a client."""
    n_workers, n_partitions = sizes
    parts = write_parts(folder / "fit", n_partitions, documents.X, documents.y)
    stages: dict[str, Stage] = {}
    start = _cpu_seconds(client)
    model = fit_partitions(
        LongTailClassifier(random_state=seed),
        parts,
        client=client,
        scratch=folder / "scratch",
        on_stage=lambda *_: None,
        on_task=lambda report: _add(stages, report),
        clean=True,
    )
    cpu_seconds = _cpu_seconds(client) - start
    model.save(folder / "model.longtail")
    predicted, predictions, predicting = _predict(documents, folder, n_partitions, client)
    return WorkersRow(
        name,
        n_workers,
        n_partitions,
        _digest_file(folder / "model.longtail"),
        predictions,
        cpu_seconds,
        predicting,
        stages | predicted,
    )


def _predict(
    documents: Documents, folder: Path, n_partitions: int, client: Any
) -> tuple[dict[str, Stage], str, float]:
    """Predict the new documents; return the cost of the tasks, a digest and CPU seconds."""
    labels = np.zeros(documents.X_new.shape[0])  # not read
    parts = write_parts(folder / "new", n_partitions, documents.X_new, labels)
    stages: dict[str, Stage] = {}
    start = _cpu_seconds(client)
    files = predict_partitions(
        folder / "model.longtail",
        parts,
        folder / "out",
        client=client,
        on_task=lambda report: _add(stages, report),
    )
    cpu_seconds = _cpu_seconds(client) - start
    digest = hashlib.sha256()
    for file in files:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            digest.update(line.partition(",")[2].encode())  # all but the line in its partition
    return stages, digest.hexdigest(), cpu_seconds


def _add(stages: dict[str, Stage], report: TaskReport) -> None:
    stages[report.stage] = stages.get(report.stage, Stage()).add(report)


def _cpu_seconds(client: Any) -> float:
    """Return the CPU seconds of this process and of the workers so far."""
    is_here = client is None or isinstance(client, Executor)
    workers: dict[str, float] = {} if is_here else client.run(time.process_time)
    return time.process_time() + sum(workers.values())


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
