"""What to expect of a model on new documents, by those that fit held out: as rows and as JSON."""

from __future__ import annotations

import math
from typing import Any

from longtail._constants import EXPECTED, FREQUENCY_BANDS, MEASURES
from longtail.cli.show import print_table

_BAND_NAMES = {"1": "1 document", "more": "more than 100 documents"}


def expectations(model: Any) -> dict[str, Any]:
    """Return what to expect, as shares from 0 to 1; empty for a model without a self-check.

    `by_class_frequency` is the accuracy by how many documents of the class the model has seen, of
    label sets the recall of the first five classes; NaN stands where none were held out.
    `intervals` has the bounds of each measure under its name.
    """
    check = getattr(model, "self_check_", None)
    if check is None:
        return {}
    return expected_measures(check.expected, model.calibration_error_)


def expected_measures(table: Any, calibration_error: float) -> dict[str, Any]:
    """Return the rows of a self-check's table by name; a file has -1 for NaN.

    A model that was recalibrated has another calibration error than the table.
    """
    rows = {name: row for name, row in zip(EXPECTED, table.tolist(), strict=True) if row[0] >= 0}
    if not rows:
        return {}
    measures = {name: rows[name][0] for name in MEASURES if name in rows}
    intervals = {name: rows[name][1:] for name in measures}
    if "accuracy" in measures:
        if not math.isclose(
            rows.get("calibration_error", [-1])[0], calibration_error, abs_tol=1e-5
        ):
            intervals.pop("calibration_error", None)
        measures["calibration_error"] = calibration_error
    bands = [name for name, _, _ in FREQUENCY_BANDS]
    return measures | {
        "by_class_frequency": {name: rows.get(name, [math.nan])[0] for name in bands},
        "intervals": intervals
        | {"by_class_frequency": {name: rows[name][1:] for name in bands if name in rows}},
    }


def print_expectations(found: dict[str, Any]) -> None:
    """Print what to expect as a table."""
    if found:
        print_table(
            "Expected on new documents of these classes (estimated on held-out documents)",
            ("measure", "value", "95 % interval"),
            expectation_rows(found),
        )


def expectation_rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, value and interval of what to expect, for people."""
    if not found:
        return []
    intervals = found["intervals"]
    rows = []
    for name, title in MEASURES.items():
        if name in found:
            rows.append((title, *_written(name, found[name], intervals.get(name))))
    is_sets = "mean_f1" in found
    measure = "recall in the first five classes" if is_sets else "accuracy"
    for band, value in found["by_class_frequency"].items():
        if not math.isnan(value):
            documents = _BAND_NAMES.get(band, f"{band.replace('-', ' to ')} documents")
            bounds = intervals["by_class_frequency"].get(band)
            rows.append((f"{measure}, classes of {documents}", *_written(band, value, bounds)))
    return rows


def expectation_sentence(found: dict[str, Any]) -> str:
    """Return what was expected, to compare with; empty if nothing is known."""
    if not found:
        return ""
    wanted = ("accuracy", "macro_f1", "mean_f1", "P@1", "P@5", "calibration_error")
    names = [MEASURES[name] for name in (*wanted, "label_calibration_error") if name in found]
    rows = {name: (value, interval) for name, value, interval in expectation_rows(found)}
    shown = [
        f"{name} {rows[name][0]}" + (f" ({rows[name][1]})" if rows[name][1] else "")
        for name in names
    ]
    of_known = " on known classes" if "accuracy" in found else ""
    return f"Expected{of_known} by documents held out in fit: {'; '.join(shown)}."


def _written(name: str, value: float, bounds: Any) -> tuple[str, str]:
    """Return a measure and its interval for people."""
    if name in ("calibration_error", "label_calibration_error"):
        if math.isnan(value):
            return "not calibrated: too few documents", ""
        spread = "" if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f} (90 %)"
        return f"{value:.3f}", spread
    return f"{value:.1%}", "" if bounds is None else f"{bounds[0]:.1%} to {bounds[1]:.1%}"
