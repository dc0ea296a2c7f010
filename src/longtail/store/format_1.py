"""Files of format 1, in the words of the newest one.

Two variants exist. The first, of version 0.1, has another index (without ``index/words``), which is
left out here and rebuilt once everything else was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longtail.store.manifest import Array
from longtail.store.strict_json import FaultError, shown

_LONG_TAIL_NAMES = {
    "background": "collection_model",
    "touched": "stale",
    "score/values": "scorer/weights",
    "score/slopes": "scorer/length_weights",
    "score/constants": "scorer/biases",
    "class_weights/indptr": "residuals/indptr",
    "class_weights/indices": "residuals/indices",
    "class_weights/values": "residuals/weights",
    "class_weights/constants": "residuals/biases",
    "calibrator/held_out_right": "calibrator/held_out_correct",
    "rare/counts": "pruning/class_frequencies",
}
_DOUBLE_SAMPLING_NAMES = {
    "scorer/weights": "pairwise/weights",
    "scorer/scales": "pairwise/scales",
    "centroids": "centroids/weights",
    "term_scores": "term_scores/weights",
}
_INDEX_NAMES = {
    "index/words": "index/quantized",
    "index/rows": "index/dense_row_ids",
    "index/lows": "index/zero_points",
    "index/steps": "index/scales",
    "index/bytes": "index/dense_rows",
    "index/slopes": "index/length_weights",
    "index/constants": "index/biases",
}
_NAMES = {
    "LongTailClassifier": _LONG_TAIL_NAMES | _INDEX_NAMES,
    "DoubleSamplingClassifier": _DOUBLE_SAMPLING_NAMES | _INDEX_NAMES,
}
_POSTING_BUDGET = "rare/most_postings"


def translate_format_1(
    kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return parameters and arrays of a file of format 1 as format 2 has them, unchecked.

    Raises
    ------
    FaultError
        The parameters are not those of format 1, or two arrays have the same meaning.
    """
    parts = {name: _section(header, name) for name in ("parameters", "statistics", "corpus")}
    values = {
        f"{section}/{name}": value
        for section in ("statistics", "corpus")
        for name, value in parts[section].items()
    }
    counts_kind, estimators = kind, {kind: _without_n_jobs(parts["parameters"])}
    if "text" in header:
        text = dict(_section(header, "text"))
        counts_kind = text.pop("classifier", None)
        estimators = {
            kind: _without_n_jobs(_section(text, "parameters")),
            str(counts_kind): estimators[kind],
        }
        values |= {f"text/{name}": text.get(name) for name in ("n_fitted", "is_default")}
        if "added/hashes" in arrays:
            values["added/complete"] = text.get("remembers_all")
    if not isinstance(counts_kind, str) or counts_kind not in _NAMES:
        raise FaultError(f"has a wrong classifier: {shown(counts_kind)}")
    arrays = dict(arrays)
    if _POSTING_BUDGET in arrays:
        values["pruning/posting_budget"] = _single(arrays.pop(_POSTING_BUDGET))
    return {"estimators": estimators, "values": values}, _rename(arrays, _NAMES[counts_kind])


def split_text_parameters(estimators: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by class where the vectorizer's were once those of a `TextClassifier`.

    They are unchecked. Scripts without spaces were not split then.
    """
    text = estimators.get("TextClassifier")
    if not isinstance(text, dict) or "ngrams" not in text:
        return dict(estimators)
    kept = {name: text[name] for name in ("remember_documents", "random_state") if name in text}
    names = ("min_df", "ngram_min_df", "ngram_weight", "stem")
    vectorizer = {name: text[name] for name in names if name in text}
    vectorizer |= {
        "ngram_range": [1, text["ngrams"]],
        "char_ngram_range": text.get("char_ngrams"),
        "max_df": 1.0,
        "max_features": None,
        "lowercase": True,
        "strip_accents": {True: "unicode", False: None}.get(bool(text.get("fold_accents"))),
        "stop_words": None,
        "token_pattern": None,
        "split_unspaced": False,
    }
    unknown = (
        text.keys() - kept.keys() - vectorizer.keys() - {"ngrams", "char_ngrams", "fold_accents"}
    )
    if unknown or not isinstance(text.get("fold_accents"), bool):
        raise FaultError(f"has wrong parameters of TextClassifier: {shown(text)}")
    return {**estimators, "TextClassifier": kept, "TextVectorizer": vectorizer}


def _section(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of the manifest."""
    section = header.get(name)
    if not isinstance(section, dict):
        raise FaultError(f"has wrong parameters: {name!r} is {shown(section)}")
    return section


def _without_n_jobs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the number of threads: it belongs to a machine, not to a model."""
    return {name: value for name, value in parameters.items() if name != "n_jobs"}


def _single(array: Array) -> Any:
    """Return the one value of an array."""
    if array.shape != (1,) or array.dtype != np.int64:
        raise FaultError(f"array {_POSTING_BUDGET!r} must be one int64")
    return array[0].item()


def _rename(arrays: dict[str, Array], names: Mapping[str, str]) -> dict[str, Array]:
    """Return the arrays by their new names, without an index of the first variant."""
    if "index/words" not in arrays:
        derived = ("index/", "centroids", "term_scores")
        arrays = {name: array for name, array in arrays.items() if not name.startswith(derived)}
    renamed = {names.get(name, name): array for name, array in arrays.items()}
    if len(renamed) != len(arrays):
        raise FaultError("has arrays of two formats")
    return renamed


def list_old_names() -> list[tuple[str, str]]:
    """Return the names that changed, for the format page."""
    return [*(_LONG_TAIL_NAMES | _INDEX_NAMES).items(), *_DOUBLE_SAMPLING_NAMES.items()]
