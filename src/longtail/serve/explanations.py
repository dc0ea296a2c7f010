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


def explain(snapshot: Snapshot, text: str, label: Any, n_terms: int) -> dict[str, Any]:
    """Return the explanations of a class and of the best other one.

    Named are the `n_terms` terms whose contributions to both classes differ most. A label of None
    is the predicted class.
    """
    model = snapshot.model
    [found] = model.explain([text], None if label is None else [label], n_terms)
    spans = find_terms(model.vocabulary_, text, map(str, found.terms))
    runner_up = None if found.against is None else _describe(snapshot, found.against, spans)
    return {
        "version": snapshot.version,
        "explanation": _describe(snapshot, found, spans),
        "runner_up": runner_up,
    }


def _describe(snapshot: Snapshot, entry: Explanation, spans: dict[str, Any]) -> dict[str, Any]:
    """Return an explanation as it is sent."""
    parts = entry.as_dict()
    return {
        **parts,
        **describe_label(snapshot, parts["label"]),
        "feature_lines": entry.feature_lines(),
        "terms": [
            {"term": term, "contribution": value, "spans": spans[str(term)]}
            for term, value in entry.terms.items()
        ],
        "term_lines": entry.term_lines(),
    }
