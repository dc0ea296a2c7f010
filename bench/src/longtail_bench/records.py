"""Worth of fields: the embedded WordNet set as records.

    python -m longtail_bench.records [--held-out]

Each row is a fit on the records of `load_wordnet_records`: texts joined, texts as fields, and these
with a category and a number, as they are and shuffled. Tested on the test part; with `--held-out`
on a fifth of the training part, by hash, which is how defaults are chosen.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from longtail import TextClassifier
from longtail.datasets import load_wordnet_records
from longtail.metrics import macro_f1

Records = list[dict[str, Any]]
TEXTS = {"words": "text", "gloss": "text"}
FILE, HYPONYMS = {"file": "category"}, {"hyponyms": "number"}
ROWS: tuple[tuple[str, dict[str, str] | None, bool], ...] = (
    ("texts joined", None, False),
    ("texts", TEXTS, False),
    ("texts, file", TEXTS | FILE, False),
    ("texts, hyponyms", TEXTS | HYPONYMS, False),
    ("texts, file, hyponyms", TEXTS | FILE | HYPONYMS, False),
    ("texts, both shuffled", TEXTS | FILE | HYPONYMS, True),
)


def split(held_out: bool) -> tuple[Records, list[str], Records, list[str]]:
    """Return documents and labels to fit, and those to test."""
    wordnet = load_wordnet_records()
    train, labels = wordnet.train_text, wordnet.train_labels.tolist()
    if not held_out:
        return train, labels, wordnet.test_text, wordnet.test_labels.tolist()
    texts = [record["words"] + record["gloss"] for record in train]
    is_test = [int(hashlib.sha1(text.encode()).hexdigest()[:8], 16) % 5 == 0 for text in texts]
    fitted = [i for i, test in enumerate(is_test) if not test]
    tested = [i for i, test in enumerate(is_test) if test]
    return (
        [train[i] for i in fitted],
        [labels[i] for i in fitted],
        [train[i] for i in tested],
        [labels[i] for i in tested],
    )


def shuffle(records: Records, names: tuple[str, ...], seed: int) -> Records:
    """Return records in which some fields are those of other records."""
    random = np.random.default_rng(seed)
    shuffled = [dict(record) for record in records]
    for name in names:
        for record, other in zip(shuffled, random.permutation(len(records)), strict=True):
            record[name] = records[other][name]
    return shuffled


def measure(held_out: bool) -> Iterator[tuple[str, float, float, float]]:
    """Yield what was fitted, accuracy, macro F1 and CPU seconds of the fit."""
    train, labels, test, truth = split(held_out)
    for name, fields, is_noise in ROWS:
        fitted, tested = [train, test]
        if is_noise:
            fitted, tested = (shuffle(some, ("file", "hyponyms"), 0) for some in (train, test))
        documents: list[Any] = [fitted, tested]
        if fields is None:
            documents = [[f"{r['words']} {r['gloss']}" for r in some] for some in documents]
        start = time.process_time()
        model = TextClassifier(fields=fields, random_state=0).fit(documents[0], labels)
        seconds = time.process_time() - start
        predicted = model.predict(documents[1])
        accuracy = float(np.mean(predicted == np.array(truth)))
        yield name, accuracy, macro_f1(np.array(truth), predicted), seconds


def main() -> None:
    """Print a row for each fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-out", action="store_true")
    for name, accuracy, f1, seconds in measure(parser.parse_args().held_out):
        row = f"{name:24} {100 * accuracy:6.2f} {100 * f1:6.2f} {seconds:6.0f}"
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
