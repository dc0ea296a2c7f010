"""`longtail teach` and `longtail forget`: change a model, with effect at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.cli.inputs import (
    Source,
    as_label,
    as_model_labels,
    check_model,
    gives_label_sets,
    known_label,
    match_source,
    n_terms_of,
    one_document,
    read_documents,
    replicate_labels,
)
from longtail.cli.options import (
    AsJson,
    By,
    ClassNames,
    LabelColumns,
    Layout,
    ModelPath,
    Quiet,
    TextColumns,
    reads_table,
)
from longtail.cli.show import clear_errors, describe_sizes, model_sizes, print_json, progress, say
from longtail.exceptions import DataFormatError, DocumentError

_Content = Annotated[
    str | None,
    typer.Argument(
        metavar="[TEXT|FILE]",
        help="With --class the text of one document, otherwise a table; - is standard input.",
    ),
]


@reads_table
def teach(
    model: ModelPath,
    content: _Content = None,
    label: ClassNames = None,
    rename: Annotated[
        tuple[str, str] | None,
        typer.Option("--rename", metavar="OLD NEW", help="Give a class another name."),
    ] = None,
    merge: Annotated[
        tuple[str, str] | None,
        typer.Option("--merge", metavar="CLASS INTO", help="Move a class's documents to another."),
    ] = None,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="CLASS", help="Forget a class altogether.")
    ] = None,
    undo: Annotated[
        int | None, typer.Option("--undo", metavar="N", min=1, help="Take the last N changes back.")
    ] = None,
    by: By = None,
    text: TextColumns = None,
    label_column: LabelColumns = None,
    *,
    layout: Layout,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add documents to a model, of known or new classes, or change its classes.

    Every change takes effect at once, is kept in a journal beside the model, and can be undone.
    """
    with clear_errors():
        given = [content, rename, merge, remove, undo]
        if sum(value is not None for value in given) != 1:
            raise ValueError(
                "give one of: a text with --class, a table with --text and --label, --rename OLD "
                "NEW, --merge CLASS INTO, --remove CLASS, --undo N."
            )
        teacher = _open(model)
        if content is None:
            sentence, change_number = _change_classes(teacher, rename, merge, remove, undo, by)
        else:
            source = Source(content, text, label_column, layout)
            sentence, change_number = _change_documents(
                teacher, teacher.teach, "taught", source, label, by, quiet
            )
        _report(teacher, sentence, change_number, as_json, quiet)


@reads_table
def forget(
    model: ModelPath,
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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take documents out of a model, exactly as if they had never been in its classes.

    Give them as they were fitted or taught; all of them are forgotten or none. A class with none
    left disappears.
    """
    with clear_errors():
        source = Source(content or "-", text, label_column, layout)
        teacher = _open(model)
        sentence, change_number = _change_documents(
            teacher, partial(teacher.forget, erase=erase), "forgotten", source, label, by, quiet
        )
        _report(teacher, sentence, change_number, as_json, quiet)


def _open(path: Path) -> Any:
    """Open a model for changes."""
    from longtail.teaching import Teacher

    check_model(path)
    return Teacher(path)


def _change_classes(
    teacher: Any,
    rename: tuple[str, str] | None,
    merge: tuple[str, str] | None,
    remove: str | None,
    undo: int | None,
    by: str | None,
) -> tuple[str, int]:
    """Rename, merge, remove or undo; return what was done and the number of the change."""
    model = teacher.model
    if rename is not None:
        old, new = known_label(model, rename[0]), as_label(model, rename[1])
        return f"{old} is now called {new}.", teacher.rename_class(old, new, by=by)
    if merge is not None:
        source, into = known_label(model, merge[0]), known_label(model, merge[1])
        return f"{source} is now part of {into}.", teacher.merge_classes(source, into, by=by)
    if remove is not None:
        label = known_label(model, remove)
        return f"{label} is removed.", teacher.remove_class(label, by=by)
    return f"{count(undo or 0, 'change')} undone.", teacher.undo(undo, by=by)


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
    model = teacher.model
    if label:
        if source.label or source.text:
            raise ValueError("--class names the class of one text; --text and --label of a table.")
        document = one_document(model, source.path, source.layout.zero_based)
        labels = [as_label(model, one) for one in label]
        if len(labels) > 1 and not gives_label_sets(model):
            raise ValueError("the model has one class for each document; give --class once.")
        # The sums of a model count (document, label) pairs: several labels are as many changes.
        rows = [0] * len(labels)
        documents = document * len(labels) if isinstance(document, list) else document[rows]
        change_number = change(documents, labels, by=by)
        return f"{count(1, 'document')} of {', '.join(label)} {done}.", change_number
    if source.path != "-" and not Path(source.path).exists():
        raise ValueError(
            f"there is no file {source.path!r}. To give a text itself, name its class: --class."
        )
    source = match_source(source, model, quiet)
    # All is read before anything is changed, so that a bad row changes nothing.
    with (
        progress(quiet) as update,
        read_documents(source, update, labelled=True, n_terms=n_terms_of(model)) as chunks,
    ):
        read = list(chunks)
    if gives_label_sets(model):
        read = [replicate_labels(chunk) for chunk in read]
    elif any(isinstance(label, list) for chunk in read for label in chunk.label_lists()):
        raise ValueError(
            "the model has one class for each document, and there are documents with several "
            "labels. Give --replicate to take them as one document of each label."
        )
    if not any(len(chunk) for chunk in read):
        raise ValueError(f"{source.name} has no document that can be used.")
    documents, labels = _join(read), _labels(model, source, read)
    try:
        change_number = change(documents, labels, by=by)
    except DocumentError as error:
        line = [line for chunk in read for line in chunk.lines][error.document]
        raise DataFormatError(source.name, f"{error.reason} Nothing was changed.", line) from None
    n_classes = len(set(map(str, labels)))
    kind = "label" if gives_label_sets(model) else "document"
    return f"{count(len(labels), kind)} of {count(n_classes, 'class')} {done}.", change_number


def _join(read: list[Any]) -> Any:
    """Return the documents of all chunks: a list of texts, or one matrix of counts."""
    if isinstance(read[0].content, list):
        return [text for chunk in read for text in chunk.content]
    from scipy.sparse import vstack

    return vstack([chunk.content for chunk in read], format="csr")


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


def _report(teacher: Any, sentence: str, change_number: int, as_json: bool, quiet: bool) -> None:
    """Say what was done and what the model holds now."""
    sizes = model_sizes(teacher.model, fitted=False)
    if as_json:
        print_json({"done": sentence, "changes": [change_number], **sizes})
    elif not quiet:
        say(f"Change {change_number}: {sentence} The model has {describe_sizes(sizes)}.")
