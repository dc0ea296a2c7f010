"""The commands: they parse, call and print; other packages compute.

These are imported when a command runs, so that `longtail --help` answers at once.

================== ==============================================================
`check`            what is odd about a table
`fit`              from a table to a model file
`evaluate`         how good a model is on labelled documents
`predict`          the classes of new documents; `choice` is what it is asked for
`explain`          why a document gets its class
`teach`            teach and forget documents
`edit`             rename, merge and remove classes, refine, undo, compact
`hierarchy`        parents of classes
`serve`            a model as a service, with a page
`mcp`              a model as tools for language models
`info`             what is in a model
`warmup`           compile ahead
`demo`             the embedded WordNet set
`shared_options`   options of several commands; `fit_options` those of estimators
`cluster`          options and runs over partitions
`class_text_table` options and table of class texts
`inputs`           what commands read
`outputs`          what commands write; `prediction_rows` predictions
`findings`         an evaluation as tables; `report` as one HTML page
`expect`           what to expect of a model
`show`             what commands print
`help`             how options are listed
================== ==============================================================
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from longtail.cli.check import check
from longtail.cli.demo import demo
from longtail.cli.edit import compact, merge, refine, remove, rename, undo
from longtail.cli.evaluate import evaluate
from longtail.cli.explain import explain
from longtail.cli.fit import fit
from longtail.cli.help import Command, Commands
from longtail.cli.hierarchy import hierarchy, move
from longtail.cli.info import info
from longtail.cli.inputs import named_embedder
from longtail.cli.mcp import mcp
from longtail.cli.predict import predict
from longtail.cli.serve import serve
from longtail.cli.show import clear_errors
from longtail.cli.teach import forget, teach
from longtail.cli.warmup import warmup

_CHANGING = (teach, forget, rename, merge, remove, hierarchy, move, refine, undo, compact)


class _Commands(Commands):
    """The commands of `longtail`."""

    changing = tuple(command.__name__ for command in _CHANGING)


def print_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from longtail import __version__

        typer.echo(f"longtail {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="longtail",
    cls=_Commands,
    help="Classify text into ten thousand to a million classes, most of them rare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="MODULE:NAME",
            help="An encoder, before the command: takes a list of texts, returns a vector each.",
        ),
    ] = None,
) -> None:
    named_embedder.set(embedder)


def bench() -> None:
    """Say where `longtail bench` comes from."""
    with clear_errors():
        raise ImportError("bench is in a package of its own: pip install longtail-bench")


for command in (
    *(demo, check, fit, evaluate, predict, explain),
    *_CHANGING,
    *(serve, mcp, info, warmup),
):
    app.command(cls=Command)(command)
further = entry_points(group="longtail.commands")
for entry_point in further:
    app.add_typer(entry_point.load(), name=entry_point.name)
if not any(entry_point.name == "bench" for entry_point in further):
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(hidden=True, add_help_option=False, context_settings=anything)(bench)
