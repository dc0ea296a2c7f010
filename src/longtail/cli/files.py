"""Files that the commands write: beside their place first, then renamed, so never half of one."""

from __future__ import annotations

import csv
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from longtail.datasets.tables import BadRow

STANDARD_OUTPUT = Path("-")


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be written, before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file in it.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; make it first (mkdir -p).")
    if not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(f"the folder {path.parent} cannot be written to.")


@contextmanager
def replacing(path: Path | None) -> Iterator[TextIO]:
    """Open a text file that takes the place of `path` when all went well; None is standard output.

    What was there stays until then; after an error or an interruption nothing has changed.
    """
    if path is None or path == STANDARD_OUTPUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    check_writable(path)
    beside = _beside(path)
    try:
        with beside.open("x", encoding="utf-8", newline="") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the ending says."""
    formats = figure.canvas.get_supported_filetypes()
    ending = path.suffix.removeprefix(".").lower()
    if ending not in formats:
        raise ValueError(f"{path} must end in one of .{' .'.join(sorted(formats))} for a figure.")
    check_writable(path)
    beside = _beside(path)
    try:
        figure.savefig(beside, format=ending, dpi=150)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


class BadRows:
    """The report of rows that were passed over; there is no file where there were none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._beside = _beside(path)
        self._file: TextIO | None = None

    def __call__(self, row: BadRow) -> None:
        """Add a row to the report."""
        if self._file is None:
            check_writable(self.path)
            self._file = self._beside.open("x", encoding="utf-8", newline="")
            csv.writer(self._file).writerow(("line", "reason", "start"))
        csv.writer(self._file).writerow((row.line, row.reason, row.start))
        self.n_rows += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            os.replace(self._beside, self.path)  # also after an error: the report may explain it


def _beside(path: Path) -> Path:
    """Return a name in the same folder that nobody uses."""
    return path.with_name(f".longtail-{os.getpid()}-{secrets.token_hex(4)}.tmp")
