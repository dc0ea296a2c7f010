"""Inputs of the commands: tables of documents, models, classes."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from longtail._words import count
from longtail.answers import as_label
from longtail.cli.outputs import BadRows
from longtail.cli.shared_options import Layout
from longtail.cli.show import print_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail._columns import TableFormat
    from longtail.cli.show import Update
    from longtail.datasets.records import BadRow, Chunk, CountFile
    from longtail.datasets.tables import Table

    _OnBadRow = Callable[[BadRow], None]

LONGEST_TEXT = 200  # characters of the text of a class on the terminal, as in the service


@dataclass(frozen=True)
class Source:
    """A table of documents, as the options of a command describe it.

    `told` is what the model was told about tables; it holds where the options say nothing.
    `fields` are the columns of documents that are records, with their kinds.
    """

    files: list[str]
    text: list[str] | None
    label: list[str] | None
    layout: Layout
    keep: list[str] = field(default_factory=list)
    told: TableFormat | None = None
    fields: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """Its name in progress and messages."""
        first, *more = self.files
        first = "standard input" if first == "-" else Path(first).name
        return f"{first} and {count(len(more), 'more file')}" if more else first

    @property
    def paths(self) -> list[str]:
        """All files; a pattern that is no file stands for those that it matches."""
        found: list[str] = []
        for path in self.files:
            matches = [] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
            found += matches or [path]
        return found

    @property
    def holds_counts(self) -> bool:
        """Whether the files hold counts; the others hold text."""
        from longtail.datasets.tables import COUNT_FORMATS

        formats = {self.find_format(path) in COUNT_FORMATS for path in self.paths}
        if len(formats) > 1:
            raise ValueError("files of counts and of texts cannot be read together.")
        return formats.pop()

    def find_format(self, path: str) -> str:
        """Return the format of a file: as given, by its ending, or as the model was told."""
        from longtail.datasets.tables import find_format

        try:
            return find_format(path, self.layout.format)
        except ValueError:
            if self.layout.format is None and self.told is not None and self.told.format:
                return find_format(path, self.told.format)
            raise

    def file(self, path: str, labelled: bool = True) -> Table | CountFile:
        """Return one of the files as readers take it."""
        from longtail._columns import TableFormat
        from longtail.datasets.records import CountFile
        from longtail.datasets.tables import COUNT_FORMATS, Table

        layout, format = self.layout, self.find_format(path)
        if format in COUNT_FORMATS:
            return CountFile(path, layout.zero_based, layout.limits(), format, layout.replicate)
        told = self.told if self.told is not None and self.told.format == format else TableFormat()
        return Table(
            path,
            self.text or [],
            self.label if labelled else None,
            self.keep,
            format,
            told.header if layout.header is None else layout.header,
            told.delimiter if layout.delimiter is None else layout.delimiter,
            told.quotes if layout.quotes is None else layout.quotes,
            encoding=layout.encoding or told.encoding,
            limits=layout.limits(),
            label_separator=layout.label_separator,
            fields=self.fields,
        )

    def as_told(self) -> TableFormat:
        """Return what a model fitted on this source remembers of it."""
        from longtail._columns import TableFormat

        layout = self.layout
        reading = {
            name: value
            for name in ("header", "delimiter", "quotes", "encoding")
            if (value := getattr(layout, name)) is not None
        }
        return TableFormat(
            tuple(self.text or ()),
            tuple(self.label or ()),
            layout.label_separator,
            self.find_format(self.paths[0]),
            **reading,
        )


@contextmanager
def read_documents(
    source: Source,
    update: Update,
    *,
    labelled: bool,
    n_terms: int | None = None,
    doing: str = "reading",
) -> Iterator[Iterator[Chunk]]:
    """Open a source; skipped rows are reported when all is read.

    `n_terms` fits counts to a model: terms that it does not have are left out. `doing` is what
    progress calls what is done with each chunk.
    """
    check_columns(source, labelled)

    def read(report: _OnBadRow | None) -> Iterator[Chunk]:
        chunks = _chunks(source, report, labelled, n_terms)
        if labelled:
            chunks = _check_separator(source, chunks)
        return _counted(f"{doing} {source.name}", source, chunks, update)

    if not (source.layout.skip_bad_rows or source.layout.bad_rows):
        yield read(None)
        return
    first = source.files[0]
    stem = "standard-input" if first == "-" else Path(first).name
    target = source.layout.bad_rows or Path(f"{stem}.bad-rows.csv")
    with closing(BadRows(target, source.paths)) as report:
        try:
            yield read(report)
        finally:
            if report.n_rows:
                print_note(f"{count(report.n_rows, 'bad row')} skipped; {report.path} lists them.")


def ask_separator(source: Source) -> Source:
    """Ask in a terminal whether the mark that most labels contain separates them."""
    if not _in_terminal() or "-" in source.paths:
        return source
    # Bad rows are reported later.
    found = _find_separator(source, next(_chunks(source, lambda row: None, True, None), None))
    if found is None:
        return source
    mark, sentence = found
    is_separator = typer.confirm(f"{sentence} Split them at {mark!r}?", err=True)
    layout = replace(source.layout, label_separator=mark if is_separator else "")
    return replace(source, layout=layout)


def _in_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _check_separator(source: Source, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Refuse labels that look like several each, unless a separator was given."""
    first = next(chunks, None)
    found = _find_separator(source, first)
    if found is not None:
        mark, sentence = found
        raise ValueError(
            f"{sentence} Give --label-separator {mark!r} to split them, or --label-separator '' "
            "to keep them whole."
        )
    if first is not None:
        yield first
    yield from chunks


