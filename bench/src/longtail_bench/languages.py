"""Which terms suit which language: character n-grams on German and English library records.

    python -m longtail_bench.languages ../shared/data/tib-subjects [paper]

With `paper` the paper's classifier learns instead of LongTailClassifier, which takes a tenth of the
time.

Records with exactly one subject, the training part for fitting and the development part for
measuring; records of subjects that the training part does not have are left out.
"""

from __future__ import annotations

import json
import lzma
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longtail import DoubleSamplingClassifier, TextClassifier, metrics
from longtail.text import TextVectorizer

SETTINGS: dict[str, dict[str, Any]] = {
    "words": {"ngram_range": (1, 1)},
    "words and bigrams (the default)": {},
    "words and character 4-5-grams": {"ngram_range": (1, 1), "char_ngram_range": (4, 5)},
    "words, bigrams and character 4-5-grams": {"char_ngram_range": (4, 5)},
    "words, bigrams and character 6-grams": {"char_ngram_range": (6, 6)},
    "the same, n-grams count 0.25": {"char_ngram_range": (6, 6), "ngram_weight": 0.25},
}


def read_records(path: Path, language: str) -> tuple[list[str], list[str]]:
    """Return texts and subjects of the records in a language that have one subject."""
    texts, subjects = [], []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if len(record["labels"]) == 1 and language in (record["lang"], "both"):
                texts.append(record["text"])
                subjects.append(record["labels"][0])
    return texts, subjects


def measure(folder: Path, language: str, inner: Any = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each setting; `inner` learns from the counts."""
    texts, subjects = read_records(folder / "train.jsonl.xz", language)
    known = set(subjects)
    held = [
        (text, subject)
        for text, subject in zip(*read_records(folder / "dev.jsonl.xz", language), strict=True)
        if subject in known
    ]
    truth = [subject for _, subject in held]
    for name, parameters in SETTINGS.items():
        start = time.process_time()
        vectorizer = TextVectorizer(**parameters)
        classifier = TextClassifier(inner, vectorizer, random_state=0, n_jobs=2)
        classifier.fit(texts, subjects)
        fitted = time.process_time()
        top = classifier.predict_topk([text for text, _ in held], k=10)
        yield {
            "language": language,
            "terms": name,
            "documents": len(texts),
            "held_out": len(held),
            "classes": len(known),
            "n_terms": len(classifier.vocabulary_),
            "accuracy": metrics.accuracy(truth, top.classes[:, 0]),
            "macro_f1": metrics.macro_f1(truth, top.classes[:, 0]),
            "top_10": metrics.top_k_accuracy(truth, top),
            "fit_cpu_seconds": fitted - start,
        }


def main() -> None:
    """Print the rows of German, of English, and of both together."""
    inner = DoubleSamplingClassifier() if sys.argv[2:] == ["paper"] else None
    for language in ("de", "en", "both"):
        for row in measure(Path(sys.argv[1]), language, inner):
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
