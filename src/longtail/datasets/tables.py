"""Tables of text and labels -> chunks of documents; a file larger than memory passes through.

CSV, TSV, JSON lines and Parquet give text; svmlight gives counts. What a row is missing goes to one
place: an error with file and line, or the caller's `on_bad_row`, and reading goes on.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from longtail.datasets.objects import json_rows, missing_column, parquet_rows
from longtail.datasets.rows import line_blocks
from longtail.exceptions import DataFormatError

FORMATS = ("csv", "tsv", "jsonl", "parquet", "svmlight")
STANDARD_INPUT = "-"

# A chunk ends when it has this many documents or characters, whichever comes first.
CHUNK_DOCUMENTS = 10_000
CHUNK_CHARACTERS = 8_000_000
# Characters of one CSV field; a quote that is never closed is noticed at the latest there.
LONGEST_FIELD = 16_000_000

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_LONGEST_START = 80  # characters of a bad row that are shown


@dataclass(frozen=True)
class BadRow:
    """A row that was passed over: its first line, what is wrong with it, and how it begins."""

    line: int
    reason: str
    start: str


@dataclass(frozen=True)
class TextChunk:
    """Some rows of a table.

    Attributes
    ----------
    texts : list of str
        One document each.
    labels : list of str
        Their classes; empty where no label column was asked for.
    lines : list of int
        The line on which each row begins, from 1; in a Parquet file the number of the row.
    kept : list of list of str
        The values of the columns to keep.
    n_bytes : int
        How much of the decompressed file was read so far; 0 for Parquet.
    """

    texts: list[str]
    labels: list[str]
    lines: list[int]
    kept: list[list[str]]
    n_bytes: int


@dataclass(frozen=True)
class Table:
    r"""Where documents are found in a file, and how it is written.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (told apart by content), or ``-`` for standard input.
    text : sequence of str
        Names of the columns that hold the text; several are joined by a blank. A number, from 1,
        stands for a column where there is no header or no such name.
    label : str, optional
        Name of the column that holds the class.
    keep : sequence of str, default=()
        Further columns to hand on as they are.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By the file's ending when left out.
    header : bool, default=True
        Whether the first row of a CSV or TSV file names the columns.
    delimiter : str, optional
        What separates fields; a comma in CSV and a tab in TSV when left out.
    quotes : bool, optional
        Whether fields may stand in double quotes; in CSV they may, in TSV not, when left out.
    on_bad_row : callable, optional
        Called with a `BadRow` for each row that cannot be used; without it the first one is an
        error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "genera.csv"
    >>> _ = path.write_text('genus,body\nOvis,"wild sheep, argali"\n')
    >>> chunk = next(read_text_chunks(Table(path, ["body"], "genus")))
    >>> chunk.texts, chunk.labels, chunk.lines
    (['wild sheep, argali'], ['Ovis'], [2])
    """

    path: str | os.PathLike[str]
    text: Sequence[str]
    label: str | None = None
    keep: Sequence[str] = field(default=())
    format: str | None = None
    header: bool = True
    delimiter: str | None = None
    quotes: bool | None = None
    on_bad_row: Callable[[BadRow], None] | None = None

    @property
    def name(self) -> str:
        """What messages call the file."""
        path = os.fspath(self.path)
        return "standard input" if path == STANDARD_INPUT else path

    def bad_row(self, line: int, reason: str, start: str) -> None:
        """Report a row that cannot be used."""
        if self.on_bad_row is None:
            raise DataFormatError(self.name, reason, line)
        shown = start[: _LONGEST_START + 1].encode("utf-8", "backslashreplace").decode("utf-8")
        self.on_bad_row(BadRow(line, reason, shown[:_LONGEST_START].rstrip("\r\n")))


# A row before it is a document: its line and the values of the columns asked for.
_Row = tuple[int, list[str]]


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file's ending says that it is compressed."""
    return Path(path).suffix.lower() in _COMPRESSED


