"""`longtail bench speed | growth | cold-start`: where our own time and memory go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.shared_options import AsJson, Seed
from longtail.cli.show import clear_errors, print_json, print_table, progress, say
from longtail_bench.cli.show import (
    DATA_FOLDER,
    DataFolder,
    DataSets,
    Out,
    append_json,
    parse_integers,
)

Estimators = Annotated[
    str,
    typer.Option(help="Comma-separated: LongTailClassifier, DoubleSamplingClassifier."),
]
TimeLimit = Annotated[float, typer.Option(help="Seconds on the clock of each row.")]


def speed(
    data: DataSets = None,
    folder: DataFolder = DATA_FOLDER,
    estimators: Estimators = "LongTailClassifier,DoubleSamplingClassifier",
    threads: Annotated[
        str, typer.Option("--threads", help="Numbers of threads, comma-separated.")
    ] = "1,2",
    documents: Annotated[int, typer.Option(help="Test documents to predict.")] = 10_000,
    time_limit: TimeLimit = 3600,
    seed: Seed = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure every stage of fit and prediction, against brute force and memory bandwidth.

    Without data sets in the folder, the WordNet set inside the package is used; its name is
    wordnet.
    """
    from longtail_bench.speed import available_data, run_speed

    with clear_errors():
        with progress() as update:
            rows = run_speed(
                data or available_data(folder),
                estimators.split(","),
                n_threads=parse_integers("--threads", threads),
                n_documents=documents,
                seed=seed,
                time_limit=time_limit,
                data_folder=folder if folder.is_dir() else None,
                progress=update,
                on_row=lambda row: append_json(out, row),
            )
        if as_json:
            print_json(rows)
        else:
            for name in dict.fromkeys(row["data"] for row in rows):
                print_speed([row for row in rows if row["data"] == name])


def cold_start(as_json: AsJson = False, out: Out = None) -> None:
    """Measure the first fit and predict where no kernel has been compiled yet."""
    from longtail_bench.cold_start import run_cold_start

    with clear_errors():
        with progress() as update:
            rows = run_cold_start(update)
        for row in rows:
            append_json(out, row)
        if as_json:
            print_json(rows)
            return
        print_table(
            "First fit and predict, CPU seconds",
            ("", "importing", "compiling", "the rest", "kernels"),
            [
                (
                    row["task"],
                    *(f"{row[f'{name}_cpu_seconds']:.1f}" for name in ("import", "compile", "run")),
                    str(row["compiled"]),
                )
                for row in rows
            ],
        )


