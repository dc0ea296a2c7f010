"""Arguments and output that the commands of `longtail bench` share."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.show import print_table, say

if TYPE_CHECKING:
    from longtail_bench.measure import Measurement
    from longtail_bench.rows import Row

DATA_FOLDER = Path("../shared/data")

Seeds = Annotated[str, typer.Option("--seeds", help="Comma-separated integers.")]
DataSets = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets by name, folder or file; all of the folder by default."),
]
DataFolder = Annotated[Path, typer.Option("--folder", help="Where data sets are found by name.")]
LabelColumn = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column with the class.")
]
Out = Annotated[Path | None, typer.Option(help="Append each row to this JSON lines file.")]


def print_measurements(title: str, results: Sequence[Measurement | Row]) -> None:
    """Print one row for each system; a run that failed says why."""
    header = ("", "accuracy", "macro F1", "top 5", "fit", "predict", "per document", "peak memory")
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
                f"{result.fit_cpu_seconds:.1f} s",
                f"{result.predict_cpu_seconds:.1f} s",
                f"{result.predict_cpu_seconds / result.n_test * 1e6:.0f} µs",
                f"{result.peak_megabytes:,.0f} MB",
            )
        )
    print_table(title, header, rows)
    say("Macro F1 is the mean of the per-class F1; times are CPU time over all threads.")


LABEL_SET_MEASURES = (
    *("P@1", "P@3", "P@5", "nDCG@5", "R@10", "F1@5", "R-precision"),
    *("PSP@1", "PSP@3", "PSP@5", "PSnDCG@5", "never seen R@10"),
)


def print_label_sets(title: str, results: Sequence[Row]) -> None:
    """Print what systems reach on documents with label sets; a run that failed says why."""
    header = ("", *LABEL_SET_MEASURES, "fit", "per document", "peak memory")
    rows = []
    for row in results:
        if row.error:
            rows.append((row.system, row.error, *[""] * (len(header) - 2)))
            continue
        costs = (
            f"{row.fit_cpu_seconds:.1f} s",
            f"{row.predict_cpu_seconds / row.n_test * 1e6:.0f} µs",
            f"{row.peak_megabytes:,.0f} MB",
        )
        # There may be no label that training never saw.
        values = (100 * row.measures[name] for name in LABEL_SET_MEASURES)
        shown = ("–" if math.isnan(value) else f"{value:.1f}" for value in values)
        rows.append((row.system, *shown, *costs))
    print_table(title, header, rows)
    say(
        "In percent; labels that training never saw are left out of the truth but for their own "
        "column. F1@5 is the mean of the documents' F1; times are CPU time over all threads."
    )


def append_json(path: Path | None, value: Any) -> None:
    """Append one line of JSON to a file, so that an interruption loses nothing finished."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")


def parse_integers(option: str, text: str) -> tuple[int, ...]:
    """Parse comma-separated integers."""
    try:
        return tuple(int(item) for item in text.split(","))
    except ValueError:
        raise ValueError(f"{option} must be integers such as 1,2; got {text!r}.") from None
