"""Every error of this package that a user can catch."""

from __future__ import annotations

import os


class ModelFileError(ValueError):
    """A file is not a sound model file.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        What is wrong with it.

    Examples
    --------
    >>> print(ModelFileError("genus.longtail", "is cut short"))
    genus.longtail: is cut short
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(os.fspath(path), problem)
        self.path = os.fspath(path)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class DataFormatError(ValueError):
    """A data file that cannot be read: which file, which line, why, and what to do.

    Parameters
    ----------
    path : str or path-like
        The file.
    reason : str
        What is wrong and what to do about it.
    line : int, optional
        Line number, from 1; None if the whole file is meant.

    Examples
    --------
    >>> print(DataFormatError("train.txt", "the label is missing", line=17))
    train.txt, line 17: the label is missing
    """

    def __init__(self, path: str | os.PathLike[str], reason: str, line: int | None = None) -> None:
        # The arguments go to the base class as they are, so that the error can be pickled.
        super().__init__(path, reason, line)
        self.path = path
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        place = os.fspath(self.path) + ("" if self.line is None else f", line {self.line}")
        return f"{place}: {self.reason}"


class DocumentError(ValueError):
    """One of several documents cannot be used, so none was.

    Attributes
    ----------
    document : int
        Which one, from 0.
    reason : str
        Why.

    Examples
    --------
    >>> print(DocumentError(3, "it was never added."))
    document 3: it was never added. Nothing was changed.
    """

    def __init__(self, document: int, reason: object) -> None:
        super().__init__(document, str(reason))
        self.document = document
        self.reason = str(reason)

    def __str__(self) -> str:
        return f"document {self.document}: {self.reason} Nothing was changed."
