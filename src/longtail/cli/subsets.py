"""`--within` and `--exclude`: files of labels, among which predictions choose or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.inputs import as_label

Within = Annotated[
    Path | None,
    typer.Option(
        "--within", metavar="FILE", help="Choose among these classes alone: a label in each line."
    ),
]
Exclude = Annotated[
    Path | None,
    typer.Option("--exclude", metavar="FILE", help="Leave out these classes, likewise."),
]


@dataclass(frozen=True)
class Limits:
    """The files as the command got them."""

    within: Path | None = None
    exclude: Path | None = None

    @property
    def are_given(self) -> bool:
        """Whether any class is left out."""
        return bool(self.within or self.exclude)

    def read(self, model: Any) -> dict[str, Any]:
        """Return the arguments of the model's methods."""
        from longtail.estimators.subsets import read_subsets

        given = {
            name: _read_labels(name, path, model)
            for name, path in (("within", self.within), ("exclude", self.exclude))
            if path is not None
        }
        read_subsets(given.get("within"), given.get("exclude"), model.classes_, 1)  # checks them
        return given


def _read_labels(name: str, path: Path, model: Any) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--{name} {path}: cannot be read as UTF-8 text: {error}") from None
    return [as_label(model, line.strip()) for line in lines if line.strip()]
