"""An explanation, or two side by side -> a figure.

The figure is returned; nothing is shown or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longtail.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and orange of Okabe and Ito, which stay apart for the colour-blind.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
_LONGEST_NAME = 48  # characters of a class or term
_LONGEST_LINE = 80  # characters of both classes side by side


def new_figure(width: float, height: float) -> Figure:
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
    return Figure(figsize=(width, height), layout="constrained")


def plot_explanation(
    explanation: Explanation, rival: Explanation | None = None, n_terms: int = 12
) -> Figure:
    """Draw what terms and features add to the score of a class, beside another class.

    Parameters
    ----------
    explanation : Explanation
        Of the class in question, with at least `n_terms` terms.
    rival : Explanation, optional
        Of another class for the same document, such as the runner-up, with all of its terms.
    n_terms : int, default=12
        How many terms to draw; those that matter most to the difference.

    Returns
    -------
    matplotlib.figure.Figure
    """
    terms = rank_terms(explanation, rival)[:n_terms]
    features = list(explanation.features)
    height = 1.3 + 0.3 * (len(terms) + len(features))
    figure = new_figure(8.0, height)
    ratios = (max(len(terms), 1), len(features))
    above, below = figure.subplots(2, 1, height_ratios=ratios)
    both = [explanation] if rival is None else [explanation, rival]
    _draw_bars(above, terms, [part.terms for part in both], "terms")
    _draw_bars(below, features, [part.features for part in both], "features")
    below.set_xlabel("adds to the score")
    handles = above.containers
    names = [f"{_shorten(str(part.label))}: {part.score:.2f}" for part in both]
    columns = 2 if sum(map(len, names)) <= _LONGEST_LINE else 1
    figure.legend(handles, names, loc="outside upper left", ncols=columns, frameon=False)
    return figure


def rank_terms(explanation: Explanation, rival: Explanation | None) -> list[Any]:
    """Return the terms by what they add to the difference between both, largest first."""
    other = {} if rival is None else rival.terms
    difference = {
        term: explanation.terms.get(term, 0.0) - other.get(term, 0.0)
        for term in [*explanation.terms, *(t for t in other if t not in explanation.terms)]
    }
    return sorted(difference, key=lambda term: -abs(difference[term]))


def _draw_bars(
    axes: Axes, names: Sequence[Any], parts: Sequence[Mapping[Any, float]], title: str
) -> None:
    """Draw a group of bars for each name, the first on top."""
    height = 0.8 / len(parts)
    for number, (part, colour) in enumerate(zip(parts, (BLUE, ORANGE), strict=False)):
        places = [i - 0.4 + height * (number + 0.5) for i in range(len(names))]
        axes.barh(places, [part.get(name, 0.0) for name in names], height, color=colour)
    axes.set_yticks(range(len(names)), [_shorten(str(name)) for name in names])
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_title(title, loc="left", fontsize=10, color=GREY)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _shorten(name: str) -> str:
    """Cut a long name; a dollar sign would start a formula."""
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return cut.replace("$", r"\$")
