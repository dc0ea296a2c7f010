"""Entries of a report -> the paper's Figure 3, and accuracy against time.

Each function draws with matplotlib and returns the figure; it writes no file and shows no window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from longtail_bench.report import Entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and orange of Okabe and Ito, which stay apart for the colour-blind.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
_PANELS: tuple[tuple[str, Callable[[Entry], float], bool], ...] = (
    ("total time, CPU seconds", lambda entry: entry.total_seconds, True),
    ("memory, MB", lambda entry: entry.mean(lambda row: row.peak_megabytes), True),
    (
        "macro F1 (MaF1), %",
        lambda entry: 100 * entry.mean(lambda row: row.macro_f1_of_means),
        False,
    ),
)


def plot_costs(entries: Mapping[str, Sequence[Entry]]) -> Figure:
    """Draw the paper's Figure 3: total time, memory and macro F1 of every system, as points.

    Parameters
    ----------
    entries : mapping of str to sequence of Entry
        What `collect` returned. A system without results keeps its place, with the reason.

    Returns
    -------
    matplotlib.figure.Figure
        A row of three panels for each data set, best macro F1 first; ours is an orange diamond. A
        column has the same scale for all data sets.
    """
    heights = [0.2 * len(some) + 0.75 for some in entries.values()]
    figure = _new_figure(10.0, sum(heights))
    grid = figure.subplots(
        len(entries),
        3,
        squeeze=False,
        sharex="col",
        sharey="row",
        gridspec_kw={"height_ratios": heights},
    )
    ranked = {data: sorted(some, key=_by_macro_f1) for data, some in entries.items()}
    everything = [entry for some in entries.values() for entry in some]
    for column, (title, value, logarithmic) in zip(grid.T, _PANELS, strict=True):
        start = _set_scale(column[0], [value(entry) for entry in everything], logarithmic)
        for axes, some in zip(column, ranked.values(), strict=True):
            _draw_points(axes, some, value, start)
            axes.tick_params(labelbottom=True, labelsize=8)
            axes.set_title(title, fontsize=9, loc="left")
    for line, (data, some) in zip(grid, ranked.items(), strict=True):
        line[0].set_yticks(range(len(some)), [entry.title for entry in some], fontsize=8)
        line[0].set_ylim(len(some) - 0.4, -0.6)  # downwards, and room for those without a point
        line[0].set_ylabel(data, fontsize=10, fontweight="bold")
    return figure


def plot_accuracy_against_time(entries: Mapping[str, Sequence[Entry]]) -> Figure:
    """Draw accuracy against total time, a point for each system.

    Parameters
    ----------
    entries : mapping of str to sequence of Entry
        What `collect` returned; systems without results are left out.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each data set; ours is orange.
    """
    n_columns = min(2, len(entries))
    n_rows = math.ceil(len(entries) / n_columns)
    figure = _new_figure(5.5 * n_columns, 4.2 * n_rows)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in panels[len(entries) :]:
        axes.set_visible(False)
    for axes, (data, some) in zip(panels, entries.items(), strict=False):
        points = [
            (entry.total_seconds, 100 * entry.mean(lambda row: row.accuracy), entry)
            for entry in some
            if not entry.failure
        ]
        for seconds, accuracy, entry in points:
            axes.plot(seconds, accuracy, _marker(entry), color=_colour(entry), markersize=6)
        if points:
            _set_decades(axes, [seconds for seconds, _, _ in points], margin=0.25)
            _name_points(axes, points)
        axes.margins(y=0.08)
        axes.set_title(data, fontsize=11, fontweight="bold", loc="left")
        axes.set_xlabel("fit and predict, CPU seconds", fontsize=9)
        axes.set_ylabel("accuracy, %", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _by_macro_f1(entry: Entry) -> float:
    """Order entries by macro F1, best first; those without come last."""
    value = entry.mean(lambda row: row.macro_f1_of_means)
    return math.inf if math.isnan(value) else -value


def _set_scale(axes: Axes, values: Sequence[float], logarithmic: bool) -> float:
    """Choose limits for all data sets; return where the axis begins."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return 0.0
    if logarithmic:
        return _set_decades(axes, known, margin=0.15)
    axes.set_xlim(0, max(known) * 1.15)
    return 0.0