def growth(
    classes: Annotated[
        str, typer.Option(help="Numbers of classes, comma-separated.")
    ] = "1000,10000,100000,1000000",
    documents_per_class: Annotated[
        float, typer.Option(help="Mean number of training documents of a class.")
    ] = 5.0,
    systems: Annotated[
        str, typer.Option(help="Comma-separated names of `bench systems`, such as longtail,pecos.")
    ] = "longtail,paper",
    threads: Annotated[int, typer.Option("--threads", help="Number of threads.")] = 2,
    time_limit: TimeLimit = 3600,
    memory_limit: Annotated[
        float | None, typer.Option(help="MB of each row; none if left out.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write the log-log figure here.")] = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure how time and memory grow with the classes, on synthetic long-tailed sets."""
    from dataclasses import asdict

    from longtail_bench.growth import fit_exponents, run_growth

    with clear_errors():
        with progress() as update:
            rows = run_growth(
                parse_integers("--classes", classes),
                systems.split(","),
                documents_per_class=documents_per_class,
                seed=seed,
                n_threads=threads,
                time_limit=time_limit,
                memory_limit=float("inf") if memory_limit is None else memory_limit,
                progress=update,
                on_row=lambda row: append_json(out, row),
            )
        exponents = [asdict(exponent) for exponent in fit_exponents(rows)]
        if figure is not None:
            from longtail_bench.growth_figure import plot_growth

            plot_growth(rows).savefig(figure, dpi=150)
        if as_json:
            print_json({"rows": rows, "exponents": exponents})
        else:
            print_growth(rows, exponents)


def print_speed(rows: list[dict[str, Any]]) -> None:
    """Print the rows of one data set: a table for each kind of figure, a column for each row."""
    failed = [row for row in rows if row["error"]]
    rows = [row for row in rows if not row["error"]]
    for row in failed:
        say(f"{row['data']}, {row['estimator']}, {row['n_threads']} threads: {row['error']}")
    for estimator in dict.fromkeys(row["estimator"] for row in rows):
        mine = [row for row in rows if row["estimator"] == estimator]
        sizes = mine[0]["sizes"]
        print_table(
            f"{mine[0]['data']}: {estimator}, {sizes['classes']:,} classes, {sizes['train']:,} "
            f"documents, {sizes['documents']:,} predicted; CPU / wall time",
            ("", *(f"{row['n_threads']} thread(s)" for row in mine)),
            [
                *_stage_lines(mine, "fit", 1.0, "s"),
                *_stage_lines(mine, "predict", 1e6, "µs a document"),
                *_other_lines(mine),
            ],
        )


def _stage_lines(
    rows: list[dict[str, Any]], step: str, factor: float, measured_in: str
) -> list[tuple[str, ...]]:
    """Return a line for a step and one for each of its stages."""

    def cell(row: dict[str, Any], cost: dict[str, float]) -> str:
        scale = factor / (1 if step == "fit" else row["sizes"]["documents"])
        return f"{cost['cpu_seconds'] * scale:.2f} / {cost['wall_seconds'] * scale:.2f}"

    lines = [(f"{step}, {measured_in}", *(cell(row, row[step]) for row in rows))]
    for stage in rows[0][step]["stages"]:
        costs = (cell(row, row[step]["stages"][stage]) for row in rows)
        lines.append((f"  {stage}", *costs))
    return lines


def _other_lines(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a line for everything that is not a stage."""
    kinds: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("documents a second", lambda row: f"{row['predict']['documents_per_second']:,.0f}"),
        (
            "one document, p50, ms",
            lambda row: _both(row["latency"], "p50_{}_milliseconds"),
        ),
        ("one document, p95, ms", lambda row: _both(row["latency"], "p95_{}_milliseconds")),
        ("postings of a document", lambda row: f"{row['search']['postings']:,.0f}"),
        ("  of the terms searched", lambda row: f"{row['search']['postings_searched']:,.0f}"),
        ("  postings read", lambda row: f"{row['search']['postings_read']:,.0f}"),
        ("  byte-row entries read", lambda row: f"{row['search']['byte_entries_read']:,.0f}"),
        ("  classes scored exactly", lambda row: f"{row['search']['classes_scored']:,.1f}"),
        (
            "search, µs a document",
            lambda row: _both(row["searched_terms"], "search_{}_microseconds"),
        ),
        (
            "  brute force, these terms",
            lambda row: _both(row["searched_terms"], "brute_{}_microseconds"),
        ),
        (
            "search with all terms, µs",
            lambda row: _both(row["all_terms"], "search_{}_microseconds"),
        ),
        (
            "  brute force, all terms",
            lambda row: _both(row["all_terms"], "brute_{}_microseconds"),
        ),
        ("  memory floor", lambda row: _both(row["bandwidth"], "floor_{}_microseconds")),
        (
            "copy bandwidth, GB/s",
            lambda row: _both(row["bandwidth"], "bytes_per_{}_second", 1e-9),
        ),
        ("input, MB", lambda row: f"{row['memory']['input_megabytes']:,.0f}"),
        ("peak before fit, MB", lambda row: f"{row['memory']['peak_before_megabytes']:,.0f}"),
        ("peak after fit, MB", lambda row: f"{row['memory']['peak_fit_megabytes']:,.0f}"),
        ("peak after predict, MB", lambda row: f"{row['memory']['peak_predict_megabytes']:,.0f}"),
        ("model in memory, MB", lambda row: f"{row['memory']['model_bytes'] / 1e6:,.1f}"),
        ("model as a file, MB", lambda row: f"{row['memory']['file_bytes'] / 1e6:,.1f}"),
    ]
    lines = [(name, *(value(row) for row in rows)) for name, value in kinds]
    for array_name, size in sorted(rows[0]["memory"]["parts"].items(), key=lambda entry: -entry[1]):
        if size >= 0.01 * rows[0]["memory"]["model_bytes"]:
            sizes = (f"{row['memory']['parts'][array_name] / 1e6:,.1f}" for row in rows)
            lines.append((f"  {array_name}, MB", *sizes))
    return lines


def _both(figures: dict[str, float], name: str, factor: float = 1.0) -> str:
    """Return processor and wall time."""
    processor, wall = (figures[name.format(clock)] * factor for clock in ("cpu", "wall"))
    return f"{processor:.2f} / {wall:.2f}"


def print_growth(rows: list[dict[str, Any]], exponents: list[dict[str, Any]]) -> None:
    """Print a line for each row and the exponents."""
    header = (
        "",
        "classes",
        "documents",
        "terms",
        "fit",
        "predict",
        "input",
        "peak",
        "model",
        "accuracy",
    )
    lines = []
    for row in rows:
        start = (row["estimator"], f"{row['n_classes']:,}")
        if row["error"]:
            lines.append((*start, row["error"], *[""] * (len(header) - 3)))
            continue
        lines.append(
            (
                *start,
                f"{row['sizes']['train']:,}",
                f"{row['sizes']['terms']:,}",
                f"{row['fit']['cpu_seconds']:.1f} s",
                f"{row['predict']['cpu_microseconds']:.0f} µs",
                f"{row['memory']['input_megabytes']:,.0f} MB",
                f"{row['memory']['peak_megabytes']:,.0f} MB",
                f"{row['memory']['model_bytes'] / 1e6:,.0f} MB",
                f"{row['accuracy']:.1%}",
            )
        )
    print_table("Growth with the number of classes; CPU time, all threads", header, lines)
    if exponents:
        print_table(
            "Exponents: quantity ~ K^exponent",
            ("", "quantity", "all sizes", "last two"),
            [
                (
                    exponent["estimator"],
                    exponent["quantity"],
                    f"{exponent['overall']:.2f}",
                    f"{exponent['at_the_end']:.2f}",
                )
                for exponent in exponents
            ],
        )
