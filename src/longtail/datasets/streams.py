"""A file, a pipe or standard input, compressed or not -> its bytes in chunks, or blocks of lines.

What a file is compressed with is read off its first bytes; the suffix does not matter. Memory is
bounded by the chunk and the longest line allowed, whatever a compressed stream expands to.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from longtail._optional import import_optional
from longtail.datasets.limits import DEFAULT_LIMITS, FREE_EXPANSION, Limits
from longtail.exceptions import DataFormatError

STANDARD_INPUT = "-"

# Large enough that the work per block outweighs the call, small beside the parsed rows.
BLOCK_BYTES = 1 << 22
# Seconds to wait for the first byte of a named pipe, which may have no writer at all.
PIPE_PATIENCE = 10.0
# Compressed bytes given to zstd at once: four bytes may become a block of 128 KiB.
_ZSTD_BYTES = 1 << 10
# Compressed bytes given to xz at once, and the memory that it may take: `xz -9` needs 65 MiB.
_XZ_BYTES = 1 << 16
_XZ_MEMORY = 130 << 20

_MAGIC_BYTES = 6


def source_name(path: str | os.PathLike[str]) -> str:
    """Return what messages call a file."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


def read_chunks(
    path: str | os.PathLike[str], size: int, limits: Limits = DEFAULT_LIMITS
) -> Iterator[bytes]:
    """Yield the decompressed content of a file in chunks of about ``size`` bytes.

    Parameters
    ----------
    path : str or path-like
        A plain, gzip, bzip2, xz or zstd file, a pipe, or ``-`` for standard input.
    size : int
        Bytes per chunk.
    limits : Limits, optional
        Its `expansion` is checked while reading.

    Yields
    ------
    chunk : bytes
        Never empty.

    Raises
    ------
    DataFormatError
        If the compressed stream is damaged, cut short or expands too far, if the file is a zip
        archive, or if the pipe has no writer.
    ImportError
        If the file is zstd compressed and `zstandard` is not installed.
    """
    name = source_name(path)
    with _open(path) as file:
        counted = _CountedInput(file)
        if counted.head.startswith(b"PK\x03\x04"):
            raise DataFormatError(name, "this is a zip archive; unpack it and give the file inside")
        found = [method for method in _METHODS if counted.head.startswith(method[0])]
        method, chunks = found[0][1:] if found else ("", _plain_chunks)
        n_bytes = 0
        try:
            for chunk in chunks(counted, size):
                n_bytes += len(chunk)
                if method and n_bytes > max(FREE_EXPANSION, limits.expansion * counted.n_bytes):
                    reason = (
                        f"the {method} stream expands to more than {limits.expansion} times its "
                        "size; raise the limit 'expansion' if the file can be trusted"
                    )
                    raise DataFormatError(name, reason)
                yield chunk
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # An OSError with a number comes from the disk, not from the compressed stream.
            if not method or (isinstance(error, OSError) and error.errno is not None):
                raise
            reason = f"the {method} stream is damaged or cut short ({error}); fetch the file again"
            if "Memory usage limit" in str(error):
                reason = (
                    f"reading the {method} stream would take more than {_XZ_MEMORY >> 20} MiB; "
                    "compress it with a smaller dictionary, as xz -9 does"
                )
            raise DataFormatError(name, reason) from error


def line_blocks(
    path: str | os.PathLike[str], encoding: str = "utf-8", limits: Limits = DEFAULT_LIMITS
) -> Iterator[bytes]:
    """Yield the content of a file in blocks of complete lines of UTF-8, without byte-order mark.

    Raises
    ------
    DataFormatError
        If the file is empty or damaged, a line is too long, or the encoding is not the one given.
    """
    name = source_name(path)
    chunks = read_chunks(path, BLOCK_BYTES, limits)
    blocks = _complete_lines(name, _as_utf8(name, chunks, encoding), limits.row)
    first = next(blocks, b"").removeprefix(codecs.BOM_UTF8)
    if not first:
        raise DataFormatError(name, "the file is empty; expected one document per line")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataFormatError(name, "this looks like UTF-16; say so (encoding 'utf-16')")
    yield first
    yield from blocks


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file; a named pipe without a writer is refused after a timeout."""
    if os.fspath(path) == STANDARD_INPUT:
        return open(0, "rb", closefd=False)
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | nonblocking))  # noqa: SIM115
    if nonblocking:
        os.set_blocking(file.fileno(), True)
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
        if is_pipe and not select.select([file], [], [], PIPE_PATIENCE)[0]:
            file.close()
            reason = f"this is a pipe, and nothing was written to it for {PIPE_PATIENCE:g} s"
            raise DataFormatError(path, reason)
    return file


class _CountedInput:
    """The bytes of a file, counted; the first ones can be looked at before they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.head = file.read(_MAGIC_BYTES)
        self.n_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        size = len(self.head) if self.head and size < 0 else size
        data = self.head[:size] or self._file.read(size)
        self.head = self.head[size:]
        self.n_bytes += len(data)
        return data


