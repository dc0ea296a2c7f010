"""The commands: they parse, call and print; what they compute is in the other rooms.

Rooms are imported when a command runs, so that `longtail --help` answers at once.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.show import (
    append_json,
    clear_errors,
    print_json,
    print_measurements,
    print_table,
    progress,
    say,
)

_EXAMPLES = 6  # test documents that the demonstration shows
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

app = typer.Typer(
    name="longtail",
    help="Classify text into ten thousand to a million classes, most of them rare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(no_args_is_help=True)
app.add_typer(bench, name="bench", help="Measure accuracy, time and memory.")

Threads = Annotated[int, typer.Option("--threads", help="Number of threads; -1 is every core.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides every random draw.")]
Seeds = Annotated[str, typer.Option("--seeds", help="Comma-separated numbers.")]
DataSets = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets by name or folder; all of the folder by default."),
]
DataFolder = Annotated[Path, typer.Option("--folder", help="Where data sets are found by name.")]
Out = Annotated[Path | None, typer.Option(help="Append each row to this JSON lines file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command()
def demo(threads: Threads = -1, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Learn 12,582 classes of WordNet, evaluate them, and classify a few definitions."""
    with clear_errors():
        _run_demo(threads, seed, as_json)


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
        str, typer.Option(help="Comma-separated: longtail, paper, centroid, pecos.")
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


def _run_demo(threads: int, seed: int, as_json: bool) -> None:
    """Fit and evaluate on the embedded WordNet set, then show a few documents."""
    from longtail import DoubleSamplingClassifier, LongTailClassifier
    from longtail.baselines import NearestCentroid
    from longtail.benchmark import measure
    from longtail.datasets import load_wordnet, load_wordnet_counts

    paper = DoubleSamplingClassifier(random_state=seed, n_jobs=threads)
    classifier = LongTailClassifier(random_state=seed, n_jobs=threads)
    with progress() as update:
        update("reading WordNet", 0, 1)
        data, texts = load_wordnet_counts(), load_wordnet()
        results = [
            measure("nearest centroid", NearestCentroid(n_jobs=threads), data, update),
            measure("(π,κ)-DS, the paper", paper, data, update),
            measure("LongTailClassifier", classifier, data, update),
        ]
    shown = range(0, len(texts.test_text), len(texts.test_text) // _EXAMPLES)[:_EXAMPLES]
    top = classifier.predict_proba_topk(data.X_test[list(shown)], 3)
    examples = [
        {
            "text": texts.test_text[document],
            "class": str(texts.test_labels[document]),
            "predicted": data.classes[numbers].tolist(),
            "probabilities": probabilities.tolist(),
        }
        for document, numbers, probabilities in zip(shown, top.classes, top.scores, strict=True)
    ]
    if as_json:
        print_json({"results": [asdict(result) for result in results], "examples": examples})
        return
    sizes = f"{data.X_train.shape[0]:,} training and {data.X_test.shape[0]:,} test definitions"
    print_measurements(f"WordNet: {sizes}, {len(data.classes):,} classes", results)
    _print_examples(examples)


def _print_examples(examples: list[dict[str, Any]]) -> None:
    """Print documents with their classes and what was predicted."""
    rows = [
        (
            example["text"],
            example["class"],
            "\n".join(
                f"{probability:4.0%} {label}"
                for label, probability in zip(
                    example["predicted"], example["probabilities"], strict=True
                )
            ),
        )
        for example in examples
    ]
    header = ("definition", "class", "predicted by LongTailClassifier, with probability")
    print_table("Test definitions", header, rows)


def _run_paper(
    preset: str, train: Path, test: Path, threads: int, seed: int, as_json: bool
) -> None:
    """Run a preset on the user's files and print the row beside the paper's."""
    from longtail import DoubleSamplingClassifier
    from longtail.benchmark import measure
    from longtail.datasets import find_preset, load_preset_files

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
    from longtail.benchmark.compare import compare, cost_ratios
    from longtail.benchmark.data import find_data_sets

    chosen = systems.split(",")
    with progress() as update:
        rows = compare(
            names or list(find_data_sets(folder)),
            chosen,
            n_threads=threads,
            seeds=_numbers(seeds),
            progress=update,
            data_folder=folder,
            on_row=lambda row: append_json(out, asdict(row)),
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

    from longtail.benchmark.ablation import VARIANTS, run_ablation
    from longtail.benchmark.data import find_data_set, find_data_sets, load_counts

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
    from longtail.benchmark import measure_trust
    from longtail.benchmark.data import find_data_set, find_data_sets, load_counts

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
