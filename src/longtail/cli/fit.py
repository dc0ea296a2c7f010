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
    TablePaths,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import Update, clear_errors, count, print_json, progress, say


@reads_table
def fit(
    files: TablePaths,
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
    ngram_min_df: Annotated[
        int | None, typer.Option("--ngram-min-df", help="The same for pairs and n-grams.")
    ] = None,
    ngram_weight: Annotated[
        float | None, typer.Option("--ngram-weight", help="What a pair counts, a word counts 1.")
    ] = None,
    stem: Annotated[
        bool | None, typer.Option("--stem/--no-stem", help="Remove English plural endings.")
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option("--C", help="How closely residuals follow the documents; default 1."),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option("--candidates", min=1, help="Classes ranked for each document.")
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
        source = Source(files[0], text, label, layout, more=tuple(files[1:]))
        check_columns(source, labelled=True)
        settings = _given(
            ngrams=ngrams,
            char_ngrams=char_ngrams,
            min_df=min_df,
            ngram_min_df=ngram_min_df,
            ngram_weight=ngram_weight,
            stem=stem,
        )
        if settings and source.holds_counts:
            names = ", ".join("--" + name.replace("_", "-") for name in settings)
            raise ValueError(f"{names}: options for text, not for counts.")
        learner = _given(C=strength, candidates=candidates)
        _check_target(out, discard_changes)
        wall, processor = time.perf_counter(), time.process_time()
        with progress(quiet) as update:
            model = _fit(source, settings, learner, threads, seed, update)
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


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _fit(
    source: Source,
    settings: dict[str, Any],
    learner: dict[str, Any],
    threads: int,
    seed: int,
    update: Update,
) -> Any:
    """Read a source and fit the classifier for what it holds."""
    import longtail
    from longtail._progress import report_progress

    classifier = longtail.LongTailClassifier(n_jobs=threads, random_state=seed, **learner)
    with (
        report_progress(lambda stage, done, total: update(stage, done, total or None)),
        read_documents(source, update, labelled=True) as chunks,
    ):
        if not source.holds_counts:
            texts = longtail.TextClassifier(
                classifier if learner else None,
                _make_vectorizer(settings),
                n_jobs=threads,
                random_state=seed,
            )
            return texts.fit_chunks(_pairs(source, chunks, update))
        X, y = _stack(source, chunks)
        return classifier.fit(X, y)


def _make_vectorizer(settings: dict[str, Any]) -> Any:
    """Return the vectorizer for the options given, or None where there are none."""
    from longtail.text import TextVectorizer

    options = dict(settings)
    if "ngrams" in options:
        options["ngram_range"] = (1, options.pop("ngrams"))
    if "char_ngrams" in options:
        options["char_ngram_range"] = options.pop("char_ngrams")
    return TextVectorizer(**options) if options else None


def _pairs(source: Source, chunks: Any, update: Update) -> Any:
    """Yield texts and labels; when they end, the fit itself begins."""
    n_documents = 0
    for chunk in chunks:
        n_documents += len(chunk)
        yield chunk.content, chunk.labels
    if not n_documents:
        raise ValueError(_nothing(source))
    update("counting terms", 0, None)


def _stack(source: Source, chunks: Any) -> tuple[Any, Any]:
    """Return the counts of all chunks as one matrix, as wide as the widest."""
    import numpy as np
    from scipy.sparse import csr_array, vstack

    read = list(chunks)
    if not read:
        raise ValueError(_nothing(source))
    n_terms = max(chunk.content.shape[1] for chunk in read)
    for chunk in read:
        chunk.content.resize((chunk.content.shape[0], n_terms))
    X = csr_array(vstack([chunk.content for chunk in read], format="csr"))
    return X, np.concatenate([chunk.labels for chunk in read])


def _nothing(source: Source) -> str:
    """Say that there is nothing to learn from."""
    return f"{source.name} has no document that can be used; at least 2 classes are needed."


def _check_target(out: Path, discard_changes: bool) -> None:
    """Refuse a place where the model cannot go, before the work is done."""
    from longtail.store.container import open_model
    from longtail.store.journal import journal_path, read_journal

    check_writable(out, model=True)
    if out.exists() and out.stat().st_size:
        open_model(out, verify=False)  # refuses to replace what is not a model
    journal = None if discard_changes else read_journal(journal_path(out))
    if journal is not None and journal.changes:
        raise ValueError(
            f"{out} was taught {count(len(journal.changes), 'change')} since it was saved, which "
            "do not fit a new model. Choose another name, or give --discard-changes to drop them."
        )
