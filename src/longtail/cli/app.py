"""The commands: they parse, call and print; what they compute is in the other rooms.

Rooms are imported when a command runs, so that `longtail --help` answers at once.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.show import (
    clear_errors,
    print_json,
    print_measurements,
    print_table,
    progress,
    say,
)

_EXAMPLES = 6  # test documents that the demonstration shows

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


def _run_demo(threads: int, seed: int, as_json: bool) -> None:
    """Fit and evaluate on the embedded WordNet set, then show a few documents."""
    from longtail import DoubleSamplingClassifier
    from longtail.baselines import NearestCentroid
    from longtail.benchmark import measure
    from longtail.datasets import load_wordnet, load_wordnet_counts

    classifier = DoubleSamplingClassifier(random_state=seed, n_jobs=threads)
    with progress() as update:
        update("reading WordNet", 0, 1)
        data, texts = load_wordnet_counts(), load_wordnet()
        results = [
            measure("nearest centroid", NearestCentroid(n_jobs=threads), data, update),
            measure("(π,κ)-DS, the paper", classifier, data, update),
        ]
    shown = range(0, len(texts.test_text), len(texts.test_text) // _EXAMPLES)[:_EXAMPLES]
    top = classifier.predict_topk(data.X_test[list(shown)], 3)
    examples = [
        {
            "text": texts.test_text[document],
            "class": str(texts.test_labels[document]),
            "predicted": data.classes[numbers].tolist(),
        }
        for document, numbers in zip(shown, top.classes, strict=True)
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
        (example["text"], example["class"], "\n".join(example["predicted"])) for example in examples
    ]
    print_table("Test definitions", ("definition", "class", "predicted, best first"), rows)


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
