"""`longtail teach` and `longtail forget`: add documents to a model and take them out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.answers import as_label
from longtail.cli.edit import changes_model
from longtail.cli.inputs import (
    Source,
    as_model_labels,
    match_source,
    n_terms_of,
    one_document,
    read_documents,
)
from longtail.cli.shared_options import (
    By,
    ClassNames,
    LabelColumns,
    Layout,
    TextColumns,
    takes,
)
from longtail.cli.show import progress
from longtail.exceptions import DataFormatError, DocumentError

_Content = Annotated[
    str,
    typer.Argument(
        metavar="TEXT|FILE",
        help="With --class the text of one document, otherwise a table; - is standard input.",
    ),
]


@takes(layout=Layout)
@changes_model
def teach(
    teacher: Any,
    content: _Content,
    label: ClassNames = None,
    by: By = None,
    text: TextColumns = None,
    label_column: LabelColumns = None,
    *,
    layout: Layout,
    refine: Annotated[
        bool,
        typer.Option("--refine/--no-refine", help="Refine the model where that is due."),
    ] = True,
    quiet: bool,
) -> tuple[str, int]:
    """Add documents to a model, of known or new classes.

    They take effect at once, are kept in a journal beside the model, and can be undone.
    """
    source = Source([content], text, label_column, layout)
    return _change_documents(teacher, teacher.teach, "taught", source, label, by, quiet)


@takes(layout=Layout)
@changes_model
def forget(
    teacher: Any,
    content: _Content,
    label: ClassNames = None,
    erase: Annotated[
        bool,
        typer.Option(
            "--erase",
            help="Leave no copy of the documents in the journal; no undo of anything afterwards.",
        ),
    ] = False,
    by: By = None,
    text: TextColumns = None,
    label_column: LabelColumns = None,
    *,
    layout: Layout,
    quiet: bool,
) -> tuple[str, int]:
    """Take documents out of a model, exactly as if they had never been in its classes.

    Give them as they were fitted or taught; all of them are forgotten or none. A class with none
    left disappears.
    """
    source = Source([content], text, label_column, layout)
    change = partial(teacher.forget, erase=erase)
    return _change_documents(teacher, change, "forgotten", source, label, by, quiet)


def _change_documents(
    teacher: Any,
    change: Callable[..., int],
    done: str,
    source: Source,
    label: list[str] | None,
    by: str | None,
    quiet: bool,
) -> tuple[str, int]:
    """Teach or forget one text, or all documents of a table, in one change; say what was done."""
    [content] = source.files
    if label:
        if source.label or source.text:
            raise ValueError("--class names the class of one text; --text and --label of a table.")
        named, documents, labels = _read_one(teacher.model, source, label)
        change_number = change(documents, labels, by=by)
        return f"{count(1, 'document')} of {', '.join(named)} {done}.", change_number
    if content != "-" and not Path(content).exists():
        raise ValueError(
            f"there is no file {content!r}. To give a text itself, name its class: --class."
        )
    documents, labels, lines = _read_table(teacher.model, source, quiet)
    try:
        change_number = change(documents, labels, by=by)
    except DocumentError as error:
        reason, line = f"{error.reason} Nothing was changed.", lines[error.document]
        raise DataFormatError(source.name, reason, line) from None
    n_classes = len(set(map(str, labels)))
    kind = "label" if teacher.model.multilabel_ else "document"
    return f"{count(len(labels), kind)} of {count(n_classes, 'class')} {done}.", change_number


def _read_one(model: Any, source: Source, label: list[str]) -> tuple[list[str], Any, list[Any]]:
    """Return the labels of one text as they were given, the documents, and their labels."""
    document = one_document(model, source.files[0], source.layout.zero_based)
    named = [one for given in label for one in _split(model, given)]
    labels = [as_label(model, one) for one in named]
    if len(labels) > 1 and not model.multilabel_:
        raise ValueError("the model has one class for each document; give --class once.")
    # The sums of a model count (document, label) pairs: several labels are as many changes.
    rows = [0] * len(labels)
    documents = document * len(labels) if isinstance(document, list) else document[rows]
    return named, documents, labels


def _read_table(model: Any, source: Source, quiet: bool) -> tuple[Any, list[Any], list[int]]:
    """Return all documents of a table with labels and lines, so that a bad row changes nothing."""
    from longtail.datasets.records import join_contents

    source = match_source(source, model, quiet)
    with (
        progress(quiet) as update,
        read_documents(source, update, labelled=True, n_terms=n_terms_of(model)) as chunks,
    ):
        read = list(chunks)
    if model.multilabel_:
        read = [chunk.replicate() for chunk in read]
    elif any(isinstance(label, list) for chunk in read for label in chunk.label_lists()):
        raise ValueError(
            "the model has one class for each document, and there are documents with several "
            "labels. Give --replicate to take them as one document of each label."
        )
    if not any(len(chunk) for chunk in read):
        raise ValueError(f"{source.name} has no document that can be used.")
    labels, lines = _labels(model, source, read), [n for chunk in read for n in chunk.lines]
    return join_contents([chunk.content for chunk in read]), labels, lines


def _labels(model: Any, source: Source, read: list[Any]) -> list[Any]:
    """Return all labels, in the type that the model's classes have; a bad one by its line."""
    labels = []
    for chunk in read:
        for label, line in zip(chunk.label_lists(), chunk.lines, strict=True):
            try:
                labels.append(as_model_labels(model, label))
            except ValueError as error:
                raise DataFormatError(source.name, str(error), line) from None
    return labels


def _split(model: Any, label: str) -> list[str]:
    """Return the labels that a model's tables would have in `--class`, unless it is a class."""
    columns = getattr(model, "columns_", None)
    if columns is None or label in map(str, model.classes_.tolist()):
        return [label]
    found: list[str] = columns.split_labels(label)
    return found
