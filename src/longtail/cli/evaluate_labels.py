"""An Evaluation, one label per document -> Findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

from longtail._words import count
from longtail.cli.findings import (
    Findings,
    Section,
    calibration_section,
    describe_worst,
    share,
    shares,
    spread,
)

if TYPE_CHECKING:
    from longtail.metrics.evaluation import Certainty, Evaluation

_FOOTER = """Intervals are 95 % intervals. For shares of documents (accuracy, top k, precision,
coverage) they are Wilson's; for macro F1, a mean over classes, the standard error of the per-class
F1 gives them; for the calibration error they are 90 % intervals of a bootstrap. They say how a
number would vary over other documents or classes of this kind, and nothing about other kinds."""


def label_findings(result: Evaluation) -> Findings:
    """Return what an evaluation of documents with one label each has to say."""
    from longtail.plotting import plot_calibration, plot_frequency, plot_precision

    figures: dict[str, Any] = {"frequency": partial(plot_frequency, result)}
    if result.certainty is not None:
        figures["precision"] = partial(plot_precision, result.certainty)
        figures["calibration"] = partial(plot_calibration, result.certainty)
    worst = describe_worst(result.classes, "mistakes")
    return Findings(
        headline=f"{share(result.accuracy)} right; {worst}",
        sections=list(_sections(result)),
        sentences=list(_sentences(result)),
        figures=figures,
        captions=dict(_captions(result)),
        classes=result.classes,
        mistakes=result.mistakes,
        scale="score" if result.certainty is None else "probability",
        footer=_FOOTER,
        as_json=_as_json(result),
    )


def _sections(result: Evaluation) -> Iterator[Section]:
    """Yield the results as tables."""
    certainty = result.certainty
    sizes = f"{count(result.n_documents, 'document')} of {count(result.n_classes, 'class')}"
    yield Section(sizes, ("measure", "value", "95 % interval"), list(_measures(result)))
    if certainty is not None and certainty.choices:
        yield _choices(certainty, result.n_documents)
    if result.confusions:
        yield Section(
            "Most confused classes",
            (
                "class",
                "other class",
                "taken for the other",
                "the other for it",
                "documents",
                "advice",
            ),
            [
                (
                    _name(pair.first),
                    _name(pair.second),
                    f"{pair.n_first_as_second:,} of {pair.n_first:,}",
                    f"{pair.n_second_as_first:,} of {pair.n_second:,}",
                    f"{pair.n_confused:,}",
                    "merge?" if pair.may_be_one else "",
                )
                for pair in result.confusions
            ],
            remark='"merge?" stands where each of the two is taken for the other in a quarter of '
            "its documents at least: they may be one class, or their labels are not kept apart.",
        )
    yield Section(
        "By how many documents of the class the model has seen",
        ("documents seen", "classes", "documents", "accuracy", "95 % interval", "macro F1"),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{band.n_documents:,}",
                *shares(band.accuracy, band.n_documents),
                share(band.macro_f1),
            )
            for band in result.bands
        ],
        "frequency",
    )
    if certainty is not None:
        yield calibration_section(certainty.bins, "probabilities", "documents")


def _choices(certainty: Certainty, n_documents: int) -> Section:
    """Return what each precision costs: how many documents are left to people."""
    rows = []
    for choice in certainty.choices:
        n_kept = round(choice.coverage * n_documents)
        rows.append(
            (
                f"{choice.wanted:.0%}",
                "none" if isnan(choice.threshold) else f"{choice.threshold:.3f}",
                f"{n_kept:,} ({choice.coverage:.1%})",
                f"{n_documents - n_kept:,}",
                *shares(choice.precision, n_kept),
            )
        )
    return Section(
        "What each precision costs",
        (
            "precision asked for",
            "threshold",
            "documents answered",
            "left to people",
            "precision reached",
            "95 % interval",
        ),
        rows,
        "precision",
        "Answers below the threshold, or less likely than none of these, are left to people. The "
        "thresholds are the model's own, from documents held out in fit.",
    )


def _measures(result: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of every measure."""
    from longtail.metrics import mean_interval

    n, n_known = result.n_documents, result.n_documents - result.n_unknown
    f1 = mean_interval([of_class.f1 for of_class in result.classes] or [0.0])
    yield "accuracy", *shares(result.accuracy, n)
    yield "accuracy on known classes", *shares(result.accuracy_known, n_known)
    yield "documents of classes unknown to the model", f"{result.n_unknown:,}", ""
    yield "macro F1, mean of the per-class F1", f"{result.macro_f1:.1%}", spread(f1)
    yield "macro F1, of mean precision and recall", f"{result.macro_f1_of_means:.1%}", ""
    for k, found in result.top.items():
        if k > 1:
            yield f"true class in the top {k}", *shares(found, n)
    certainty = result.certainty
    if certainty is None:
        return
    low, high = certainty.calibration_interval
    error = f"{certainty.calibration_error:.3f}"
    yield "calibration error", error, f"{low:.3f} to {high:.3f} (90 %)"
    if certainty.abstention is None:
        yield "threshold for that precision", "none is known", ""


def _sentences(result: Evaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        yield (
            f"{count(result.n_unknown, 'document')} of classes that the model does not have: they "
            "count as wrong in every measure but the accuracy on known classes."
        )
    yield from [] if result.certainty is None else result.certainty.remarks


def _captions(result: Evaluation) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield for each figure what it shows, and the same in words for whoever cannot see it."""
    from longtail.plotting import FEW_DOCUMENTS

    bands = [band for band in result.bands if band.n_documents]
    said = "; ".join(
        f"{band.name} documents seen: accuracy {band.accuracy:.0%}, macro F1 {band.macro_f1:.0%}"
        for band in bands
    )
    legend = f"Pale bars and hollow points stand for fewer than {FEW_DOCUMENTS} documents."
    yield (
        "frequency",
        (
            "Accuracy and macro F1 by how many documents of the class the model has seen. Lines "
            f"are 95 % intervals. {legend}",
            f"Bar chart. {said}.",
        ),
    )
    certainty = result.certainty
    if certainty is None:
        return
    groups = [group for group in certainty.bins if group.n_documents]
    said = "; ".join(
        f"probability {group.mean_probability:.2f}: {group.accuracy:.0%} correct"
        for group in groups
    )
    yield (
        "calibration",
        (
            "How often predictions of a probability are correct. On the dashed line, "
            "probabilities are frequencies; above it the model is too cautious, below too sure. "
            f"{legend}",
            f"Line chart. {said}.",
        ),
    )
    yield (
        "precision",
        (
            "What is reached by keeping only the surest predictions. The band is the 95 % "
            "interval.",
            f"Line chart. All documents kept: {result.accuracy:.0%} correct.",
        ),
    )


def _name(label: Any) -> str:
    """Return a class as a table shows it; None stands for documents without a candidate."""
    return "(no candidate)" if label is None else str(label)


def _as_json(result: Evaluation) -> dict[str, Any]:
    """Return the results without the curve's every point, every class and every document."""
    value = asdict(replace(result, classes=[], mistakes=[]))
    del value["classes"], value["mistakes"], value["correct"]
    if value["certainty"] is not None:
        del value["certainty"]["curve"]
    return value
