"""`longtail fit`: from a table to a model file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail._words import count
from longtail.cli.class_text_table import ClassTextOptions, ClassTexts
from longtail.cli.cluster import Cluster, fit_on
from longtail.cli.expect import expectations, print_expectations
from longtail.cli.fit_options import (
    CLASSIFIER_OPTIONS,
    TEXT_OPTIONS,
    TEXT_PANEL,
    VECTORIZER_OPTIONS,
    convert_given,
)
from longtail.cli.hierarchy import HierarchyOptions
from longtail.cli.inputs import (
    Source,
    ask_separator,
    check_columns,
    find_embedder,
    read_documents,
)
from longtail.cli.outputs import check_writable
from longtail.cli.shared_options import (
    AsJson,
    Content,
    LabelColumns,
    Layout,
    Quiet,
    Seed,
    TablePaths,
    Threads,
    takes,
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

if TYPE_CHECKING:
    from longtail.datasets.records import Chunk


@takes(
    content=Content,
    layout=Layout,
    reading=[option.as_parameter(TEXT_PANEL) for option in (*VECTORIZER_OPTIONS, *TEXT_OPTIONS)],
    named=ClassTextOptions,
    above=HierarchyOptions,
    learning=[option.as_parameter(None) for option in CLASSIFIER_OPTIONS],
    cluster=Cluster,
)
def fit(
    files: TablePaths,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="The model file.")],
    content: Content,
    label: LabelColumns = None,
    *,
    layout: Layout,
    discard_changes: Annotated[
        bool,
        typer.Option("--discard-changes", help="Replace a model and drop what it was taught."),
    ] = False,
    reading: dict[str, Any],
    named: ClassTextOptions,
    unique_labels: Annotated[
        bool,
        typer.Option(
            "--unique-labels", help="Every class has one document, and that is as it should be."
        ),
    ] = False,
    above: HierarchyOptions,
    learning: dict[str, Any],
    cluster: Cluster,
    threads: Threads = -1,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn the classes of a table of labelled documents and write a model file.

    For example: longtail fit train.csv --text body --label product -o model

    A table of text gives a model of texts; a file of counts gives a model of counts. Documents with
    several labels give a model of label sets.
    """
    with clear_errors():
        source = Source(files, content.text, label, layout, above.keep, fields=content.fields)
        check_columns(source, labelled=True)
        source = ask_separator(source)
        _check_text_options(source, reading | {"class_texts": named.class_texts})
        vectorizer = convert_given(VECTORIZER_OPTIONS, reading)
        of_text = convert_given(TEXT_OPTIONS, reading)
        learner = convert_given(CLASSIFIER_OPTIONS, learning)
        _check_target(out, discard_changes)
        names = named.read()
        above.check(has_text=not source.holds_counts, is_cluster=cluster.is_asked)
        vocabulary = above.read_vocabulary()
        if above.taxonomy is not None and vocabulary is not None and not source.holds_counts:
            given = ClassTexts(above.taxonomy, {}) if names is None else names
            names = replace(given, texts=vocabulary.texts | given.texts)
        cost = dict[str, float]()
        wall, processor = time.perf_counter(), time.process_time()
        with progress(quiet) as update:
            check_labels = partial(_check_labels, source, names, unique_labels)
            make = partial(_make_estimator, source, vectorizer, of_text, learner, threads, seed)
            texts = None if names is None else names.texts
            if cluster.is_asked:
                with read_documents(source, update, labelled=True) as chunks:
                    next(chunks, None)  # what is wrong with columns and labels is said here
                model = make()
                cost = fit_on(cluster, model, source, update, texts).summary()
                sizes = model.statistics_.class_sizes.tolist()
                check_labels(dict(zip(model.classes_.tolist(), sizes, strict=True)))
                if not source.holds_counts:
                    _remember_columns(model, source)
            else:
                model = _fit(make, source, update, texts, check_labels, above)
            above.give(model, vocabulary, quiet)
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