def _find_separator(source: Source, chunk: Chunk | None) -> tuple[str, str] | None:
    """Return the mark that seems to separate labels, with a sentence, unless one was given."""
    from longtail.datasets.checking import find_label_separator

    if chunk is None or source.holds_counts or source.layout.label_separator is not None:
        return None
    labels = chunk.label_lists()
    if not all(isinstance(label, str) for label in labels):
        return None
    mark = find_label_separator(labels)
    if mark is None:
        return None
    example = next(label for label in labels if mark in label)
    column = " and ".join(map(repr, source.label or []))
    return mark, (
        f"most labels in column {column} contain {mark!r}, such as {example!r}: are these several "
        "labels each?"
    )


def match_source(source: Source, model: Any, quiet: bool = False) -> Source:
    """Return the source with what the model was told, where options say nothing.

    Options that differ from it are named. Counts for a model of texts, and the reverse, are
    refused.
    """
    told = getattr(model, "columns_", None)
    source = replace(source, told=told, fields=getattr(model, "fields_", None))
    if model.takes_texts == source.holds_counts:
        wanted = "texts" if model.takes_texts else "counts (svmlight)"
        raise ValueError(f"the model takes {wanted}; {source.name} holds something else.")
    if source.fields is not None and source.text:
        names = ", ".join(source.fields)
        raise ValueError(f"the model reads the columns {names}, as in its fit; leave --text out.")
    if told is None or source.holds_counts:
        return source
    layout = source.layout
    for option, given, known in (
        ("--text", source.text, list(told.text)),
        ("--label", source.label, list(told.label)),
        ("--label-separator", layout.label_separator, told.label_separator),
    ):
        if not quiet and given is not None and known and given != known:
            both = (", ".join([x] if isinstance(x, str) else x) for x in (given, known))
            print_note("{} {!r}: the model was fitted with {!r}.".format(option, *both))
    if layout.label_separator is None:
        layout = replace(layout, label_separator=told.label_separator)
    text, label = source.text or list(told.text), source.label or list(told.label)
    return replace(source, text=text, label=label, layout=layout)


def check_columns(source: Source, labelled: bool) -> None:
    """Refuse missing options, and those that have no meaning for the format."""
    if source.holds_counts:
        if source.text or source.label or source.fields:
            raise ValueError("--text and --label have no meaning for svmlight: it has no columns.")
        if source.layout.label_separator:
            raise ValueError("--label-separator has no meaning for counts: a comma separates them.")
        return
    if not source.text and not source.fields:
        raise ValueError("--text is missing: which column holds the text? For example --text body")
    if labelled and not source.label:
        raise ValueError(
            "--label is missing: which column holds the class? For example --label product"
        )


def _chunks(
    source: Source, report: _OnBadRow | None, labelled: bool, n_terms: int | None
) -> Iterator[Chunk]:
    """Yield the documents of all files of a source in chunks."""
    from longtail.datasets.tables import read_file_chunks

    n_bytes = 0
    for path in source.paths:
        chunk = None
        for chunk in read_file_chunks(
            source.file(path, labelled), labelled=labelled, n_terms=n_terms, on_bad_row=report
        ):
            n_read = n_bytes + chunk.n_bytes if chunk.n_bytes else 0
            found = replace(chunk, n_bytes=n_read, path=path)
            yield found.replicate() if source.layout.replicate else found
        n_bytes += chunk.n_bytes if chunk else 0


def read_labelled(
    path: Path, label: str, text: list[str], *, may_lack_header: bool
) -> tuple[Iterator[Any], list[str] | None]:
    """Read a table of labels and texts beside the documents.

    A TSV file may lack a header: label, tab, text. Then its first row comes as well.
    """
    from longtail.datasets.delimited import Lines, plain_rows
    from longtail.datasets.limits import DEFAULT_LIMITS
    from longtail.datasets.tables import Table, find_format, read_text_chunks

    try:
        format = find_format(path)
    except ValueError:
        format = "tsv"
    columns, first = [label, *text], None
    header = format not in ("csv", "tsv") or not all(name.isdecimal() for name in columns)
    if format == "tsv" and may_lack_header:
        _, row = next(plain_rows(Lines(path, "utf-8", DEFAULT_LIMITS), "\t"), (1, columns))
        if len(row) == 2 and set(row) != set(columns):
            header, columns, first = False, ["1", "2"], row
    table = Table(path, columns[1:], columns[0], format=format, header=header)
    return read_text_chunks(table), first


