"""Label sets from raw text: TextClassifier on library records, with and without names of classes.

    python -m longtail_bench.subjects ../shared/data/tib-subjects [names] [THREADS]

In: a folder as `label_set_data` describes it, with `train.jsonl.xz` and `dev.jsonl.xz`. Out: one
JSON line with the measures of the benchmark's tables, and what they cost.
"""

from __future__ import annotations

import json
import lzma
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from longtail import TextClassifier
from longtail_bench.label_set_data import load_label_sets
from longtail_bench.label_set_measures import measure_label_sets

TOP = 20


def read_texts(path: Path) -> list[str]:
    """Return the text of each record."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def measure(folder: Path, *, names: bool, n_jobs: int = 1) -> dict[str, Any]:
    """Return the measures of a classifier that is fitted on the texts of a folder."""
    data = load_label_sets(folder)
    class_texts = dict(enumerate(data.name_texts)) if names else None
    texts = read_texts(folder / "train.jsonl.xz")
    start = time.process_time()
    classifier = TextClassifier(random_state=0, n_jobs=n_jobs)
    classifier.fit(texts, data.train.to_lists(), class_texts=class_texts)
    fitted = time.process_time() - start
    texts = read_texts(folder / "dev.jsonl.xz")
    start = time.process_time()
    found = classifier.predict_topk(texts, k=TOP)
    predicted = time.process_time() - start
    ranking = np.where(np.isneginf(found.scores), -1, found.classes)
    measures, bands = measure_label_sets(data, ranking)
    return {
        "names": names,
        "n_terms": len(classifier.vocabulary_),
        "fit_cpu_seconds": fitted,
        "predict_cpu_microseconds": 1e6 * predicted / len(texts),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "measures": measures,
        "recall_by_band": {band.name: band.recall for band in bands},
    }


def main() -> None:
    """Print one row."""
    folder, *options = sys.argv[1:]
    n_jobs = next((int(option) for option in options if option.isdigit()), 1)
    row = measure(Path(folder), names="names" in options, n_jobs=n_jobs)
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
