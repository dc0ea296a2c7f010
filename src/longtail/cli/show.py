"""Output of the commands: progress, tables, sentences, JSON."""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn, Protocol

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

from longtail._words import count
from longtail.answers import plain

_COMPILING = "compiling kernels, the first time only"
_SHORTEST_STAGE = 0.5  # seconds; a shorter one has no line off a terminal
_COLUMNS = 120  # of a table in a file or a pipe, where there is no terminal to ask

# Characters that steer a terminal or turn the direction of what follows; a newline is let through.
_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Return a text from a file as a terminal may show it: steering characters as escapes."""
    return _STEERING.sub(lambda found: ascii(found.group())[1:-1], text)


class Update(Protocol):
    """Report how far a step is; the total may be unknown and may change."""

    def __call__(
        self, description: str, completed: int, total: int | None, noun: str = "document"
    ) -> None:
        """Report that `completed` of `total` are done; `noun` is what is counted."""


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error that the user can act on into one line and exit code 1."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print_note(f"warning: {message}")
        warnings.simplefilter("default", RuntimeWarning)
        # scikit-learn takes labels for numbers where most documents have a class of their own.
        warnings.filterwarnings("ignore", "The number of unique classes is greater")
        try:
            yield
        except BrokenPipeError:
            raise  # the reader closed the pipe; typer ends quietly
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
    """Print what went wrong and exit."""
    print_note(sentence)
    sys.exit(code)


def print_note(sentence: str) -> None:
    """Print a note on standard error."""
    line = clean(sentence).encode("utf-8", "backslashreplace").decode("utf-8")
    sys.stderr.write(f"longtail: {line}\n")


class _Count(ProgressColumn):
    """How many of how many; nothing for a step that counts nothing."""

    def render(self, task: Task) -> Text:
        """Return the counts of a step."""
        if not task.completed:
            return Text("")
        if task.total is None:
            return Text(count(int(task.completed), task.fields["noun"]))
        return Text(f"{task.completed:,.0f}/{count(int(task.total), task.fields['noun'])}")


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        """Return the rate of a step."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


@contextmanager
def progress(quiet: bool = False, compiles: bool = True) -> Iterator[Update]:
    """Show how far a command is: bars with rate and remaining time, off a terminal lines.

    `compiles` says that kernels may have to be compiled; that is shown beside the stages.
    """
    console = Console(stderr=True)
    if quiet:
        yield lambda *_: None
    elif console.is_terminal:
        with _draw_bars(console, compiles) as update:
            yield update
    else:
        lines = _StageLines()
        with _listen_to_compiler(lines.compiled) if compiles else nullcontext():
            yield lines
        lines.finish()
        lines.finish_compiling()


def _listen_to_compiler(listener: Callable[[int, float], None]) -> AbstractContextManager[None]:
    """Call a listener with the number of compiled kernels and the seconds that took."""
    from longtail._kernels.compiling import on_compiled

    return on_compiled(listener)


