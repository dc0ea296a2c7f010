"""`longtail bench run | report | systems | environments`: what stands behind the commands."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longtail.cli.show import print_json, print_note, print_table, progress, say
from longtail_bench.cli.show import print_label_sets, print_measurements
from longtail_bench.data import find_data_sets
from longtail_bench.environments import (
    BASELINES,
    BaselineEnvironmentError,
    ensure_environment,
    environments_folder,
    find_environment,
)
from longtail_bench.rows import Row
from longtail_bench.run import run
from longtail_bench.systems import SYSTEMS, Settings


def run_systems(
    names: Sequence[str] | None, systems: str, folder: Path, as_json: bool, **options: Any
) -> None:
    """Run systems, say what each reached as soon as it is there, and print the tables."""
    selected = list(SYSTEMS) if systems == "all" else systems.split(",")
    data_sets = list(names or find_data_sets(folder))
    rows = run_and_note(data_sets, selected, data_folder=folder, **options)
    if as_json:
        print_json([json.loads(row.to_json()) for row in rows])
        return
    for name in dict.fromkeys(row.data for row in rows):
        results = [row for row in rows if row.data == name]
        if any(row.measures for row in results):
            print_label_sets(name, results)
        else:
            print_measurements(name, results)
    say(f"Rows are in {options['out']}; `longtail bench report {options['out']}` makes tables.")


def run_and_note(data_sets: Sequence[str], systems: Sequence[str], **options: Any) -> list[Row]:
    """Run systems and say what each reached as soon as it is there; Ctrl-C ends the command."""
    try:
        with progress() as update:
            return run(
                data_sets,
                systems,
                progress=update,
                on_row=lambda row: print_note(summarise(row)),
                **options,
            )
    except KeyboardInterrupt:
        print_note(f"stopped; finished rows are in {options['out']}, the same command goes on.")
        sys.exit(130)


def summarise(row: Row) -> str:
    """Return what one run reached in one line."""
    name = f"{row.data}, {row.system}, seed {row.seed}"
    if row.split != "test":
        name += f", {row.split}, {json.dumps(row.settings)}"
    if row.error:
        return f"{name}: {row.error}"
    if row.measures:
        shown = ", ".join(f"{key} {row.measures[key]:.1%}" for key in ("P@1", "P@5", "nDCG@5"))
        return f"{name}: {shown}, {_spell_costs(row)}"
    return f"{name}: accuracy {row.accuracy:.1%}, macro F1 {row.macro_f1:.1%}, {_spell_costs(row)}"


def _spell_costs(row: Row) -> str:
    """Return what a run cost."""
    return (
        f"fit {row.fit_cpu_seconds:.1f} s, predict {row.predict_cpu_seconds:.1f} s "
        f"(CPU), {row.peak_megabytes:,.0f} MB"
    )


def parse_settings(texts: Sequence[str]) -> dict[str, Settings]:
    """Parse `system.parameter=value`; a value that is no number or truth value is a string."""
    parsed: dict[str, Settings] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        system, dot, parameter = name.partition(".")
        if not (equals and dot and system and parameter):
            raise ValueError(f"--set must be like ova.C=10; got {text!r}.")
        try:
            parsed.setdefault(system, {})[parameter] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parsed.setdefault(system, {})[parameter] = value
    return parsed


def write_report_files(results: Path, out: Path) -> None:
    """Write tables and figures and say where they are."""
    from longtail_bench.report import write_report
    from longtail_bench.rows import read_rows

    for path in write_report(read_rows(results), out):
        say(str(path))


def list_systems(as_json: bool) -> None:
    """Print every system with what a search would try and the environment that it needs."""
    listed = [
        {
            "system": name,
            "title": system.title,
            "tries": ", ".join(system.grid),
            "environment": _state(system.environment),
        }
        for name, system in SYSTEMS.items()
    ]
    if as_json:
        print_json(listed)
        return
    header = ("system", "title", "--tune tries", "environment")
    print_table("Systems", header, [tuple(entry.values()) for entry in listed])


def create_environments(names: Sequence[str] | None) -> None:
    """Create environments, one line each; a failure does not keep the others from being made."""
    selected = list(names or BASELINES)
    for name in selected:
        if name not in BASELINES:
            raise ValueError(f"environments must be among {', '.join(BASELINES)}; got {name!r}.")
    failures = 0
    with progress() as update:
        for done, name in enumerate(selected):
            update(f"{environments_folder()}: {name}", done, len(selected))
            try:
                print_note(f"{name}: {ensure_environment(name)}")
            except BaselineEnvironmentError as error:
                failures += 1
                print_note(str(error))
    if failures:
        sys.exit(1)


def _state(environment: str | None) -> str:
    """Say whether an environment is there."""
    if environment is None:
        return "none needed"
    return f"{environment}, {'there' if find_environment(environment) else 'not created yet'}"
