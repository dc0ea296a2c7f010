"""Tables of text and labels -> chunks of documents; a file may be larger than memory.

CSV, TSV, JSON lines and Parquet give text; svmlight, LSHTC and XMC files give counts. A row that
cannot be used is an error with file and line, or goes to the caller's `on_bad_row`, and reading
goes on.

CSV and JSON lines are read with the standard library: pyarrow's readers are optional, know neither
the line of a bad row nor how to go on after one, and guess types.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from longtail._records import CATEGORIES, Fields, read_fields, write_record
from longtail._words import describe_missing
from longtail.datasets.columns import Cell, Value, json_rows, parquet_rows
from longtail.datasets.count_chunks import read_count_chunks
from longtail.datasets.delimited import Lines, plain_rows, quoted_rows
from longtail.datasets.limits import DEFAULT_LIMITS, Limits
from longtail.datasets.records import BadRow, Chunk, CountFile
from longtail.datasets.streams import STANDARD_INPUT, source_name
from longtail.exceptions import DataFormatError

# Files of counts; the others hold text.
COUNT_FORMATS = ("svmlight", "lshtc", "xmc")
FORMATS = ("csv", "tsv", "jsonl", "parquet", *COUNT_FORMATS)

# A chunk ends when it has this many documents or characters, whichever comes first.
CHUNK_DOCUMENTS = 10_000
CHUNK_CHARACTERS = 8_000_000

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


@dataclass(frozen=True)
class Table:
    r"""Where documents are found in a file, and how it is written.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (detected by content), or ``-`` for standard input.
    text : sequence of str
        Names of the columns that hold the text; several are joined by a blank. A number, from 1,
        stands for a column where there is no header or no such name.
    label : str or sequence of str, optional
        Name of the column that holds the class. Several columns, a `label_separator`, or a column
        of lists (JSON arrays, a list column of Parquet) give label sets. A row without any label,
        or with a label twice, cannot be used. In JSON lines the first row decides: where it has an
        array, all rows must.
    keep : sequence of str, default=()
        Further columns, returned unchanged.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By the file's ending when left out.
    header : bool, default=True
        Whether the first row of a CSV or TSV file names the columns.
    delimiter : str, optional
        What separates fields; a comma in CSV and a tab in TSV when left out.
    quotes : bool, optional
        Whether fields may stand in double quotes; in CSV they may, in TSV not, when left out.
    encoding : str, default="utf-8"
        How a CSV, TSV or JSON lines file is encoded.
    limits : Limits, optional
        Bounds on what the file may hold.
    label_separator : str, optional
        What separates the labels of a document in a label column, such as ``;``. Blanks around a
        label and empty labels are dropped.
    fields : mapping of str to str, optional
        The columns of documents that are records, with their kinds, as `TextClassifier` takes them;
        in place of `text`. A text is then a JSON object.
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
    label: str | Sequence[str] | None = None
    keep: Sequence[str] = field(default=())
    format: str | None = None
    header: bool = True
    delimiter: str | None = None
    quotes: bool | None = None
    on_bad_row: Callable[[BadRow], None] | None = None
    encoding: str = "utf-8"
    limits: Limits = DEFAULT_LIMITS
    label_separator: str | None = None
    fields: Mapping[str, str] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that documents are made of."""
        return list(self.text if self.fields is None else self.fields)

    @property
    def lists(self) -> frozenset[str]:
        """The columns that may hold lists."""
        kinds = (self.fields or {}).items()
        lists = (name for name, kind in kinds if kind.partition(":")[0] == CATEGORIES)
        return frozenset([*self.labels, *lists])

    @property
    def labels(self) -> list[str]:
        """The columns that hold labels."""
        if self.label is None:
            return []
        return [self.label] if isinstance(self.label, str) else list(self.label)

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return source_name(self.path)

    def bad_row(self, line: int, reason: str, start: str) -> None:
        """Report a row that cannot be used."""
        if self.on_bad_row is None:
            raise DataFormatError(self.name, reason, line)
        self.on_bad_row(BadRow.shortened(line, reason, start))


# A row before it is a document: its line and the values of the columns asked for.
_Row = tuple[int, list[Value]]


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


def read_text_chunks(table: Table) -> Iterator[Chunk]:
    """Read the rows of a table, in chunks of bounded size.

    Yields
    ------
    Chunk
        Never empty; none at all where the file has a header only.

    Raises
    ------
    DataFormatError
        If the file cannot be read, a column is missing, or a row is bad and `table.on_bad_row` is
        None.
    ValueError
        If an argument cannot be used.
    """
    if not table.columns or isinstance(table.text, str):
        raise ValueError(f"text must be a list of at least one column; got {table.text!r}.")
    format = find_format(table.path, table.format)
    if format in COUNT_FORMATS:
        raise ValueError(f"{format} files hold counts, not text; read them with read_count_chunks.")
    if format == "parquet":
        if table.name != os.fspath(table.path):
            raise ValueError("Parquet is read from its end, so not from standard input.")
        rows = parquet_rows(
            *(table.path, _wanted(table), CHUNK_DOCUMENTS, table.bad_row, table.limits),
            lists=table.lists,
            n_kept=len(table.keep),
        )
        return _chunks(table, rows, lambda: 0)
    lines = Lines(table.path, table.encoding, table.limits)
    if format == "jsonl":
        rows = json_rows(
            *(lines.numbered(), _wanted(table), table.bad_row, table.lists),
            n_kept=len(table.keep),
        )
    else:
        rows = _field_rows(table, lines, format)
    return _chunks(table, rows, lambda: lines.n_bytes)


def read_file_chunks(
    file: Table | CountFile,
    *,
    labelled: bool = True,
    n_terms: int | None = None,
    on_bad_row: Callable[[BadRow], None] | None = None,
) -> Iterator[Chunk]:
    """Read a file of texts or of counts; arguments are those of `read_count_chunks`."""
    if isinstance(file, Table):
        on_bad_row = on_bad_row or file.on_bad_row
        label = file.label if labelled else None
        return read_text_chunks(replace(file, label=label, on_bad_row=on_bad_row))
    return read_count_chunks(
        file.path,
        format=find_format(file.path, file.format),
        zero_based=file.zero_based,
        labelled=labelled,
        replicate=file.replicate,
        n_terms=n_terms,
        on_bad_row=on_bad_row,
        limits=file.limits,
    )


def _chunks(table: Table, rows: Iterator[_Row], n_bytes: Callable[[], int]) -> Iterator[Chunk]:
    """Turn rows into documents and group them."""
    n_text, n_labels = len(table.columns), len(table.labels)
    fields = read_fields(table.fields)
    # Whether there are label sets; None until the first row of a column that may hold lists.
    sets = True if table.label_separator or n_labels > 1 else None
    chunk = Chunk([], [], [])
    size = 0
    for line, cells in rows:
        read = [cell for cell in cells[: n_text + n_labels] if isinstance(cell, str | list)]
        labels, reason = _read_labels(table, read[n_text:], sets)
        reason = reason or _find_fault(table, cells)
        text = ""
        try:
            text = "" if reason else _make_text(read[:n_text], fields)
        except ValueError as error:
            reason = str(error)
        if reason:
            table.bad_row(line, reason, " ".join(map(str, cells)))
            continue
        sets = isinstance(labels, list)
        chunk.content.append(text)
        chunk.lines.append(line)
        chunk.kept.append(cells[n_text + n_labels :])
        if n_labels:
            chunk.labels.append(labels)
        size += len(text)
        if len(chunk) == CHUNK_DOCUMENTS or size >= CHUNK_CHARACTERS:
            yield replace(chunk, n_bytes=n_bytes())
            chunk, size = Chunk([], [], []), 0
    if len(chunk):
        yield replace(chunk, n_bytes=n_bytes())


def _make_text(cells: list[Cell], fields: Fields | None) -> str:
    """Return the text of a row; of several fields a record."""
    if fields is not None:
        return write_record(dict(zip(fields.names, cells, strict=True)), fields)
    return str(cells[0]) if len(cells) == 1 else " ".join(map(str, cells))


def _read_labels(table: Table, cells: list[Cell], sets: bool | None) -> tuple[Cell, str | None]:
    """Return the label or the label set of a row, and what is wrong with it.

    `sets` says what the rows before have; None where there was none that decides.
    """
    columns = " and ".join(map(repr, table.labels))
    if not cells:
        return "", None
    first = cells[0]
    if sets is None:
        sets = isinstance(first, list)
    elif len(cells) == 1 and not table.label_separator and sets != isinstance(first, list):
        found, expected = ("one label", "lists") if sets else ("a list", "one label each")
        return "", f"column {columns} holds {found} here and {expected} in the rows before"
    if not sets:
        label = str(first)
        return label, _find_label_fault(table, [label] if label.strip() else [], columns)
    labels: list[str] = []
    for cell in cells:
        if isinstance(cell, str):
            parts = cell.split(table.label_separator) if table.label_separator else [cell]
            labels += [label.strip() if table.label_separator else label for label in parts]
        else:
            labels += cell
    labels = [label for label in labels if label.strip()]
    return labels, _find_label_fault(table, labels, columns)


def _find_label_fault(table: Table, labels: list[str], columns: str) -> str | None:
    """Return what is wrong with the labels of a row."""
    if not labels:
        return f"the label in column {columns} is missing"
    if len(max(labels, key=len)) > table.limits.label:
        longest = f"{table.limits.label:,} characters"
        return f"the label in column {columns} is longer than {longest} (limit 'label')"
    if len(set(labels)) < len(labels):
        twice = next(label for label, count in Counter(labels).items() if count > 1)
        return f"the label {twice!r} occurs twice in column {columns}; write it once"
    return None


def _find_fault(table: Table, cells: list[Value]) -> str | None:
    """Return what is wrong with a row's values."""
    for name, cell in zip(_wanted(table), cells, strict=True):
        value = "".join(cell) if isinstance(cell, list) else str(cell)
        if len(value) > table.limits.row:
            return f"column {name!r} is longer than {table.limits.row:,} characters (limit 'row')"
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return f"column {name!r} is not valid UTF-8; give the encoding, such as latin-1"
    return None


