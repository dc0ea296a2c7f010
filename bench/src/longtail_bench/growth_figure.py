"""Rows of `run_growth` -> a log-log figure of time and memory against the number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longtail.plotting import BLUE, GREY, ORANGE, new_figure
from longtail_bench.growth import QUANTITIES, fit_exponents
from longtail_bench.rows import OK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (ORANGE, BLUE, "#009E73")


def plot_growth(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what grows with the number of classes, one panel each, both axes logarithmic.

    Parameters
    ----------
    rows : sequence of dict
        As `run_growth` returns them; those without results are left out.

    Returns
    -------
    matplotlib.figure.Figure
        Beside the last point stands how it grows between the last two sizes; a dashed line grows
        like the number of classes.
    """
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    exponents = {
        (exponent.estimator, exponent.quantity): exponent for exponent in fit_exponents(rows)
    }
    figure = new_figure(8.0, 6.4)
    from matplotlib.ticker import LogLocator

    panels = figure.subplots(2, 2).ravel()
    for axes, quantity in zip(panels, QUANTITIES, strict=True):
        for estimator, colour, marker in zip(estimators, _COLOURS, "Dos", strict=False):
            points = sorted(
                (row["n_classes"], quantity.of(row))
                for row in rows
                if row["estimator"] == estimator and row["outcome"] == OK
            )
            if not points:
                continue
            axes.plot(
                *zip(*points, strict=True),
                f"{marker}-",
                color=colour,
                label=estimator,
                markersize=5,
            )
            power = exponents.get((estimator, quantity.name))
            if power is not None:
                axes.annotate(
                    f"K^{power.at_the_end:.2f}",
                    points[-1],
                    (5, 0),
                    textcoords="offset points",
                    va="top" if colour == BLUE else "bottom",
                    fontsize=8,
                    color=colour,
                )
        _draw_proportional(axes)
        axes.set(xscale="log", yscale="log", xlabel="classes K")
        axes.set_title(f"{quantity.name}, {quantity.measured_in}", fontsize=10, loc="left")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))  # memory has but one power of ten
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axis.set_minor_formatter(lambda *_: "")
        axes.tick_params(labelsize=8)
        axes.margins(x=0.16)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    names = dict(zip(*panels[0].get_legend_handles_labels()[::-1], strict=True))
    if names:
        figure.legend(
            names.values(), names, loc="outside upper left", ncols=3, frameon=False, fontsize=9
        )
    return figure


def _draw_proportional(axes: Any) -> None:
    """Draw a line of slope 1 from the lowest point, and leave the limits to the data."""
    lines = axes.get_lines()
    if not lines:
        return
    left = min(min(line.get_xdata()) for line in lines)
    last = max(max(line.get_xdata()) for line in lines)
    first = min(min(line.get_ydata()) for line in lines)
    highest = max(max(line.get_ydata()) for line in lines)
    last = min(last, left * highest / first)  # no taller than the data
    axes.plot(
        [left, last],
        [first, first * last / left],
        "--",
        color=GREY,
        linewidth=1,
        label="in proportion to K",
    )
