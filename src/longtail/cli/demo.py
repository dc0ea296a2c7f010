"""`longtail demo`: learn the embedded WordNet set and show what comes of it."""

from __future__ import annotations

import time
from typing import Any

from longtail.cli.options import AsJson, Quiet, Seed, Threads
from longtail.cli.show import (
    Update,
    clear_errors,
    print_json,
    print_note,
    print_table,
    progress,
    say,
)

_EXAMPLES = 6  # test documents that the demonstration shows
_BATCH = 2000  # documents predicted between two steps of progress
_TOP = 5


def demo(
    threads: Threads = -1, seed: Seed = 0, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Learn 12,582 classes of WordNet, evaluate them, and classify a few definitions."""
    with clear_errors():
        if not quiet:
            print_note(
                "compiling what is not compiled yet, then learning 12,582 classes of WordNet."
            )
        with progress(quiet) as update:
            report = _run(threads, seed, update)
        if as_json:
            print_json(report)
            return
        sizes = "{n_train:,} training and {n_test:,} test definitions, {n_classes:,} classes"
        header = ("", "accuracy", "macro F1", f"in the top {_TOP}", "fit", "predict")
        rows = [
            (
                row["system"],
                f"{row['accuracy']:.1%}",
                f"{row['macro_f1']:.1%}",
                f"{row['top']:.1%}",
                f"{row['fit_cpu_seconds']:.1f} s",
                f"{row['predict_cpu_seconds'] / report['n_test'] * 1e6:.0f} µs per document",
            )
            for row in report["results"]
        ]
        print_table(f"WordNet: {sizes.format(**report)}", header, rows)
        say(
            "Macro F1 is the mean of the per-class F1; times are CPU time over all threads, "
            f"without compiling, which took {report['compile_seconds']:.1f} s before."
        )
        _print_examples(report["examples"])


def _run(threads: int, seed: int, update: Update) -> dict[str, Any]:
    """Compile, then fit and evaluate both estimators on the embedded WordNet set."""
    from longtail.cli.warmup import COMPILING, compile_for_counts

    update(COMPILING, 0, None)
    start = time.perf_counter()
    compile_for_counts(update)
    compiled = time.perf_counter() - start

    from longtail import DoubleSamplingClassifier, LongTailClassifier
    from longtail.datasets import load_wordnet, load_wordnet_counts

    update("reading WordNet", 0, None)
    data, texts = load_wordnet_counts(), load_wordnet()
    paper = DoubleSamplingClassifier(random_state=seed, n_jobs=threads)
    classifier = LongTailClassifier(random_state=seed, n_jobs=threads)
    results = [
        _measure("(π,κ)-DS, the paper", paper, data, update),
        _measure("LongTailClassifier", classifier, data, update),
    ]
    shown = list(range(0, len(texts.test_text), len(texts.test_text) // _EXAMPLES)[:_EXAMPLES])
    top = classifier.predict_proba_topk(data.X_test[shown], 3)
    examples = [
        {
            "text": texts.test_text[document],
            "class": str(texts.test_labels[document]),
            "predicted": [str(data.classes[c]) for c in class_ids[valid].tolist()],
            "probabilities": probabilities[valid].tolist(),
        }
        for document, class_ids, probabilities, valid in zip(
            shown, top.classes, top.scores, top.valid, strict=True
        )
    ]
    return {
        "n_train": data.X_train.shape[0],
        "n_test": data.X_test.shape[0],
        "n_classes": len(data.classes),
        "compile_seconds": compiled,
        "results": results,
        "examples": examples,
    }


def _measure(system: str, classifier: Any, data: Any, update: Update) -> dict[str, Any]:
    """Fit on the training set, predict the test set, and say how well and at what cost."""
    import numpy as np

    from longtail import metrics
    from longtail.results import TopK

    n_test = data.X_test.shape[0]
    update(f"{system}: fitting", 0, None)
    start = time.process_time()
    classifier.fit(data.X_train, data.y_train)
    fitted = time.process_time()
    batches = []
    for first in range(0, n_test, _BATCH):
        update(f"{system}: predicting", first, n_test)
        batches.append(classifier.predict_topk(data.X_test[first : first + _BATCH], _TOP))
    done = time.process_time()
    arrays = [(batch.classes, batch.scores, batch.valid) for batch in batches]
    ranking = TopK(*map(np.concatenate, zip(*arrays, strict=True)))
    predicted = ranking.classes[:, 0]
    return {
        "system": system,
        "accuracy": metrics.accuracy(data.y_test, predicted),
        "macro_f1": metrics.macro_f1(data.y_test, predicted),
        "top": metrics.top_k_accuracy(data.y_test, ranking),
        "fit_cpu_seconds": fitted - start,
        "predict_cpu_seconds": done - fitted,
    }


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
