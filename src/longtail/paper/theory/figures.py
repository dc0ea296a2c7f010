"""Figures 1 and 2 of the paper and the log-log figures of the consistency experiment.

Each function draws with matplotlib and returns the figure; it writes no file and shows no window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.paper.theory.graph import document_cover
from longtail.paper.theory.rates import ConsistencyResult, Rate, measured_rates, shrinking_values
from longtail.paper.theory.transformation import TransformedSet, toy_example
from longtail.plotting import BLUE, GREY, ORANGE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

SWEEP_TITLES = {
    "documents": "more documents, sampled in proportion",
    "adversaries": "more adversaries",
    "examples": "more examples per class",
    "balanced": "balanced classes: the gap itself",
}
AXIS_LABELS = {
    "n_documents": "documents m",
    "n_sampled": "documents sampled M",
    "adversaries": "adversaries κ",
    "examples_per_class": "examples per class",
}
TERM_LABELS = {
    "complexity": "complexity / √ln(eM/p)",
    "deviation": "deviation (a)",
    "variance": "variance (b)",
    "remainder": "remainder (b)",
    "shift_slow": "shift, slow",
    "shift_fast": "shift, fast",
    "gap": "mean |R − R̃|",
}


def plot_transformation(transformed: TransformedSet | None = None) -> Figure:
    """Draw Figure 1: the documents of S, and the pairs of T(S), one row a document.

    Parameters
    ----------
    transformed : TransformedSet, optional
        The pairs to draw; the toy example of the paper when left out.
    """
    pairs = toy_example() if transformed is None else transformed
    n_columns = pairs.n_classes - 1
    n_documents = pairs.n_pairs // n_columns
    figure, axes = _canvas(3.1 * n_columns + 0.3, 0.42 * n_documents + 1.9)
    axes.set(xlim=(-0.6, n_columns - 0.4), ylim=(n_documents - 0.25, -3.4))
    centre = (n_columns - 1) / 2
    for i in range(n_documents):
        true = _true_class(pairs, i) + 1
        x = centre + 0.36 * (i - (n_documents - 1) / 2)
        name = rf"$\mathbf{{x}}_{{{i + 1}}}^{{y_{{{true}}}}}$"
        axes.text(x, -2.7, name, ha="center", va="center", fontsize=13)
    half = 0.18 * n_documents
    _rounded_box(axes, centre - half, -3.2, (2 * half, 1.0), aspect=6.0)
    axes.text(centre - half - 0.08, -2.7, r"$\mathcal{S}$", ha="right", va="center", fontsize=13)
    axes.annotate("", (centre, -0.75), (centre, -2.15), arrowprops={"arrowstyle": "->", "lw": 1.4})
    axes.text(centre + 0.06, -1.45, "$T$", va="center", fontsize=13)
    for j in range(pairs.n_pairs):
        text = _pair_text(pairs, j)
        axes.text(j % n_columns, j // n_columns, text, ha="center", va="center", fontsize=11)
    _rounded_box(axes, -0.52, -0.65, (n_columns + 0.04, n_documents + 0.3), aspect=6.0)
    return figure


def plot_dependency_graph(transformed: TransformedSet | None = None) -> Figure:
    """Draw Figure 2: pairs that share a document joined by double lines, the cover dashed.

    Parameters
    ----------
    transformed : TransformedSet, optional
        The pairs to draw; the toy example of the paper when left out.
    """
    pairs = toy_example() if transformed is None else transformed
    cover = document_cover(pairs.documents)
    n_columns = pairs.n_classes - 1
    n_documents = pairs.n_pairs // n_columns
    figure, axes = _canvas(1.75 * n_columns + 1.0, 0.95 * n_documents + 0.8)
    axes.set(xlim=(-0.85, n_columns - 0.5), ylim=(n_documents - 0.2, -1.0))
    for i in range(n_documents):
        _draw_clique(axes, i, n_columns)
        axes.text(-0.62, i, rf"$\mathbf{{x}}_{{{i + 1}}}$", ha="center", va="center", fontsize=12)
    for j in range(pairs.n_pairs):
        axes.plot(j % n_columns, j // n_columns, "o", ms=23, mfc="white", mec="black", zorder=3)
        axes.text(j % n_columns, j // n_columns, str(j + 1), ha="center", va="center", zorder=4)
    for k in range(len(cover.sets)):
        _rounded_box(axes, k - 0.27, -0.5, (0.54, n_documents + 0.2), "--", ORANGE, aspect=2.0)
        name = rf"$\mathcal{{C}}_{{{k + 1}}}$"
        axes.text(k, -0.8, name, color=ORANGE, ha="center", va="center", fontsize=13)
    return figure


def plot_consistency(result: ConsistencyResult) -> Figure:
    """Draw the experiment on log-log axes.

    The upper row shows R(h), α R̃ and both bounds along the three long-tailed sweeps; the lower row
    each term with the slope that was measured and, in brackets, the one that the theorem states;
    the last panel shows the gap between true and sampled risk for balanced classes.

    Parameters
    ----------
    result : ConsistencyResult
        As returned by ``run_consistency_experiment``.
    """
    figure = new_figure(15.0, 7.2)
    panels: Any = figure.subplots(2, 4)
    rates = measured_rates(result)
    for column, (sweep, against) in enumerate(
        (
            ("documents", "n_documents"),
            ("adversaries", "adversaries"),
            ("examples", "examples_per_class"),
        )
    ):
        _draw_risks(panels[0, column], result, sweep, against)
        _draw_terms(panels[1, column], result, [rate for rate in rates if rate.sweep == sweep])
    _draw_balanced_risks(panels[0, 3], result)
    _draw_terms(panels[1, 3], result, [rate for rate in rates if rate.sweep == "balanced"])
    return figure


def _canvas(inches: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure and its axes, which fill it and are not drawn."""
    figure = new_figure(inches, height, layout=None)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    return figure, axes


