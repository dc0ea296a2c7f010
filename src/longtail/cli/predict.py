"""`longtail predict`: the classes of new documents, row by row."""

from __future__ import annotations

import os
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.answers import class_texts, find_path, knows_probabilities
from longtail.cli.choice import Choice
from longtail.cli.cluster import Cluster, predict_on
from longtail.cli.inputs import (
    Source,
    load_model,
    match_source,
    n_terms_of,
    one_document,
    read_documents,
    shorten_text,
)
from longtail.cli.outputs import STANDARD_OUTPUT, check_writable
from longtail.cli.prediction_rows import (
    FORMATS,
    Columns,
    Prediction,
    find_written,
    open_output,
)
from longtail.cli.shared_options import (
    AsJson,
    Layout,
    ModelPath,
    Quiet,
    TextColumns,
    Threads,
    options_of,
    takes,
)
from longtail.cli.show import clear_errors, print_json, print_note, print_table, progress, say

_TOP_OF_A_TEXT = 5


@takes(layout=Layout, choice=Choice, where=options_of(Cluster, "dask", "workers"))
def predict(
    model: ModelPath,
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...|TEXT",
            help="Tables or svmlight files, as for fit; or one text itself.",
        ),
    ],
    text: TextColumns = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, help="Classes for each document: 1, or 5 for a text."),
    ] = None,
    *,
    choice: Choice,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write; - is the terminal.")
    ] = STANDARD_OUTPUT,
    out_format: Annotated[
        str | None,
        typer.Option("--out-format", help=f"{FORMATS}; by the ending when left out."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to copy; give it again for more."),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            help="CSV, TSV: an apostrophe before texts that a spreadsheet would evaluate."
        ),
    ] = True,
    layout: Layout,
    where: dict[str, Any],
    threads: Threads = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the classes of the documents in a table, with their probabilities, or of one text.

    Documents are read and written in chunks, so the table may be larger than memory.
    """
    with clear_errors():
        source = Source(documents, text, None, layout, keep or [])
        choice.check(top)
        if _is_text(source):
            from longtail.datasets.records import Chunk

            classifier = load_model(model, threads)
            run = choice.make_predictor(classifier)
            document = one_document(classifier, documents[0], layout.zero_based)
            [row] = run(Chunk(document, [], [1], [[]]), top or _TOP_OF_A_TEXT)
            _print_text(classifier, row, as_json)
            return
        cluster = Cluster(**where)
        if cluster.is_asked:
            _check_cluster(out, out_format, keep or choice != Choice())
            classifier = load_model(model, 1)
            source = match_source(source, classifier, quiet)
            with progress(quiet) as update:
                files = predict_on(cluster, model, source, out, out_format or "jsonl", top, update)
            if not quiet:
                print_note(f"the predictions of {count(len(files), 'file')} are in {out}.")
            return
        written = find_written(out, "jsonl" if as_json else out_format)
        inputs: list[str | Path] = [model, *source.paths]
        if out != STANDARD_OUTPUT:
            check_writable(out, inputs)
        classifier = load_model(model, threads)
        source = match_source(source, classifier, quiet)
        run = choice.make_predictor(classifier)
        n_documents = n_kept = n_without_words = 0
        columns = Columns.of(classifier, source, top, escape_formulas, written)
        with (
            progress(quiet) as update,
            read_documents(
                source,
                update,
                labelled=False,
                n_terms=n_terms_of(classifier),
                doing="predicting",
            ) as chunks,
        ):
            first = list(islice(chunks, 1))  # what is wrong with the table comes before any output
            with open_output(out, written, columns, inputs) as write:
                for chunk in chain(first, chunks):
                    rows = run(chunk, top)
                    write(rows)
                    n_kept += sum(row.label is not None and row.label != [] for row in rows)
                    n_without_words += sum(not row.classes for row in rows)
                    n_documents += len(chunk)
        if not quiet and out != STANDARD_OUTPUT:
            held = f", {n_documents - n_kept:,} of them without a class"
            held = "" if choice.precision is None else held
            print_note(
                f"{count(n_documents, 'document')} predicted{held}; they are in {out}."
                + _describe_unknown(n_without_words, " ")
            )
        elif not quiet and n_without_words:
            print_note(_describe_unknown(n_without_words))


def _check_cluster(out: Path, out_format: str | None, others: Any) -> None:
    """Refuse what does not go with --dask and --workers."""
    if out == STANDARD_OUTPUT or (out.exists() and not out.is_dir()):
        raise ValueError(
            "--dask and --workers write a file for each file that they read; give a folder: "
            "--out FOLDER."
        )
    if out_format not in (None, "jsonl", "parquet"):
        raise ValueError(
            f"--dask and --workers write jsonl or parquet; got --out-format {out_format}."
        )
    if others:
        raise ValueError(
            "--keep, --precision, --each, --unknown, --max-labels, --within, --exclude, --branch, "
            "--back-off and --level do not go with --dask and --workers; the files have the lines "
            "and probabilities to add them."
        )


def _describe_unknown(n_documents: int, before: str = "") -> str:
    """Say how many documents have no class because no word of theirs is known."""
    if not n_documents:
        return ""
    have = "has" if n_documents == 1 else "have"
    return f"{before}{count(n_documents, 'document')} {have} no known word."


def _is_text(source: Source) -> bool:
    """Return whether what was given is a document, not a file: it names no file and no format."""
    from longtail.datasets.tables import find_format

    document, *more = source.files
    if source.text or more or document == "-" or source.layout.format:
        return False
    if any(map(os.path.exists, source.paths)):
        return False
    try:
        find_format(document)
    except ValueError:
        return True
    return any(map(str.isspace, document))


def _print_text(classifier: Any, row: Prediction, as_json: bool) -> None:
    """Print the best classes of one text."""
    value = "probability" if knows_probabilities(classifier) else "score"
    sets, texts = classifier.multilabel_, class_texts(classifier)
    path = [] if sets else find_path(classifier, row.label)
    if as_json:
        ranked = [
            {"class": label, **({"text": text} if texts else {}), value: score}
            for label, text, score in zip(row.classes, row.texts, row.scores, strict=True)
        ]
        shown = {"labels" if sets else "class": row.label, "ranking": ranked}
        print_json(shown | ({"path": path} if path else {}))
        return
    cells = [
        (
            str(label),
            *([shorten_text(text)] if texts else []),
            f"{score:.1%}" if value == "probability" else f"{score:.4f}",
        )
        for label, text, score in zip(row.classes, row.texts, row.scores, strict=True)
    ]
    named = row.label if sets else [row.label]
    unsure = not named or named == [None]
    title = "not sure enough of a class" if unsure else ", ".join(map(str, named))
    if len(path) > 1:
        title = " > ".join(map(str, path))
    if not cells:
        say("The text has no known word, so no class.")
        return
    print_table(title, ("class", *(["text"] if texts else []), value), cells)
