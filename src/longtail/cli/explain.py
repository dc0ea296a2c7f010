"""`longtail explain`: why a document gets its class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.answers import class_texts, knows_probabilities
from longtail.cli.inputs import known_label, load_model, one_document, shorten_text
from longtail.cli.outputs import save_figure
from longtail.cli.shared_options import AsJson, ModelPath, ZeroBased
from longtail.cli.show import clear_errors, print_json, print_table, say

if TYPE_CHECKING:
    from longtail.results import Explanation


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
        [explained] = classifier.explain(document, classes=wanted, top_terms=terms)
        if not zero_based:  # terms without names are numbered as the user does
            explained = explained.rename_terms(lambda t: t + 1 if isinstance(t, int) else t)
        if figure is not None:
            from longtail.plotting import plot_explanation

            save_figure(plot_explanation(explained, explained.against, terms), figure, [model])
        probabilities, texts = _probabilities(classifier, document), class_texts(classifier)
        if as_json:
            other = explained.against
            runner_up = None if other is None else _describe(other, probabilities, texts)
            explanation = _describe(explained, probabilities, texts)
            print_json({**explanation, "runner_up": runner_up})
        elif wanted is None and not explained.terms and not explained.common:
            say("The text has no known word, so no class. --class explains one all the same.")
        else:
            _print(explained, probabilities, texts)


def _probabilities(classifier: Any, document: Any) -> dict[Any, float]:
    """Return the probabilities of the best classes, for a model that knows them."""
    if not knows_probabilities(classifier):
        return {}
    top = classifier.predict_proba_topk(document, 20)
    valid = top.valid[0]
    return dict(zip(top.classes[0][valid].tolist(), top.scores[0][valid].tolist(), strict=True))


def _print(explained: Explanation, probabilities: dict[Any, float], texts: dict[Any, str]) -> None:
    """Print the names of the classes, then two tables, terms and features."""
    sides = [side for side in (explained, explained.against) if side is not None]
    names = [_headed(side, probabilities) for side in sides]
    for side in sides:
        if side.label in texts:
            say(f"{side.label}: {shorten_text(texts[side.label])}")
    header = ["", *names, *(["difference"] if len(sides) > 1 else [])]

    def rows(lines: list[list[tuple[str, float]]]) -> list[tuple[str, ...]]:
        total = [("score", side.score) for side in sides]
        return [
            (line[0][0], *_cells([value for _, value in line]))
            for line in [*zip(*lines, strict=True), total]
        ]

    print_table(
        "What each term adds to the score", header, rows([side.term_lines() for side in sides])
    )
    print_table("The same score by feature", header, rows([side.feature_lines() for side in sides]))
    for terms, cosine in explained.nearest_lines():
        say(f"Near by meaning ({cosine:.2f}): {shorten_text(terms)}")
    if not explained.terms and not explained.common:
        say("No term of the document is known to the model.")


def _headed(side: Explanation, probabilities: dict[Any, float]) -> str:
    """Return a class with its probability for the head of a column."""
    probability = probabilities.get(side.label)
    return str(side.label) if probability is None else f"{side.label} ({probability:.0%})"


def _cells(values: list[float]) -> list[str]:
    """Return what a line adds to the class, or to both and the difference."""
    cells = [f"{value:.3f}" for value in values]
    return cells if len(values) == 1 else [*cells, f"{values[0] - values[1]:+.3f}"]


def _describe(
    side: Explanation, probabilities: dict[Any, float], texts: dict[Any, str]
) -> dict[str, Any]:
    """Return the explanation of one class for JSON."""
    parts = side.as_dict()
    return {
        "class": parts["label"],
        **({"text": texts.get(side.label)} if texts else {}),
        "probability": probabilities.get(side.label),
        "score": parts["score"],
        "terms": parts["terms"],
        "common_terms": parts["common"],
        "other_terms": parts["rest"],
        "constant": parts["constant"],
        **{name: parts[name] for name in ("meaning", "nearest") if name in parts},
        "features": parts["features"],
    }
