"""`longtail bench beyond-memory`: a large synthetic set under a memory limit, seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.shared_options import AsJson, Seed
from longtail.cli.show import clear_errors, print_json, print_table, say
from longtail_bench.cli.show import Out, append_json


def beyond_memory(
    scratch: Annotated[
        Path, typer.Option("--scratch", help="Keeps results; a stopped run goes on from them.")
    ],
    documents: Annotated[int, typer.Option("--documents", help="How many.")] = 10_000_000,
    classes: Annotated[int, typer.Option("--classes", help="How many.")] = 500_000,
    partitions: Annotated[int, typer.Option("--partitions", help="How many.")] = 100,
    workers: Annotated[int, typer.Option("--workers", help="Processes.")] = 1,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="As for fit, such as 6GB.")
    ] = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Fit and predict a large synthetic set, and measure the memory of all processes."""
    from longtail_bench.beyond_memory import measure_large
    from longtail_bench.scale import Configuration

    with clear_errors():
        sizes = Configuration(documents, classes, partitions, workers)
        row = measure_large(sizes, scratch, memory_limit, seed)
        append_json(out, row.as_json())
        if as_json:
            print_json(row.as_json())
            return
        print_table(
            f"{documents:,} documents, {classes:,} classes, limit {memory_limit or 'none'}",
            ("stage", "tasks", "CPU s", "busiest", "MB written"),
            [
                (
                    stage,
                    str(cost.n_tasks),
                    f"{cost.cpu_seconds:.1f}",
                    f"{cost.longest:.1f}",
                    f"{cost.bytes_written / 1e6:,.0f}",
                )
                for stage, cost in row.stages.items()
            ],
        )
        say(
            f"Peak memory of all processes: {row.fit_megabytes:,.0f} MB to fit, "
            f"{row.predict_megabytes:,.0f} MB to predict; {row.cpu_seconds:,.0f} CPU seconds; "
            f"{row.accuracy:.1%} of the new documents are right."
        )
