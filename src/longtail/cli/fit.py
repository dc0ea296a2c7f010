"""`longtail fit`: from a table to a model file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.cli.cluster import (
    Cluster,
    DaskAddress,
    MemoryLimit,
    ScratchFolder,
    Workers,
    fit_on,
)
from longtail.cli.expect import expectations, print_expectations
from longtail.cli.files import check_writable
from longtail.cli.inputs import Documents, Source, ask_separator, check_columns, read_documents
from longtail.cli.options import (
    AsJson,
    LabelColumns,
    Layout,
    Quiet,
    Seed,
    TablePaths,
    TextColumns,
    Threads,
    reads_table,
)
from longtail.cli.show import (
    Update,
    clear_errors,
    describe_sizes,
    model_sizes,
    print_json,
    progress,
    say,
)

_TEXT: Any = {"rich_help_panel": "How text is read"}
_NOT_TOKENIZING = ("remember_documents", "class_texts")


@reads_table
def fit(
    files: TablePaths,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="The model file.")],
    text: TextColumns = None,
    label: LabelColumns = None,
    *,
    layout: Layout,
    discard_changes: Annotated[
        bool,
        typer.Option("--discard-changes", help="Replace a model and drop what it was taught."),
    ] = False,
    ngrams: Annotated[
        int | None,
        typer.Option("--ngrams", help="2: pairs of words are terms too; 1: words only.", **_TEXT),
    ] = None,
    char_ngrams: Annotated[
        tuple[int, int] | None,
        typer.Option(
            "--char-ngrams", help="Shortest and longest piece of a word, such as 3 5.", **_TEXT
        ),
    ] = None,
    min_df: Annotated[
        int | None, typer.Option("--min-df", help="Leave out words in fewer documents.", **_TEXT)
    ] = None,
    max_df: Annotated[
        float | None,
        typer.Option("--max-df", help="Leave out terms in a larger share of documents.", **_TEXT),
    ] = None,
    max_features: Annotated[
        int | None, typer.Option("--max-features", help="Keep the most frequent terms.", **_TEXT)
    ] = None,
    ngram_min_df: Annotated[
        int | None, typer.Option("--ngram-min-df", help="The same for pairs and n-grams.", **_TEXT)
    ] = None,
    ngram_weight: Annotated[
        float | None,
        typer.Option("--ngram-weight", help="What a pair counts, a word counts 1.", **_TEXT),
    ] = None,
    stem: Annotated[
        bool | None,
        typer.Option("--stem/--no-stem", help="Remove English plural endings.", **_TEXT),
    ] = None,
    lowercase: Annotated[
        bool | None, typer.Option("--lowercase/--keep-case", help="A is a, or not.", **_TEXT)
    ] = None,
    keep_accents: Annotated[
        bool, typer.Option("--keep-accents", help="é is not e.", **_TEXT)
    ] = False,
    stop_words: Annotated[
        str | None,
        typer.Option(
            "--stop-words",
            metavar="FILE|english",
            help="Words to leave out: those of a file, or those that English has.",
            **_TEXT,
        ),
    ] = None,
    token_pattern: Annotated[
        str | None,
        typer.Option("--token-pattern", help="Regular expression that finds words.", **_TEXT),
    ] = None,
    split_unspaced: Annotated[
        bool | None,
        typer.Option(
            "--split-unspaced/--keep-unspaced",
            help="Chinese, Japanese, Thai, ...: character bigrams.",
            **_TEXT,
        ),
    ] = None,
    remember_documents: Annotated[
        bool,
        typer.Option(
            "--remember-documents",
            help="Keep a hash of each document, so that forget refuses what was never added.",
            **_TEXT,
        ),
    ] = False,
    class_texts: Annotated[
        Path | None,
        typer.Option(
            "--class-texts",
            metavar="FILE",
            help="Names of classes: a table with columns label and text, or without header: "
            "label, tab, text. Those without documents are learned too.",
            **_TEXT,
        ),
    ] = None,
    class_texts_label: Annotated[
        str | None,
        typer.Option(
            "--class-texts-label", metavar="COLUMN", help="Its column of labels.", **_TEXT
        ),
    ] = None,
    class_texts_text: Annotated[
        list[str] | None,
        typer.Option(
            "--class-texts-text",
            metavar="COLUMN",
            help="Its column of names; give it again to join several.",
            **_TEXT,
        ),
    ] = None,
    unique_labels: Annotated[
        bool,
        typer.Option(
            "--unique-labels", help="Every class has one document, and that is as it should be."
        ),
    ] = False,
    strength: Annotated[
        float | None,
        typer.Option("--C", help="How closely residuals follow the documents; default 1."),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option("--candidates", min=1, help="Classes ranked for each document.")
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Hold documents out for probabilities, thresholds and what to expect.",
        ),
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(
            "--time-budget",
            help="Seconds for learning; calibration, then residuals are left out to keep it.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            min=0,
            help="Documents of each class that the model keeps, for refine to learn from.",
        ),
    ] = None,
    dask: DaskAddress = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    scratch: ScratchFolder = None,
    threads: Threads = -1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn the classes of a table of labelled documents and write a model file.

    A table of text gives a model of texts; a file of counts gives a model of counts. Documents with
    several labels give a model of label sets.
    """
    with clear_errors():
        source = Source(files[0], text, label, layout, more=tuple(files[1:]))
        check_columns(source, labelled=True)
        source = ask_separator(source)
        settings = _given(
            ngrams=ngrams,
            char_ngrams=char_ngrams,
            min_df=min_df,
            ngram_min_df=ngram_min_df,
            max_df=max_df,
            max_features=max_features,
            ngram_weight=ngram_weight,
            stem=stem,
            lowercase=lowercase,
            keep_accents=keep_accents or None,
            stop_words=stop_words,
            token_pattern=token_pattern,
            split_unspaced=split_unspaced,
            remember_documents=remember_documents or None,
            class_texts=class_texts,
        )
        if settings and source.holds_counts:
            given = ", ".join("--" + name.replace("_", "-") for name in settings)
            raise ValueError(f"{given}: options for text, not for counts.")
        learner = _given(
            C=strength,
            candidates=candidates,
            calibrate=calibrate,
            time_budget=time_budget,
            memory=memory,
        )
        _check_target(out, discard_changes)
        columns = (class_texts_label, class_texts_text)
        names = None if class_texts is None else _read_class_texts(class_texts, *columns)
        cluster, cost = Cluster(dask, workers, memory_limit, scratch), dict[str, float]()
        wall, processor = time.perf_counter(), time.process_time()
        with progress(quiet) as update:
            make = partial(_make_estimator, source, settings, learner, threads, seed)
            if cluster.is_asked:
                with read_documents(source, update, labelled=True) as chunks:
                    next(chunks, None)  # what is wrong with columns and labels is said here
                model = make()
                cost = fit_on(cluster, model, source, update, names).summary()
                if not unique_labels and model.statistics_.class_sizes.max() <= 1:
                    raise ValueError(_all_unique(source))
                if not source.holds_counts:
                    _remember_columns(model, source)
            else:
                model = _fit(make, source, update, names, unique_labels)
            update("writing", 0, None)
            model.save(out, discard_changes=discard_changes)
        summary = {
            "model": str(out),
            "kind": type(model).__name__,
            **model_sizes(model),
            "terms": model.statistics_.n_terms,
            "bytes": out.stat().st_size,
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
            **cost,
            "expected": expectations(model),
        }
        if as_json:
            print_json(summary)
        elif not quiet:
            say(
                f"{describe_sizes(summary)} with {count(summary['terms'], 'term')}, "
                f"learned in {summary['seconds']:.1f} s. "
                f"The model is in {out} ({summary['bytes'] / 1e6:,.1f} MB)."
            )
            print_expectations(summary["expected"])


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _make_estimator(
    source: Source,
    settings: dict[str, Any],
    learner: dict[str, Any],
    threads: int,
    seed: int,
) -> Any:
    """Return the estimator for what a source holds."""
    import longtail

    classifier = longtail.LongTailClassifier(n_jobs=threads, random_state=seed, **learner)
    if source.holds_counts:
        return classifier
    return longtail.TextClassifier(
        classifier if learner else None,
        _make_vectorizer(settings),
        n_jobs=threads,
        random_state=seed,
        remember_documents=settings.get("remember_documents", False),
    )


