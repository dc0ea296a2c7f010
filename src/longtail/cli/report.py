"""Findings -> one HTML page that holds its figures and needs nothing else.

The page begins with the one sentence to remember, then shows what to act on, each table beside its
figure, then every class and the mistakes, and at the end all measures and what was evaluated. Its
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

from longtail.cli.findings import Findings, Section
from longtail.plotting import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_CLASSES = 50_000  # in the table of classes: some 3 MB
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
# A figure takes the colours of the page, which are others in the dark.
_COLOURS = {"#000000": "currentColor", GREY: "var(--muted)", BLUE: "var(--blue)"}
_COLOURS |= {ORANGE: "var(--orange)"}
_COLUMNS = ("class", "seen in training", "documents", "predicted", "correct", "precision", "recall")
# Documents of a class from which on its F1 says something; fewer where few classes have as many.
_ENOUGH = (10, 5, 3, 2, 1)
_MIN_CLASSES = 10


@dataclass(frozen=True)
class ReportPage:
    """Content of a report beside the findings."""

    title: str  # what was evaluated on what
    # Model, data, date and settings of the evaluation.
    facts: Mapping[str, str] = field(default_factory=dict)
    expected: Section | None = None  # what was expected beside what was found
    comparison: Section | None = None  # two models side by side
    show_documents: bool = True  # whether wrongly predicted documents are quoted


def html_report(page: ReportPage, findings: Findings, figures: Mapping[str, Figure]) -> str:
    """Return one self-contained HTML page with numbers, figures and tables."""

    def show(section: Section) -> str:
        figure = ""
        if section.figure in figures:
            caption = findings.captions[section.figure]
            figure = _html_figure(section.figure, figures[section.figure], *caption)
        return _html_section(section, figure)

    measures, *sections = findings.sections
    choices = [section for section in sections if section.figure == "precision"]
    others = [section for section in sections if section.figure != "precision"]
    parts = [
        f'<header><p class="muted">{_escape(page.title)}</p>'
        f"<h1>{_escape(findings.headline)}</h1></header>",
        "<main>",
        *([] if page.comparison is None else [show(page.comparison)]),
        *(f'<p class="note">{_escape(sentence)}</p>' for sentence in findings.sentences),
        *(show(section) for section in choices),
        *(show(section) for section in others if not section.figure),
        _html_classes(findings),
        *(show(section) for section in others if section.figure),
        *_html_mistakes(findings, page.show_documents),
        show(Section(f"All measures: {measures.title}", measures.header, measures.rows)),
        *([] if page.expected is None else [show(page.expected)]),
        "<h2>What was evaluated</h2>",
        _html_facts(page.facts),
        "</main>",
        f"<footer><p>{_escape(findings.footer)}</p></footer>",
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


def _html_facts(facts: Mapping[str, str]) -> str:
    """Return the facts about model and data as a definition list."""
    rows = (f"<dt>{_escape(key)}</dt><dd>{_escape(value)}</dd>" for key, value in facts.items())
    return f"<dl>{''.join(rows)}</dl>"


def _html_section(section: Section, figure: str = "") -> str:
    """Return a table as HTML, with its figure beside it; numbers stand to the right."""
    rows = section.rows
    numeric = [
        bool(rows)
        and any(row[i] not in ("", "-") for row in rows)
        and all(row[i].lstrip("+-")[:1].isdigit() or row[i] in ("", "-") for row in rows)
        for i in range(len(section.header))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="number"' if is_number else "" for is_number in numeric]
        written = (
            f"<{tag}{kind}>{_escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
        )
        return f"<tr>{''.join(written)}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    remark = f"<p>{_escape(section.remark)}</p>\n" if section.remark else ""
    table = (
        f'{remark}<div class="scroll"><table>\n<thead>{line(section.header, "th")}</thead>\n'
        f"<tbody>{body}</tbody>\n</table></div>"
    )
    if figure:
        table = f'<div class="beside"><div>{table}</div>{figure}</div>'
    return f"<h2>{_escape(section.title)}</h2>\n{table}"


def _html_classes(findings: Findings) -> str:
    """Return the table of classes, which the script of the page fills, sorts and filters."""
    ranked = sorted(findings.classes, key=lambda result: -result.n_true)
    rows = [
        [
            _printable(str(result.label)),
            *(result.n_seen, result.n_true, result.n_predicted, result.n_correct),
            *(None if share != share else share for share in (result.precision, result.recall)),
            result.f1,
        ]
        for result in ranked[:_MAX_CLASSES]
    ]
    # An end tag or a comment inside would end the script that holds the data.
    data = json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
    heads = "".join(
        f'<th{" class=number" if i else ""}><button type="button">{name}</button></th>'
        for i, name in enumerate((*_COLUMNS, "F1"))
    )
    left_out = len(ranked) - len(rows)
    end = f" {left_out:,} classes with the fewest documents are left out." if left_out else ""
    enough = next(
        (n for n in _ENOUGH if sum(c.n_true >= n for c in ranked) >= _MIN_CLASSES), _ENOUGH[-1]
    )
    return (
        "<h2>Classes, worst first</h2>\n<p>A click on a column sorts by it. Precision is the share "
        "of the documents put into the class that belong there, recall the share of its documents "
        f'that were found.{end}</p>\n<p class="controls"><label>Filter <input id="classes-filter" '
        'type="search"></label> <label>at least <input id="classes-least" type="number" min="0" '
        f'value="{enough}"> documents</label> <span id="classes-shown" class="muted"></span></p>\n'
        f'<div class="scroll"><table id="classes"><thead><tr>{heads}</tr></thead><tbody><tr>'
        '<td colspan="8">This table needs JavaScript.</td></tr></tbody></table></div>\n'
        '<p class="more"><button type="button" id="classes-more" hidden>Show more</button></p>\n'
        f'<script type="application/json" id="classes-data">{data}</script>'
    )


def _html_mistakes(findings: Findings, show_documents: bool) -> Iterator[str]:
    """Yield the wrong predictions that the model was surest of."""
    if not findings.mistakes:
        return
    yield (
        f"<h2>Wrong, and sure of it</h2>\n<p>The wrong predictions with the highest "
        f"{findings.scale}. The terms are those that speak most for the predicted class and "
        "against the true one, with what they add to the difference of the scores. Look "
        "at the labels as well: one of them may be what is wrong.</p>"
    )
    for mistake in findings.mistakes:
        terms = " ".join(
            f"<code>{_escape(str(term))}</code> {value:+.2f}"
            for term, value in mistake.misleading.items()
        )
        text = mistake.text if show_documents and mistake.text is not None else ""
        several = isinstance(mistake.true, list)
        true = ", ".join(map(str, mistake.true)) if several else str(mistake.true)
        unknown = "" if mistake.known or not true else " (not among the classes of the model)"
        where = mistake.reference or f"document {mistake.document_id + 1:,}"
        yield (
            f'<div class="mistake"><p><b>{_escape(true or "no label")}</b>{unknown}, predicted as '
            f"<b>{_escape(str(mistake.predicted))}</b> with a {findings.scale} of "
            f'{mistake.certainty:.3f} <span class="muted">({_escape(where)})</span></p>'
            f'<p>{_escape(text)}</p><p class="muted">'
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


def _printable(text: str) -> str:
    """Escape control characters, which HTML must not contain."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: ascii(c.group())[1:-1], text)


def _escape(text: Any) -> str:
    """Return a text as HTML shows it."""
    return html.escape(_printable(text))


def _read(name: str) -> str:
    """Return a file that lies beside this module."""
    return files("longtail.cli").joinpath(name).read_text(encoding="utf-8")
