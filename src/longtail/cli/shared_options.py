"""Options that several commands share, so that they are called the same everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

# Options of one section of the help.
_column = partial(typer.Option, rich_help_panel="Columns and rows")
_limit = partial(typer.Option, min=1, rich_help_panel="Limits on what a file may hold")

Threads = Annotated[int, typer.Option("--threads", help="Number of threads; -1 is every core.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
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
    _column(
        "--text",
        metavar="COLUMN",
        help="Column with the text; give it again for several. A model remembers how it was "
        "fitted: columns, label separator, format.",
    ),
]
LabelColumns = Annotated[
    list[str] | None,
    _column(
        "--label",
        metavar="COLUMN",
        help="Column with the class, or with a list of labels; give it again for several labels.",
    ),
]
ZeroBased = Annotated[
    bool,
    _column(
        "--zero-based",
        help="svmlight: the first term is number 0, not 1.",
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
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who makes the change; kept in the journal."),
]
ClassNames = Annotated[
    list[str] | None,
    typer.Option(
        "--class", metavar="CLASS", help="The class of the text given; again for several labels."
    ),
]


@dataclass(frozen=True)
class Content:
    """The columns of a table that make up a document."""

    text: TextColumns = None
    category: Annotated[
        list[str] | None,
        _column(
            "--category",
            metavar="COLUMN",
            help="Further column, each value of which is a term, such as brand=acme.",
        ),
    ] = None
    numeric: Annotated[
        list[str] | None,
        _column(
            "--number",
            metavar="COLUMN",
            help="Further column with numbers, such as a price; they are terms by quantile.",
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        _column(
            "--categories",
            metavar="COLUMN",
            help="Further column with lists of values; in one string with ';' or '|' between them.",
        ),
    ] = None

    @property
    def fields(self) -> dict[str, str] | None:
        """The fields of records, with their kinds; None where there is one text, or counts."""
        kinds = {
            "text": self.text,
            "category": self.category,
            "number": self.numeric,
            "categories": self.categories,
        }
        columns = [(name, kind) for kind, names in kinds.items() for name in names or ()]
        if len(columns) < 2 and (self.text or not columns):
            return None
        twice = [name for name, n in Counter(name for name, _ in columns).items() if n > 1]
        if twice:
            raise ValueError(f"column {twice[0]!r} is given twice; it can be one field.")
        return dict(columns)


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are read: the options of every command that reads one."""

    format: Annotated[
        str | None,
        _column(
            "--format",
            help="csv, tsv, jsonl, parquet, svmlight, lshtc or xmc; by the ending when left out.",
        ),
    ] = None
    header: Annotated[
        bool | None,
        _column(
            "--header/--no-header",
            help="Whether the first row names the columns; without, they are numbered from 1.",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        _column(
            "--delimiter",
            help="What separates fields; a comma in CSV, a tab in TSV.",
        ),
    ] = None
    quotes: Annotated[
        bool | None,
        _column(
            "--quotes/--no-quotes",
            help="Whether fields may stand in double quotes; in CSV they may, in TSV not.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        _column(
            "--encoding",
            help="Of CSV, TSV and JSON lines; UTF-8 when left out.",
        ),
    ] = None
    label_separator: Annotated[
        str | None,
        _column(
            "--label-separator",
            help="What separates the labels of a document in its column, such as ';'; '' keeps "
            "them whole.",
        ),
    ] = None
    replicate: Annotated[
        bool,
        _column(
            "--replicate",
            help="A document of several labels is one document of each, as in the paper.",
        ),
    ] = False
    zero_based: ZeroBased = False
    max_row: Annotated[int, _limit(help="Longest row in characters.")] = 16_000_000
    max_label: Annotated[int, _limit(help="Longest label in characters.")] = 1_000
    max_terms: Annotated[int, _limit(help="svmlight: number of terms.")] = 10_000_000
    max_expansion: Annotated[
        int,
        _limit(
            help="How many times larger than the file its decompressed content may be.",
        ),
    ] = 200
    skip_bad_rows: Annotated[
        bool,
        _column(
            "--skip-bad-rows",
            help="Skip rows that cannot be used, count them, and list them in a file.",
        ),
    ] = False
    bad_rows: Annotated[
        Path | None,
        _column(
            "--bad-rows",
            metavar="FILE",
            help="Where to list them; FILE.bad-rows.csv in this folder by default.",
        ),
    ] = None

    def limits(self) -> Any:
        """Return the limits as the readers take them."""
        from longtail.datasets import Limits

        return Limits(self.max_row, self.max_label, self.max_terms, self.max_expansion)


Command = Callable[..., None]
Bundle = type | Sequence[Parameter]


def options_of(kind: type, *names: str) -> list[Parameter]:
    """Return the options that the fields of a dataclass declare; all of them, or some."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
        if f.init and (not names or f.name in names)
    ]


def takes(**bundles: Bundle) -> Callable[[Command], Command]:
    """Replace parameters of a command by bundles of options.

    A dataclass declares options by its fields, and the parameter gets an object of it; options that
    are listed come as a dict.
    """
    options = {
        name: options_of(bundle) if isinstance(bundle, type) else list(bundle)
        for name, bundle in bundles.items()
    }

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            for name, bundle in bundles.items():
                found = {option.name: given.pop(option.name) for option in options[name]}
                given[name] = bundle(**found) if isinstance(bundle, type) else found
            command(**given)

        parameters: list[Parameter] = []
        for parameter in parameters_of(command):
            parameters += options.get(parameter.name, [parameter])
        return declare(run, parameters)

    return decorate


def parameters_of(command: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a command, each to be given by name."""
    return [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in signature(command, eval_str=True).parameters.values()
    ]


def declare(command: Any, parameters: Sequence[Parameter]) -> Command:
    """Set the parameters of a command, as typer reads them."""
    command.__signature__ = Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run: Command = command
    return run
