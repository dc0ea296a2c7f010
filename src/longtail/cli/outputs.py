"""Files that the commands write: beside their target, then renamed, so never in part.

A command never writes over one of its inputs, over a model, or over what is no regular file.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from longtail.datasets.records import BadRow

STANDARD_OUTPUT = Path("-")

# Cells that a spreadsheet evaluates, with or without leading apostrophes; plain numbers are not.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?%?")


def escape_formula(cell: Any) -> Any:
    """Return a cell that no spreadsheet evaluates: a text like ``=1+1`` gets an apostrophe.

    Reversible: remove one apostrophe from each text that begins with apostrophes and then one of
    ``= + - @``, a tab or a carriage return. Numbers stay as they are.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("'=1"), escape_formula("-1.5"), escape_formula("a=b")
    ("'=1+1", "''=1", '-1.5', 'a=b')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not _PLAIN_NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def check_writable(path: Path, inputs: Iterable[str | Path] = (), model: bool = False) -> None:
    """Refuse a target that cannot or must not be written, before any work is done.

    `inputs` are what the command reads. `model` says that the target is a model, which may replace
    another one.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file in it.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; make it first (mkdir -p).")
    if not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(f"the folder {path.parent} cannot be written to.")
    if not path.exists():
        return
    if not path.is_file():
        raise ValueError(f"{path} is no regular file; give another name, or - to print.")
    for source in map(Path, inputs):
        if source.exists() and path.samefile(source):
            raise ValueError(f"{path} is read by this command; give another name to write to.")
    if not model and _is_model(path):
        raise ValueError(f"{path} is a model or its journal; give another name to write to.")


def _is_model(path: Path) -> bool:
    """Return whether a file is a model, or the journal of changes beside one."""
    from longtail.store.manifest import MAGIC

    with path.open("rb") as file:
        start = file.read(16)
    return start.startswith((MAGIC, b"SQLite format 3\x00"))


@contextmanager
def replacing(path: Path | None, inputs: Iterable[str | Path] = ()) -> Iterator[TextIO]:
    """Open a text file that replaces `path` when all went well; None is standard output.

    What was there stays until then; after an error or an interruption nothing has changed.
    """
    if path is None or path == STANDARD_OUTPUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    with replaced_path(path, inputs) as beside, beside.open("x", encoding="utf-8", newline="") as f:
        yield f


@contextmanager
def replaced_path(path: Path, inputs: Iterable[str | Path] = ()) -> Iterator[Path]:
    """Yield a path beside `path` that is renamed to it in the end; a link is followed."""
    from longtail.store.files import replacing as replacing_file  # imports numpy

    check_writable(path, inputs)
    with replacing_file(path.resolve()) as beside:
        yield beside


def save_figure(figure: Any, path: Path, inputs: Iterable[str | Path] = ()) -> None:
    """Write a figure in the format that the ending says."""
    formats = figure.canvas.get_supported_filetypes()
    ending = path.suffix.removeprefix(".").lower()
    if ending not in formats:
        raise ValueError(f"{path} must end in one of .{' .'.join(sorted(formats))} for a figure.")
    with replaced_path(path, inputs) as beside:
        figure.savefig(beside, format=ending, dpi=150)


class BadRows:
    """The report of rows that were skipped; there is no file where there were none."""

    def __init__(self, path: Path, inputs: Iterable[str | Path] = ()) -> None:
        from longtail.store.files import temporary_path  # imports numpy

        check_writable(path, inputs)
        self.path = path
        self.n_rows = 0
        self._beside = temporary_path(path)
        self._file: TextIO | None = None

    def __call__(self, row: BadRow) -> None:
        """Add a row to the report."""
        if self._file is None:
            self._file = self._beside.open("x", encoding="utf-8", newline="")
            csv.writer(self._file).writerow(("line", "reason", "start"))
        csv.writer(self._file).writerow((row.line, row.reason, escape_formula(row.start)))
        self.n_rows += 1

    def close(self) -> None:
        """Move the report into place."""
        if self._file is not None:
            self._file.close()
            os.replace(self._beside, self.path)  # also after an error: the report may explain it
