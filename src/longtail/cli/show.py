"""What the commands print: progress, tables, sentences, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from longtail.benchmark import Measurement
    from longtail.benchmark.compare import Row
    from longtail.benchmark.measure import Progress

_WIDTH = 120  # columns of a table in a file or a pipe, where there is no terminal to ask


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error that the user can do something about into one line and exit code 1."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"longtail: {error}")


@contextmanager
def progress() -> Iterator[Progress]:
    """Draw a progress bar with rate and remaining time on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def update(description: str, completed: int, total: int) -> None:
            if description not in tasks:
                for task in tasks.values():  # what came before is done
                    bar.update(task, completed=bar.tasks[task].total)
                tasks[description] = bar.add_task(description, total=total)
            bar.update(tasks[description], completed=completed)

        yield update
        for task in tasks.values():
            bar.update(task, completed=bar.tasks[task].total)


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


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; numbers stand to the right."""
    table = Table(
        title=title, title_justify="left", show_lines=any("\n" in row[-1] for row in rows)
    )
    for position, name in enumerate(header):
        numeric = all(row[position][:1].isdigit() for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)


def say(sentence: str) -> None:
    """Print a sentence."""
    _console().print(sentence, markup=False, highlight=False, style="dim")


def _console() -> Console:
    """Return the console for results; a file or a pipe gets wide lines."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def append_json(path: Path | None, value: Any) -> None:
    """Append one line of JSON to a file, so that an interruption loses nothing finished."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
