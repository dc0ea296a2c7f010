"""`--dask`, `--workers`, `--memory-limit`, `--scratch`: fit and predict over partitions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.inputs import Source, find_embedder
from longtail.cli.show import Update

_option = partial(typer.Option, rich_help_panel="Beyond memory and beyond one machine")


@dataclass(frozen=True)
class Cluster:
    """Where tasks run, as the options say."""

    dask: Annotated[
        str | None,
        _option(metavar="ADDRESS", help="Scheduler of a Dask cluster, such as tcp://host:8786."),
    ] = None
    workers: Annotated[
        int | None,
        _option(min=1, metavar="N", help="Processes on this machine that share the files."),
    ] = None
    memory_limit: Annotated[
        str | None, _option(metavar="SIZE", help="For all processes together, such as 6GB.")
    ] = None
    scratch: Annotated[
        Path | None,
        _option(
            metavar="FOLDER",
            help="Where results are kept, so that a second run does what is missing; all workers "
            "must see it.",
        ),
    ] = None

    @property
    def is_asked(self) -> bool:
        """Whether any option asks for partitions."""
        return any(option is not None for option in vars(self).values())

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Yield a client: of Dask, a pool of processes, or None."""
        if self.dask is not None and self.workers is not None:
            raise ValueError("--dask and --workers: give one of them.")
        with ExitStack() as stack:
            yield stack.enter_context(self._client()) if self.dask or self.workers else None

    def _client(self) -> Any:
        if self.workers:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            # Not forked: threads of this process may hold locks.
            context = multiprocessing.get_context("spawn")
            return ProcessPoolExecutor(self.workers, mp_context=context)
        from longtail.distributed.tasks import import_dask

        return import_dask().Client(self.dask)

    @contextmanager
    def open_scratch(self) -> Iterator[str]:
        """Yield the folder of results: the given one, or a temporary one."""
        if self.scratch is not None:
            yield str(self.scratch)
            return
        if self.dask is not None:
            raise ValueError("--dask needs --scratch FOLDER, a folder that all workers see.")
        with tempfile.TemporaryDirectory(prefix="longtail-") as folder:
            yield folder


@dataclass
class Totals:
    """Cost of the tasks of a command so far."""

    n_tasks: int = 0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    update: Update | None = field(default=None, repr=False)

    def on_task(self, report: Any) -> None:
        """Add a task."""
        self.n_tasks += 1
        self.cpu_seconds += report.cpu_seconds
        self.bytes_read += report.bytes_read
        self.bytes_written += report.bytes_written

    def on_stage(self, stage: str, done: int, total: int) -> None:
        """Show the tasks of a stage, and the bytes that all tasks have moved."""
        if self.update is not None:
            moved = (self.bytes_read + self.bytes_written) / 1e6
            self.update(f"{stage} ({moved:,.0f} MB moved)", done, total or None, "task")

    def summary(self) -> dict[str, float]:
        """Return the numbers."""
        return {
            "tasks": self.n_tasks,
            "task_cpu_seconds": self.cpu_seconds,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
        }


def list_sources(source: Source, labelled: bool) -> list[Any]:
    """Return the files of a source as partitions."""
    layout = source.layout
    if layout.skip_bad_rows or layout.bad_rows:
        raise ValueError(
            "--skip-bad-rows and --bad-rows do not go with --dask, --workers, --memory-limit and "
            "--scratch: bad rows would be listed by several processes. Check the files first."
        )
    if "-" in source.paths:
        raise ValueError("standard input cannot be divided among workers; give files.")
    if layout.replicate and not source.holds_counts:
        raise ValueError("--replicate goes with files of counts only, where workers share files.")
    return [source.file(path, labelled) for path in source.paths]


def fit_on(
    cluster: Cluster,
    estimator: Any,
    source: Source,
    update: Update,
    class_texts: dict[str, str] | None,
) -> Totals:
    """Fit an estimator on the files of a source."""
    from longtail.distributed import fit_partitions

    totals = Totals(update=update)
    with cluster.open_scratch() as scratch, cluster.open() as client:
        fit_partitions(
            estimator,
            list_sources(source, labelled=True),
            client=client,
            scratch=scratch,
            memory_limit=cluster.memory_limit,
            on_stage=totals.on_stage,
            on_task=totals.on_task,
            class_texts=class_texts,
        )
    return totals


def predict_on(
    cluster: Cluster,
    model: Path,
    source: Source,
    out: Path,
    format: str,
    top: int | None,
    update: Update,
) -> list[str]:
    """Predict the files of a source, each into a file of its own."""
    from longtail.distributed import predict_partitions

    totals = Totals(update=update)
    with cluster.open() as client:
        return predict_partitions(
            model,
            list_sources(source, labelled=False),
            out,
            client=client,
            k=top,
            format=format,
            on_stage=totals.on_stage,
            on_task=totals.on_task,
            embedder=find_embedder(),
        )
