"""Teach a saved model a class that it has never heard of, rename it, and take changes back.

Each change is on the disk before its call returns; the model file itself is not rewritten.
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from longtail import Teacher, TextClassifier, load
from longtail.datasets import load_wordnet

path = Path(tempfile.mkdtemp()) / "definitions.longtail"
wordnet = load_wordnet()
sizes = Counter(wordnet.train_labels.tolist())
chosen = np.flatnonzero([sizes[label] >= 30 for label in wordnet.train_labels.tolist()])
texts, labels = [wordnet.train_text[i] for i in chosen], wordnet.train_labels[chosen]
TextClassifier(random_state=0, n_jobs=-1).fit(texts, labels).save(path)

question = ["a model that predicts the next word of a text"]
teacher = Teacher(path)
print("before:", teacher.model.predict(question)[0])

teacher.teach(
    [
        "GPT, transformer | a neural network that was trained to predict the next word",
        "n-gram model | a model of texts that counts how often words follow each other",
    ],
    ["language model"] * 2,
    by="ann",
)
print("taught:", teacher.model.predict(question)[0])

teacher.rename_class("language model", "language model [new]", by="ben")
print("renamed, and opened from the file again:", load(path).predict(question)[0])

teacher.undo(2, by="ann")
print("both undone:", teacher.model.predict(question)[0])

for change in teacher.changes():
    state = "in effect" if change.in_effect else "undone"
    print(f"  {change.number}. {change.action} by {change.by}, {state}")

teacher.undo(numbers=[3])  # an undo can be undone, too
teacher.compact()
print("with the log folded into the file:", load(path).predict(question)[0])
