"""A LabelSetEvaluation, several labels per document -> Findings."""

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
    from longtail.metrics.label_set_evaluation import LabelCertainty, LabelSetEvaluation

_FOOTER = """Measures of a ranking are means over the documents; PSP and PSnDCG weigh labels by the
inverse of their propensity (A = 0.55, B = 1.5). Calibration is over all labels whose probability is
above 0.01. Intervals are 95 % intervals over documents, those of macro F1 over classes: labels of
one document are found or missed together. They say nothing about documents of other kinds."""


def set_findings(result: LabelSetEvaluation) -> Findings:
    """Return what an evaluation of documents with several labels has to say."""
    from longtail.plotting import plot_calibration, plot_label_frequency, plot_label_precision

    sets, certainty = result.sets, result.certainty
    figures: dict[str, Any] = {"frequency": partial(plot_label_frequency, result.bands)}
    if certainty is not None and certainty.n_pairs:
        figures["precision"] = partial(plot_label_precision, certainty)
        figures["calibration"] = partial(plot_calibration, certainty)
    return Findings(
        headline=f"{share(sets.precision)} of the predicted labels right, "
        f"{share(sets.recall)} of the true ones found; "
        + describe_worst(result.classes, "missed labels"),
        sections=list(_sections(result)),
        sentences=list(_sentences(result)),
        figures=figures,
        captions=dict(_captions(result)),
        classes=result.classes,
        mistakes=result.mistakes,
        scale="score" if certainty is None else "probability",
        footer=_FOOTER,
        as_json=_as_json(result),
    )


def _sections(result: LabelSetEvaluation) -> Iterator[Section]:
    """Yield the results as tables."""
    sizes = (
        f"{count(result.n_documents, 'document')} with {count(result.n_labels, 'label')} of "
        f"{count(result.n_classes, 'class')}"
    )
    yield Section(sizes, ("measure", "value", "95 % interval"), list(_measures(result)))
    certainty = result.certainty
    if certainty is not None and certainty.choices:
        yield _choices(certainty)
    depths = list(next(iter(result.ranking.values())))
    yield Section(
        "The first k classes of the ranking",
        ("measure", *(f"k = {k}" for k in depths)),
        [
            (f"{name}@k", *(share(values[k]) for k in depths))
            for name, values in result.ranking.items()
        ],
        remark="F1@k is the mean of the documents' F1; F1 of means@k that of the mean P@k and R@k.",
    )
    yield Section(
        "By how many documents of the class the model has seen, first five classes",
        ("documents seen", "classes", "labels", "recall", "95 % interval", "precision", "macro F1"),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{band.n_labels:,}",
                *shares(band.recall, band.n_labels),
                *(share(value) for value in (band.precision, band.macro_f1)),
            )
            for band in result.bands
        ],
        "frequency",
    )
    if certainty is not None:
        yield calibration_section(certainty.bins, "probabilities of labels", "labels")


def _choices(certainty: LabelCertainty) -> Section:
    """Return what each precision costs: how many labels are no longer found."""
    return Section(
        "What each precision costs",
        (
            "precision asked for",
            "threshold",
            "precision reached",
            "true labels found",
            "documents with a label",
        ),
        [
            (
                f"{choice.wanted:.0%}",
                "none" if isnan(choice.threshold) else f"{choice.threshold:.3f}",
                share(choice.precision),
                share(choice.recall),
                share(choice.coverage),
            )
            for choice in certainty.choices
        ],
        "precision",
        "Labels below the threshold are left to people. The thresholds are the model's own, from "
        "documents held out in fit.",
    )


def _measures(result: LabelSetEvaluation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and interval of what has one value."""
    sets, intervals = result.sets, result.intervals
    for name, title in (
        ("mean_f1", "mean F1 of the documents' label sets"),
        ("micro_f1", "micro F1 of the label sets"),
        ("macro_f1", "macro F1, mean of the per-class F1"),
        ("precision", "precision of the predicted labels"),
        ("recall", "recall of the true labels"),
        ("exact", "documents whose set is exactly right"),
    ):
        yield title, share(getattr(sets, name)), spread(intervals.get(name))
    yield "labels predicted for a document", f"{sets.mean_size:.2f}", ""
    yield "labels that a document has", f"{result.n_labels / result.n_documents:.2f}", ""
    yield "R-precision", share(result.r_precision), spread(intervals.get("r_precision"))
    for name in ("P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5"):
        if name in intervals:
            measure, k = name.split("@")
            yield name, share(result.ranking[measure][int(k)]), spread(intervals[name])
    yield "labels of classes unknown to the model", f"{result.n_unknown:,}", ""
    certainty = result.certainty
    if certainty is None:
        return
    yield "calibration error of labels", f"{certainty.calibration_error:.3f}", ""
    if certainty.threshold is None:
        yield "threshold for that precision", "none is known", ""


def _sentences(result: LabelSetEvaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        yield (
            f"{count(result.n_unknown, 'label')} of classes that the model does not have: they "
            "count as missed in every measure."
        )


def _captions(result: LabelSetEvaluation) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield for each figure what it shows, and the same in words for whoever cannot see it."""
    said = "; ".join(
        f"{band.name} documents seen: recall {band.recall:.0%}, macro F1 {band.macro_f1:.0%}"
        for band in result.bands
        if band.n_labels
    )
    yield (
        "frequency",
        (
            "Recall and macro F1 among the first five classes by how many documents of the class "
            "the model has seen. Lines are 95 % intervals; pale bars have few labels.",
            f"Bar chart. {said}.",
        ),
    )
    if result.certainty is None:
        return
    groups = [group for group in result.certainty.bins if group.n_documents]
    said = "; ".join(f"{g.mean_probability:.2f}: {g.accuracy:.0%} correct" for g in groups)
    yield (
        "calibration",
        (
            "How often labels of a probability are correct. On the dashed line, "
            "probabilities are frequencies.",
            f"Line chart. {said}.",
        ),
    )
    yield (
        "precision",
        (
            "Precision against the share of true labels found and of documents that get a label, "
            "when only the surest labels are kept.",
            f"Line chart. Recall of the predicted sets: {result.sets.recall:.0%}.",
        ),
    )


def _as_json(result: LabelSetEvaluation) -> dict[str, Any]:
    """Return the results without the curve's every point, every class and every document."""
    value = asdict(replace(result, classes=[], mistakes=[]))
    del value["classes"], value["mistakes"], value["document_f1"]
    if value["certainty"] is not None:
        del value["certainty"]["curve"]
    return value