def _counted(
    described: str, source: Source, chunks: Iterator[Chunk], update: Update
) -> Iterator[Chunk]:
    """Report progress; the total is estimated from the bytes read so far."""
    from longtail.datasets.tables import is_compressed

    paths = source.paths
    plain = all(Path(path).is_file() and not is_compressed(path) for path in paths)
    size = sum(Path(path).stat().st_size for path in paths) if plain else 0
    n_documents = 0
    update(described, 0, None)
    for chunk in chunks:
        yield chunk
        n_documents += len(chunk)
        known = size and chunk.n_bytes
        total = max(n_documents, n_documents * size // chunk.n_bytes) if known else None
        update(described, n_documents, total)


def shorten_text(text: str | None) -> str:
    """Return the text of a class as the terminal shows it."""
    text = text or ""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def check_model(path: Path) -> None:
    """Refuse a path without a model; say what writes one."""
    if not path.exists():
        raise ValueError(
            f"there is no model file {str(path)!r}; this writes one: longtail fit table.csv "
            f"--text COLUMN --label COLUMN -o {path}"
        )
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is no regular file, so no model.")


# The value of --embedder, for the command that runs.
named_embedder: ContextVar[str | None] = ContextVar("named_embedder", default=None)


def find_embedder() -> Any:
    """Return the encoder that ``longtail --embedder`` names; None without one.

    A module of the current directory is found, too.
    """
    import importlib

    given = named_embedder.get()
    if given is None:
        return None
    module, colon, name = given.partition(":")
    if not (module and colon and name):
        raise ValueError(f"--embedder must be MODULE:NAME, such as encoders:encode; got {given!r}.")
    if "" not in sys.path:  # for good: processes that are started are told the path as well
        sys.path.append("")
    try:
        found: Any = importlib.import_module(module)
        for attribute in name.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--embedder {given}: {error}.") from None
    return found


def load_model(path: Path, threads: int | None = None) -> Any:
    """Open a model with all that it was taught, and set its threads."""
    from longtail import load

    check_model(path)
    model = load(path, embedder=find_embedder())
    if threads is not None:
        model.set_threads(threads)
    return model


def n_terms_of(model: Any) -> int | None:
    """Return the number of columns that a model of counts takes."""
    return None if model.takes_texts else int(model.n_features_in_)


def one_document(model: Any, text: str, zero_based: bool = False) -> Any:
    """Return one document as the model takes it; - reads it from standard input.

    A model of counts takes ``term:count`` pairs, as in an svmlight file.
    """
    content = sys.stdin.read() if text == "-" else text
    if model.takes_texts:
        return [content]
    return parse_counts(content, int(model.n_features_in_), zero_based)


def parse_counts(text: str, n_terms: int, zero_based: bool) -> Any:
    """Return the counts of one document written as ``term:count`` pairs."""
    from scipy.sparse import csr_array

    first = 0 if zero_based else 1
    counts: dict[int, float] = {}
    for pair in text.split():
        term, colon, count = pair.partition(":")
        try:
            column, value = int(term) - first, float(count)
        except ValueError:
            column, value = -1, 0.0
        if not colon or column < 0 or not value >= 0:
            raise ValueError(
                f"{pair!r} is not term:count. This model takes counts, so write a document as "
                f"numbers of terms from {first}, each with its count, such as '{first + 2}:1'."
            )
        if column < n_terms:  # others are unknown to the model
            counts[column] = counts.get(column, 0.0) + value
    columns = sorted(counts)
    data = [counts[column] for column in columns]
    return csr_array((data, columns, [0, len(columns)]), shape=(1, n_terms))


def as_model_labels(model: Any, labels: Any) -> Any:
    """Return a label, or each label of a set, as the model writes it."""
    if isinstance(labels, list):
        return [as_model_labels(model, label) for label in labels]
    return as_label(model, labels)


def known_label(model: Any, text: str) -> Any:
    """Return a class of the model, or name those that are spelled alike."""
    from longtail.class_search import ClassSearch

    label, classes = as_label(model, text), model.classes_
    if str(label) in map(str, classes.tolist()):
        return label
    close = [repr(str(name)) for name, _ in ClassSearch.index(classes).search(text, 5)]
    hint = f" Similar: {', '.join(close)}." if close else ""
    raise ValueError(f"the model has no class {text!r} among its {len(classes):,} classes.{hint}")
