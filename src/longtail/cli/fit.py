"""`longtail fit`: from a table to a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.files import check_writable
from longtail.cli.inputs import Source, check_columns, read_documents
from longtail.cli.options import (
    AsJson,
    LabelColumn,
    Layout,
    Quiet,
    Seed,
    TablePath,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import Update, clear_errors, count, print_json, progress, say


@reads_table
def fit(
    file: TablePath,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="The model file.")],
    text: TextColumns = None,
    label: LabelColumn = None,
    *,
    layout: Layout,
    discard_changes: Annotated[
        bool,
        typer.Option("--discard-changes", help="Replace a model and drop what it was taught."),
    ] = False,
    ngrams: Annotated[
        int | None,
        typer.Option("--ngrams", help="2: pairs of words are terms too; 1: words only."),
    ] = None,
    char_ngrams: Annotated[
        tuple[int, int] | None,
        typer.Option("--char-ngrams", help="Shortest and longest piece of a word, such as 3 5."),
    ] = None,
    min_df: Annotated[
        int | None, typer.Option("--min-df", help="Leave out words in fewer documents.")
    ] = None,
    threads: Threads = -1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn the classes of a table of labelled documents and write a model file.

    A table of text gives a model of texts; an svmlight file gives a model of counts.
    """
    with clear_errors():
        source = Source(file, text, label, layout)
        check_columns(source, labelled=True)
        given = {"ngrams": ngrams, "char_ngrams": char_ngrams, "min_df": min_df}
        settings = {name: value for name, value in given.items() if value is not None}
        if settings and source.holds_counts:
            raise ValueError("--ngrams, --char-ngrams and --min-df are for text, not for counts.")
        _check_target(out, discard_changes)
        wall, processor = time.perf_counter(), time.process_time()
        with progress(quiet) as update:
            model = _fit(source, settings, threads, seed, update)
            update("writing", 0, None)
            model.save(out, discard_changes=discard_changes)
        summary = {
            "model": str(out),
            "kind": type(model).__name__,
            "documents": model.statistics_.n_documents,
            "classes": model.statistics_.n_classes,
            "terms": model.statistics_.n_terms,
            "bytes": out.stat().st_size,
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
        }
        if as_json:
            print_json(summary)
        elif not quiet:
            say(
                f"{count(summary['documents'], 'document')} of "
                f"{count(summary['classes'], 'class')} with {count(summary['terms'], 'term')}, "
                f"learned in {summary['seconds']:.1f} s. "
                f"The model is in {out} ({summary['bytes'] / 1e6:,.1f} MB)."
            )


def _fit(source: Source, settings: dict[str, Any], threads: int, seed: int, update: Update) -> Any:
    """Read a source and fit the classifier for what it holds."""
    import longtail

    with read_documents(source, update, labelled=True) as chunks:
        if not source.holds_counts:
            classifier = longtail.TextClassifier(n_jobs=threads, random_state=seed, **settings)
            return classifier.fit_chunks(_pairs(source, chunks, update))
        X, y = _stack(source, chunks)
    update("fitting", 0, None)
    return longtail.LongTailClassifier(n_jobs=threads, random_state=seed).fit(X, y)


def _pairs(source: Source, chunks: Any, update: Update) -> Any:
    """Yield texts and labels; when they end, the fit itself begins."""
    n_documents = 0
    for chunk in chunks:
        n_documents += len(chunk)
        yield chunk.content, chunk.labels
    if not n_documents:
        raise ValueError(_nothing(source))
    update("fitting", 0, None)


def _stack(source: Source, chunks: Any) -> tuple[Any, Any]:
    """Return the counts of all chunks as one matrix, as wide as the widest."""
    import numpy as np
    from scipy.sparse import csr_array, vstack

    parts = list(chunks)
    if not parts:
        raise ValueError(_nothing(source))
    width = max(part.content.shape[1] for part in parts)
    for part in parts:
        part.content.resize((part.content.shape[0], width))
    X = csr_array(vstack([part.content for part in parts], format="csr"))
    return X, np.concatenate([part.labels for part in parts])


def _nothing(source: Source) -> str:
    """Say that there is nothing to learn from."""
    return f"{source.name} has no document that can be used; at least 2 classes are needed."


def _check_target(out: Path, discard_changes: bool) -> None:
    """Refuse a place where the model cannot go, before the work is done."""
    from longtail.store.container import open_model
    from longtail.store.journal import journal_path, read_journal

    check_writable(out)
    if out.exists() and out.stat().st_size:
        open_model(out, verify=False)  # refuses to replace what is not a model
    journal = None if discard_changes else read_journal(journal_path(out))
    if journal is not None and journal.changes:
        raise ValueError(
            f"{out} was taught {count(len(journal.changes), 'change')} since it was saved, which "
            "do not fit a new model. Choose another name, or give --discard-changes to drop them."
        )
