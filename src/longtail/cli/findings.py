"""An Evaluation -> Findings: what it has to say, for the terminal and the report alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

from longtail._constants import MEASURES
from longtail._words import count

if TYPE_CHECKING:
    from longtail.metrics import ClassResult, HierarchicalScores, PairedDifference
    from longtail.metrics.evaluation import Abstention, Certainty, Evaluation
    from longtail.metrics.mistakes import Mistake

_N_WORST = 3  # classes that the headline names the share of
_SPREAD = 0.1  # of the mistakes: where the worst classes make less, it is not about them

_FOOTER = """Intervals are 95 % intervals. For shares of documents (accuracy, top k, precision,
coverage) they are Wilson's; for macro F1, a mean over classes, the standard error of the per-class
F1 gives them; for the calibration error they are 90 % intervals of a bootstrap. They say how a
number would vary over other documents or classes of this kind, and nothing about other kinds."""
_SETS_FOOTER = """Measures of a ranking are means over the documents; PSP and PSnDCG weigh labels by
the inverse of their propensity (A = 0.55, B = 1.5). Calibration is over all labels whose
probability is above 0.01; its interval is a 90 % interval of a bootstrap over documents. Other
intervals are 95 % intervals over documents, those of macro F1 over classes: labels of one document
are found or missed together. They say nothing about documents of other kinds."""


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
    """The findings of an evaluation."""

    headline: str  # the one sentence to remember
    sections: list[Section]  # all measures first, then what to act on
    sentences: list[str]  # what must be known before the numbers are used
    figures: Mapping[str, Any]  # what draws each figure
    # The caption of each figure, and its description for screen readers.
    captions: Mapping[str, tuple[str, str]]
    classes: Sequence[ClassResult]  # every class
    mistakes: Sequence[Mistake]  # wrong and sure of it
    scale: str  # what `certainty` of a mistake is: a probability or a score
    footer: str  # how the intervals were made


def find(result: Evaluation) -> Findings:
    """Return what an evaluation has to say."""
    from longtail.plotting import plot_calibration, plot_frequency, plot_precision

    certainty, sets = result.certainty, result.sets
    figures: dict[str, Any] = {"frequency": partial(plot_frequency, result)}
    if certainty is not None and certainty.n_pairs:
        figures["precision"] = partial(plot_precision, certainty)
        figures["calibration"] = partial(plot_calibration, certainty)
    headline = f"{share(result.accuracy)} right"
    if result.multilabel:
        headline = (
            f"{share(sets.precision)} of the predicted labels right, "
            f"{share(sets.recall)} of the true ones found"
        )
    mistakes = "missed labels" if result.multilabel else "mistakes"
    return Findings(
        headline=f"{headline}; {describe_worst(result.classes, mistakes)}",
        sections=list(_sections(result)),
        sentences=list(_sentences(result)),
        figures=figures,
        captions=dict(_captions(result)),
        classes=result.classes,
        mistakes=result.mistakes,
        scale="score" if certainty is None else "probability",
        footer=_SETS_FOOTER if result.multilabel else _FOOTER,
    )


def _hierarchy_section(scores: HierarchicalScores) -> Section:
    """Return how far the answers are from the right ones."""
    rows = [
        ("hierarchical precision", share(scores.precision)),
        ("hierarchical recall", share(scores.recall)),
        ("hierarchical F1", share(scores.f1)),
    ]
    if not isnan(scores.distance):
        rows += [("LCA-F1", share(scores.lca_f1)), ("distance", f"{scores.distance:.2f} edges")]
    rows += [
        (f"right at depth {depth}", f"{share(found)} of {count(n, 'document')}")
        for depth, (found, n) in scores.levels.items()
    ]
    return Section("By the hierarchy", ("measure", "value"), rows)


def _sections(result: Evaluation) -> Iterator[Section]:
    """Yield the results as tables."""
    labels = f" with {count(result.n_labels, 'label')}" if result.multilabel else ""
    sizes = f"{count(result.n_documents, 'document')}{labels} of {count(result.n_classes, 'class')}"
    rows = _set_measures(result) if result.multilabel else _label_measures(result)
    header = ("measure", "value", "95 % interval")
    yield Section(sizes, header, [*rows, *_certainty_measures(result)])
    if result.hierarchical is not None:
        yield _hierarchy_section(result.hierarchical)
    certainty = result.certainty
    if certainty is not None and certainty.choices:
        yield _choices(certainty, result)
    if result.multilabel:
        yield _ranking_section(result)
    if result.confusions:
        yield _confusion_section(result)
    yield _band_section(result)
    if certainty is not None:
        yield _calibration_section(certainty, result.multilabel)


def _label_measures(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of the measures of one label."""
    n, n_known = result.n_documents, result.n_documents - result.n_unknown
    yield "accuracy", *shares(result.accuracy, n)
    yield "accuracy on known classes", *shares(result.accuracy_known, n_known)
    yield "documents of classes unknown to the model", f"{result.n_unknown:,}", ""
    interval = spread(result.intervals["macro_f1"])
    yield "macro F1, mean of the per-class F1", share(result.macro_f1), interval
    yield "macro F1, of mean precision and recall", share(result.macro_f1_of_means), ""
    for k, found in result.top.items():
        if k > 1:
            yield f"true class in the top {k}", *shares(found, n)


