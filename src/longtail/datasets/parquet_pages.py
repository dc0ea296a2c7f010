"""Page headers of a Parquet file -> whether its pages become larger than they may.

A reader takes as much memory for a page as its header says, whatever the footer says of the whole
column. So the headers are read first: a few bytes for each page, in Thrift's compact protocol
(thrift-compact-protocol.md), of which only three numbers are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

_WINDOW = 1 << 16  # bytes read at once; a header with statistics of long values may take more
_LARGEST_HEADER = 1 << 24
_DEEPEST = 16  # structs inside structs; Parquet has 3

# Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_LIST, _SET, _STRUCT = 9, 10, 12
_INTEGERS = (4, 5, 6)
_UNCOMPRESSED, _COMPRESSED = 2, 3  # fields of a page header
_DATA_PAGES, _VALUES = (5, 8), 1  # of either version; the first field of theirs


class PageError(Exception):
    """What is wrong with a page header."""


class Page(NamedTuple):
    """Sizes of a page, in bytes, and how many values it has; 0 if these are a dictionary."""

    uncompressed: int
    compressed: int
    n_values: int


def read_pages(file: BinaryIO, column: Any) -> Iterator[Page]:
    """Yield the sizes of all pages of a column chunk; `column` is its entry in the footer.

    Raises
    ------
    PageError
        If they cannot be read.
    """
    start = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    end = start + column.total_compressed_size
    while start < end:
        page, n_bytes = _read_header(file, start)
        if min(page) < 0:
            raise PageError("a page of negative size")
        start += n_bytes + page.compressed
        yield page


def _read_header(file: BinaryIO, start: int) -> tuple[Page, int]:
    """Return the header at a place of the file, and its length."""
    window = _WINDOW
    while True:
        file.seek(start)
        data = file.read(window)
        try:
            return _parse_header(_Reader(data))
        except IndexError:
            if len(data) < window or window >= _LARGEST_HEADER:
                raise PageError("a page header that does not end") from None
            window *= 16


def _parse_header(reader: _Reader) -> tuple[Page, int]:
    """Return the sizes in a header; IndexError where the bytes end before it does."""
    sizes = {_UNCOMPRESSED: -1, _COMPRESSED: -1}
    n_values = 0
    for field, kind in reader.fields():
        if field in sizes and kind in _INTEGERS:
            sizes[field] = reader.integer()
        elif field in _DATA_PAGES and kind == _STRUCT:
            for inner, inner_kind in reader.fields():
                if inner == _VALUES and inner_kind in _INTEGERS:
                    n_values = reader.integer()
                else:
                    reader.skip(inner_kind, _DEEPEST - 1)
        else:
            reader.skip(kind, _DEEPEST)
    return Page(sizes[_UNCOMPRESSED], sizes[_COMPRESSED], n_values), reader.offset


class _Reader:
    """Goes through bytes of the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def byte(self) -> int:
        """Return the next byte."""
        value = self.data[self.offset]
        self.offset += 1
        return value

    def varint(self) -> int:
        """Return the next unsigned number."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise PageError("a number of more than 64 bits")

    def integer(self) -> int:
        """Return the next signed number (zigzag)."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads or skips it."""
        field = 0
        while (head := self.byte()) != _STOP:
            field = field + (head >> 4) if head >> 4 else self.integer()
            yield field, head & 0x0F

    def skip(self, kind: int, depth: int) -> None:
        """Go past a value."""
        if depth == 0:
            raise PageError("a header nested too deeply")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth - 1)
        elif kind in (_LIST, _SET):
            self._skip_list(depth)
        elif kind in _INTEGERS:
            self.varint()
        elif kind in (_BYTE, _DOUBLE, _BINARY):
            self._jump({_BYTE: 1, _DOUBLE: 8}.get(kind) or self.varint())
        else:  # a map has no place in a page header
            raise PageError("a header that is none")

    def _skip_list(self, depth: int) -> None:
        head = self.byte()
        length = head >> 4 if head >> 4 < 15 else self.varint()
        if length > len(self.data):
            raise IndexError
        for _ in range(length):
            if head & 0x0F in (_TRUE, _FALSE):
                self._jump(1)
            else:
                self.skip(head & 0x0F, depth - 1)

    def _jump(self, n_bytes: int) -> None:
        self.offset += n_bytes
        if self.offset > len(self.data):
            raise IndexError