def _draw_points(
    axes: Axes, entries: Sequence[Entry], value: Callable[[Entry], float], start: float
) -> None:
    """Draw one panel, with the number beside each point.

    Points, not bars: on a logarithmic axis the length of a bar means nothing.
    """
    for row_index, entry in enumerate(entries):
        column = value(entry)
        axes.axhline(row_index, color=GREY, linewidth=0.4, alpha=0.4, zorder=0)
        if math.isnan(column):
            axes.text(start, row_index, f" {_reason(entry)}", va="center", fontsize=7, color=GREY)
            continue
        axes.plot(column, row_index, _marker(entry), color=_colour(entry), markersize=6)
        label = f"{column:,.0f}" if column >= 100 else f"{column:.1f}"
        axes.annotate(
            label, (column, row_index), (6, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _set_decades(axes: Axes, values: Sequence[float], margin: float) -> float:
    """Make the x axis logarithmic, from a power of ten, with room at the right; return its start.

    A logarithmic axis has no zero: it begins at the power of ten below the smallest value.
    """
    start = math.floor(math.log10(max(min(values), 1e-3)))
    end = max(math.log10(max(values)), start + 1)
    axes.set_xscale("log")
    axes.set_xlim(10.0**start, 10.0 ** (end + margin * (end - start)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda *_: "")
    return float(10.0**start)


def _name_points(axes: Axes, points: Sequence[tuple[float, float, Entry]]) -> None:
    """Write names beside points; one that would cover another moves up or down."""
    accuracies = [accuracy for _, accuracy, _ in points]
    step = 0.034 * ((max(accuracies) - min(accuracies)) or 1.0)
    left, last = (math.log10(limit) for limit in axes.get_xlim())
    gap = (last - left) / 60
    # What is written or drawn already: from, to (powers of ten), height
    occupied = [
        (math.log10(seconds) - gap, math.log10(seconds) + gap / 2, accuracy)
        for seconds, accuracy, _ in points
    ]
    for seconds, accuracy, entry in sorted(points, key=lambda point: -point[1]):
        begin = math.log10(seconds) + gap
        end = begin + (last - left) * 0.0095 * len(entry.title)  # a character at this size
        height = next(
            accuracy + step * shift
            for shift in sorted(range(-len(points), len(points) + 1), key=abs)
            if not any(
                begin < other_end and other_begin < end and abs(accuracy + step * shift - at) < step
                for other_begin, other_end, at in occupied
            )
            or abs(shift) == len(points)
        )
        occupied.append((begin, end, height))
        axes.annotate(
            entry.title,
            (seconds, accuracy),
            (10**begin, height),
            fontsize=8,
            va="center",
            color=_colour(entry) if entry.row.system == "longtail" else "black",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 0, "shrinkB": 3},
        )


def _reason(entry: Entry) -> str:
    """Say in a few words why an entry has no results."""
    reasons = {"time": "time limit", "memory": "memory limit", "environment": "not installed"}
    return reasons.get(entry.failure.outcome, "failed") if entry.failure else "not given"


def _marker(entry: Entry) -> str:
    """Return the shape of a system's point: ours differs without its colour, too."""
    return "D" if entry.row.system == "longtail" else "o"


def _colour(entry: Entry) -> str:
    """Return the colour of a system: ours stands out."""
    return ORANGE if entry.row.system == "longtail" else BLUE


def _new_figure(inches: float, height: float) -> Figure:
    """Return an empty figure of a size in inches that no window will show."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "drawing a figure needs the package matplotlib: pip install 'longtail[plot]'"
        ) from error
    return Figure(figsize=(inches, height), layout="constrained")