def _set_measures(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of the measures of label sets."""
    for name, value in result.measures.items():
        if name in result.intervals:
            yield MEASURES[name], share(value), spread(result.intervals[name])
    yield "labels predicted for a document", f"{result.sets.mean_size:.2f}", ""
    yield "labels that a document has", f"{result.n_labels / result.n_documents:.2f}", ""
    yield "labels of classes unknown to the model", f"{result.n_unknown:,}", ""


def _certainty_measures(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of what is measured of probabilities."""
    certainty = result.certainty
    if certainty is None:
        return
    low, high = certainty.calibration_interval
    yield (
        f"calibration error{' of labels' if result.multilabel else ''}",
        f"{certainty.calibration_error:.3f}",
        "" if isnan(low) else f"{low:.3f} to {high:.3f} (90 %)",
    )
    if certainty.abstention is None:
        yield "threshold for that precision", "none is known", ""


def _choices(certainty: Certainty, result: Evaluation) -> Section:
    """Return what each precision costs: how many answers are left to people."""
    header: tuple[str, ...]
    if result.multilabel:
        header = ("precision reached", "true labels found", "documents with a label")
        remark = "Labels below the threshold are left to people."
    else:
        header = ("documents answered", "left to people", "precision reached", "95 % interval")
        remark = (
            "Answers below the threshold, or less likely than none of these, are left to people."
        )

    def cells(choice: Abstention) -> tuple[str, ...]:
        if result.multilabel:
            return share(choice.precision), share(choice.recall), share(choice.coverage)
        n_kept = round(choice.coverage * result.n_documents)
        kept = f"{n_kept:,} ({choice.coverage:.1%})", f"{result.n_documents - n_kept:,}"
        return *kept, *shares(choice.precision, n_kept)

    return Section(
        "What each precision costs",
        ("precision asked for", "threshold", *header),
        [
            (
                f"{choice.wanted:.0%}",
                "none" if isnan(choice.threshold) else f"{choice.threshold:.3f}",
                *cells(choice),
            )
            for choice in certainty.choices
        ],
        "precision",
        f"{remark} The thresholds are the model's own, from documents held out in fit.",
    )


def _ranking_section(result: Evaluation) -> Section:
    """Return the measures of the first k classes."""
    depths = list(next(iter(result.ranking.values())))
    return Section(
        "The first k classes of the ranking",
        ("measure", *(f"k = {k}" for k in depths)),
        [
            (f"{name}@k", *(share(values[k]) for k in depths))
            for name, values in result.ranking.items()
        ],
        remark="F1@k is the mean of the documents' F1; F1 of means@k that of the mean P@k and R@k.",
    )


def _confusion_section(result: Evaluation) -> Section:
    """Return the classes that are taken for each other."""
    means = (
        "Taken for another: missed in a document that was given the other one wrongly. "
        if result.multilabel
        else ""
    )
    return Section(
        "Most confused classes",
        ("class", "other class", "taken for the other", "the other for it", "documents", "advice"),
        [
            (
                # None stands for documents without a candidate.
                *(
                    "(no candidate)" if label is None else str(label)
                    for label in (pair.first, pair.second)
                ),
                f"{pair.n_first_as_second:,} of {pair.n_first:,}",
                f"{pair.n_second_as_first:,} of {pair.n_second:,}",
                f"{pair.n_confused:,}",
                "merge?" if pair.may_be_one else "",
            )
            for pair in result.confusions
        ],
        remark=f'{means}"merge?" stands where each of the two is taken for the other in a quarter '
        "of its documents at least: they may be one class, or their labels are not kept apart.",
    )


def _band_section(result: Evaluation) -> Section:
    """Return the results by class frequency."""
    title = "By how many documents of the class the model has seen"
    ends: tuple[str, ...] = ("macro F1",)
    if result.multilabel:
        title += ", first five classes"
        ends = ("precision", "macro F1")
    counted, measure = _band_measure(result)
    return Section(
        title,
        ("documents seen", "classes", counted, measure, "95 % interval", *ends),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{getattr(band, f'n_{counted}'):,}",
                *shares(getattr(band, measure), getattr(band, f"n_{counted}")),
                *(share(getattr(band, name.lower().replace(" ", "_"))) for name in ends),
            )
            for band in result.bands
        ],
        "frequency",
    )


