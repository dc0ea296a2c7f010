"""A LabelSetEvaluation -> tables, sentences, figures and cards of a report page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from longtail._words import count

if TYPE_CHECKING:
    from longtail.metrics.label_set_evaluation import LabelSetEvaluation

_FOOTER = """Measures of a ranking are means over the documents; PSP and PSnDCG weigh labels by the
inverse of their propensity (A = 0.55, B = 1.5). Calibration is over all labels whose probability is
above 0.01."""


def set_tables(result: LabelSetEvaluation) -> Iterator[tuple[str, tuple[str, ...], list[Any]]]:
    """Yield the results as tables."""
    sizes = (
        f"{count(result.n_documents, 'document')} with {count(result.n_labels, 'label')} of "
        f"{count(result.n_classes, 'class')}"
    )
    yield sizes, ("measure", "value"), list(_measures(result))
    depths = list(next(iter(result.ranking.values())))
    yield (
        "The first k classes of the ranking",
        ("measure", *(f"k = {k}" for k in depths)),
        [
            (f"{name}@k", *(_share(values[k]) for k in depths))
            for name, values in result.ranking.items()
        ],
    )
    yield (
        "By how many documents of the class the model has seen, first five classes",
        ("documents seen", "classes", "labels", "recall", "precision", "macro F1"),
        [
            (
                band.name,
                f"{band.n_classes:,}",
                f"{band.n_labels:,}",
                *(_share(value) for value in (band.recall, band.precision, band.macro_f1)),
            )
            for band in result.bands
        ],
    )
    if result.certainty is not None:
        yield (
            "Calibration: probabilities of labels and how often they were correct",
            ("probability", "labels", "on average", "correct"),
            [
                (
                    f"{group.lowest:.1f} to {group.highest:.1f}",
                    f"{group.n_documents:,}",
                    _share(group.mean_probability),
                    _share(group.accuracy),
                )
                for group in result.certainty.bins
            ],
        )


def _measures(result: LabelSetEvaluation) -> Iterator[tuple[str, str]]:
    """Yield name and value of what has one value."""
    sets = result.sets
    yield "mean F1 of the documents' label sets", _share(sets.mean_f1)
    yield "micro F1 of the label sets", _share(sets.micro_f1)
    yield "macro F1, mean of the per-class F1", _share(sets.macro_f1)
    yield "precision of the predicted labels", _share(sets.precision)
    yield "recall of the true labels", _share(sets.recall)
    yield "documents whose set is exactly right", _share(sets.exact)
    yield "labels predicted for a document", f"{sets.mean_size:.2f}"
    yield "labels that a document has", f"{result.n_labels / result.n_documents:.2f}"
    yield "R-precision", _share(result.r_precision)
    yield "labels of classes unknown to the model", f"{result.n_unknown:,}"
    certainty = result.certainty
    if certainty is None:
        return
    yield "calibration error of labels", f"{certainty.calibration_error:.3f}"
    threshold = certainty.threshold
    if threshold is None:
        yield "threshold for that precision", "none is known"
        return
    yield f"threshold for a precision of {threshold.wanted:.0%}", f"{threshold.threshold:.3f}"
    yield "precision above it", _share(threshold.precision)
    yield "true labels above it", _share(threshold.recall)
    yield "documents with a label above it", _share(threshold.coverage)


def set_sentences(result: LabelSetEvaluation) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    if result.n_unknown:
        yield (
            f"{count(result.n_unknown, 'label')} of classes that the model does not have: they "
            "count as missed in every measure."
        )
    yield "F1@k is the mean of the documents' F1; F1 of means@k that of the mean P@k and R@k."


def set_figures(result: LabelSetEvaluation) -> dict[str, Any]:
    """Draw everything that an evaluation has to show, by name."""
    from longtail.plotting import plot_calibration, plot_label_frequency, plot_label_precision

    figures = {"frequency": plot_label_frequency(result.bands)}
    if result.certainty is not None and result.certainty.n_pairs:
        figures["calibration"] = plot_calibration(result.certainty)
        figures["precision"] = plot_label_precision(result.certainty)
    return figures


def set_page(page: Any, result: LabelSetEvaluation, figures: dict[str, Any]) -> str:
    """Return one HTML page with numbers, figures and tables inside; it loads nothing."""
    from longtail.cli.report import html_page

    cards = [(name, value, "") for name, value in _measures(result)]
    return html_page(page, iter(cards), figures, dict(_captions(result)), [], _FOOTER)


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
            "Calibration: how often labels of a probability are correct. On the dashed line, "
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


def set_json(result: LabelSetEvaluation) -> dict[str, Any]:
    """Return the results without the curve's every point."""
    value = asdict(result)
    if value["certainty"] is not None:
        del value["certainty"]["curve"]
    return value


def _share(value: float) -> str:
    """Return a share, or a dash where there is none."""
    return "-" if value != value else f"{value:.1%}"
