"""The command line; `main` says what to install where its extra is missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from longtail.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"rich", "typer"}:
            raise
        sys.exit(f"longtail's command line needs {error.name}: pip install 'longtail[cli]'")
    app()