def find_format(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the format that was given, or the one that a file's ending says.

    Raises
    ------
    ValueError
        If the format is unknown or the ending says nothing.

    Examples
    --------
    >>> find_format("train.tsv.xz")
    'tsv'
    """
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
        return format
    if os.fspath(path) == STANDARD_INPUT:
        raise ValueError(
            f"standard input has no ending that tells its format; give one of {', '.join(FORMATS)}."
        )
    endings = [ending.lower() for ending in Path(path).suffixes if ending.lower()]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    found = _ENDINGS.get(endings[-1]) if endings else None
    if found is None:
        raise ValueError(
            f"the ending of {os.fspath(path)!r} does not tell its format; known endings are "
            f"{' '.join(_ENDINGS)}, or give one of {', '.join(FORMATS)}."
        )
    return found


def read_text_chunks(table: Table) -> Iterator[TextChunk]:
    """Read the rows of a table, in chunks of bounded size.

    Yields
    ------
    TextChunk
        Never empty; none at all where the file has a header only.

    Raises
    ------
    DataFormatError
        If the file cannot be read, a column is missing, or a row is bad and `table.on_bad_row` is
        None.
    ValueError
        If an argument cannot be used.
    """
    if not table.text or isinstance(table.text, str):
        raise ValueError(f"text must be a list of at least one column; got {table.text!r}.")
    format = find_format(table.path, table.format)
    if format == "svmlight":
        raise ValueError("svmlight files hold counts, not text; read them with read_count_chunks.")
    if format == "parquet":
        if table.name != os.fspath(table.path):
            raise ValueError("Parquet is read from its end, so not from standard input.")
        rows = parquet_rows(table.path, _wanted(table), CHUNK_DOCUMENTS, table.bad_row)
        return _chunks(table, rows, lambda: 0)
    lines = _Lines(table)
    if format == "jsonl":
        rows = json_rows(lines.numbered(), _wanted(table), table.bad_row)
    else:
        rows = _field_rows(table, lines, format)
    return _chunks(table, rows, lambda: lines.n_bytes)


def _chunks(table: Table, rows: Iterator[_Row], n_bytes: Callable[[], int]) -> Iterator[TextChunk]:
    """Turn rows into documents and group them."""
    n_text, labelled = len(table.text), table.label is not None
    chunk = TextChunk([], [], [], [], 0)
    size = 0
    for line, values in rows:
        reason = _find_fault(table, values)
        if reason:
            table.bad_row(line, reason, " ".join(values))
            continue
        text = values[0] if n_text == 1 else " ".join(values[:n_text])
        chunk.texts.append(text)
        chunk.lines.append(line)
        chunk.kept.append(values[n_text + labelled :])
        if labelled:
            chunk.labels.append(values[n_text])
        size += len(text)
        if len(chunk.texts) == CHUNK_DOCUMENTS or size >= CHUNK_CHARACTERS:
            yield TextChunk(chunk.texts, chunk.labels, chunk.lines, chunk.kept, n_bytes())
            chunk, size = TextChunk([], [], [], [], 0), 0
    if chunk.texts:
        yield TextChunk(chunk.texts, chunk.labels, chunk.lines, chunk.kept, n_bytes())


def _find_fault(table: Table, values: list[str]) -> str | None:
    """Return what is wrong with a row's values."""
    if table.label is not None and not values[len(table.text)].strip():
        return f"the label in column {table.label!r} is missing"
    for name, value in zip(_wanted(table), values, strict=True):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return f"column {name!r} is not valid UTF-8"
    return None


def _wanted(table: Table) -> list[str]:
    """Return the columns asked for, in the order of a row's values."""
    return [*table.text, *([] if table.label is None else [table.label]), *table.keep]


def text_blocks(table: Table) -> Iterator[bytes]:
    """Yield blocks of complete lines of a file or of standard input."""
    path = "/dev/stdin" if os.fspath(table.path) == STANDARD_INPUT else table.path
    try:
        yield from line_blocks(path)
    except DataFormatError as error:
        raise DataFormatError(table.name, error.reason, error.line) from error


def decode(line: bytes) -> str:
    """Decode what may not be UTF-8; a wrong byte becomes a surrogate, which is found later."""
    return line.decode("utf-8", "surrogateescape")


class _Lines:
    """The lines of a file, with their newlines; those of the current row can be taken back."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lines = self._read()
        self._row: list[str] = []
        self.number = 0  # lines handed out
        self.n_bytes = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._row.append(line)
        self.number += 1
        return line

    def start_row(self) -> int:
        """Forget the lines of the last row; return the number of the next line."""
        self._row = []
        return self.number + 1

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number, from 1."""
        for line in self:
            self._row.clear()
            yield self.number, line

    def take_back(self) -> str:
        """Hand out all lines of the current row but the first again; return the first."""
        first, *others = self._row or [""]
        self._lines = chain(others, self._lines)
        self.number -= len(others)
        return first

    def _read(self) -> Iterator[str]:
        """Yield the lines of the file."""
        for block in text_blocks(self._table):
            if not self.n_bytes and block.startswith((b"\xff\xfe", b"\xfe\xff")):
                reason = "this looks like UTF-16; save the file as UTF-8"
                raise DataFormatError(self._table.name, reason)
            self.n_bytes += len(block)
            # Only a newline ends a line, whatever else Unicode takes for one.
            yield from io.StringIO(decode(block), newline="\n")


def _field_rows(table: Table, lines: _Lines, format: str) -> Iterator[_Row]:
    """Yield the chosen fields of a CSV or TSV file."""
    delimiter = table.delimiter or ("," if format == "csv" else "\t")
    if len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character; got {delimiter!r}.")
    quotes = format == "csv" if table.quotes is None else table.quotes
    rows = _quoted_rows(table, lines, delimiter) if quotes else _plain_rows(lines, delimiter)
    columns: list[int] | None = None
    n_fields = 0
    for line, fields in rows:
        if columns is None:
            n_fields = len(fields)
            columns = _find_columns(table, fields)
            if table.header:
                continue
        if len(fields) != n_fields:
            found = f"the row has {len(fields)} fields, the first one has {n_fields}"
            hint = "" if quotes else "; where fields may stand in quotes, say so"
            table.bad_row(line, found + hint, delimiter.join(fields))
            continue
        yield line, [fields[column] for column in columns]


def _quoted_rows(table: Table, lines: _Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of rows in which quotes protect delimiters and newlines."""
    # The limit is one for the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = lines.start_row()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # A quote too many swallows the rows after it: only its own line is lost.
            table.bad_row(line, _explain_csv(str(error)), lines.take_back())
            continue
        if fields:
            yield line, fields


def _explain_csv(problem: str) -> str:
    """Word what Python's reader found."""
    if "unexpected end of data" in problem or "field larger" in problem:
        return "a quote is opened and never closed; double it where it belongs to the text"
    if "expected after" in problem:
        return "a quoted field goes on after its closing quote; double quotes inside a field"
    if "new-line character" in problem:
        return "a carriage return stands in a field without quotes; quote it or use newlines"
    return problem


def _plain_rows(lines: _Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of rows in which a quote is a character like others."""
    while True:
        number = lines.start_row()
        line = next(lines, None)
        if line is None:
            return
        content = line.removesuffix("\n").removesuffix("\r")
        if content:
            yield number, content.split(delimiter)


def _find_columns(table: Table, first: list[str]) -> list[int]:
    """Return the places of the columns asked for; `first` is the first row."""
    columns = []
    for name in _wanted(table):
        places = [i for i in range(len(first)) if table.header and first[i] == name]
        if len(places) > 1:
            numbers = " and ".join(str(place + 1) for place in places)
            reason = f"columns {numbers} are both called {name!r}; choose one by its number"
            raise DataFormatError(table.name, reason)
        if places:
            columns.append(places[0])
        elif name.isdecimal() and 1 <= int(name) <= len(first):
            columns.append(int(name) - 1)
        elif table.header:
            raise DataFormatError(table.name, missing_column(name, first))
        else:
            reason = (
                f"without a header, columns are chosen by number, here from 1 to {len(first)}; "
                f"got {name!r}"
            )
            raise DataFormatError(table.name, reason)
    return columns
