"""Parents of classes: `longtail hierarchy`, `longtail move`, and the options of `fit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail._words import count
from longtail.answers import as_label
from longtail.cli.edit import changes_model
from longtail.cli.inputs import read_labelled
from longtail.cli.shared_options import By
from longtail.cli.show import print_note

if TYPE_CHECKING:
    from longtail.datasets.records import Chunk

_option = partial(typer.Option, rich_help_panel="Hierarchy of classes")


@dataclass
class HierarchyOptions:
    """Options that give the parents of classes; at most one of them."""

    hierarchy: Annotated[
        Path | None,
        _option(
            metavar="FILE",
            help="Parents of classes: a table with columns child and parent, or without header: "
            "child, tab, parent. Parents may be classes, and have parents themselves.",
        ),
    ] = None
    parent_column: Annotated[
        str | None, _option(metavar="COLUMN", help="Column with the parent of the class.")
    ] = None
    path_separator: Annotated[
        str | None, _option(help="Classes are paths, whose levels this separates, such as /.")
    ] = None
    taxonomy: Annotated[
        Path | None,
        _option(
            metavar="FILE",
            help="A SKOS vocabulary (.ttl, .rdf, .nt): parents, and names as --class-texts.",
        ),
    ] = None
    taxonomy_by: Annotated[
        str,
        _option(help="What classes are called there: notation, id (end of the URI), uri or name."),
    ] = "auto"
    found: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def keep(self) -> list[str]:
        """The columns of the table that are read beside text and label."""
        return [] if self.parent_column is None else [self.parent_column]

    def check(self, *, has_text: bool, is_cluster: bool) -> None:
        """Refuse options that do not go together."""
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

    def collect(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Pass documents on while collecting the parents of their classes."""
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
        """Set the hierarchy of a fitted model; print what does not fit."""
        given: Any = self.path_separator
        if self.hierarchy is not None:
            given = read_pairs(self.hierarchy)
        elif self.parent_column is not None:
            given = {child: sorted(parents) for child, parents in self.found.items()}
        elif vocabulary is not None:
            given = vocabulary.parents
        if given is None:
            return
        with _noting_warnings(quiet):
            model.set_hierarchy(_as_labels(model, given))


@contextmanager
def _noting_warnings(quiet: bool) -> Iterator[None]:
    """Print the warnings about a hierarchy as notes."""
    import warnings

    from longtail.exceptions import HierarchyWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HierarchyWarning)
        yield
    for warning in caught:
        if not quiet:
            print_note(str(warning.message))


def _as_labels(model: Any, given: Any) -> Any:
    """Return pairs, or parents by child, as the model writes its classes."""
    if isinstance(given, str) or model.classes_.dtype.kind not in "iu":
        return given
    pairs = given if isinstance(given, list) else [(c, p) for c, ps in given.items() for p in ps]
    return [(as_label(model, child), as_label(model, parent)) for child, parent in pairs]


@changes_model
def hierarchy(
    teacher: Any,
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A table with columns child and parent, or without header: child, tab, parent.",
        ),
    ] = None,
    path_separator: Annotated[
        str | None,
        typer.Option(help="Classes are paths, whose levels this separates, such as /."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the hierarchy away.")] = False,
    by: By = None,
    *,
    quiet: bool,
) -> tuple[str, int]:
    """Give the classes of a model parents."""
    if [table is not None, path_separator is not None, none].count(True) != 1:
        raise ValueError("give one of FILE, --path-separator and --none.")
    given = path_separator if table is None else read_pairs(table)
    with _noting_warnings(quiet):
        found = None if given is None else _as_labels(teacher.model, given)
        change_number = teacher.set_hierarchy(found, by=by)
    nodes = teacher.model.hierarchy_
    shown = "no hierarchy" if nodes is None else f"a hierarchy of {count(nodes.n_nodes, 'node')}"
    return f"The model has {shown} now.", change_number


@changes_model
def move(
    teacher: Any,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A class, or an inner node of the hierarchy.")
    ],
    parents: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARENT]...", help="Its parents from now on; none: it is a root."),
    ] = None,
    by: By = None,
) -> tuple[str, int]:
    """Give a class, or an inner node of the hierarchy, other parents."""
    label, *above = [as_label(teacher.model, text) for text in (node, *(parents or ()))]
    shown = f"below {', '.join(map(str, above))}" if above else "a root"
    return f"{label} is {shown} now.", teacher.move_class(label, above, by=by)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of a table; a TSV file may have no header: child, tab, parent."""
    from longtail.exceptions import DataFormatError

    try:
        chunks, _ = read_labelled(path, "child", ["parent"], may_lack_header=True)
        return [
            (child, parent)
            for chunk in chunks
            for child, parent in zip(chunk.labels, chunk.texts, strict=True)
            if parent
        ]
    except DataFormatError as error:
        raise ValueError(
            f"{error}. --hierarchy takes a table with the columns child and parent; without "
            "header: child, tab, parent."
        ) from None
