"""`longtail check`: what is odd about a table, before a model is fitted on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.cli.inputs import (
    Source,
    ask_separator,
    check_columns,
    read_documents,
)
from longtail.cli.shared_options import (
    AsJson,
    Content,
    LabelColumns,
    Layout,
    Quiet,
    TablePaths,
    takes,
)
from longtail.cli.show import clear_errors, print_json, print_table, progress, say


@takes(content=Content, layout=Layout)
def check(
    files: TablePaths,
    content: Content,
    label: LabelColumns = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="FILE", help="A table for testing: are its documents here too?"
        ),
    ] = None,
    *,
    layout: Layout,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Look for what spoils a model: duplicates, contradictions, empty texts, labels that leak."""
    with clear_errors():
        from longtail.datasets.checking import check_documents

        source = Source(files, content.text, label, layout, fields=content.fields)
        check_columns(source, labelled=True)
        source = ask_separator(source)
        other = None if against is None else replace(source, files=[str(against)])
        with progress(quiet, compiles=False) as update:
            result = check_documents(
                _read(source, update), () if other is None else _read(other, update)
            )
        if as_json:
            print_json(asdict(result))
            return
        sizes = f"{count(result.n_documents, 'document')} of {count(result.n_classes, 'class')}"
        print_table(
            f"{sizes}; a document has {count(result.median_words, 'word')} (median)",
            ("documents of a class", "classes"),
            [(name, f"{n_classes:,}") for name, n_classes in result.class_sizes.items()],
        )
        for finding in result.findings:
            title = f"{finding.name}: {finding.count:,} ({finding.share:.1%}). {finding.advice}"
            if finding.examples:
                print_table(title, ("for example",), [(line,) for line in finding.examples])
            else:
                say(title)
        if not result.findings:
            say("Nothing odd was found.")


def _read(source: Source, update: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield documents, labels and lines; of records the values."""
    from longtail._records import join_values, read_fields

    fields = read_fields(source.fields)
    with read_documents(source, update, labelled=True) as chunks:
        for chunk in chunks:
            sets = (tuple(x) if isinstance(x, list) else x for x in chunk.label_lists())
            content = chunk.content
            if fields is not None:
                content = [join_values(text, fields) for text in content]
            yield content, list(sets), chunk.lines
