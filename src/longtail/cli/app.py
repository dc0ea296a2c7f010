"""The commands: they parse, call and print; what they compute is in the other packages.

These are imported when a command runs, so that `longtail --help` answers at once.

========== ==============================================
`check`    what is odd about a table
`fit`      from a table to a model file
`evaluate` how good a model is on labelled documents
`predict`  the classes of new documents
`explain`  why a document gets its class
`teach`    change a model; `forget` is there too
`edit`     rename, merge and remove classes, refine, undo, compact
`serve`    a model as a service, with a page
`info`     what is in a model
`warmup`   compile ahead
`demo`     the embedded WordNet set
`expect`   what to expect of a model
`options`  what options are called
`inputs`   what commands read
`files`    what commands write
`show`     what commands print
`report`   an evaluation as one HTML page
========== ==============================================
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
from longtail.cli.info import info
from longtail.cli.predict import predict
from longtail.cli.serve import serve
from longtail.cli.teach import forget, teach
from longtail.cli.warmup import warmup


def print_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from longtail import __version__

        typer.echo(f"longtail {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="longtail",
    help="Classify text into ten thousand to a million classes, most of them rare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    pass


for command in (
    *(demo, check, fit, evaluate, predict, explain),
    *(teach, forget, rename, merge, remove, refine, undo, compact),
    *(serve, info, warmup),
):
    app.command()(command)
for entry_point in entry_points(group="longtail.commands"):
    app.add_typer(entry_point.load(), name=entry_point.name)