@contextmanager
def _draw_bars(console: Console, compiles: bool) -> Iterator[Update]:
    """Draw one bar for each stage."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Count(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        tasks: dict[str, Any] = {}

        def update(
            description: str, completed: int, total: int | None, noun: str = "document"
        ) -> None:
            if description not in tasks:
                finish()  # what came before is done
                tasks[description] = bar.add_task(clean(description), total=total, noun=noun)
            bar.update(tasks[description], completed=completed, total=total)

        def finish() -> None:
            for task in tasks.values():
                done = bar.tasks[task].total or bar.tasks[task].completed
                bar.update(task, completed=done, total=done)

        def compiled(n_kernels: int, seconds: float) -> None:
            if _COMPILING not in tasks:
                tasks[_COMPILING] = bar.add_task(_COMPILING, total=None, noun="kernel")
            bar.update(tasks[_COMPILING], completed=n_kernels)

        with _listen_to_compiler(compiled) if compiles else nullcontext():
            yield update
        finish()


class _StageLines:
    """One line on standard error for each stage, when it is done; its steps are part of it."""

    def __init__(self) -> None:
        self._stage, self._start, self._counts = "", 0.0, dict[str, int]()
        self._noun = "document"
        self._compiled = -1, 0.0

    def compiled(self, n_kernels: int, seconds: float) -> None:
        """Hear of the compiler; the first time is said at once, for it takes a while."""
        if self._compiled[0] < 0:
            print_note(f"{_COMPILING} ...")
        self._compiled = n_kernels, seconds

    def finish_compiling(self) -> None:
        """Print how long the compiler took."""
        if self._compiled[0] > 0:
            print_note(
                f"{count(self._compiled[0], 'kernel')} compiled: {self._compiled[1]:.1f} s of the "
                "above, the first time only (longtail warmup does it ahead)"
            )

    def __call__(
        self, description: str, completed: int, total: int | None, noun: str = "document"
    ) -> None:
        """Record how far a stage is; a new name ends the one before."""
        stage = description.split(": ", 1)[0]
        if stage != self._stage:
            self.finish()
            self._stage, self._start, self._counts = stage, time.monotonic(), {}
            self._noun = noun
        n_done = max(completed, total or 0)
        if n_done:
            self._counts[description] = max(n_done, self._counts.get(description, 0))

    def finish(self) -> None:
        """Print the line of the stage that is done; a stage that took no time has none."""
        seconds = time.monotonic() - self._start
        if self._stage and seconds >= _SHORTEST_STAGE:
            rate = ""
            if len(self._counts) == 1:  # steps of different kinds have no rate in common
                [n_done] = self._counts.values()
                if n_done >= seconds:  # a rate below one a second is of no use
                    rate = f", {count(n_done, self._noun)}, {n_done / max(seconds, 1e-9):,.0f}/s"
            print_note(f"{self._stage}: {seconds:.1f} s{rate}")
        self._stage = ""


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under its title; numbers stand to the right."""
    table = Table(show_lines=any("\n" in row[-1] for row in rows))
    for position, name in enumerate(header):
        numeric = all(is_number(row[position]) for row in rows)
        table.add_column(Text(clean(name)), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    # Not the table's own title, which would be wrapped at the width of a narrow table.
    _console().print(Text(clean(title), style="italic"))
    _console().print(table)


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, with its unit, or a dash for none."""
    return re.fullmatch(r"[-+]?[\d.,]+ ?[%\w]{0,2}|-|", cell) is not None


def model_sizes(model: Any, fitted: bool = True) -> dict[str, int]:
    """Return the sizes of a model: documents, labels where a document may have several, classes.

    How many documents a model of label sets has is known of its fit alone: what is taught and
    forgotten are labels of documents.
    """
    statistics = model.statistics_
    sizes = {"documents": model.n_documents_}
    if model.multilabel_:
        sizes = (sizes if fitted else {}) | {"labels": statistics.n_documents}
    return sizes | {"classes": statistics.n_classes}


def describe_sizes(sizes: Mapping[str, Any]) -> str:
    """Return sizes for people: 20 documents with 57 labels of 9 classes."""
    counted = [
        count(sizes[f"{noun}s"], noun) for noun in ("document", "label") if f"{noun}s" in sizes
    ]
    return f"{' with '.join(counted)} of {count(sizes['classes'], 'class')}"


def describe_change(change: Any) -> str:
    """Return what a change of the journal is about."""
    summaries = {
        "rename": "{old} is called {new}",
        "merge": "{source} is part of {into}",
        "remove": "{label}",
        "describe": "{label}: {text}",
        "hierarchy": "{n_nodes} nodes",
        "move": "{label} is below {parents}",
        "refine": "what all classes share",
    }
    if change.labels:
        names = list(dict.fromkeys(map(str, change.labels)))
        more = f" and {count(len(names) - 3, 'more class')}" if len(names) > 3 else ""
        return f"{count(len(change.labels), 'document')} of {', '.join(names[:3])}{more}"
    if change.action == "undo":
        undone = change.content["changes"]
        return f"change{'s' if len(undone) > 1 else ''} {', '.join(map(str, undone))}"
    content = change.content
    if change.action == "move":
        if not content["parents"]:
            return f"{content['label']} is a root"
        content["parents"] = ", ".join(map(str, content["parents"]))
    return summaries[change.action].format(**content)


def say(sentence: str) -> None:
    """Print a sentence."""
    _console().print(clean(sentence), markup=False, highlight=False, style="dim", soft_wrap=True)


def _console() -> Console:
    """Return the console for results; a file or a pipe gets wide lines."""
    console = Console()
    return console if console.is_terminal else Console(width=_COLUMNS)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(as_json_text(value, indent=2) + "\n")


def as_json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON; what steers a terminal is escaped, so that it is the same value when read."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
