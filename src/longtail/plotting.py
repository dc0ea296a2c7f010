"""Explanations and evaluations as figures.

The figure is returned; nothing is shown or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._optional import import_optional
from longtail.metrics import FREQUENCY_BANDS, mean_interval, wilson_interval
from longtail.metrics.classes import FrequencyBand
from longtail.metrics.evaluation import Certainty, Evaluation
from longtail.metrics.label_sets import LabelBand, LabelCurve
from longtail.results import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and orange of Okabe and Ito, which stay apart for the colour-blind.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"

_LONGEST_NAME = 48  # characters of a class or term

_LONGEST_LINE = 80  # characters of both classes side by side


def new_figure(inches: float, height: float, layout: Any = "constrained") -> Figure:
    """Return an empty figure of a size in inches that no window will show.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    module = import_optional("matplotlib.figure", "drawing a figure", "'longtail[plot]'")
    figure: Figure = module.Figure(figsize=(inches, height), layout=layout)
    return figure


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
    """
    terms = rank_terms(explanation, runner_up)[:n_terms]
    features = [name for name, _ in explanation.feature_lines()]
    height = 1.3 + 0.3 * (len(terms) + len(features))
    figure = new_figure(8.0, height)
    ratios = (max(len(terms), 1), len(features))
    above, below = figure.subplots(2, 1, height_ratios=ratios)
    both = [explanation] if runner_up is None else [explanation, runner_up]
    _draw_bars(above, terms, [side.terms for side in both], "terms")
    _draw_bars(below, features, [dict(side.feature_lines()) for side in both], "features")
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


_MAX_POINTS = 1000  # of the precision curve; more would only swell an SVG

_FIRST_SHARE = 0.002  # below this share of the documents a precision is noise

_BAND_NAMES = {"more": "more than 100"}

# A bin with fewer documents is drawn as such: with thirty, the interval of a share of one half
# reaches 17 points to each side.
FEW_DOCUMENTS = 30


def plot_calibration(certainty: Certainty) -> Figure:
    """Draw how often predictions of a probability are correct, and how many there are of it.

    Lines are 95 % intervals (Wilson); hollow points have few documents.
    """
    figure = new_figure(6.0, 5.2)
    above, below = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    filled = [group for group in certainty.bins if group.n_documents]
    above.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="as it should be")
    x = [group.mean_probability for group in filled]
    y = [group.accuracy for group in filled]
    measured = f"measured (calibration error {certainty.calibration_error:.3f})"
    above.plot(x, y, "-", color=BLUE, marker="o", markersize=0, label=measured)
    for group in filled:
        is_small = group.n_documents < FEW_DOCUMENTS
        low, high = wilson_interval(group.accuracy, group.n_documents)
        x = [group.mean_probability] * 2
        above.plot(x, [low, high], "-", color=BLUE, linewidth=1, alpha=0.4 if is_small else 0.9)
        face = "none" if is_small else BLUE
        above.plot(x[0], group.accuracy, "o", markeredgecolor=BLUE, markerfacecolor=face)
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share correct")
    above.legend(frameon=False, loc="upper left")
    middles = [(group.lowest + group.highest) / 2 for group in certainty.bins]
    bar_size = 0.9 / len(certainty.bins)
    sizes = [group.n_documents for group in certainty.bins]
    bars = below.bar(middles, sizes, bar_size, color=BLUE)
    below.bar_label(bars, [f"{size:,}" if size else "" for size in sizes], fontsize=7, padding=1)
    sets = isinstance(certainty.curve, LabelCurve)
    below.set(xlabel=f"probability of {'a label' if sets else 'the predicted class'}")
    below.set(ylabel="labels" if sets else "documents")
    below.set_ylim(0, max(sizes) * 1.25)
    _clear_frame(above, below)
    return figure


def plot_precision(certainty: Certainty) -> Figure:
    """Draw the precision that is reached when only the surest predictions are kept.

    Of one label the band is the 95 % interval (Wilson); of label sets precision stands against the
    share of true labels found as well.
    """
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    curve, abstention = certainty.curve, certainty.abstention
    kept = np.flatnonzero(curve.coverage >= _FIRST_SHARE)
    kept = kept[np.linspace(0, len(kept) - 1, min(len(kept), _MAX_POINTS)).astype(int)]
    coverage, precision = curve.coverage[kept], curve.precision[kept]
    is_drawn = abstention is not None and abstention.coverage > 0
    if isinstance(curve, LabelCurve):
        axes.plot(curve.recall[kept], precision, color=BLUE, label="true labels found")
        axes.plot(coverage, precision, color=ORANGE, label="documents with a label")
        if abstention is not None and is_drawn:
            axes.plot(abstention.recall, abstention.precision, "o", color=BLUE)
        axes.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="share", ylabel="precision of the kept labels")
        axes.legend(frameon=False, loc="lower left")
    else:
        counts = np.rint(coverage * certainty.n_pairs).astype(int).tolist()
        bounds = np.array([wilson_interval(p, n) for p, n in zip(precision, counts, strict=True)])
        axes.fill_between(coverage, bounds[:, 0], bounds[:, 1], color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(coverage, precision, color=BLUE)
        lowest = min(precision.min(), abstention.wanted if abstention else 1.0)
        axes.set(xlim=(0, 1), ylim=(max(0.0, lowest - 0.15), 1.01))
        axes.set(xlabel="coverage: share of documents kept")
        axes.set(ylabel="precision: share correct of these")
        if abstention is not None and is_drawn:
            caption = (
                f"With a probability of at least {abstention.threshold:.2f}:\n"
                f"{abstention.precision:.1%} correct, {abstention.coverage:.1%} of the documents"
            )
            axes.text(0.03, 0.05, caption, transform=axes.transAxes, color=ORANGE)
    if abstention is not None and is_drawn:
        axes.plot(abstention.coverage, abstention.precision, "o", color=ORANGE)
        axes.axhline(abstention.wanted, color=GREY, linewidth=1, linestyle="--")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    _clear_frame(axes)
    return figure


def plot_frequency(evaluation: Evaluation) -> Figure:
    """Draw accuracy and macro F1 by how many documents of a class the model has seen.

    Of label sets, recall and macro F1 of the first five classes. Lines are 95 % intervals; pale
    bars have few documents, or labels.
    """
    figure = new_figure(7.5 if evaluation.multilabel else 7.0, 4.2)
    axes = figure.subplots()
    names = []
    bands: list[FrequencyBand | LabelBand] = [*evaluation.bands]
    for position, band in enumerate(bands):
        if isinstance(band, LabelBand):
            n, counted, value, f1_bounds = band.n_labels, "labels", band.recall, None
        else:
            n, counted, value = band.n_documents, "documents", band.accuracy
            f1_bounds = _bound_f1(evaluation, band.name, band.macro_f1)
        names.append(
            f"{_BAND_NAMES.get(band.name, band.name)}\n"
            f"classes: {band.n_classes:,}\n{counted}: {n:,}"
        )
        if not n:
            continue
        pale = 0.35 if n < FEW_DOCUMENTS else 1.0
        for x, height, bounds, colour in (
            (position - 0.2, value, wilson_interval(value, n), BLUE),
            (position + 0.2, band.macro_f1, f1_bounds, ORANGE),
        ):
            axes.bar(x, height, 0.38, color=colour, alpha=pale)
            if bounds is not None:
                axes.plot([x, x], bounds, color="black", linewidth=1)
            top = height if bounds is None else bounds[1]
            axes.text(x, top + 0.015, f"{height:.0%}", ha="center", fontsize=8)
    at = " at 5" if evaluation.multilabel else ""
    measure = "recall" if evaluation.multilabel else "accuracy"
    _label_bands(axes, names, f"{measure}{at}", f"macro F1{at} (mean of the per-class F1)")
    return figure


def _bound_f1(evaluation: Evaluation, band: str, macro_f1: float) -> tuple[float, float]:
    """Return the 95 % interval of the macro F1 of a band of classes."""
    sizes = {name: (smallest, largest) for name, smallest, largest in FREQUENCY_BANDS}
    smallest, largest = sizes.get(band, (0, None))
    f1 = [
        result.f1
        for result in evaluation.classes
        if result.n_true and smallest <= result.n_seen <= (largest or np.inf)
    ]
    return mean_interval(f1 or [macro_f1])


def _label_bands(axes: Axes, names: list[str], blue: str, orange: str) -> None:
    """Name the bands below their bars, and say what the two colours stand for."""
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set(xlabel="documents of the class that the model has seen", ylim=(0, 1.2))
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.bar(0, 0, color=BLUE, label=blue)
    axes.bar(0, 0, color=ORANGE, label=orange)
    axes.legend(frameon=False, loc="upper left", ncols=2)
    _clear_frame(axes)


def _clear_frame(*many: Axes) -> None:
    """Take the upper and right line off."""
    for axes in many:
        axes.spines[["top", "right"]].set_visible(False)
