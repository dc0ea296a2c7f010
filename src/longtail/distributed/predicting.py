"""`predict_partitions`: the classes of documents, partition by partition, against one model file.

In: a model file that all workers see, and partitions. Out: a folder with a file of predictions for
each partition, replaced at once or not at all. A worker opens the model once.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from longtail._optional import import_optional
from longtail._progress import OnStage
from longtail._validation import check_k
from longtail.answers import class_texts, count_candidates, knows_probabilities, rank
from longtail.datasets.records import Chunk
from longtail.distributed.partitions import Partition, list_partitions, read_chunks
from longtail.distributed.stages import OnTask
from longtail.distributed.tasks import (
    TaskReport,
    call_each,
    check_client,
    check_sendable,
    start_report,
)
from longtail.estimators.embedder import Embedder
from longtail.exceptions import PartitionError
from longtail.store.container import read_checksum
from longtail.store.files import replacing, sync_folder
from longtail.teaching import load
from longtail.training.calibration import count_predicted

FORMATS = ("jsonl", "parquet")
_STAGE = "predicting"

Rows = list[dict[str, Any]]


def predict_partitions(
    model_path: str | os.PathLike[str],
    partitions: Any,
    out: str | os.PathLike[str],
    *,
    client: Any = None,
    k: int | None = None,
    format: str = "jsonl",
    on_stage: OnStage | None = None,
    on_task: OnTask | None = None,
    embedder: Any = None,
) -> list[str]:
    """Predict the classes of partitions, each into a file of its own.

    Parameters
    ----------
    model_path : path-like
        A model file that every worker sees.
    partitions : path, Table, CountFile, callable, or a sequence of these
        As for `fit_partitions`; labels are not read.
    out : path-like
        A folder; is created. Partition i becomes ``part-0000i.jsonl`` there.
    client : dask.distributed.Client, concurrent.futures.Executor or None, default=None
        Where tasks run; None is this process.
    k : int, optional
        Classes for each document, best first. When left out, the best one; of a model of label
        sets the set that `predict` gives, most probable label first.
    format : {"jsonl", "parquet"}, default="jsonl"
        How predictions are written: the line of the document in its partition, its classes, and
        their probabilities, or scores where the model has no probabilities.
    on_stage : callable, optional
        Hears ``("predicting", partitions done, partitions)``.
    on_task : callable, optional
        Hears a `TaskReport` of each partition.
    embedder : callable, optional
        The encoder of a model that was fitted with one; every worker is sent it.

    Returns
    -------
    list of str
        The files, in the order of the partitions.

    Raises
    ------
    PartitionError
        A partition cannot be read; which one, and why. Files of other partitions are kept.
    """
    check_client(client)
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    path, folder = os.path.abspath(model_path), os.path.abspath(out)
    checksum = read_checksum(path)
    model = _open_with(path, checksum, embedder)
    if embedder is not None:
        check_sendable(Embedder.of(embedder), client)
    k = None if k is None else check_k(k, len(model.classes_))
    listed = list_partitions(partitions)
    Path(folder).mkdir(parents=True, exist_ok=True)
    n_digits = max(5, len(str(len(listed))))
    targets = [os.path.join(folder, f"part-{i:0{n_digits}}.{format}") for i in range(len(listed))]
    n_jobs = model.n_jobs if client is None else 1
    calls = [
        (path, checksum, str(i), partition, target, k, n_jobs, embedder)
        for i, (partition, target) in enumerate(zip(listed, targets, strict=True))
    ]
    tell = on_stage or (lambda *_: None)
    tell(_STAGE, 0, len(calls))
    keys = [f"{_STAGE}-{i}-{checksum[:16]}-{os.urandom(4).hex()}" for i in range(len(calls))]
    for done, report in enumerate(call_each(predict_partition, calls, client, keys), 1):
        if on_task is not None:
            on_task(report)
        tell(_STAGE, done, len(calls))
    return targets


def predict_partition(
    path: str,
    checksum: str,
    name: str,
    partition: Partition,
    target: str,
    k: int | None,
    n_jobs: int | None,
    embedder: Any = None,
) -> TaskReport:
    """Write the predictions of one partition; return what it has cost."""
    report = start_report(_STAGE, name, n_jobs)
    model = _open_with(path, checksum, embedder).set_threads(n_jobs)
    n_terms = None if model.takes_texts else model.n_features_in_
    fields = model.vocabulary_.options.fields if model.takes_texts else None
    with _replacing(Path(target)) as write:
        for chunk in read_chunks(partition, labelled=False, n_terms=n_terms, fields=fields):
            if isinstance(chunk.content, list) != model.takes_texts:
                wanted = "texts" if model.takes_texts else "counts"
                raise PartitionError(partition.name, f"this model takes {wanted}.")
            write(_rank(model, chunk, k))
    source = partition.source
    files = [] if callable(source) else [os.fspath(source.path)]
    return report([path, *files], [target])


@lru_cache(maxsize=1)
def _open(path: str, checksum: str) -> Any:
    """Open a model; each process caches the last one."""
    return load(path)


def _open_with(path: str, checksum: str, embedder: Any) -> Any:
    """Return a model with its encoder, for one caller."""
    model = copy.copy(_open(path, checksum))
    if embedder is not None:
        model._use_embedder(embedder)
    return model


def _rank(model: Any, chunk: Chunk, k: int | None) -> Rows:
    """Return the predictions of a chunk."""
    is_set = k is None and model.multilabel_
    ranking = rank(model, chunk.content, count_candidates(model) if is_set else k or 1)
    n_shown = count_predicted(ranking, is_set) if k is None else ranking.valid.sum(axis=1)
    values = "probabilities" if knows_probabilities(model) else "scores"
    texts = class_texts(model)
    rows = []
    for line, classes, scores, n in zip(
        chunk.lines,
        ranking.classes.tolist(),
        ranking.scores.tolist(),
        n_shown.tolist(),
        strict=True,
    ):
        named = {"class_texts": [*map(texts.get, classes[:n])]} if texts else {}
        rows.append({"line": line, "classes": classes[:n], **named, values: scores[:n]})
    return rows


@contextmanager
def _replacing(path: Path) -> Iterator[Callable[[Rows], None]]:
    """Yield the function that writes rows to a file, which is moved into place at the end."""
    open_rows = _open_parquet if path.suffix == ".parquet" else _open_jsonl
    with replacing(path) as beside, open_rows(beside) as write:
        yield write
    sync_folder(path.parent)


@contextmanager
def _open_jsonl(path: Path) -> Iterator[Callable[[Rows], None]]:
    with open(path, "w", encoding="utf-8") as file:
        yield lambda rows: file.writelines(
            json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows
        )
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _open_parquet(path: Path) -> Iterator[Callable[[Rows], None]]:
    pa = import_optional("pyarrow", "writing a Parquet file", "'longtail[data]'")
    from pyarrow import parquet

    writer: Any = None
    try:

        def write(rows: Rows) -> None:
            nonlocal writer
            for row in rows:
                row["classes"] = [str(label) for label in row["classes"]]
            table = pa.Table.from_pylist(rows)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)

        yield write
        if writer is None:
            parquet.write_table(pa.table({"line": pa.array([], pa.int64())}), path)
    finally:
        if writer is not None:
            writer.close()
