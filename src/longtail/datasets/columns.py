"""JSON lines and Parquet -> the values of the columns asked for, row by row, as strings."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from longtail.datasets.limits import FREE_EXPANSION, Limits
from longtail.exceptions import DataFormatError

_MOST_NAMES = 40  # columns that an error lists

# Called with the line of a row that cannot be used, what is wrong with it, and how it begins.
BadRowCall = Callable[[int, str, str], None]


class _RowError(Exception):
    """What is wrong with a row; the caller knows its line."""


def json_rows(
    lines: Iterable[tuple[int, str]], columns: Sequence[str], bad_row: BadRowCall
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number of each row and the values of its columns."""
    for line_number, line in lines:
        if line.isspace():
            continue
        try:
            row = _parse_object(line)
            for name in columns:
                if name not in row:
                    raise _RowError(missing_column(name, list(row)))
            values = [_as_string(name, row[name]) for name in columns]
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
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row, counted from 1, with the values of its columns; `n_rows` are read at once.

    Columns of strings are read as dictionaries: a long value that a small file repeats ten thousand
    times is in memory once.

    Raises
    ------
    DataFormatError
        If a column is missing or of another type, or the file is damaged or expands too far.
    ImportError
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "reading a Parquet file needs the package pyarrow: pip install 'longtail[data]'"
        ) from error
    row_number = 0
    try:
        with parquet.ParquetFile(path) as file:
            texts = _check_columns(path, file.schema_arrow, columns)
            _check_expansion(path, file.metadata, set(columns), limits.expansion)
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(n_rows, columns=list(dict.fromkeys(columns))):
                for values in zip(*(_values(batch.column(name)) for name in columns), strict=True):
                    row_number += 1
                    try:
                        yield row_number, list(map(_as_string, columns, values))
                    except _RowError as error:
                        bad_row(row_number, str(error), repr(values)[:200])
    except pa.ArrowException as error:
        reason = f"this is not a sound Parquet file: {str(error).splitlines()[0]}"
        raise DataFormatError(path, reason) from error


def missing_column(name: str, names: Sequence[str]) -> str:
    """Say that a column is missing, and which there are."""
    shown = ", ".join(repr(found) for found in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    close = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no column {name!r}; there are {shown or 'none'}{more}{hint}"


def _parse_object(line: str) -> dict[str, Any]:
    """Return the object on a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _RowError(f"the line is not JSON: {error}") from None
    if not isinstance(value, dict):
        found = type(value).__name__
        raise _RowError(f'expected one object a line, such as {{"text": "..."}}; found a {found}')
    return value


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


def _check_columns(path: str | os.PathLike[str], schema: Any, columns: Sequence[str]) -> list[str]:
    """Refuse columns that are missing, occur twice or hold no values; return those of text."""
    from pyarrow import types

    texts = []
    for name in columns:
        if schema.names.count(name) == 0:
            raise DataFormatError(path, missing_column(name, schema.names))
        if schema.names.count(name) > 1:
            raise DataFormatError(path, f"several columns are called {name!r}; rename one")
        found = schema.field(name).type
        value = found.value_type if types.is_dictionary(found) else found
        if types.is_nested(value) or types.is_binary(value) or types.is_fixed_size_binary(value):
            reason = f"column {name!r} holds {found}; expected strings or numbers"
            raise DataFormatError(path, reason)
        if types.is_string(found) or types.is_large_string(found):
            texts.append(name)
    return texts


def _check_expansion(
    path: str | os.PathLike[str], metadata: Any, columns: set[str], most: int
) -> None:
    """Refuse a row group that becomes much larger than it is in the file."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            size = column.total_uncompressed_size
            if (
                column.path_in_schema in columns
                and size > FREE_EXPANSION
                and size > most * column.total_compressed_size
            ):
                reason = (
                    f"column {column.path_in_schema!r} expands to more than {most} times its "
                    "size; raise the limit 'expansion' if the file can be trusted"
                )
                raise DataFormatError(path, reason)


def _values(column: Any) -> Iterator[Any]:
    """Yield the values of a column; bytes that are not UTF-8 become surrogates."""
    if hasattr(column, "dictionary"):
        known = _decoded(column.dictionary)
        return (None if code is None else known[code] for code in column.indices.to_pylist())
    return iter(_decoded(column))


def _decoded(values: Any) -> list[Any]:
    """Return an array as Python values."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        raw = values.view("binary").to_pylist()
        return [v if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
