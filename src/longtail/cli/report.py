"""An Evaluation -> figures, and one HTML page that holds them and needs nothing else.

The page says what was evaluated, then the numbers, then figures with captions, then tables. Its
style and its script are in the files beside this one; a policy in the page forbids it to load
anything.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longtail.metrics import mean_interval, wilson_interval
from longtail.metrics.evaluation import Certainty, Evaluation
from longtail.plotting import (
    BLUE,
    FEW_DOCUMENTS,
    GREY,
    ORANGE,
    plot_calibration,
    plot_frequency,
    plot_precision,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_CLASSES = 50_000  # in the table of classes: some 3 MB
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
# A figure takes the colours of the page, which are others in the dark.
_COLOURS = {"#000000": "currentColor", GREY: "var(--muted)", BLUE: "var(--blue)"}
_COLOURS |= {ORANGE: "var(--orange)"}
_COLUMNS = ("class", "seen in training", "documents", "predicted", "correct", "precision", "recall")
_FOOTER = """Intervals are 95 % intervals. For shares of documents (accuracy, top k, precision,
coverage) they are Wilson's; for macro F1, a mean over classes, the standard error of the per-class
F1 gives them; for the calibration error they are 90 % intervals of a bootstrap. They say how a
number would vary over other documents or classes of this kind, and nothing about other kinds."""


@dataclass(frozen=True)
class ReportPage:
    """What a report has to show beside the evaluation.

    Attributes
    ----------
    title : str
        Heading of the page.
    facts : mapping of str to str
        What was evaluated, when and with which settings.
    tables : sequence of (title, header, rows)
        Shown as they are, after the figures; cells are strings.
    sentences : sequence of str
        What has to be said before the numbers are used.
    show_documents : bool
        Whether wrongly predicted documents are quoted.
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()
    sentences: Sequence[str] = ()
    show_documents: bool = True


def evaluation_figures(evaluation: Evaluation) -> dict[str, Figure]:
    """Draw everything that an evaluation has to show, by name."""
    figures = {"frequency": plot_frequency(evaluation)}
    if evaluation.certainty is not None:
        figures["calibration"] = plot_calibration(evaluation.certainty)
        figures["precision"] = plot_precision(evaluation.certainty)
    return figures


def html_report(page: ReportPage, evaluation: Evaluation, figures: Mapping[str, Figure]) -> str:
    """Return one HTML page with numbers, figures and tables inside; it loads nothing.

    Parameters
    ----------
    page : ReportPage
        Title, facts, tables and sentences.
    evaluation : Evaluation
        The results.
    figures : mapping of str to Figure
        From `evaluation_figures`; drawn as SVG into the page.
    """
    rest = [_html_classes(evaluation), *_html_mistakes(evaluation, page.show_documents)]
    captions = dict(_captions(evaluation))
    return html_page(page, _cards(evaluation), figures, captions, rest, _FOOTER)


def html_page(
    page: ReportPage,
    cards: Iterator[tuple[str, str, str]],
    figures: Mapping[str, Figure],
    captions: Mapping[str, tuple[str, str]],
    rest: Sequence[str],
    footer: str,
) -> str:
    """Return the page: facts, cards, sentences, figures with captions, tables, the rest, a note."""
    parts = [
        f"<header><h1>{_escape(page.title)}</h1>{_html_facts(page.facts)}</header>",
        "<main>",
        _html_cards(cards),
        *(f'<p class="note">{_escape(sentence)}</p>' for sentence in page.sentences),
        "<h2>Figures</h2>",
        *(_html_figure(name, figures[name], *captions[name]) for name in figures),
        *(_html_table(*table) for table in page.tables),
        *rest,
        "</main>",
        f"<footer><p>{_escape(footer)}</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(page.title)}</title>\n<style>\n{_read('report.css')}</style>\n</head>\n"
        + "<body>\n"
        + "\n".join(parts)
        + f"\n<script>\n{_read('report.js')}</script>\n</body>\n</html>\n"
    )


