"""Text to counts: how fast, and what each choice is worth.

    python -m longtail_bench.text variants FOLDER    # choices, on training documents held out
    python -m longtail_bench.text test FOLDER        # the default against ready counts
    python -m longtail_bench.text throughput FOLDER  # beside scikit-learn's CountVectorizer

FOLDER holds one folder for each data set, with `train.tsv.xz` and `test.tsv.xz` (label, tab, text
on each line) beside the counts that `longtail_bench.data` describes. Times are CPU time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from longtail import LongTailClassifier, TextClassifier, metrics
from longtail._labels import LabelSets
from longtail.datasets.streams import read_chunks
from longtail.text import TextVectorizer
from longtail.training.sampling import hold_out
from longtail_bench.data import load_counts

SETS = ("wordnet-hypernym", "cve-product", "wikitaxa-genus")
HELD_OUT = 0.15  # share of the training documents
_CHUNK = 1 << 20  # bytes read at once

# Each changes the defaults of TextVectorizer.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "words only": {"ngram_range": (1, 1)},
    "words only, in 2 documents": {"ngram_range": (1, 1), "min_df": 2},
    "words in 2 documents": {"min_df": 2},
    "pairs in 1 document": {"ngram_min_df": 1},
    "pairs in 3 documents": {"ngram_min_df": 3},
    "pairs in 5 documents": {"ngram_min_df": 5},
    "pairs count 1": {"ngram_weight": 1.0},
    "pairs count 0.25": {"ngram_weight": 0.25},
    "accents kept": {"strip_accents": None},
    "plural cut": {"stem": True},
    "character 5-grams as well": {"char_ngram_range": (5, 5)},
    "character 5-grams, no pairs": {"ngram_range": (1, 1), "char_ngram_range": (5, 5)},
}


class Result(NamedTuple):
    """Figures and cost of one choice."""

    accuracy: float
    macro_f1: float
    n_terms: int
    text_seconds: float
    fit_seconds: float

    def __str__(self) -> str:
        return (
            f"accuracy {100 * self.accuracy:.2f}  macro F1 {100 * self.macro_f1:.2f}  "
            f"terms {self.n_terms:,}  text {self.text_seconds:.1f} s  fit {self.fit_seconds:.1f} s"
        )


def read_texts(path: Path) -> tuple[list[str], NDArray[Any]]:
    """Return the texts and the labels of a file."""
    lines = b"".join(read_chunks(path, _CHUNK)).decode("utf-8").removesuffix("\n").split("\n")
    rows = [line.split("\t", 1) for line in lines]
    return [row[1] for row in rows], np.array([row[0] for row in rows])


def measure_variant(
    options: dict[str, Any],
    train: tuple[list[str], NDArray[Any]],
    test: tuple[list[str], NDArray[Any]],
    n_jobs: int | None,
) -> Result:
    """Learn from one list of texts, predict another."""
    started = time.process_time()
    vectorizer = TextVectorizer(**options, n_jobs=n_jobs)
    X = vectorizer.fit_transform(train[0])
    counted = time.process_time()
    classifier = LongTailClassifier(random_state=0, n_jobs=n_jobs).fit(X, train[1])
    learned = time.process_time()
    predicted = classifier.predict(vectorizer.transform(test[0]))
    return Result(
        metrics.accuracy(test[1], predicted),
        metrics.macro_f1(test[1], predicted),
        X.shape[1],
        counted - started,
        learned - counted,
    )


def run_variants(
    folder: Path, variants: list[str], share_of_classes: float, n_jobs: int | None
) -> Iterator[str]:
    """Measure choices on training documents that are held out."""
    texts, labels = read_texts(folder / "train.tsv.xz")
    classes, ids = np.unique(labels, return_inverse=True)
    drawn = np.random.default_rng(0).random(len(classes)) < share_of_classes
    ids = np.where(drawn[ids], ids, -1)
    documents = np.flatnonzero(ids >= 0)
    labelled = LabelSets.single(ids[documents], classes)
    held = hold_out(labelled, int(HELD_OUT * len(documents)), 0)
    is_held = np.zeros(len(documents), np.bool_)
    is_held[held] = True

    def selection(selected: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
        return [texts[i] for i in selected], labels[selected]

    train, test = selection(documents[~is_held]), selection(documents[is_held])
    for name in variants:
        result = measure_variant(VARIANTS[name], train, test, n_jobs)
        yield f"{folder.name:20} {name:30} {result}"


def run_test(folder: Path, n_jobs: int | None) -> Iterator[str]:
    """Measure the default on the test set, beside the counts that the folder holds."""
    data = load_counts(folder)
    train, test = (read_texts(folder / f"{block}.tsv.xz") for block in ("train", "test"))
    sample = np.arange(2000) % 10  # any labels: this compiles
    LongTailClassifier(n_jobs=n_jobs).fit(data.X_train[:2000], sample).predict(data.X_test[:1])
    TextClassifier(n_jobs=n_jobs).fit(train[0][:2000], sample).predict(test[0][:1])
    for name, classifier, documents, tests in (
        (
            "ready counts",
            LongTailClassifier(random_state=0, n_jobs=n_jobs),
            (data.X_train, data.y_train),
            (data.X_test, data.y_test),
        ),
        ("raw text", TextClassifier(random_state=0, n_jobs=n_jobs), train, test),
    ):
        _, seconds = _clock(lambda: classifier.fit(*documents))  # noqa: B023
        predicted = classifier.predict(tests[0])
        accuracy = metrics.accuracy(tests[1], predicted)
        macro_f1 = metrics.macro_f1(tests[1], predicted)
        yield (
            f"{folder.name:20} {name:14} accuracy {100 * accuracy:.2f}  "
            f"macro F1 {100 * macro_f1:.2f}  terms {classifier.statistics_.n_terms:,}  "
            f"input to fitted model {seconds:.1f} s"
        )


def run_throughput(folder: Path, n_jobs: int | None) -> Iterator[str]:
    """Measure how fast texts become counts, for the same terms as CountVectorizer's."""
    texts, _ = read_texts(folder / "train.tsv.xz")
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    for ngrams in (1, 2):
        theirs = CountVectorizer(token_pattern=r"[^\W_]+", ngram_range=(1, ngrams))
        ours = TextVectorizer(ngram_range=(1, ngrams), ngram_min_df=1, n_jobs=n_jobs)
        ours.fit(texts[:100]).transform(texts[:1])  # compile
        for name, run in (
            ("CountVectorizer fit", lambda: theirs.fit_transform(texts)),  # noqa: B023
            ("TextVectorizer fit", lambda: ours.fit_transform(texts)),  # noqa: B023
            ("CountVectorizer transform", lambda: theirs.transform(texts)),  # noqa: B023
            ("TextVectorizer transform", lambda: ours.transform(texts)),  # noqa: B023
        ):
            wall, processor = _clock(run)
            yield (
                f"{folder.name:20} ngrams={ngrams} {name:26} processor {processor:6.2f} s  "
                f"wall {wall:6.2f} s  {megabytes / wall:6.1f} MB/s"
            )


def _clock(run: Callable[[], Any]) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


def main(arguments: list[str] | None = None) -> None:
    """Run one of the measurements and write its lines as they come."""
    parser = argparse.ArgumentParser(prog="python -m longtail_bench.text")
    parser.add_argument("what", choices=("variants", "test", "throughput"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--share-of-classes", type=float, default=1.0)
    parser.add_argument("--n-jobs", type=int, default=2)
    selected = parser.parse_args(arguments)
    for name in selected.sets:
        position = selected.folder / name
        lines = {
            "variants": lambda position=position: run_variants(
                position, selected.variants, selected.share_of_classes, selected.n_jobs
            ),
            "test": lambda position=position: run_test(position, selected.n_jobs),
            "throughput": lambda position=position: run_throughput(position, selected.n_jobs),
        }[selected.what]()
        for line in lines:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
