"""Every error of this package that a user can catch."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import cast


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
        where = os.fspath(self.path) + ("" if self.line is None else f", line {self.line}")
        return f"{where}: {self.reason}"


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


class UncalibratedWarning(UserWarning):
    """Probabilities were asked of a model that had too few documents to calibrate them."""


class NoKnownTermWarning(UserWarning):
    """Labels were asked for documents in which no term is known, so the largest class was given."""


class HierarchyWarning(UserWarning):
    """A hierarchy and the classes of a model do not cover each other."""


class PartitionError(ValueError):
    """A partition of the data cannot be read; what other tasks have done is kept.

    Attributes
    ----------
    partition : str
        Which one: the path of a file, or position and name of a function.
    reason : str
        Why.

    Examples
    --------
    >>> print(PartitionError("part-3.svm", "part-3.svm, line 4: the document has no label"))
    partition part-3.svm cannot be read: part-3.svm, line 4: the document has no label
    """

    def __init__(self, partition: str, reason: object) -> None:
        super().__init__(partition, str(reason))
        self.partition = partition
        self.reason = str(reason)

    def __str__(self) -> str:
        return f"partition {self.partition} cannot be read: {self.reason}"


class MemoryLimitError(ValueError):
    """A memory limit is too low for the work; the message says what is needed."""


class VersionConflictError(ValueError):
    """A change was made against a version of the model that is no longer the present one.

    Attributes
    ----------
    expected : str
        The version that the change was made against.
    current : str
        The version that the model has.

    Examples
    --------
    >>> print(VersionConflictError("4f.3", "4f.4"))
    the change was made against version 4f.3, but the model has version 4f.4; nothing was changed.
    """

    def __init__(self, expected: str, current: str) -> None:
        super().__init__(expected, current)
        self.expected = expected
        self.current = current

    def __str__(self) -> str:
        return (
            f"the change was made against version {self.expected}, but the model has version "
            f"{self.current}; nothing was changed."
        )


def level_outside() -> int:
    """Return the `stacklevel` with which a warning of the caller points outside of this package."""
    level, frame = 1, cast("FrameType | None", sys._getframe(1))
    while frame is not None and frame.f_globals.get("__name__", "").startswith("longtail."):
        level, frame = level + 1, frame.f_back
    return level
