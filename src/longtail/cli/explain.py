"""`longtail explain`: why a document gets its class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.files import save_figure
from longtail.cli.inputs import known_label, load_model, one_document
from longtail.cli.options import AsJson, ModelPath, ZeroBased
from longtail.cli.show import clear_errors, print_json, print_table, say

if TYPE_CHECKING:
    from longtail.results import Explanation

_ALL_TERMS = 1 << 30


def explain(
    model: ModelPath,
    text: Annotated[str, typer.Argument(help="The document itself; - reads it.")],
    label: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS", help="Explain this class, not the predicted one."),
    ] = None,
    terms: Annotated[int, typer.Option("--terms", min=1, help="How many terms to show.")] = 10,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw it: .png, .svg or .pdf.")
    ] = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Show which terms and features speak for a class, against the next best one."""
    with clear_errors():
        classifier = load_model(model)
        document = one_document(classifier, text, zero_based)
        wanted = None if label is None else [known_label(classifier, label)]
        first = 0 if zero_based else 1
        chosen = _explain(classifier, document, wanted, first)
        rival = None
        if chosen.runner_up is not None:
            rival = _explain(classifier, document, [chosen.runner_up], first)
        if figure is not None:
            from longtail.plotting import plot_explanation

            save_figure(plot_explanation(chosen, rival, terms), figure)
        chances = _probabilities(classifier, document)
        if as_json:
            print_json(_as_json(chosen, rival, terms, chances))
        else:
            _print(chosen, rival, terms, chances)


def _explain(classifier: Any, document: Any, wanted: Any, first: int) -> Explanation:
    """Explain one class with all terms; terms without names are numbered as the user does."""
    found: Explanation
    [found] = classifier.explain(document, classes=wanted, top_terms=_ALL_TERMS)
    terms = {
        term + first if isinstance(term, int) else term: value
        for term, value in found.terms.items()
    }
    return replace(found, terms=terms)


def _probabilities(classifier: Any, document: Any) -> dict[Any, float]:
    """Return the probabilities of the best classes, for a model that knows them."""
    from longtail.metrics.evaluation import knows_probabilities

    if not knows_probabilities(classifier):
        return {}
    top = classifier.predict_proba_topk(document, 20)
    pairs = zip(top.classes[0].tolist(), top.scores[0].tolist(), strict=True)
    found: dict[Any, float] = {}
    for name, chance in pairs:
        found.setdefault(name, chance)  # padding repeats a class
    return found


def _rows(
    chosen: Explanation, rival: Explanation | None, n_terms: int
) -> tuple[list[Any], dict[str, tuple[float, float]]]:
    """Return the terms to show, and what is left: other terms, constant, score."""
    from longtail.plotting import rank_terms

    shown = rank_terms(chosen, rival)[:n_terms]
    both = (chosen, rival or chosen)
    others = tuple(
        part.rest + sum(value for term, value in part.terms.items() if term not in set(shown))
        for part in both
    )
    return shown, {
        "other terms": (others[0], others[1]),
        "the class itself": (both[0].constant, both[1].constant),
        "score": (both[0].score, both[1].score),
    }


def _print(
    chosen: Explanation, rival: Explanation | None, n_terms: int, chances: dict[Any, float]
) -> None:
    """Print two tables, terms and features."""
    shown, rest = _rows(chosen, rival, n_terms)
    names = [_headed(part, chances) for part in (chosen, rival) if part is not None]
    header = ["", *names, *(["difference"] if rival else [])]
    table = [(str(term), *_cells(chosen.terms, rival and rival.terms, term)) for term in shown]
    table += [(name, *_three(*pair, rival is not None)) for name, pair in rest.items()]
    print_table("What each term adds to the score", header, table)
    features = [
        (name, *_cells(chosen.features, rival and rival.features, name)) for name in chosen.features
    ]
    print_table("The same score by feature", header, features)
    if not shown:
        say("No term of the document is known to the model.")


def _headed(part: Explanation, chances: dict[Any, float]) -> str:
    """Return a class with its probability for the head of a column."""
    chance = chances.get(part.label)
    return str(part.label) if chance is None else f"{part.label} ({chance:.0%})"


def _cells(mine: Any, other: Any, name: Any) -> tuple[str, ...]:
    """Return what one term or feature adds to both, and the difference."""
    return _three(mine.get(name, 0.0), (other or {}).get(name, 0.0), other is not None)


def _three(mine: float, other: float, compared: bool) -> tuple[str, ...]:
    """Return a number beside another one and their difference."""
    return (f"{mine:.3f}", f"{other:.3f}", f"{mine - other:+.3f}") if compared else (f"{mine:.3f}",)


def _as_json(
    chosen: Explanation, rival: Explanation | None, n_terms: int, chances: dict[Any, float]
) -> dict[str, Any]:
    """Return both explanations for the same terms."""
    shown, rest = _rows(chosen, rival, n_terms)

    def part(which: Explanation, place: int) -> dict[str, Any]:
        return {
            "class": which.label,
            "probability": chances.get(which.label),
            "score": which.score,
            "terms": {str(term): which.terms.get(term, 0.0) for term in shown},
            "other_terms": rest["other terms"][place],
            "constant": which.constant,
            "features": dict(which.features),
        }

    return {**part(chosen, 0), "runner_up": None if rival is None else part(rival, 1)}
