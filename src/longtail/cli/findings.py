"""Findings: what an evaluation has to say, for the terminal, the report and JSON alike.

One label per document or several: `evaluate_labels` and `evaluate_sets` make these of their
results, and everything after them is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longtail._words import count

if TYPE_CHECKING:
    from longtail.metrics import ClassResult, PairedDifference
    from longtail.metrics.calibration import ReliabilityBin
    from longtail.metrics.mistakes import Mistake

_N_WORST = 3  # classes that the headline names the share of
_SPREAD = 0.1  # of the mistakes: where the worst classes make less, it is not about them


@dataclass(frozen=True)
class Section:
    """A table under its title; the report puts a figure beside it and a remark above it."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    figure: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Findings:
    """What an evaluation has to say.

    Attributes
    ----------
    headline : str
        The one sentence to remember.
    sections : list of Section
        All measures first, then what to act on.
    sentences : list of str
        What must be known before the numbers are used.
    figures : mapping of str to callable
        What draws each figure.
    captions : mapping of str to tuple of two str
        What each figure shows, and the same for whoever cannot see it.
    classes : list of ClassResult
        Every class.
    mistakes : list of Mistake
        Wrong and sure of it.
    scale : str
        What `certainty` of a mistake is: a probability or a score.
    footer : str
        How the intervals were made.
    as_json : dict
        All of it but the long lists.
    """

    headline: str
    sections: list[Section]
    sentences: list[str]
    figures: Mapping[str, Any]
    captions: Mapping[str, tuple[str, str]]
    classes: Sequence[ClassResult]
    mistakes: Sequence[Mistake]
    scale: str
    footer: str
    as_json: dict[str, Any] = field(default_factory=dict)


def describe_worst(classes: Iterable[ClassResult], mistakes: str) -> str:
    """Say where the mistakes are: in a few classes, or everywhere; empty without mistakes."""
    missed = sorted(c.n_true - c.n_correct for c in classes if c.n_true > c.n_correct)
    if not missed:
        return f"no {mistakes}"
    if len(missed) <= _N_WORST:
        return f"{count(len(missed), 'class')} have all {mistakes}"
    share = sum(missed[-_N_WORST:]) / sum(missed)
    if share < _SPREAD:
        return f"the {mistakes} are spread over {len(missed):,} classes"
    return f"three classes make {share:.0%} of the {mistakes}"


def share(value: float) -> str:
    """Return a share, or a dash where there is none."""
    return "-" if value != value else f"{value:.1%}"


def spread(interval: tuple[float, float] | None) -> str:
    """Return an interval of shares, or nothing."""
    return "" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def shares(value: float, n: int) -> tuple[str, str]:
    """Return a share of n documents and its interval, or dashes where there is none."""
    from longtail.metrics import wilson_interval

    return (share(value), spread(wilson_interval(value, n))) if value == value else ("-", "-")


def calibration_section(bins: Iterable[ReliabilityBin], what: str, counted: str) -> Section:
    """Return how often probabilities were correct, group by group."""
    return Section(
        f"Calibration: {what} and how often they were correct",
        ("probability", counted, "on average", "correct", "95 % interval"),
        [
            (
                f"{group.lowest:.1f} to {group.highest:.1f}",
                f"{group.n_documents:,}",
                share(group.mean_probability),
                *shares(group.accuracy, group.n_documents),
            )
            for group in bins
        ],
        "calibration",
    )


def describe_difference(found: PairedDifference, noun: str) -> str:
    """Say whether one model is better than the other."""
    if not found.n_better + found.n_worse:
        return f"Both models fare the same on every {noun}."
    which = "better" if found.difference > 0 else "worse"
    verdict = (
        f"This model is {which}; that is more than chance."
        if found.is_clear
        else "The difference may be chance."
    )
    return (
        f"{verdict} It is better on {count(found.n_better, noun)} and worse on "
        f"{found.n_worse:,} (p = {found.p_value:.2g})."
    )


def compare_rows(
    measures: Mapping[str, PairedDifference],
) -> tuple[tuple[str, ...], Sequence[Sequence[str]]]:
    """Return header and rows of two models side by side."""
    header = ("measure", "this model", "other", "difference", "95 % interval", "p")
    rows = [
        (
            name,
            share(found.value),
            share(found.other),
            f"{100 * found.difference:+.1f} points",
            f"{100 * found.interval[0]:+.1f} to {100 * found.interval[1]:+.1f}",
            f"{found.p_value:.2g}",
        )
        for name, found in measures.items()
    ]
    return header, rows
