"""`--within`, `--exclude`, `--branch`, `--back-off`, `--level`: what predictions choose among."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.answers import as_label, read_limits


@dataclass(frozen=True)
class ClassLimits:
    """Options that limit the classes to choose from."""

    within: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Choose among these classes alone: a label in each line."
        ),
    ] = None
    exclude: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Leave out these classes, likewise.")
    ] = None
    branch: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Choose among the classes at or below this node alone."),
    ] = None
    back_off: Annotated[
        float | None,
        typer.Option(
            metavar="PRECISION",
            help="With a hierarchy: where it is not sure enough of a class, the deepest node of "
            "which it is, such as 0.9.",
        ),
    ] = None
    level: Annotated[
        int | None,
        typer.Option(min=1, help="With a hierarchy: rank the nodes at this depth."),
    ] = None

    def check(self, precision: float | None, top: int | None) -> None:
        """Refuse what does not go with `--back-off`."""
        if self.back_off is not None and (precision is not None or self.level or (top or 1) > 1):
            raise ValueError(
                "--back-off gives one answer at a precision; it does not go with --precision, "
                "--level or --top."
            )

    def read(self, model: Any, unknown: float = 0.0) -> dict[str, Any]:
        """Return the arguments of the model's methods.

        A model that answers by nodes is told the share of documents of unknown classes.
        """
        from longtail.estimators.within import read_subsets

        needs_hierarchy = self.branch is not None or self.level is not None
        if needs_hierarchy and getattr(model, "hierarchy_", None) is None:
            raise ValueError(
                "this model has no hierarchy; fit one with --hierarchy FILE, --parent-column, "
                "--path-separator or --taxonomy FILE."
            )
        labels = {
            name: _read_labels(name, path, model)
            for name, path in (("within", self.within), ("exclude", self.exclude))
            if path is not None
        }
        branch = None if self.branch is None else as_label(model, self.branch)
        given = read_limits(model, **labels, branch=branch)
        read_subsets(given.get("within"), given.get("exclude"), model.classes_, 1)  # checks them
        if unknown and self.back_off is not None:
            model.expect_unknown(unknown)
        others = {"level": self.level, "back_off": self.back_off}
        return given | {name: value for name, value in others.items() if value is not None}


def _read_labels(name: str, path: Path, model: Any) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--{name} {path}: cannot be read as UTF-8 text: {error}") from None
    return [as_label(model, line.strip()) for line in lines if line.strip()]
