"""Explanations and evaluations as figures.

The figure is returned; nothing is shown or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.metrics.evaluation import Certainty, Evaluation
from longtail.results import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and orange of Okabe and Ito, which stay apart for the colour-blind.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"

_LONGEST_NAME = 48  # characters of a class or term

_LONGEST_LINE = 80  # characters of both classes side by side


def new_figure(inches: float, height: float) -> Figure:
    """Return an empty figure of a size in inches that no window will show.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "drawing a figure needs the package matplotlib: pip install 'longtail[plot]'"
        ) from error
    return Figure(figsize=(inches, height), layout="constrained")


def plot_explanation(
    explanation: Explanation, runner_up: Explanation | None = None, n_terms: int = 12
) -> Figure:
    """Draw what terms and features add to the score of a class, beside another class.

    Parameters
    ----------
    explanation : Explanation
        Of the class in question, with at least `n_terms` terms.
    runner_up : Explanation, optional
        Of another class for the same document, such as the runner-up, with all of its terms.
    n_terms : int, default=12
        How many terms to draw; those that matter most to the difference.

    Returns
    -------
    matplotlib.figure.Figure
    """
    terms = rank_terms(explanation, runner_up)[:n_terms]
    features = list(explanation.features)
    height = 1.3 + 0.3 * (len(terms) + len(features))
    figure = new_figure(8.0, height)
    ratios = (max(len(terms), 1), len(features))
    above, below = figure.subplots(2, 1, height_ratios=ratios)
    both = [explanation] if runner_up is None else [explanation, runner_up]
    _draw_bars(above, terms, [side.terms for side in both], "terms")
    _draw_bars(below, features, [side.features for side in both], "features")
    below.set_xlabel("adds to the score")
    handles = above.containers
    names = [f"{_shorten(str(side.label))}: {side.score:.2f}" for side in both]
    columns = 2 if sum(map(len, names)) <= _LONGEST_LINE else 1
    figure.legend(handles, names, loc="outside upper left", ncols=columns, frameon=False)
    return figure


def rank_terms(explanation: Explanation, runner_up: Explanation | None) -> list[Any]:
    """Return the terms by what they add to the difference between both, largest first."""
    other = {} if runner_up is None else runner_up.terms
    difference = {
        term: explanation.terms.get(term, 0.0) - other.get(term, 0.0)
        for term in [*explanation.terms, *(t for t in other if t not in explanation.terms)]
    }
    return sorted(difference, key=lambda term: -abs(difference[term]))


def _draw_bars(
    axes: Axes, names: Sequence[Any], sides: Sequence[Mapping[Any, float]], title: str
) -> None:
    """Draw a group of bars for each name, the first on top."""
    height = 0.8 / len(sides)
    for side, (values, colour) in enumerate(zip(sides, (BLUE, ORANGE), strict=False)):
        heights = [i - 0.4 + height * (side + 0.5) for i in range(len(names))]
        axes.barh(heights, [values.get(name, 0.0) for name in names], height, color=colour)
    axes.set_yticks(range(len(names)), [_shorten(str(name)) for name in names])
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_title(title, loc="left", fontsize=10, color=GREY)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _shorten(name: str) -> str:
    """Shorten a name for a figure: no control characters, and a dollar starts no formula."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    short = shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"
    return short.replace("$", r"\$")


_MOST_POINTS = 1000  # of the precision curve; more would only swell an SVG

_FIRST_SHARE = 0.002  # below this share of the documents a precision is noise


def plot_calibration(certainty: Certainty) -> Figure:
    """Draw how often predictions of a probability are right, and how many there are of it."""
    figure = new_figure(5.0, 5.2)
    above, below = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    filled = [group for group in certainty.bins if group.n_documents]
    above.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="as it should be")
    above.plot(
        [group.mean_probability for group in filled],
        [group.accuracy for group in filled],
        "o-",
        color=BLUE,
        label=f"measured (calibration error {certainty.calibration_error:.3f})",
    )
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share correct")
    above.legend(frameon=False, loc="upper left")
    middles = [(group.lowest + group.highest) / 2 for group in certainty.bins]
    bar_size = 0.9 / len(certainty.bins)
    below.bar(middles, [group.n_documents for group in certainty.bins], bar_size, color=BLUE)
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
        caption = (
            f"With a probability of at least {abstention.threshold:.2f},\n"
            f"{abstention.precision:.1%} correct, {abstention.coverage:.1%} of the documents."
        )
        axes.text(0.03, 0.05, caption, transform=axes.transAxes, color=ORANGE)
        axes.axhline(abstention.wanted, color=GREY, linewidth=1, linestyle="--")
    lowest = min(precision.min(), abstention.wanted if abstention else 1.0)
    axes.set(xlim=(0, 1), ylim=(max(0.0, lowest - 0.15), 1.01))
    axes.set(xlabel="coverage: share of documents kept", ylabel="precision: share correct of these")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    _clear_frame(axes)
    return figure


def plot_frequency(evaluation: Evaluation) -> Figure:
    """Draw accuracy and macro F1 by how many documents of a class the model has seen."""
    figure = new_figure(7.0, 4.0)
    axes = figure.subplots()
    bands = evaluation.bands
    positions = np.arange(len(bands))
    series = (
        (-0.2, [band.accuracy for band in bands], BLUE, "accuracy"),
        (0.2, [band.macro_f1 for band in bands], ORANGE, "macro F1"),
    )
    for offset, values, colour, name in series:
        bars = axes.bar(positions + offset, np.nan_to_num(values), 0.38, color=colour, label=name)
        labels = ["" if np.isnan(value) else f"{value:.0%}" for value in values]
        axes.bar_label(bars, labels, fontsize=8, padding=2)
    axes.set_xticks(
        positions, [f"{band.name}\n({band.n_documents:,} evaluated)" for band in bands], fontsize=8
    )
    axes.set(xlabel="documents of the class that the model has seen", ylim=(0, 1.15))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False, loc="upper left", ncols=2)
    _clear_frame(axes)
    return figure


def _clear_frame(*many: Axes) -> None:
    """Take the upper and right line off."""
    for axes in many:
        axes.spines[["top", "right"]].set_visible(False)
