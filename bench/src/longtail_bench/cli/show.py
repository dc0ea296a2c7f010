"""What the benchmark commands print and write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.show import print_table, say

if TYPE_CHECKING:
    from longtail_bench.measure import Measurement
    from longtail_bench.rows import Row


def print_measurements(title: str, results: Sequence[Measurement | Row]) -> None:
    """Print one row for each system; a run that failed says why."""
    header = ("", "accuracy", "macro F1", "top 5", "fit", "predict", "a document", "peak memory")
    rows = []
    for result in results:
        error = getattr(result, "error", None)
        if error:
            rows.append((result.system, error, *[""] * (len(header) - 2)))
            continue
        rows.append(
            (
                result.system,
                f"{result.accuracy:.1%}",
                f"{result.macro_f1:.1%}",
                f"{result.top_5:.1%}",
                f"{result.fit_processor_seconds:.1f} s",
                f"{result.predict_processor_seconds:.1f} s",
                f"{result.predict_processor_seconds / result.n_test * 1e6:.0f} µs",
                f"{result.peak_megabytes:,.0f} MB",
            )
        )
    print_table(title, header, rows)
    say("Macro F1 is the mean of the per-class F1; times are processor time over all threads.")


def append_json(path: Path | None, value: Any) -> None:
    """Append one line of JSON to a file, so that an interruption loses nothing finished."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
