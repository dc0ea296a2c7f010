"""Documents in the order of time: each batch is predicted, then learned.

In: a stream of texts with labels and periods, and systems that learn from it. Out: how good the
predictions were, and what learning and predicting cost, period by period and in all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from longtail import metrics
from longtail.datasets.streams import read_chunks
from longtail_bench.measure import Progress

STREAM_FILE = "stream.tsv.xz"
RECENT_SHARE = 30 / 365  # of a period's documents: thirty days where a period is a year
N_PERIODS = 10  # of a set that has no years
ALL = "all"  # the name of all periods together
_CHUNK = 1 << 20  # bytes read at once

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Labels = NDArray[Any]
Predicted = tuple[Labels, Floats | None]


@dataclass(frozen=True, eq=False)
class Stream:
    """Documents in their order."""

    texts: list[str]  # the documents
    labels: NDArray[Any]  # (n_documents,): their classes
    # (n_documents,) int64: year of each, or tenth of the set where there are no years; ascending.
    periods: Integers

    def until(self, period: int) -> Stream:
        """Return the documents up to a period and with it."""
        end = int(np.searchsorted(self.periods, period, side="right"))
        return Stream(self.texts[:end], self.labels[:end], self.periods[:end])

    def ages(self) -> Integers:
        """Return how many documents ago each document's class was first seen; 0 if never."""
        _, first, ids = np.unique(self.labels, return_index=True, return_inverse=True)
        return np.arange(len(self.labels)) - first[ids]


class StreamSystem(Protocol):
    """A learner on a stream.

    One that has processes of its own counts them in `cpu_seconds()` and ends them in `close()`.
    """

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""

    def predict(self, texts: list[str]) -> Predicted:
        """Return a label for each text, and its probability where the system has one."""

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Learn a batch that was predicted; the next one may begin another period."""


@dataclass(frozen=True)
class StreamRow:
    """Figures of a system in a period, or in all."""

    # Which; `ALL` for all periods together.
    system: str
    period: str
    n_documents: int  # number of documents predicted
    accuracy: float  # share that is correct
    macro_f1: float  # mean of the per-class F1 over the classes that occur or are predicted
    seen: float  # share of the documents whose class had a document before their batch
    accuracy_seen: float  # accuracy of those
    # Accuracy of those whose class was first seen in the last thirty days, or as many documents.
    recall_recent: float
    n_recent: int  # their number
    # Of the first class's probability; NaN for a system without probabilities.
    calibration_error: float
    # How well low probabilities tell documents of classes never seen; NaN likewise.
    new_class_auroc: float
    # CPU time in the period; what was learned before the first prediction is `start`.
    learn_cpu_seconds: float
    predict_cpu_seconds: float
    start_cpu_seconds: float  # CPU time of learning the documents before the first prediction


def read_rows(path: Path, run: Mapping[str, Any]) -> dict[str, list[StreamRow]]:
    """Return the rows of each system that JSON lines have of a run: data, batch and periods.

    A number that JSON cannot hold is null there. Of a system that did not come to its end there is
    nothing; what it has in the file is for a reader.
    """
    names = [field.name for field in fields(StreamRow)]
    rows: dict[str, dict[str, StreamRow]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        if all(values.get(key) == value for key, value in run.items()):
            found: dict[str, Any] = {name: values[name] for name in names}
            missing = {name: float("nan") for name in names if found[name] is None}
            row = StreamRow(**found | missing)
            rows.setdefault(row.system, {})[row.period] = row
    return {system: list(found.values()) for system, found in rows.items() if ALL in found}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a system for each document from the first predicted one on."""

    labels: NDArray[Any]  # (n_documents,): predicted classes
    probabilities: Floats  # (n_documents,) float64: naN where there is none
    # (n_documents,) float64: CPU seconds of each document's batch, divided among its documents.
    learn: Floats
    predict: Floats
    start: float  # CPU seconds of learning what came before


