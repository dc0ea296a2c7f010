"""`longtail bench`: accuracy, time and memory of systems on data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.shared_options import AsJson, Seed, TextColumns, Threads
from longtail.cli.show import clear_errors
from longtail_bench.cli.show import (
    DATA_FOLDER,
    DataFolder,
    DataSets,
    LabelColumn,
    Out,
    Seeds,
    parse_integers,
)

bench = typer.Typer(
    help="Compare systems on data sets: accuracy, time and memory.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@bench.command()
def paper(
    preset: Annotated[str, typer.Argument(help="lshtc1, dmoz, wiki-small, wiki-50k or wiki-100k.")],
    train: Annotated[Path, typer.Option(help="Training file in LSHTC format.")],
    test: Annotated[Path, typer.Option(help="Test file in LSHTC format.")],
    threads: Threads = -1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Run the paper's settings on your copy of one of its collections, beside its own row."""
    from longtail_bench.cli import experiments

    with clear_errors():
        experiments.run_paper(preset, train, test, threads, seed, as_json)


@bench.command()
def compare(
    data: DataSets = None,
    systems: Annotated[
        str, typer.Option(help="Comma-separated, such as longtail,pecos; see `bench systems`.")
    ] = "longtail,paper,centroid",
    folder: DataFolder = DATA_FOLDER,
    seeds: Seeds = "0",
    threads: Annotated[int, typer.Option("--threads", help="Threads of each system.")] = 2,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Run systems on data sets, each run in a process of its own, and compare them."""
    from longtail_bench.cli import experiments

    with clear_errors():
        experiments.run_compare(data, systems, folder, seeds, threads, out, as_json)


@bench.command()
def run(
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A data set by name, folder or file (counts.npz, CSV, TSV, JSON lines, Parquet), "
            "repeatable; all of the folder if left out."
        ),
    ] = None,
    systems: Annotated[
        str, typer.Option(help="Comma-separated names of `bench systems`, or all.")
    ] = "all",
    out: Annotated[
        Path, typer.Option(help="Rows are appended here; those that it has are not run again.")
    ] = Path("results.jsonl"),
    folder: DataFolder = DATA_FOLDER,
    seeds: Seeds = "0",
    threads: Annotated[int, typer.Option("--threads", help="Threads of each system.")] = 2,
    time_limit: Annotated[float, typer.Option(help="Seconds of a run.")] = 3600,
    memory_limit: Annotated[
        float | None, typer.Option(help="MB of a run; nine tenths of the machine if left out.")
    ] = None,
    tune: Annotated[
        int, typer.Option(help="Settings of each system to try on held-out documents.")
    ] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Such as ova.C=10; repeatable.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed.")] = False,
    text: TextColumns = None,
    label: LabelColumn = None,
    label_separator: Annotated[
        str | None,
        typer.Option(help="What separates several labels in the label column, such as ';'."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of the documents to test, with the same columns; about a fifth of the "
            "data if left out.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run systems on data sets, each in processes of its own, and keep a row of each."""
    from longtail_bench.cli.systems import parse_settings, run_systems
    from longtail_bench.table_data import TableColumns

    with clear_errors():
        run_systems(
            data,
            systems,
            folder,
            as_json,
            out=out,
            seeds=parse_integers("--seeds", seeds),
            n_threads=threads,
            time_limit=time_limit,
            memory_limit=memory_limit,
            tune=tune,
            settings=parse_settings(settings or []),
            retry=retry,
            columns=TableColumns(text or [], label, label_separator, test),
        )


@bench.command()
def report(
    results: Annotated[Path, typer.Argument(help="A file that `bench run` wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("report"),
) -> None:
    """Turn results into tables (Markdown, HTML) and figures (PNG, SVG)."""
    from longtail_bench.cli.systems import write_report_files

    with clear_errors():
        write_report_files(results, out)


@bench.command()
def systems(as_json: AsJson = False) -> None:
    """List the systems that can be run, and whether their environments are there."""
    from longtail_bench.cli.systems import list_systems

    with clear_errors():
        list_systems(as_json)


@bench.command()
def environments(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which; all of them by default.")
    ] = None,
) -> None:
    """Create the environments of systems that need one of their own."""
    from longtail_bench.cli.systems import create_environments

    with clear_errors():
        create_environments(names)


@bench.command()
def ablation(
    data: DataSets = None,
    folder: DataFolder = DATA_FOLDER,
    seeds: Seeds = "0,1,2",
    threads: Threads = -1,
    variants: Annotated[
        str | None, typer.Option(help="Names of variants, separated by ';'; all by default.")
    ] = None,
    out: Out = None,
) -> None:
    """Measure LongTailClassifier with each of its ingredients switched off."""
    from longtail_bench.cli import experiments

    with clear_errors():
        experiments.run_ablation(data, folder, seeds, threads, variants, out)


@bench.command()
def calibration(
    data: DataSets = None,
    folder: DataFolder = DATA_FOLDER,
    seeds: Seeds = "0,1,2",
    threads: Threads = -1,
    out: Out = None,
) -> None:
    """Measure what LongTailClassifier's probabilities and thresholds are worth."""
    from longtail_bench.cli import experiments

    with clear_errors():
        experiments.run_calibration(data, folder, seeds, threads, out)


@bench.command()
def theory(
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Write the log-log figure here.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check the paper's bounds on a synthetic long-tailed problem with known distribution."""
    from longtail_bench.cli import experiments

    with clear_errors():
        experiments.run_theory(quick, figure, seed, as_json)
