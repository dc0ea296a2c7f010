"""A file, compressed or not -> its bytes in chunks.

What a file is compressed with is read off its first bytes; the suffix does not matter.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from longtail.exceptions import DataFormatError

# Compressed bytes handed over at once: small, because a frame of repeated text may grow a
# thousandfold.
_COMPRESSED_PIECE = 1 << 16


def read_chunks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """Yield the decompressed content of a file in chunks of at most about ``size`` bytes.

    Parameters
    ----------
    path : str or path-like
        A plain, gzip, bzip2, xz or zstd file.
    size : int
        Bytes per chunk.

    Yields
    ------
    chunk : bytes
        Never empty.

    Raises
    ------
    DataFormatError
        If the compressed stream is damaged or cut short, or if the file is a zip archive.
    ImportError
        If the file is zstd compressed and `zstandard` is not installed.
    """
    with open(path, "rb") as file:
        magic = file.peek(len(b"\xfd7zXZ\x00"))
        if magic.startswith(b"PK\x03\x04"):
            raise DataFormatError(path, "this is a zip archive; unpack it and give the file inside")
        method, chunks = next(
            ((name, opened) for prefix, name, opened in _METHODS if magic.startswith(prefix)),
            ("", _plain_chunks),
        )
        try:
            yield from chunks(file, size)
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # An OSError with a number comes from the disk, not from the compressed stream.
            if not method or (isinstance(error, OSError) and error.errno is not None):
                raise
            reason = f"the {method} stream is damaged or cut short ({error}); fetch the file again"
            raise DataFormatError(path, reason) from error


def _plain_chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield what is in a file."""
    while chunk := file.read(size):
        yield chunk


def _gzip_chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield what a gzip file holds."""
    with gzip.GzipFile(fileobj=file) as stream:
        # The buffer spares one trip through the decompressor's checks per small read.
        yield from _plain_chunks(io.BufferedReader(stream, size), size)


def _bzip2_chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield what a bzip2 file holds."""
    with bz2.BZ2File(file) as stream:
        yield from _plain_chunks(stream, size)


def _xz_chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield what an xz file holds."""
    with lzma.LZMAFile(file) as stream:
        yield from _plain_chunks(stream, size)


def _zstd_chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield what a zstd file of one or more frames holds, in whatever portions come out."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            "reading a zstd file needs the package zstandard: pip install 'longtail[data]'"
        ) from error
    frame = None
    while piece := file.read(_COMPRESSED_PIECE):
        while piece:
            # The stream reader of zstandard takes a cut file for a complete one; the frame object
            # knows its end.
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                chunk = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            if chunk:
                yield chunk
            piece = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("the last frame has no end")


_METHODS: tuple[tuple[bytes, str, Callable[[IO[bytes], int], Iterator[bytes]]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip_chunks),
    (b"BZh", "bzip2", _bzip2_chunks),
    (b"\xfd7zXZ\x00", "xz", _xz_chunks),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd_chunks),
)
