"""After `longtail warmup` nothing compiles any more: not in a command, not in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import longtail

pytestmark = pytest.mark.slow  # each compiles all kernels

# What a user does in the first week, in a process of its own; prints the kernels that it compiled.
FIRST_WEEK = """
import sys, tempfile
import numpy as np
from scipy.sparse import csr_array
import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, Teacher, TextClassifier, load
from longtail.datasets import read_svmlight
from longtail.text import TextVectorizer

folder = tempfile.mkdtemp()
texts = [f"topic{i % 9} words{i % 9} and more {i % 5}" for i in range(180)]
labels = [f"class {i % 9}" for i in range(180)]
rng = np.random.default_rng(0)
dense = rng.integers(0, 3, (180, 30)) + 5 * np.eye(30, dtype=int)[np.arange(180) % 9]
names = np.array(labels)

classifier = TextClassifier(random_state=0).fit(texts, labels)
classifier.save(folder + "/text")
for model in (classifier, load(folder + "/text")):
    model.predict(texts[:3])
    model.predict_topk(texts, 3)
    model.predict_proba_topk(texts, 3)
    model.explain(texts[:2])
    model.partial_fit(["an owl hoots at night"], ["owl"]).refine(texts, labels)
    model.predict(["owl"])
    model.forget(["an owl hoots at night"], ["owl"])
teacher = Teacher(folder + "/text")
teacher.teach(["a brown bear", "a red fox"], ["bear", "fox"])
teacher.rename_class("bear", "brown bear")
teacher.merge_classes("fox", "brown bear")
teacher.undo(1)
teacher.model.predict_topk(["a bear"], 3)
teacher.compact()

for X in (dense, csr_array(dense), csr_array(dense.astype(float)), dense.astype(np.float32)):
    for kind in (LongTailClassifier, DoubleSamplingClassifier):
        model = kind(random_state=0, n_jobs=2).fit(X, names)
        model.predict(X[:1])
        model.predict_topk(X, 3)
        model.explain(X[:2])
        model.partial_fit(X[:2], ["new", "new"]).predict(X[:3])
        model.forget(X[:2], ["new", "new"])
        model.save(folder + "/counts")
        opened = load(folder + "/counts")
        opened.predict_topk(X, 3)
        opened.explain(X[:2])
        opened.partial_fit(X[:2], ["new", "new"]).predict(X[:3])
LongTailClassifier(random_state=0).fit(dense, names).partial_fit(dense[:3], names[:3]).refine(
    dense, names
)
# One document among many classes, and more classes than 16 bits can tell apart.
for n_classes in (1000, 70_000):
    X = csr_array((np.ones(n_classes), (np.arange(n_classes), np.arange(n_classes) % 50)))
    model = DoubleSamplingClassifier(0.001, adversaries=1, random_state=0)
    model.fit(X, np.arange(n_classes)).predict(X[:1])
    if n_classes == 1000:
        LongTailClassifier(random_state=0).fit(X, np.arange(n_classes)).predict(X[:1])
TextClassifier(random_state=0, vectorizer=TextVectorizer(char_ngram_range=(3, 5))).fit(
    texts, labels
).predict_topk(texts[:5], 3)
path = folder + "/rows.svm"
with open(path, "w") as file:
    file.write("1 1:2 3:0.5\\n2 2:1e-3\\n")
read_svmlight(path)

for name, module in sorted(sys.modules.items()):
    if name.startswith("longtail._kernels"):
        for kernel in vars(module).values():
            stats = getattr(kernel, "stats", None)
            if stats is not None and getattr(kernel, "__module__", None) == name:
                if stats.cache_path is not None and sum(stats.cache_misses.values()):
                    print(name, kernel.__name__, list(stats.cache_misses))
"""


# Compiles what the demonstration does, then does the same on fewer documents.
DEMO = """
from dataclasses import replace

from longtail import datasets
from longtail.cli import demo, warmup

warmup.compile_for_text(lambda *_: None)
_, n_ahead = warmup.find_compiled()
warmup.compile_for_text = lambda update: None
whole = datasets.load_wordnet()
datasets.load_wordnet = lambda: replace(
    whole,
    train_text=whole.train_text[:3000],
    train_labels=whole.train_labels[:3000],
    test_text=whole.test_text[:2000],
    test_labels=whole.test_labels[:2000],
)
demo._run(1, 0, lambda *_: None)
print(n_ahead, warmup.find_compiled()[1] - n_ahead)
"""


def test_nothing_compiles_after_warmup(tmp_path):
    environment = install(tmp_path)
    warmed = run([sys.executable, "-m", "longtail", "warmup", "--json"], environment)
    assert json.loads(warmed)["compiled"] > 40
    assert run([sys.executable, "-c", FIRST_WEEK], environment) == ""


def test_the_demonstration_compiles_what_it_needs(tmp_path):
    ahead, later = map(int, run([sys.executable, "-c", DEMO], install(tmp_path)).split())
    assert 0 < ahead < 40
    assert later == 0


def install(folder: Path) -> dict[str, str]:
    """Copy the package without what was compiled for it; return the environment that uses it."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(longtail.__file__).parent, folder / "site" / "longtail", ignore=without)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
    return kept | {"PYTHONPATH": str(folder / "site"), "HOME": str(folder)}


def run(command: list[str], environment: dict[str, str]) -> str:
    process = subprocess.run(
        command, env=environment, cwd=environment["HOME"], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert "longtail: warning" not in process.stderr  # of made-up documents, it would only worry
    return process.stdout
