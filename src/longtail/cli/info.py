"""`longtail info`: what is in a model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.expect import expectations, print_expectations
from longtail.cli.inputs import check_model
from longtail.cli.options import AsJson, ModelPath
from longtail.cli.show import clear_errors, count, plain, print_json, print_table, say


def info(
    model: ModelPath,
    changes: Annotated[
        bool, typer.Option("--changes", help="List what the model was taught since it was saved.")
    ] = False,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Fold the log into the model file; no undo afterwards."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a model file, after checking all of it."""
    with clear_errors():
        from longtail.teaching import Teacher

        check_model(model)
        teacher = Teacher(model)
        if compact:
            teacher.compact()
        facts = _facts(model, teacher)
        log = [_as_row(change) for change in teacher.changes()] if changes else []
        if as_json:
            print_json({**facts, **({"log": log} if changes else {})})
            return
        expected = facts.pop("expected")
        print_table(str(model), ("what", "value"), [(k, _written(v)) for k, v in facts.items()])
        print_expectations(expected)
        if log:
            print_table(
                "Changes since the model was saved, oldest first",
                ("number", "time", "by", "action", "what", "in effect"),
                [
                    (
                        str(row["number"]),
                        row["time"],
                        row["by"] or "",
                        row["action"],
                        row["summary"],
                        "yes" if row["in_effect"] else "no",
                    )
                    for row in log
                ],
            )
        elif changes:
            say("Nothing was taught since the model was saved.")


def _facts(path: Path, teacher: Any) -> dict[str, Any]:
    """Return what there is to say about a model."""
    from longtail.store.container import open_model, read_checksum
    from longtail.store.journal import journal_path

    file, statistics = open_model(path, verify=False), teacher.model.statistics_
    size, log_file = path.stat(), journal_path(path)
    parameters = {
        name: value
        for name, value in teacher.model.get_params().items()
        if isinstance(value, str | int | float | list | tuple | None)
    }
    return {
        "kind": file.kind,
        "documents": statistics.n_documents,
        "classes": statistics.n_classes,
        "terms": statistics.n_terms,
        "bytes": size.st_size,
        "saved": datetime.fromtimestamp(size.st_mtime, UTC).isoformat(timespec="seconds"),
        "version": file.library_version,
        "format": file.format_number,
        "checksum": read_checksum(path),
        "changes": len(teacher.changes()),
        "log_bytes": log_file.stat().st_size if log_file.exists() else 0,
        "parameters": plain(parameters),
        **_columns(teacher.model),
        "expected": expectations(teacher.model),
    }


def _columns(model: Any) -> dict[str, Any]:
    """Return the columns that the model remembers."""
    columns = getattr(model, "columns_", None)
    return {} if columns is None else {"text": list(columns.text), "label": columns.label}


def _as_row(change: Any) -> dict[str, Any]:
    """Return one change with a sentence for its content."""
    summaries = {
        "rename": "{old} is called {new}",
        "merge": "{source} is part of {into}",
        "remove": "{label}",
        "undo": "changes {changes}",
    }
    if change.labels:
        names = list(dict.fromkeys(map(str, change.labels)))
        more = f" and {count(len(names) - 3, 'more class')}" if len(names) > 3 else ""
        summary = f"{count(len(change.labels), 'document')} of {', '.join(names[:3])}{more}"
    else:
        summary = summaries[change.action].format(**change.content)
    return {
        "number": change.number,
        "time": change.time,
        "by": change.by,
        "action": change.action,
        "summary": summary,
        "in_effect": change.in_effect,
    }


def _written(value: Any) -> str:
    """Return a fact for people."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
