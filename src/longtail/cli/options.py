"""Options that several commands share, so that they are called the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

_COLUMNS = "Columns and rows"
_LIMITS = "Limits on what a file may hold"

Threads = Annotated[int, typer.Option("--threads", help="Number of threads; -1 is every core.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides every random draw.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only; no progress.")]

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")]
TablePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, JSON lines, Parquet or svmlight, also compressed; several, or a pattern "
        "such as 'part-*.csv'; - is standard input.",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Column with the text; give it again for several. A model remembers how it was "
        "fitted: columns, label separator, format.",
        rich_help_panel=_COLUMNS,
    ),
]
CategoryColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="COLUMN",
        help="Further column, each value of which is a term, such as brand=acme.",
        rich_help_panel=_COLUMNS,
    ),
]
NumberColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--number",
        metavar="COLUMN",
        help="Further column with numbers, such as a price; they are terms by quantile.",
        rich_help_panel=_COLUMNS,
    ),
]
CategoriesColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--categories",
        metavar="COLUMN",
        help="Further column with lists of values; in one string with ';' or '|' between them.",
        rich_help_panel=_COLUMNS,
    ),
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column with the class, or with a list of labels; give it again for several labels.",
        rich_help_panel=_COLUMNS,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        help="svmlight: the first term is number 0, not 1.",
        rich_help_panel=_COLUMNS,
    ),
]
Unknown = Annotated[
    float,
    typer.Option(
        "--unknown",
        metavar="SHARE",
        help="With --precision: share of documents whose class the model does not have.",
    ),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who; kept in the log.")]
ClassNames = Annotated[
    list[str] | None,
    typer.Option(
        "--class", metavar="CLASS", help="The class of the text given; again for several labels."
    ),
]


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are read: the options of every command that reads one."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, tsv, jsonl, parquet, svmlight, lshtc or xmc; by the ending when left out.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first row names the columns; without, they are numbered from 1.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            help="What separates fields; a comma in CSV, a tab in TSV.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    quotes: Annotated[
        bool | None,
        typer.Option(
            "--quotes/--no-quotes",
            help="Whether fields may stand in double quotes; in CSV they may, in TSV not.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            help="Of CSV, TSV and JSON lines; UTF-8 when left out.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    label_separator: Annotated[
        str | None,
        typer.Option(
            "--label-separator",
            help="What separates the labels of a document in its column, such as ';'; '' keeps "
            "them whole.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    replicate: Annotated[
        bool,
        typer.Option(
            "--replicate",
            help="A document of several labels is one document of each, as in the paper.",
            rich_help_panel=_COLUMNS,
        ),
    ] = False
    zero_based: ZeroBased = False
    max_row: Annotated[
        int, typer.Option(min=1, help="Longest row in characters.", rich_help_panel=_LIMITS)
    ] = 16_000_000
    max_label: Annotated[
        int, typer.Option(min=1, help="Longest label in characters.", rich_help_panel=_LIMITS)
    ] = 1_000
    max_terms: Annotated[
        int, typer.Option(min=1, help="svmlight: number of terms.", rich_help_panel=_LIMITS)
    ] = 10_000_000
    max_expansion: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many times larger than the file its decompressed content may be.",
            rich_help_panel=_LIMITS,
        ),
    ] = 200
    skip_bad_rows: Annotated[
        bool,
        typer.Option(
            "--skip-bad-rows",
            help="Skip rows that cannot be used, count them, and list them in a file.",
            rich_help_panel=_COLUMNS,
        ),
    ] = False
    bad_rows: Annotated[
        Path | None,
        typer.Option(
            "--bad-rows",
            metavar="FILE",
            help="Where to list them; FILE.bad-rows.csv in this folder by default.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None

    def limits(self) -> Any:
        """Return the limits as the readers take them."""
        from longtail.datasets import Limits

        return Limits(self.max_row, self.max_label, self.max_terms, self.max_expansion)


Command = Callable[..., None]


def reads_table(command: Command) -> Command:
    """Give a command the options of `Layout` in place of its parameter `layout`."""
    hints = get_type_hints(Layout, include_extras=True)
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=hint)
        for option, hint in zip(fields(Layout), hints.values(), strict=True)
    ]
    return take_options("layout", options, lambda **given: Layout(**given))(command)


def take_options(
    name: str, options: Sequence[Parameter], make: Callable[..., Any] = dict
) -> Callable[[Command], Command]:
    """Give a command options in place of its parameter `name`, which gets what `make` returns."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def takes(**given: Any) -> None:
            made = make(**{option.name: given.pop(option.name) for option in options})
            command(**{name: made}, **given)

        parameters: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            named = parameter.replace(kind=Parameter.KEYWORD_ONLY)
            parameters += options if parameter.name == name else [named]
        takes.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        takes.__annotations__ = {option.name: option.annotation for option in parameters}
        return takes

    return decorate
