"""Why a text gets a class, beside the runner-up, as plain JSON.

In: a snapshot, a text and a label. Out: the scores of both classes in parts. Both name the same
terms, so that they can be compared term by term, with the places where these stand in the text.
"""

from __future__ import annotations

from typing import Any

from longtail.results import Explanation
from longtail.serve.highlights import find_terms
from longtail.serve.predictions import describe_label
from longtail.serve.served_model import Snapshot

_ALL_TERMS = 1 << 30


def explain(snapshot: Snapshot, text: str, label: Any, n_terms: int) -> dict[str, Any]:
    """Return the explanations of a class and of the best other one.

    Parameters
    ----------
    snapshot : Snapshot
        The model.
    text : str
        The document.
    label : object
        The class; None is the predicted one.
    n_terms : int
        The most important terms of either class are named, so many of each.
    """
    model = snapshot.model
    best = [entry for entry in _rank(snapshot, text) if entry != label]
    classes = [*([] if label is None else [label]), *best][:2]
    # Without any candidate the model names the class.
    asked = classes or None
    explained = model.explain([text] * max(1, len(classes)), asked, _ALL_TERMS)
    named = [term for entry in explained for term in list(entry.terms)[:n_terms]]
    # The largest contribution comes first, whichever class it is to.
    terms = sorted(
        dict.fromkeys(named),
        key=lambda term: -max(abs(entry.terms.get(term, 0.0)) for entry in explained),
    )
    spans = find_terms(model.vocabulary_, text, map(str, terms))
    bodies = [_as_json(snapshot, entry, terms, spans) for entry in explained]
    runner_up = bodies[1] if len(bodies) > 1 else None
    return {"version": snapshot.version, "explanation": bodies[0], "runner_up": runner_up}


def _rank(snapshot: Snapshot, text: str) -> list[Any]:
    """Return the best classes of a text: enough for any one and its runner-up."""
    top = snapshot.model.predict_topk([text], min(2, len(snapshot.classes)))
    ranked: list[Any] = top.classes[0][top.valid[0]].tolist()
    return ranked


def _as_json(
    snapshot: Snapshot, entry: Explanation, terms: list[Any], spans: dict[str, Any]
) -> dict[str, Any]:
    """Return an explanation as it is sent; terms that are not named are in the rest."""
    label = entry.label.item() if hasattr(entry.label, "item") else entry.label
    unnamed = entry.terms.keys() - terms
    return {
        **describe_label(snapshot, label),
        "score": entry.score,
        "features": dict(entry.features),
        "terms": [
            {"term": term, "contribution": entry.terms.get(term, 0.0), "spans": spans[str(term)]}
            for term in terms
        ],
        "rest": entry.rest + sum(entry.terms[term] for term in sorted(unnamed, key=str)),
        "constant": entry.constant,
    }
