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
        explained = _explain(classifier, document, wanted, first)
        runner_up = None
        if explained.runner_up is not None:
            runner_up = _explain(classifier, document, [explained.runner_up], first)
        if figure is not None:
            from longtail.plotting import plot_explanation

            save_figure(plot_explanation(explained, runner_up, terms), figure, [model])
        probabilities = _probabilities(classifier, document)
        if as_json:
            print_json(_as_json(explained, runner_up, terms, probabilities))
        else:
            _print(explained, runner_up, terms, probabilities)


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
    valid = top.valid[0]
    return dict(zip(top.classes[0][valid].tolist(), top.scores[0][valid].tolist(), strict=True))


def _rows(
    explained: Explanation, runner_up: Explanation | None, n_terms: int
) -> tuple[list[Any], dict[str, tuple[float, float]]]:
    """Return the terms to show, and what is left: other terms, constant, score."""
    from longtail.plotting import rank_terms

    shown = rank_terms(explained, runner_up)[:n_terms]
    both = (explained, runner_up or explained)
    others = tuple(
        side.rest + sum(value for term, value in side.terms.items() if term not in set(shown))
        for side in both
    )
    return shown, {
        "other terms": (others[0], others[1]),
        "the class itself": (both[0].constant, both[1].constant),
        "score": (both[0].score, both[1].score),
    }


def _print(
    explained: Explanation,
    runner_up: Explanation | None,
    n_terms: int,
    probabilities: dict[Any, float],
) -> None:
    """Print two tables, terms and features."""
    shown, rest = _rows(explained, runner_up, n_terms)
    names = [_headed(side, probabilities) for side in (explained, runner_up) if side is not None]
    header = ["", *names, *(["difference"] if runner_up else [])]
    table = [
        (str(term), *_cells(explained.terms, runner_up and runner_up.terms, term)) for term in shown
    ]
    table += [(name, *_three(*pair, runner_up is not None)) for name, pair in rest.items()]
    print_table("What each term adds to the score", header, table)
    features = [
        (name, *_cells(explained.features, runner_up and runner_up.features, name))
        for name in explained.features
    ]
    print_table("The same score by feature", header, features)
    if not shown:
        say("No term of the document is known to the model.")


def _headed(side: Explanation, probabilities: dict[Any, float]) -> str:
    """Return a class with its probability for the head of a column."""
    probability = probabilities.get(side.label)
    return str(side.label) if probability is None else f"{side.label} ({probability:.0%})"


def _cells(mine: Any, other: Any, name: Any) -> tuple[str, ...]:
    """Return what one term or feature adds to both, and the difference."""
    return _three(mine.get(name, 0.0), (other or {}).get(name, 0.0), other is not None)


def _three(mine: float, other: float, compared: bool) -> tuple[str, ...]:
    """Return a number beside another one and their difference."""
    return (f"{mine:.3f}", f"{other:.3f}", f"{mine - other:+.3f}") if compared else (f"{mine:.3f}",)


def _as_json(
    explained: Explanation,
    runner_up: Explanation | None,
    n_terms: int,
    probabilities: dict[Any, float],
) -> dict[str, Any]:
    """Return both explanations for the same terms."""
    shown, rest = _rows(explained, runner_up, n_terms)

    def side(which: Explanation, index: int) -> dict[str, Any]:
        return {
            "class": which.label,
            "probability": probabilities.get(which.label),
            "score": which.score,
            "terms": {str(term): which.terms.get(term, 0.0) for term in shown},
            "other_terms": rest["other terms"][index],
            "constant": which.constant,
            "features": dict(which.features),
        }

    return {**side(explained, 0), "runner_up": None if runner_up is None else side(runner_up, 1)}