def _wanted(table: Table) -> list[str]:
    """Return the columns asked for, in the order of a row's values."""
    return [*table.columns, *table.labels, *table.keep]


def _field_rows(table: Table, lines: Lines, format: str) -> Iterator[_Row]:
    """Yield the fields asked for of a CSV or TSV file."""
    delimiter = table.delimiter or ("," if format == "csv" else "\t")
    if len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character; got {delimiter!r}.")
    quotes = format == "csv" if table.quotes is None else table.quotes
    rows = quoted_rows(lines, delimiter, table.bad_row) if quotes else plain_rows(lines, delimiter)
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
            hint += "; or is the delimiter another one?" if n_fields == 1 else ""
            table.bad_row(line, found + hint, delimiter.join(fields)[:1000])
            continue
        yield line, [fields[column] for column in columns]


def _find_columns(table: Table, first: list[str]) -> list[int]:
    """Return the indices of the columns asked for; `first` is the first row."""
    columns = []
    for name in _wanted(table):
        found = [i for i in range(len(first)) if table.header and first[i] == name]
        if len(found) > 1:
            both = " and ".join(str(i + 1) for i in found)
            reason = f"columns {both} are both called {name!r}; give its number instead"
            raise DataFormatError(table.name, reason)
        if found:
            columns.append(found[0])
        elif name.isdecimal() and 1 <= int(name) <= len(first):
            columns.append(int(name) - 1)
        elif table.header:
            hint = next((mark for mark in ";\t|," if len(first) == 1 and mark in first[0]), None)
            other = "" if hint is None else f"; is the delimiter {hint!r}?"
            raise DataFormatError(table.name, describe_missing("column", name, first) + other)
        else:
            reason = (
                f"without a header, columns are given by number, here from 1 to {len(first)}; "
                f"got {name!r}"
            )
            raise DataFormatError(table.name, reason)
    return columns