def _read_class_texts(path: Path, label: str | None, text: list[str] | None) -> dict[str, str]:
    """Return the text of each label of a table; a TSV file may have no header: label, tab, text."""
    from longtail.datasets.delimited import Lines, plain_rows
    from longtail.datasets.limits import DEFAULT_LIMITS
    from longtail.datasets.tables import Table, find_format, read_text_chunks
    from longtail.exceptions import DataFormatError

    try:
        format = find_format(path)
    except ValueError:
        format = "tsv"
    columns, header = [label or "label", *(text or ["text"])], True
    texts: dict[str, str] = {}
    try:
        if format == "tsv" and label is None and text is None:
            _, first = next(plain_rows(Lines(path, "utf-8", DEFAULT_LIMITS), "\t"), (1, columns))
            header = len(first) != 2 or set(first) == set(columns)
        if not header:
            columns = ["1", "2"]
        table = Table(path, columns[1:], columns[0], format=format, header=header)
        for chunk in read_text_chunks(table):
            for line, name, named in zip(chunk.lines, chunk.labels, chunk.texts, strict=True):
                if not isinstance(name, str):
                    raise DataFormatError(path, f"expected one label, found {name!r}", line)
                if name in texts:
                    raise DataFormatError(path, f"label {name!r} is there twice", line)
                texts[name] = named
    except DataFormatError as error:
        raise ValueError(
            f"{error}. --class-texts takes a table with the columns label and text, or those that "
            "--class-texts-label and --class-texts-text name; without header: label, tab, text."
        ) from None
    return texts


