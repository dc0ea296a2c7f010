"""Rows of `run_growth` -> a log-log figure of time and memory against the number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longtail.plotting import BLUE, GREY, ORANGE, new_figure
from longtail_bench.growth import QUANTITIES, fit_exponents
from longtail_bench.rows import OK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (ORANGE, BLUE)


def plot_growth(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what grows with the number of classes, one panel each, both axes logarithmic.

    Parameters
    ----------
    rows : sequence of dict
        As `run_growth` returns them; those without results are left out.

    Returns
    -------
    matplotlib.figure.Figure
        The exponents stand beside the names; a grey line grows like the number of classes.
    """
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    exponents = {
        (exponent.estimator, exponent.quantity): exponent for exponent in fit_exponents(rows)
    }
    figure = new_figure(3.6 * len(QUANTITIES), 3.8)
    panels = figure.subplots(1, len(QUANTITIES), squeeze=False)[0]
    for axes, quantity in zip(panels, QUANTITIES, strict=True):
        for estimator, colour in zip(estimators, _COLOURS, strict=False):
            points = sorted(
                (row["n_classes"], quantity.of(row))
                for row in rows
                if row["estimator"] == estimator and row["outcome"] == OK
            )
            if not points:
                continue
            power = exponents.get((estimator, quantity.name))
            label = estimator
            if power is not None:
                label += f"\nK^{power.overall:.2f}, at the end K^{power.at_the_end:.2f}"
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=label)
        _draw_proportional(axes)
        axes.set(xscale="log", yscale="log", xlabel="classes K")
        axes.set_title(f"{quantity.name}, {quantity.measured_in}", fontsize=10, loc="left")
        if axes.get_lines():
            axes.legend(frameon=False, fontsize=7)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
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
