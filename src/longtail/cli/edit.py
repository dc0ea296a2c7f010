"""`longtail rename | merge | remove | refine | undo | compact`: change a model's classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.cli.inputs import as_label, check_model, known_label
from longtail.cli.options import AsJson, By, ModelPath, Quiet
from longtail.cli.show import (
    clear_errors,
    describe_change,
    describe_sizes,
    model_sizes,
    print_json,
    say,
)

_MAX_LISTED = 10  # changes that undo names

_Class = Annotated[str, typer.Argument(metavar="CLASS", help="A class of the model.")]


def rename(
    model: ModelPath,
    label: _Class,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name to give it.")],
    by: By = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Give a class another name."""

    def change(teacher: Any) -> tuple[str, int]:
        old, renamed = known_label(teacher.model, label), as_label(teacher.model, new)
        return f"{old} is now called {renamed}.", teacher.rename_class(old, renamed, by=by)

    change_model(model, change, as_json, quiet)


def merge(
    model: ModelPath,
    label: _Class,
    into: Annotated[str, typer.Argument(metavar="INTO", help="The class that gets them.")],
    by: By = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Move all documents of a class to another one."""

    def change(teacher: Any) -> tuple[str, int]:
        source, target = known_label(teacher.model, label), known_label(teacher.model, into)
        return f"{source} is now part of {target}.", teacher.merge_classes(source, target, by=by)

    change_model(model, change, as_json, quiet)


def remove(
    model: ModelPath,
    label: _Class,
    by: By = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Forget a class with all its documents."""

    def change(teacher: Any) -> tuple[str, int]:
        found = known_label(teacher.model, label)
        return f"{found} is removed.", teacher.remove_class(found, by=by)

    change_model(model, change, as_json, quiet)


def refine(model: ModelPath, by: By = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Bring document frequencies and what else all classes share up to date."""
    change_model(
        model, lambda teacher: ("The model is up to date.", teacher.refine(by=by)), as_json, quiet
    )


def undo(
    model: ModelPath,
    n_changes: Annotated[int, typer.Argument(metavar="[N]", min=1, help="How many; 1.")] = 1,
    by: By = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take back the last changes that are in effect, and say which."""

    def change(teacher: Any) -> tuple[str, int]:
        undo_id = teacher.undo(n_changes, by=by)
        changes = {made.number: made for made in teacher.changes()}
        undone = [changes[change_id] for change_id in changes[undo_id].content["changes"]]
        listed = ", ".join(
            f"{c.number} ({c.action}: {describe_change(c)})" for c in undone[:_MAX_LISTED]
        )
        more = f" and {len(undone) - _MAX_LISTED:,} more" if len(undone) > _MAX_LISTED else ""
        return f"{count(n_changes, 'change')} undone: {listed}{more}.", undo_id

    change_model(model, change, as_json, quiet)


def compact(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Fold the journal into the model file; nothing before it can be undone then."""
    change_model(
        model, lambda teacher: ("The journal is folded in.", teacher.compact()), as_json, quiet
    )


def change_model(
    path: Path,
    change: Callable[[Any], tuple[str, int | None]],
    as_json: bool,
    quiet: bool,
    *,
    refines: bool = False,
) -> None:
    """Open a model, change it, and say what was done and what it holds now.

    `change` returns what it did and the number of the change; None where the journal has none.
    `refines` says that the model is refined as well where that is due.
    """
    with clear_errors():
        from longtail.teaching import Teacher

        check_model(path)
        teacher = Teacher(path, refine="never")
        sentence, change_number = change(teacher)
        if teacher.refine_due:
            sentence += _refine(teacher) if refines else " Run longtail refine: it is due."
        sizes = model_sizes(teacher.model, fitted=False)
        if as_json:
            changes = [] if change_number is None else [change_number]
            print_json({"done": sentence, "changes": changes, **sizes})
        elif not quiet:
            start = "" if change_number is None else f"Change {change_number}: "
            say(f"{start}{sentence} The model has {describe_sizes(sizes)}.")


def _refine(teacher: Any) -> str:
    """Refine a model, and say how long that took."""
    from longtail.teaching.refined import AUTOMATIC

    start = time.monotonic()
    teacher.refine(by=AUTOMATIC)
    return f" Refined, {time.monotonic() - start:.0f} s."
