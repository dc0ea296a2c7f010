"""Estimator files of the format load, and predict the same bits as when they were written.

To write them anew, after a change of the format or of the bits of a prediction:
``python -m tests.persistence.test_golden_estimators``.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.store import FORMAT_NUMBER, open_model

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob(f"format_{FORMAT_NUMBER}_*.longtail"))
N_CLASSES = 24
WORDS = [
    animal + ending
    for animal in ("bear", "bee", "cod", "elk", "fox", "owl")
    for ending in ("", "ant", "ery", "ing", "ish", "let", "ous", "ton")
]


def exact(scores):
    return [[float(score).hex() for score in row] for row in scores]


def documents_of(expected):
    documents = expected["documents"]
    return documents if isinstance(documents[0], str) else np.array(documents)


def expected_of(model, documents):
    """Everything that a file promises about some documents."""
    top = model.predict_topk(documents, 3)
    expected = {
        "classes": top.classes.tolist(),
        "scores": exact(top.scores),
        "explained": [float(one.score).hex() for one in model.explain(documents[:2])],
        "parameters": {
            name: value
            for name, value in model.get_params().items()
            if isinstance(value, str | int | float | None)
        },
    }
    if hasattr(model, "predict_proba_topk"):
        expected["probabilities"] = exact(model.predict_proba_topk(documents, 3).scores)
    return expected


def test_every_estimator_has_a_file():
    estimators = ("long_tail", "double_sampling", "text_long_tail", "text_double_sampling")
    assert {path.stem for path in FILES} == {f"format_{FORMAT_NUMBER}_{e}" for e in estimators}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_estimators_predict_the_same_bits(path, tmp_path):
    expected = json.loads(path.with_suffix(".json").read_text())
    X = documents_of(expected)
    del expected["documents"]
    model = longtail.load(path)
    for _ in range(2):  # as it was written, and saved again
        assert expected_of(model, X) == expected
        model.save(tmp_path / "again")
        model = longtail.load(tmp_path / "again")
    again, golden = open_model(tmp_path / "again"), open_model(path)
    assert again.parameters == golden.parameters
    assert list(again.arrays) == list(golden.arrays)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_estimators_can_be_taught(path):
    model = longtail.load(path)
    X = documents_of(json.loads(path.with_suffix(".json").read_text()))
    new = 1000 if model.classes_.dtype.kind == "i" else "a new class"
    model.partial_fit(X[:1], [new])
    assert new in model.classes_.tolist()
    model.forget(X[:1], [new])
    assert new not in model.classes_.tolist()


def write_golden_files():
    """Fit each estimator on a few made-up texts, large classes first, and save it."""
    random = np.random.default_rng(0)
    labels = np.concatenate(
        [np.arange(N_CLASSES), (random.random(60) ** 2 * N_CLASSES).astype(int)]
    )
    texts = []
    for label in labels.tolist():
        chosen = (2 * label + random.integers(0, 6, random.integers(2, 6))) % len(WORDS)
        texts.append(" ".join([WORDS[word] for word in chosen] + ["the"] * random.integers(1, 4)))
    vocabulary = [*WORDS, "the"]
    X = np.array([[text.split().count(word) for word in vocabulary] for text in texts])
    names = np.array([f"class {label}" for label in labels])
    double_sampling = DoubleSamplingClassifier(adversaries=3, candidates=5, random_state=0)
    text_double_sampling = TextClassifier(
        DoubleSamplingClassifier(adversaries=3, random_state=0), random_state=0
    )
    models = {
        "long_tail": (LongTailClassifier(candidates=5, random_state=0), X, labels),
        "double_sampling": (double_sampling, X, names),
        "text_long_tail": (TextClassifier(random_state=0), texts, names),
        "text_double_sampling": (text_double_sampling, texts, labels),
    }
    for name, (model, documents, y) in models.items():
        model.fit(documents, y)
        if documents is texts:
            model.partial_fit(["an owl hoots at night", "the owl hoots"], y[:2])  # later terms
        path = GOLDEN / f"format_{FORMAT_NUMBER}_{name}.longtail"
        model.save(path)
        asked = documents[:12] if documents is texts else documents[:12].tolist()
        expected = {"documents": asked, **expected_of(model, documents[:12])}
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    write_golden_files()
