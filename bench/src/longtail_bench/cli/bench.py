"""`longtail bench`: accuracy, time and memory of systems on data sets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.options import AsJson, Seed, Threads
from longtail.cli.show import clear_errors, print_json, print_table, progress, say
from longtail_bench.cli.show import append_json, print_measurements

_DATA_FOLDER = Path("../shared/data")
_QUICK_THEORY = {
    "n_classes": 8,
    "documents": (500, 1000, 2000, 4000),
    "adversaries": (1, 3, 7),
    "examples": (5, 10, 20, 40),
    "repeats": 2,
    "balanced_repeats": 20,
    "fresh_per_class": 1000,
}

bench = typer.Typer(no_args_is_help=True)

Seeds = Annotated[str, typer.Option("--seeds", help="Comma-separated numbers.")]
DataSets = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets by name or folder; all of the folder by default."),
]
DataFolder = Annotated[Path, typer.Option("--folder", help="Where data sets are found by name.")]
Out = Annotated[Path | None, typer.Option(help="Append each row to this JSON lines file.")]


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
    with clear_errors():
        _run_paper(preset, train, test, threads, seed, as_json)


@bench.command()
def compare(
    data: DataSets = None,
    systems: Annotated[
        str, typer.Option(help="Comma-separated, such as longtail,pecos; see `bench systems`.")
    ] = "longtail,paper,centroid",
    folder: DataFolder = _DATA_FOLDER,
    seeds: Seeds = "0",
    threads: Annotated[int, typer.Option("--threads", help="Threads of each system.")] = 2,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Run systems on data sets, each run in a process of its own, and compare them."""
    with clear_errors():
        _run_compare(data, systems, folder, seeds, threads, out, as_json)


@bench.command()
def run(
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A data set by name or folder, repeatable; all of the folder if left out."
        ),
    ] = None,
    systems: Annotated[
        str, typer.Option(help="Comma-separated names of `bench systems`, or all.")
    ] = "all",
    out: Annotated[
        Path, typer.Option(help="Rows are appended here; those that it has are not run again.")
    ] = Path("results.jsonl"),
    folder: DataFolder = _DATA_FOLDER,
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
    as_json: AsJson = False,
) -> None:
    """Run systems on data sets, each in processes of its own, and keep a row of each."""
    from longtail_bench.cli.systems import parse_settings, run_systems

    with clear_errors():
        run_systems(
            data,
            systems,
            folder,
            as_json,
            out=out,
            seeds=_numbers(seeds),
            n_threads=threads,
            time_limit=time_limit,
            memory_limit=memory_limit,
            tune=tune,
            settings=parse_settings(settings or []),
            retry=retry,
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
    folder: DataFolder = _DATA_FOLDER,
    seeds: Seeds = "0,1,2",
    threads: Threads = -1,
    out: Out = None,
) -> None:
    """Measure LongTailClassifier with each of its ingredients switched off."""
    with clear_errors():
        _run_ablation(data, folder, seeds, threads, out)


@bench.command()
def calibration(
    data: DataSets = None,
    folder: DataFolder = _DATA_FOLDER,
    seeds: Seeds = "0,1,2",
    threads: Threads = -1,
) -> None:
    """Measure what LongTailClassifier's probabilities and thresholds are worth."""
    with clear_errors():
        _run_calibration(data, folder, seeds, threads)


