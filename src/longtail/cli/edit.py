"""`longtail rename | merge | remove | refine | undo | compact`: change a model's classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail._words import count
from longtail.answers import as_label
from longtail.cli.inputs import check_model, find_embedder, known_label
from longtail.cli.shared_options import (
    AsJson,
    By,
    Command,
    ModelPath,
    Quiet,
    declare,
    parameters_of,
)
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


def changes_model(change: Callable[..., tuple[str, int | None]]) -> Command:
    """Make a command of what changes an open model, returns what it did, and the change's number.

    The number is None where the journal has none. `change` takes a teacher, its own arguments and,
    if it wants to know, `quiet`; the command opens the model and says what it holds in the end.
    """
    _, *arguments = parameters_of(change)

    @wraps(change)
    def command(model: Path, as_json: bool, quiet: bool, **given: Any) -> None:
        with clear_errors():
            from longtail.teaching import Teacher

            check_model(model)
            memory: Any = "auto" if given.pop("memory", True) else "never"
            teacher = Teacher(model, refine="never", memory=memory, embedder=find_embedder())
            if any(parameter.name == "quiet" for parameter in arguments):
                given["quiet"] = quiet
            refines = given.pop("refine", False)
            sentence, change_number = change(teacher, **given)
            if teacher.refine_due:
                sentence += _refine(teacher) if refines else " Run longtail refine: it is due."
            sizes = model_sizes(teacher.model, fitted=False)
            if as_json:
                changes = [] if change_number is None else [change_number]
                print_json({"done": sentence, "changes": changes, **sizes})
            elif not quiet:
                start = "" if change_number is None else f"Change {change_number}: "
                say(f"{start}{sentence} The model has {describe_sizes(sizes)}.")

    def option(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)

    return declare(
        command,
        [
            option("model", ModelPath),
            *(parameter for parameter in arguments if parameter.name != "quiet"),
            option("as_json", AsJson, False),
            option("quiet", Quiet, False),
        ],
    )


@changes_model
def rename(
    teacher: Any,
    label: _Class,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name to give it.")],
    by: By = None,
) -> tuple[str, int]:
    """Give a class another name."""
    old, renamed = known_label(teacher.model, label), as_label(teacher.model, new)
    return f"{old} is now called {renamed}.", teacher.rename_class(old, renamed, by=by)


@changes_model
def merge(
    teacher: Any,
    label: _Class,
    into: Annotated[str, typer.Argument(metavar="INTO", help="The class that gets them.")],
    by: By = None,
) -> tuple[str, int]:
    """Move all documents of a class to another one."""
    source, target = known_label(teacher.model, label), known_label(teacher.model, into)
    return f"{source} is now part of {target}.", teacher.merge_classes(source, target, by=by)


@changes_model
def remove(teacher: Any, label: _Class, by: By = None) -> tuple[str, int]:
    """Forget a class with all its documents."""
    found = known_label(teacher.model, label)
    return f"{found} is removed.", teacher.remove_class(found, by=by)


@changes_model
def refine(teacher: Any, by: By = None) -> tuple[str, int]:
    """Bring document frequencies and what else all classes share up to date."""
    return "The model is up to date.", teacher.refine(by=by)


@changes_model
def undo(
    teacher: Any,
    n_changes: Annotated[int, typer.Argument(metavar="[N]", min=1, help="How many; 1.")] = 1,
    by: By = None,
) -> tuple[str, int]:
    """Take back the last changes that are in effect, and say which."""
    undo_id = teacher.undo(n_changes, by=by)
    changes = {made.number: made for made in teacher.changes()}
    undone = [changes[change_id] for change_id in changes[undo_id].content["changes"]]
    listed = ", ".join(
        f"{c.number} ({c.action}: {describe_change(c)})" for c in undone[:_MAX_LISTED]
    )
    more = f" and {len(undone) - _MAX_LISTED:,} more" if len(undone) > _MAX_LISTED else ""
    return f"{count(n_changes, 'change')} undone: {listed}{more}.", undo_id


@changes_model
def compact(
    teacher: Any,
    *,
    memory: Annotated[
        bool,
        typer.Option("--memory/--no-memory", help="Keep documents for refine to learn from."),
    ] = True,
) -> tuple[str, int | None]:
    """Fold the journal into the model file; nothing before it can be undone then."""
    return "The journal is folded in.", teacher.compact()


def _refine(teacher: Any) -> str:
    """Refine a model, and say how long that took."""
    from longtail.teaching.refined import AUTOMATIC

    start = time.monotonic()
    teacher.refine(by=AUTOMATIC)
    return f" Refined, {time.monotonic() - start:.0f} s."
