"""`longtail info`: what is in a model."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.answers import plain
from longtail.cli.expect import expected_measures, print_expectations
from longtail.cli.inputs import check_model, load_model
from longtail.cli.shared_options import AsJson, ModelPath
from longtail.cli.show import (
    clear_errors,
    describe_change,
    model_sizes,
    print_json,
    print_table,
    say,
)


def info(
    model: ModelPath,
    changes: Annotated[
        bool, typer.Option("--changes", help="List what the model was taught since it was saved.")
    ] = False,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Fold the journal into the model file; no undo afterwards."),
    ] = False,
    health: Annotated[
        bool,
        typer.Option("--health", help="Show how far it has moved from what was learned."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a model file, after checking all of it."""
    with clear_errors():
        check_model(model)
        if compact:
            from longtail.teaching import Teacher

            Teacher(model).compact()
        facts, found = _facts(model)
        log = (
            [change.as_dict() | {"summary": describe_change(change)} for change in found]
            if changes
            else []
        )
        health_report = _measure_health(model) if health else None
        if as_json:
            health_json = {} if health_report is None else {"health": health_report.as_dict()}
            print_json({**facts, **({"log": log} if changes else {}), **health_json})
            return
        expected = facts.pop("expected")
        # Changes count labels of documents; of how many documents is not known.
        names = {"documents": "documents of the last fit"} if "labels" in facts else {}
        print_table(
            str(model),
            ("what", "value"),
            [(names.get(name, name).replace("_", " "), _written(v)) for name, v in facts.items()],
        )
        print_expectations(expected)
        if health_report is not None:
            print_table("In use", ("measure", "value"), health_report.rows(commands=True))
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


def _facts(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return what there is to say about a model, and what it was taught since it was saved."""
    from longtail.store.container import read_checksum
    from longtail.store.contents import open_checked
    from longtail.store.journal import journal_path, waiting_changes

    checked, changes = open_checked(path), waiting_changes(path)
    file, contents = checked.file, checked.contents
    taught = load_model(path) if any(change.in_effect for change in changes) else None
    size, log_file = path.stat(), journal_path(path)
    facts = {
        "kind": file.kind,
        **(_sizes(contents.arrays, contents.values) if taught is None else _taught_sizes(taught)),
        "bytes": size.st_size,
        "saved": datetime.fromtimestamp(size.st_mtime, UTC).isoformat(timespec="seconds"),
        "version": file.library_version,
        "format": file.format_number,
        "checksum": read_checksum(path),
        "changes": len(changes),
        "log_bytes": log_file.stat().st_size if log_file.exists() else 0,
        "parameters": plain(_parameters(contents)),
        **_columns(contents.values),
        "expected": _expected(path, contents),
    }
    return facts, changes


def _measure_health(path: Path) -> Any:
    """Return the health of a model with its changes."""
    loaded = load_model(path)
    if not hasattr(loaded, "health"):
        raise ValueError(f"--health: {path} holds a model by the paper's method, which has none.")
    return loaded.health()


def _sizes(arrays: Any, values: Any) -> dict[str, int]:
    """Return the sizes of a model that was taught nothing since."""
    sizes, terms = (
        arrays[f"statistics/{name}"] for name in ("class_sizes", "document_frequencies")
    )
    counted = {"documents": int(sizes.sum())}
    if values.get("label_form/form"):
        counted = {"documents": values.get("n_fitted_documents", 0), "labels": int(sizes.sum())}
    counted |= {"classes": len(sizes), "terms": len(terms)}
    if "hierarchy/indptr" in arrays:
        counted["hierarchy_nodes"] = len(arrays["hierarchy/indptr"]) - 1
    return counted


def _taught_sizes(model: Any) -> dict[str, int]:
    """Return the sizes of a model with its changes."""
    sizes = model_sizes(model) | {"terms": model.statistics_.n_terms}
    hierarchy = getattr(model, "hierarchy_", None)
    return sizes if hierarchy is None else sizes | {"hierarchy_nodes": hierarchy.n_nodes}


def _parameters(contents: Any) -> dict[str, Any]:
    """Return the parameters, those of the parts with the names that scikit-learn gives them."""
    parts = {contents.counts_kind: "classifier__", contents.kind: ""}
    return {
        f"{parts.get(kind, 'vectorizer__')}{name}": value
        for kind, given in contents.parameters.items()
        for name, value in given.items()
    }


def _columns(values: Any) -> dict[str, Any]:
    """Return the columns that the model remembers."""
    told = {
        name.removeprefix("columns/"): value
        for name, value in values.items()
        if name.startswith("columns/")
    }
    if isinstance(told.get("text"), str):
        told["text"] = [told["text"]]
    if len(told.get("label", "")) == 1:
        [told["label"]] = told["label"]
    if "format" in told:  # the model file has one, too
        told["table_format"] = told.pop("format")
    return told


def _expected(path: Path, contents: Any) -> dict[str, Any]:
    """Return what to expect of the model, as `fit` found it."""
    arrays, values = contents.arrays, contents.values
    if "check/expected" not in arrays:
        return {}
    error = values.get("calibrator/calibration_error", math.nan)
    if math.isnan(error) and len(arrays["calibrator/top_log_odds"]):
        # Not in the file: it is estimated when it is asked for.
        error = load_model(path).calibration_error_
    return expected_measures(arrays["check/expected"], error)


def _written(value: Any) -> str:
    """Return a fact for people."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