@bench.command()
def theory(
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Write the log-log figure here.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check the paper's bounds on a synthetic long-tailed problem with known distribution."""
    with clear_errors():
        _run_theory(quick, figure, seed, as_json)


def _run_paper(
    preset: str, train: Path, test: Path, threads: int, seed: int, as_json: bool
) -> None:
    """Run a preset on the user's files and print the row beside the paper's."""
    from longtail import DoubleSamplingClassifier
    from longtail_bench.measure import measure
    from longtail_bench.presets import find_preset, load_preset_files

    settings = find_preset(preset)
    classifier = DoubleSamplingClassifier(
        examples_per_class=settings.examples_per_class,
        adversaries=settings.adversaries,
        candidates=settings.candidates,
        random_state=seed,
        n_jobs=threads,
    )
    with progress() as update:
        update("reading", 0, 1)
        data = load_preset_files(settings, train, test)
        result = measure("(π,κ)-DS, here", classifier, data, update)
    if as_json:
        print_json({"here": asdict(result), "paper": asdict(settings.paper_row)})
        return
    print_table(
        f"{settings.name}: κ={settings.adversaries}, q={settings.candidates}, "
        f"{settings.examples_per_class} example(s) per class",
        (
            "",
            "classes",
            "train",
            "test",
            "train time",
            "predict time",
            "memory",
            "accuracy",
            "MaF1",
        ),
        [
            (
                "here",
                f"{data.n_train_classes:,}",
                f"{data.X_train.shape[0]:,}",
                f"{data.X_test.shape[0]:,}",
                f"{result.fit_seconds:.1f}s",
                f"{result.predict_seconds:.1f}s",
                f"{result.peak_megabytes / 1000:.2f}G",
                f"{result.accuracy:.1%}",
                f"{result.macro_f1_of_means:.1%}",
            ),
            (
                "paper, Table 3",
                f"{settings.n_classes:,}",
                f"{settings.n_train:,}",
                f"{settings.n_test:,}",
                settings.paper_row.train_time,
                settings.paper_row.predict_time,
                settings.paper_row.memory,
                settings.paper_row.accuracy,
                settings.paper_row.macro_f1,
            ),
        ],
    )
    say(
        "MaF1 is the harmonic mean of macro precision and macro recall, the paper's definition; "
        f"the mean of the per-class F1 is {result.macro_f1:.1%}."
    )
    if data.n_unseen:
        say(f"{data.n_unseen:,} test documents have classes without training documents.")


def _run_compare(
    names: list[str] | None,
    systems: str,
    folder: Path,
    seeds: str,
    threads: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every system on every data set and print a table for each, then what they cost."""
    from longtail_bench.compare import cost_ratios
    from longtail_bench.data import find_data_sets
    from longtail_bench.run import run

    chosen = systems.split(",")
    with progress() as update:
        rows = run(
            names or list(find_data_sets(folder)),
            chosen,
            out=out,
            n_threads=threads,
            seeds=_numbers(seeds),
            progress=update,
            data_folder=folder,
        )
    ratios = cost_ratios(rows) if {"longtail", "pecos"} <= set(chosen) else []
    if as_json:
        print_json({"rows": [asdict(row) for row in rows], "ratios": [asdict(r) for r in ratios]})
        return
    for name in dict.fromkeys(row.data for row in rows):
        print_measurements(name, [row for row in rows if row.data == name])
    if ratios:
        print_table(
            "LongTailClassifier's cost as a multiple of PECOS's, in this run",
            ("", "fit, processor", "predict, processor", "peak memory"),
            [
                (
                    ratio.data,
                    f"{ratio.fit_processor:.2f}",
                    f"{ratio.predict_processor:.2f}",
                    f"{ratio.peak_memory:.2f}",
                )
                for ratio in ratios
            ],
        )


def _run_ablation(
    names: list[str] | None, folder: Path, seeds: str, threads: int, out: Path | None
) -> None:
    """Measure every variant on every data set and print the means over the seeds."""
    from statistics import fmean

    from longtail_bench.ablation import VARIANTS, run_ablation
    from longtail_bench.data import find_data_set, find_data_sets, load_counts

    for name in names or list(find_data_sets(folder)):
        data = load_counts(find_data_set(name, folder))
        results = []
        with progress() as update:
            for seed, result in run_ablation(data, _numbers(seeds), threads, progress=update):
                results.append(result)
                append_json(out, {"data": Path(name).name, "seed": seed, **asdict(result)})
        rows = []
        for variant in VARIANTS:
            mine = [result for result in results if result.system == variant]
            means = [
                f"{fmean(getattr(result, field) for result in mine):.1%}"
                for field in ("accuracy", "macro_f1", "top_5", "top_20")
            ]
            seconds = fmean(result.fit_processor_seconds for result in mine)
            rows.append((variant, *means, f"{seconds:.1f} s"))
        header = ("", "accuracy", "macro F1", "top 5", "top 20", "fit, processor")
        print_table(f"{Path(name).name}, mean over seeds {seeds}", header, rows)


def _run_calibration(names: list[str] | None, folder: Path, seeds: str, threads: int) -> None:
    """Measure the calibration on every data set with every seed."""
    from longtail import LongTailClassifier
    from longtail_bench.data import find_data_set, find_data_sets, load_counts
    from longtail_bench.measure import measure_trust

    rows = []
    with progress() as update:
        places = names or list(find_data_sets(folder))
        for done, name in enumerate(places):
            data = load_counts(find_data_set(name, folder))
            for seed in _numbers(seeds):
                update(f"{Path(name).name}, seed {seed}", done, len(places))
                classifier = LongTailClassifier(random_state=seed, n_jobs=threads)
                trust = measure_trust(classifier, data)
                rows.append(
                    (
                        Path(name).name,
                        str(seed),
                        f"{trust.accuracy:.1%}",
                        f"{trust.calibration_error:.3f}",
                        f"{trust.threshold:.2f}",
                        f"{trust.precision:.1%}",
                        f"{trust.coverage:.1%}",
                    )
                )
    header = ("", "seed", "accuracy", "calibration error", "threshold", "precision", "coverage")
    print_table("Top-1 probabilities, and predictions above threshold_for(0.9)", header, rows)


def _run_theory(quick: bool, figure: Path | None, seed: int, as_json: bool) -> None:
    """Run the consistency experiment and print the rates it measured."""
    from longtail import theory

    options: dict[str, Any] = dict(_QUICK_THEORY) if quick else {}
    with progress() as update:
        result = theory.run_consistency_experiment(
            random_state=seed,
            progress=lambda done, total, sweep: update(sweep, done, total),
            **options,
        )
    if figure is not None:
        theory.plot_consistency(result).savefig(figure)
    rates = theory.measured_rates(result)
    holds = sum(run.holds for run in result.runs)
    if as_json:
        print_json({"runs": result.rows(), "rates": [asdict(rate) for rate in rates]})
        return
    print_table(
        "Rates: the power at which each quantity falls",
        ("sweep", "quantity", "against", "stated", "measured"),
        [
            (rate.sweep, rate.quantity, rate.against, f"{rate.stated:.2f}", f"{rate.measured:.2f}")
            for rate in rates
        ],
    )
    say(f"The inequality holds in {holds} of {len(result.runs)} runs.")


def _numbers(text: str) -> tuple[int, ...]:
    """Parse comma-separated numbers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--seeds must be numbers such as 0,1,2; got {text!r}.") from None
