"""An Evaluation -> figures, and one HTML page that holds them and needs nothing else."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longtail.metrics.evaluation import Evaluation
from longtail.plotting import plot_calibration, plot_frequency, plot_precision

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
td, th { padding: 0.2rem 0.8rem; border-bottom: 1px solid #ddd; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } p { color: #555; }
"""


def evaluation_figures(evaluation: Evaluation) -> dict[str, Figure]:
    """Draw everything that an evaluation has to show, by name."""
    figures = {"frequency": plot_frequency(evaluation)}
    if evaluation.certainty is not None:
        figures["calibration"] = plot_calibration(evaluation.certainty)
        figures["precision"] = plot_precision(evaluation.certainty)
    return figures


def html_report(
    title: str,
    tables: Sequence[Sequence[object]],
    figures: dict[str, Figure],
    sentences: Sequence[str] = (),
) -> str:
    """Return one HTML page with tables and figures inside; it loads nothing.

    Parameters
    ----------
    title : str
        Heading of the page.
    tables : sequence of (title, header, rows)
        Cells are strings.
    figures : dict of str to Figure
        Drawn as SVG into the page.
    sentences : sequence of str, default=()
        What has to be said after the first table.
    """
    written = [_html_table(*table) for table in tables]  # type: ignore[arg-type]
    body = "\n".join(
        [
            f"<h1>{_escape(title)}</h1>",
            *written[:1],
            *(f"<p>{_escape(sentence)}</p>" for sentence in sentences),
            *map(_html_figure, figures.values()),
            *written[1:],
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _escape(text: str) -> str:
    """Return a text as HTML shows it; control characters, which it must not have, as escapes."""
    shown = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: ascii(c.group())[1:-1], text)
    return html.escape(shown)


def _html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; numbers stand to the right."""
    numeric = [
        bool(rows) and all(row[i].lstrip("+-")[:1].isdigit() or row[i] in ("", "-") for row in rows)
        for i in range(len(header))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        written = [
            f'<{tag} class="number">{_escape(cell)}</{tag}>'
            if numeric[i]
            else f"<{tag}>{_escape(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(written)}</tr>"

    lines = [line(header, "th"), *(line(row, "td") for row in rows)]
    return f"<h2>{_escape(title)}</h2>\n<table>\n" + "\n".join(lines) + "\n</table>"


def _html_figure(figure: Figure) -> str:
    """Return a figure as inline SVG."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawing = buffer.getvalue()
    return f"<figure>{drawing[drawing.index('<svg') :]}</figure>"