def _check_text_options(source: Source, reading: dict[str, Any]) -> None:
    """Refuse options of text for a source of counts."""
    flags = {option.parameter: option.flags for option in (*VECTORIZER_OPTIONS, *TEXT_OPTIONS)}
    flags["class_texts"] = "--class-texts"
    given = [flags[name].split("/")[0] for name, value in reading.items() if value is not None]
    if given and source.holds_counts:
        raise ValueError(f"{', '.join(given)}: options for text, not for counts.")


def _make_estimator(
    source: Source,
    vectorizer: dict[str, Any],
    of_text: dict[str, Any],
    learner: dict[str, Any],
    threads: int,
    seed: int,
) -> Any:
    """Return the estimator for what a source holds, with the parameters that were given."""
    import longtail
    from longtail.text import TextVectorizer

    classifier = longtail.LongTailClassifier(n_jobs=threads, random_state=seed, **learner)
    if source.holds_counts:
        if find_embedder() is not None:
            raise ValueError("--embedder: an encoder is for text, not for counts.")
        return classifier
    return longtail.TextClassifier(
        classifier if learner else None,
        TextVectorizer(**vectorizer) if vectorizer else None,
        n_jobs=threads,
        random_state=seed,
        fields=source.fields,
        embedder=find_embedder(),
        **of_text,
    )


def _fit(
    make: Callable[[], Any],
    source: Source,
    update: Update,
    class_texts: dict[str, str] | None,
    check_labels: Callable[[Mapping[Any, float]], None],
    above: HierarchyOptions,
) -> Any:
    """Read a source and fit an estimator on it."""
    with read_documents(source, update, labelled=True) as chunks:
        first = list(islice(chunks, 1))  # a wrong column is an error before numba is imported
        model = make()
        documents: Iterator[Chunk] = above.collect(chain(first, chunks))
        documents = _count_labels(documents, check_labels)
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
    """Store in a model of texts how its tables are read."""
    model.set_columns(**vars(source.as_told()))


def _count_labels(
    chunks: Iterator[Chunk], check: Callable[[Mapping[Any, float]], None]
) -> Iterator[Chunk]:
    """Pass documents on; at the end, before anything is learned, check how many each class has."""
    counts = Counter[Any]()
    for chunk in chunks:
        labels = chunk.label_lists()
        are_sets = bool(labels) and isinstance(labels[0], list)
        counts.update(chain.from_iterable(labels) if are_sets else labels)
        yield chunk
    check(counts)


def _check_labels(
    source: Source, names: ClassTexts | None, unique_labels: bool, counts: Mapping[Any, float]
) -> None:
    """Refuse labels that look like ids, and class texts whose header was taken for one."""
    if names is not None:
        names.check(counts)
    if not unique_labels and len(counts) > 1 and max(counts.values()) <= 1:
        columns = " and ".join(source.label or ["the first number of a row"])
        raise ValueError(
            f"every class has one document: is {columns} the label? Choose another column, or give "
            "--unique-labels if it is."
        )


def _pairs(source: Source, chunks: Iterator[Chunk]) -> Iterator[tuple[Any, Any]]:
    """Yield texts and labels."""
    n_documents = 0
    for chunk in chunks:
        n_documents += len(chunk)
        yield chunk.content, chunk.labels
    if not n_documents:
        raise ValueError(_nothing(source))


def _stack(source: Source, chunks: Iterator[Chunk]) -> tuple[Any, Any]:
    """Return the counts of all chunks as one matrix, as wide as the widest, and their labels."""
    from longtail.datasets.records import join_chunks

    read = list(chunks)
    if not read:
        raise ValueError(_nothing(source))
    joined = join_chunks(read)
    return joined.content, joined.labels


def _nothing(source: Source) -> str:
    """Return the message for a source without documents."""
    return f"{source.name} has no document that can be used; at least 2 classes are needed."


def _check_target(out: Path, discard_changes: bool) -> None:
    """Refuse an unusable output path before the work is done."""
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
