"""Expected measures on new documents, estimated on held-out documents: as rows and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from longtail._constants import FREQUENCY_BANDS, MEASURES
from longtail.answers import read_expected
from longtail.cli.findings import Section
from longtail.cli.show import print_table

if TYPE_CHECKING:
    from longtail.metrics.evaluation import Evaluation

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
    """Return the rows of a self-check's table by name, as `expectations` has them."""
    rows = read_expected(table, calibration_error)
    if not rows:
        return {}
    bounds = {name: [low, high] for name, (_, low, high) in rows.items() if low is not None}
    bands = [name for name, _, _ in FREQUENCY_BANDS]
    return {name: rows[name][0] for name in MEASURES if name in rows} | {
        "by_class_frequency": {name: rows.get(name, [math.nan])[0] for name in bands},
        "intervals": {name: bounds[name] for name in MEASURES if name in bounds}
        | {"by_class_frequency": {name: bounds[name] for name in bands if name in bounds}},
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
    return [
        (title, *_written(key, value, bounds))
        for key, title, value, bounds in _list_expected(found)
    ]


def compare_expected(found: dict[str, Any], result: Evaluation) -> Section | None:
    """Put what was measured beside what was expected; None where nothing is to compare."""
    of_band = "recall" if result.multilabel else "accuracy"
    measured = result.measures | {
        band.name: getattr(band, of_band)
        for band in result.bands
        if not math.isnan(getattr(band, of_band))
    }
    rows, outside = [], []
    for key, title, value, bounds in _list_expected(found):
        if key in measured and not math.isnan(value):
            reached = measured[key]
            rows.append((title, *_written(key, value, bounds), _written(key, reached, None)[0]))
            if bounds is not None and not bounds[0] <= reached <= bounds[1]:
                outside.append(title)
    if not rows:
        return None
    of_known = "" if result.multilabel else " on known classes"
    return Section(
        f"Expected by documents held out in fit, and found{of_known}",
        ("measure", "expected", "95 % interval", "found"),
        rows,
        remark=f"Outside the interval: {', '.join(outside)}." if outside else "",
    )


def _list_expected(found: dict[str, Any]) -> Iterator[tuple[str, str, float, Any]]:
    """Yield key, title, value and interval of what to expect, by class size last."""
    if not found:
        return
    intervals = found["intervals"]
    for key, title in MEASURES.items():
        if key in found:
            yield key, title, found[key], intervals.get(key)
    measure = "recall in the first five classes" if "mean_f1" in found else "accuracy"
    for band, value in found["by_class_frequency"].items():
        if not math.isnan(value):
            documents = _BAND_NAMES.get(band, f"{band.replace('-', ' to ')} documents")
            bounds = intervals["by_class_frequency"].get(band)
            yield band, f"{measure}, classes of {documents}", value, bounds


def _written(name: str, value: float, bounds: Any) -> tuple[str, str]:
    """Return a measure and its interval for people."""
    if name in ("calibration_error", "label_calibration_error"):
        if math.isnan(value):
            return "not calibrated: too few documents", ""
        spread = "" if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f} (90 %)"
        return f"{value:.3f}", spread
    return f"{value:.1%}", "" if bounds is None else f"{bounds[0]:.1%} to {bounds[1]:.1%}"
