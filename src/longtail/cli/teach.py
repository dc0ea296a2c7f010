"""`longtail teach` and `longtail forget`: change a model, with effect at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.inputs import (
    Source,
    as_label,
    check_kind,
    check_model,
    known_label,
    n_terms_of,
    one_document,
    read_documents,
)
from longtail.cli.options import (
    AsJson,
    By,
    ClassName,
    LabelColumn,
    Layout,
    ModelPath,
    Quiet,
    TextColumns,
    reads_table,
)
from longtail.cli.show import clear_errors, count, print_json, progress, say

# Characters of text, or terms of counts, in one record of the log, whose size is limited.
_LARGEST_BATCH = 500_000

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
    label: ClassName = None,
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
    label_column: LabelColumn = None,
    *,
    layout: Layout,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add documents to a model, of known or new classes, or change its classes.

    Every change takes effect at once, is kept in a log beside the model, and can be undone.
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
            said = _change_classes(teacher, rename, merge, remove, undo, by)
            numbers = [said[1]]
            sentence = said[0]
        else:
            source = Source(content, text, label_column, layout)
            sentence, numbers = _change_documents(
                teacher, teacher.teach, "taught", source, label, by, quiet
            )
        _report(teacher, sentence, numbers, as_json, quiet)


@reads_table
def forget(
    model: ModelPath,
    content: _Content,
    label: ClassName = None,
    by: By = None,
    text: TextColumns = None,
    label_column: LabelColumn = None,
    *,
    layout: Layout,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take documents out of a model, exactly as if they had never been in its classes.

    Give them as they were fitted or taught. A class with none left disappears.
    """
    with clear_errors():
        source = Source(content or "-", text, label_column, layout)
        teacher = _open(model)
        sentence, numbers = _change_documents(
            teacher, teacher.forget, "forgotten", source, label, by, quiet
        )
        _report(teacher, sentence, numbers, as_json, quiet)


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
    label: str | None,
    by: str | None,
    quiet: bool,
) -> tuple[str, list[int]]:
    """Teach or forget one text, or all documents of a table; return what was done."""
    model = teacher.model
    if label is not None:
        if source.label or source.text:
            raise ValueError("--class names the class of one text; --text and --label of a table.")
        document = one_document(model, source.path, source.layout.zero_based)
        return f"{count(1, 'document')} of {label} {done}.", [
            change(document, [as_label(model, label)], by=by)
        ]
    if source.path != "-" and not Path(source.path).exists():
        raise ValueError(
            f"there is no file {source.path!r}. To give a text itself, name its class: --class."
        )
    check_kind(model, source)
    # All is read before anything is changed, so that a bad row changes nothing.
    with (
        progress(quiet) as update,
        read_documents(source, update, labelled=True, n_terms=n_terms_of(model)) as chunks,
    ):
        read = list(chunks)
    n_documents = sum(len(chunk) for chunk in read)
    if not n_documents:
        raise ValueError(f"{source.name} has no document that can be used.")
    numbers = [change(documents, labels, by=by) for documents, labels in _batches(model, read)]
    n_classes = len({str(label) for chunk in read for label in chunk.labels})
    return f"{count(n_documents, 'document')} of {count(n_classes, 'class')} {done}.", numbers


def _batches(model: Any, read: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Cut documents into batches that one record of the log can hold."""
    for chunk in read:
        if isinstance(chunk.content, list):
            sizes = [len(text) for text in chunk.content]
        else:
            sizes = (chunk.content.indptr[1:] - chunk.content.indptr[:-1]).tolist()
        start = size = 0
        for i, more in enumerate(sizes):
            if i > start and size + more > _LARGEST_BATCH:
                yield chunk.content[start:i], _labels(model, chunk.labels[start:i])
                start, size = i, 0
            size += more
        yield chunk.content[start:], _labels(model, chunk.labels[start:])


def _labels(model: Any, labels: Any) -> list[Any]:
    """Return labels of the type that the model's classes have."""
    return [as_label(model, label) if isinstance(label, str) else int(label) for label in labels]


def _report(teacher: Any, sentence: str, numbers: list[int], as_json: bool, quiet: bool) -> None:
    """Say what was done and what the model holds now."""
    statistics = teacher.model.statistics_
    if as_json:
        print_json(
            {
                "done": sentence,
                "changes": numbers,
                "documents": statistics.n_documents,
                "classes": statistics.n_classes,
            }
        )
    elif not quiet:
        which = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        say(
            f"Change {which}: {sentence} The model has "
            f"{count(statistics.n_documents, 'document')} of "
            f"{count(statistics.n_classes, 'class')}."
        )
