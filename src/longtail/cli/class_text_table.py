"""`--class-texts`: the options, and from a table to the text of each class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.fit_options import TEXT_PANEL
from longtail.cli.inputs import read_labelled

_option = partial(typer.Option, rich_help_panel=TEXT_PANEL)


@dataclass(frozen=True)
class ClassTextOptions:
    """Options that give the texts of classes."""

    class_texts: Annotated[
        Path | None,
        _option(
            "--class-texts",
            metavar="FILE",
            help="Names of classes: a table with columns label and text, or without header: "
            "label, tab, text. Those without documents are learned too.",
        ),
    ] = None
    class_texts_label: Annotated[
        str | None,
        _option("--class-texts-label", metavar="COLUMN", help="Its column of labels."),
    ] = None
    class_texts_text: Annotated[
        list[str] | None,
        _option(
            "--class-texts-text",
            metavar="COLUMN",
            help="Its column of names; give it again to join several.",
        ),
    ] = None

    def read(self) -> ClassTexts | None:
        """Return the texts of the table; None where none was given."""
        if self.class_texts is None:
            return None
        return read_class_texts(self.class_texts, self.class_texts_label, self.class_texts_text)


@dataclass(frozen=True)
class ClassTexts:
    """The texts of classes, and what must be asked about them."""

    path: Path  # the table
    texts: dict[str, str]  # the text of each label
    doubtful: str | None = None  # the label of a first line that may be a header

    def check(self, counts: Mapping[Any, float]) -> None:
        """Refuse a first line that names a class without documents and reads like a header."""
        if self.doubtful is None or counts.get(self.doubtful):
            return
        label, text = self.doubtful, self.texts[self.doubtful]
        raise ValueError(
            f"{self.path}: are {label!r} and {text!r} in its first line the names of columns? No "
            f"document has the class {label!r}. Give --class-texts-label {label!r} "
            f"--class-texts-text {text!r}; or, if it is a class, --class-texts-label 1 "
            "--class-texts-text 2."
        )


def read_class_texts(path: Path, label: str | None, text: list[str] | None) -> ClassTexts:
    """Return the text of each label of a table; a TSV file may have no header: label, tab, text."""
    from longtail.exceptions import DataFormatError

    may_lack_header = label is None and text is None
    texts: dict[str, str] = {}
    try:
        chunks, first = read_labelled(
            path, label or "label", text or ["text"], may_lack_header=may_lack_header
        )
        doubtful = first[0] if first is not None and _may_be_names(first) else None
        for chunk in chunks:
            for line, name, named in zip(chunk.lines, chunk.labels, chunk.texts, strict=True):
                if not isinstance(name, str):
                    raise DataFormatError(path, f"expected one label, found {name!r}", line)
                if name in texts:
                    raise DataFormatError(path, f"label {name!r} is there twice", line)
                texts[name] = named
    except DataFormatError as error:
        raise ValueError(
            f"{error}. --class-texts takes a table with the columns label and text, or those that "
            "--class-texts-label and --class-texts-text name; without header: label, tab, text."
        ) from None
    return ClassTexts(path, texts, doubtful)


def _may_be_names(row: list[str]) -> bool:
    """Return whether cells read like names of columns: one or two words without a digit."""
    return all(re.fullmatch(r"[^\W\d]+([ .-][^\W\d]+)?", cell) for cell in row)
