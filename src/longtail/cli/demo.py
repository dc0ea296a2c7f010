"""`longtail demo`: learn the embedded WordNet set and show what comes of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from longtail.cli.options import AsJson, Seed, Threads
from longtail.cli.show import clear_errors, print_json, print_measurements, print_table, progress

_EXAMPLES = 6  # test documents that the demonstration shows


def demo(threads: Threads = -1, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Learn 12,582 classes of WordNet, evaluate them, and classify a few definitions."""
    with clear_errors():
        _run_demo(threads, seed, as_json)


def _run_demo(threads: int, seed: int, as_json: bool) -> None:
    """Fit and evaluate on the embedded WordNet set, then show a few documents."""
    from longtail_bench.baselines import NearestCentroid
    from longtail_bench.measure import measure

    from longtail import DoubleSamplingClassifier, LongTailClassifier
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
