"""JSON lines and Parquet -> the values of the columns asked for, row by row.

Values are strings; those of columns that may hold lists, such as label sets, may be lists of them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from longtail._optional import import_optional
from longtail._records import Fields, write_record
from longtail._words import describe_missing
from longtail.datasets.limits import FREE_EXPANSION, Limits
from longtail.exceptions import DataFormatError

_FREE_ROWS = 1_000_000  # whatever the size of the file: rows that repeat take no space

# A value of a row: a string or, where a column may hold lists, a list of strings.
Cell = str | list[str]
Value = Cell | int | float  # of a column that is handed on, numbers stay as they are

# Called with the line of a row that cannot be used, what is wrong with it, and how it begins.
BadRowCall = Callable[[int, str, str], None]


class _RowError(ValueError):
    """A row that cannot be used; the caller knows its line."""


def json_rows(
    lines: Iterable[tuple[int, str]],
    columns: Sequence[str],
    bad_row: BadRowCall,
    lists: frozenset[str] = frozenset(),
    n_kept: int = 0,
) -> Iterator[tuple[int, list[Value]]]:
    """Yield the line number of each row and the values of its columns.

    Columns in `lists` may hold lists; numbers of the last `n_kept` columns stay numbers.
    """
    for line_number, line in lines:
        if line.isspace():
            continue
        try:
            row = _parse_object(line)
            for name in columns:
                if name not in row:
                    raise _RowError(describe_missing("column", name, row))
            values = _as_cells(columns, [row[name] for name in columns], lists, n_kept)
        except _RowError as error:
            bad_row(line_number, str(error), line)
            continue
        yield line_number, values


def parquet_rows(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    n_rows: int,
    bad_row: BadRowCall,
    limits: Limits,
    lists: frozenset[str] = frozenset(),
    n_kept: int = 0,
) -> Iterator[tuple[int, list[Value]]]:
    """Yield each row, counted from 1, with the values of its columns; `n_rows` are read at once.

    Columns in `lists` may hold lists; numbers of the last `n_kept` columns stay numbers.

    Columns of strings, and of lists of them, are read as dictionaries: a long value that a small
    file repeats ten thousand times is in memory once.

    Raises
    ------
    DataFormatError
        If a column is missing or of another type, or the file is damaged or expands too far.
    ImportError
        If pyarrow is not installed.
    """
    pa = import_optional("pyarrow", "reading a Parquet file", "'longtail[data]'")
    from pyarrow import parquet

    row_number = n_characters = 0
    most = max(FREE_EXPANSION, limits.expansion * os.stat(path).st_size)
    try:
        with parquet.ParquetFile(path) as file:
            texts = _check_columns(path, file.schema_arrow, columns, lists)
            leaves = (file.schema.column(i).path for i in range(len(file.schema)))
            texts += [leaf for leaf in leaves if leaf.split(".")[0] in lists - set(texts)]
            _check_expansion(path, file.metadata, set(columns), limits.expansion)
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(n_rows, columns=list(dict.fromkeys(columns))):
                for values in zip(*(_values(batch.column(name)) for name in columns), strict=True):
                    row_number += 1
                    try:
                        cells = _as_cells(columns, values, lists, n_kept)
                    except _RowError as error:
                        bad_row(row_number, str(error), repr(values)[:200])
                        continue
                    n_characters += sum(map(_count_characters, cells))
                    if n_characters > most:
                        raise _expands(path, f"its first {row_number:,} rows do")
                    yield row_number, cells
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of what is in the file
        reason = f"this is not a sound Parquet file: {str(error).splitlines()[0]}"
        raise DataFormatError(path, reason) from error


def join_columns(columns: Sequence[str], record: Mapping[str, Any]) -> str:
    """Return the text of a record: its columns, joined by a blank as those of a table are.

    Raises
    ------
    ValueError
        If a column is missing, or holds neither a string nor a number.

    Examples
    --------
    >>> join_columns(["subject", "body"], {"id": 7, "body": "It hoots.", "subject": "An owl"})
    'An owl It hoots.'
    """
    for name in columns:
        if name not in record:
            raise _RowError(describe_missing("column", name, record))
    return " ".join(_as_string(name, record[name]) for name in columns)


def read_text(record: Mapping[str, Any], columns: Sequence[str], fields: Fields | None) -> str:
    """Return the text of a record of a model's columns; one of other columns has it as ``text``.

    Raises
    ------
    ValueError
        If a column is missing, or a value is of another kind.
    """
    if not any(name in record for name in columns):
        return join_columns(("text",), record)
    return join_columns(columns, record) if fields is None else write_record(record, fields)


def _parse_object(line: str) -> dict[str, Any]:
    """Return the object on a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _RowError(f"the line is not JSON: {error}") from None
    if not isinstance(value, dict):
        found = type(value).__name__
        raise _RowError(f'expected one object per line, such as {{"text": "..."}}; found a {found}')
    return value


