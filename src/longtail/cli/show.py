"""What the commands print: progress, tables, sentences, JSON."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from longtail_bench.measure import Measurement
    from longtail_bench.rows import Row

_WIDTH = 120  # columns of a table in a file or a pipe, where there is no terminal to ask


class Update(Protocol):
    """Tell how far a step is; the total may be unknown and may change."""

    def __call__(self, description: str, completed: int, total: int | None) -> None:
        """Tell that `completed` of `total` are done."""


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error that the user can do something about into one line and exit code 1."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: note(f"warning: {message}")
        warnings.simplefilter("default", RuntimeWarning)
        # scikit-learn takes labels for numbers where most documents have a class of their own.
        warnings.filterwarnings("ignore", "The number of unique classes is greater")
        try:
            yield
        except BrokenPipeError:
            raise  # whoever reads our output has had enough; typer ends quietly
        except OSError as error:
            known = error.filename is not None and error.strerror is not None
            _fail(f"{error.filename}: {error.strerror}" if known else str(error))
        except ValueError as error:
            _fail(str(error))
        except ImportError as error:
            if "pip install" not in str(error):
                raise  # a fault of ours, not an extra that is missing
            _fail(str(error))
        except KeyboardInterrupt:
            _fail("interrupted; no unfinished file is left behind.", 130)  # as a shell has it


def _fail(sentence: str, code: int = 1) -> NoReturn:
    """Say what went wrong and end."""
    note(sentence)
    sys.exit(code)


def note(sentence: str) -> None:
    """Say something beside the results, on standard error."""
    sys.stderr.write(f"longtail: {sentence}\n")


class _Count(ProgressColumn):
    """How many of how many; nothing for a step that counts nothing."""

    def render(self, task: Task) -> Text:
        """Return the counts of a step."""
        total = "?" if task.total is None else f"{task.total:,.0f}"
        return Text(f"{task.completed:,.0f}/{total}" if task.completed else "")


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        """Return the rate of a step."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


@contextmanager
def progress(quiet: bool = False) -> Iterator[Update]:
    """Draw a progress bar with rate and remaining time on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        _Count(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def update(description: str, completed: int, total: int | None) -> None:
            if description not in tasks:
                finish()  # what came before is done
                tasks[description] = bar.add_task(description, total=total)
            bar.update(tasks[description], completed=completed, total=total)

        def finish() -> None:
            for task in tasks.values():
                done = bar.tasks[task].total or bar.tasks[task].completed
                bar.update(task, completed=done, total=done)

        yield update
        finish()


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
    """Print a table under its title; numbers stand to the right."""
    table = Table(show_lines=any("\n" in row[-1] for row in rows))
    for position, name in enumerate(header):
        numeric = all(is_number(row[position]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    # Not the table's own title, which would be wrapped at the width of a narrow table.
    _console().print(Text(title, style="italic"))
    _console().print(table)


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number, with its unit, or a dash for none."""
    return re.fullmatch(r"[-+]?[\d.,]+ ?[%\w]{0,2}|-|", cell) is not None


def count(n: int, noun: str) -> str:
    """Return a number with its noun: 1 document, 2 documents."""
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def say(sentence: str) -> None:
    """Print a sentence."""
    _console().print(sentence, markup=False, highlight=False, style="dim", soft_wrap=True)


def _console() -> Console:
    """Return the console for results; a file or a pipe gets wide lines."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """Return a value that JSON can hold; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def append_json(path: Path | None, value: Any) -> None:
    """Append one line of JSON to a file, so that an interruption loses nothing finished."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