def _true_class(pairs: TransformedSet, document: int) -> int:
    """Return the class of a document: first in its pairs of label +1, second in those of -1."""
    j = int(np.flatnonzero(pairs.documents == document)[0])
    return int(pairs.classes[j, 0 if pairs.labels[j] > 0 else 1])


def _pair_text(pairs: TransformedSet, j: int) -> str:
    """Write one pair as in Figure 1."""
    i = pairs.documents[j] + 1
    first, second = pairs.classes[j] + 1
    images = r",\,".join(rf"\phi(\mathbf{{x}}_{{{i}}}^{{y_{{{c}}}}})" for c in (first, second))
    return rf"$(\mathbf{{z}}_{{{j + 1}}} = ({images}),\ {pairs.labels[j]:+d})$"


def _rounded_box(
    axes: Axes,
    x: float,
    y: float,
    size: tuple[float, float],
    linestyle: str = "-",
    color: str = "black",
    aspect: float = 1.0,
) -> None:
    """Draw a rectangle with round corners; ``aspect`` is the length of an x unit in y units."""
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (x, y), *size, boxstyle="round,pad=0,rounding_size=0.06",
        mutation_aspect=aspect, fill=False, linestyle=linestyle, edgecolor=color, linewidth=1.3,
    )  # fmt: skip
    axes.add_patch(box)


def _draw_clique(axes: Axes, row: int, n_columns: int) -> None:
    """Join all pairs of a document by blue double lines, arcs where a vertex is in between."""
    from matplotlib.patches import ConnectionStyle, FancyArrowPatch

    for a in range(n_columns):
        for b in range(a + 1, n_columns):
            bend = 0.0 if b == a + 1 else 0.3
            for line, colour in ((4.2, BLUE), (1.8, "white")):
                axes.add_patch(
                    FancyArrowPatch(
                        (a, row), (b, row), arrowstyle="-", linewidth=line, color=colour,
                        connectionstyle=ConnectionStyle.Arc3(rad=bend), shrinkA=0, shrinkB=0,
                    )
                )  # fmt: skip


def _draw_risks(axes: Axes, result: ConsistencyResult, sweep: str, against: str) -> None:
    """Draw R(h), α R̃ and the two bounds along a sweep."""
    x = result.means(sweep, against)
    lines = (
        ("total_2a", "bound, Theorem 2(a)", BLUE, "o-"),
        ("total_2b", "bound, Theorem 2(b)", ORANGE, "s-"),
        ("empirical", "α R̃", "#009E73", "^-"),
        ("true_risk", "true risk R", "black", "D-"),
    )
    for quantity, label, colour, style in lines:
        axes.loglog(x, result.means(sweep, quantity), style, color=colour, ms=4, label=label)
    axes.axhline(1.0, color=GREY, lw=0.8, ls=":")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.6)
    _label(axes, SWEEP_TITLES[sweep], AXIS_LABELS[against], x)
    axes.legend(fontsize=8, frameon=False, loc="upper right")


def _draw_balanced_risks(axes: Axes, result: ConsistencyResult) -> None:
    """Draw the two risks themselves for balanced classes."""
    x = result.means("balanced", "n_sampled")
    for quantity, label, colour in (
        ("true_risk", "true risk R", "black"),
        ("sampled_risk", "sampled risk R̃", "#009E73"),
    ):
        groups = result.sweep("balanced")
        values = np.array([[getattr(run, quantity) for run in group] for group in groups])
        axes.plot(x, values.mean(axis=1), "o-", color=colour, ms=4, label=label)
        axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.15, lw=0)
    axes.set_xscale("log")
    _label(axes, "balanced classes: true and sampled risk", AXIS_LABELS["n_sampled"], x)
    axes.legend(fontsize=8, frameon=False, title="mean and range", title_fontsize=8)


def _draw_terms(axes: Axes, result: ConsistencyResult, rates: list[Rate]) -> None:
    """Draw each quantity with a stated rate, and its two slopes in the legend."""
    for rate, colour in zip(rates, COLOURS, strict=False):
        x = result.means(rate.sweep, rate.against)
        values = shrinking_values(result, rate.sweep, rate.quantity)
        label = f"{TERM_LABELS[rate.quantity]}: {rate.measured:.2f} ({rate.stated:g})"
        axes.loglog(x, values, "o-", color=colour, ms=4, label=label)
        guide = values[0] * (x / x[0]) ** rate.stated
        axes.loglog(x, guide, "--", color=colour, lw=0.9, alpha=0.6)
    if rates:
        ticks = result.means(rates[0].sweep, rates[0].against)
        _label(axes, SWEEP_TITLES[rates[0].sweep], AXIS_LABELS[rates[0].against], ticks)
        low, high = axes.get_ylim()
        axes.set_ylim(low * (low / high) ** (0.09 * (len(rates) + 1)), high)
        legend = axes.legend(fontsize=8, frameon=False, loc="lower left", title="slope (stated)")
        legend.get_title().set_fontsize(8)


def _label(axes: Axes, title: str, x_label: str, ticks: Any) -> None:
    """Set the title, the x label, and plain numbers where the runs are."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x_label)
    axes.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks], rotation=45, fontsize=8)
    axes.minorticks_off()
    axes.grid(alpha=0.25)