def _as_cells(
    columns: Sequence[str], values: Sequence[Any], lists: frozenset[str], n_kept: int
) -> list[Value]:
    """Return the values of a row; numbers of the last `n_kept` columns stay numbers."""
    cells: list[Value] = []
    for i, (name, value) in enumerate(zip(columns, values, strict=True)):
        cell = _as_cell(name, value, lists)
        is_number = i >= len(columns) - n_kept and isinstance(value, int | float) and cell != ""
        cells.append(value if is_number else cell)
    return cells


def _as_cell(name: str, value: Any, lists: frozenset[str]) -> Cell:
    """Return a value as a string or, where the column may hold lists, a list of strings."""
    if not isinstance(value, list | tuple) or name not in lists:
        return _as_string(name, value)
    found = [_as_string(name, entry) for entry in value]
    if not all(found):
        raise _RowError(f"column {name!r} holds a list with a missing value; leave it out")
    return found


def _count_characters(cell: Value) -> int:
    return sum(map(len, cell)) if isinstance(cell, list) else len(str(cell))


def _as_string(name: str, value: Any) -> str:
    """Return a string as it is, a number as it is written, and nothing for nothing."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a whole number that shared its column with a missing value
    if isinstance(value, int | float):
        return str(value)
    found = type(value).__name__
    raise _RowError(f"column {name!r} holds a {found}; expected a string or a number")


def _check_columns(
    path: str | os.PathLike[str], schema: Any, columns: Sequence[str], lists: frozenset[str]
) -> list[str]:
    """Refuse columns that are missing, occur twice or hold no values; return those of text."""
    from pyarrow import types

    texts = []
    for name in columns:
        if schema.names.count(name) == 0:
            raise DataFormatError(path, describe_missing("column", name, schema.names))
        if schema.names.count(name) > 1:
            raise DataFormatError(path, f"several columns are called {name!r}; rename one")
        found = schema.field(name).type
        value = found.value_type if types.is_dictionary(found) else found
        if name in lists and (types.is_list(value) or types.is_large_list(value)):
            value = value.value_type
        if types.is_nested(value) or types.is_binary(value) or types.is_fixed_size_binary(value):
            reason = f"column {name!r} holds {found}; expected strings or numbers"
            raise DataFormatError(path, reason)
        if types.is_string(found) or types.is_large_string(found):
            texts.append(name)
    return texts


def _check_expansion(
    path: str | os.PathLike[str], metadata: Any, columns: set[str], most: int
) -> None:
    """Refuse rows and columns that become much more than they are in the file.

    The footer is believed. One that was forged to say less than its pages hold is not noticed here:
    a batch of it is in memory before `parquet_rows` counts its characters.
    """
    n_bytes = os.stat(path).st_size
    most_values = max(_FREE_ROWS, most * n_bytes)
    if metadata.num_rows > most_values:
        raise _expands(path, f"its {n_bytes:,} bytes hold {metadata.num_rows:,} rows")
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema
            if name.split(".")[0] not in columns and name not in columns:
                continue
            allowed = max(FREE_EXPANSION, most * min(column.total_compressed_size, n_bytes))
            if column.total_uncompressed_size > allowed:
                raise _expands(path, f"column {name!r} does")
            if column.num_values > most_values:
                raise _expands(path, f"column {name!r} has {column.num_values:,} values")


def _expands(path: str | os.PathLike[str], what: str) -> DataFormatError:
    """Return the error for a file that becomes too large."""
    reason = f"the file expands too far: {what}; raise the limit 'expansion' if it can be trusted"
    return DataFormatError(path, reason)


def _values(column: Any) -> Iterator[Any]:
    """Yield the values of a column; bytes that are not UTF-8 become surrogates."""
    if hasattr(column, "dictionary"):
        known = _decoded(column.dictionary)
        return (None if code is None else known[code] for code in column.indices.to_pylist())
    if hasattr(column, "value_lengths"):  # of lists
        entries, lengths = _values(column.flatten()), column.value_lengths().to_pylist()
        return (None if length is None else list(islice(entries, length)) for length in lengths)
    return iter(_decoded(column))


def _decoded(values: Any) -> list[Any]:
    """Return an array as Python values."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        raw = values.view("binary").to_pylist()
        return [v if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
