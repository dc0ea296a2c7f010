"""Estimator files of every format ever released load, and predict the same bits as when written."""

import json
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail.store import open_model

GOLDEN = Path(__file__).parent / "golden"
# The first variant of format 1 has another index, which is built anew.
FILES = sorted(GOLDEN.glob("format_*_*.longtail"))


def exact(scores):
    return [[float(score).hex() for score in row] for row in scores]


def of_today(name, value):
    """Return a parameter of a text classifier as its vectorizer has it now."""
    names = {"char_ngrams": "char_ngram_range"}
    if name == "ngrams":
        return "vectorizer__ngram_range", (1, value)
    if name == "fold_accents":
        return "vectorizer__strip_accents", "unicode" if value else None
    if name in ("char_ngrams", "min_df", "ngram_min_df", "ngram_weight", "stem"):
        return f"vectorizer__{names.get(name, name)}", value
    return name, value


def documents_of(expected):
    documents = expected["documents"]
    return documents if isinstance(documents[0], str) else np.array(documents)


def test_every_format_has_every_estimator():
    names = {path.stem for path in FILES}
    estimators = ("long_tail", "double_sampling", "text_long_tail", "text_double_sampling")
    prefixes = ("format_1", "format_1_first", "format_2")
    assert names == {f"{prefix}_{name}" for prefix in prefixes for name in estimators}
    for path in FILES:
        assert open_model(path).format_number == int(path.name[7])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_estimators_predict_the_same_bits(path, tmp_path):
    expected = json.loads(path.with_suffix(".json").read_text())
    X = documents_of(expected)
    model = longtail.load(path)
    for _ in range(2):  # as it was written, and saved in today's format
        top = model.predict_topk(X, 3)
        assert top.classes.tolist() == expected["classes"]
        assert exact(top.scores) == expected["scores"]
        if "probabilities" in expected:
            assert exact(model.predict_proba_topk(X, 3).scores) == expected["probabilities"]
        explained = [float(one.score).hex() for one in model.explain(X[:2])]
        assert explained == expected["explained"]
        parameters = model.get_params()
        assert parameters["n_jobs"] is None
        for name, value in expected["parameters"].items():
            name, value = of_today(name, value)
            assert parameters[name] == value, name
        assert not parameters.get("vectorizer__split_unspaced")  # no model knew it then
        model.save(tmp_path / "again")
        assert open_model(tmp_path / "again").format_number == 2
        model = longtail.load(tmp_path / "again")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_estimators_can_be_taught(path):
    model = longtail.load(path)
    X = documents_of(json.loads(path.with_suffix(".json").read_text()))
    new = 1000 if model.classes_.dtype.kind == "i" else "a new class"
    model.partial_fit(X[:1], [new])
    assert new in model.classes_.tolist()
    model.forget(X[:1], [new])
    assert new not in model.classes_.tolist()