def read_stream(folder: Path) -> Stream:
    """Read a data set in the order of time.

    Parameters
    ----------
    folder : Path
        Holds `stream.tsv.xz` (year, class and text on each line), or else `train.tsv.xz` and
        `test.tsv.xz` (class and text), which are taken in the order of the files.

    Raises
    ------
    ValueError
        If it holds neither.
    """
    if (folder / STREAM_FILE).exists():
        rows = list(_read_rows(folder / STREAM_FILE, 3))
        periods = np.array([int(row[0]) for row in rows])
        return Stream([row[2] for row in rows], np.array([row[1] for row in rows]), periods)
    files = [folder / f"{name}.tsv.xz" for name in ("train", "test")]
    if not all(file.exists() for file in files):
        raise ValueError(f"{folder} holds neither {STREAM_FILE} nor train.tsv.xz and test.tsv.xz.")
    rows = [row for file in files for row in _read_rows(file, 2)]
    periods = np.arange(len(rows)) * N_PERIODS // len(rows) + 1
    return Stream([row[1] for row in rows], np.array([row[0] for row in rows]), periods)


def run_stream(
    stream: Stream,
    system: StreamSystem,
    start: int,
    batch: int,
    progress: Progress = lambda *_: None,
    name: str = "",
    on_period: Callable[[int, Predictions], None] = lambda *_: None,
) -> Predictions:
    """Learn all periods before one, then predict and learn the rest in batches.

    Parameters
    ----------
    stream : Stream
        The documents.
    system : StreamSystem
        What learns; fresh.
    start : int
        The first period that is predicted.
    batch : int
        How many documents are predicted before they are learned.
    progress : callable, optional
        Called with the name, how many documents are done, and how many there are.
    name : str, optional
        Of the system.
    on_period : callable, optional
        Called with a period that has ended and all predictions until then.

    Raises
    ------
    ValueError
        If there is nothing before `start`, or nothing from there on.
    """
    first, n_documents = int(np.searchsorted(stream.periods, start)), len(stream.texts)
    if not 0 < first < n_documents:
        raise ValueError(
            f"start must be a period with documents before it; got {start}, the periods are "
            f"{stream.periods[0]} to {stream.periods[-1]}."
        )
    if batch < 1:
        raise ValueError(f"batch must be at least 1; got {batch}.")
    labels = np.empty(n_documents - first, object)
    probabilities, learn, predict = np.full((3, n_documents - first), np.nan)
    cpu_seconds = getattr(system, "cpu_seconds", time.process_time)
    before = cpu_seconds()
    system.start(stream.texts[:first], stream.labels[:first])
    spent = cpu_seconds() - before
    for begin in range(first, n_documents, batch):
        progress(name, begin - first, n_documents - first)
        end = min(begin + batch, n_documents)
        texts, rows = stream.texts[begin:end], slice(begin - first, end - first)
        before = cpu_seconds()
        labels[rows], found = system.predict(texts)
        middle = cpu_seconds()
        following = stream.periods[min(end, n_documents - 1)]
        new_period = bool(following > stream.periods[begin])
        system.learn(texts, stream.labels[begin:end], new_period=new_period)
        after = cpu_seconds()
        predict[rows] = (middle - before) / (end - begin)
        learn[rows] = (after - middle) / (end - begin)
        if found is not None:
            probabilities[rows] = found
        if new_period:
            ended = int(stream.periods[stream.periods < following][-1])
            until = slice(int(np.searchsorted(stream.periods, ended, side="right")) - first)
            on_period(
                ended,
                Predictions(
                    labels[until], probabilities[until], learn[until], predict[until], spent
                ),
            )
    return Predictions(labels, probabilities, learn, predict, spent)


