"""Options that several commands share, so that they are called the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_COLUMNS = "Columns and rows"

Threads = Annotated[int, typer.Option("--threads", help="Number of threads; -1 is every core.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides every random draw.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only; no progress.")]

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")]
TablePath = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, JSON lines, Parquet or svmlight, also compressed; - is standard input.",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Column with the text; give it again to join several.",
        rich_help_panel=_COLUMNS,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column with the class.", rich_help_panel=_COLUMNS
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, tsv, jsonl, parquet or svmlight; by the file's ending when left out.",
        rich_help_panel=_COLUMNS,
    ),
]
Header = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row names the columns; without, they are numbered from 1.",
        rich_help_panel=_COLUMNS,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What separates fields; a comma in CSV, a tab in TSV.",
        rich_help_panel=_COLUMNS,
    ),
]
Quotes = Annotated[
    bool | None,
    typer.Option(
        "--quotes/--no-quotes",
        help="Whether fields may stand in double quotes; in CSV they may, in TSV not.",
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
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows",
        help="Pass over rows that cannot be used, count them, and list them in a file.",
        rich_help_panel=_COLUMNS,
    ),
]
BadRowsPath = Annotated[
    Path | None,
    typer.Option(
        "--bad-rows",
        metavar="FILE",
        help="Where to list them; FILE.bad-rows.csv in this folder by default.",
        rich_help_panel=_COLUMNS,
    ),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who; kept in the log.")]
ClassName = Annotated[
    str | None, typer.Option("--class", metavar="CLASS", help="The class of the text given.")
]
