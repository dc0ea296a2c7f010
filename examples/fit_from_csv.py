"""Fit a model from a CSV file with a column of text and a column of labels, evaluate and save it.

The file is written here from WordNet: definitions, and the kind of thing that each one defines.
"""

import csv
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from longtail import TextClassifier, load, metrics
from longtail.datasets import load_wordnet

folder = Path(tempfile.mkdtemp())
wordnet = load_wordnet()
sizes = Counter(wordnet.train_labels.tolist())
with open(folder / "definitions.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["definition", "kind"])
    for text, label in zip(wordnet.train_text, wordnet.train_labels, strict=True):
        if sizes[label] >= 20:  # leaves 467 of 12,582 classes, to be quick
            writer.writerow([text, label])

with open(folder / "definitions.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
classifier = TextClassifier(random_state=0, n_jobs=-1)
classifier.fit([row["definition"] for row in rows], [row["kind"] for row in rows])
print(f"{len(rows):,} definitions of {len(classifier.classes_)} classes")

known = np.isin(wordnet.test_labels, classifier.classes_)
texts = [text for text, chosen in zip(wordnet.test_text, known, strict=True) if chosen]
top = classifier.predict_topk(texts, k=5)
truth = wordnet.test_labels[known]
print(f"{len(texts):,} test definitions: {metrics.accuracy(truth, top.classes[:, 0]):.1%} right,")
print(f"for {metrics.top_k_accuracy(truth, top.classes):.1%} the right class is among five")

classifier.save(folder / "definitions.longtail")
megabytes = (folder / "definitions.longtail").stat().st_size / 1e6
print(f"the model file has {megabytes:.1f} MB; opened again it says:")
question = "a large instrument with strings that are plucked"
chances = load(folder / "definitions.longtail").predict_proba_topk([question], k=3)
for label, chance in zip(chances.classes[0], chances.scores[0], strict=True):
    print(f"  {question!r} is a {label} with a chance of {chance:.0%}")
