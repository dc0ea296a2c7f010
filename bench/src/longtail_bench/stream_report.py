"""Rows of `run_systems` -> a table, a table by period, and a figure of accuracy over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longtail.plotting import new_figure
from longtail_bench.stream import ALL, StreamRow
from longtail_bench.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; ours are strong lines, the others thin ones.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
_MARKERS = "sv^"  # of the others, where there are more lines than colours
_OURS = "longtail"

NOTES = (
    "Macro F1 is the mean of the per-class F1 over the classes that occur or are predicted.",
    "Seen: documents whose class had a document before their batch. Recent: of those, documents "
    "whose class was first seen within the last 30 days, counted in documents (30/365 of a "
    "period's).",
    "ECE is the calibration error of the first class's probability, documents of unseen classes "
    "counted as wrong. New-class AUROC: how well a low probability tells a document of a class "
    "never seen.",
    "CPU seconds: learning before the first prediction, learning after it, predicting; one thread.",
)


def summary_table(rows: Sequence[StreamRow], title: str) -> Table:
    """Return a line for each system over all periods."""
    header = (
        *("", "accuracy", "macro F1", "seen", "accuracy of seen", "recall of recent"),
        *("ECE", "new-class AUROC", "start, CPU s", "learning, CPU s", "predicting, CPU s"),
    )
    lines = [
        (
            row.system,
            _percent(row.accuracy),
            _percent(row.macro_f1),
            _percent(row.seen),
            _percent(row.accuracy_seen),
            _percent(row.recall_recent),
            _decimal(row.calibration_error),
            _decimal(row.new_class_auroc),
            f"{row.start_cpu_seconds:.1f}",
            f"{row.learn_cpu_seconds:.1f}",
            f"{row.predict_cpu_seconds:.1f}",
        )
        for row in rows
        if row.period == ALL
    ]
    return Table(title, header, lines, NOTES)


def period_table(rows: Sequence[StreamRow]) -> Table:
    """Return the accuracy of each system by period."""
    periods = list(dict.fromkeys(row.period for row in rows))
    found = {(row.system, row.period): row for row in rows}
    lines = [
        (system, *(_percent(found[system, period].accuracy) for period in periods))
        for system in dict.fromkeys(row.system for row in rows)
    ]
    return Table("Accuracy by period", ("", *periods), lines)


def plot_stream(rows: Sequence[StreamRow]) -> Figure:
    """Draw accuracy over time, one line for each system; a dashed one for what could be known.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(8.0, 5.6)
    axes = figure.subplots()
    by_period = [row for row in rows if row.period != ALL]
    systems = list(dict.fromkeys(row.system for row in by_period))
    for i, system in enumerate(systems):
        mine = [row for row in by_period if row.system == system]
        ours = system.startswith(_OURS)
        axes.plot(
            [row.period for row in mine],
            [100 * row.accuracy for row in mine],
            "o-" if ours else f"{_MARKERS[i // len(_COLOURS) % len(_MARKERS)]}--",
            color=_COLOURS[i % len(_COLOURS)],
            linewidth=2.0 if ours else 1.0,
            markersize=4,
            label=system,
        )
    if systems:
        mine = [row for row in by_period if row.system == systems[0]]
        axes.plot(
            [row.period for row in mine],
            [100 * row.seen for row in mine],
            ":",
            color="black",
            label="class seen before",
        )
    axes.set(ylabel="accuracy, %", ylim=(0, None))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"


def _decimal(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
