"""`longtail demo`: learn the embedded WordNet set from text, explain, teach and undo."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from longtail.cli.shared_options import AsJson, Quiet, Seed, Threads
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
_EXPLAINED = "a river in France"
_TAUGHT_TEXT = "a program that has read much text and writes some of its own"
_TAUGHT_CLASS = "language model"


def demo(
    threads: Threads = -1, seed: Seed = 0, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Learn 12,582 classes of WordNet from text, explain an answer, teach one and undo it."""
    with clear_errors():
        if not quiet:
            print_note(
                "compiling what is not compiled yet, then learning 12,582 classes of WordNet."
            )
        with progress(quiet, compiles=False) as update:
            report = _run(threads, seed, update)
        if as_json:
            print_json(report)
            return
        _print(report)


def _run(threads: int, seed: int, update: Update) -> dict[str, Any]:
    """Compile, then fit, evaluate, explain, teach and undo."""
    from longtail.cli.warmup import COMPILING, compile_for_text

    update(COMPILING, 0, None)
    start = time.perf_counter()
    compile_for_text(update)
    compiled = time.perf_counter() - start

    from longtail import TextClassifier
    from longtail.datasets import load_wordnet

    update("reading WordNet", 0, None)
    wordnet = load_wordnet()
    classifier = TextClassifier(random_state=seed, n_jobs=threads)
    report: dict[str, Any] = {
        "n_train": len(wordnet.train_text),
        "n_test": len(wordnet.test_text),
        "compile_seconds": compiled,
        **_fit_and_evaluate(classifier, wordnet, update),
        "n_classes": len(classifier.classes_),
        "examples": _predict_examples(classifier, wordnet),
    }
    [why] = classifier.explain([_EXPLAINED], top_terms=3)
    report["explanation"] = {"text": _EXPLAINED, "class": str(why.label), "table": str(why)}
    update("teaching a correction", 0, None)
    report["correction"] = _teach_and_undo(classifier)
    return report


def _fit_and_evaluate(classifier: Any, wordnet: Any, update: Update) -> dict[str, Any]:
    """Fit on the training set, predict the test set, and say how well and at what cost."""
    import numpy as np

    from longtail import metrics

    update("fitting", 0, None)
    start = time.process_time()
    classifier.fit(wordnet.train_text, wordnet.train_labels)
    fitted = time.process_time()
    n_test = len(wordnet.test_text)
    batches = []
    for first in range(0, n_test, _BATCH):
        update("predicting", first, n_test)
        batch = wordnet.test_text[first : first + _BATCH]
        batches.append(classifier.predict_topk(batch, _TOP).classes)
    done = time.process_time()
    ranked = np.concatenate(batches)
    return {
        "accuracy": metrics.accuracy(wordnet.test_labels, ranked[:, 0]),
        "macro_f1": metrics.macro_f1(wordnet.test_labels, ranked[:, 0]),
        "top": metrics.top_k_accuracy(wordnet.test_labels, ranked),
        "fit_cpu_seconds": fitted - start,
        "predict_cpu_seconds": done - fitted,
    }


def _predict_examples(classifier: Any, wordnet: Any) -> list[dict[str, Any]]:
    """Return a few test documents with their classes and what was predicted."""
    n_test = len(wordnet.test_text)
    shown = list(range(0, n_test, n_test // _EXAMPLES)[:_EXAMPLES])
    top = classifier.predict_proba_topk([wordnet.test_text[i] for i in shown], 3)
    return [
        {
            "text": wordnet.test_text[document],
            "class": str(wordnet.test_labels[document]),
            "predicted": [str(label) for label in labels[valid]],
            "probabilities": probabilities[valid].tolist(),
        }
        for document, labels, probabilities, valid in zip(
            shown, top.classes, top.scores, top.valid, strict=True
        )
    ]


def _teach_and_undo(classifier: Any) -> dict[str, Any]:
    """Return what is predicted before a correction, after it and after its undo."""
    from longtail import Teacher

    def predict() -> str:
        return str(teacher.model.predict([_TAUGHT_TEXT])[0])

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wordnet.longtail"
        classifier.save(path)
        teacher = Teacher(path)
        before = predict()
        teacher.teach([_TAUGHT_TEXT], [_TAUGHT_CLASS], by="demo")
        taught = predict()
        teacher.undo()
        undone = predict()
        teacher.close()
    return {"text": _TAUGHT_TEXT, "before": before, "taught": taught, "undone": undone}


def _print(report: dict[str, Any]) -> None:
    """Print the report as tables and sentences."""
    sizes = "{n_train:,} training and {n_test:,} test definitions of {n_classes:,} classes"
    say(f"WordNet: {sizes.format(**report)}.")
    say(
        "Accuracy {accuracy:.1%}, macro F1 {macro_f1:.1%}, true class in the top {k} {top:.1%}. "
        "CPU time: fit {fit_cpu_seconds:.1f} s, predict {micro:.0f} µs per text; compiling took "
        "{compile_seconds:.1f} s before.".format(
            **report, k=_TOP, micro=report["predict_cpu_seconds"] / report["n_test"] * 1e6
        )
    )
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
        for example in report["examples"]
    ]
    print_table("Test definitions", ("definition", "class", "predicted, with probability"), rows)
    say(f'\nWhy is "{report["explanation"]["text"]}" predicted as it is?')
    say(report["explanation"]["table"])
    taught = report["correction"]
    say(f'\nA correction: "{taught["text"]}"')
    say(f"  predicted        {taught['before']}")
    say(f"  after teaching   {taught['taught']}")
    say(f"  after undo       {taught['undone']}")
