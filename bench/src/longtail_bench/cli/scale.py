"""`longtail bench scale`: what each stage of a fit over partitions costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.show import clear_errors, print_json, print_table, progress
from longtail_bench.cli.show import append_json, parse_integers


def scale(
    documents: Annotated[
        str, typer.Option("--documents", help="Numbers of documents.")
    ] = "20000,40000",
    classes: Annotated[str, typer.Option("--classes", help="Numbers of classes.")] = "1000,4000",
    partitions: Annotated[str, typer.Option("--partitions", help="Numbers of partitions.")] = "4",
    workers: Annotated[str, typer.Option("--workers", help="Numbers of processes.")] = "1",
    known_rows: Annotated[
        Path | None,
        typer.Option("--rows", help="A file that --out wrote; what it has is not measured again."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="DOCUMENTS,CLASSES,PARTITIONS",
            help="A configuration to measure that the model is not fitted on.",
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="DOCUMENTS,CLASSES,PARTITIONS",
            help="A configuration to say the costs of, without measuring it.",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="As for fit, such as 6GB.")
    ] = None,
    scratch: Annotated[
        Path | None, typer.Option("--scratch", help="Where results are kept meanwhile.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of data and models.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Append rows and model as JSON lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what each stage of a fit over partitions costs, and fit a cost model."""
    from longtail_bench.scale import (
        Configuration,
        fit_cost_model,
        measure_scale,
        read_rows,
        relative_error,
    )

    with clear_errors():
        grid = [
            Configuration(n_documents, n_classes, n_partitions, n_workers)
            for n_documents in parse_integers("--documents", documents)
            for n_classes in parse_integers("--classes", classes)
            for n_partitions in parse_integers("--partitions", partitions)
            for n_workers in parse_integers("--workers", workers)
        ]
        wanted = Configuration(*parse_integers("--expect", expect)) if expect else None
        asked = [Configuration(*parse_integers("--check", check))] if check else []
        known = {} if known_rows is None else read_rows(known_rows)
        rows = []
        measure_scale(Configuration(600, 30, 2), seed=seed)  # so that no row has to compile
        with progress() as update:
            for done, configuration in enumerate([*grid, *asked]):
                update(f"fitting {configuration}", done, len(grid) + len(asked))
                if configuration in known:
                    rows.append(known[configuration])
                    continue
                row = measure_scale(
                    configuration,
                    seed=seed,
                    scratch=None if scratch is None else str(scratch),
                    memory_limit=memory_limit,
                )
                rows.append(row)
                append_json(out, row.as_json())
        model = fit_cost_model(rows[: len(grid)])
        expected = model.predict(wanted) if wanted else {}
        errors = [relative_error(model, row) for row in rows[len(grid) :]]
        if as_json:
            print_json(
                {
                    "rows": [row.as_json() for row in rows],
                    "model": model.coefficients,
                    "mean_relative_error": model.error,
                    "relative_error_of_check": errors[0] if errors else None,
                    "expected": expected,
                }
            )
            return
        for row in rows:
            print_table(
                f"{row.configuration}: {row.seconds:.1f} s, speed-up {row.speedup:.2f}",
                ("stage", "tasks", "CPU s", "busiest", "CPU s by the model", "MB written"),
                [
                    (
                        stage,
                        str(cost.n_tasks),
                        f"{cost.cpu_seconds:.2f}",
                        f"{cost.longest:.2f}",
                        f"{model.predict(row.configuration)[stage]['cpu_seconds']:.2f}",
                        f"{cost.bytes_written / 1e6:.1f}",
                    )
                    for stage, cost in row.stages.items()
                ],
            )
        if expected:
            print_table(
                f"{wanted}, by the model",
                ("stage", "CPU hours", "GB written"),
                [
                    (
                        stage,
                        f"{costs['cpu_seconds'] / 3600:,.1f}",
                        f"{costs['bytes_written'] / 1e9:,.1f}",
                    )
                    for stage, costs in expected.items()
                ],
            )
        print_table(
            "cost model",
            ("mean relative error", "error of the check"),
            [(f"{model.error:.1%}", f"{errors[0]:.1%}" if errors else "none")],
        )
