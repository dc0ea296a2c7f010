"""Packages of the extras: imported where they are needed, or named with what installs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(module: str, doing: str, install: str) -> Any:
    """Return a module of a package that may be missing.

    Raises
    ------
    ImportError
        Says what needs the package, and the pip command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f"{doing} needs the package {package}: pip install {install}"
        raise ImportError(message) from error
