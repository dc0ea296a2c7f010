"""Options of `fit` that give classes parents: tables, columns, paths, vocabularies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.inputs import Documents, as_label
from longtail.cli.options import take_options
from longtail.cli.show import print_note

_PANEL: Any = {"rich_help_panel": "Hierarchy of classes"}


@dataclass
class HierarchyOptions:
    """What the command line says of the parents of classes; at most one way."""

    hierarchy: Annotated[
        Path | None,
        typer.Option(
            "--hierarchy",
            metavar="FILE",
            help="Parents of classes: a table with columns child and parent, or without header: "
            "child, tab, parent. Parents may be classes, and have parents themselves.",
            **_PANEL,
        ),
    ] = None
    parent_column: Annotated[
        str | None,
        typer.Option(
            "--parent-column", metavar="COLUMN", help="Column with the parent of the class.",
            **_PANEL,
        ),
    ] = None  # fmt: skip
    path_separator: Annotated[
        str | None,
        typer.Option(
            "--path-separator", help="Classes are paths, whose levels this separates, such as /.",
            **_PANEL,
        ),
    ] = None  # fmt: skip
    taxonomy: Annotated[
        Path | None,
        typer.Option(
            "--taxonomy",
            metavar="FILE",
            help="A SKOS vocabulary (.ttl, .rdf, .nt): parents, and names as --class-texts.",
            **_PANEL,
        ),
    ] = None
    taxonomy_by: Annotated[
        str,
        typer.Option(
            "--taxonomy-by",
            help="What classes are called there: notation, id (end of the URI), uri or name.",
            **_PANEL,
        ),
    ] = "auto"
    found: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def keep(self) -> list[str]:
        """The columns of the table that are read beside text and label."""
        return [] if self.parent_column is None else [self.parent_column]

    def check(self, *, has_text: bool, is_cluster: bool) -> None:
        """Refuse what does not go together."""
        flags = {
            "--hierarchy": self.hierarchy,
            "--parent-column": self.parent_column,
            "--path-separator": self.path_separator,
            "--taxonomy": self.taxonomy,
        }
        given = [flag for flag, value in flags.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} each give a hierarchy: use one of them.")
        if self.parent_column is not None and (not has_text or is_cluster):
            raise ValueError(
                "--parent-column is for tables of text, read without --dask and --workers; give "
                "--hierarchy FILE instead."
            )
        if self.taxonomy_by not in ("auto", "notation", "id", "uri", "name"):
            raise ValueError(
                f"--taxonomy-by must be notation, id, uri or name; got {self.taxonomy_by!r}."
            )

    def collect(self, chunks: Iterator[Documents]) -> Iterator[Documents]:
        """Pass documents on, and collect the parent of each class from their column."""
        if self.parent_column is None:
            yield from chunks
            return
        for chunk in chunks:
            for label, kept in zip(chunk.label_lists(), chunk.kept, strict=True):
                parent = "" if not kept or kept[-1] is None else str(kept[-1]).strip()
                for child in label if isinstance(label, list) else [label]:
                    if parent and str(child) != parent:
                        self.found.setdefault(str(child), set()).add(parent)
            yield chunk

    def read_vocabulary(self) -> Any:
        """Return the SKOS vocabulary, or None where none was given."""
        if self.taxonomy is None:
            return None
        from longtail.taxonomy.skos import read_skos

        return read_skos(self.taxonomy, self.taxonomy_by)  # type: ignore[arg-type]

    def give(self, model: Any, vocabulary: Any, quiet: bool) -> None:
        """Give a fitted model its hierarchy, and say what does not fit."""
        import warnings

        from longtail.exceptions import HierarchyWarning

        given: Any = self.path_separator
        if self.hierarchy is not None:
            given = read_pairs(self.hierarchy)
        elif self.parent_column is not None:
            given = {child: sorted(parents) for child, parents in self.found.items()}
        elif vocabulary is not None:
            given = vocabulary.parents
        if given is None:
            return
        if not isinstance(given, str) and model.classes_.dtype.kind in "iu":
            pairs = (
                given
                if isinstance(given, list)
                else [(c, p) for c, ps in given.items() for p in ps]
            )
            given = [(as_label(model, child), as_label(model, parent)) for child, parent in pairs]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HierarchyWarning)
            model.set_hierarchy(given)
        for warning in caught:
            if not quiet:
                print_note(str(warning.message))


def takes_hierarchy(command: Any) -> Any:
    """Give a command the options of `HierarchyOptions` in place of its parameter `above`."""
    from dataclasses import fields
    from inspect import Parameter
    from typing import get_type_hints

    hints = get_type_hints(HierarchyOptions, include_extras=True)
    options = [
        Parameter(
            option.name, Parameter.KEYWORD_ONLY, default=option.default,
            annotation=hints[option.name],
        )
        for option in fields(HierarchyOptions)
        if option.init
    ]  # fmt: skip
    return take_options("above", options, lambda **given: HierarchyOptions(**given))(command)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of a table; a TSV file may have no header: child, tab, parent."""
    from longtail.datasets.delimited import Lines, plain_rows
    from longtail.datasets.limits import DEFAULT_LIMITS
    from longtail.datasets.tables import Table, find_format, read_text_chunks
    from longtail.exceptions import DataFormatError

    try:
        format = find_format(path)
    except ValueError:
        format = "tsv"
    columns, header = ["child", "parent"], True
    try:
        if format == "tsv":
            _, first = next(plain_rows(Lines(path, "utf-8", DEFAULT_LIMITS), "\t"), (1, columns))
            header = len(first) != 2 or set(first) == set(columns)
        if not header:
            columns = ["1", "2"]
        table = Table(path, columns[1:], columns[0], format=format, header=header)
        return [
            (child, parent)
            for chunk in read_text_chunks(table)
            for child, parent in zip(chunk.labels, chunk.texts, strict=True)
            if parent
        ]
    except DataFormatError as error:
        raise ValueError(
            f"{error}. --hierarchy takes a table with the columns child and parent; without "
            "header: child, tab, parent."
        ) from None
