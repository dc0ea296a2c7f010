"""The command line; `main` names the extra to install where it is missing."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line."""
    try:
        from longtail.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"rich", "typer"}:
            raise
        sys.exit(f"longtail's command line needs {error.name}: pip install 'longtail[cli]'")
    _open_closed_streams()
    app()


def _open_closed_streams() -> None:
    """Stand in for streams that the caller closed, so that no file takes their place."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            closed = os.open(os.devnull, os.O_WRONLY)
            if closed != descriptor:
                os.dup2(closed, descriptor)
                os.close(closed)
            setattr(sys, name, _ClosedStream(descriptor == 1))


class _ClosedStream(io.TextIOBase):
    """A closed stream: writing results to it is an error, notes are dropped."""

    def __init__(self, is_refused: bool) -> None:
        self._is_refused = is_refused

    def write(self, text: str) -> int:
        """Refuse results."""
        if self._is_refused and text:
            raise OSError("standard output is closed; send it to a file, or to /dev/null.")
        return len(text)
