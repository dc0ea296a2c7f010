"""`longtail bench workers`: the same bits from any number of workers, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.shared_options import AsJson, Seed
from longtail.cli.show import clear_errors, print_json, print_table, progress
from longtail_bench.cli.show import DATA_FOLDER, DataFolder, Out, append_json, parse_integers

if TYPE_CHECKING:
    from longtail_bench.workers import WorkersRow

WHERE = {None: "fit", 0: "this process, shuffled", 1: "Dask, 1 worker"}


def workers(
    data: Annotated[str, typer.Argument(help="A data set by name, folder or file.")],
    folder: DataFolder = DATA_FOLDER,
    workers: Annotated[
        str, typer.Option("--workers", help="Numbers of Dask workers; 0 is this process.")
    ] = "0,1,2",
    partitions: Annotated[str, typer.Option("--partitions", help="Numbers of partitions.")] = "7",
    share: Annotated[
        float, typer.Option("--share", help="Share of the training documents, the first ones.")
    ] = 1.0,
    seed: Seed = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Fit and predict with several numbers of workers and partitions, and compare with `fit`.

    Ends with an error if a model file or a prediction has other bits than those of `fit`.
    """
    from longtail_bench.data import find_data_set
    from longtail_bench.workers import compare_workers

    with clear_errors():
        n_workers = parse_integers("--workers", workers)
        n_partitions = parse_integers("--partitions", partitions)
        n_rows = 1 + len(n_workers) * len(n_partitions)
        done: list[WorkersRow] = []
        with progress() as update:

            def on_row(row: WorkersRow) -> None:
                done.append(row)
                update("fits compared", len(done), n_rows)
                append_json(out, row.as_json())

            path = find_data_set(data, folder if folder.is_dir() else None)
            rows = compare_workers(
                path, n_workers, n_partitions, share=share, seed=seed, on_row=on_row
            )
        if as_json:
            print_json([row.as_json() for row in rows])
        else:
            _print_rows(rows)
        others = [row for row in rows if not row.is_same(rows[0])]
        if others:
            named = "; ".join(f"{_where(row)}, {row.n_partitions} partitions" for row in others)
            raise ValueError(f"model or predictions have other bits than those of fit: {named}.")


def _print_rows(rows: list[WorkersRow]) -> None:
    print_table(
        f"{rows[0].data}: CPU seconds; busiest is the worker that had most to do in each stage",
        (
            *("where", "partitions", "SHA-256 of model", "of predictions"),
            *("fit", "busiest", "predict", "busiest"),
        ),
        [
            (
                _where(row),
                str(row.n_partitions),
                row.model[:12],
                row.predictions[:12],
                f"{row.cpu_seconds:.1f}",
                f"{row.busiest:.1f}",
                f"{row.predict_cpu_seconds:.1f}",
                f"{row.predict_busiest:.1f}",
            )
            for row in rows
        ],
    )


def _where(row: WorkersRow) -> str:
    return WHERE.get(row.n_workers, f"Dask, {row.n_workers} workers")