def _fit(
    make: Callable[[], Any],
    source: Source,
    update: Update,
    class_texts: dict[str, str] | None,
    unique_labels: bool,
) -> Any:
    """Read a source and fit an estimator on it."""
    with read_documents(source, update, labelled=True) as chunks:
        first = list(islice(chunks, 1))  # a wrong column is an error before numba is imported
        model = make()
        documents: Iterator[Documents] = chain(first, chunks)
        if not unique_labels:
            documents = _check_repeated(source, documents)
        from longtail._progress import report_progress

        def hear(stage: str, done: int, total: int) -> None:
            if stage != "reading texts":  # that is what the table's own line says
                update(stage, done, total or None)

        with report_progress(hear):
            if source.holds_counts:
                model.fit(*_stack(source, documents))
                return model
            model.fit_chunks(_pairs(source, documents), class_texts)
        _remember_columns(model, source)
        return model


def _remember_columns(model: Any, source: Source) -> None:
    """Let a model of texts know what it was told about its tables."""
    model.set_columns(**vars(source.as_told()))


def _make_vectorizer(settings: dict[str, Any]) -> Any:
    """Return the vectorizer for the options given, or None where there are none."""
    from longtail.text import TextVectorizer

    options = {name: value for name, value in settings.items() if name not in _NOT_TOKENIZING}
    if options.pop("keep_accents", False):
        options["strip_accents"] = None
    if options.get("stop_words", "english") != "english":
        options["stop_words"] = Path(options["stop_words"]).read_text(encoding="utf-8").split()
    if "ngrams" in options:
        options["ngram_range"] = (1, options.pop("ngrams"))
    if "char_ngrams" in options:
        options["char_ngram_range"] = options.pop("char_ngrams")
    return TextVectorizer(**options) if options else None


def _check_repeated(source: Source, chunks: Iterator[Documents]) -> Iterator[Documents]:
    """Pass documents on; refuse them at the end where every class has one."""
    seen: set[Any] = set()
    is_repeated = False
    for chunk in chunks:
        if not is_repeated:
            sets = (
                labels if isinstance(labels, list) else [labels] for labels in chunk.label_lists()
            )
            for label in chain.from_iterable(sets):
                is_repeated = is_repeated or label in seen
                seen.add(label)
        yield chunk
    if len(seen) > 1 and not is_repeated:
        raise ValueError(_all_unique(source))


def _all_unique(source: Source) -> str:
    """Say that labels look like ids."""
    columns = " and ".join(source.label or ["the first number of a row"])
    return (
        f"every class has one document: is {columns} the label? Choose another column, or give "
        "--unique-labels if it is."
    )


def _pairs(source: Source, chunks: Any) -> Any:
    """Yield texts and labels."""
    n_documents = 0
    for chunk in chunks:
        n_documents += len(chunk)
        yield chunk.content, chunk.labels
    if not n_documents:
        raise ValueError(_nothing(source))


def _stack(source: Source, chunks: Any) -> tuple[Any, Any]:
    """Return the counts of all chunks as one matrix, as wide as the widest."""
    import numpy as np
    from scipy.sparse import csr_array, vstack

    from longtail.datasets.records import make_label_sets

    read = list(chunks)
    if not read:
        raise ValueError(_nothing(source))
    n_terms = max(chunk.content.shape[1] for chunk in read)
    for chunk in read:
        chunk.content.resize((chunk.content.shape[0], n_terms))
    X = csr_array(vstack([chunk.content for chunk in read], format="csr"))
    y = np.concatenate([chunk.labels for chunk in read])
    if all(chunk.label_counts is None for chunk in read):
        return X, y
    ones = (np.ones(len(chunk), np.int64) for chunk in read)
    counts = [
        one if chunk.label_counts is None else chunk.label_counts
        for one, chunk in zip(ones, read, strict=True)
    ]
    return X, make_label_sets(y, np.concatenate(counts))


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
