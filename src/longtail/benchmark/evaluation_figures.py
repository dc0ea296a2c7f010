"""An Evaluation -> figures, and one HTML page that holds them and needs nothing else."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from longtail.benchmark.evaluation import Certainty, Evaluation
from longtail.explanation_figures import BLUE, GREY, ORANGE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_POINTS = 1000  # of the precision curve; more would only swell an SVG
_FIRST_SHARE = 0.002  # below this share of the documents a precision is noise

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
td, th { padding: 0.2rem 0.8rem; border-bottom: 1px solid #ddd; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } p { color: #555; }
"""


def plot_calibration(certainty: Certainty) -> Figure:
    """Draw how often predictions of a probability are right, and how many there are of it."""
    figure = new_figure(5.0, 5.2)
    above, below = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    filled = [part for part in certainty.bins if part.n_documents]
    above.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="as it should be")
    above.plot(
        [part.mean_probability for part in filled],
        [part.accuracy for part in filled],
        "o-",
        color=BLUE,
        label=f"measured (calibration error {certainty.calibration_error:.3f})",
    )
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
    above.legend(frameon=False, loc="upper left")
    middles = [(part.lowest + part.highest) / 2 for part in certainty.bins]
    width = 0.9 / len(certainty.bins)
    below.bar(middles, [part.n_documents for part in certainty.bins], width, color=BLUE)
    below.set(xlabel="probability of the predicted class", ylabel="documents")
    _clear_frame(above, below)
    return figure


def plot_precision(certainty: Certainty) -> Figure:
    """Draw the precision that is reached when only the surest predictions are kept."""
    figure = new_figure(6.0, 4.0)
    axes = figure.subplots()
    kept = np.flatnonzero(certainty.curve.coverage >= _FIRST_SHARE)
    kept = kept[np.linspace(0, len(kept) - 1, min(len(kept), _MOST_POINTS)).astype(int)]
    coverage, precision = certainty.curve.coverage[kept], certainty.curve.precision[kept]
    axes.plot(coverage, precision, color=BLUE)
    abstention = certainty.abstention
    if abstention is not None and abstention.coverage > 0:
        axes.plot(abstention.coverage, abstention.precision, "o", color=ORANGE)
        words = (
            f"With a probability of at least {abstention.threshold:.2f},\n"
            f"{abstention.precision:.1%} are right, of {abstention.coverage:.1%} of the documents."
        )
        axes.text(0.03, 0.05, words, transform=axes.transAxes, color=ORANGE)
        axes.axhline(abstention.wanted, color=GREY, linewidth=1, linestyle="--")
    lowest = min(precision.min(), abstention.wanted if abstention else 1.0)
    axes.set(xlim=(0, 1), ylim=(max(0.0, lowest - 0.15), 1.01))
    axes.set(xlabel="coverage: share of documents kept", ylabel="precision: share right of these")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    _clear_frame(axes)
    return figure


def plot_frequency(evaluation: Evaluation) -> Figure:
    """Draw accuracy and macro F1 by how many documents of a class the model has seen."""
    figure = new_figure(7.0, 4.0)
    axes = figure.subplots()
    bands = evaluation.bands
    places = np.arange(len(bands))
    series = (
        (-0.2, [band.accuracy for band in bands], BLUE, "accuracy"),
        (0.2, [band.macro_f1 for band in bands], ORANGE, "macro F1"),
    )
    for offset, values, colour, name in series:
        bars = axes.bar(places + offset, np.nan_to_num(values), 0.38, color=colour, label=name)
        labels = ["" if np.isnan(value) else f"{value:.0%}" for value in values]
        axes.bar_label(bars, labels, fontsize=8, padding=2)
    axes.set_xticks(
        places, [f"{band.name}\n({band.n_documents:,} evaluated)" for band in bands], fontsize=8
    )
    axes.set(xlabel="documents of the class that the model has seen", ylim=(0, 1.15))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False, loc="upper left", ncols=2)
    _clear_frame(axes)
    return figure


def evaluation_figures(evaluation: Evaluation) -> dict[str, Figure]:
    """Draw everything that an evaluation has to show, by name."""
    figures = {"frequency": plot_frequency(evaluation)}
    if evaluation.certainty is not None:
        figures["calibration"] = plot_calibration(evaluation.certainty)
        figures["precision"] = plot_precision(evaluation.certainty)
    return figures


def html_report(title: str, tables: Sequence[Sequence[object]], figures: dict[str, Figure]) -> str:
    """Return one HTML page with tables and figures inside; it loads nothing.

    Parameters
    ----------
    title : str
        Heading of the page.
    tables : sequence of (title, header, rows)
        Cells are strings.
    figures : dict of str to Figure
        Drawn as SVG into the page.
    """
    parts = [f"<h1>{html.escape(title)}</h1>"]
    parts += [_html_figure(figure) for figure in figures.values()]
    parts += [_html_table(*table) for table in tables]  # type: ignore[arg-type]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; numbers stand to the right."""
    numeric = [
        bool(rows) and all(row[i].lstrip("+-")[:1].isdigit() or row[i] in ("", "-") for row in rows)
        for i in range(len(header))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        written = [
            f'<{tag} class="number">{html.escape(cell)}</{tag}>'
            if numeric[i]
            else f"<{tag}>{html.escape(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(written)}</tr>"

    lines = [line(header, "th"), *(line(row, "td") for row in rows)]
    return f"<h2>{html.escape(title)}</h2>\n<table>\n" + "\n".join(lines) + "\n</table>"


def _html_figure(figure: Figure) -> str:
    """Return a figure as inline SVG."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawing = buffer.getvalue()
    return f"<figure>{drawing[drawing.index('<svg') :]}</figure>"


def _clear_frame(*many: Axes) -> None:
    """Take the upper and right line off."""
    for axes in many:
        axes.spines[["top", "right"]].set_visible(False)