def _band_measure(result: Evaluation) -> tuple[str, str]:
    """Return what a band of classes counts, and what is measured of it."""
    return ("labels", "recall") if result.multilabel else ("documents", "accuracy")


def _calibration_section(certainty: Certainty, multilabel: bool) -> Section:
    """Return how often probabilities were correct, group by group."""
    of_labels = " of labels" if multilabel else ""
    return Section(
        f"Calibration: probabilities{of_labels} and how often they were correct",
        (
            "probability",
            "labels" if multilabel else "documents",
            "on average",
            "correct",
            "95 % interval",
        ),
        [
            (
                f"{group.lowest:.1f} to {group.highest:.1f}",
                f"{group.n_documents:,}",
                share(group.mean_probability),
                *shares(group.accuracy, group.n_documents),
            )
            for group in certainty.bins
        ],
        "calibration",
    )


def _sentences(result: Evaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        noun, end = "document", "wrong in every measure but the accuracy on known classes"
        if result.multilabel:
            noun, end = "label", "missed in every measure"
        yield (
            f"{count(result.n_unknown, noun)} of classes that the model does not have: they count "
            f"as {end}."
        )
    yield from [] if result.certainty is None else result.certainty.remarks


def _captions(result: Evaluation) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the caption of each figure, and its description for screen readers."""
    from longtail.plotting import FEW_DOCUMENTS

    counted, measure = _band_measure(result)
    said = "; ".join(
        f"{band.name} documents seen: {measure} {getattr(band, measure):.0%}, "
        f"macro F1 {band.macro_f1:.0%}"
        for band in result.bands
        if getattr(band, f"n_{counted}")
    )
    legend = f"Pale bars and hollow points stand for fewer than {FEW_DOCUMENTS} {counted}."
    of_first = " among the first five classes" if result.multilabel else ""
    yield (
        "frequency",
        (
            f"{measure.capitalize()} and macro F1{of_first} by how many documents of the class the "
            f"model has seen. Lines are 95 % intervals. {legend}",
            f"Bar chart. {said}.",
        ),
    )
    certainty = result.certainty
    if certainty is None:
        return
    said = "; ".join(
        f"probability {group.mean_probability:.2f}: {group.accuracy:.0%} correct"
        for group in certainty.bins
        if group.n_documents
    )
    yield (
        "calibration",
        (
            f"How often {'labels' if result.multilabel else 'predictions'} of a probability are "
            "correct. On the dashed line, probabilities are frequencies; above it the model is too "
            f"cautious, below too sure. {legend}",
            f"Line chart. {said}.",
        ),
    )
    shown = (
        "What is reached by keeping only the surest predictions. The band is the 95 % interval.",
        f"Line chart. All documents kept: {result.accuracy:.0%} correct.",
    )
    if result.multilabel:
        shown = (
            "Precision against the share of true labels found and of documents that get a label, "
            "when only the surest labels are kept.",
            f"Line chart. Recall of the predicted sets: {result.sets.recall:.0%}.",
        )
    yield "precision", shown


def describe_worst(classes: Iterable[ClassResult], mistakes: str) -> str:
    """Say where the mistakes are: in a few classes, or everywhere; empty without mistakes."""
    missed = sorted(c.n_true - c.n_correct for c in classes if c.n_true > c.n_correct)
    if not missed:
        return f"no {mistakes}"
    if len(missed) <= _N_WORST:
        verb = "has" if len(missed) == 1 else "have"
        return f"{count(len(missed), 'class')} {verb} all {mistakes}"
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
