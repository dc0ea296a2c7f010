"""Call every kernel through the public methods; prints predictions and scores as JSON.

Run by `test_jit_modes` in a process of its own: without the compiler, and with bounds checks.
Warnings are errors, so that wrap-around and division are the same without the compiler.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import Any

import numpy as np

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.model import scorer
from longtail.training import mixture
from tests.conftest import make_problem

N_DOCUMENTS = 80
FIELDS = {"title": "text", "body": "text", "kind": "category", "size": "number"}


def exercise() -> dict[str, list[object]]:
    """Fit, predict, explain, teach and forget with all three estimators."""
    problem = make_problem(5, n_documents=N_DOCUMENTS)
    fractional = problem.X / 2.0  # another type of counts
    texts = [" ".join(f"word{t}" for t in np.repeat(np.arange(25), row)) for row in problem.X]
    records = [
        {"title": text, "body": text[::2], "kind": text[:5], "size": len(text)} for text in texts
    ]
    cases: list[tuple[Any, Any]] = [
        (LongTailClassifier, problem.X),
        (LongTailClassifier, fractional),
        (DoubleSamplingClassifier, problem.X),
        (TextClassifier, np.array(texts, dtype=object)),
        (partial(TextClassifier, fields=FIELDS), records),
    ]
    mixture.MIN_MIXED = 5  # of the few documents that are held out
    scorer.MIN_SPREAD_PAIRS = 0
    results: dict[str, list[object]] = {}
    for number, (estimator, X) in enumerate(cases):
        classifier = estimator(random_state=0).fit(X, problem.y)
        results[f"{number} fit"] = predict(classifier, X)
        for pairs_per_class in (0.0, np.inf):  # class by class, pair by pair
            scorer.PAIRS_PER_CLASS = pairs_per_class
            results[f"{number} scored at {pairs_per_class}"] = predict(classifier, X)
        scorer.PAIRS_PER_CLASS = 1 / 8
        classifier.explain(X[:2])
        classifier.partial_fit(X[:3], [7, 7, 1])  # in the delta segment, a new class among them
        results[f"{number} taught"] = predict(classifier, X)
        classifier.forget(X[:3], [7, 7, 1])
        results[f"{number} forgotten"] = predict(classifier, X)
        classifier.merge_classes(2, 3)
        if hasattr(classifier, "refine"):
            classifier.refine(X, np.where(problem.y == 2, 3, problem.y))
        results[f"{number} refined"] = predict(classifier, X)
    return results


def predict(classifier: object, X: np.ndarray) -> list[object]:
    """Return classes and scores of some documents."""
    top = classifier.predict_topk(X[:12], 3)  # type: ignore[attr-defined]
    return [top.classes.tolist(), top.scores.tolist()]


if __name__ == "__main__":
    warnings.simplefilter("error")
    print(json.dumps(exercise()))
