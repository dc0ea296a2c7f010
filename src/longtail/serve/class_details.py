"""Details of a class: its size, the terms that speak for it, the classes it is close to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.answers import find_path
from longtail.serve.predictions import describe_label
from longtail.serve.problems import Problem
from longtail.serve.served_model import Snapshot
from longtail.sparse import Integers

N_TERMS = 20
N_NEIGHBOURS = 8
N_EXAMPLES = 3
_TRIED_EXAMPLES = 24  # large classes whose words are tried
_EXAMPLE_WORDS = 8
_MISSING = "The model has no class with this id."


def encode_id(label: Any) -> str:
    """Return a label as it stands in an address: ``s`` and base64url of a string, ``n`` a number.

    Examples
    --------
    >>> encode_id("a/b"), encode_id(17)
    ('sYS9i', 'n17')
    """
    if isinstance(label, str):
        encoded = base64.urlsafe_b64encode(label.encode("utf-8", "surrogatepass"))
        return "s" + encoded.rstrip(b"=").decode("ascii")
    return f"n{label!r}"


def decode_id(snapshot: Snapshot, class_id: str) -> tuple[Any, int]:
    """Return the label that an id stands for, and its row.

    Raises
    ------
    Problem
        404 where the model has no such class.
    """
    label = decode_label(class_id)
    row = find_row(snapshot, label)
    if row is None or encode_id(label) != class_id:
        raise Problem(404, _MISSING)
    return label, row


def decode_node(snapshot: Snapshot, node_id: str) -> Any:
    """Return the label of a node of the hierarchy, or of a class, that an id stands for.

    Raises
    ------
    Problem
        404 where there is no such node.
    """
    label, hierarchy = decode_label(node_id), snapshot.model.hierarchy_
    is_node = hierarchy is not None and find_label(hierarchy.nodes, label) is not None
    return label if is_node and encode_id(label) == node_id else decode_id(snapshot, node_id)[0]


def decode_label(class_id: str) -> Any:
    """Return the label that an id stands for, of a class or not."""
    kind, text = class_id[:1], class_id[1:]
    try:
        if kind == "s":
            padded = text + "=" * (-len(text) % 4)
            encoded = base64.b64decode(padded, altchars=b"-_", validate=True)
            return encoded.decode("utf-8", "surrogatepass")
        if kind == "n" and text in ("False", "True"):
            return text == "True"
        if kind == "n":
            return float(text) if "." in text or "e" in text else int(text)
    except (binascii.Error, ValueError):
        pass
    raise Problem(404, _MISSING)


def find_row(snapshot: Snapshot, label: Any) -> int | None:
    """Return the row of a class; None where the model has no such class."""
    return find_label(snapshot.classes, label)


def find_label(labels: NDArray[Any], label: Any) -> int | None:
    """Return the position of a label among sorted ones; None where it is none of them."""
    is_text = isinstance(label, str)
    if is_text != (labels.dtype.kind not in "iufb") or (is_text and "\0" in label):
        return None
    if labels.dtype.kind == "U" and 4 * len(label) > labels.dtype.itemsize:
        return None  # longer than every label; numpy would make all of them as long
    row = int(np.searchsorted(labels, label))
    return row if row < len(labels) and labels[row : row + 1].tolist()[0] == label else None


def describe(snapshot: Snapshot, label: Any, row: int) -> dict[str, Any]:
    """Return all there is to say of one class."""
    terms, weights = top_terms(snapshot, row)
    spelled = [snapshot.model.vocabulary_.term(int(term)) for term in terms]
    return {
        "id": encode_id(label),
        "label": label,
        "text": snapshot.texts.get(label),
        **_find_parents(snapshot, label),
        "size": snapshot.count_documents(row),
        "terms": [
            {"term": term, "weight": weight}
            for term, weight in zip(spelled, weights.tolist(), strict=True)
        ],
        "neighbours": find_neighbours(snapshot, label, spelled),
    }


def _find_parents(snapshot: Snapshot, label: Any) -> dict[str, Any]:
    """Return the path of a class and its parents, where it has its place in a hierarchy."""
    path, hierarchy = find_path(snapshot.model, label), snapshot.model.hierarchy_
    if hierarchy is None or not path:
        return {}
    parents = hierarchy.parents_of(label)
    return {"path": path, "parents": [{"id": encode_id(p), "label": p} for p in parents]}


def make_examples(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return texts made of the words of some large classes, each predicted as its class."""
    rows = np.argsort(-snapshot.class_sizes, kind="stable")[:_TRIED_EXAMPLES]
    labels = snapshot.classes[rows].tolist()
    texts = [_own_words(snapshot, row) for row in rows.tolist()]
    found = snapshot.model.predict_topk(texts, 1)
    return [
        {"label": label, "text": text, "name": snapshot.texts.get(label)}
        for label, text, predicted, valid in zip(
            labels, texts, found.classes[:, 0].tolist(), found.valid[:, 0].tolist(), strict=True
        )
        if valid and predicted == label
    ][:N_EXAMPLES]


def _own_words(snapshot: Snapshot, row: int) -> str:
    """Return the words that speak most for a class."""
    spelled = map(snapshot.model.vocabulary_.term, top_terms(snapshot, row)[0].tolist())
    shown = [term for term in _plain_terms(snapshot, spelled) if " " not in term]
    return " ".join(shown[:_EXAMPLE_WORDS])


def _plain_terms(snapshot: Snapshot, terms: Iterable[str]) -> list[str]:
    """Return the terms that a text can have: no character n-gram, and none of one field."""
    marks = "" if snapshot.fields is None else ":="
    return [
        term for term in terms if not term.startswith("~") and not any(m in term for m in marks)
    ]


def top_terms(snapshot: Snapshot, row: int) -> tuple[Integers, Any]:
    """Return the terms that weigh most in a class: its centroid, idf and learned term weights."""
    statistics, state = snapshot.sum_class(row), snapshot.model.classifier_.state_
    terms = statistics.indices
    weights = statistics.centroid_sums * state.current_corpus.idf[terms]
    learned = getattr(snapshot.model, "term_weights_", None)
    if learned is not None:
        weights = weights * learned[terms]
    norm = float(np.sqrt((weights * weights).sum())) or 1.0
    order = np.lexsort((terms, -weights))[:N_TERMS]
    return terms[order], weights[order] / norm


def find_neighbours(snapshot: Snapshot, label: Any, terms: list[str]) -> list[dict[str, Any]]:
    """Return the other classes that the class's own words are closest to."""
    spelled = _plain_terms(snapshot, terms)
    if not spelled:
        return []
    k = min(N_NEIGHBOURS + 1, len(snapshot.classes))
    top = snapshot.model.predict_topk([" . ".join(spelled)], k)
    return [
        {"id": encode_id(other), "score": score} | describe_label(snapshot, other)
        for other, score, valid in zip(
            top.classes[0].tolist(), top.scores[0].tolist(), top.valid[0].tolist(), strict=True
        )
        if valid and other != label
    ][:N_NEIGHBOURS]
