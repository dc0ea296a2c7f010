"""What to expect of a model on new documents, by those that fit held out: as rows and as JSON."""

from __future__ import annotations

import math
from typing import Any

from longtail._constants import FIGURES, FREQUENCY_BANDS
from longtail.cli.show import print_table


def expectations(model: Any) -> dict[str, Any]:
    """Return held-out figures as shares from 0 to 1; empty for a model without a self-check.

    `by_class_frequency` is the accuracy by how many documents of the class the model has seen; NaN
    stands where none were held out.
    """
    check = getattr(model, "self_check_", None)
    if check is None:
        return {}
    return held_out_figures(check.residual_figures, check.residuals, model.calibration_error_)


def held_out_figures(table: Any, row: int, calibration_error: float) -> dict[str, Any]:
    """Return the figures of one row of a self-check's table by name; a file has -1 for NaN."""
    if not len(table):
        return {}
    figures = [value if value >= 0 else math.nan for value in table[row].tolist()]
    by_name = dict(zip(FIGURES, figures, strict=True))
    return {
        "accuracy": by_name["accuracy"],
        "macro_f1": by_name["macro_f1"],
        "candidate_recall": by_name["recall"],
        "calibration_error": calibration_error,
        "by_class_frequency": {name: by_name[name] for name, _, _ in FREQUENCY_BANDS},
    }


def print_expectations(found: dict[str, Any]) -> None:
    """Print what to expect as a table."""
    if found:
        print_table(
            "To expect of new documents of these classes (by documents held out in fit)",
            ("measure", "value"),
            expectation_rows(found),
        )


def expectation_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what to expect for people; measures that nothing is known of have a dash."""
    if not found:
        return []
    rows = [
        ("accuracy", _share(found["accuracy"])),
        ("macro F1, mean of the per-class F1", _share(found["macro_f1"])),
        ("true class among the candidates", _share(found["candidate_recall"])),
        (
            "calibration error",
            "not calibrated: too few documents"
            if math.isnan(found["calibration_error"])
            else f"{found['calibration_error']:.3f}",
        ),
    ]
    for band, accuracy in found["by_class_frequency"].items():
        if not math.isnan(accuracy):
            documents = {"1": "1 document", "more": "more than 100 documents"}
            name = documents.get(band, f"{band.replace('-', ' to ')} documents")
            rows.append((f"accuracy, classes of {name}", _share(accuracy)))
    return rows


def expectation_sentence(found: dict[str, Any]) -> str:
    """Return what documents held out in fit showed, to compare with; empty if nothing is known."""
    if not found:
        return ""
    shown = [f"{name} {value}" for name, value in expectation_rows(found)[:4]]
    return f"Documents held out in fit had: {'; '.join(shown)}."


def _share(value: float) -> str:
    """Return a share in percent, or a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.1%}"
