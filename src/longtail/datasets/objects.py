"""JSON lines and Parquet -> the values of chosen columns, row by row, as strings."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from longtail.exceptions import DataFormatError

_MOST_NAMES = 40  # columns that an error lists

# Called with the place of a row that cannot be used, what is wrong with it, and how it begins.
BadRowCall = Callable[[int, str, str], None]


class _RowError(Exception):
    """What is wrong with a row; the caller knows its place."""


def json_rows(
    lines: Iterable[tuple[int, str]], columns: Sequence[str], bad_row: BadRowCall
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and the values of its columns."""
    for number, line in lines:
        if line.isspace():
            continue
        try:
            row = _parse_object(line)
            for name in columns:
                if name not in row:
                    raise _RowError(missing_column(name, list(row)))
            values = [_as_string(name, row[name]) for name in columns]
        except _RowError as error:
            bad_row(number, str(error), line)
            continue
        yield number, values


def parquet_rows(
    path: str | os.PathLike[str], columns: Sequence[str], size: int, bad_row: BadRowCall
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each row, from 1, and the values of its columns.

    Raises
    ------
    DataFormatError
        If a column is missing or the file is damaged.
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
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            _check_names(path, file.schema_arrow.names, columns)
            for batch in file.iter_batches(size, columns=list(dict.fromkeys(columns))):
                parts = [_column_values(batch.column(name)) for name in columns]
                for values in zip(*parts, strict=True):
                    number += 1
                    try:
                        row = list(map(_as_string, columns, values))
                    except _RowError as error:
                        bad_row(number, str(error), repr(values))
                        continue
                    yield number, row
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


def _check_names(
    path: str | os.PathLike[str], names: Sequence[str], columns: Sequence[str]
) -> None:
    """Refuse columns that a Parquet file does not have, or has twice."""
    for name in columns:
        if names.count(name) == 0:
            raise DataFormatError(path, missing_column(name, names))
        if names.count(name) > 1:
            raise DataFormatError(path, f"several columns are called {name!r}; rename one")


def _column_values(column: Any) -> list[Any]:
    """Return a column as Python values; bytes that are not UTF-8 become surrogates."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        values = column.view("binary").to_pylist()
        return [v if v is None else v.decode("utf-8", "surrogateescape") for v in values]
