"""`longtail bench paper | compare | ablation | calibration | theory`: what stands behind them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from longtail.cli.show import print_json, print_table, progress, say
from longtail_bench.cli.show import append_json, parse_integers, print_measurements

_QUICK_THEORY = {
    "n_classes": 8,
    "documents": (500, 1000, 2000, 4000),
    "adversaries": (1, 3, 7),
    "examples": (5, 10, 20, 40),
    "repeats": 2,
    "balanced_repeats": 20,
    "fresh_per_class": 1000,
}


def run_paper(preset: str, train: Path, test: Path, threads: int, seed: int, as_json: bool) -> None:
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


def run_compare(
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

    system_names = systems.split(",")
    with progress() as update:
        rows = run(
            names or list(find_data_sets(folder)),
            system_names,
            out=out,
            n_threads=threads,
            seeds=parse_integers("--seeds", seeds),
            progress=update,
            data_folder=folder,
        )
    ratios = cost_ratios(rows) if {"longtail", "pecos"} <= set(system_names) else []
    if as_json:
        print_json({"rows": [asdict(row) for row in rows], "ratios": [asdict(r) for r in ratios]})
        return
    for name in dict.fromkeys(row.data for row in rows):
        print_measurements(name, [row for row in rows if row.data == name])
    if ratios:
        print_table(
            "LongTailClassifier's cost as a multiple of PECOS's, in this run",
            ("", "fit, CPU", "predict, CPU", "peak memory"),
            [
                (
                    ratio.data,
                    f"{ratio.fit_cpu:.2f}",
                    f"{ratio.predict_cpu:.2f}",
                    f"{ratio.peak_memory:.2f}",
                )
                for ratio in ratios
            ],
        )


def run_ablation(
    names: list[str] | None,
    folder: Path,
    seeds: str,
    threads: int,
    variants: str | None,
    out: Path | None,
) -> None:
    """Measure variants on every data set and print the means over the seeds."""
    from statistics import fmean

    from longtail_bench.ablation import choose_variants, run_ablation
    from longtail_bench.data import find_data_set, find_data_sets, load_counts, name_data_set

    selected = choose_variants(variants)
    for name in names or list(find_data_sets(folder)):
        path = find_data_set(name, folder)
        data = load_counts(path)
        results = []
        with progress() as update:
            for seed, result in run_ablation(
                data, parse_integers("--seeds", seeds), threads, selected, progress=update
            ):
                results.append(result)
                append_json(out, {"data": name_data_set(path), "seed": seed, **asdict(result)})
        rows = []
        for variant in selected:
            mine = [result for result in results if result.system == variant]
            means = [
                f"{fmean(getattr(result, field) for result in mine):.1%}"
                for field in ("accuracy", "macro_f1", "top_5", "top_20")
            ]
            seconds = fmean(result.fit_cpu_seconds for result in mine)
            rows.append((variant, *means, f"{seconds:.1f} s"))
        header = ("", "accuracy", "macro F1", "top 5", "top 20", "fit, CPU")
        print_table(f"{name_data_set(path)}, mean over seeds {seeds}", header, rows)


def run_calibration(
    names: list[str] | None, folder: Path, seeds: str, threads: int, out: Path | None
) -> None:
    """Measure the calibration on every data set with every seed."""
    from dataclasses import asdict

    from longtail import LongTailClassifier
    from longtail.answers import plain
    from longtail_bench.data import find_data_set, find_data_sets, name_data_set
    from longtail_bench.measure import measure_reliability
    from longtail_bench.table_data import load_data

    rows = []
    with progress() as update:
        names_found = names or list(find_data_sets(folder))
        for done, name in enumerate(names_found):
            path = find_data_set(name, folder)
            data, title = load_data(path), name_data_set(path)
            for seed in parse_integers("--seeds", seeds):
                update(f"{title}, seed {seed}", done, len(names_found))
                classifier = LongTailClassifier(random_state=seed, n_jobs=threads)
                quality = measure_reliability(classifier, data)
                append_json(out, plain({"data": title, "seed": seed, **asdict(quality)}))
                error = f"{quality.calibration_error:.3f}"
                first = (title, str(seed), f"{quality.accuracy:.1%}", error)
                rows += [
                    (
                        *(("",) * 4 if i else first),
                        f"{kept.asked:.0%}, {'each' if kept.each else 'on average'}",
                        f"{kept.threshold:.3f}",
                        f"{kept.precision:.1%}",
                        f"{kept.coverage:.1%}",
                        f"{kept.lowest:.3f}",
                    )
                    for i, kept in enumerate(quality.kept)
                ]
    measured = ("seed", "accuracy", "calibration error")
    kept_names = ("precision asked for", "threshold", "reached", "coverage", "lowest kept")
    print_table("Probabilities, and what thresholds keep", ("", *measured, *kept_names), rows)


def run_theory(quick: bool, figure: Path | None, seed: int, as_json: bool) -> None:
    """Run the consistency experiment and print the rates it measured."""
    from longtail.paper import theory

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
