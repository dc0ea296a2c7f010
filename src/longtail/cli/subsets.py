"""`--within`, `--exclude`, `--branch`: the classes among which predictions choose; and levels."""

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
Branch = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NODE", help="Choose among the classes at or below this node alone."
    ),
]
BackOff = Annotated[
    float | None,
    typer.Option(
        "--back-off",
        metavar="PRECISION",
        help="With a hierarchy: where it is not sure enough of a class, the deepest node of which "
        "it is, such as 0.9.",
    ),
]
Level = Annotated[
    int | None,
    typer.Option("--level", min=1, help="With a hierarchy: rank the nodes at this depth."),
]


@dataclass(frozen=True)
class Limits:
    """What the command was told about the classes to choose from."""

    within: Path | None = None
    exclude: Path | None = None
    branch: str | None = None
    level: int | None = None

    @property
    def are_given(self) -> bool:
        """Whether any class is left out."""
        return bool(self.within or self.exclude or self.branch or self.level)

    def read(self, model: Any) -> dict[str, Any]:
        """Return the arguments of the model's methods."""
        from longtail.estimators.subsets import read_subsets

        given: dict[str, Any] = {
            name: _read_labels(name, path, model)
            for name, path in (("within", self.within), ("exclude", self.exclude))
            if path is not None
        }
        if self.branch is not None:
            _check_has_hierarchy(model)
            below = model.branch(as_label(model, self.branch)).tolist()
            allowed = set(given.get("within", below))
            given["within"] = [label for label in below if label in allowed]
        read_subsets(given.get("within"), given.get("exclude"), model.classes_, 1)  # checks them
        if self.level is not None:
            _check_has_hierarchy(model)
            given["level"] = self.level
        return given


def _check_has_hierarchy(model: Any) -> None:
    """Refuse models whose classes have no parents."""
    if getattr(model, "hierarchy_", None) is None:
        raise ValueError(
            "this model has no hierarchy; fit one with --hierarchy FILE, --parent-column, "
            "--path-separator or --taxonomy FILE."
        )


def _read_labels(name: str, path: Path, model: Any) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--{name} {path}: cannot be read as UTF-8 text: {error}") from None
    return [as_label(model, line.strip()) for line in lines if line.strip()]