def _cards(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield the numbers that matter most: name, value, and what to know about it."""
    n_known = evaluation.n_documents - evaluation.n_unknown
    f1 = mean_interval([result.f1 for result in evaluation.classes] or [0.0])
    yield "accuracy", _share(evaluation.accuracy), _interval(evaluation.accuracy, evaluation)
    known = evaluation.accuracy_known
    low, high = wilson_interval(known, n_known)
    yield "accuracy on known classes", _share(known), f"{low:.1%} to {high:.1%}"
    yield (
        "macro F1, mean of the per-class F1",
        _share(evaluation.macro_f1),
        f"{f1[0]:.1%} to {f1[1]:.1%}",
    )
    for k in (5, 20):
        share = evaluation.top[k]
        yield f"true class in the top {k}", _share(share), _interval(share, evaluation)
    certainty = evaluation.certainty
    if certainty is not None:
        low, high = certainty.calibration_interval
        spread = f"{low:.3f} to {high:.3f} (90 %)"
        yield "calibration error", f"{certainty.calibration_error:.3f}", spread
        yield from _abstention_cards(certainty, evaluation)
    unknown = f"{evaluation.n_unknown / evaluation.n_documents:.1%} of the documents"
    yield "documents of classes unknown to the model", f"{evaluation.n_unknown:,}", unknown


def _abstention_cards(
    certainty: Certainty, evaluation: Evaluation
) -> Iterator[tuple[str, str, str]]:
    """Yield what is reached by keeping sure predictions alone."""
    abstention = certainty.abstention
    if abstention is None:
        return
    n_kept = round(abstention.coverage * evaluation.n_documents)
    low, high = wilson_interval(abstention.precision, n_kept)
    yield (
        f"precision at probability {abstention.threshold:.2f}, meant for {abstention.wanted:.0%}",
        _share(abstention.precision),
        f"{low:.1%} to {high:.1%}, for {abstention.coverage:.1%} of the documents",
    )


def _captions(evaluation: Evaluation) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield for each figure what it shows, and the same in words for whoever cannot see it."""
    bands = [band for band in evaluation.bands if band.n_documents]
    said = "; ".join(
        f"{band.name} documents seen: accuracy {band.accuracy:.0%}, macro F1 {band.macro_f1:.0%}"
        for band in bands
    )
    legend = f"Pale bars and hollow points stand for fewer than {FEW_DOCUMENTS} documents."
    yield (
        "frequency",
        (
            "Accuracy and macro F1 by how many documents of the class the model has seen. Lines "
            f"are 95 % intervals. {legend}",
            f"Bar chart. {said}.",
        ),
    )
    certainty = evaluation.certainty
    if certainty is None:
        return
    groups = [group for group in certainty.bins if group.n_documents]
    said = "; ".join(
        f"probability {group.mean_probability:.2f}: {group.accuracy:.0%} correct"
        for group in groups
    )
    yield (
        "calibration",
        (
            "Calibration: how often predictions of a probability are correct. On the dashed line, "
            "probabilities are frequencies; above it the model is too cautious, below too sure. "
            f"{legend}",
            f"Line chart. {said}.",
        ),
    )
    yield (
        "precision",
        (
            "Precision against coverage: what is reached by keeping only the surest predictions. "
            "The band is the 95 % interval.",
            f"Line chart. All documents kept: {evaluation.accuracy:.0%} correct.",
        ),
    )


def _html_facts(facts: Mapping[str, str]) -> str:
    """Return what was evaluated as a list of terms."""
    rows = (f"<dt>{_escape(key)}</dt><dd>{_escape(value)}</dd>" for key, value in facts.items())
    return f"<dl>{''.join(rows)}</dl>"


def _html_cards(cards: Iterator[tuple[str, str, str]]) -> str:
    """Return the numbers, each with its name and interval."""
    items = (
        f"<li><span>{_escape(name)}</span><b>{_escape(value)}</b>"
        f'<span class="interval">{_escape(spread)}</span></li>'
        for name, value, spread in cards
    )
    return f'<ul class="cards">{"".join(items)}</ul>'


def _html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; numbers stand to the right."""
    numeric = [
        bool(rows) and all(row[i].lstrip("+-")[:1].isdigit() or row[i] in ("", "-") for row in rows)
        for i in range(len(header))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="number"' if is_number else "" for is_number in numeric]
        written = (
            f"<{tag}{kind}>{_escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
        )
        return f"<tr>{''.join(written)}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return (
        f'<h2>{_escape(title)}</h2>\n<div class="scroll"><table>\n<thead>{line(header, "th")}'
        f"</thead>\n<tbody>{body}</tbody>\n</table></div>"
    )


def _html_classes(evaluation: Evaluation) -> str:
    """Return the table of classes, which the script of the page fills, sorts and filters."""
    ranked = sorted(evaluation.classes, key=lambda result: -result.n_true)
    rows = [
        [
            _printable(str(result.label)),
            *(result.n_seen, result.n_true, result.n_predicted, result.n_correct),
            *(None if share != share else share for share in (result.precision, result.recall)),
            result.f1,
        ]
        for result in ranked[:_MOST_CLASSES]
    ]
    # An end tag or a comment inside would end the script that holds the data.
    data = json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
    heads = "".join(
        f'<th{" class=number" if i else ""}><button type="button">{name}</button></th>'
        for i, name in enumerate((*_COLUMNS, "F1"))
    )
    left_out = len(ranked) - len(rows)
    end = f" {left_out:,} classes with the fewest documents are left out." if left_out else ""
    return (
        "<h2>Every class</h2>\n<p>A click on a column sorts by it. Precision is the share of the "
        "documents put into the class that belong there, recall the share of its documents that "
        f'were found.{end}</p>\n<p><label>Filter <input id="classes-filter" type="search"></label> '
        '<span id="classes-shown" class="muted"></span></p>\n<div class="scroll">'
        f'<table id="classes"><thead><tr>{heads}</tr></thead><tbody><tr><td colspan="8">This table '
        'needs JavaScript.</td></tr></tbody></table></div>\n<p class="more"><button type="button" '
        f'id="classes-more" hidden>Show more</button></p>\n'
        f'<script type="application/json" id="classes-data">{data}</script>'
    )


def _html_mistakes(evaluation: Evaluation, show_documents: bool) -> Iterator[str]:
    """Yield the wrong predictions that the model was surest of."""
    if not evaluation.mistakes:
        return
    scale = "score" if evaluation.certainty is None else "probability"
    yield (
        f"<h2>Wrong, and sure of it</h2>\n<p>The wrong predictions with the highest {scale}. "
        "The terms are those that speak most for the predicted class and against the true one, "
        "with what they add to the difference of the scores. Look at the labels as well: one of "
        "them may be what is wrong.</p>"
    )
    for mistake in evaluation.mistakes:
        terms = " ".join(
            f"<code>{_escape(str(term))}</code> {value:+.2f}"
            for term, value in mistake.misleading.items()
        )
        text = mistake.text if show_documents and mistake.text is not None else ""
        unknown = "" if mistake.known else " (a class that the model does not have)"
        yield (
            f'<div class="mistake"><p><b>{_escape(str(mistake.true))}</b>{unknown}, predicted as '
            f"<b>{_escape(str(mistake.predicted))}</b> with a {scale} of {mistake.certainty:.3f}, "
            f'document {mistake.document_id + 1:,}</p><p>{_escape(text)}</p><p class="muted">'
            f"{'Terms: ' + terms if terms else 'No term explains it.'}</p></div>"
        )


def _html_figure(name: str, figure: Figure, caption: str, description: str) -> str:
    """Return a figure as inline SVG, in the colours of the page, with caption and description."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    for colour, variable in _COLOURS.items():
        drawing = re.sub(re.escape(colour), variable, drawing, flags=re.IGNORECASE)
    label = f'<svg role="img" aria-label="{_escape(description)}"'
    return (
        f'<figure id="{name}">{drawing.replace("<svg", label, 1)}'
        f"<figcaption>{_escape(caption)}</figcaption></figure>"
    )


def _interval(share: float, evaluation: Evaluation) -> str:
    """Return the interval of a share of all documents."""
    low, high = wilson_interval(share, evaluation.n_documents)
    return f"{low:.1%} to {high:.1%}"


def _share(value: float) -> str:
    """Return a share, or a dash where there is none."""
    return "-" if value != value else f"{value:.1%}"


def _printable(text: str) -> str:
    """Return a text with control characters, which HTML must not have, as escapes."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: ascii(c.group())[1:-1], text)


def _escape(text: Any) -> str:
    """Return a text as HTML shows it."""
    return html.escape(_printable(text))


def _read(name: str) -> str:
    """Return a file that lies beside this module."""
    return files("longtail.cli").joinpath(name).read_text(encoding="utf-8")