def _plain_chunks(file: Any, size: int) -> Iterator[bytes]:
    """Yield what is in a file."""
    while chunk := file.read(size):
        yield chunk


def _gzip_chunks(file: Any, size: int) -> Iterator[bytes]:
    """Yield what a gzip file holds."""
    with gzip.GzipFile(fileobj=file) as stream:
        # The buffer spares one trip through the decompressor's checks per small read.
        yield from _plain_chunks(io.BufferedReader(stream, size), size)


def _bzip2_chunks(file: Any, size: int) -> Iterator[bytes]:
    """Yield what a bzip2 file holds."""
    with bz2.BZ2File(file) as stream:
        yield from _plain_chunks(stream, size)


def _xz_chunks(file: Any, size: int) -> Iterator[bytes]:
    """Yield what an xz file of one or more streams holds.

    A stream says how large its dictionary is, up to 4 GiB whatever its length.
    """
    stream, data = None, b""
    while data or (stream is not None and not stream.needs_input) or (data := file.read(_XZ_BYTES)):
        if stream is None:
            data = data.lstrip(b"\0")  # padding between streams
            if not data:
                continue
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        chunk = stream.decompress(data, size)
        data = b""
        if chunk:
            yield chunk
        if stream.eof:
            data, stream = stream.unused_data, None
    if stream is not None:
        raise EOFError("the last stream has no end")


def _zstd_chunks(file: Any, size: int) -> Iterator[bytes]:
    """Yield what a zstd file of one or more frames holds, in whatever portions come out."""
    zstandard = import_optional("zstandard", "reading a zstd file", "'longtail[data]'")
    frame = None
    while data := file.read(_ZSTD_BYTES):
        while data:
            # The stream reader of zstandard takes a cut file for a complete one; the frame object
            # knows its end.
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                chunk = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            if chunk:
                yield chunk
            data = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("the last frame has no end")


_METHODS: tuple[tuple[bytes, str, Callable[[Any, int], Iterator[bytes]]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip_chunks),
    (b"BZh", "bzip2", _bzip2_chunks),
    (b"\xfd7zXZ\x00", "xz", _xz_chunks),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd_chunks),
)


def _as_utf8(name: str, chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Recode chunks; bytes that are wrong in the encoding stay, and are no valid UTF-8 either."""
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        raise ValueError(
            f"encoding must be one that Python knows, such as 'latin-1'; got {encoding!r}."
        ) from None
    if codec.name == "utf-8":
        yield from chunks
        return
    decoder = codec.incrementaldecoder("surrogateescape")
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode("utf-8", "surrogateescape")
        yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")
    except UnicodeError as error:
        raise DataFormatError(name, f"the file is not {encoding}: {error}") from error


def _complete_lines(name: str, chunks: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Regroup chunks into blocks that end with a line and are about `BLOCK_BYTES` large."""
    pending: list[bytes] = []
    n_pending = n_lines = 0
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if n_pending + (chunk.find(b"\n") if end else len(chunk)) > longest + BLOCK_BYTES:
            n_lines += sum(earlier.count(b"\n") for earlier in pending)
            raise _long_line(name, n_lines + 1, longest)
        if end == 0 or n_pending + end < BLOCK_BYTES // 2:
            pending.append(chunk)
            n_pending += len(chunk)
            continue
        block = b"".join([*pending, chunk[:end]])
        n_lines += block.count(b"\n")
        yield block
        pending = [chunk[end:]]
        n_pending = len(chunk) - end
    if n_pending:
        yield b"".join(pending)


def check_lines(path: str | os.PathLike[str], block: bytes, n_lines: int, limits: Limits) -> None:
    """Refuse a block with a line beyond the limit."""
    if len(block) > limits.row:
        for line_number, line in enumerate(block.split(b"\n"), n_lines + 1):
            if len(line) > limits.row:
                raise _long_line(source_name(path), line_number, limits.row)


def _long_line(name: str, line: int, longest: int) -> DataFormatError:
    """Return the error for a line beyond the limit."""
    reason = (
        f"the line is longer than {longest:,} bytes; is this text? Raise the limit 'row' if it is"
    )
    return DataFormatError(name, reason, line)
