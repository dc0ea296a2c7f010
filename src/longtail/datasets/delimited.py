"""CSV and TSV -> the fields of each row, with its line."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator

from longtail.datasets.columns import BadRowCall
from longtail.datasets.limits import Limits
from longtail.datasets.streams import line_blocks


class Lines:
    """The lines of a file, with their newlines, and those of the current row."""

    def __init__(self, path: str | os.PathLike[str], encoding: str, limits: Limits) -> None:
        self.longest = limits.row
        self._lines = self._read(path, encoding, limits)
        self.row: list[str] = []
        self.n_lines = 0  # handed out
        self.n_bytes = 0
        self._n_characters = 0  # of the current row

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.row.append(line)
        self.n_lines += 1
        self._n_characters += len(line)
        if self._n_characters > self.longest:
            raise csv.Error("field larger than the limit")
        return line

    def start_row(self) -> int:
        """Forget the lines of the last row; return the number of the next line."""
        self.row = []
        self._n_characters = 0
        return self.n_lines + 1

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number, from 1."""
        for line in self._lines:
            self.n_lines += 1
            yield self.n_lines, line

    def _read(self, path: str | os.PathLike[str], encoding: str, limits: Limits) -> Iterator[str]:
        """Yield the lines of the file; a byte that is no UTF-8 becomes a surrogate."""
        for block in line_blocks(path, encoding, limits):
            self.n_bytes += len(block)
            # Only a newline ends a line, whatever else Unicode takes for one.
            yield from io.StringIO(block.decode("utf-8", "surrogateescape"), newline="\n")


def quoted_rows(
    lines: Lines, delimiter: str, bad_row: BadRowCall
) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of rows in which quotes protect delimiters and newlines.

    A quote that is never closed takes all lines with it up to the limit 'row' or the end.
    """
    if csv.field_size_limit() < lines.longest:
        csv.field_size_limit(lines.longest)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = lines.start_row()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = _explain_csv(str(error))
            if "field larger" in str(error) and len(lines.row) == 1:  # no quote has joined lines
                reason = f"the line is longer than {lines.longest:,} characters (limit 'row')"
            if len(lines.row) > 1:
                reason += f" (lines {line} to {lines.n_lines} are left out)"
            bad_row(line, reason, (lines.row or [""])[0])
            continue
        if fields:
            yield line, fields


def _explain_csv(problem: str) -> str:
    """Explain an error of Python's reader."""
    if "unexpected end of data" in problem or "field larger" in problem:
        return "a quote is opened and never closed; double it where it belongs to the text"
    if "expected after" in problem:
        return "a quoted field goes on after its closing quote; double quotes inside a field"
    if "new-line character" in problem:
        return "a carriage return stands in a field without quotes; quote it or use newlines"
    return problem


def plain_rows(lines: Lines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of rows in which a quote is a character like others."""
    for line_number, line in lines.numbered():
        content = line.removesuffix("\n").removesuffix("\r")
        if content:
            yield line_number, content.split(delimiter)