def summarize(stream: Stream, predictions: Predictions, batch: int, name: str) -> list[StreamRow]:
    """Return a row for each period, and one for all of them at the end."""
    first = len(stream.texts) - len(predictions.labels)
    periods, ages = stream.periods[first:], stream.ages()[first:]
    # Seen means seen before the batch began: its own documents are learned after it.
    seen = ages > np.arange(len(ages)) % batch
    _, ids, sizes = np.unique(stream.periods, return_inverse=True, return_counts=True)
    newcomer = seen & (ages <= np.maximum(RECENT_SHARE * sizes[ids[first:]], 1))
    named = [(str(period), periods == period) for period in np.unique(periods)]
    named.append((ALL, np.ones(len(periods), np.bool_)))
    return [
        _summarize(name, period, rows, stream.labels[first:], predictions, seen, newcomer)
        for period, rows in named
    ]


def _summarize(
    name: str,
    period: str,
    rows: Flags,
    truth: NDArray[Any],
    predictions: Predictions,
    seen: Flags,
    newcomer: Flags,
) -> StreamRow:
    """Return the row of some documents."""
    predicted = predictions.labels[rows].astype(truth.dtype)
    correct = predicted == truth[rows]
    probabilities = predictions.probabilities[rows]
    error = auroc = float("nan")
    if not np.isnan(probabilities).any():
        error = metrics.expected_calibration_error(probabilities, correct)
        if 0 < seen[rows].sum() < rows.sum():
            auroc = float(roc_auc_score(~seen[rows], -probabilities))
    return StreamRow(
        system=name,
        period=period,
        n_documents=int(rows.sum()),
        accuracy=float(correct.mean()),
        macro_f1=metrics.macro_f1(truth[rows], predicted),
        seen=float(seen[rows].mean()),
        accuracy_seen=_mean(correct[seen[rows]]),
        recall_recent=_mean(correct[newcomer[rows]]),
        n_recent=int(newcomer[rows].sum()),
        calibration_error=error,
        new_class_auroc=auroc,
        learn_cpu_seconds=float(predictions.learn[rows].sum()),
        predict_cpu_seconds=float(predictions.predict[rows].sum()),
        start_cpu_seconds=predictions.start,
    )


def run_systems(
    stream: Stream,
    systems: dict[str, Callable[[], StreamSystem]],
    start: int,
    batch: int,
    progress: Progress = lambda *_: None,
    on_rows: Callable[[Sequence[StreamRow]], None] = lambda _: None,
) -> list[StreamRow]:
    """Run systems one after the other, each from the beginning; see `run_stream`.

    `on_rows` is called with the row of each period when it ends, and at the end with that of all.
    """
    rows: list[StreamRow] = []
    for name, make in systems.items():
        system = make()
        with ExitStack() as stack:
            stack.callback(getattr(system, "close", lambda: None))
            rows += _run_system(stream, name, system, start, batch, progress, on_rows)
    return rows


def _run_system(
    stream: Stream,
    name: str,
    system: StreamSystem,
    start: int,
    batch: int,
    progress: Progress,
    on_rows: Callable[[Sequence[StreamRow]], None],
) -> list[StreamRow]:
    """Return the rows of one system; a run takes hours, so each is reported when it is known."""
    reported: set[str] = set()

    def report(rows: Sequence[StreamRow]) -> None:
        on_rows([row for row in rows if row.period not in reported])
        reported.update(row.period for row in rows)

    def end_period(period: int, predictions: Predictions) -> None:
        report(summarize(stream.until(period), predictions, batch, name)[:-1])

    predictions = run_stream(stream, system, start, batch, progress, name, end_period)
    rows = summarize(stream, predictions, batch, name)
    report(rows)
    return rows


def _mean(values: Flags) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _read_rows(path: Path, n_columns: int) -> Iterator[list[str]]:
    """Yield the columns of each line."""
    text = b"".join(read_chunks(path, _CHUNK)).decode("utf-8").removesuffix("\n")
    for i, line in enumerate(text.split("\n")):
        row = line.split("\t", n_columns - 1)
        if len(row) != n_columns:
            raise ValueError(f"line {i + 1} of {path} must have {n_columns} columns.")
        yield row
